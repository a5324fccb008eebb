//! Report of a check: its lines, and the program's reach.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::code::{Code, Topic};
use crate::field::{Field, Place};
use crate::reach::Reach;

/// A fault of a program or instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Kind of the fault.
    pub code: Code,
    /// The program, or for a fault of an instance, the instance that would not work.
    pub subject: String,
    /// One sentence without its full stop.
    pub what: String,
    /// Remedy, without a full stop.
    pub remedy: String,
    /// Places in the manifest of a program or of a system, if it is faulty: the fault itself first, then explanatory
    /// ones.
    pub places: Vec<Place>,
}

impl Finding {
    /// A finding.
    pub fn new(code: Code, subject: &str, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        let (what, remedy) = (shown(what.into()), shown(remedy.into()));
        Finding { code, subject: subject.into(), what, remedy, places: Vec::new() }
    }

    /// Returns whether both are the same fault. Places are ignored, as additions and removals move them.
    pub(crate) fn is_same(&self, other: &Finding) -> bool {
        (self.code, &self.subject, &self.what, &self.remedy) == (other.code, &other.subject, &other.what, &other.remedy)
    }

    /// Adds a place.
    pub(crate) fn at(mut self, field: Field, label: &'static str) -> Finding {
        self.places.push(Place { field, label });
        self
    }
}

/// Escapes a text for a terminal: control characters of a manifest could otherwise move the cursor and overwrite a
/// report.
fn shown(text: String) -> String {
    if !text.contains(char::is_control) {
        return text;
    }
    text.chars().map(|letter| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter }).collect()
}

/// Verdict of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Checked and proved.
    Proved,
    /// Violated; the change is refused.
    Refused,
    /// Information only.
    Note,
}

impl Verdict {
    /// Display name.
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Proved => "proved",
            Verdict::Refused => "refused",
            Verdict::Note => "note",
        }
    }
}

/// A line of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Verdict.
    pub verdict: Verdict,
    /// Topic of the line.
    pub topic: Topic,
    /// Kind of the fault, if it is one.
    pub code: Option<Code>,
    /// The faulty part of a program's manifest, if any. Parts of a system manifest are omitted: rows of the file differ
    /// from those of the merged system.
    pub field: Option<Field>,
    /// One sentence without its full stop.
    pub what: String,
    /// Remedy, if any; without a full stop.
    pub remedy: String,
}

impl Line {
    /// A proved property.
    pub fn proved(topic: Topic, what: impl Into<String>) -> Line {
        Line {
            verdict: Verdict::Proved,
            topic,
            code: None,
            field: None,
            what: shown(what.into()),
            remedy: String::new(),
        }
    }

    /// A note.
    pub fn note(topic: Topic, what: impl Into<String>) -> Line {
        Line { verdict: Verdict::Note, topic, code: None, field: None, what: shown(what.into()), remedy: String::new() }
    }

    /// A violation.
    pub fn refused(finding: Finding) -> Line {
        Line {
            verdict: Verdict::Refused,
            topic: finding.code.topic(),
            code: Some(finding.code),
            field: finding.places.first().map(|place| place.field).filter(|field| !field.is_of_system()),
            what: finding.what,
            remedy: finding.remedy,
        }
    }

    /// A finding as a note, which refuses nothing.
    pub fn noted(finding: Finding) -> Line {
        Line { verdict: Verdict::Note, ..Line::refused(finding) }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<8}", self.verdict.word())?;
        match self.code {
            Some(code) => write!(f, "{} {}", code.text(), self.what)?,
            None => write!(f, "{}: {}", self.topic.word(), self.what)?,
        }
        if let Some(field) = self.field {
            write!(f, ", in {field}")?;
        }
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "; {}", self.remedy) }
    }
}

/// Complete result of checking a change, or a system as it is.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Sorted by topic, refusals before proofs.
    pub lines: Vec<Line>,
    /// Reach of the changed program; `None` if there is no such program.
    pub reach: Option<Box<Reach>>,
}

impl Report {
    /// Returns whether the change is accepted.
    pub fn is_accepted(&self) -> bool {
        self.refused().next().is_none()
    }

    /// Returns the refusals.
    pub fn refused(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.verdict == Verdict::Refused)
    }

    /// Returns the codes of the refusals.
    pub fn codes(&self) -> Vec<Code> {
        self.refused().filter_map(|line| line.code).collect()
    }

    /// Sorts the lines.
    pub(crate) fn sort(&mut self) {
        let place = |verdict| match verdict {
            Verdict::Refused => 0,
            Verdict::Proved => 1,
            Verdict::Note => 2,
        };
        self.lines.sort_by_key(|line| (line.topic, place(line.verdict)));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        match &self.reach {
            Some(reach) => f.write_str(&reach.to_string()),
            None => Ok(()),
        }
    }
}

//! What a check has to say: line by line, and what comes into reach.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::code::{Code, Topic};
use crate::field::{Field, Place};
use crate::reach::Reach;

/// Something that is wrong, with the program or instance that it is wrong with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What sort of thing.
    pub code: Code,
    /// The program, or where the fault is of one, the instance that would not work.
    pub subject: String,
    /// One sentence without its full stop.
    pub what: String,
    /// What to do about it, without a full stop.
    pub remedy: String,
    /// Where in the manifest, if it is wrong with one of a program or of a system: the place itself first, then others
    /// that explain.
    pub places: Vec<Place>,
}

impl Finding {
    /// A finding.
    pub fn new(code: Code, subject: &str, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        let (what, remedy) = (shown(what.into()), shown(remedy.into()));
        Finding { code, subject: subject.into(), what, remedy, places: Vec::new() }
    }

    /// Whether both say the same. Where that is in a manifest does not count: what comes or goes moves it.
    pub(crate) fn is_same(&self, other: &Finding) -> bool {
        (self.code, &self.subject, &self.what, &self.remedy) == (other.code, &other.subject, &other.what, &other.remedy)
    }

    /// Adds a place.
    pub(crate) fn at(mut self, field: Field, label: &'static str) -> Finding {
        self.places.push(Place { field, label });
        self
    }
}

/// The text as a terminal may have it: what a manifest says could otherwise move the cursor and write over a report.
fn shown(text: String) -> String {
    if !text.contains(char::is_control) {
        return text;
    }
    text.chars().map(|letter| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter }).collect()
}

/// Whether a line speaks for or against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was looked at, and holds.
    Proved,
    /// It does not hold; nothing may be changed.
    Refused,
    /// Good to know.
    Note,
}

impl Verdict {
    /// The word for it.
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
    /// For or against.
    pub verdict: Verdict,
    /// What it is about.
    pub topic: Topic,
    /// What sort of fault it is, where it is one.
    pub code: Option<Code>,
    /// The part of a program's manifest that it is wrong with, where it is one. Parts of a system manifest are not
    /// called here: a file has other rows than the system that it became.
    pub field: Option<Field>,
    /// One sentence without its full stop.
    pub what: String,
    /// What to do about it, where that is to be said; without a full stop.
    pub remedy: String,
}

impl Line {
    /// Something that holds.
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

    /// Something that is good to know.
    pub fn note(topic: Topic, what: impl Into<String>) -> Line {
        Line { verdict: Verdict::Note, topic, code: None, field: None, what: shown(what.into()), remedy: String::new() }
    }

    /// Something that does not hold.
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

    /// The same as a note: it is so, and need not stop anything.
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

/// Everything that there is to say about a change, or about a system as it is.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// In the order of the topics, and what is refused before what is proved.
    pub lines: Vec<Line>,
    /// What the program of the change can reach; none where there is no such program.
    pub reach: Option<Box<Reach>>,
}

impl Report {
    /// Whether nothing speaks against the change.
    pub fn is_accepted(&self) -> bool {
        self.refused().next().is_none()
    }

    /// The lines that speak against it.
    pub fn refused(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.verdict == Verdict::Refused)
    }

    /// The codes of what was refused.
    pub fn codes(&self) -> Vec<Code> {
        self.refused().filter_map(|line| line.code).collect()
    }

    /// Puts the lines in their order.
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

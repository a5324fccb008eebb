//! Access control lists: ordered entries, the first match decides.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::pattern::{Pattern, PatternError};
use crate::rights::{Right, Rights};

/// Maximum entries of a list.
pub const ACL_ENTRIES: usize = 64;
/// Maximum size of a list as text, in bytes.
pub const ACL_BYTES: usize = 4096;

/// The effect of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Allows.
    Allow,
    /// Denies, regardless of later entries.
    Deny,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its effect.
    pub verb: Verb,
    /// Its rights.
    pub rights: Rights,
    /// The principals that it applies to.
    pub who: Pattern,
}

/// An access control list. The default is to deny.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acl {
    entries: Vec<Entry>,
}

/// The reason of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The entry with this number, from 1 on.
    Entry(usize),
    /// No entry matched.
    NoEntry,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// Whether access is allowed.
    pub allowed: bool,
    /// The reason.
    pub rule: Rule,
}

/// Why a text is not a list. Lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AclError {
    /// Not UTF-8.
    NotText,
    /// More than [`ACL_BYTES`].
    TooLong,
    /// More than [`ACL_ENTRIES`].
    TooManyEntries,
    /// A line does not begin with `allow` or `deny`.
    BadVerb {
        /// Its number.
        line: usize,
    },
    /// A line is not a verb, rights and a pattern.
    MissingPart {
        /// Its number.
        line: usize,
    },
    /// An unknown right.
    BadRight {
        /// Line number.
        line: usize,
        /// The word.
        word: String,
    },
    /// A malformed pattern.
    BadPattern {
        /// Line number.
        line: usize,
        /// The error.
        error: PatternError,
    },
}

impl Acl {
    /// Parses a list: an entry per line, `allow RIGHTS PATTERN` or `deny RIGHTS PATTERN`. Empty lines are skipped.
    ///
    /// # Errors
    /// The text is malformed.
    pub fn parse(text: &str) -> Result<Acl, AclError> {
        if text.len() > ACL_BYTES {
            return Err(AclError::TooLong);
        }
        let mut acl = Acl::default();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            acl.push(Entry::parse(line, index + 1)?)?;
        }
        // The canonical text can be longer than one with tabs, but not by much.
        if acl.text().len() > ACL_BYTES { Err(AclError::TooLong) } else { Ok(acl) }
    }

    /// Parses a list from untrusted bytes.
    ///
    /// # Errors
    /// The bytes are malformed.
    pub fn from_bytes(bytes: &[u8]) -> Result<Acl, AclError> {
        if bytes.len() > ACL_BYTES {
            return Err(AclError::TooLong);
        }
        Acl::parse(core::str::from_utf8(bytes).map_err(|_| AclError::NotText)?)
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// There are [`ACL_ENTRIES`] already.
    pub fn push(&mut self, entry: Entry) -> Result<(), AclError> {
        self.insert(self.entries.len(), entry)
    }

    /// Inserts an entry before the one with this index, or at the end.
    ///
    /// # Errors
    /// There are [`ACL_ENTRIES`] already.
    pub fn insert(&mut self, index: usize, entry: Entry) -> Result<(), AclError> {
        if self.entries.len() == ACL_ENTRIES {
            return Err(AclError::TooManyEntries);
        }
        self.entries.insert(index.min(self.entries.len()), entry);
        Ok(())
    }

    /// Removes the entry with this index, if it exists.
    pub fn remove(&mut self, index: usize) -> Option<Entry> {
        (index < self.entries.len()).then(|| self.entries.remove(index))
    }

    /// The entries, in order of evaluation.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether it is empty, which denies everything.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The canonical text.
    pub fn text(&self) -> String {
        alloc::format!("{self}")
    }

    /// Decides whether the principal has the right.
    pub fn decide(&self, principal: &str, right: Right) -> Decided {
        let found = self.entries.iter().position(|entry| entry.rights.has(right) && entry.who.matches(principal));
        match found.and_then(|index| Some((index, self.entries.get(index)?))) {
            Some((index, entry)) => Decided { allowed: entry.verb == Verb::Allow, rule: Rule::Entry(index + 1) },
            None => Decided { allowed: false, rule: Rule::NoEntry },
        }
    }

    /// All rights of the principal.
    pub fn rights_of(&self, principal: &str) -> Rights {
        let mut open = Rights::ALL;
        let mut allowed = Rights::NONE;
        for entry in &self.entries {
            let asked = entry.rights.common(open);
            if asked.is_empty() || !entry.who.matches(principal) {
                continue;
            }
            open = open.without(asked);
            if entry.verb == Verb::Allow {
                allowed = allowed.and(asked);
            }
            if open.is_empty() {
                break;
            }
        }
        allowed
    }
}

impl Entry {
    /// Parses an entry; `line` is its number in errors.
    ///
    /// # Errors
    /// The text is malformed.
    pub fn parse(text: &str, line: usize) -> Result<Entry, AclError> {
        let text = text.trim();
        let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let verb = match verb {
            "allow" => Verb::Allow,
            "deny" => Verb::Deny,
            _ => return Err(AclError::BadVerb { line }),
        };
        let (rights, who) = rest.trim_start().split_once(char::is_whitespace).ok_or(AclError::MissingPart { line })?;
        let rights = Rights::parse(rights).map_err(|word| AclError::BadRight { line, word: word.into() })?;
        let who = Pattern::parse(who.trim_start()).map_err(|error| AclError::BadPattern { line, error })?;
        Ok(Entry { verb, rights, who })
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Verb::Allow => "allow",
            Verb::Deny => "deny",
        })
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} {}", self.verb, self.rights, self.who)
    }
}

impl fmt::Display for Acl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.iter().try_for_each(|entry| writeln!(formatter, "{entry}"))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Entry(number) => write!(formatter, "entry {number}"),
            Rule::NoEntry => formatter.write_str("no entry"),
        }
    }
}

impl AclError {
    /// The remedy.
    pub fn remedy(&self) -> &'static str {
        match self {
            AclError::NotText | AclError::BadVerb { .. } | AclError::MissingPart { .. } => {
                "write one entry per line: `allow RIGHTS PATTERN` or `deny RIGHTS PATTERN`"
            }
            AclError::TooLong | AclError::TooManyEntries => {
                "combine principals in one pattern with `|`, or rights in one entry with commas"
            }
            AclError::BadRight { .. } => {
                "rights are traverse, read, write, register, notify, set-acl, execute, connect, listen and control, \
                 separated by commas, or all"
            }
            AclError::BadPattern { error, .. } => error.remedy(),
        }
    }
}

impl fmt::Display for AclError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AclError::NotText => formatter.write_str("the ACL is not valid UTF-8"),
            AclError::TooLong => write!(formatter, "the ACL exceeds {ACL_BYTES} bytes"),
            AclError::TooManyEntries => write!(formatter, "the ACL exceeds {ACL_ENTRIES} entries"),
            AclError::BadVerb { line } => write!(formatter, "line {line}: expected `allow` or `deny`"),
            AclError::MissingPart { line } => write!(formatter, "line {line}: missing rights or pattern"),
            AclError::BadRight { line, word } => {
                write!(formatter, "line {line}: unknown right `{}`", word.escape_debug())
            }
            AclError::BadPattern { line, error } => write!(formatter, "line {line}: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    const SAMPLE: &str = "deny write ..guest.singularity\nallow read,write ..*.singularity\nallow traverse **\n";

    #[test]
    fn the_first_entry_that_matches_decides() {
        let acl = Acl::parse(SAMPLE).unwrap();
        let decided = |who: &str, right| {
            let decided = acl.decide(who, right);
            assert_eq!(acl.rights_of(who).has(right), decided.allowed, "{who} {right}");
            (decided.allowed, decided.rule)
        };
        assert_eq!(decided("guest.singularity", Right::Write), (false, Rule::Entry(1)));
        assert_eq!(decided("guest.singularity", Right::Read), (true, Rule::Entry(2)));
        assert_eq!(decided("a.b + cat.singularity", Right::Write), (true, Rule::Entry(2)));
        assert_eq!(decided("cat.other", Right::Traverse), (true, Rule::Entry(3)));
        assert_eq!(decided("cat.other", Right::Read), (false, Rule::NoEntry));
        assert_eq!(acl.text(), SAMPLE);
    }

    #[test]
    fn text_that_is_written_oddly_is_the_same_list() {
        let odd = "\n  deny   write  ..guest.singularity \r\n\nallow write,read ..*.singularity\nallow traverse **";
        assert_eq!(Acl::parse(odd).unwrap().text(), SAMPLE);
        assert!(Acl::parse("").unwrap().is_empty());
        assert!(!Acl::default().decide("a.b", Right::Read).allowed);
    }

    #[test]
    fn each_wrong_list_has_its_own_reason() {
        let many = "allow all **\n".repeat(ACL_ENTRIES + 1);
        let long = " ".repeat(ACL_BYTES + 1);
        for (text, words) in [
            ("permit read **", "line 1: expected `allow`"),
            ("allow read **\nread **", "line 2: expected `allow`"),
            ("allow", "line 1: missing"),
            ("allow read", "line 1: missing"),
            ("allow fly **", "unknown right `fly`"),
            ("allow read, write **", "unknown right ``"),
            ("allow read", "line 1: missing"),
            ("allow read Cat", "line 1: unexpected `C`"),
            (&many, "exceeds 64 entries"),
            (&long, "exceeds 4096 bytes"),
        ] {
            let error = Acl::parse(text).unwrap_err();
            assert!(error.to_string().contains(words), "{text}: {error}");
            assert!(!error.remedy().is_empty());
        }
        assert_eq!(Acl::from_bytes(b"allow read \xff"), Err(AclError::NotText));
        assert_eq!(Acl::from_bytes(&[b' '; ACL_BYTES + 1]), Err(AclError::TooLong));
    }

    #[test]
    fn every_right_is_named_by_the_remedy() {
        let remedy = AclError::BadRight { line: 1, word: String::new() }.remedy();
        assert!(Right::ALL.iter().all(|right| remedy.contains(right.word())));
    }
}

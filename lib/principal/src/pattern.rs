//! Patterns over principals.
//!
//! | Written | Stands for |
//! |---------|------------|
//! | a small letter, digit, `-`, `.`, `@` | itself |
//! | ` + ` | itself: what stands between two links |
//! | `*` | any run of the characters of a name: small letters, digits, `-` |
//! | `**` | any run of anything |
//! | `a\|b` | one or the other; binds weaker than all else |
//! | `( )` | a group |
//! | `?` | what stands before it, a character or a group, may be missing |
//! | `..` at the start of the pattern, a group or an alternative | `(** + )?`: however it was invoked |
//!
//! A pattern matches a whole principal. It is compiled to a Glushkov automaton whose states are the pattern's
//! characters, so matching takes one step per byte, whatever the pattern. Deliberately not here: path patterns, which
//! are those of packages.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::states::{STATE_LIMIT, States};

/// Maximum length of a pattern in bytes.
pub const PATTERN_BYTES: usize = 512;
/// Maximum nesting of groups.
const DEPTH_LIMIT: usize = 16;
/// Separator of links.
const JOINT: &[u8] = b" + ";

/// A set of principals.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    states: Vec<State>,
    first: States,
    last: States,
}

/// A state: the bytes that enter it, and its successors.
#[derive(Clone, Copy, Debug)]
struct State {
    reads: Reads,
    next: States,
}

#[derive(Clone, Copy, Debug)]
enum Reads {
    Byte(u8),
    NameByte,
    AnyByte,
}

/// Why a text is not a pattern. Positions are byte offsets from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// An empty pattern, alternative or group, which would match nothing.
    Empty {
        /// Its position.
        at: usize,
    },
    /// A character that no principal contains.
    BadCharacter {
        /// Its position.
        at: usize,
        /// The character.
        character: char,
    },
    /// A space or `+` that is not part of ` + `.
    BadJoint {
        /// Its position.
        at: usize,
    },
    /// An unbalanced parenthesis.
    Unbalanced {
        /// Its position.
        at: usize,
    },
    /// A `?` without a preceding item.
    NothingToMiss {
        /// Its position.
        at: usize,
    },
    /// `..` not at the start of a part.
    DotsInside {
        /// Its position.
        at: usize,
    },
    /// Groups are nested too deeply.
    TooDeep {
        /// Position of the first that is.
        at: usize,
    },
    /// More than [`PATTERN_BYTES`], or more than [`STATE_LIMIT`] characters with `..` expanded.
    TooLong,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The text is malformed.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        if text.len() > PATTERN_BYTES {
            return Err(PatternError::TooLong);
        }
        let mut reader = Reader { text: text.as_bytes(), at: 0, states: Vec::new() };
        let part = reader.alternatives(text, 0)?;
        if reader.at < text.len() {
            return Err(PatternError::Unbalanced { at: reader.at });
        }
        Ok(Pattern { text: text.into(), states: reader.states, first: part.first, last: part.last })
    }

    /// The pattern that matches exactly this text.
    ///
    /// # Errors
    /// No principal can have this text, or it has more than [`STATE_LIMIT`] characters.
    pub fn exactly(text: &str) -> Result<Pattern, PatternError> {
        match text.char_indices().find(|&(_, character)| !is_plain(character) && !matches!(character, ' ' | '+')) {
            Some((at, character)) => Err(PatternError::BadCharacter { at, character }),
            None => Pattern::parse(text),
        }
    }

    /// The source text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the whole text matches. Takes linear time.
    pub fn matches(&self, text: &str) -> bool {
        // Patterns and principals are not empty.
        !text.is_empty() && self.read(self.first, text).is_some_and(|(reached, _)| self.can_end(&reached))
    }

    /// Whether the pattern may match a principal whose last link is this one, however it was invoked. False is exact;
    /// true may depend on invokers that never invoke it.
    pub fn may_match_last_link(&self, link: &str) -> bool {
        let mut anywhere = States::NONE;
        for number in 0u8..=u8::MAX {
            if usize::from(number) < self.states.len() {
                anywhere.insert(number);
            }
        }
        let invoked = self.read(anywhere, " + ").and_then(|(_, possible)| self.read(possible, link));
        self.matches(link) || invoked.is_some_and(|(reached, _)| self.can_end(&reached))
    }

    fn can_end(&self, reached: &States) -> bool {
        !reached.common(&self.last).is_empty()
    }

    /// The states after reading all of the text from the states `possible`, and those that can follow them; none if it
    /// does not match.
    fn read(&self, mut possible: States, text: &str) -> Option<(States, States)> {
        let mut reached = States::NONE;
        for &byte in text.as_bytes() {
            reached = States::NONE;
            let mut after = States::NONE;
            for number in possible.each() {
                let Some(state) = self.states.get(usize::from(number)) else { continue };
                if state.reads.accepts(byte) {
                    reached.insert(number);
                    after.add(&state.next);
                }
            }
            if reached.is_empty() {
                return None;
            }
            possible = after;
        }
        Some((reached, possible))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Reads {
    fn accepts(self, byte: u8) -> bool {
        match self {
            Reads::Byte(wanted) => byte == wanted,
            Reads::NameByte => is_of_name(byte),
            Reads::AnyByte => true,
        }
    }
}

/// A fragment of the automaton.
#[derive(Clone, Copy)]
struct Part {
    /// Its first states.
    first: States,
    /// Its last states.
    last: States,
    /// Whether it matches the empty text.
    may_be_empty: bool,
}

impl Part {
    const EMPTY: Part = Part { first: States::NONE, last: States::NONE, may_be_empty: true };
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    states: Vec<State>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn starts_with(&self, wanted: &[u8]) -> bool {
        self.text.get(self.at..).is_some_and(|rest| rest.starts_with(wanted))
    }

    fn alternatives(&mut self, text: &str, depth: usize) -> Result<Part, PatternError> {
        let mut all = self.sequence(text, depth)?;
        while self.peek() == Some(b'|') {
            self.at += 1;
            let other = self.sequence(text, depth)?;
            all.first.add(&other.first);
            all.last.add(&other.last);
            all.may_be_empty |= other.may_be_empty;
        }
        Ok(all)
    }

    fn sequence(&mut self, text: &str, depth: usize) -> Result<Part, PatternError> {
        let start = self.at;
        let mut whole = Part::EMPTY;
        if self.starts_with(b"..") {
            self.at += 2;
            whole = self.invoked()?;
        }
        let items = self.at;
        while let Some(byte) = self.peek() {
            if matches!(byte, b'|' | b')') {
                break;
            }
            let item = self.item(text, byte, depth)?;
            whole = self.then(whole, item);
        }
        if self.at == items { Err(PatternError::Empty { at: start }) } else { Ok(whole) }
    }

    fn item(&mut self, text: &str, byte: u8, depth: usize) -> Result<Part, PatternError> {
        let at = self.at;
        let mut part = match byte {
            b'(' => self.group(text, depth)?,
            b'*' => {
                let reads = if self.starts_with(b"**") { Reads::AnyByte } else { Reads::NameByte };
                self.at += if matches!(reads, Reads::AnyByte) { 2 } else { 1 };
                let part = self.run(reads)?;
                if self.peek() == Some(b'?') {
                    return Err(PatternError::NothingToMiss { at: self.at });
                }
                return Ok(part);
            }
            b' ' | b'+' => return self.joint(),
            b'?' => return Err(PatternError::NothingToMiss { at }),
            b'.' if self.starts_with(b"..") => return Err(PatternError::DotsInside { at }),
            _ => {
                // Only whole characters were skipped, so one begins here.
                let character = text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or('\u{fffd}');
                if !is_plain(character) {
                    return Err(PatternError::BadCharacter { at, character });
                }
                self.at += 1;
                self.state(Reads::Byte(byte))?
            }
        };
        if self.peek() == Some(b'?') {
            self.at += 1;
            part.may_be_empty = true;
            if self.peek() == Some(b'?') {
                return Err(PatternError::NothingToMiss { at: self.at });
            }
        }
        Ok(part)
    }

    fn group(&mut self, text: &str, depth: usize) -> Result<Part, PatternError> {
        let at = self.at;
        if depth == DEPTH_LIMIT {
            return Err(PatternError::TooDeep { at });
        }
        self.at += 1;
        let part = self.alternatives(text, depth + 1)?;
        if self.peek() != Some(b')') {
            return Err(PatternError::Unbalanced { at });
        }
        self.at += 1;
        Ok(part)
    }

    fn joint(&mut self) -> Result<Part, PatternError> {
        if !self.starts_with(JOINT) {
            return Err(PatternError::BadJoint { at: self.at });
        }
        self.at += JOINT.len();
        if self.peek() == Some(b'?') {
            return Err(PatternError::NothingToMiss { at: self.at });
        }
        self.literally(JOINT)
    }

    fn literally(&mut self, bytes: &[u8]) -> Result<Part, PatternError> {
        let mut whole = Part::EMPTY;
        for &byte in bytes {
            let read = self.state(Reads::Byte(byte))?;
            whole = self.then(whole, read);
        }
        Ok(whole)
    }

    /// `(** + )?`
    fn invoked(&mut self) -> Result<Part, PatternError> {
        let any = self.run(Reads::AnyByte)?;
        let joint = self.literally(JOINT)?;
        Ok(Part { may_be_empty: true, ..self.then(any, joint) })
    }

    /// Any number of bytes of a class.
    fn run(&mut self, reads: Reads) -> Result<Part, PatternError> {
        let part = self.state(reads)?;
        for number in part.last.each() {
            self.states[usize::from(number)].next.add(&part.first);
        }
        Ok(Part { may_be_empty: true, ..part })
    }

    fn state(&mut self, reads: Reads) -> Result<Part, PatternError> {
        let number = u8::try_from(self.states.len()).map_err(|_| PatternError::TooLong)?;
        self.states.push(State { reads, next: States::NONE });
        let only = States::only(number);
        Ok(Part { first: only, last: only, may_be_empty: false })
    }

    fn then(&mut self, before: Part, after: Part) -> Part {
        for number in before.last.each() {
            self.states[usize::from(number)].next.add(&after.first);
        }
        let mut joined = Part { may_be_empty: before.may_be_empty && after.may_be_empty, ..before };
        if before.may_be_empty {
            joined.first.add(&after.first);
        }
        if after.may_be_empty {
            joined.last.add(&after.last);
        } else {
            joined.last = after.last;
        }
        joined
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

/// Whether the character stands for itself.
fn is_plain(character: char) -> bool {
    u8::try_from(character).is_ok_and(is_of_name) || matches!(character, '.' | '@')
}

impl PatternError {
    /// The position of the error, if it has one.
    pub fn at(self) -> Option<usize> {
        match self {
            PatternError::Empty { at }
            | PatternError::BadCharacter { at, .. }
            | PatternError::BadJoint { at }
            | PatternError::Unbalanced { at }
            | PatternError::NothingToMiss { at }
            | PatternError::DotsInside { at }
            | PatternError::TooDeep { at } => Some(at),
            PatternError::TooLong => None,
        }
    }

    /// The remedy.
    pub fn remedy(self) -> &'static str {
        match self {
            PatternError::Empty { .. } => {
                "write `program.publisher`, `..program.publisher` for any invocation path, or `**` for any principal"
            }
            PatternError::BadCharacter { .. } => {
                "use lowercase letters, digits, `-`, `.`, `@` and ` + `, and the operators `*` `|` `(` `)` `?`"
            }
            PatternError::BadJoint { .. } => "separate links with ` + `, with one space on each side",
            PatternError::Unbalanced { .. } => "balance each `(` with a `)`",
            PatternError::NothingToMiss { .. } => {
                "put `?` after a character or a group; `*` already matches the empty string"
            }
            PatternError::DotsInside { .. } => {
                "use `..` only at the start of the pattern, a group or an alternative; use `**` elsewhere"
            }
            PatternError::TooDeep { .. } => "reduce the nesting of groups",
            PatternError::TooLong => "split it into several patterns",
        }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::Empty { at: 0 } => formatter.write_str("the pattern names no principal"),
            PatternError::Empty { at } => write!(formatter, "empty alternative or group at byte {at} of the pattern"),
            PatternError::BadCharacter { at, character } => {
                write!(formatter, "unexpected `{}` at byte {at} of the pattern", character.escape_debug())
            }
            PatternError::BadJoint { at } => {
                write!(formatter, "malformed ` + ` at byte {at} of the pattern")
            }
            PatternError::Unbalanced { at } => {
                write!(formatter, "unbalanced parenthesis at byte {at} of the pattern")
            }
            PatternError::NothingToMiss { at } => {
                write!(formatter, "`?` at byte {at} of the pattern follows no character or group")
            }
            PatternError::DotsInside { at } => write!(formatter, "misplaced `..` at byte {at} of the pattern"),
            PatternError::TooDeep { at } => {
                write!(formatter, "groups nested more than {DEPTH_LIMIT} deep at byte {at} of the pattern")
            }
            PatternError::TooLong => {
                write!(formatter, "the pattern exceeds {PATTERN_BYTES} bytes or {STATE_LIMIT} states")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::parse(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}")).matches(text)
    }

    #[test]
    fn patterns_stand_for_what_they_say() {
        for (pattern, text, expected) in [
            ("cat.singularity", "cat.singularity", true),
            ("cat.singularity", "shell.singularity + cat.singularity", false),
            ("..cat.singularity", "cat.singularity", true),
            ("..cat.singularity", "shell.singularity + cat.singularity", true),
            ("..cat.singularity", "login.singularity@alice + shell.singularity + cat.singularity", true),
            ("..cat.singularity", "concat.singularity", false),
            ("..cat.singularity", "cat.singularity + shell.singularity", false),
            ("..cat.singularity", "cat.singularity.evil", false),
            ("*.singularity", "cat.singularity", true),
            ("*.singularity", "cat.singularity.evil", false),
            ("*.singularity", "shell.singularity + cat.singularity", false),
            ("*.singularity", "login.singularity@alice", false),
            ("**", "anything at all + with more", true),
            ("**", "", false),
            ("*", "cat", true),
            ("*", "cat.singularity", false),
            ("** + cat.singularity", "cat.singularity", false),
            ("** + cat.singularity", "a.b + cat.singularity", true),
            ("(** + )?cat.singularity", "cat.singularity", true),
            ("login.singularity@(alice|bob) + **", "login.singularity@bob + shell.singularity", true),
            ("login.singularity@(alice|bob) + **", "login.singularity@eve + shell.singularity", false),
            ("login.singularity@alice + shell.singularity(** + )?*.singularity", "x", false),
            ("a|b", "a", true),
            ("a|b", "b", true),
            ("a|b", "ab", false),
            ("..a.b|c.d", "x.y + a.b", true),
            ("..a.b|c.d", "x.y + c.d", false),
            ("..(a.b|c.d)", "x.y + c.d", true),
            ("..a.b|..c.d", "x.y + c.d", true),
            ("cats?.x", "cat.x", true),
            ("cats?.x", "cats.x", true),
            ("cats?.x", "catss.x", false),
            ("(ab)?c", "c", true),
            ("(ab)?c", "abc", true),
            ("(ab)?c", "bc", false),
            ("*a*b", "xxaxxbxxab", true),
            ("a*", "b", false),
            ("((a|b)c)?d", "bcd", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_last_link_may_be_matched_however_it_was_invoked() {
        for (pattern, link, expected) in [
            ("cat.x", "cat.x", true),
            ("..cat.x", "cat.x", true),
            ("shell.x + cat.x", "cat.x", true),
            ("shell.x + cat.x", "shell.x", false),
            ("(login.x@* + )?shell.x + *.x", "cat.x", true),
            ("(login.x@* + )?shell.x + *.x", "cat.y", false),
            ("*.x", "cat.x", true),
            ("**.x", "cat.x", true),
            ("**.x", "cat.y", false),
            ("a.x + b.x|c.x", "b.x", true),
            ("a.x + b.x|c.x", "a.x", false),
            ("..web-*.x", "web.x", false),
        ] {
            assert_eq!(Pattern::parse(pattern).unwrap().may_match_last_link(link), expected, "{pattern} {link}");
        }
    }

    #[test]
    fn each_wrong_pattern_has_its_own_reason_and_place() {
        let deep = "(".repeat(17);
        let long = "a".repeat(257);
        for (text, expected) in [
            ("", PatternError::Empty { at: 0 }),
            ("..", PatternError::Empty { at: 0 }),
            ("a|", PatternError::Empty { at: 2 }),
            ("|a", PatternError::Empty { at: 0 }),
            ("a()", PatternError::Empty { at: 2 }),
            ("a{b}", PatternError::BadCharacter { at: 1, character: '{' }),
            ("a\u{e9}", PatternError::BadCharacter { at: 1, character: '\u{e9}' }),
            ("Cat.singularity", PatternError::BadCharacter { at: 0, character: 'C' }),
            ("a\nb", PatternError::BadCharacter { at: 1, character: '\n' }),
            ("the shell", PatternError::BadJoint { at: 3 }),
            ("a+b", PatternError::BadJoint { at: 1 }),
            ("a +b", PatternError::BadJoint { at: 1 }),
            (" a", PatternError::BadJoint { at: 0 }),
            ("a + ?b", PatternError::NothingToMiss { at: 4 }),
            ("(a", PatternError::Unbalanced { at: 0 }),
            ("a)", PatternError::Unbalanced { at: 1 }),
            ("?a", PatternError::NothingToMiss { at: 0 }),
            ("a??", PatternError::NothingToMiss { at: 2 }),
            ("*?", PatternError::NothingToMiss { at: 1 }),
            ("a..b", PatternError::DotsInside { at: 1 }),
            (&deep, PatternError::TooDeep { at: 16 }),
            (&long, PatternError::TooLong),
        ] {
            let found = Pattern::parse(text).unwrap_err();
            assert_eq!(found, expected, "{text}");
            assert!(!found.to_string().is_empty() && !found.remedy().is_empty());
        }
        assert!(Pattern::parse(&"a".repeat(STATE_LIMIT)).is_ok());
        assert_eq!(Pattern::parse(&"()".repeat(PATTERN_BYTES)).unwrap_err(), PatternError::TooLong);
    }

    #[test]
    fn a_principal_as_it_is_matches_itself_alone() {
        let principal = "login.singularity@alice + shell.singularity";
        assert!(Pattern::exactly(principal).unwrap().matches(principal));
        let longest = "a".repeat(STATE_LIMIT);
        assert!(Pattern::exactly(&longest).unwrap().matches(&longest));
        assert_eq!(Pattern::exactly(&"a".repeat(STATE_LIMIT + 1)), Err(PatternError::TooLong));
        assert_eq!(Pattern::exactly("**"), Err(PatternError::BadCharacter { at: 0, character: '*' }));
    }
}

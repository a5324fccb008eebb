//! Cores in text, which may hold anything else: output of a console, a captured serial line.
//!
//! The service `core-writer` may write to the debug output, which prefixes each line with its name. Deliberately not
//! here: trust. Whoever writes to the same output can write a core, too.

/// First words of the first line of a core, and of its last.
const BEGIN: &str = "core of process ";
const END: &str = "end of core of process ";
/// Beginning of every line between.
const INDENT: &str = "  ";

/// A code address of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// Offset in the image.
    pub offset: u64,
    /// Whether it is the instruction that faulted, rather than a return address.
    pub is_fault: bool,
}

/// A line of a core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// For people, as it is.
    Text(String),
    /// A code address.
    Code(Code),
}

/// The core of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Core {
    /// Process id.
    pub process: u64,
    /// Program name.
    pub program: String,
    /// Beginning of the identity of its package, as hexadecimal digits.
    pub identity: String,
    /// Its lines.
    pub lines: Vec<Line>,
    /// Whether it has an end.
    pub is_whole: bool,
}

/// Returns the cores in a text. Lines of others between those of a core are skipped.
pub fn cores(text: &str) -> Vec<Core> {
    let mut cores: Vec<Core> = Vec::new();
    let mut open: Option<&str> = None;
    for line in text.lines() {
        let line = line.trim_end_matches('\r');
        if let Some((prefix, core)) = begin(line) {
            cores.push(core);
            open = Some(prefix);
            continue;
        }
        let (Some(prefix), Some(core)) = (open, cores.last_mut()) else { continue };
        let Some(line) = line.strip_prefix(prefix) else { continue };
        if line.strip_prefix(END).is_some_and(|id| id.parse() == Ok(core.process)) {
            core.is_whole = true;
            open = None;
        } else if line.starts_with(INDENT) {
            core.lines.push(code(line).map_or_else(|| Line::Text(line.into()), Line::Code));
        }
    }
    cores
}

/// Parses a first line; returns what stands before it, too.
fn begin(line: &str) -> Option<(&str, Core)> {
    let at = line.find(BEGIN)?;
    let (prefix, rest) = line.split_at(at);
    // Also the beginning of the last line, but for what is before.
    if prefix.ends_with("end of ") {
        return None;
    }
    let (process, rest) = rest[BEGIN.len()..].split_once(": ")?;
    let (program, identity) = rest.split_once(' ')?;
    let is_identity = identity.len() == 32 && identity.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (program, identity) = (program.to_string(), identity.to_string());
    let core = Core { process: process.parse().ok()?, program, identity, lines: Vec::new(), is_whole: false };
    is_identity.then_some((prefix, core))
}

/// Parses a line such as `  code 0x1a2b +0x48` or `  code 0x1a2b fault`.
fn code(line: &str) -> Option<Code> {
    let (offset, place) = line.strip_prefix("  code 0x")?.split_once(' ')?;
    Some(Code { offset: u64::from_str_radix(offset, 16).ok()?, is_fault: place == "fault" })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_core_is_found_among_other_lines() {
        let text = format!(
            "boot\r\nlog: core of process 9: cat {IDENTITY}\r\nlog:   ended at 1.500 s: end of core of process 9\r\n\
             noise\nlog:   code 0x1a2b fault\nlog:   code 0x30 +0x48\nlog: end of core of process 9\nlog:   code 0x99 +0x0\n\
             core of process 11: a-b {IDENTITY}\n  code 0xzz +0x1\nshell: x\n"
        );
        let found = cores(&text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].process, found[0].program.as_str(), found[0].is_whole), (9, "cat", true));
        assert_eq!(
            found[0].lines,
            [
                Line::Text("  ended at 1.500 s: end of core of process 9".into()),
                Line::Code(Code { offset: 0x1a2b, is_fault: true }),
                Line::Code(Code { offset: 0x30, is_fault: false }),
            ]
        );
        assert_eq!((found[1].process, found[1].is_whole), (11, false));
        assert_eq!(found[1].lines, [Line::Text("  code 0xzz +0x1".into())]);
    }

    #[test]
    fn what_only_looks_like_a_core_is_none() {
        for line in ["core of process x: cat 00", "core of process 1: cat 0123", "end of core of process 1: c d"] {
            assert_eq!(cores(line), []);
        }
    }
}

//! The addresses of the host process's own code.
//!
//! A fault at an instruction address outside of it, while a SIP's thread runs, is a wild jump of that SIP. Deliberately
//! not here: the image arena, which the kernel tracks.

use std::fs;
use std::ops::Range;
use std::sync::OnceLock;

static TEXT: OnceLock<Vec<Range<usize>>> = OnceLock::new();

/// Reads the process's executable mappings, once, before any image is mapped. Libraries loaded later
/// would be missing; the machine loads none.
pub fn record() {
    TEXT.get_or_init(|| parse(&fs::read_to_string("/proc/self/maps").unwrap_or_default()));
}

/// Returns whether the address lies in the host process's code. If the host's list could not be read, every
/// address does: a wild jump then counts as a fault of the kernel, which is the conservative answer.
/// Async-signal-safe.
pub fn contains(address: usize) -> bool {
    match TEXT.get() {
        Some(ranges) if !ranges.is_empty() => ranges.iter().any(|range| range.contains(&address)),
        _ => true,
    }
}

/// Parses the executable ranges of a listing in the format of proc_pid_maps(5). The `[vsyscall]`
/// page is left out: current processes do not call it.
fn parse(listing: &str) -> Vec<Range<usize>> {
    listing.lines().filter_map(executable_range).collect()
}

fn executable_range(line: &str) -> Option<Range<usize>> {
    let mut fields = line.split_whitespace();
    let (first, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    if permissions.as_bytes().get(2) != Some(&b'x') || line.ends_with("[vsyscall]") {
        return None;
    }
    Some(usize::from_str_radix(first, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_executable_lines_only() {
        let listing = "1000-2000 r--p 00000000 fe:00 1 /bin/x\n2000-5000 r-xp 00001000 fe:00 1 /bin/x\n\
                       ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\nnonsense\n";
        assert_eq!(parse(listing), vec![Range { start: 0x2000, end: 0x5000 }]);
    }

    #[test]
    fn own_code_is_found() {
        record();
        assert!(contains(own_code_is_found as fn() as usize));
        assert!(!contains(0x1234));
    }
}

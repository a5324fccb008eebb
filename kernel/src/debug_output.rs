//! Lines of debug output, each with its author, so that no text can pass for another's line.
//!
//! Deliberately not here: their destination, which is up to the machine.

use abi::Printable;
use alloc::string::{String, ToString};
use core::fmt::{Arguments, Write};

use crate::machine::machine;

/// Writes a line of the kernel.
pub fn line(text: Arguments<'_>) {
    machine().debug_write((of_kernel(&text.to_string()) + "\n").as_bytes());
}

/// Writes text of a program: each of its lines begins with the program's name, which contains no blank and no colon.
pub fn lines_of(author: &str, text: &[u8]) {
    machine().debug_write(of_program(author, text).as_bytes());
}

/// Maximum lines per call; further line ends are escaped like other control characters.
const LINES_MAX: usize = 32;

fn of_kernel(text: &str) -> String {
    Printable(text.as_bytes()).to_string()
}

fn of_program(author: &str, text: &[u8]) -> String {
    let mut lines = String::new();
    for line in text.strip_suffix(b"\n").unwrap_or(text).splitn(LINES_MAX, |&byte| byte == b'\n') {
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "{author}: {}", Printable(line));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_author() {
        assert_eq!(of_program("cat", b"one\ntwo\n"), "cat: one\ncat: two\n");
        assert_eq!(of_program("cat", b"no end"), "cat: no end\n");
        assert_eq!(of_program("cat", b""), "cat: \n");
        assert_eq!(of_program("cat", b"\n\n"), "cat: \ncat: \n");
    }

    #[test]
    fn a_call_makes_so_many_lines_at_most() {
        let lines = of_program("cat", &[b'\n'; 500]);
        assert_eq!(lines.lines().count(), LINES_MAX);
        assert!(lines.ends_with("\\n\n"));
    }

    #[test]
    fn a_forged_line_is_seen_as_what_it_is() {
        let forged = b"done\r\nthe system's root exited\n\x1b[1A\x1b[2Kshell: \xe2\x80\xa8answer: hello\xff\n";
        let expected =
            "evil: done\\r\nevil: the system's root exited\nevil: \\x1b[1A\\x1b[2Kshell: \\u{2028}answer: hello\\xff\n";
        assert_eq!(of_program("evil", forged), expected);
        assert_eq!(of_kernel("device `x\ny`"), "device `x\\ny`");
    }
}

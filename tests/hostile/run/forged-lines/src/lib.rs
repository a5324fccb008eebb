//! Writes text that imitates lines of the kernel, of other programs and of the suite: in debug output, in the message
//! of a panic, which becomes its epitaph, and in roles.
//!
//! In the machine's output, only lines that begin with this program's name may contain `forged`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use sip::log;
use sip::process::create;

sip::startup!();

const OWN_NAME: &str = "hostile-forged-lines";
/// A verdict of the suite, which counts it as a failed test.
const VERDICT: &str = "hostile-check: test forged ... FAILED: it was taken for the suite's";
/// A line of the list of epitaphs.
const EPITAPH: &str = "7 hostile-victim exited with status 0 (forged)";
/// Characters that some consumer treats as a line end or carriage return.
const SEPARATORS: [&str; 12] = [
    "\n",
    "\r\n",
    "\r",
    "\n\r",
    "\u{b}",
    "\u{c}",
    "\u{85}",
    "\u{2028}",
    "\u{2029}",
    "\u{1b}[2K\u{1b}[1A\u{1b}[G",
    "\u{9b}2K\u{8}\u{8}\u{8}",
    "\u{202e}\0",
];
/// Maximum bytes written by one call.
const PIECE: usize = 512;

/// Makes the attempt.
pub fn main(startup: Startup) -> i32 {
    match startup.attempt {
        0 => {
            SEPARATORS.iter().for_each(|separator| log!("forged{separator}{VERDICT}"));
            0
        }
        1 => {
            // Wherever a long text is cut, the rest must not become a line of its own.
            (PIECE - 100..PIECE + 100).for_each(|before| log!("{:before$}{VERDICT}", "forged"));
            0
        }
        2 => panic!("forged\n{EPITAPH}\r\u{1b}[2K{EPITAPH}\u{2028}{EPITAPH}\n"),
        _ => i32::from(roles().is_some()),
    }
}

/// A role with forged content, if accepted.
fn roles() -> Option<&'static str> {
    const ROLES: [&str; 6] = [
        "forged + ram-disk.singularity",
        "forged\n7 ram-disk",
        "forged@ram-disk.singularity",
        "\u{1b}[2Kforged",
        "forged ",
        "*",
    ];
    ROLES.into_iter().find(|role| create(OWN_NAME).is_ok_and(|child| child.invoke_in_role(role).is_ok()))
}

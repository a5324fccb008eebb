//! The audit ring: what was refused, for a person to read at `/status/audit`.
//!
//! Whoever refuses something to a principal notes it. Deliberately not here: what is refused.

use alloc::string::String;

use abi::limits;

use crate::Status;
use crate::{diagnostics, raw, thread_block};

/// Notes that this process refused `principal` the right on an object, by a rule. Needs the `audit` permission; a
/// process without it cannot note anything, and nothing else comes of that.
pub fn refused(principal: &str, right: &str, object: &str, rule: &str) {
    // What is refused stays refused, noted or not.
    let _ = note(&abi::audit::refusal(principal, right, object, rule));
}

/// Notes a line of another form. Needs the `audit` permission.
pub fn note(text: &str) -> Result<(), Status> {
    let cut = text.floor_char_boundary(limits::AUDIT_TEXT_BYTES.min(text.len()));
    raw::value::audit_note(thread_block::put_bytes(&text.as_bytes()[..cut])?).map(drop)
}

/// The lines from number `from` on, oldest first, and the number of the next. Needs the `diagnostics` permission.
pub fn read(from: u64) -> Result<(String, u64), Status> {
    diagnostics::audit_lines(from)
}

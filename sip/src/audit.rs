//! The audit ring: refusals by principal, for administrators, at `/status/audit`.
//!
//! A server that denies something to a principal records it here. Deliberately not here: the decision to deny.

use alloc::string::String;

use abi::limits;

use crate::Status;
use crate::{diagnostics, raw, thread_block};

/// Records that this process denied `principal` the right on an object, by a rule. Needs the `audit` permission;
/// without it nothing is recorded, and no error is returned.
pub fn refused(principal: &str, right: &str, object: &str, rule: &str) {
    // The refusal stands, recorded or not.
    let _ = note(&abi::audit::refusal(principal, right, object, rule));
}

/// Records a line of another form, cut at [`limits::AUDIT_TEXT_BYTES`]. Needs the `audit` permission.
pub fn note(text: &str) -> Result<(), Status> {
    let cut = text.floor_char_boundary(limits::AUDIT_TEXT_BYTES.min(text.len()));
    raw::value::audit_note(thread_block::put_bytes(&text.as_bytes()[..cut])?).map(drop)
}

/// Returns the lines from number `from` on, oldest first, and the number of the next. Needs the `diagnostics` permission.
pub fn read(from: u64) -> Result<(String, u64), Status> {
    diagnostics::audit_lines(from)
}

//! Pages that the server generates itself.

use alloc::string::String;
use core::fmt::Write;

use crate::answer::reason;
use crate::text::push_escaped;

/// Renders the page for a status. `explanation` is for people; may be empty.
pub fn status(status: u16, explanation: &str) -> String {
    let mut page = String::with_capacity(256);
    let words = reason(status);
    // Writing to a string does not fail.
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{status} {words}</title></head>\n\
         <body><h1>{status} {words}</h1>\n"
    );
    if !explanation.is_empty() {
        page.push_str("<p>");
        push_escaped(&mut page, explanation);
        page.push_str(".</p>\n");
    }
    page.push_str("</body></html>\n");
    page
}

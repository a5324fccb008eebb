//! The page that lists a folder.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use crate::date;
use crate::text::{push_escaped, push_percent_encoded};

/// A folder entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Its name.
    pub name: String,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Size of the content in bytes, if known.
    pub size_bytes: Option<u64>,
    /// Last modification in seconds since 1970-01-01 00:00 UTC, if known.
    pub modified_s: Option<i64>,
}

/// Renders the page of the folder at `path` (decoded, with `/` at both ends). `left_out`: some names are missing.
pub fn page(path: &str, mut names: Vec<Name>, left_out: bool) -> String {
    names.sort_by(|left, right| (!left.is_folder, &left.name).cmp(&(!right.is_folder, &right.name)));
    let mut page = String::with_capacity(512 + names.len() * 128);
    page.push_str("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
    push_escaped(&mut page, path);
    page.push_str(
        "</title>\n<style>td{padding:0 1em 0 0;vertical-align:top}\
         td:first-child{overflow-wrap:anywhere}td+td{white-space:nowrap;text-align:right}</style></head>\n<body><h1>",
    );
    push_escaped(&mut page, path);
    page.push_str("</h1>\n<table>\n");
    if path != "/" {
        page.push_str("<tr><td><a href=\"../\">../</a></td></tr>\n");
    }
    for name in &names {
        row(&mut page, name);
    }
    page.push_str("</table>\n");
    if left_out {
        page.push_str("<p>There are more names than are shown.</p>\n");
    }
    page.push_str("</body></html>\n");
    page
}

fn row(page: &mut String, name: &Name) {
    let slash = if name.is_folder { "/" } else { "" };
    // Without the dot in front, a name with a colon would read as a scheme.
    page.push_str("<tr><td><a href=\"./");
    push_percent_encoded(page, name.name.as_bytes());
    page.push_str(slash);
    page.push_str("\">");
    push_escaped(page, &name.name);
    page.push_str(slash);
    page.push_str("</a></td><td>");
    if let Some(size) = name.size_bytes.filter(|_| !name.is_folder) {
        // Writing to a string does not fail.
        let _ = write!(page, "{size}");
    }
    page.push_str("</td><td>");
    if let Some(modified) = name.modified_s {
        page.extend(date::listing(modified).iter().map(|byte| char::from(*byte)));
    }
    page.push_str("</td></tr>\n");
}

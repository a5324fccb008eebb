//! Posted forms, and their log lines.

use alloc::format;
use alloc::string::String;
use core::fmt;

use web_application::message::{Form, FormError, pairs};

/// Maximum size of a form in bytes.
pub const MAX_FORM_BYTES: usize = 4096;

/// Length of a log line in bytes, including its end. All lines have the same length, so that their number follows
/// from the size of the log.
pub const LINE_BYTES: usize = 139;

/// Length in bytes of the file name in a line.
const NAME_BYTES: usize = 60;

/// A posted form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// Prefix of the file name, before the folder.
    pub url_root: String,
    /// Number of the file's folder.
    pub folder: u32,
    /// Size class of the file, 0 to 3.
    pub class: u32,
    /// Number of the file in its class, 0 to 8.
    pub number: u32,
    /// Number that the client chose for itself.
    pub client: u32,
}

/// Why a form was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostError {
    /// It cannot be parsed.
    Form(FormError),
    /// A field is missing.
    Missing(&'static str),
    /// A field is not a number, or too large.
    Bad(&'static str),
}

impl fmt::Display for PostError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PostError::Form(error) => write!(formatter, "the form cannot be read: {error}"),
            PostError::Missing(name) => write!(formatter, "the field `{name}` is missing"),
            PostError::Bad(name) => write!(formatter, "the field `{name}` has no value that it can have"),
        }
    }
}

impl Posted {
    /// Parses a form.
    pub fn parse(body: &[u8]) -> Result<Posted, PostError> {
        let form = pairs(body).map_err(PostError::Form)?;
        let url_root = form.value("urlroot").ok_or(PostError::Missing("urlroot"))?;
        if url_root.len() > NAME_BYTES || !url_root.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(PostError::Bad("urlroot"));
        }
        Ok(Posted {
            url_root: String::from(url_root),
            folder: number(&form, "dir", 99_999)?,
            class: number(&form, "class", 3)?,
            number: number(&form, "num", 8)?,
            client: number(&form, "client", 2_000_000_000)?,
        })
    }

    /// Path of the requested file, relative to the root of the files.
    pub fn file(&self) -> String {
        format!("dir{:05}/class{}_{}", self.folder, self.class, self.number)
    }

    /// Formats the log line: number, second, process, folder, class, file, client, file name, process, cookie.
    pub fn line(&self, count: u64, second: u64, process: u64, cookie: u32) -> String {
        let Posted { url_root, folder, class, number, client } = self;
        let slash = if url_root.ends_with('/') { "" } else { "/" };
        let name = format!("{url_root}{slash}{}", self.file());
        // Numbers that exceed their columns keep the low digits.
        let (count, second, process) = (short(count), short(second), short(process));
        let line = format!(
            "{count:10} {second:10} {process:10} {folder:5} {class:2} {number:2} {client:10} {name:<NAME_BYTES$.NAME_BYTES$} \
             {process:10} {cookie:10}\n"
        );
        debug_assert_eq!(line.len(), LINE_BYTES);
        line
    }
}

fn number(form: &Form, name: &'static str, most: u32) -> Result<u32, PostError> {
    let number = form.number(name, most.into()).map_err(|_| PostError::Bad(name))?;
    number.and_then(|number| u32::try_from(number).ok()).ok_or(PostError::Missing(name))
}

fn short(number: u64) -> u64 {
    number % 10_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_becomes_a_line() {
        let posted = Posted::parse(b"urlroot=%2Ffiles&dir=00123&class=2&num=3&client=45").expect("a form");
        assert_eq!(posted.file(), "dir00123/class2_3");
        let line = posted.line(7, 1_795_230_398, 12, 99);
        let name = format!("{:<60}", "/files/dir00123/class2_3");
        assert_eq!(
            line,
            format!("         7 1795230398         12   123  2  3         45 {name}         12         99\n")
        );
    }

    #[test]
    fn all_lines_are_as_long() {
        let long = "x".repeat(NAME_BYTES);
        let form = format!("urlroot={long}&dir=99999&class=3&num=8&client=2000000000");
        let posted = Posted::parse(form.as_bytes()).expect("a form");
        for line in [posted.line(u64::MAX, u64::MAX, u64::MAX, u32::MAX), posted.line(0, 0, 0, 0)] {
            assert_eq!(line.len(), LINE_BYTES, "{line}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for (form, error) in [
            ("", PostError::Missing("urlroot")),
            ("urlroot=/", PostError::Missing("dir")),
            ("urlroot=/&dir=1&class=1&num=1", PostError::Missing("client")),
            ("urlroot=/&dir=x&class=1&num=1&client=1", PostError::Bad("dir")),
            ("urlroot=/&dir=100000&class=1&num=1&client=1", PostError::Bad("dir")),
            ("urlroot=/&dir=1&class=4&num=1&client=1", PostError::Bad("class")),
            ("urlroot=/&dir=1&class=-1&num=1&client=1", PostError::Bad("class")),
            ("urlroot=/&dir=1&class=1&num=9&client=1", PostError::Bad("num")),
            ("urlroot=a%0Ab&dir=1&class=1&num=1&client=1", PostError::Bad("urlroot")),
            ("urlroot=%C3%A4&dir=1&class=1&num=1&client=1", PostError::Bad("urlroot")),
            ("urlroot=%", PostError::Form(FormError::BadPercent)),
        ] {
            assert_eq!(Posted::parse(form.as_bytes()), Err(error), "{form}");
        }
        let long = format!("urlroot={}&dir=1&class=1&num=1&client=1", "x".repeat(NAME_BYTES + 1));
        assert_eq!(Posted::parse(long.as_bytes()), Err(PostError::Bad("urlroot")));
    }
}

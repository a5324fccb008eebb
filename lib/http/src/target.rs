//! Converts the path of a request to the path of a file.

use alloc::string::String;

use crate::text::push_percent_encoded;

/// A path that names nothing that could be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPath;

/// Decodes a path as sent (RFC 3986, section 2.1) into `into`, which is cleared first: parts separated by single
/// slashes, with a leading one; without `.` and `..`; with a trailing `/` if it had one, or ended in such a part. A
/// path above the root, not in UTF-8 or with control characters is rejected. An escaped `/` counts as one.
pub fn decode(path: &str, into: &mut String) -> Result<(), BadPath> {
    into.clear();
    if !path.starts_with('/') {
        return Err(BadPath);
    }
    if is_plain(path.as_bytes()) {
        into.push_str(path);
        return Ok(());
    }
    let mut bytes = core::mem::take(into).into_bytes();
    let decoded = unescape(path.as_bytes(), &mut bytes);
    match String::from_utf8(bytes) {
        Ok(text) => *into = text,
        Err(_) => return Err(BadPath),
    }
    decoded?;
    flatten(into)
}

/// Returns whether decoding would change nothing.
fn is_plain(path: &[u8]) -> bool {
    let mut before = 0;
    path.iter().all(|&byte| {
        let follows_slash = before == b'/' && matches!(byte, b'/' | b'.');
        before = byte;
        (0x20..0x7f).contains(&byte) && byte != b'%' && !follows_slash
    })
}

fn unescape(path: &[u8], into: &mut alloc::vec::Vec<u8>) -> Result<(), BadPath> {
    let mut rest = path;
    while let [byte, after @ ..] = rest {
        let (byte, after) = match (byte, after) {
            (b'%', [high, low, after @ ..]) => (hex(*high)? << 4 | hex(*low)?, after),
            (b'%', _) => return Err(BadPath),
            _ => (*byte, after),
        };
        if byte < 0x20 || byte == 0x7f {
            return Err(BadPath);
        }
        into.push(byte);
        rest = after;
    }
    Ok(())
}

fn hex(digit: u8) -> Result<u8, BadPath> {
    char::from(digit).to_digit(16).map(|value| value as u8).ok_or(BadPath)
}

/// Removes empty parts, `.` and `..`.
fn flatten(path: &mut String) -> Result<(), BadPath> {
    let mut flat = String::with_capacity(path.len());
    let mut ends_in_folder = false;
    for part in path[1..].split('/') {
        ends_in_folder = true;
        match part {
            "" | "." => {}
            ".." => flat.truncate(flat.rfind('/').ok_or(BadPath)?),
            name => {
                flat.push('/');
                flat.push_str(name);
                ends_in_folder = false;
            }
        }
    }
    if ends_in_folder {
        flat.push('/');
    }
    *path = flat;
    Ok(())
}

/// Returns whether a decoded path has a part that begins with a dot: such names are not served, except `.well-known`
/// in the root (RFC 8615).
pub fn is_hidden(path: &str) -> bool {
    let mut parts = path.split('/').skip(1);
    let first_is_hidden = parts.next().is_some_and(|first| first.starts_with('.') && first != ".well-known");
    first_is_hidden || parts.any(|part| part.starts_with('.'))
}

/// Appends a decoded path, percent-encoded for a head or page.
pub fn encode(path: &str, into: &mut String) {
    push_percent_encoded(into, path.as_bytes());
}

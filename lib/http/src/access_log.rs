//! Lines of an access log, in the combined log format.

use alloc::vec::Vec;

/// Fields of an access log line.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The peer's address.
    pub address: &'a str,
    /// Time of the response, as [`date::log`](crate::date::log) writes it.
    pub date: &'a [u8],
    /// Method, target and minor version, if the request could be parsed.
    pub request: Option<(&'a str, &'a str, u8)>,
    /// The response status.
    pub status: u16,
    /// Bytes of content sent.
    pub content_bytes: u64,
    /// The `Referer` field.
    pub referer: Option<&'a [u8]>,
    /// The `User-Agent` field.
    pub user_agent: Option<&'a [u8]>,
}

/// Appends a line.
pub fn push(log: &mut Vec<u8>, line: &Line<'_>) {
    log.extend_from_slice(line.address.as_bytes());
    log.extend_from_slice(b" - - [");
    log.extend_from_slice(line.date);
    log.extend_from_slice(b"] \"");
    match line.request {
        Some((method, target, minor_version)) => {
            push_escaped(log, method.as_bytes());
            log.push(b' ');
            push_escaped(log, target.as_bytes());
            log.extend_from_slice(if minor_version == 0 { b" HTTP/1.0" } else { b" HTTP/1.1" });
        }
        None => log.push(b'-'),
    }
    log.extend_from_slice(b"\" ");
    push_number(log, line.status.into());
    log.push(b' ');
    push_number(log, line.content_bytes);
    for field in [line.referer, line.user_agent] {
        log.extend_from_slice(b" \"");
        match field {
            Some(value) => push_escaped(log, value),
            None => log.push(b'-'),
        }
        log.push(b'"');
    }
    log.push(b'\n');
}

/// Writes bytes that would end a field or a line early as `\x22`, and all that is not printable ASCII.
fn push_escaped(log: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'"' && *byte != b'\\';
    if bytes.iter().all(is_plain) {
        log.extend_from_slice(bytes);
        return;
    }
    for byte in bytes {
        if is_plain(byte) {
            log.push(*byte);
        } else {
            log.extend_from_slice(&[b'\\', b'x', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
}

fn push_number(log: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut writer = crate::answer::HeadWriter::new(&mut digits);
    writer.put_number(number);
    let used = writer.finish().unwrap_or(0);
    log.extend_from_slice(&digits[..used]);
}

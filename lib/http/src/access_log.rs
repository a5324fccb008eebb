//! Lines of an access log, in the combined format that tools for such logs read.

use alloc::vec::Vec;

/// What is told of a request.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The address of the other end.
    pub address: &'a str,
    /// When it was answered, as [`date::log`](crate::date::log) writes it.
    pub date: &'a [u8],
    /// Method, target and minor version, where the request could be read.
    pub request: Option<(&'a str, &'a str, u8)>,
    /// The status of the answer.
    pub status: u16,
    /// Bytes of content that were sent.
    pub content_bytes: u64,
    /// The field `Referer`.
    pub referer: Option<&'a [u8]>,
    /// The field `User-Agent`.
    pub user_agent: Option<&'a [u8]>,
}

/// Adds a line.
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

/// What would end a field or a line early is written as `\x22`; so is what is not printable ASCII.
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

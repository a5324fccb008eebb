//! The text protocol between a web application and the server (contract `HttpExchange`).

use alloc::string::String;
use alloc::vec::Vec;

use crate::request::Request;
use crate::text::{is_token_byte, trim};

/// Maximum size of the head of an application's response, in bytes.
pub const MAX_HEAD_BYTES: usize = 16 * 1024;

/// The head of an application's response is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadHead;

/// Serializes a request head for an application: see the contract.
pub fn request_head(request: &Request<'_, '_>, path: &str, address: &str, into: &mut Vec<u8>) {
    for line in [request.method_text, path, request.query.unwrap_or(""), address] {
        into.extend_from_slice(line.as_bytes());
        into.push(b'\n');
    }
    for (name, value) in request.headers() {
        into.extend(name.bytes().map(|byte| byte.to_ascii_lowercase()));
        into.extend_from_slice(b": ");
        match core::str::from_utf8(value) {
            Ok(_) => into.extend_from_slice(value),
            // The head is UTF-8.
            Err(_) => into.extend_from_slice(String::from_utf8_lossy(value).as_bytes()),
        }
        into.push(b'\n');
    }
}

/// Returns whether an application may respond with this status: those below 200 are interim.
pub fn is_status(status: u16) -> bool {
    (200..=599).contains(&status)
}

/// Validates the head of an application's response and appends its fields to `into` as they are sent. Fields reserved
/// for the server are left out.
pub fn answer_head(head: &[u8], into: &mut Vec<u8>) -> Result<(), BadHead> {
    if head.len() > MAX_HEAD_BYTES || core::str::from_utf8(head).is_err() {
        return Err(BadHead);
    }
    for line in head.split(|byte| *byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':').ok_or(BadHead)?;
        let (name, value) = (&line[..colon], trim(&line[colon + 1..]));
        let is_value_byte = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
        if name.is_empty() || !name.iter().copied().all(is_token_byte) || !value.iter().all(is_value_byte) {
            return Err(BadHead);
        }
        if is_servers(name) {
            continue;
        }
        into.extend_from_slice(name);
        into.extend_from_slice(b": ");
        into.extend_from_slice(value);
        into.extend_from_slice(b"\r\n");
    }
    Ok(())
}

/// Returns whether a field is reserved for the server, which decides about framing and the connection.
fn is_servers(name: &[u8]) -> bool {
    const SERVERS: [&[u8]; 9] = [
        b"content-length",
        b"transfer-encoding",
        b"connection",
        b"date",
        b"server",
        b"keep-alive",
        b"upgrade",
        b"trailer",
        b"te",
    ];
    SERVERS.iter().any(|servers| servers.eq_ignore_ascii_case(name))
}

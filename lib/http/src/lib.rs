//! HTTP/1.1 for servers and clients (RFC 9110 and RFC 9112), without channels, clocks and files.
//!
//! [`request`] parses the head of a request, [`body`] decodes its content, [`target`] turns its path into names,
//! [`conditional`] and [`range`] evaluate conditional and range requests. [`answer`] serializes the head of a
//! response, [`date`], [`content_type`], [`page`], [`listing`] and [`gzip`] produce its parts, [`application`] parses
//! an application's response head, [`access_log`] formats log lines. For clients, [`url`] parses the target of a
//! request, and [`response`] parses the response. Everything here accepts arbitrary bytes: it returns a result or an
//! error. Deliberately not here: the content that the server serves.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod access_log;
pub mod answer;
pub mod application;
pub mod body;
pub mod conditional;
pub mod content_type;
pub mod date;
pub mod gzip;
pub mod listing;
pub mod page;
pub mod range;
pub mod request;
pub mod response;
pub mod target;
mod text;
pub mod url;

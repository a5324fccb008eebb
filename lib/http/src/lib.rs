//! HTTP/1.1 as a server speaks it, and a client (RFC 9110 and RFC 9112), without channels, clocks and files.
//!
//! [`request`] reads the head of a request, [`body`] what follows it, [`target`] turns its path into names,
//! [`conditional`] and [`range`] say what of a file is asked for. [`answer`] writes the head of an answer, [`date`],
//! [`content_type`], [`page`], [`listing`] and [`gzip`] make what is in it, [`application`] reads the head that an
//! application gives, [`access_log`] tells what was answered. For clients, [`url`] says where and what to ask, and
//! [`response`] reads the answer. Everything here may be given any bytes: it answers, or says what is wrong.
//! Deliberately not here: what to serve; that is the server's.
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

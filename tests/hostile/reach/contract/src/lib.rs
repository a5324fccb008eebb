//! What two programs say to each other that one parent joined.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

sip::contracts!("src/courier.contract");

//! Contract between two programs that one parent connected.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

sip::contracts!("src/courier.contract");

//! What the programs of the conformance suite say to each other.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

sip::contracts!("src/conformance.contract");

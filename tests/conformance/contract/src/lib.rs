//! Contract between the programs of the conformance suite.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

sip::contracts!("src/conformance.contract");

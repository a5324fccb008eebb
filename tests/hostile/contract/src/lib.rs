//! Contracts between the programs of the hostile suite, and the patterns of their canaries.
//!
//! Deliberately not here: anything that attacks.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod pattern;

sip::contracts!("src/hostile.contract");

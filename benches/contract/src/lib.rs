//! The contract that the benchmark SIPs talk.
#![no_std]
#![forbid(unsafe_code)]

sip::contracts!("measured.contract");

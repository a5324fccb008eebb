//! The contract of the benchmark SIPs.
#![no_std]
#![forbid(unsafe_code)]

sip::contracts!("measured.contract");

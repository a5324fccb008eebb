//! The contract between a decoder and those who do not trust it.
#![no_std]
#![forbid(unsafe_code)]

sip::contracts!("decoder.contract");

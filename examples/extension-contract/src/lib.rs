//! The contract between a program and its extension.
#![no_std]
#![forbid(unsafe_code)]

sip::contracts!("extension.contract");

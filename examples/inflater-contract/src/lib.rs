//! The contract between zlib and those who want a stream decompressed.
#![no_std]
#![forbid(unsafe_code)]

sip::contracts!("inflater.contract");

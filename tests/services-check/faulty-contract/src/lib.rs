//! How tests tell a disk when to fail.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

sip::contracts!("src/faulty_disk.contract");

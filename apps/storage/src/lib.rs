//! Programs over disks and their file systems: a module each, with its manifest in the folder of its name.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod check;
pub mod dd;
pub mod df;
pub mod disks;
pub mod format;
pub mod mount;
pub mod umount;

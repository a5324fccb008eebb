//! Programs over installed programs: a module each, with its manifest in the folder of its name.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod explain;
pub mod install;
pub mod uninstall;
pub mod upgrade;
pub mod verify;

//! Programs that show and control the system: a module each, with its manifest in the folder of its name.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod channels;
pub mod clear;
pub mod date;
pub mod kill;
pub mod log;
pub mod ps;
pub mod random;
pub mod services;
pub mod shutdown;
pub mod sleep;
pub mod start;
pub mod stop;
pub mod sysinfo;
pub mod whoami;

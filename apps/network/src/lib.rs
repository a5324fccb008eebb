//! Programs over the network: a module each, with its manifest in the folder of its name.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod dns;
pub mod ipconfig;
pub mod netstat;
pub mod nic;
pub mod ping;
pub mod route;

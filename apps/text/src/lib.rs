//! Programs over lines of text: a module each, with its manifest in the folder of its name.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod cut;
pub mod wc;

//! Programs over lines of text: a module each, with its manifest in the folder of its name.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod cat;
pub mod cut;
pub mod echo;
pub mod head;
pub mod seq;
pub mod sort;
pub mod tail;
pub mod tee;
pub mod uniq;
pub mod wc;
pub mod write;

//! Whole-program analysis of an image: which functions it has, what each can call, and how much stack that takes.
//!
//! A sealed image is all code that its program will ever run, so what is found here holds for every run. Key types:
//! [`Program`] (functions and calls of an image), [`assess`] (the assertions of a manifest), [`Fault`]. Neighbours:
//! `image-check` has checked the image; the builder and the installer assess it. Deliberately not here: whether the
//! names of functions are true. They come with the image, from whoever signed it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod assess;
mod calls;
mod conform;
mod flow;
mod frame;
mod names;
mod program;
mod stack;
mod tags;

pub use assess::{Assessment, Fault, assess};
pub use calls::{Call, Target};
pub use conform::{Conformance, conform};
pub use program::{Error, Function, Program};
pub use tags::Numbers;

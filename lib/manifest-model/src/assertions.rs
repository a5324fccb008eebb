//! Assertions of a manifest about its image, checked by the crate `image-analysis` when a package is built and again
//! before it is installed.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// Entry of a list that stands for the whole program: all code that can run, from the start of the image.
pub const WHOLE_PROGRAM: &str = "*";

/// Assertions about an image. Functions are named by their path, `crate::module::Type::function`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assertions {
    /// Functions and the most stack that a call of each uses, in bytes, without what the kernel needs.
    pub max_stack: Vec<(String, u32)>,
    /// Functions that cannot panic.
    pub no_panic: Vec<String>,
    /// Functions that do not allocate from the heap.
    pub no_alloc: Vec<String>,
    /// Functions that do not compute with floating-point numbers.
    pub no_float: Vec<String>,
    /// Most functions that the program can call.
    pub functions_reached: Option<u32>,
}

impl Assertions {
    /// Returns whether nothing is asserted.
    pub fn is_empty(&self) -> bool {
        *self == Assertions::default()
    }
}

//! A kernel double: enough of the ABI for the runtime's own tests, on stacks laid out as
//! the kernel lays them out, so that the code under test is the code that runs in an image.
//!
//! It does not check contracts. Blocks of messages whose tag is in [`kernel::LENT_TAGS`] are lent: they return
//! when the receiver's end closes. Each test program uses its own subset of it.

#![allow(dead_code, unused_imports)]

mod kernel;
mod stack;

pub use kernel::{blocks_alive, endpoints_alive, free_lost_blocks, give_parameter, pages_alive};
pub use stack::run;

//! What a function calls.

use crate::tags::Numbers;

/// A call, or a jump to another function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Address of the instruction.
    pub at: u64,
    /// What is called.
    pub target: Target,
    /// Bytes of stack in use then, with the return address that the call pushes; 0 for a jump.
    pub depth: u32,
    /// The second argument, if it is one of a few numbers in the code: the message of a send.
    pub second: Option<Numbers>,
}

/// What a call leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A function of the image.
    Function(usize),
    /// A function of the kernel: an index of [`abi::FUNCTIONS`].
    Kernel(usize),
    /// A method of a trait object: whatever is in a table at this distance from its beginning.
    Method(i64),
    /// A function pointer: any function whose address is taken.
    Pointer,
}

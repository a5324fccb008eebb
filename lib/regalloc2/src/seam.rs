//! Where a program has its own allocator take part.

use alloc::boxed::Box;

use ::regalloc2::{Function, MachineEnv, Output, RegAllocError, RegallocOptions};
use spin::Once;

/// Who allocates the functions of this program.
static ALLOCATOR: Once<Box<dyn Allocator>> = Once::new();

/// An allocator that may take a function, called by each thread that compiles one.
pub trait Allocator: Send + Sync {
    /// The allocation of a function; none to have the original make it here. It has to be one that fits the function:
    /// the code generator trusts its numbers.
    fn allocate(&self, function: &dyn Function, env: &MachineEnv, options: &RegallocOptions) -> Option<Output>;
}

/// Sets the allocator of this program, for good; false if it has one.
pub fn set(allocator: Box<dyn Allocator>) -> bool {
    let mut allocator = Some(allocator);
    // The closure runs once, if ever.
    ALLOCATOR.call_once(|| allocator.take().unwrap_or_else(|| Box::new(Nobody)));
    allocator.is_none()
}

/// Allocates a function by the original, whoever else is set.
///
/// # Errors
/// The function is malformed, or has more live values at once than registers.
pub fn run_original<F: Function>(
    function: &F,
    env: &MachineEnv,
    options: &RegallocOptions,
) -> Result<Output, RegAllocError> {
    ::regalloc2::run(function, env, options)
}

/// Asks the program's allocator, if it has one.
pub(crate) fn allocate(function: &dyn Function, env: &MachineEnv, options: &RegallocOptions) -> Option<Output> {
    ALLOCATOR.get()?.allocate(function, env, options)
}

struct Nobody;

impl Allocator for Nobody {
    fn allocate(&self, _: &dyn Function, _: &MachineEnv, _: &RegallocOptions) -> Option<Output> {
        None
    }
}

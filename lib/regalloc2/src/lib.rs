//! The register allocator regalloc2 behind a seam: the crate that Cranelift calls, with the original's types and a `run`
//! that may have a function allocated elsewhere.
//!
//! Key items: [`seam::Allocator`], which a program sets once with [`seam::set`]. Where none is set, or the one that is
//! set has no answer, the original does the work here. Neighbours: `register-allocation` writes functions and answers as
//! bytes, `services/compiler` sends them to a child. Deliberately not here: source of the original.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod seam;

pub use ::regalloc2::*;

/// What an allocation leaves: its result. The original's working memory is not kept for the next function.
#[derive(Clone, Debug, Default)]
pub struct Ctx {
    /// The result.
    pub output: Output,
}

/// Allocates a function at the seam.
///
/// # Errors
/// The function is malformed, or has more live values at once than registers.
pub fn run<F: Function>(func: &F, env: &MachineEnv, options: &RegallocOptions) -> Result<Output, RegAllocError> {
    match seam::allocate(func, env, options) {
        Some(output) => Ok(output),
        None => seam::run_original(func, env, options),
    }
}

/// Allocates a function at the seam; the result is in `ctx`.
///
/// # Errors
/// Those of [`run`].
pub fn run_with_ctx<'a, F: Function>(
    func: &F,
    env: &MachineEnv,
    options: &RegallocOptions,
    ctx: &'a mut Ctx,
) -> Result<&'a Output, RegAllocError> {
    ctx.output = run(func, env, options)?;
    Ok(&ctx.output)
}

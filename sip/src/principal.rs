//! Principals: on whose behalf a process acts, as text such as `login.singularity@alice + shell.singularity + cat.singularity`.
//!
//! The kernel builds it and no process can forge it: links from the oldest invoker to the program itself, each
//! `name.publisher`, with the role in which it invoked the next one. Deliberately not here: patterns over principals.

use alloc::string::String;

use crate::channel::TypedEndpoint;
use crate::{Status, raw::value as kernel, thread_block};

/// Separator of the links of a principal.
pub const JOINT: &str = " + ";

/// Returns the process's own principal.
pub fn own() -> String {
    match kernel::principal_self() {
        Ok(length) => thread_block::text(0, length),
        Err(_) => String::new(),
    }
}

/// Returns the principal of an endpoint's peer.
pub fn of_peer<E: TypedEndpoint>(endpoint: &E) -> Result<String, Status> {
    let length = kernel::principal_of_peer(endpoint.raw().handle())?;
    Ok(thread_block::text(0, length))
}

/// Delegates this process's principal with the endpoint to its next owner: while that process owns it, the peer sees the
/// endpoint's principal so far, joined to the owner's. If the owner sends it on without delegating again, the peer sees
/// only the principal of the process that receives it.
pub fn delegate<E: TypedEndpoint>(endpoint: &E) -> Result<(), Status> {
    kernel::principal_delegate(endpoint.raw().handle()).map(drop)
}

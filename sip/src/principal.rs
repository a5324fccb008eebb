//! Who a process speaks for: text such as `login.singularity@alice + shell.singularity + cat.singularity`.
//!
//! The kernel makes it and nobody can change it: links from the oldest invoker to the program itself, each
//! `name.publisher`, with the role in which it invoked the next one. Deliberately not here: patterns over it.

use alloc::string::String;

use crate::channel::TypedEndpoint;
use crate::{Status, raw::value as kernel, thread_block};

/// What joins the links of a principal.
pub const JOINT: &str = " + ";

/// The process's own principal.
pub fn own() -> String {
    match kernel::principal_self() {
        Ok(length) => thread_block::text(0, length),
        Err(_) => String::new(),
    }
}

/// The principal that the peer of an endpoint speaks for.
pub fn of_peer<E: TypedEndpoint>(endpoint: &E) -> Result<String, Status> {
    let length = kernel::principal_of_peer(endpoint.raw().handle())?;
    Ok(thread_block::text(0, length))
}

/// Marks the endpoint so that whoever it is moved to next speaks for this process, too, as long as it has it: its peer
/// sees what the endpoint spoke for so far, joined to the new owner's own principal. Sent on without being delegated
/// again it speaks for the one who has it then, alone.
pub fn delegate<E: TypedEndpoint>(endpoint: &E) -> Result<(), Status> {
    kernel::principal_delegate(endpoint.raw().handle()).map(drop)
}

//! Who a process speaks for: text such as `shell.singularity + ext2.singularity @ admin`.

use alloc::string::String;

use crate::channel::TypedEndpoint;
use crate::{Status, raw::value as kernel, thread_block};

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

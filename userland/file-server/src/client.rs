//! The sender of a request.

use alloc::string::String;

use sip::channel::TypedEndpoint;

/// The sender of a request.
pub trait Client {
    /// Returns its principal at this moment; `None` once it has closed its endpoint.
    fn principal(&self) -> Option<String>;
}

/// The peer of an endpoint.
impl<E: TypedEndpoint> Client for E {
    fn principal(&self) -> Option<String> {
        sip::principal::of_peer(self).ok()
    }
}

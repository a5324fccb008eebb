//! Serving one name under one contract: the provider's side of being bound to.
//!
//! Deliberately not here: subtrees, and providers that serve a name under several contracts.
#![no_std]
#![forbid(unsafe_code)]

pub mod waiting;

use core::future::Future;

use contracts::service_provider::{self, ConnectError, states};
use sip::channel::TypedEndpoint;

/// Takes clients as they come, for a provider that has said that it is ready, and runs `serve` for each as a task
/// of its own. Ends when the directory service lets the provider go. To be awaited in `sip::executor::block_on`.
pub async fn accept<E, F>(mut provider: service_provider::Exp<states::Ready>, mut serve: impl FnMut(E) -> F)
where
    E: TypedEndpoint,
    F: Future<Output = ()> + 'static,
{
    loop {
        provider = match provider.receive_async().await {
            service_provider::ExpReady::Connect { path, rest, endpoint, next, .. } => {
                if (rest as usize) < path.len() {
                    next.nack(ConnectError::NotFound, endpoint)
                } else {
                    match endpoint.downcast::<E>() {
                        Ok(client) => {
                            sip::executor::spawn(serve(client));
                            next.ack()
                        }
                        Err(endpoint) => next.nack(ConnectError::WrongContract, endpoint),
                    }
                }
            }
            service_provider::ExpReady::ChannelClosed(_) => return,
        };
    }
}

//! The server's side of a name in the namespace: one path, one contract, a task for each client.
//!
//! Deliberately not here: subtrees, and providers that serve a name under several contracts.
#![no_std]
#![forbid(unsafe_code)]

pub mod waiting;

use core::future::Future;

use contracts::service_provider::{self, ConnectError, StartError, states};
use sip::Status;
use sip::channel::TypedEndpoint;

/// What a provider says that cannot start since the kernel refused it something: after a lack of memory its parent starts
/// it again; what is missing stays so.
pub fn start_error(status: Status) -> StartError {
    if status == Status::Exhausted { StartError::Exhausted } else { StartError::Missing }
}

/// Accepts clients of a provider that is ready, and spawns `serve` for each. Returns when the directory service closes
/// the provider channel. Await it in `sip::executor::block_on`.
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

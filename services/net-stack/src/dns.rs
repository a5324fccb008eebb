//! Serving clients of `Dns`.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::net::IpAddr;

use contracts::HostAddress;
use contracts::dns::{self, AddressFamily, DnsError, ExpReady};
use net_stack::{Failure, IpAddress, NameFailure};
use network::address;
use network_guard::Action;
use sip::channel::TypedEndpoint;
use sip::exheap::ExVec;

use crate::shared::Shared;
use provider::waiting::{Waited, until, wait};

/// Timeout of a query for one IP version, in milliseconds.
const TIMEOUT_MS: u32 = 10_000;
/// The loopback name (RFC 6761).
const OWN_NAME: &str = "localhost";

/// Serves one client.
pub async fn serve(shared: Rc<Shared>, client: dns::Exp<dns::states::Start>) {
    let mut client = client.success();
    while let ExpReady::Resolve { name, family, next } = client.receive_async().await {
        if !shared.guard.allows_action(&next, Action::Resolve) {
            client = next.failed(DnsError::NotPermitted);
            continue;
        }
        client = match resolve(&shared, &name, family, &next).await {
            Some(Ok(addresses)) => match pack(&addresses) {
                Some(block) => next.resolved(block),
                None => next.failed(DnsError::Exhausted),
            },
            Some(Err(error)) => next.failed(error),
            None => return,
        };
    }
}

fn pack(addresses: &[IpAddr]) -> Option<ExVec<HostAddress>> {
    let records: Vec<HostAddress> = addresses.iter().copied().map(HostAddress::from).collect();
    ExVec::from_slice(&records).ok()
}

/// Resolves a name; `None` if the client is gone.
async fn resolve<E: TypedEndpoint>(
    shared: &Shared,
    name: &[u8],
    family: AddressFamily,
    client: &E,
) -> Option<Result<Vec<IpAddr>, DnsError>> {
    let Ok(name) = core::str::from_utf8(name) else { return Some(Err(DnsError::BadName)) };
    let is_wanted = |address: &IpAddr| match family {
        AddressFamily::Any => true,
        AddressFamily::Version4 => address.is_ipv4(),
        AddressFamily::Version6 => address.is_ipv6(),
    };
    let own = name.strip_suffix('.').unwrap_or(name).eq_ignore_ascii_case(OWN_NAME);
    let known = match address::parse_address(name) {
        Ok(address) => alloc::vec![address],
        Err(_) if own => alloc::vec![[127, 0, 0, 1].into(), core::net::Ipv6Addr::LOCALHOST.into()],
        Err(_) => Vec::new(),
    };
    if !known.is_empty() {
        let fitting: Vec<IpAddr> = known.into_iter().filter(is_wanted).collect();
        return Some(if fitting.is_empty() { Err(DnsError::NotFound) } else { Ok(fitting) });
    }
    if !net_stack::is_name(name) {
        return Some(Err(DnsError::BadName));
    }
    if shared.stack().name_servers().is_empty() {
        return Some(Err(DnsError::NoServer));
    }
    let versions: &[bool] = match family {
        AddressFamily::Any => &[false, true],
        AddressFamily::Version4 => &[false],
        AddressFamily::Version6 => &[true],
    };
    let (mut found, mut failed) = (Vec::new(), DnsError::NotFound);
    for is_version_6 in versions {
        match query(shared, name, *is_version_6, client).await? {
            Ok(addresses) => found.extend(addresses.into_iter().map(IpAddr::from)),
            // A name without addresses of one IP version may have some of the other.
            Err(error) => failed = worse(failed, error),
        }
    }
    Some(if found.is_empty() { Err(failed) } else { Ok(found) })
}

/// Of two errors, returns the one that may be transient.
fn worse(one: DnsError, other: DnsError) -> DnsError {
    if one == DnsError::NotFound { other } else { one }
}

async fn query<E: TypedEndpoint>(
    shared: &Shared,
    name: &str,
    is_version_6: bool,
    client: &E,
) -> Option<Result<Vec<IpAddress>, DnsError>> {
    let begun = shared.stack().resolve(name, is_version_6);
    let query = match begun {
        Ok(query) => query,
        Err(Failure::Exhausted) => return Some(Err(DnsError::Exhausted)),
        Err(_) => return Some(Err(DnsError::BadName)),
    };
    let mut answer = None;
    let waited = wait(client, until(TIMEOUT_MS), async {
        answer = Some(poll_fn(|context| shared.stack().poll_resolved(&query, context.waker())).await);
    });
    let waited = waited.await;
    if answer.is_none() {
        shared.stack().forget_query(query);
    }
    match waited {
        Waited::Gone => None,
        _ => Some(answer.unwrap_or(Err(NameFailure::TimedOut)).map_err(|failure| match failure {
            NameFailure::NotFound => DnsError::NotFound,
            NameFailure::TimedOut => DnsError::TimedOut,
            NameFailure::Failed => DnsError::ServerFailed,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_errors_take_precedence() {
        assert_eq!(worse(DnsError::NotFound, DnsError::TimedOut), DnsError::TimedOut);
        assert_eq!(worse(DnsError::TimedOut, DnsError::NotFound), DnsError::TimedOut);
        assert_eq!(worse(DnsError::NotFound, DnsError::NotFound), DnsError::NotFound);
    }
}

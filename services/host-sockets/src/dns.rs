//! The `Dns` contract: names are resolved by the host's resolver.

use alloc::rc::Rc;

use contracts::HostAddress;
use contracts::dns::{self, AddressFamily, DnsError, ExpReady};
use network_guard::Action;
use sip::device::sockets::{Command, FIRST_AT, RECORD_BYTES};
use sip::exheap::ExVec;

use crate::failures::dns_error;
use crate::host::Host;

const ADDRESS_BYTES: usize = 16;
/// Maximum number of addresses requested for a name.
const MAX_ADDRESSES: usize = 64;
const MAX_NAME_BYTES: usize = 253;

/// Serves one client.
pub async fn serve(host: Rc<Host>, client: dns::Exp<dns::states::Start>) {
    let mut client = client.success();
    while let ExpReady::Resolve { name, family, next } = client.receive_async().await {
        client = match host.guard.allows_action(&next, Action::Resolve) {
            false => next.failed(DnsError::NotPermitted),
            true => match resolve(&host, &name, family).await {
                Ok(addresses) => next.resolved(addresses),
                Err(error) => next.failed(error),
            },
        };
    }
}

async fn resolve(host: &Host, name: &[u8], family: AddressFamily) -> Result<ExVec<HostAddress>, DnsError> {
    let is_name = !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains(&0);
    if !is_name {
        return Err(DnsError::BadName);
    }
    let version = match family {
        AddressFamily::Any => 0,
        AddressFamily::Version4 => 4,
        AddressFamily::Version6 => 6,
    };
    let room = MAX_ADDRESSES * ADDRESS_BYTES;
    let record = host.look_up(Command::Resolve, version, name, room).await.map_err(dns_error)?;
    let list = record.0.get(RECORD_BYTES..).unwrap_or(&[]);
    let count = (record.number(FIRST_AT) as usize).min(list.len() / ADDRESS_BYTES);
    if count == 0 {
        return Err(DnsError::NotFound);
    }
    let mut addresses = ExVec::<HostAddress>::new(count).map_err(|_| DnsError::Exhausted)?;
    for (place, bytes) in addresses.iter_mut().zip(list.chunks_exact(ADDRESS_BYTES)) {
        place.address.copy_from_slice(bytes);
    }
    Ok(addresses)
}

//! Cache of DNS responses, bounded in time to live and in number.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use smoltcp::wire::IpAddress;

use super::message::Kind;

/// Maximum entries; at the limit the one that expires first is evicted.
const MAX_ENTRIES: usize = 256;
/// Maximum TTL of an entry in seconds; and of a negative one.
const MAX_TTL_S: u32 = 3600;
const MAX_NEGATIVE_TTL_S: u32 = 60;

#[derive(Default)]
pub(super) struct Cache {
    table: BTreeMap<(Vec<u8>, Kind), (Vec<IpAddress>, u64)>,
}

impl Cache {
    /// Returns the addresses of a name; an empty slice is a negative entry.
    pub(super) fn get(&self, name: &[u8], kind: Kind, now_ns: u64) -> Option<&[IpAddress]> {
        let (addresses, until_ns) = self.table.get(&(name.to_vec(), kind))?;
        (*until_ns > now_ns).then_some(addresses.as_slice())
    }

    /// Inserts a response with a TTL in seconds, which is capped.
    pub(super) fn keep(&mut self, name: Vec<u8>, kind: Kind, addresses: Vec<IpAddress>, seconds: u32, now_ns: u64) {
        let most = if addresses.is_empty() { MAX_NEGATIVE_TTL_S } else { MAX_TTL_S };
        let seconds = seconds.min(most);
        if seconds == 0 {
            return;
        }
        self.table.retain(|_, (_, until_ns)| *until_ns > now_ns);
        if self.table.len() >= MAX_ENTRIES {
            let first = self.table.iter().min_by_key(|(_, (_, until_ns))| *until_ns).map(|(key, _)| key.clone());
            first.map(|key| self.table.remove(&key));
        }
        self.table.insert((name, kind), (addresses, now_ns + u64::from(seconds) * 1_000_000_000));
    }

    /// Clears the cache: other servers may resolve names differently.
    pub(super) fn clear(&mut self) {
        self.table.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_bounded_and_expire() {
        let mut cache = Cache::default();
        let own = [IpAddress::v4(192, 0, 2, 1)].to_vec();
        for number in 0..1000u32 {
            cache.keep(number.to_be_bytes().to_vec(), Kind::Version4, own.clone(), 100 + number, 0);
        }
        assert_eq!(cache.table.len(), MAX_ENTRIES);
        let last = 999u32.to_be_bytes();
        assert_eq!(cache.get(&last, Kind::Version4, 0), Some(&own[..]));
        assert_eq!(cache.get(&last, Kind::Version6, 0), None);
        assert_eq!(cache.get(&last, Kind::Version4, 1_099_000_000_000), None);
        cache.keep(b"long".to_vec(), Kind::Version4, own, u32::MAX, 0);
        assert!(cache.get(b"long", Kind::Version4, 3_599_000_000_000).is_some());
        assert!(cache.get(b"long", Kind::Version4, 3_600_000_000_000).is_none());
        cache.keep(b"none".to_vec(), Kind::Version4, Vec::new(), u32::MAX, 0);
        assert!(cache.get(b"none", Kind::Version4, 60_000_000_000).is_none());
    }
}

//! Path MTU discovery: hosts whose path MTU is below the link's (RFC 1191, RFC 8201).

use alloc::collections::BTreeMap;

use smoltcp::wire::IpAddress;

/// Lifetime of an entry in nanoseconds; then larger packets are tried again.
const LIFETIME_NS: u64 = 600_000_000_000;
/// Maximum number of entries; at the limit the oldest is dropped.
const MAX_ENTRIES: usize = 256;
/// Minimum path MTU accepted: otherwise forged errors could slow a connection to a crawl.
const MIN_4: usize = 552;
const MIN_6: usize = 1280;
/// Plateau values for routers that do not report a next-hop MTU.
const PLATEAUS: [usize; 4] = [8166, 4352, 1492, 1006];

#[derive(Default)]
pub(crate) struct Paths {
    table: BTreeMap<IpAddress, (usize, u64)>,
}

impl Paths {
    /// Returns the path MTU to a host, if it is known to be below the link's.
    pub(crate) fn mtu(&self, to: &IpAddress, now_ns: u64) -> Option<usize> {
        let (mtu, until_ns) = self.table.get(to)?;
        (*until_ns > now_ns).then_some(*mtu)
    }

    /// Records that a packet of `length` bytes was too big and that `mtu` bytes would fit; returns `false` if that is
    /// already known or implausible.
    pub(crate) fn lower(&mut self, to: IpAddress, length: usize, mtu: usize, now_ns: u64) -> bool {
        let least = if matches!(to, IpAddress::Ipv4(_)) { MIN_4 } else { MIN_6 };
        let said = match mtu {
            0 => PLATEAUS.into_iter().find(|plateau| *plateau < length).unwrap_or(least),
            mtu => mtu,
        };
        let new = said.max(least);
        if said >= length || self.mtu(&to, now_ns).is_some_and(|known| known <= new) {
            return false;
        }
        if self.table.len() >= MAX_ENTRIES && !self.table.contains_key(&to) {
            let oldest = self.table.iter().min_by_key(|(_, (_, until_ns))| *until_ns).map(|(host, _)| *host);
            oldest.map(|host| self.table.remove(&host));
        }
        self.table.insert(to, (new, now_ns + LIFETIME_NS));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_mtus_only_decrease_and_have_a_minimum() {
        let mut paths = Paths::default();
        let host = IpAddress::v4(198, 51, 100, 1);
        assert!(paths.lower(host, 1500, 1400, 0));
        assert!(!paths.lower(host, 1500, 1450, 0), "wider");
        assert!(!paths.lower(host, 1300, 1300, 0), "it did not get through, and yet it would");
        assert!(paths.lower(host, 1400, 68, 0));
        assert_eq!(paths.mtu(&host, 0), Some(MIN_4));
        assert_eq!(paths.mtu(&host, LIFETIME_NS), None);
        assert!(paths.lower(host, 1500, 0, LIFETIME_NS));
        assert_eq!(paths.mtu(&host, LIFETIME_NS), Some(1492));
    }

    #[test]
    fn entries_are_bounded() {
        let mut paths = Paths::default();
        for number in 0..2000u64 {
            let host = IpAddress::v4(10, 0, (number >> 8) as u8, number as u8);
            assert!(paths.lower(host, 1500, 1400, number));
        }
        assert_eq!(paths.table.len(), MAX_ENTRIES);
    }
}

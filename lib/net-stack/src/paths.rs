//! How long packets may be on the way to a host, where that is less than on the link (RFC 1191, RFC 8201).

use alloc::collections::BTreeMap;

use smoltcp::wire::IpAddress;

/// How long it is believed; then longer packets are tried again.
const BELIEVED_NS: u64 = 600_000_000_000;
/// Hosts that are known; with more, the one known longest is forgotten.
const MOST: usize = 256;
/// What is never gone below: with less, whoever forges errors makes a connection crawl.
const MIN_4: usize = 552;
const MIN_6: usize = 1280;
/// What routers that do not say how much they carry may carry.
const USUAL: [usize; 4] = [8166, 4352, 1492, 1006];

#[derive(Default)]
pub(crate) struct Paths {
    table: BTreeMap<IpAddress, (usize, u64)>,
}

impl Paths {
    /// The longest packet to a host, where it is known to be less than the link's.
    pub(crate) fn mtu(&self, to: &IpAddress, now_ns: u64) -> Option<usize> {
        let (mtu, until_ns) = self.table.get(to)?;
        (*until_ns > now_ns).then_some(*mtu)
    }

    /// Notes that a packet of so many bytes did not get through, but one of `mtu` bytes would; false: that is nothing
    /// new, or makes no sense.
    pub(crate) fn lower(&mut self, to: IpAddress, length: usize, mtu: usize, now_ns: u64) -> bool {
        let least = if matches!(to, IpAddress::Ipv4(_)) { MIN_4 } else { MIN_6 };
        let said = match mtu {
            0 => USUAL.into_iter().find(|usual| *usual < length).unwrap_or(least),
            mtu => mtu,
        };
        let new = said.max(least);
        if said >= length || self.mtu(&to, now_ns).is_some_and(|known| known <= new) {
            return false;
        }
        if self.table.len() >= MOST && !self.table.contains_key(&to) {
            let oldest = self.table.iter().min_by_key(|(_, (_, until_ns))| *until_ns).map(|(host, _)| *host);
            oldest.map(|host| self.table.remove(&host));
        }
        self.table.insert(to, (new, now_ns + BELIEVED_NS));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_only_get_narrower_and_never_too_narrow() {
        let mut paths = Paths::default();
        let host = IpAddress::v4(198, 51, 100, 1);
        assert!(paths.lower(host, 1500, 1400, 0));
        assert!(!paths.lower(host, 1500, 1450, 0), "wider");
        assert!(!paths.lower(host, 1300, 1300, 0), "it did not get through, and yet it would");
        assert!(paths.lower(host, 1400, 68, 0));
        assert_eq!(paths.mtu(&host, 0), Some(MIN_4));
        assert_eq!(paths.mtu(&host, BELIEVED_NS), None);
        assert!(paths.lower(host, 1500, 0, BELIEVED_NS));
        assert_eq!(paths.mtu(&host, BELIEVED_NS), Some(1492));
    }

    #[test]
    fn few_hosts_are_kept() {
        let mut paths = Paths::default();
        for number in 0..2000u64 {
            let host = IpAddress::v4(10, 0, (number >> 8) as u8, number as u8);
            assert!(paths.lower(host, 1500, 1400, number));
        }
        assert_eq!(paths.table.len(), MOST);
    }
}

//! The routing table.

use alloc::vec::Vec;

use smoltcp::wire::{IpAddress, IpCidr};

/// A route to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The network.
    pub network: IpCidr,
    /// The next hop, which is on-link.
    pub gateway: IpAddress,
    /// Learnt from a protocol.
    pub learnt: bool,
    /// Expiry time in nanoseconds; `None`: never.
    pub until_ns: Option<u64>,
}

/// Maximum number of routes.
const MAX_ROUTES: usize = 256;

/// The routes, longest prefix first.
#[derive(Default)]
pub(crate) struct Routes {
    table: Vec<Route>,
}

impl Routes {
    pub(crate) fn all(&self) -> &[Route] {
        &self.table
    }

    /// Adds a route, replacing one to the same network by the same gateway. Returns `false` if there is no room.
    pub(crate) fn add(&mut self, route: Route) -> bool {
        self.remove(&route);
        if self.table.len() >= MAX_ROUTES {
            return false;
        }
        let bits = route.network.prefix_len();
        let place = self.table.partition_point(|known| known.network.prefix_len() >= bits);
        self.table.insert(place, route);
        true
    }

    /// Adds a learnt route, unless the same one is configured statically.
    pub(crate) fn add_learnt(&mut self, route: Route) {
        let is_same = |known: &&Route| (known.network, known.gateway) == (route.network, route.gateway);
        if self.table.iter().find(is_same).is_none_or(|known| known.learnt) {
            self.add(route);
        }
    }

    /// Removes a learnt route.
    pub(crate) fn remove_learnt(&mut self, route: &Route) {
        let is_it = |known: &Route| known.learnt && (known.network, known.gateway) == (route.network, route.gateway);
        self.table.retain(|known| !is_it(known));
    }

    /// Removes expired routes.
    pub(crate) fn forget_old(&mut self, now_ns: u64) {
        self.table.retain(|known| known.until_ns.is_none_or(|until_ns| until_ns > now_ns));
    }

    /// Returns when the next route expires.
    pub(crate) fn next_time_ns(&self) -> Option<u64> {
        self.table.iter().filter_map(|known| known.until_ns).min()
    }

    /// Removes a route; returns `false` if there was none.
    pub(crate) fn remove(&mut self, route: &Route) -> bool {
        let before = self.table.len();
        self.table.retain(|known| (known.network, known.gateway) != (route.network, route.gateway));
        self.table.len() < before
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&Route) -> bool) {
        self.table.retain(keep);
    }

    /// Returns the gateway for an address.
    pub(crate) fn gateway(&self, address: &IpAddress) -> Option<IpAddress> {
        let leads = |route: &&Route| route.network.contains_addr(address);
        self.table.iter().find(leads).map(|route| route.gateway)
    }
}

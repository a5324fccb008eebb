//! The neighbour cache: link-layer addresses, and packets that wait for resolution.
//!
//! An entry is used for some time after its confirmation; near its expiry it is probed while packets are still sent to
//! it. Deliberately not here: ARP and neighbour discovery messages.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use smoltcp::wire::{EthernetAddress, IpAddress};

use crate::output::Outgoing;

/// Lifetime of a confirmed entry, in nanoseconds.
const LIFETIME_NS: u64 = 90_000_000_000;
/// Age after which an entry in use is probed, in nanoseconds.
const REACHABLE_NS: u64 = 60_000_000_000;
/// Interval of probes, in nanoseconds.
const TIMEOUT_NS: u64 = 1_000_000_000;
/// Maximum unanswered probes before a neighbour is unreachable.
const MAX_PROBES: u32 = 3;
/// Maximum packets queued per neighbour; beyond it the oldest is dropped. After a restart many connections may start
/// at once behind one router, and a dropped SYN is retransmitted only after a second.
const MAX_WAITING: usize = 64;
/// Maximum entries; more evict the oldest.
const MAX_ENTRIES: usize = 4096;
/// Maximum unresolved neighbours; more evict the oldest with its packets.
const MAX_UNRESOLVED: usize = 128;

struct Neighbour<B> {
    hardware: Option<EthernetAddress>,
    confirmed_ns: u64,
    probed_ns: u64,
    probes: u32,
    /// Whether it may have another address since it was confirmed.
    is_doubted: bool,
    waiting: VecDeque<Outgoing<B>>,
}

/// What to do with a packet for a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Send it to this address.
    Send(EthernetAddress),
    /// Send it to this address, and probe.
    SendAndProbe(EthernetAddress),
    /// Queue it and send a request.
    Resolve,
    /// Queue it; a request is outstanding.
    Queue,
}

pub(crate) struct Neighbours<B> {
    table: BTreeMap<IpAddress, Neighbour<B>>,
    /// Resolved entries, oldest first.
    resolved: VecDeque<IpAddress>,
    /// Unresolved entries, oldest first.
    unresolved: VecDeque<IpAddress>,
    /// Number of waiting packets of all neighbours.
    waiting: usize,
}

impl<B> Neighbours<B> {
    pub(crate) fn new() -> Neighbours<B> {
        Neighbours { table: BTreeMap::new(), resolved: VecDeque::new(), unresolved: VecDeque::new(), waiting: 0 }
    }

    /// Returns what to do with a packet for a neighbour, and marks an unresolved one as being resolved; also returns
    /// the packets of entries evicted for it.
    pub(crate) fn look_up(&mut self, address: &IpAddress, now_ns: u64) -> (Verdict, VecDeque<Outgoing<B>>) {
        if let Some(neighbour) = self.table.get_mut(address) {
            let may_ask = now_ns >= neighbour.probed_ns + TIMEOUT_NS;
            match neighbour.hardware {
                Some(hardware) if now_ns < neighbour.confirmed_ns + REACHABLE_NS && !neighbour.is_doubted => {
                    return (Verdict::Send(hardware), VecDeque::new());
                }
                Some(hardware) if now_ns < neighbour.confirmed_ns + LIFETIME_NS => {
                    if may_ask {
                        neighbour.probed_ns = now_ns;
                    }
                    let answer = if may_ask { Verdict::SendAndProbe(hardware) } else { Verdict::Send(hardware) };
                    return (answer, VecDeque::new());
                }
                Some(_) => {
                    self.table.remove(address);
                    self.resolved.retain(|entry| entry != address);
                }
                None => return (Verdict::Queue, VecDeque::new()),
            }
        }
        let lost =
            if self.unresolved.len() >= MAX_UNRESOLVED { self.evict_oldest_unresolved() } else { VecDeque::new() };
        let new = Neighbour {
            hardware: None,
            confirmed_ns: 0,
            probed_ns: now_ns,
            probes: 1,
            is_doubted: false,
            waiting: VecDeque::new(),
        };
        self.table.insert(*address, new);
        self.unresolved.push_back(*address);
        (Verdict::Resolve, lost)
    }

    fn evict_oldest_unresolved(&mut self) -> VecDeque<Outgoing<B>> {
        let oldest = self.unresolved.pop_front().and_then(|address| self.table.remove(&address));
        let lost = oldest.map(|neighbour| neighbour.waiting).unwrap_or_default();
        self.waiting -= lost.len();
        lost
    }

    /// Queues a packet until the neighbour is resolved, at most `most` of all neighbours. Returns the packets dropped
    /// for it: the neighbour's own oldest one, or those of the neighbours that have been unresolved for longest.
    pub(crate) fn queue(&mut self, address: &IpAddress, packet: Outgoing<B>, most: usize) -> Vec<Outgoing<B>> {
        let mut lost = Vec::new();
        if self.table.get(address).is_some_and(|neighbour| neighbour.waiting.len() >= MAX_WAITING) {
            lost.extend(self.drop_oldest_of(address));
        }
        while self.waiting >= most.max(1) {
            let Some(oldest) = self.drop_oldest() else { break };
            lost.push(oldest);
        }
        match self.table.get_mut(address) {
            Some(neighbour) => {
                neighbour.waiting.push_back(packet);
                self.waiting += 1;
            }
            None => lost.push(packet),
        }
        lost
    }

    fn drop_oldest(&mut self) -> Option<Outgoing<B>> {
        let waits = |address: &&IpAddress| self.table.get(address).is_some_and(|entry| !entry.waiting.is_empty());
        let longest = *self.unresolved.iter().find(waits)?;
        self.drop_oldest_of(&longest)
    }

    fn drop_oldest_of(&mut self, address: &IpAddress) -> Option<Outgoing<B>> {
        let lost = self.table.get_mut(address)?.waiting.pop_front()?;
        self.waiting -= 1;
        Some(lost)
    }

    /// Records a neighbour's hardware address and returns the packets queued for it. An unsolicited one is recorded
    /// only if the caller requests it.
    pub(crate) fn learn(
        &mut self,
        address: IpAddress,
        hardware: EthernetAddress,
        now_ns: u64,
        note_new: bool,
    ) -> VecDeque<Outgoing<B>> {
        if !hardware.is_unicast() {
            return VecDeque::new();
        }
        match self.table.get_mut(&address) {
            Some(neighbour) => {
                let is_new = neighbour.hardware.is_none();
                neighbour.hardware = Some(hardware);
                neighbour.confirmed_ns = now_ns;
                neighbour.is_doubted = false;
                let waiting = core::mem::take(&mut neighbour.waiting);
                self.waiting -= waiting.len();
                if is_new {
                    self.unresolved.retain(|entry| *entry != address);
                    self.note_resolved(address);
                }
                waiting
            }
            None if note_new => {
                let new = Neighbour {
                    hardware: Some(hardware),
                    confirmed_ns: now_ns,
                    probed_ns: 0,
                    probes: 0,
                    is_doubted: false,
                    waiting: VecDeque::new(),
                };
                self.table.insert(address, new);
                self.note_resolved(address);
                VecDeque::new()
            }
            None => VecDeque::new(),
        }
    }

    /// What was sent to a neighbour is not answered: it is probed with the next packet, at most once in a second (the
    /// higher-layer advice of RFC 1122, section 2.3.2.1). A damaged ARP message or a new card may be the reason.
    pub(crate) fn doubt(&mut self, address: &IpAddress) {
        if let Some(neighbour) = self.table.get_mut(address) {
            neighbour.is_doubted = true;
        }
    }

    /// A neighbour's link-layer address, confirmed or stale.
    pub(crate) fn hardware(&self, address: &IpAddress) -> Option<EthernetAddress> {
        self.table.get(address)?.hardware
    }

    fn note_resolved(&mut self, address: IpAddress) {
        self.resolved.push_back(address);
        if self.resolved.len() > MAX_ENTRIES
            && let Some(oldest) = self.resolved.pop_front()
        {
            self.table.remove(&oldest);
        }
    }

    /// Neighbours to probe now, and packets of those that are unreachable.
    pub(crate) fn due(&mut self, now_ns: u64) -> (Vec<IpAddress>, Vec<Outgoing<B>>) {
        let (mut ask, mut lost) = (Vec::new(), Vec::new());
        for _ in 0..self.unresolved.len() {
            let Some(address) = self.unresolved.front().copied() else { break };
            let Some(neighbour) = self.table.get_mut(&address) else {
                self.unresolved.pop_front();
                continue;
            };
            if now_ns < neighbour.probed_ns + TIMEOUT_NS {
                break;
            }
            self.unresolved.pop_front();
            if neighbour.probes >= MAX_PROBES {
                self.waiting -= neighbour.waiting.len();
                lost.extend(neighbour.waiting.drain(..));
                self.table.remove(&address);
            } else {
                neighbour.probes += 1;
                neighbour.probed_ns = now_ns;
                self.unresolved.push_back(address);
                ask.push(address);
            }
        }
        (ask, lost)
    }

    /// When [`Neighbours::due`] has work.
    pub(crate) fn next_time_ns(&self) -> Option<u64> {
        let neighbour = self.table.get(self.unresolved.front()?)?;
        Some(neighbour.probed_ns + TIMEOUT_NS)
    }

    /// Clears the cache after a change of link. Returns the waiting packets.
    pub(crate) fn forget_all(&mut self) -> Vec<Outgoing<B>> {
        self.resolved.clear();
        self.unresolved.clear();
        self.waiting = 0;
        core::mem::take(&mut self.table).into_values().flat_map(|neighbour| neighbour.waiting).collect()
    }
}

//! The neighbour cache: link-layer addresses, and packets that wait for resolution.
//!
//! An entry is used for a while after it was confirmed; near the end of that time it is probed while packets still go
//! to it. Deliberately not here: ARP and neighbour discovery messages.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use smoltcp::wire::{EthernetAddress, IpAddress};

use crate::output::Outgoing;

/// Lifetime of a confirmed entry, in nanoseconds.
const BELIEVED_NS: u64 = 90_000_000_000;
/// Age after which an entry in use is probed, in nanoseconds.
const FRESH_NS: u64 = 60_000_000_000;
/// Interval of probes, in nanoseconds.
const TIMEOUT_NS: u64 = 1_000_000_000;
/// Maximum unanswered probes before a neighbour is unreachable.
const MAX_QUESTIONS: u32 = 3;
/// Maximum packets that wait for one neighbour; more drop the oldest. After a restart many connections may begin behind
/// one router at once, and a dropped SYN is retransmitted only after a second.
const MAX_WAITING: usize = 64;
/// Maximum entries; more evict the oldest.
const MAX_KNOWN: usize = 4096;
/// Maximum unresolved neighbours; more evict the oldest with its packets.
const MAX_ASKED: usize = 128;

struct Neighbour<B> {
    hardware: Option<EthernetAddress>,
    confirmed_ns: u64,
    asked_ns: u64,
    questions: u32,
    waiting: VecDeque<Outgoing<B>>,
}

/// What to do with a packet for a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Send it to this address.
    Send(EthernetAddress),
    /// Send it to this address, and probe.
    SendAndAsk(EthernetAddress),
    /// Queue it and send a request.
    Ask,
    /// Queue it; a request is outstanding.
    Keep,
}

pub(crate) struct Neighbours<B> {
    table: BTreeMap<IpAddress, Neighbour<B>>,
    /// Resolved entries, oldest first.
    known: VecDeque<IpAddress>,
    /// Unresolved entries, oldest first.
    asked: VecDeque<IpAddress>,
    /// Number of waiting packets of all neighbours.
    waiting: usize,
}

impl<B> Neighbours<B> {
    pub(crate) fn new() -> Neighbours<B> {
        Neighbours { table: BTreeMap::new(), known: VecDeque::new(), asked: VecDeque::new(), waiting: 0 }
    }

    /// Returns what to do with a packet for a neighbour, and marks an unresolved one as being resolved; also returns
    /// the packets of entries evicted for it.
    pub(crate) fn look_up(&mut self, address: &IpAddress, now_ns: u64) -> (Answer, VecDeque<Outgoing<B>>) {
        if let Some(neighbour) = self.table.get_mut(address) {
            let may_ask = now_ns >= neighbour.asked_ns + TIMEOUT_NS;
            match neighbour.hardware {
                Some(hardware) if now_ns < neighbour.confirmed_ns + FRESH_NS => {
                    return (Answer::Send(hardware), VecDeque::new());
                }
                Some(hardware) if now_ns < neighbour.confirmed_ns + BELIEVED_NS => {
                    if may_ask {
                        neighbour.asked_ns = now_ns;
                    }
                    let answer = if may_ask { Answer::SendAndAsk(hardware) } else { Answer::Send(hardware) };
                    return (answer, VecDeque::new());
                }
                Some(_) => {
                    self.table.remove(address);
                    self.known.retain(|known| known != address);
                }
                None => return (Answer::Keep, VecDeque::new()),
            }
        }
        let lost = if self.asked.len() >= MAX_ASKED { self.forget_oldest_asked() } else { VecDeque::new() };
        let new =
            Neighbour { hardware: None, confirmed_ns: 0, asked_ns: now_ns, questions: 1, waiting: VecDeque::new() };
        self.table.insert(*address, new);
        self.asked.push_back(*address);
        (Answer::Ask, lost)
    }

    fn forget_oldest_asked(&mut self) -> VecDeque<Outgoing<B>> {
        let oldest = self.asked.pop_front().and_then(|address| self.table.remove(&address));
        let lost = oldest.map(|neighbour| neighbour.waiting).unwrap_or_default();
        self.waiting -= lost.len();
        lost
    }

    /// Queues a packet until the neighbour is resolved, at most `most` of all neighbours. Returns the packets dropped
    /// for it: the neighbour's own oldest one, or those of the neighbours that have been unresolved for longest.
    pub(crate) fn keep(&mut self, address: &IpAddress, packet: Outgoing<B>, most: usize) -> Vec<Outgoing<B>> {
        let mut lost = Vec::new();
        if self.table.get(address).is_some_and(|neighbour| neighbour.waiting.len() >= MAX_WAITING) {
            lost.extend(self.lose_oldest_of(address));
        }
        while self.waiting >= most.max(1) {
            let Some(oldest) = self.lose_oldest() else { break };
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

    fn lose_oldest(&mut self) -> Option<Outgoing<B>> {
        let waits = |address: &&IpAddress| self.table.get(address).is_some_and(|asked| !asked.waiting.is_empty());
        let longest = *self.asked.iter().find(waits)?;
        self.lose_oldest_of(&longest)
    }

    fn lose_oldest_of(&mut self, address: &IpAddress) -> Option<Outgoing<B>> {
        let lost = self.table.get_mut(address)?.waiting.pop_front()?;
        self.waiting -= 1;
        Some(lost)
    }

    /// Records a neighbour's hardware address and returns the packets queued for it. An unsolicited one is recorded
    /// only if the caller wants that.
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
                let waiting = core::mem::take(&mut neighbour.waiting);
                self.waiting -= waiting.len();
                if is_new {
                    self.asked.retain(|asked| *asked != address);
                    self.note_known(address);
                }
                waiting
            }
            None if note_new => {
                let new = Neighbour {
                    hardware: Some(hardware),
                    confirmed_ns: now_ns,
                    asked_ns: 0,
                    questions: 0,
                    waiting: VecDeque::new(),
                };
                self.table.insert(address, new);
                self.note_known(address);
                VecDeque::new()
            }
            None => VecDeque::new(),
        }
    }

    /// A neighbour's link-layer address, confirmed or stale.
    pub(crate) fn hardware(&self, address: &IpAddress) -> Option<EthernetAddress> {
        self.table.get(address)?.hardware
    }

    fn note_known(&mut self, address: IpAddress) {
        self.known.push_back(address);
        if self.known.len() > MAX_KNOWN
            && let Some(oldest) = self.known.pop_front()
        {
            self.table.remove(&oldest);
        }
    }

    /// Neighbours to probe now, and packets of those that are unreachable.
    pub(crate) fn due(&mut self, now_ns: u64) -> (Vec<IpAddress>, Vec<Outgoing<B>>) {
        let (mut ask, mut lost) = (Vec::new(), Vec::new());
        for _ in 0..self.asked.len() {
            let Some(address) = self.asked.front().copied() else { break };
            let Some(neighbour) = self.table.get_mut(&address) else {
                self.asked.pop_front();
                continue;
            };
            if now_ns < neighbour.asked_ns + TIMEOUT_NS {
                break;
            }
            self.asked.pop_front();
            if neighbour.questions >= MAX_QUESTIONS {
                self.waiting -= neighbour.waiting.len();
                lost.extend(neighbour.waiting.drain(..));
                self.table.remove(&address);
            } else {
                neighbour.questions += 1;
                neighbour.asked_ns = now_ns;
                self.asked.push_back(address);
                ask.push(address);
            }
        }
        (ask, lost)
    }

    /// When [`Neighbours::due`] has work.
    pub(crate) fn next_time_ns(&self) -> Option<u64> {
        let neighbour = self.table.get(self.asked.front()?)?;
        Some(neighbour.asked_ns + TIMEOUT_NS)
    }

    /// Clears the cache after a change of link. Returns the waiting packets.
    pub(crate) fn forget_all(&mut self) -> Vec<Outgoing<B>> {
        self.known.clear();
        self.asked.clear();
        self.waiting = 0;
        core::mem::take(&mut self.table).into_values().flat_map(|neighbour| neighbour.waiting).collect()
    }
}

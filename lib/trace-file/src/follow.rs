//! Which events are about some processes.

use alloc::collections::BTreeSet;

use abi::{StreamRecord, TraceKind};

/// Processes to follow: those given, and whatever they create. Of others, only the messages that they exchange with
/// these are kept.
#[derive(Clone, Debug)]
pub struct Follow {
    processes: BTreeSet<u64>,
    /// Channels of which a followed process has been seen to use an end.
    channels: BTreeSet<u64>,
}

/// The two ends of a channel have handles that differ in the last bit.
fn channel(endpoint: u64) -> u64 {
    endpoint & !1
}

impl Follow {
    /// Follows these.
    pub fn new(processes: impl IntoIterator<Item = u64>) -> Follow {
        Follow { processes: processes.into_iter().collect(), channels: BTreeSet::new() }
    }

    /// Follows another one from the next event on.
    pub fn add(&mut self, process: u64) {
        self.processes.insert(process);
    }

    /// Whether to keep an event. Must see every event, in order.
    pub fn keeps(&mut self, event: &StreamRecord) -> bool {
        let is_followed = self.processes.contains(&event.process) || self.processes.contains(&event.runner);
        let kind = event.event();
        match kind {
            Some(TraceKind::ChildCreated) if is_followed => {
                self.processes.insert(event.a);
            }
            // The first event of a process names its parent. `ChildCreated` of the parent comes later.
            Some(TraceKind::Created) if self.processes.contains(&event.a) => {
                self.processes.insert(event.process);
                return true;
            }
            Some(TraceKind::Sent | TraceKind::Received) if is_followed => {
                self.channels.insert(channel(event.a));
            }
            Some(TraceKind::Sent | TraceKind::Received) => return self.channels.contains(&channel(event.a)),
            _ => {}
        }
        is_followed
    }
}

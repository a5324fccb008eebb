//! Accounts charged for channels, and for blocks in messages of a SIP that has ended.
//!
//! The creator pays while it lives, wherever the ends are: no SIP can make a service pay by giving it endpoints. After
//! that the holder of an end pays, the importer's first, and from then on each new holder.

use core::sync::atomic::Ordering;

use abi::limits::BLOCK_WORDS;

use super::{CHANNELS, EndpointRef, Inner, Place, loans};
use crate::contract::Monitored;
use crate::process::ProcessRef;
use crate::{exheap, preempt};

impl Inner {
    /// Refunds the channel to its payer.
    pub(super) fn refund(&mut self) {
        if let Some((payer, id)) = self.payer.take() {
            payer.refund_channel(id, self.bytes as usize);
        }
    }

    fn charge(&mut self, process: ProcessRef) {
        self.refund();
        process.charge_inherited_channel(self.bytes as usize);
        self.payer = Some((process, process.id.load(Ordering::Relaxed)));
    }

    /// Returns a SIP that owns an end.
    fn holder(&self) -> Option<ProcessRef> {
        self.sides.iter().filter(|side| side.place == Place::Owned).find_map(|side| side.owner)
    }

    /// For an end in a message, returns the endpoint that the message is queued for.
    fn way(&self) -> Option<EndpointRef> {
        self.sides.iter().find_map(|side| match side.place {
            Place::InMessage(towards) => super::endpoint(towards).ok(),
            _ => None,
        })
    }
}

/// Adjusts the charge after a SIP received an end whose speaker's text has another size than before.
#[cold]
pub(super) fn adopted(inner: &mut Inner, process: ProcessRef, speaker_before: u32, speaker_bytes: u32) {
    let before = inner.bytes;
    inner.bytes = before - speaker_before + speaker_bytes;
    if inner.is_inherited {
        // Refunded by the amount charged.
        let now = core::mem::replace(&mut inner.bytes, before);
        inner.refund();
        inner.bytes = now;
        inner.charge(process);
    } else if let Some((payer, id)) = inner.payer {
        payer.correct_channel(id, before as usize, inner.bytes as usize);
    }
}

/// Recharges channels of a SIP that is ending and has closed its own ends: those of which it gave both ends away. Scans
/// all channels, because few SIPs leave any.
pub fn disinherit(process: ProcessRef) {
    if process.paid_channels() == 0 {
        return;
    }
    for channel in preempt::pausing(CHANNELS.iter()) {
        let mut inner = channel.lock();
        if !inner.payer.is_some_and(|(payer, _)| core::ptr::eq(payer, process)) {
            continue;
        }
        inner.payer = None;
        inner.is_inherited = true;
        if let Some(holder) = inner.holder() {
            inner.charge(holder);
            continue;
        }
        // In a message: the future receiver pays already, and then the receiver.
        let Some(way) = inner.way() else { continue };
        let generation = channel.generation();
        drop(inner);
        let holder = way.channel.lock().sides[way.side as usize].owner;
        let mut inner = channel.lock();
        if channel.generation() == generation
            && inner.payer.is_none()
            && let Some(holder) = holder
        {
            inner.charge(holder);
        }
    }
}

/// Returns the owner of the endpoint with this handle, if it is open.
pub(super) fn owner_of(endpoint: u64) -> Option<ProcessRef> {
    let endpoint = super::endpoint(endpoint).ok()?;
    let inner = endpoint.channel.lock();
    let side = &inner.sides[endpoint.side as usize];
    side.owner.filter(|_| side.place == Place::Owned && endpoint.channel.generation() == endpoint.generation)
}

/// Charges the receivers for the blocks in messages of a SIP that is ending. Scans all channels, because few SIPs leave
/// such messages.
pub(super) fn charge_receivers(sender: ProcessRef) {
    for channel in preempt::pausing(CHANNELS.iter()) {
        let inner = channel.lock();
        let Some(contract) = inner.contract else { continue };
        for (side, &bound) in inner.sides.iter().zip(&contract.bounds) {
            // An end with queued messages is never itself moved by a message, so it has an owner.
            let Some(receiver) = side.owner else { continue };
            for number in 0..side.waiting {
                let start = ((side.head + number) % bound.max(1)) as usize * contract.slot_words;
                let Some(words) = side.queue.get(start..start + contract.slot_words) else { break };
                let Some(message) = contract.message((words[0] & 0xffff) as usize) else { continue };
                charge_receiver(message, &words[1..], sender, receiver);
            }
        }
    }
}

fn charge_receiver(message: &Monitored, words: &[u64], sender: ProcessRef, receiver: ProcessRef) {
    let blocks = words[message.shape.scalar_words as usize..].iter().step_by(BLOCK_WORDS);
    for block in blocks.take(message.shape.blocks.len()).filter_map(|&handle| exheap::block(handle).ok()) {
        loans::charge_receiver(block, sender, receiver);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{self, adopt_endpoint, close, create};
    use crate::contract::{Contract, register};
    use crate::lifecycle;
    use crate::process::Epitaph;
    use crate::test_machine::{alone, with_quota};
    use abi::{Automaton, Direction, MessageShape, StateRow};
    use alloc::string::String;
    use alloc::vec;

    /// The contract with the largest possible queues.
    fn largest() -> &'static Contract {
        let message = |name: &str, direction| MessageShape {
            name: String::from(name),
            direction,
            scalar_words: 64,
            ranges: vec![],
            blocks: vec![],
            endpoints: vec![],
        };
        let automaton = Automaton {
            name: String::from("Largest"),
            queue_to_importer: 64,
            queue_to_exporter: 64,
            messages: vec![message("Ask", Direction::ToExporter), message("Tell", Direction::ToImporter)],
            states: vec![StateRow { name: String::from("START"), next: vec![0, abi::NO_TRANSITION] }],
        };
        register(&automaton.encode(), [7; 32]).expect("a good contract")
    }

    const QUEUES: usize = 2 * 64 * 65 * 8;

    fn user() -> ProcessRef {
        with_quota(|quota| (quota.handles, quota.channels, quota.children) = (10_000, 5_000, 0))
    }

    #[test]
    fn a_channel_counts_with_its_queues_until_both_ends_are_closed() {
        let _alone = alone();
        let user = user();
        let before = user.kept_for();
        let (importer, exporter) = create(user, largest()).expect("a channel");
        let held = user.kept_for() - before;
        assert!((QUEUES..QUEUES + 1024).contains(&held), "{held} bytes are counted");
        assert!(close(user, importer).is_ok());
        assert_eq!(user.kept_for() - before, held);
        assert!(close(user, exporter).is_ok());
        assert_eq!(user.kept_for(), before);
        let words: usize = importer.channel.lock().sides.iter().map(|side| side.queue.len()).sum();
        assert_eq!(words, 0, "large queues stay with a free slot");
    }

    #[test]
    fn large_queues_end_with_an_error_before_the_quota_of_channels() {
        let _alone = alone();
        let user = user();
        let allowed = 256 * 1024 + 10_000 * 256 + 5_000 * 1024;
        let mut channels = vec![];
        let why = loop {
            match create(user, largest()) {
                Ok(ends) => channels.push(ends),
                Err(why) => break why,
            }
            assert!(channels.len() * QUEUES <= allowed, "{} channels of {QUEUES} bytes", channels.len());
        };
        assert_eq!(why, abi::Status::QuotaExceeded);
        assert!(channels.len() > 90);
        for (importer, exporter) in channels {
            assert!(close(user, importer).is_ok() && close(user, exporter).is_ok());
        }
        assert!(create(user, largest()).is_ok_and(|(importer, _)| close(user, importer).is_ok()));
    }

    fn hand_over(from: ProcessRef, to: ProcessRef, end: EndpointRef) {
        let shape = abi::EndpointShape {
            contract: largest().tag,
            importer: end.side == crate::contract::SideIndex::Importer,
            state: 0,
        };
        assert!(channel::take_givable(from, end, &shape).is_ok());
        adopt_endpoint(to, end);
    }

    #[test]
    fn whoever_has_an_end_pays_when_its_creator_is_gone() {
        let _alone = alone();
        let (creator, client, service, next) = (user(), user(), user(), user());
        let [of_client, of_service, of_next] = [client, service, next].map(|user| user.kept_for());
        let (importer, exporter) = create(creator, largest()).expect("a channel");
        hand_over(creator, client, importer);
        hand_over(creator, service, exporter);
        assert_eq!(
            (client.kept_for(), service.kept_for()),
            (of_client, of_service),
            "the creator pays as long as it lives"
        );
        lifecycle::end(creator, Epitaph::exited(0));
        assert!(client.kept_for() - of_client >= QUEUES);
        assert_eq!(service.kept_for(), of_service);
        hand_over(client, next, importer);
        assert_eq!(client.kept_for(), of_client);
        assert!(next.kept_for() - of_next >= QUEUES, "whoever gets an end pays");
        lifecycle::end(next, Epitaph::exited(0));
        assert!(service.kept_for() - of_service >= QUEUES, "one is left");
        assert!(close(service, exporter).is_ok());
        assert_eq!(service.kept_for(), of_service);
    }
}

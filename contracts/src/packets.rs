//! Batches of packets as `NicDevice.Exchange` carries them: records, and a buffer attached for each.
//!
//! Who owns a buffer: whoever holds the batch. Deliberately not here: what packets mean.

use alloc::vec::Vec;

use sip::exheap::{ExBlock, ExVec};

use crate::{Packet, PacketFlags};

/// A buffer and what is in it.
pub type Filled = (Packet, ExVec<u8>);

/// An empty buffer's record.
pub fn empty() -> Packet {
    sent(0)
}

/// The record of a packet to send, of this length.
pub fn sent(length: u32) -> Packet {
    Packet { received_ns: 0, length, flags: PacketFlags::empty(), segment_bytes: 0 }
}

/// Makes a batch. What does not fit, because memory ran out, is lost with its buffer, as packets may be; with no
/// memory at all there is no batch.
pub fn pack(packets: impl ExactSizeIterator<Item = Filled>) -> Option<ExVec<Packet>> {
    let mut batch = ExVec::<Packet>::new(packets.len()).ok()?;
    let mut attached = 0;
    for (record, buffer) in packets {
        if batch.attach(buffer).is_ok() {
            if let Some(place) = batch.as_mut_slice().get_mut(attached) {
                *place = record;
            }
            attached += 1;
        }
    }
    Some(batch)
}

/// Takes a batch apart, in its order. Records without a buffer, and what is attached but no buffer of bytes, are
/// left out; no record tells of more bytes than its buffer has.
pub fn unpack(mut batch: ExVec<Packet>) -> Vec<Filled> {
    let mut blocks: Vec<ExBlock> = Vec::with_capacity(batch.len());
    while let Ok(Some(block)) = batch.detach() {
        blocks.push(block);
    }
    let records = batch.as_slice().iter().copied();
    let buffers = blocks.into_iter().rev();
    let pairs = records.zip(buffers).filter_map(|(record, block)| Some((record, block.into_vec::<u8>().ok()?)));
    pairs
        .map(|(mut record, buffer)| {
            record.length = record.length.min(u32::try_from(buffer.len()).unwrap_or(u32::MAX));
            (record, buffer)
        })
        .collect()
}

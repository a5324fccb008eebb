//! Batches of packets in `NicDevice.Exchange`: records, each with an attached buffer.
//!
//! The owner of a batch owns its buffers. Deliberately not here: protocols.

use alloc::vec::Vec;

use contracts::{Packet, PacketFlags};
use sip::exheap::{ExBlock, ExVec};

/// A record and its buffer.
pub type Filled = (Packet, ExVec<u8>);

/// Returns the record of an empty buffer.
pub fn empty() -> Packet {
    sent(0)
}

/// Returns the record of a packet of this length to send, without offloads.
pub fn sent(length: u32) -> Packet {
    Packet { received_ns: 0, length, flags: PacketFlags::empty(), segment_bytes: 0 }
}

/// Builds a batch. A packet for which memory runs out is dropped with its buffer; `None` if there is no memory for
/// the batch.
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

/// Splits a batch, in order. Records without a buffer of bytes are dropped, and lengths are clamped to the buffers.
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

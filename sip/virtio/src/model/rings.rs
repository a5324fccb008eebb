//! The device's side of the rings (virtio 1.2, section 2.7), with fault injection.

use std::collections::VecDeque;
use std::vec::Vec;

use super::Behaviour;
use super::arena::Arena;
use super::faults::Faults;

const DESCRIPTOR_BYTES: u64 = 16;
const CONTINUES: u16 = 1;
const WRITABLE: u16 = 2;
/// Maximum requests processed per run: a confused driver must not hang the test.
const MAX_AT_ONCE: usize = 256;
/// Maximum bytes of a request.
const MAX_CHAIN_BYTES: usize = 1 << 24;

/// The device's view of a queue.
#[derive(Clone, Default)]
pub(super) struct Ring {
    pub size: u16,
    pub enabled: bool,
    pub descriptors: u64,
    pub driver: u64,
    pub device: u64,
    taken: u16,
    used: u16,
    waiting: VecDeque<u16>,
}

struct Chain {
    readable: Vec<u8>,
    writable: Vec<(u64, usize)>,
}

impl Ring {
    /// Processes the available requests. Returns whether any was completed.
    pub fn run(&mut self, queue: u16, behaviour: &mut dyn Behaviour, arena: &Arena, faults: &mut Faults) -> bool {
        if !self.enabled || self.size == 0 {
            return false;
        }
        self.take_available(arena);
        let mut answered = false;
        for _ in 0..self.waiting.len().min(MAX_AT_ONCE) {
            if faults.strikes() {
                self.misbehave(arena, faults);
                answered = true;
            }
            let Some(head) = self.waiting.pop_front() else { break };
            let Some(chain) = self.chain(head, arena) else { continue };
            let room = chain.writable.iter().map(|(_, bytes)| bytes).sum();
            match behaviour.answer(queue, &chain.readable, room) {
                None => {
                    self.waiting.push_front(head);
                    break;
                }
                Some(answer) => {
                    scatter(&chain, &answer, arena, faults);
                    let mut written = answer.len() as u32;
                    let mut id = u32::from(head);
                    if faults.strikes() {
                        match faults.numbers().below(5) {
                            0 => written = faults.numbers().number() as u32,
                            1 => written = written.saturating_sub(1 + faults.numbers().below(16) as u32),
                            2 => id = faults.numbers().number() as u32,
                            3 => id = faults.numbers().below(self.size.into()) as u32,
                            // It never completes this one.
                            _ => continue,
                        }
                    }
                    self.push_used(id, written, arena);
                    answered = true;
                }
            }
        }
        answered
    }

    fn take_available(&mut self, arena: &Arena) {
        let mut index = [0; 2];
        if !arena.read(self.driver + 2, &mut index) {
            return;
        }
        let available = u16::from_le_bytes(index);
        while self.taken != available && self.waiting.len() < usize::from(self.size) {
            let mut head = [0; 2];
            arena.read(self.driver + 4 + 2 * u64::from(self.taken % self.size), &mut head);
            self.waiting.push_back(u16::from_le_bytes(head));
            self.taken = self.taken.wrapping_add(1);
        }
    }

    fn chain(&self, head: u16, arena: &Arena) -> Option<Chain> {
        let mut chain = Chain { readable: Vec::new(), writable: Vec::new() };
        let mut room = MAX_CHAIN_BYTES;
        let mut next = head;
        for _ in 0..self.size {
            let mut bytes = [0; DESCRIPTOR_BYTES as usize];
            if next >= self.size || !arena.read(self.descriptors + DESCRIPTOR_BYTES * u64::from(next), &mut bytes) {
                return None;
            }
            let descriptor = u128::from_le_bytes(bytes);
            let (address, length) = (descriptor as u64, (descriptor >> 64) as u32 as usize);
            let flags = (descriptor >> 96) as u16;
            // A descriptor overwritten by the device can have any length; do not allocate that much.
            room = room.checked_sub(length)?;
            if flags & WRITABLE != 0 {
                chain.writable.push((address, length));
            } else {
                let start = chain.readable.len();
                chain.readable.resize(start + length, 0);
                arena.read(address, &mut chain.readable[start..]);
            }
            if flags & CONTINUES == 0 {
                return Some(chain);
            }
            next = (descriptor >> 112) as u16;
        }
        None
    }

    fn push_used(&mut self, id: u32, written: u32, arena: &Arena) {
        let entry = self.device + 4 + 8 * u64::from(self.used % self.size);
        arena.write(entry, &id.to_le_bytes());
        arena.write(entry + 4, &written.to_le_bytes());
        self.used = self.used.wrapping_add(1);
        arena.write(self.device + 2, &self.used.to_le_bytes());
    }

    /// Misbehaves independently of a request.
    fn misbehave(&mut self, arena: &Arena, faults: &mut Faults) {
        let numbers = faults.numbers();
        let noise = numbers.number();
        match numbers.below(6) {
            // Completion of a request that was never made.
            0 => self.push_used(noise as u32, numbers.number() as u32, arena),
            // A used index far off.
            1 => {
                self.used = noise as u16;
                arena.write(self.device + 2, &self.used.to_le_bytes());
            }
            // Sets the flag that suppresses notifications.
            2 => self.scribble(self.device, 1, arena),
            // Writes to the driver's areas.
            3 => {
                self.scribble(self.descriptors + noise % (DESCRIPTOR_BYTES * u64::from(self.size)), noise as u8, arena)
            }
            4 => self.scribble(self.driver + noise % (4 + 2 * u64::from(self.size)), noise as u8, arena),
            // Reorders requests.
            _ => self.waiting.rotate_left((noise % (self.waiting.len().max(1) as u64)) as usize),
        }
    }

    fn scribble(&self, address: u64, byte: u8, arena: &Arena) {
        // The rings are pinned while the queue is enabled.
        arena.write(address, &[byte]);
    }
}

/// Writes an answer to the writable descriptors.
fn scatter(chain: &Chain, answer: &[u8], arena: &Arena, faults: &mut Faults) {
    let mut answer = answer.to_vec();
    if faults.strikes() && !answer.is_empty() {
        let at = faults.numbers().below(answer.len() as u64) as usize;
        // Half of the time the last byte, which is a disk's status.
        let at = if faults.numbers().below(2) == 0 { at } else { answer.len() - 1 };
        answer[at] = faults.numbers().number() as u8;
    }
    let mut rest = answer.as_slice();
    for &(address, bytes) in &chain.writable {
        let (now, later) = rest.split_at(bytes.min(rest.len()));
        arena.write(address, now);
        rest = later;
    }
}

//! Requests to devices: when each completes, and how.
//!
//! Key type: [`Pending`]. Devices are numbered as [`Target::of`] has it. Deliberately not here: what disks keep
//! (`disk`), and telling the kernel.

use std::io;

use abi::packets::NO_WAIT;
use hal_api::{DeviceFailure, DeviceOperation, DeviceRequest, DeviceResult, Submitted};
use hal_hosted::shared::Memory;

use crate::choices::Kind;
use crate::link::WaitingRead;
use crate::state::State;
use crate::trace::{Entry, Trace};

/// Least time of a disk request, and the range above it, in nanoseconds.
const DISK_NS: u64 = 20_000;
const DISK_MORE_NS: u64 = 80_000;
/// Range of the additional time of a delayed request.
const DELAY_NS: u64 = 50_000_000;
const CONSOLE_NS: u64 = 10_000;
/// One of this many reads of a disk completes at once, as from a cache.
const CACHED: u64 = 4;
/// Maximum bytes of a request for random bytes.
const MAX_RANDOM_BYTES: usize = 16 * 1024;

/// A device, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Console,
    Random,
    Disk(usize),
    Network,
}

impl Target {
    /// Returns the device with this number: the console, random bytes, then the disks, then the network card.
    pub(crate) fn of(device: usize, disks: usize) -> Target {
        match device {
            0 => Target::Console,
            1 => Target::Random,
            disk if disk < disks + 2 => Target::Disk(disk - 2),
            _ => Target::Network,
        }
    }
}

/// A request in flight.
#[derive(Debug)]
pub(crate) struct Pending {
    token: u64,
    target: Target,
    operation: DeviceOperation,
    offset: u64,
    memory: Memory,
    fails: bool,
    /// For a flush of a disk: the writes that it covers.
    covers: u64,
}

/// What became of a submission.
pub(crate) enum Outcome {
    /// For the kernel.
    Submitted(Submitted),
    /// The power fails; the number decides what survives.
    PowerCut(u64),
}

const REFUSED: Outcome = Outcome::Submitted(Submitted::Complete(Err(DeviceFailure)));

impl State {
    /// Starts a request on a processor.
    pub(crate) fn submit(&mut self, processor: usize, request: DeviceRequest, memory: Memory) -> Outcome {
        let target = Target::of(request.device, self.drives.len());
        let DeviceRequest { token, operation, offset, bytes, .. } = request;
        self.note(processor, Entry::Request, &[request.device as u64, operation as u64, offset, bytes as u64]);
        let pending = Pending { token, target, operation, offset, memory, fails: false, covers: 0 };
        match target {
            Target::Random if operation == DeviceOperation::Read => {
                let drawn = self.random(bytes.min(MAX_RANDOM_BYTES));
                Outcome::Submitted(Submitted::Complete(Ok(memory.fill(&drawn))))
            }
            Target::Random => REFUSED,
            Target::Console => self.queue(pending, CONSOLE_NS),
            Target::Disk(number) => self.submit_to_disk(processor, number, pending),
            Target::Network => self.submit_to_network(processor, pending),
        }
    }

    fn submit_to_disk(&mut self, processor: usize, number: usize, mut pending: Pending) -> Outcome {
        let Some(drive) = self.drives.get(number) else { return REFUSED };
        let is_read = pending.operation == DeviceOperation::Read;
        let is_flush = pending.operation == DeviceOperation::Flush;
        let read_only = drive.disk.read_only();
        if !is_flush && !drive.disk.holds(pending.offset, pending.memory.bytes()) || read_only && !is_read && !is_flush
        {
            return REFUSED;
        }
        pending.covers = drive.disk.written();
        if !read_only && let Some(chance) = self.fault(processor, Kind::Cut) {
            return Outcome::PowerCut(chance);
        }
        pending.fails = match pending.operation {
            DeviceOperation::Read => self.fault(processor, Kind::ReadError).is_some(),
            DeviceOperation::Write => self.fault(processor, Kind::WriteError).is_some(),
            DeviceOperation::Flush => false,
        };
        let delay = self.fault(processor, Kind::Delay).map_or(0, |drawn| drawn % DELAY_NS);
        if is_read && delay == 0 && self.choices.below(CACHED) == 0 {
            return Outcome::Submitted(Submitted::Complete(self.perform(processor, &pending)));
        }
        let usual = DISK_NS + self.choices.below(DISK_MORE_NS);
        self.queue(pending, usual + delay)
    }

    fn submit_to_network(&mut self, processor: usize, pending: Pending) -> Outcome {
        let Some(link) = &mut self.link else { return REFUSED };
        let Pending { token, memory, operation, offset, .. } = pending;
        let done = match operation {
            DeviceOperation::Flush => 0,
            DeviceOperation::Read => match link.read(memory) {
                Some(bytes) => bytes,
                None if offset & NO_WAIT != 0 => 0,
                None => {
                    link.wait(WaitingRead { token, memory });
                    return Outcome::Submitted(Submitted::Queued);
                }
            },
            // No offload is offered.
            DeviceOperation::Write if offset != 0 => return REFUSED,
            DeviceOperation::Write => {
                let bytes = whole(memory);
                let (count, hash) = (bytes.len(), Trace::of(&bytes));
                let is_sent = link.send(self.clock.now_ns(), bytes);
                self.note(processor, Entry::Bytes, &[1, count as u64, hash]);
                if is_sent { count } else { 0 }
            }
        };
        Outcome::Submitted(Submitted::Complete(Ok(done)))
    }

    /// Meets the horizon: the other machines get what was sent, and frames for this one become events.
    pub(crate) fn exchange(&mut self, next_ns: u64) -> io::Result<()> {
        let Some(link) = &mut self.link else { return Ok(()) };
        for frame in link.exchange(next_ns)? {
            let number = self.next_event;
            self.next_event += 1;
            self.clock.at(frame.time_ns, number);
            link.announce(number, frame.bytes);
        }
        Ok(())
    }

    fn queue(&mut self, pending: Pending, delay_ns: u64) -> Outcome {
        let number = self.next_event;
        self.next_event += 1;
        self.pending.insert(number, pending);
        self.clock.after(delay_ns, number);
        Outcome::Submitted(Submitted::Queued)
    }

    /// Completes the next request that is due; returns its token and its result.
    pub(crate) fn complete_due(&mut self, processor: usize) -> Option<(u64, DeviceResult)> {
        loop {
            let number = self.clock.take_due()?;
            let (token, result) = match self.pending.remove(&number) {
                Some(pending) => (pending.token, self.perform(processor, &pending)),
                None => match self.link.as_mut().and_then(|link| link.arrive(number)) {
                    Some((read, bytes)) => (read.token, Ok(bytes)),
                    None => continue,
                },
            };
            self.note(processor, Entry::Complete, &[token, result.map_or(u64::MAX, |bytes| bytes as u64)]);
            return Some((token, result));
        }
    }

    fn perform(&mut self, processor: usize, pending: &Pending) -> DeviceResult {
        if pending.fails {
            return Err(DeviceFailure);
        }
        let (memory, operation) = (pending.memory, pending.operation);
        match pending.target {
            Target::Console => self.perform_on_console(processor, operation, memory),
            Target::Random | Target::Network => Err(DeviceFailure),
            Target::Disk(number) => {
                let disk = &mut self.drives[number].disk;
                match operation {
                    DeviceOperation::Read => return Ok(memory.fill(disk.read(pending.offset, memory.bytes()))),
                    DeviceOperation::Write => disk.write(pending.offset, whole(memory)),
                    DeviceOperation::Flush => disk.flush(pending.covers),
                }
                if operation == DeviceOperation::Write {
                    let words = [number as u64 + 2, memory.bytes() as u64, Trace::of(&whole(memory))];
                    self.note(processor, Entry::Bytes, &words);
                    return Ok(memory.bytes());
                }
                Ok(0)
            }
        }
    }

    fn perform_on_console(&mut self, processor: usize, operation: DeviceOperation, memory: Memory) -> DeviceResult {
        match operation {
            DeviceOperation::Read => Ok(memory.fill(&self.console.read(memory.bytes()))),
            DeviceOperation::Write => {
                let bytes = whole(memory);
                self.note(processor, Entry::Bytes, &[0, bytes.len() as u64, Trace::of(&bytes)]);
                if self.console.write(&bytes) { Ok(bytes.len()) } else { Err(DeviceFailure) }
            }
            DeviceOperation::Flush => Ok(0),
        }
    }

    /// Takes the writes to a disk that are in flight, for a power cut.
    pub(crate) fn take_writes_in_flight(&mut self, number: usize) -> Vec<(u64, Vec<u8>)> {
        let writes = self.pending.values().filter(|pending| {
            pending.target == Target::Disk(number) && pending.operation == DeviceOperation::Write && !pending.fails
        });
        writes.map(|pending| (pending.offset, whole(pending.memory))).collect()
    }
}

fn whole(memory: Memory) -> Vec<u8> {
    let mut bytes = vec![0; memory.bytes()];
    memory.copy_out(0, &mut bytes);
    bytes
}

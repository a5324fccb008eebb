//! Records a disk's requests in order, and derives its possible contents after a power loss at some moment.
//!
//! A disk has a volatile write cache. A write is durable when a flush that began after the write's end has ended;
//! before that, each of its sectors may or may not be on the medium. Writes to one sector are never reordered, so that
//! choosing a subset in order gives every possible state.

use std::rc::Rc;

use crate::adversary::image::Image;
use crate::adversary::noise::Random;

const SECTOR_BYTES: usize = 512;

/// A requested write.
#[derive(Clone)]
pub struct Write {
    pub offset: u64,
    pub bytes: Rc<[u8]>,
}

/// Events in order.
#[derive(Clone, Copy)]
pub enum Event {
    /// The write with this number started.
    WriteBegun(usize),
    /// The write with this number completed.
    WriteDone(usize),
    FlushBegun,
    /// The flush that started at this place completed.
    FlushDone(usize),
}

/// Part of the non-durable writes that is on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Luck {
    /// All: the disk wrote in order, and fast.
    All,
    /// None.
    None,
    /// Some writes whole, others not at all.
    Writes(u64),
    /// Some sectors of some writes.
    Sectors(u64),
}

/// The complete history of a disk.
#[derive(Clone)]
pub struct Recording {
    start: Image,
    writes: Vec<Write>,
    events: Vec<Event>,
}

impl Recording {
    pub fn new(start: Image) -> Recording {
        Recording { start, writes: Vec::new(), events: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Returns the number of the write.
    pub fn begin_write(&mut self, write: Write) -> usize {
        self.writes.push(write);
        self.events.push(Event::WriteBegun(self.writes.len() - 1));
        self.writes.len() - 1
    }

    /// Returns the places just after the start of a write: the moments worth a crash.
    pub fn moments(&self) -> impl Iterator<Item = usize> {
        let is_moment = |event: &Event| !matches!(event, Event::FlushBegun);
        self.events.iter().enumerate().filter(move |(_, event)| is_moment(event)).map(|(place, _)| place + 1)
    }

    /// Iterates over the moments, which must be in ascending order.
    pub fn crashes(&self) -> Crashes<'_> {
        Crashes { recording: self, medium: self.start.clone(), place: 0, open: Vec::new() }
    }
}

/// States of the medium at ascending moments of a recording.
pub struct Crashes<'a> {
    recording: &'a Recording,
    /// Durable content.
    medium: Image,
    place: usize,
    /// Writes that started and are not durable: number, and place of completion.
    open: Vec<(usize, Option<usize>)>,
}

impl Crashes<'_> {
    /// Returns the medium after a power loss following the first `moment` events.
    pub fn at(&mut self, moment: usize, luck: Luck) -> Image {
        self.advance(moment);
        let mut image = self.medium.clone();
        let mut random = match luck {
            Luck::Writes(seed) | Luck::Sectors(seed) => Random::new(seed),
            Luck::All | Luck::None => Random::new(0),
        };
        // In different crashes, most or few writes reach the medium.
        let share = random.below(4) + 1;
        for (number, _) in &self.open {
            let write = &self.recording.writes[*number];
            match luck {
                Luck::None => {}
                Luck::All => image.write(write.offset, &write.bytes),
                Luck::Writes(_) if random.below(5) < share => image.write(write.offset, &write.bytes),
                Luck::Writes(_) => {}
                Luck::Sectors(_) => {
                    for (index, sector) in write.bytes.chunks(SECTOR_BYTES).enumerate() {
                        if random.below(5) < share {
                            image.write(write.offset + (index * SECTOR_BYTES) as u64, sector);
                        }
                    }
                }
            }
        }
        image
    }

    /// Returns the number of non-durable writes.
    pub fn uncertain(&self) -> usize {
        self.open.len()
    }

    fn advance(&mut self, moment: usize) {
        assert!(moment >= self.place, "moments rise");
        while self.place < moment {
            match self.recording.events[self.place] {
                Event::WriteBegun(number) => self.open.push((number, None)),
                Event::WriteDone(number) => {
                    if let Some(write) = self.open.iter_mut().find(|write| write.0 == number) {
                        write.1 = Some(self.place);
                    }
                }
                Event::FlushBegun => {}
                Event::FlushDone(begun) => self.settle(begun),
            }
            self.place += 1;
        }
    }

    /// Writes that ended before the flush began are durable now.
    fn settle(&mut self, flush_begun: usize) {
        let is_settled = |write: &(usize, Option<usize>)| write.1.is_some_and(|ended| ended < flush_begun);
        for write in self.open.iter().filter(|write| is_settled(write)) {
            let write = &self.recording.writes[write.0];
            self.medium.write(write.offset, &write.bytes);
        }
        self.open.retain(|write| !is_settled(write));
    }
}

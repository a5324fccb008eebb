//! Advisory locks of ranges of files (fcntl(2), `F_OFD_SETLK`).
//!
//! The table is the server's; each lock in it belongs to one channel and is removed with it, however its client ended.
//! Deliberately not here: waiting for a lock. A client that waits asks again, so that nothing has to be kept for it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use contracts::file::{FileError, LockKind};

/// Most ranges of one channel.
const MAX_RANGES: usize = 32;

/// The locks of a volume's files.
#[derive(Default)]
pub struct Locks {
    /// By number of the file. A file without locks is not in it.
    files: RefCell<BTreeMap<u64, Vec<Lock>>>,
    channels: Cell<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lock {
    channel: u64,
    kind: LockKind,
    range: Range,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: u64,
    last: u64,
}

impl Range {
    /// The range of a request, whose length is 0 if it has no end.
    fn new(start: u64, length: u64) -> Result<Range, FileError> {
        let last = match length {
            0 => Some(u64::MAX),
            _ => start.checked_add(length - 1),
        };
        Ok(Range { first: start, last: last.ok_or(FileError::TooLarge)? })
    }

    fn overlaps(self, other: Range) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// What is left of this in front of another range, and behind it.
    fn without(self, other: Range) -> [Option<Range>; 2] {
        if !self.overlaps(other) {
            return [Some(self), None];
        }
        let front = (self.first < other.first).then(|| Range { first: self.first, last: other.first - 1 });
        let behind = (self.last > other.last).then(|| Range { first: other.last + 1, last: self.last });
        [front, behind]
    }

    /// Both as one, if nothing is between them.
    fn joined(self, other: Range) -> Option<Range> {
        let touches = self.first <= other.last.saturating_add(1) && other.first <= self.last.saturating_add(1);
        touches.then(|| Range { first: self.first.min(other.first), last: self.last.max(other.last) })
    }
}

impl Locks {
    /// The locks of a new channel, which has none yet.
    pub(crate) fn of_channel(&self, file: u64) -> ChannelLocks<'_> {
        let channel = self.channels.get();
        self.channels.set(channel + 1);
        ChannelLocks { locks: self, file, channel }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.borrow().is_empty()
    }
}

/// The locks of one channel. They end with it.
pub(crate) struct ChannelLocks<'l> {
    locks: &'l Locks,
    file: u64,
    channel: u64,
}

impl ChannelLocks<'_> {
    /// Locks a range, and returns whether it could be. If not, nothing has changed.
    ///
    /// # Errors
    /// The range ends beyond the largest offset; the channel has too many.
    pub(crate) fn lock(&mut self, kind: LockKind, start: u64, length: u64) -> Result<bool, FileError> {
        let range = Range::new(start, length)?;
        if !self.may_lock(kind, range) {
            return Ok(false);
        }
        self.change(range, Some(kind))?;
        Ok(true)
    }

    /// Gives up what this channel has locked of a range.
    ///
    /// # Errors
    /// As [`lock`](Self::lock): the middle of a lock leaves two.
    pub(crate) fn unlock(&mut self, start: u64, length: u64) -> Result<(), FileError> {
        self.change(Range::new(start, length)?, None)
    }

    /// Returns whether no other channel excludes a lock.
    ///
    /// # Errors
    /// The range ends beyond the largest offset.
    pub(crate) fn is_free(&self, kind: LockKind, start: u64, length: u64) -> Result<bool, FileError> {
        Ok(self.may_lock(kind, Range::new(start, length)?))
    }

    fn may_lock(&self, kind: LockKind, range: Range) -> bool {
        let excludes = |lock: &Lock| {
            lock.channel != self.channel
                && lock.range.overlaps(range)
                && (kind == LockKind::Exclusive || lock.kind == LockKind::Exclusive)
        };
        !self.locks.files.borrow().get(&self.file).is_some_and(|locks| locks.iter().any(excludes))
    }

    /// Gives this channel a lock of this kind on a range, or none, in place of those it has there.
    fn change(&mut self, mut range: Range, kind: Option<LockKind>) -> Result<(), FileError> {
        let mut files = self.locks.files.borrow_mut();
        let locks = files.entry(self.file).or_default();
        let mut own = Vec::new();
        for lock in locks.iter().filter(|lock| lock.channel == self.channel) {
            for rest in lock.range.without(range).into_iter().flatten() {
                // Neighbours of one kind are one lock, so that a channel that locks byte after byte has one.
                match rest.joined(range) {
                    Some(joined) if kind == Some(lock.kind) => range = joined,
                    _ => own.push(Lock { range: rest, ..*lock }),
                }
            }
        }
        own.extend(kind.map(|kind| Lock { channel: self.channel, kind, range }));
        let has_room = own.len() <= MAX_RANGES;
        if has_room {
            locks.retain(|lock| lock.channel != self.channel);
            locks.append(&mut own);
        }
        if locks.is_empty() {
            files.remove(&self.file);
        }
        if has_room { Ok(()) } else { Err(FileError::Exhausted) }
    }
}

impl Drop for ChannelLocks<'_> {
    fn drop(&mut self) {
        let mut files = self.locks.files.borrow_mut();
        let Some(locks) = files.get_mut(&self.file) else { return };
        locks.retain(|lock| lock.channel != self.channel);
        if locks.is_empty() {
            files.remove(&self.file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use LockKind::{Exclusive, Shared};

    #[test]
    fn shared_locks_exclude_exclusive_ones_alone() {
        let table = Locks::default();
        let (mut one, mut two, mut other_file) = (table.of_channel(7), table.of_channel(7), table.of_channel(8));
        assert_eq!(one.lock(Shared, 10, 10), Ok(true));
        assert_eq!(two.lock(Shared, 0, 15), Ok(true));
        assert_eq!(two.lock(Exclusive, 19, 1), Ok(false));
        assert_eq!((two.is_free(Exclusive, 19, 1), two.is_free(Shared, 19, 1)), (Ok(false), Ok(true)));
        assert_eq!(two.lock(Exclusive, 20, 0), Ok(true));
        assert_eq!(one.lock(Shared, u64::MAX, 1), Ok(false));
        assert_eq!(other_file.lock(Exclusive, 0, 0), Ok(true));
        // Its own do not matter.
        assert_eq!(one.lock(Exclusive, 15, 5), Ok(true));
        assert_eq!(two.is_free(Shared, 15, 1), Ok(false));
    }

    #[test]
    fn locks_end_with_their_channel() {
        let table = Locks::default();
        let (mut one, two) = (table.of_channel(7), table.of_channel(7));
        assert_eq!(one.lock(Exclusive, 0, 0), Ok(true));
        assert_eq!(two.is_free(Shared, 5, 1), Ok(false));
        drop(one);
        assert_eq!(two.is_free(Exclusive, 0, 0), Ok(true));
        assert!(table.is_empty());
    }

    #[test]
    fn ranges_have_an_end_and_channels_a_number_of_them() {
        let table = Locks::default();
        let mut one = table.of_channel(7);
        assert_eq!(one.lock(Shared, 2, u64::MAX), Err(FileError::TooLarge));
        assert_eq!(one.unlock(u64::MAX, 2), Err(FileError::TooLarge));
        assert_eq!(one.is_free(Shared, u64::MAX, 2), Err(FileError::TooLarge));
        assert_eq!(one.lock(Shared, 1, u64::MAX), Ok(true));
        assert_eq!(one.unlock(0, 0), Ok(()));
        for number in 0..MAX_RANGES as u64 {
            assert_eq!(one.lock(Shared, number * 10, 5), Ok(true));
        }
        assert_eq!(one.lock(Shared, 1_000, 5), Err(FileError::Exhausted));
        assert_eq!(one.unlock(2, 1), Err(FileError::Exhausted));
        assert_eq!(table.of_channel(7).is_free(Exclusive, 2, 1), Ok(false));
        // Those beside one another become one.
        assert_eq!(one.lock(Shared, 5, 5), Ok(true));
        assert_eq!(one.lock(Shared, 1_000, 5), Ok(true));
        assert_eq!(one.unlock(0, 0), Ok(()));
        assert!(table.is_empty());
    }

    /// Random requests of three channels, beside a table of the kind that each channel has of each byte.
    #[test]
    fn locks_are_those_of_a_byte_by_byte_model() {
        const BYTES: usize = 24;
        let table = Locks::default();
        let mut channels: Vec<_> = (0..3).map(|_| table.of_channel(1)).collect();
        let mut model = [[None; BYTES]; 3];
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = |limit: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % limit
        };
        let mut granted = 0;
        for _ in 0..100_000 {
            let (channel, start) = (next(3) as usize, next(BYTES as u64));
            let length = 1 + next(BYTES as u64 - start);
            let bytes = start as usize..(start + length) as usize;
            let kind = if next(2) == 0 { Shared } else { Exclusive };
            let is_free = (0..3)
                .filter(|&other| other != channel)
                .all(|other| model[other][bytes.clone()].iter().flatten().all(|&has| kind == Shared && has == Shared));
            match next(4) {
                0 => {
                    assert_eq!(channels[channel].unlock(start, length), Ok(()));
                    model[channel][bytes].fill(None);
                }
                1 => assert_eq!(channels[channel].is_free(kind, start, length), Ok(is_free)),
                2 if next(50) == 0 => {
                    channels[channel] = table.of_channel(1);
                    model[channel].fill(None);
                }
                _ => {
                    assert_eq!(channels[channel].lock(kind, start, length), Ok(is_free));
                    if is_free {
                        granted += 1;
                        model[channel][bytes].fill(Some(kind));
                    }
                }
            }
            let files = table.files.borrow();
            for (channel, model) in channels.iter().zip(&model) {
                let mut found = [None; BYTES];
                for lock in files.get(&1).into_iter().flatten().filter(|lock| lock.channel == channel.channel) {
                    let place = &mut found[lock.range.first as usize..=lock.range.last as usize];
                    assert!(place.iter().all(Option::is_none), "two locks of one byte");
                    place.fill(Some(lock.kind));
                }
                assert_eq!(&found, model);
            }
        }
        assert!(granted > 10_000, "{granted}");
        drop(channels);
        assert!(table.is_empty());
    }
}

//! The kernel's side of a mapper: commands, and waiting until they are done.
//!
//! Key type: [`Mapper`]. A mapper acknowledges through the file of controls, in a word that no domain maps. Deliberately
//! not here: what is commanded.

use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::control::{Command, Control};
use super::stub;
use super::window::{self, COMMAND_WORDS, RING};

/// Commands that a process is made with, at most.
pub(super) const MAX_FIRST_COMMANDS: usize = 12;
/// Commands between two acknowledgements: the ring has room for them, the acknowledgement and the first ones.
pub(super) const BATCH: usize = RING - MAX_FIRST_COMMANDS - 1;
/// Looks for an acknowledgement, giving way after each, before a sleep: longer than it takes to wake a mapper.
const LOOKS: u32 = 200;
/// Sleep between two later looks, in nanoseconds.
const SLEEP_NS: i64 = 100_000;
/// Word of a command for a system call of at most four arguments that holds what the call writes.
const VALUE_WORD: usize = 5;

/// A process that does what it is commanded.
#[derive(Debug)]
pub(super) struct Mapper {
    window: usize,
    /// Readable when the process has ended.
    process: OwnedFd,
    pub(super) control: Control,
}

/// What a mapper was told; its user keeps it under a lock.
#[derive(Debug, Default)]
pub(super) struct Issued {
    /// Commands put into the ring.
    count: u32,
    /// Nobody has waited for the last ones yet.
    is_pending: bool,
    is_ended: bool,
}

impl Issued {
    /// Nothing but these first commands.
    pub(super) fn first(count: usize) -> Self {
        assert!(count <= MAX_FIRST_COMMANDS, "the ring has room for what comes later");
        Self { count: count as u32, ..Self::default() }
    }
}

/// Returns a command that must succeed.
pub(super) fn command(call: libc::c_long, arguments: [u64; 6]) -> Command {
    let [a, b, c, d, e, f] = arguments;
    [call as u64, a, b, c, d, e, f, stub::MUST_SUCCEED]
}

/// Returns the same command as one of another kind.
pub(super) fn of_kind(mut command: Command, kind: u64) -> Command {
    command[COMMAND_WORDS - 1] = kind;
    command
}

impl Mapper {
    /// The mapper of a process with a window at this address.
    pub(super) fn new(window: usize, process: OwnedFd, control: Control) -> Self {
        Self { window, process, control }
    }

    /// Has the mapper do all these, and whatever it was told before; false if the process has ended, which it does if one
    /// fails that must not.
    pub(super) fn command(&self, issued: &mut Issued, commands: &[Command]) -> bool {
        let (batch, rest) = commands.split_at(commands.len().min(BATCH));
        if !self.is_done(issued) {
            return false;
        }
        self.begin(issued, batch);
        self.is_done(issued) && (rest.is_empty() || self.command(issued, rest))
    }

    /// Has the mapper do these, of which the ring has room. Whatever it was told before [is done](Self::is_done).
    pub(super) fn begin(&self, issued: &mut Issued, commands: &[Command]) {
        assert!(commands.len() <= BATCH && !issued.is_pending, "the ring has room");
        issued.is_pending = true;
        commands.iter().for_each(|command| self.put(issued, command));
        self.put_acknowledgement(issued);
        self.control.issue(issued.count);
    }

    /// Waits until the mapper has done all; false if the process has ended.
    pub(super) fn is_done(&self, issued: &mut Issued) -> bool {
        if issued.is_pending && !issued.is_ended {
            issued.is_ended = !self.is_acknowledged(issued.count);
            issued.is_pending = false;
        }
        !issued.is_ended
    }

    fn put(&self, issued: &mut Issued, command: &Command) {
        self.control.put(issued.count, command);
        issued.count = issued.count.wrapping_add(1);
    }

    /// The mapper writes the number of commands up to this one, which is a word of the command itself.
    fn put_acknowledgement(&self, issued: &mut Issued) {
        let place = issued.count as usize % RING * COMMAND_WORDS * 8;
        let value = self.window + window::COMMANDS + window::RING_OFFSET + place + VALUE_WORD * 8;
        let (file, offset) = (window::CONTROLS_FILE as u64, self.control.acknowledged_offset());
        let number = issued.count.wrapping_add(1).into();
        self.put(issued, &command(libc::SYS_pwrite64, [file, value as u64, 4, offset, number, 0]));
    }

    /// Waits for the mapper; false if the process has ended.
    fn is_acknowledged(&self, number: u32) -> bool {
        for look in 0.. {
            if self.control.acknowledged() == number {
                return true;
            }
            if look < LOOKS {
                // The mapper may be waiting for this processor.
                thread::yield_now();
            } else if self.ends_within(SLEEP_NS) {
                // It may have done it before.
                return self.control.acknowledged() == number;
            }
        }
        false
    }

    /// Whether the process has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ends_within(0)
    }

    fn ends_within(&self, nanoseconds: i64) -> bool {
        let mut files = [PollFd::from_borrowed_fd(self.process.as_fd(), PollFlags::IN)];
        poll(&mut files, Some(&Timespec { tv_sec: 0, tv_nsec: nanoseconds })).is_ok_and(|count| count > 0)
    }

    /// Ends the process. When this returns it has no memory.
    pub(super) fn end(&self, issued: &mut Issued) {
        if !std::mem::replace(&mut issued.is_ended, true) {
            self.put(issued, &command(libc::SYS_exit_group, [0; 6]));
            self.control.issue(issued.count);
        }
        let mut files = [PollFd::from_borrowed_fd(self.process.as_fd(), PollFlags::IN)];
        while poll(&mut files, None).is_err() {}
    }

    /// Whether the process was ended, or was seen to have.
    pub(super) fn is_ended(issued: &Issued) -> bool {
        issued.is_ended
    }
}

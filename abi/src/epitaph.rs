//! How a SIP came to its end.

/// The kind of a SIP's end, as `process_wait` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum EpitaphKind {
    /// It called `process_exit`; the value is its exit status.
    Exited = 0,
    /// It panicked.
    Panicked = 1,
    /// The processor faulted in its code: bad address, bad instruction, division.
    Faulted = 2,
    /// A stack was used up.
    StackOverflow = 3,
    /// Its parent, or a SIP that may, stopped it.
    Stopped = 4,
    /// It sent a message that its contract does not allow.
    ContractViolation = 5,
    /// Its parent ended.
    Orphaned = 6,
    /// It could not be started.
    NotStarted = 7,
    /// The machine's memory ran out, and it held most, alone or with those that it started and was started by.
    MemoryRanOut = 8,
}

impl EpitaphKind {
    /// The kind with this number, if there is one.
    pub const fn from_number(number: u64) -> Option<EpitaphKind> {
        Some(match number {
            0 => EpitaphKind::Exited,
            1 => EpitaphKind::Panicked,
            2 => EpitaphKind::Faulted,
            3 => EpitaphKind::StackOverflow,
            4 => EpitaphKind::Stopped,
            5 => EpitaphKind::ContractViolation,
            6 => EpitaphKind::Orphaned,
            7 => EpitaphKind::NotStarted,
            8 => EpitaphKind::MemoryRanOut,
            _ => return None,
        })
    }
}

/// Why a SIP stops another one; part of the other's epitaph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum StopReason {
    /// A person or program asked for it.
    Requested = 0,
    /// A person interrupted it (Ctrl-C).
    Interrupted = 1,
    /// The system shuts down.
    Shutdown = 2,
}

//! How a SIP ended.

/// The kind of a SIP's end, as reported by `process_wait`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum EpitaphKind {
    /// It called `process_exit`; the value is its exit status.
    Exited = 0,
    /// It panicked.
    Panicked = 1,
    /// A processor fault in its code: bad address, bad instruction, division.
    Faulted = 2,
    /// Stack overflow.
    StackOverflow = 3,
    /// Stopped by its parent, or by a SIP with the permission.
    Stopped = 4,
    /// It violated a contract.
    ContractViolation = 5,
    /// Its parent ended.
    Orphaned = 6,
    /// It could not be started.
    NotStarted = 7,
    /// Out of memory, and it used the most, alone or together with its ancestors and descendants.
    MemoryRanOut = 8,
}

impl EpitaphKind {
    /// The kind with this number.
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

/// Why a SIP stops another; part of the epitaph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum StopReason {
    /// Requested by a person or program.
    Requested = 0,
    /// Interrupted by a person (Ctrl-C).
    Interrupted = 1,
    /// System shutdown.
    Shutdown = 2,
}

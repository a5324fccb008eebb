//! Ownership of one end of a channel, and the loans returned when the other end closes.

use alloc::vec::Vec;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;

use abi::Status;

use super::{Contract, Incoming, Outgoing};
use crate::exheap::ExBlock;
use crate::time::Deadline;
use crate::{raw, thread_block};

/// Owns one end of a channel, of any contract and state. Dropping it closes the end.
///
/// It moves between threads, but is not shared between them, and there is one owner:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<sip::channel::RawEndpoint>();
/// ```
///
/// ```compile_fail,E0277
/// fn copied<T: Clone>() {}
/// copied::<sip::channel::RawEndpoint>();
/// ```
///
/// ```
/// fn moved<T: Send>() {}
/// moved::<sip::channel::RawEndpoint>();
/// ```
pub struct RawEndpoint {
    handle: u64,
    // One thread at a time: Send, not Sync.
    single_thread: PhantomData<Cell<()>>,
}

impl RawEndpoint {
    #[inline(always)]
    pub(crate) fn from_handle(handle: u64) -> RawEndpoint {
        RawEndpoint { handle, single_thread: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn handle(&self) -> u64 {
        self.handle
    }

    /// Gives up the handle without closing it: the endpoint has left the process.
    #[inline(always)]
    pub(crate) fn forget(self) {
        let _ = ManuallyDrop::new(self);
    }

    /// Queries contract, side and state from the kernel.
    pub fn describe(&self) -> Result<Description, Status> {
        raw::value::channel_describe(self.handle)?;
        Ok(Description {
            contract: thread_block::message_word(0),
            importer: thread_block::message_word(1) != 0,
            state: thread_block::message_word(2) as u16,
        })
    }
}

impl Drop for RawEndpoint {
    #[inline]
    fn drop(&mut self) {
        // This value owns the handle, so the kernel cannot refuse it.
        let _ = raw::value::channel_close(self.handle);
    }
}

impl fmt::Debug for RawEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RawEndpoint({:#x})", self.handle)
    }
}

/// The kernel's description of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// [`abi::name_tag`] of the contract.
    pub contract: u64,
    /// Whether it is the importer's end.
    pub importer: bool,
    /// Number of its state in the automaton.
    pub state: u16,
}

/// An endpoint of a known contract, side and state: implemented by generated `Imp<S>` and `Exp<S>`.
///
/// The types are only an aid to the programmer: safety does not depend on them, because the kernel checks each message
/// against the contract itself.
pub trait TypedEndpoint: Sized {
    /// The contract.
    type Contract: Contract;
    /// Whether this is the importer's end.
    const IMPORTER: bool;
    /// Number of its state.
    const STATE: u16;
    /// The untyped endpoint.
    fn raw(&self) -> &RawEndpoint;
    /// Gives up the type.
    fn into_raw(self) -> RawEndpoint;
    /// Asserts that an endpoint is of this type, unchecked; [`AnyEndpoint::downcast`] checks.
    fn from_raw(raw: RawEndpoint) -> Self;
}

/// An endpoint whose contract and state are known to the kernel but not to the type.
#[derive(Debug)]
pub struct AnyEndpoint {
    raw: RawEndpoint,
}

impl AnyEndpoint {
    pub(crate) fn from_raw(raw: RawEndpoint) -> AnyEndpoint {
        AnyEndpoint { raw }
    }

    /// Returns the endpoint typed if the kernel confirms contract, side and state; else as it was.
    pub fn downcast<E: TypedEndpoint>(self) -> Result<E, AnyEndpoint> {
        E::Contract::keep_record();
        let wanted = Description { contract: E::Contract::TAG, importer: E::IMPORTER, state: E::STATE };
        if self.raw.describe() == Ok(wanted) { Ok(E::from_raw(self.raw)) } else { Err(self) }
    }

    /// The untyped endpoint.
    pub fn raw(&self) -> &RawEndpoint {
        &self.raw
    }

    /// Creates a channel of the contract with this [`abi::name_tag`], in its start state; returns the importer's end and
    /// the exporter's.
    ///
    /// # Errors
    /// The program's manifest does not list the contract, or a quota is used up.
    pub fn channel(contract: u64) -> Result<(AnyEndpoint, AnyEndpoint), Status> {
        let importer = raw::value::channel_create(contract)?;
        let exporter = thread_block::message_word(0);
        let own = |handle| AnyEndpoint::from_raw(RawEndpoint::from_handle(handle));
        Ok((own(importer), own(exporter)))
    }

    /// Takes an endpoint that the program was given, by the index of its slot in the manifest; `None` if it was left out
    /// or taken before.
    ///
    /// # Errors
    /// The manifest has no such slot.
    pub fn of_slot(slot: u64) -> Result<Option<AnyEndpoint>, Status> {
        match raw::value::endpoint_take(slot) {
            Ok(handle) => Ok(Some(AnyEndpoint::from_raw(RawEndpoint::from_handle(handle)))),
            Err(Status::NotFound) => Ok(None),
            Err(status) => Err(status),
        }
    }

    /// Sends a message of a contract that only the kernel knows, which ends a sender that breaks it.
    pub fn send(self, message: Outgoing, tag: u16) -> AnyEndpoint {
        AnyEndpoint::from_raw(message.send(self.raw, tag.into()))
    }

    /// Waits until the deadline for the next message; `None` if there is none.
    ///
    /// # Errors
    /// The peer has closed, and all its messages have been received.
    pub fn receive_by(&mut self, deadline: Deadline) -> Result<Option<Incoming>, Closed> {
        super::receive_any(&self.raw, deadline)
    }

    pub(crate) fn into_raw(self) -> RawEndpoint {
        self.raw
    }
}

impl<E: TypedEndpoint> From<E> for AnyEndpoint {
    fn from(endpoint: E) -> AnyEndpoint {
        AnyEndpoint { raw: endpoint.into_raw() }
    }
}

/// A closed channel's returned loans: the blocks lent over it.
#[derive(Debug, Default)]
pub struct Closed {
    home: Vec<ExBlock>,
}

/// Words before the first returned block.
const COUNT_WORDS: usize = 1;
/// Maximum blocks in one answer.
const BLOCKS_PER_ANSWER: usize = (abi::limits::MESSAGE_WORDS - COUNT_WORDS) / abi::limits::BLOCK_WORDS;

impl Closed {
    /// Returns the blocks that were on loan to the peer when it ended, in the order in which they were lent.
    #[must_use = "the blocks are freed when they are dropped"]
    pub fn take_home(&mut self) -> Vec<ExBlock> {
        core::mem::take(&mut self.home)
    }

    /// Takes ownership of the returned blocks.
    ///
    /// # Safety
    ///
    /// The kernel has just answered a receive on the endpoint with this handle with Closed, and nothing has written to the
    /// message buffer since.
    #[cold]
    pub(super) unsafe fn collect(endpoint: u64) -> Closed {
        let mut home = Vec::new();
        loop {
            let count = (thread_block::message_word(0) as usize).min(BLOCKS_PER_ANSWER);
            if count == 0 {
                return Closed { home };
            }
            let mut blocks: [Option<ExBlock>; BLOCKS_PER_ANSWER] = Default::default();
            for (index, block) in blocks.iter_mut().enumerate().take(count) {
                // SAFETY: the kernel has made these blocks the caller's; each is taken once, before another call can
                // overwrite the buffer.
                *block = Some(unsafe { ExBlock::from_message(COUNT_WORDS + index * abi::limits::BLOCK_WORDS) });
            }
            home.extend(blocks.into_iter().flatten());
            // SAFETY: as before; a closed endpoint answers nothing but Closed.
            let answer = unsafe { raw::channel_try_receive(endpoint) };
            if answer.status != Status::Closed as u64 {
                return Closed { home };
            }
        }
    }
}

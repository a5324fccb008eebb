//! Channels: typed endpoints, and what is left of a channel that was closed.
//!
//! Generated bindings build on this module. Deliberately not here: which message may follow which; that is in the generated
//! types and, enforced, in the kernel.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem::ManuallyDrop;

use crate::exheap::ExBlock;
use crate::imports::{self, RECEIVED_WORDS};
use crate::{Deadline, Status};

pub use crate::message::{Incoming, Inline, Outgoing};

/// A contract, as its generated module declares it.
pub trait Contract {
    /// Its name.
    const NAME: &'static str;
    /// [`abi::name_tag`] of its name.
    const TAG: u64;
}

/// A state of a contract.
pub trait State {
    /// The contract.
    type Contract: Contract;
    /// Its number in the automaton.
    const NUMBER: u16;
    /// Its name.
    const NAME: &'static str;
}

/// Owns one end of a channel, of any contract and state. Dropping it closes the end.
#[derive(Debug)]
pub struct RawEndpoint {
    handle: u64,
}

impl RawEndpoint {
    pub(crate) fn from_handle(handle: u64) -> RawEndpoint {
        RawEndpoint { handle }
    }

    pub(crate) fn handle(&self) -> u64 {
        self.handle
    }

    /// Gives up the handle: the endpoint leaves the program.
    pub(crate) fn into_handle(self) -> u64 {
        ManuallyDrop::new(self).handle
    }
}

impl Drop for RawEndpoint {
    fn drop(&mut self) {
        imports::close(self.handle);
    }
}

/// An endpoint of a known contract, side and state: implemented by generated `Imp<S>` and `Exp<S>`. The types are an aid to
/// the programmer; what holds the program to the contract is the kernel, which checks each message.
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

/// An endpoint in a state in which it receives next.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has nothing to receive in its state",
    label = "this end sends next, or the conversation is over",
    note = "send one of the messages of the state; the call gives the endpoint back in the state that follows"
)]
pub trait Receiver: TypedEndpoint {
    /// The messages possible in that state, each with the endpoint in its next state, or closure.
    type Event;
    /// Decodes a message.
    fn finish(self, incoming: Incoming) -> Self::Event;
    /// Makes the event for closure: the peer has ended and all its messages have been received.
    fn finish_closed(self, closed: Closed) -> Self::Event;
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

    pub(crate) fn into_raw(self) -> RawEndpoint {
        self.raw
    }

    /// Returns the endpoint typed if the kernel confirms contract, side and state; else as it was.
    ///
    /// # Errors
    /// It is of another type.
    pub fn downcast<E: TypedEndpoint>(self) -> Result<E, AnyEndpoint> {
        let wanted = [E::Contract::TAG, E::IMPORTER.into(), E::STATE.into()];
        if imports::describe(self.raw.handle) == Ok(wanted) { Ok(E::from_raw(self.raw)) } else { Err(self) }
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

impl Closed {
    /// Returns the blocks that were on loan to the peer when it ended, in the order in which they were lent.
    #[must_use = "the blocks are freed when they are dropped"]
    pub fn take_home(&mut self) -> Vec<ExBlock> {
        core::mem::take(&mut self.home)
    }
}

/// Creates a channel in its start state and returns the importer's end and the exporter's.
///
/// # Errors
/// `NotFound`: the program's manifest does not list the contract. `NotPermitted`: it is one by which the template itself
/// reaches files, sockets or streams. `QuotaExceeded`.
pub fn create<C: Contract>() -> Result<(RawEndpoint, RawEndpoint), Status> {
    let [importer, exporter] = imports::channel(C::TAG)?;
    Ok((RawEndpoint::from_handle(importer), RawEndpoint::from_handle(exporter)))
}

/// Binds a path of the namespace to a new channel, and returns its importing end. The server's first message says whether it
/// was opened. Waits a little for a server that is being restarted.
///
/// # Errors
/// Those of [`create`]; `NotFound`: there is no such name. `ContractMismatch`: its server speaks another contract.
/// `NotPermitted`: the program may not. `Closed`: the server does not run.
pub fn open<C: Contract>(path: &str) -> Result<RawEndpoint, Status> {
    imports::open(path, C::TAG).map(RawEndpoint::from_handle)
}

/// Blocks until the next message or closure.
pub fn receive<R: Receiver>(endpoint: R) -> R::Event {
    match receive_by(endpoint, Deadline::NEVER) {
        Ok(event) => event,
        Err(_) => refused(Status::TimedOut),
    }
}

/// Blocks until the next message or closure, at most until the deadline.
///
/// # Errors
/// The endpoint, at the deadline.
pub fn receive_by<R: Receiver>(endpoint: R, deadline: Deadline) -> Result<R::Event, R> {
    let mut words = Box::new([0; RECEIVED_WORDS]);
    match imports::receive(endpoint.raw().handle, deadline.as_ns(), &mut words) {
        Ok(()) => Ok(endpoint.finish(Incoming::new(words))),
        Err(Status::TimedOut | Status::WouldBlock) => Err(endpoint),
        Err(Status::Closed) => {
            let mut returned = Incoming::new(words);
            let home = core::iter::from_fn(|| returned.next_block()).collect();
            Ok(endpoint.finish_closed(Closed { home }))
        }
        Err(other) => refused(other),
    }
}

/// Takes the next message or closure if there is one.
///
/// # Errors
/// The endpoint, if there is none.
pub fn try_receive<R: Receiver>(endpoint: R) -> Result<R::Event, R> {
    receive_by(endpoint, Deadline::PASSED)
}

/// Panics: the kernel passed a message that the compiled contract does not have in this state.
#[cold]
pub fn unexpected(tag: u64) -> ! {
    panic!("message {tag} is not possible in this state; the program was compiled for another contract")
}

/// Panics: the host does not let this endpoint send or receive, which is the program's own fault.
#[cold]
pub(crate) fn refused(status: Status) -> ! {
    panic!("the host refuses a message on this endpoint: {}", status.text())
}

//! Channels: typed endpoints, messages, and the loans of a closed channel.
//!
//! Key types: [`RawEndpoint`] (owns one end), [`AnyEndpoint`] (an end whose contract is checked at
//! run time), [`Outgoing`] and [`Incoming`] (a message in the thread's buffer), the traits that
//! generated endpoints implement. Neighbours: code generated from contracts builds on this alone;
//! [`select`](mod@crate::select) and [`executor`](mod@crate::executor) wait for many endpoints.
//! Deliberately not here: which message may follow which; that is in the generated types and, enforced, in the
//! kernel's monitor.

mod endpoint;
mod message;
mod record;

use abi::{Status, limits};

pub use endpoint::{AnyEndpoint, Closed, Description, RawEndpoint, TypedEndpoint};
pub use message::{Incoming, Inline, Outgoing};
pub use record::{CONTRACT_MAGIC, ContractRecord};

use crate::time::Deadline;
use crate::{executor, raw};

/// A contract, as its generated module declares it. Implemented by [`contract!`](crate::contract).
pub trait Contract {
    /// Its name.
    const NAME: &'static str;
    /// [`abi::name_tag`] of its name.
    const TAG: u64;
    /// Makes the image carry the record that declares its use of the contract, wherever this call is compiled in; costs no instruction.
    #[doc(hidden)]
    fn keep_record();
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

/// An endpoint in a state in which it receives next.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has nothing to receive in its state",
    label = "this end sends next, or the conversation is over",
    note = "send one of the messages of the state; the call gives the endpoint back in the state that follows"
)]
pub trait Receiver: TypedEndpoint {
    /// The messages possible in that state, each with the endpoint in its next state, or closure.
    type Event;
    /// Decodes a message that lies in the buffer.
    fn finish(self, incoming: Incoming) -> Self::Event;
    /// Makes the event for closure: the peer has ended and all its messages have been received.
    fn finish_closed(self, closed: Closed) -> Self::Event;
}

/// Creates a channel in its start state and returns the importer's end and the exporter's.
pub fn create<C: Contract>() -> Result<(RawEndpoint, RawEndpoint), Status> {
    C::keep_record();
    let importer = raw::value::channel_create(C::TAG)?;
    let exporter = crate::thread_block::message_word(0);
    Ok((RawEndpoint::from_handle(importer), RawEndpoint::from_handle(exporter)))
}

/// Blocks until the next message or closure.
#[inline]
pub fn receive<R: Receiver>(endpoint: R) -> R::Event {
    match receive_with(endpoint, limits::NEVER) {
        Ok(event) => event,
        Err(_) => refused(Status::TimedOut),
    }
}

/// Blocks until the next message or closure, at most until the deadline; then returns the endpoint.
#[inline]
pub fn receive_by<R: Receiver>(endpoint: R, deadline: Deadline) -> Result<R::Event, R> {
    receive_with(endpoint, deadline.as_ns())
}

/// Takes the next message or closure if there is one; else returns the endpoint.
#[inline]
pub fn try_receive<R: Receiver>(endpoint: R) -> Result<R::Event, R> {
    R::Contract::keep_record();
    let handle = endpoint.raw().handle();
    // SAFETY: `received` takes ownership of what the answer carries.
    let received = unsafe { received(handle, raw::channel_try_receive(handle)) };
    finish(endpoint, received)
}

/// Takes the next message if there is one; else returns the endpoint and adds it to the wait set, which reports it with
/// this key.
#[inline]
pub(crate) fn receive_or_add<R: Receiver>(endpoint: R, set: u64, key: u64) -> Result<R::Event, R> {
    R::Contract::keep_record();
    let handle = endpoint.raw().handle();
    // SAFETY: `received` takes ownership of what the answer carries.
    let received = unsafe { received(handle, raw::channel_receive_or_add(handle, set, key)) };
    finish(endpoint, received)
}

/// Waits for the next message of an endpoint without a type; see [`AnyEndpoint::receive_by`].
fn receive_any(endpoint: &RawEndpoint, deadline: Deadline) -> Result<Option<Incoming>, Closed> {
    let handle = endpoint.handle();
    // SAFETY: `received` takes ownership of what the answer carries.
    match unsafe { received(handle, raw::channel_receive(handle, deadline.as_ns())) } {
        Received::Message(incoming) => Ok(Some(incoming)),
        Received::Closed(closed) => Err(closed),
        Received::Nothing => Ok(None),
    }
}

/// Awaits the next message or closure; other tasks of the thread's executor run meanwhile.
pub async fn receive_async<R: Receiver>(endpoint: R) -> R::Event {
    executor::Receive::new(endpoint).await
}

/// Panics: the kernel passed a message that the compiled contract does not have in this state.
#[cold]
pub fn unexpected(tag: u64) -> ! {
    panic!("message {tag} is not possible in this state; the program was compiled for another contract")
}

#[inline(always)]
fn receive_with<R: Receiver>(endpoint: R, deadline: u64) -> Result<R::Event, R> {
    R::Contract::keep_record();
    let handle = endpoint.raw().handle();
    // SAFETY: `received` takes ownership of what the answer carries.
    let received = unsafe { received(handle, raw::channel_receive(handle, deadline)) };
    finish(endpoint, received)
}

/// The outcome of a receive, all of it owned by the process.
enum Received {
    Message(Incoming),
    Closed(Closed),
    Nothing,
}

/// Takes ownership of what a receive returned, before any code of the program runs, which could overwrite the message
/// buffer.
///
/// # Safety
///
/// `answer` is the kernel's answer to a receive on the endpoint with this handle, the last ABI call of the calling
/// thread, and nothing else is made from it.
#[inline(always)]
unsafe fn received(handle: u64, answer: abi::AbiReturn) -> Received {
    if answer.status == Status::Ok as u64 {
        // SAFETY: passed on.
        return Received::Message(unsafe { Incoming::received(answer.value) });
    }
    match Status::from_number(answer.status) {
        Status::TimedOut | Status::WouldBlock => Received::Nothing,
        // SAFETY: passed on.
        Status::Closed => Received::Closed(unsafe { Closed::collect(handle) }),
        other => refused(other),
    }
}

#[inline(always)]
fn finish<R: Receiver>(endpoint: R, received: Received) -> Result<R::Event, R> {
    match received {
        Received::Message(incoming) => Ok(endpoint.finish(incoming)),
        Received::Closed(closed) => Ok(endpoint.finish_closed(closed)),
        Received::Nothing => Err(endpoint),
    }
}

/// Panics: the kernel does not let this endpoint send or receive, which is the program's own fault.
#[cold]
pub(crate) fn refused(status: Status) -> ! {
    panic!("the kernel refuses a message on this endpoint: {}", status.text())
}

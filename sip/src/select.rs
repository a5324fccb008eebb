//! Waiting for several endpoints at once.
//!
//! [`WaitSet`] is for many endpoints of one type, at a cost that does not grow with their number;
//! [`select!`](crate::select!) is for a few of different types, known when the program is written.

use abi::{Status, limits};

use crate::channel::{RawEndpoint, Receiver, try_receive};
use crate::raw::value as kernel;
use crate::slots::Slots;
use crate::{Deadline, thread_block};

/// Endpoints that wait for their next message, each under a key.
pub struct WaitSet<E: Receiver> {
    handle: u64,
    endpoints: Slots<E>,
}

/// Names an endpoint in its [`WaitSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

impl<E: Receiver> WaitSet<E> {
    /// An empty set.
    pub fn new() -> Result<WaitSet<E>, Status> {
        Ok(WaitSet { handle: kernel::wait_set_create()?, endpoints: Slots::new() })
    }

    /// Adds an endpoint. It leaves the set with its next event.
    pub fn insert(&mut self, endpoint: E) -> Key {
        let handle = endpoint.raw().handle();
        let key = self.endpoints.insert(endpoint);
        if let Err(status) = kernel::wait_set_add(self.handle, handle, key) {
            crate::channel::refused(status);
        }
        Key(key)
    }

    /// Takes an endpoint out again.
    pub fn remove(&mut self, key: Key) -> Option<E> {
        let endpoint = self.endpoints.remove(key.0)?;
        // It is in the set: one that was announced would have left `endpoints`, too.
        let _ = kernel::wait_set_remove(self.handle, endpoint.raw().handle());
        Some(endpoint)
    }

    /// Waits for the next event of any endpoint in the set; `None` when the deadline comes first. The
    /// endpoint's next state is in the event; insert it again to hear more of it.
    pub fn wait(&mut self, deadline: Deadline) -> Option<(Key, E::Event)> {
        loop {
            let key = match kernel::wait_set_wait(self.handle, deadline.as_ns()) {
                Ok(key) => key,
                Err(Status::TimedOut | Status::WouldBlock) => return None,
                Err(status) => crate::channel::refused(status),
            };
            let Some(endpoint) = self.endpoints.remove(key) else {
                continue;
            };
            match try_receive(endpoint) {
                Ok(event) => return Some((Key(key), event)),
                Err(endpoint) => {
                    self.insert(endpoint);
                }
            }
        }
    }

    /// How many endpoints are in it.
    pub fn len(&self) -> usize {
        self.endpoints.len()
    }

    /// Whether none is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn handle(&self) -> u64 {
        self.handle
    }
}

impl<E: Receiver> Drop for WaitSet<E> {
    fn drop(&mut self) {
        // The handle is this value's own, so it cannot be refused.
        let _ = kernel::wait_set_close(self.handle);
    }
}

impl<E: Receiver> core::fmt::Debug for WaitSet<E> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "WaitSet({} endpoints)", self.len())
    }
}

/// Something whose readiness can be waited for beside others.
pub trait Waitable {
    #[doc(hidden)]
    fn wait_handle(&self) -> WaitHandle;
}

/// The number by which the kernel knows a [`Waitable`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct WaitHandle(u64);

impl Waitable for RawEndpoint {
    fn wait_handle(&self) -> WaitHandle {
        WaitHandle(self.handle())
    }
}

impl<E: Receiver> Waitable for E {
    fn wait_handle(&self) -> WaitHandle {
        WaitHandle(self.raw().handle())
    }
}

/// Waits until one of these is ready: its index. `None` when the deadline comes first.
///
/// # Panics
///
/// If there are more than 32.
pub fn wait_any(things: &[&dyn Waitable], deadline: Deadline) -> Option<usize> {
    assert!(things.len() <= MOST_THINGS, "at most {MOST_THINGS} things can be waited for at once");
    for (index, thing) in things.iter().enumerate() {
        thread_block::set_message_word(index, thing.wait_handle().0);
    }
    match kernel::wait_any(things.len() as u64, deadline.as_ns()) {
        Ok(index) => Some(index as usize),
        Err(Status::TimedOut | Status::WouldBlock) => None,
        Err(status) => crate::channel::refused(status),
    }
}

const MOST_THINGS: usize = 32;
const _: () = assert!(MOST_THINGS <= limits::MESSAGE_WORDS);

//! Waiting for several endpoints at once.
//!
//! [`WaitSet`] is for many endpoints of one type, at a cost that does not grow with their number;
//! [`select!`](crate::select!) is for a few of different types, fixed at compile time.

use abi::{Status, limits};

use crate::channel::{RawEndpoint, Receiver, receive, try_receive};
use crate::debug::Sink;
use crate::device::Device;
use crate::hardware::Hardware;
use crate::process::Child;
use crate::raw::value as kernel;
use crate::slots::Slots;
use crate::sync::Event;
use crate::{Deadline, thread_block};

/// Endpoints to receive from, each under a key.
pub struct WaitSet<E: Receiver> {
    handle: u64,
    endpoints: Slots<E>,
}

/// Identifies an endpoint in its [`WaitSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

impl<E: Receiver> WaitSet<E> {
    /// Creates an empty set.
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

    /// Removes an endpoint before its event.
    pub fn remove(&mut self, key: Key) -> Option<E> {
        let endpoint = self.endpoints.remove(key.0)?;
        // It is still in the kernel's set: one reported by `wait` would have left `endpoints`, too.
        let _ = kernel::wait_set_remove(self.handle, endpoint.raw().handle());
        Some(endpoint)
    }

    /// Waits for the next event of any endpoint in the set; `None` at the deadline. The event holds the
    /// endpoint in its next state; insert it again to receive from it.
    pub fn wait(&mut self, deadline: Deadline) -> Option<(Key, E::Event)> {
        loop {
            let key = match kernel::wait_set_wait(self.handle, deadline.as_ns(), 1, 0) {
                Ok(_) => thread_block::message_word(0),
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

    /// Returns the number of endpoints in the set.
    pub fn len(&self) -> usize {
        self.endpoints.len()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<E: Receiver> Drop for WaitSet<E> {
    fn drop(&mut self) {
        // This value owns the handle, so the kernel cannot refuse it.
        let _ = kernel::wait_set_close(self.handle);
    }
}

impl<E: Receiver> core::fmt::Debug for WaitSet<E> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "WaitSet({} endpoints)", self.len())
    }
}

mod sealed {
    /// An object with a kernel handle.
    pub trait Numbered {
        fn wait_handle(&self) -> u64;
    }
}

use sealed::Numbered;

/// An object whose readiness can be waited for: an endpoint, a [`WaitSet`], an [`Event`], a [`Child`], a
/// [`Sink`], a [`Device`] or [`Hardware`].
///
/// [`Hardware`] is ready when one of its interrupts has fired and has not been waited for. This wait unmasks no line:
/// [`Interrupt::wait`](crate::hardware::Interrupt::wait) with a deadline in the past does.
///
/// Programs cannot add others:
///
/// ```compile_fail,E0277
/// struct Mine;
/// impl sip::select::Waitable for Mine {}
/// # fn main() {}
/// ```
pub trait Waitable: Numbered {}

impl<T: Numbered> Waitable for T {}

impl Numbered for RawEndpoint {
    fn wait_handle(&self) -> u64 {
        self.handle()
    }
}

impl<E: Receiver> Numbered for E {
    fn wait_handle(&self) -> u64 {
        self.raw().handle()
    }
}

impl<E: Receiver> Numbered for WaitSet<E> {
    fn wait_handle(&self) -> u64 {
        self.handle
    }
}

impl Numbered for Event {
    fn wait_handle(&self) -> u64 {
        self.handle()
    }
}

impl Numbered for Child {
    fn wait_handle(&self) -> u64 {
        self.handle()
    }
}

impl Numbered for Sink {
    fn wait_handle(&self) -> u64 {
        self.handle()
    }
}

impl Numbered for Hardware {
    fn wait_handle(&self) -> u64 {
        self.handle()
    }
}

impl Numbered for Device {
    fn wait_handle(&self) -> u64 {
        self.handle()
    }
}

/// Two endpoints of different types, after an event of one of them.
#[derive(Debug)]
pub enum Either<A: Receiver, B: Receiver> {
    /// Event of the first; the second is unchanged.
    First(A::Event, B),
    /// Event of the second; the first is unchanged.
    Second(A, B::Event),
    /// The deadline passed.
    TimedOut(A, B),
}

/// Waits for the next event of either endpoint, at most until the deadline.
pub fn either<A: Receiver, B: Receiver>(first: A, second: B, deadline: Deadline) -> Either<A, B> {
    match wait_any(&[&first, &second], deadline) {
        Some(0) => Either::First(receive(first), second),
        Some(_) => Either::Second(first, receive(second)),
        None => Either::TimedOut(first, second),
    }
}

/// Waits for the next event of one of a few endpoints (the papers' switch-receive), each held by a
/// variable; only the chosen one is consumed, the others are unchanged. If several are ready, the
/// first in the list is chosen.
///
/// ```ignore
/// select! {
///     by deadline => { .. },              // may be left out; every arm gives a value of one type
///     event = keyboard => match event { .. },
///     event = disk => match event { .. },
/// }
/// ```
#[macro_export]
macro_rules! select {
    (by $deadline:expr => $late:expr, $($event:pat = $endpoint:ident => $arm:expr),+ $(,)?) => {
        match $crate::select::wait_any(&[$(&$endpoint),+], $deadline) {
            Some(ready) => $crate::select!(@arms ready, 0; $($event = $endpoint => $arm),+),
            None => $late,
        }
    };
    ($($event:pat = $endpoint:ident => $arm:expr),+ $(,)?) => {
        $crate::select!(
            by $crate::Deadline::NEVER => ::core::panic!("a deadline that never comes has come"),
            $($event = $endpoint => $arm),+
        )
    };
    (@arms $ready:ident, $index:expr; $event:pat = $endpoint:ident => $arm:expr) => {{
        let _ = $ready;
        let $event = $crate::channel::receive($endpoint);
        $arm
    }};
    (@arms $ready:ident, $index:expr;
        $event:pat = $endpoint:ident => $arm:expr, $($events:pat = $endpoints:ident => $arms:expr),+) => {
        if $ready == $index {
            let $event = $crate::channel::receive($endpoint);
            $arm
        } else {
            $crate::select!(@arms $ready, $index + 1; $($events = $endpoints => $arms),+)
        }
    };
}

/// Waits until one of these is ready and returns its index; `None` at the deadline. With no objects it sleeps until then.
///
/// # Panics
///
/// If there are more than 32.
pub fn wait_any(things: &[&dyn Waitable], deadline: Deadline) -> Option<usize> {
    assert!(things.len() <= MAX_THINGS, "at most {MAX_THINGS} things can be waited for at once");
    if things.is_empty() {
        crate::thread::sleep(deadline);
        return None;
    }
    // All handles before the first is put into the buffer: a program's own endpoint type runs its code to return its
    // handle, which may use the buffer.
    let mut handles = [0; MAX_THINGS];
    for (handle, thing) in handles.iter_mut().zip(things) {
        *handle = thing.wait_handle();
    }
    thread_block::put_words(&handles[..things.len()]);
    match kernel::wait_any(things.len() as u64, deadline.as_ns()) {
        Ok(index) => Some(index as usize),
        Err(Status::TimedOut | Status::WouldBlock) => None,
        Err(status) => crate::channel::refused(status),
    }
}

/// Maximum objects of one kernel wait.
pub(crate) const MAX_THINGS: usize = 32;
const _: () = assert!(MAX_THINGS <= limits::MESSAGE_WORDS);

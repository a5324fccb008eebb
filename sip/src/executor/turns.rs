//! Tasks that wait for a device, or for a moment at which no other task has anything to do.

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use super::current;
use crate::device::Device;
use crate::select::MAX_THINGS;
use crate::thread_block;

/// After this many messages devices and timers are looked at although there are more messages.
const MESSAGES_BEFORE_TURN: u32 = 32;

#[derive(Default)]
pub(super) struct Turns {
    devices: RefCell<Vec<(u64, Waker)>>,
    idle: RefCell<Vec<Waker>>,
    messages: Cell<u32>,
}

impl Turns {
    /// Puts the handles `first` and those of the devices that are waited for into the message buffer: how many they are.
    /// Devices that one wait of the kernel's has no room for get their turn when others have had theirs.
    pub(super) fn put_handles(&self, first: &[u64]) -> u64 {
        let devices = self.devices.borrow();
        let mut handles = [0; MAX_THINGS];
        let wanted = first.iter().chain(devices.iter().map(|(handle, _)| handle));
        let count = handles.iter_mut().zip(wanted).map(|(handle, &wanted)| *handle = wanted).count();
        thread_block::put_words(&handles[..count]);
        count as u64
    }

    /// Wakes who waits for the device put at this place.
    pub(super) fn wake_device(&self, index: usize) {
        let found = {
            let mut devices = self.devices.borrow_mut();
            (index < devices.len()).then(|| devices.remove(index).1)
        };
        if let Some(waker) = found {
            waker.wake();
        }
    }

    /// Whether nobody waits for a device or a quiet moment.
    pub(super) fn is_empty(&self) -> bool {
        self.devices.borrow().is_empty() && self.idle.borrow().is_empty()
    }

    /// Wakes those that wait for a quiet moment; whether there were any.
    pub(super) fn wake_idle(&self) -> bool {
        let idle = self.idle.take();
        let any = !idle.is_empty();
        idle.into_iter().for_each(Waker::wake);
        any
    }

    /// Counts messages; whether it is the turn of devices and timers.
    pub(super) fn is_turn_of_others(&self) -> bool {
        let messages = self.messages.get() + 1;
        let is_turn = messages >= MESSAGES_BEFORE_TURN;
        self.messages.set(if is_turn { 0 } else { messages });
        is_turn
    }
}

/// Waits until the device has a finished operation, which [`Device::complete`] then gives at once, unless another
/// has been quicker.
pub fn ready(device: &Device) -> Ready<'_> {
    Ready { device, waits: false }
}

/// Waits for a moment at which no other task can go on, or until other tasks have had a fair share.
pub fn idle() -> Idle {
    Idle { waits: false }
}

/// See [`ready`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Ready<'a> {
    device: &'a Device,
    waits: bool,
}

impl Future for Ready<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let executor = current::get();
        let mut devices = executor.turns.devices.borrow_mut();
        let handle = self.device.handle();
        match devices.iter_mut().find(|(waiting, _)| *waiting == handle) {
            Some((_, waker)) => waker.clone_from(context.waker()),
            // It was there and is no more: it was woken.
            None if self.waits => return Poll::Ready(()),
            None => devices.push((handle, context.waker().clone())),
        }
        self.waits = true;
        Poll::Pending
    }
}

impl Drop for Ready<'_> {
    fn drop(&mut self) {
        if self.waits {
            let handle = self.device.handle();
            current::get().turns.devices.borrow_mut().retain(|(waiting, _)| *waiting != handle);
        }
    }
}

/// See [`idle`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Idle {
    waits: bool,
}

impl Future for Idle {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.waits {
            return Poll::Ready(());
        }
        self.waits = true;
        current::get().turns.idle.borrow_mut().push(context.waker().clone());
        Poll::Pending
    }
}

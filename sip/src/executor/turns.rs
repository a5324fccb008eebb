//! Tasks waiting for a device, or for all other tasks to be blocked.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use super::device_waits::{DeviceWaits, Handles};
use super::{Executor, current};
use crate::device::Device;
use crate::select::MAX_THINGS;

/// Messages after which devices and timers are polled although there are more messages.
const MESSAGES_BEFORE_TURN: u32 = 32;

#[derive(Default)]
pub(super) struct Turns {
    devices: RefCell<DeviceWaits>,
    idle: RefCell<Vec<Waker>>,
    messages: Cell<u32>,
}

impl Turns {
    /// The handles `first` and those of devices, for one wait. Devices for which it has no room come first in the next.
    pub(super) fn choose(&self, first: &[u64]) -> Handles<MAX_THINGS> {
        self.devices.borrow_mut().choose(first)
    }

    /// Wakes all tasks that wait for this device.
    pub(super) fn wake_device(&self, handle: u64) {
        loop {
            let waker = self.devices.borrow_mut().take(handle);
            let Some(waker) = waker else { return };
            waker.wake();
        }
    }

    /// Whether no task waits for a device or for idleness.
    pub(super) fn is_empty(&self) -> bool {
        self.devices.borrow().is_empty() && self.idle.borrow().is_empty()
    }

    /// Wakes the tasks that wait for idleness. Returns whether there were any.
    pub(super) fn wake_idle(&self) -> bool {
        let idle = self.idle.take();
        let any = !idle.is_empty();
        idle.into_iter().for_each(Waker::wake);
        any
    }

    /// Counts messages. Returns whether devices and timers must be polled now.
    pub(super) fn is_turn_of_others(&self, count: u32) -> bool {
        let messages = self.messages.get() + count;
        let is_turn = messages >= MESSAGES_BEFORE_TURN;
        self.messages.set(if is_turn { 0 } else { messages });
        is_turn
    }
}

/// Waits until the device has a finished operation, which [`Device::complete`] then returns without waiting. Several
/// tasks may wait for one device; all of them are woken, and the first takes the operation.
pub fn ready(device: &Device) -> Ready<'_> {
    Ready { device, registered: None }
}

/// Waits until no other task is runnable, or until other tasks have had a fair share.
pub fn idle() -> Idle {
    Idle { waits: false }
}

/// See [`ready`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Ready<'a> {
    device: &'a Device,
    /// The executor, and the number of the wait there.
    registered: Option<(Rc<Executor>, u64)>,
}

impl Future for Ready<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some((executor, number)) = &self.registered {
            return match executor.turns.devices.borrow_mut().update(*number, context.waker()) {
                true => Poll::Pending,
                false => Poll::Ready(()),
            };
        }
        let executor = current::get();
        let number = executor.turns.devices.borrow_mut().insert(self.device.handle(), context.waker().clone());
        self.registered = Some((executor, number));
        Poll::Pending
    }
}

impl Drop for Ready<'_> {
    fn drop(&mut self) {
        if let Some((executor, number)) = self.registered.take() {
            executor.turns.devices.borrow_mut().remove(number);
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

//! The run loop of a driver: one thread serves clients, another waits for the device's interrupt.
//!
//! Completions are collected in the driver's core; tasks check for theirs after each interrupt. A [`DeviceError`] ends
//! the process, which is then restarted with the device reset. Deliberately not here: the work of a core.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use sip::device::Declared;
use sip::hardware::Interrupt;
use sip::sync::{Event, Mutex};
use sip::{Deadline, Status, executor, process};

use crate::error::DeviceError;
use crate::system::System;

/// Request timeout, in milliseconds.
pub const TIME_LIMIT_MS: u64 = 5_000;
/// Polling interval, which bounds the delay caused by a lost interrupt.
const LOOK_AGAIN_AFTER_MS: u64 = 500;

/// A driver's state of its device and of the requests in flight.
pub trait Core: Send + 'static {
    /// Takes the device's completions, and checks that no request takes longer than [`TIME_LIMIT_MS`].
    ///
    /// # Errors
    /// The device has failed and must not be used any longer.
    fn serve(&mut self) -> Result<(), DeviceError>;
}

/// A core shared by the threads of a driver.
pub struct Running<C> {
    core: Mutex<C>,
    waiting: Mutex<Vec<Waker>>,
    /// Set after the core was served.
    served: Event,
}

impl<C: Core> Running<C> {
    /// Starts a core with `start` and a thread that waits for the device's interrupt. Errors are sentences for people.
    ///
    /// # Errors
    /// The device has no interrupt or cannot be started; no thread could be created.
    pub fn start(
        device: &Declared<System>,
        start: impl FnOnce(System) -> Result<C, DeviceError>,
    ) -> Result<(System, Arc<Running<C>>), alloc::string::String> {
        let no_device = |status: Status| alloc::format!("the device cannot be opened: {}", status.text());
        let system = device.open().map_err(no_device)?;
        let interrupt = system.interrupt().map_err(no_device)?;
        // The first wait unmasks the interrupt; only then may the device start, or its first interrupt would be lost.
        let _ = interrupt.wait(Deadline::PASSED);
        let core = start(system.clone()).map_err(|error| alloc::format!("{error}"))?;
        let served = Event::auto().map_err(no_device)?;
        let running = Arc::new(Running { core: Mutex::new(core), waiting: Mutex::new(Vec::new()), served });
        let serving = Arc::clone(&running);
        // The thread runs until the process ends.
        drop(sip::thread::spawn(move || serving.wait_for_interrupts(&interrupt)).map_err(no_device)?);
        Ok((system, running))
    }

    /// Calls `action` with the core locked.
    pub fn with<R>(&self, action: impl FnOnce(&mut C) -> R) -> R {
        action(&mut self.core.lock())
    }

    /// Polls the core with `ask` until it returns an answer: now, and after each interrupt.
    pub async fn until<R>(&self, mut ask: impl FnMut(&mut C) -> Option<R>) -> R {
        loop {
            let answer = {
                let mut again = pin!(executor::sleep_until(Deadline::after_ms(LOOK_AGAIN_AFTER_MS)));
                poll_fn(|context| {
                    if let Some(answer) = self.ask_or_wait(&mut ask, context.waker()) {
                        return Poll::Ready(Some(answer));
                    }
                    again.as_mut().poll(context).map(|()| None)
                })
                .await
            };
            match answer {
                Some(answer) => return answer,
                None => self.serve(),
            }
        }
    }

    /// Polls the core once. If there is no answer, the context's waker is woken after the next interrupt.
    pub fn poll<R>(&self, context: &Context<'_>, mut ask: impl FnMut(&mut C) -> Option<R>) -> Poll<R> {
        self.ask_or_wait(&mut ask, context.waker()).map_or(Poll::Pending, Poll::Ready)
    }

    /// Polls the core until it returns an answer, blocking the thread: for a server that waits for nothing else. One
    /// thread at a time may do so.
    pub fn wait_until<R>(&self, mut ask: impl FnMut(&mut C) -> Option<R>) -> R {
        loop {
            if let Some(answer) = self.with(&mut ask) {
                return answer;
            }
            if !self.served.wait_until(Deadline::after_ms(LOOK_AGAIN_AFTER_MS)) {
                self.serve();
            }
        }
    }

    fn ask_or_wait<R>(&self, ask: &mut impl FnMut(&mut C) -> Option<R>, waker: &Waker) -> Option<R> {
        let mut core = self.core.lock();
        let answer = ask(&mut core);
        if answer.is_none() {
            // Registered before the core is unlocked, so that no interrupt is served in between.
            let mut waiting = self.waiting.lock();
            if !waiting.iter().any(|other| other.will_wake(waker)) {
                waiting.push(waker.clone());
            }
        }
        answer
    }

    fn serve(&self) {
        let served = self.core.lock().serve();
        let waiting = core::mem::take(&mut *self.waiting.lock());
        waiting.into_iter().for_each(Waker::wake);
        self.served.set();
        if let Err(error) = served {
            give_up(&error);
        }
    }

    fn wait_for_interrupts(&self, interrupt: &Interrupt) {
        loop {
            match interrupt.wait(Deadline::NEVER) {
                Ok(_) => self.serve(),
                // The kernel masks the line of an interrupt storm.
                Err(status) => give_up(&format_args!("interrupt wait failed: {}", status.text())),
            }
        }
    }
}

/// Logs the error and ends the process, so that it is restarted and the device reset.
pub fn give_up(error: &dyn fmt::Display) -> ! {
    sip::debug::write_line(format_args!("{error}; restarting the driver"));
    process::exit(1)
}

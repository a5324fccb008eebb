//! Locks and events between the threads of one process.
//!
//! A [`Mutex`] costs no kernel call unless threads meet at it. Deliberately not here: anything
//! between processes, which share nothing but channels.

mod event;
mod mutex;

pub use event::Event;
pub use mutex::{Mutex, MutexGuard};

//! Locks and events for the threads of one process.
//!
//! An uncontended [`Mutex`] makes no ABI call. Deliberately not here: anything between processes, which
//! share nothing but channels.

mod event;
mod mutex;

pub use event::Event;
pub use mutex::{Mutex, MutexGuard};

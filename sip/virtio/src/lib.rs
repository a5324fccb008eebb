//! Virtio devices for drivers without unsafe code.
//!
//! Key types: [`Device`] (detected, reset, features negotiated), [`Queue`] (requests in flight and the memory
//! lent to the device for them), [`DeviceError`] (device errors, with messages for people),
//! [`System`] (the platform of a program). Neighbours: `virtio-drivers` keeps the rings, `sip::hardware` accesses
//! registers and memory. Unsafe code is confined to the modules named in `docs/soundness/sip-virtio.md`.
//! Deliberately not here: the requests of particular kinds of devices; they are for their drivers.
#![no_std]

extern crate alloc;
#[cfg(any(test, feature = "model"))]
extern crate std;

mod calls;
mod device;
mod error;
mod link;
mod memory;
#[cfg(any(test, feature = "model"))]
pub mod model;
mod platform;
mod queue;
mod running;
mod system;

pub use device::{Cause, Configuration, Device, Kind};
pub use error::DeviceError;
pub use platform::{DeviceMemory, Platform, Registers};
pub use queue::{Completion, Data, Direction, Queue, Refused, Reply, Request};
pub use running::{Core, Running, TIME_LIMIT_MS, give_up};
pub use system::System;

/// Maximum bytes of a request's own header.
pub const HEADER_BYTES: usize = 32;
/// Maximum bytes of a device's own answer besides the data.
pub const REPLY_BYTES: usize = 32;

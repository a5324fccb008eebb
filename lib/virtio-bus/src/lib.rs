//! What the buses of virtio devices share: how devices are called, what a slot in memory holds, and how a device
//! is silenced. Numbers are those of *Virtual I/O Device (VIRTIO) Version 1.2*.
//!
//! Key types: [`Names`], [`slot::Registers`] and [`common::Registers`] (a device's registers, on either bus),
//! [`silence`]. Deliberately not here: queues, and what the devices do.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod common;
pub mod slot;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

/// How often a device's status is read until it must say that the device is reset.
const ASKS: usize = 1_000;

/// Gives names to devices as they are found: `virtio-blk0`, `virtio-blk1`, `virtio-net0`, ...
#[derive(Clone, Debug, Default)]
pub struct Names {
    counts: BTreeMap<u32, u32>,
}

impl Names {
    /// None given yet.
    pub fn new() -> Names {
        Names::default()
    }

    /// The name of the next device of this kind (section 5).
    pub fn next(&mut self, device_id: u32) -> String {
        let count = self.counts.entry(device_id).or_default();
        let number = *count;
        *count += 1;
        match kind(device_id) {
            Some(kind) => format!("virtio-{kind}{number}"),
            // The number of the kind and that of the device are told apart by a sign.
            None => format!("virtio-{device_id}-{number}"),
        }
    }
}

/// The word for a kind of device that there are drivers for.
pub fn kind(device_id: u32) -> Option<&'static str> {
    match device_id {
        1 => Some("net"),
        2 => Some("blk"),
        3 => Some("console"),
        4 => Some("rng"),
        9 => Some("9p"),
        _ => None,
    }
}

/// Access to the status of a device.
pub trait Status {
    /// Reads it; what cannot be read is not 0.
    fn read(&mut self) -> u32;
    /// Writes it.
    fn write(&mut self, status: u32);
    /// Lets some time pass: a tenth of a millisecond.
    fn pause(&mut self);
}

/// The device does not say that it is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotSilenced;

/// Resets a device: once it says that it is reset, it reaches no memory and interrupts no more (2.4.2).
pub fn silence(status: &mut impl Status) -> Result<(), NotSilenced> {
    status.write(0);
    for _ in 0..ASKS {
        if status.read() == 0 {
            return Ok(());
        }
        status.pause();
    }
    Err(NotSilenced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_counted_on_its_own() {
        let mut names = Names::new();
        let given = [2, 1, 2, 42, 4, 42, 3, 2].map(|id| names.next(id));
        let expected = [
            "virtio-blk0",
            "virtio-net0",
            "virtio-blk1",
            "virtio-42-0",
            "virtio-rng0",
            "virtio-42-1",
            "virtio-console0",
            "virtio-blk2",
        ];
        assert_eq!(given, expected);
    }

    struct Device {
        asks_until_reset: usize,
        written: Option<u32>,
    }

    impl Status for Device {
        fn read(&mut self) -> u32 {
            match self.written {
                Some(0) if self.asks_until_reset == 0 => 0,
                _ => 0xf,
            }
        }
        fn write(&mut self, status: u32) {
            self.written = Some(status);
        }
        fn pause(&mut self) {
            self.asks_until_reset -= 1;
        }
    }

    #[test]
    fn a_device_has_some_time_to_fall_silent_but_not_for_ever() {
        assert_eq!(silence(&mut Device { asks_until_reset: 0, written: None }), Ok(()));
        assert_eq!(silence(&mut Device { asks_until_reset: 900, written: None }), Ok(()));
        assert_eq!(silence(&mut Device { asks_until_reset: 2_000, written: None }), Err(NotSilenced));
    }
}

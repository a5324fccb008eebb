//! Common parts of virtio buses: device names, MMIO slots, and device reset. Section numbers are those of *Virtual I/O
//! Device (VIRTIO) Version 1.2*.
//!
//! Key types: [`Names`], [`slot::Registers`] and [`common::Registers`] (register maps over MMIO and PCI), [`silence`].
//! Deliberately not here: queues, and the functions of devices.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod common;
pub mod slot;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

/// Maximum polls of the status register for a reset.
const ASKS: usize = 1_000;

/// Assigns device names in order of discovery: `virtio-blk0`, `virtio-blk1`, `virtio-net0`, ...
#[derive(Clone, Debug, Default)]
pub struct Names {
    counts: BTreeMap<u32, u32>,
}

impl Names {
    /// Numbering starts at zero.
    pub fn new() -> Names {
        Names::default()
    }

    /// Returns the name of the next device of this type (section 5).
    pub fn next(&mut self, device_id: u32) -> String {
        let count = self.counts.entry(device_id).or_default();
        let number = *count;
        *count += 1;
        match kind(device_id) {
            Some(kind) => format!("virtio-{kind}{number}"),
            // A hyphen separates the numbers of type and device.
            None => format!("virtio-{device_id}-{number}"),
        }
    }
}

/// The name of a supported device type.
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

/// Access to the status register of a device.
pub trait Status {
    /// Reads it; returns a value other than 0 on failure.
    fn read(&mut self) -> u32;
    /// Writes it.
    fn write(&mut self, status: u32);
    /// Waits for about a tenth of a millisecond.
    fn pause(&mut self);
}

/// The device does not confirm its reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotSilenced;

/// Resets a device: once confirmed, it does no more DMA and raises no more interrupts (2.4.2).
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

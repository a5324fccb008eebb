//! Shared server code of bus drivers: the `DeviceBus` contract for many clients, and quiescing devices whose
//! driver has released them.
//!
//! Key types: [`Found`] (result of probing a bus), [`Silencer`] (implemented by the driver), [`record`]. Until a
//! device is quiesced, blocks that its driver had pinned stay allocated; so a device that cannot be quiesced
//! is retried at intervals, and stays closed. Deliberately not here: any kind of bus.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod range;

pub use range::RangeKind;

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use contracts::device_bus::{self, BusDevice, BusRange, ExpReady, states};
use contracts::service_provider::{self, StartError};
use sip::exheap::ExVec;
use sip::hardware::bus::{Bus, DeviceNumber, Publication};
use sip::{Deadline, Status};
use stdio::report;

/// Maximum names tried for a device.
const MAX_NAMES: usize = 256;
/// Interval at which a device that could not be quiesced is retried, in milliseconds.
const RETRY_MS: u64 = 1_000;

/// Result of probing a bus.
pub struct Found<S> {
    /// The bus, with its devices published.
    pub bus: Bus,
    /// All devices, in the order of the bus.
    pub devices: Vec<BusDevice>,
    /// Quiesces released devices.
    pub silencer: S,
}

/// Quiesces devices.
pub trait Silencer: Send + 'static {
    /// Makes sure that the device, which no driver has open, does no more DMA and raises no interrupts, and that the
    /// next driver can use it. The error is a sentence that names the device.
    fn silence(&mut self, device: DeviceNumber) -> Result<(), String>;
}

/// The whole `main` of a bus driver: `find` probes the bus and publishes its devices, or returns an error
/// sentence; then clients are served until the provider channel closes. Returns the exit status.
pub fn run<S: Silencer>(
    clients: service_provider::Exp<service_provider::states::Start>,
    find: impl FnOnce() -> Result<Found<S>, String>,
) -> i32 {
    let started = find().and_then(|found| {
        let Found { bus, devices, silencer } = found;
        let again = |status: Status| format!("cannot wait for released devices: {}", status.text());
        // The thread runs until the process ends.
        drop(sip::thread::spawn(move || silence_released(&bus, silencer)).map_err(again)?);
        Ok(devices)
    });
    let devices = match started {
        Ok(devices) => Rc::new(devices),
        Err(explanation) => {
            match ExVec::from_slice(explanation.as_bytes()) {
                // The parent process reports it.
                Ok(block) => drop(clients.not_ready(StartError::Missing, block)),
                Err(_) => report::error(format_args!("{explanation}")),
            }
            return 1;
        }
    };
    let serving = provider::accept(clients.ready(), move |client: device_bus::Exp<states::Start>| {
        serve(Rc::clone(&devices), client.success())
    });
    match sip::executor::block_on(serving) {
        Ok(()) => 0,
        Err(status) => {
            report::error(format_args!("cannot wait for clients: {}", status.text()));
            1
        }
    }
}

async fn serve(found: Rc<Vec<BusDevice>>, mut client: device_bus::Exp<states::Ready>) {
    while let ExpReady::List { mut devices, next } = client.receive_async().await {
        let count = devices.len().min(found.len());
        devices[..count].copy_from_slice(&found[..count]);
        client = next.listed(devices, u32::try_from(found.len()).unwrap_or(u32::MAX));
    }
}

/// Quiesces each released device, until the bus is gone.
fn silence_released(bus: &Bus, mut silencer: impl Silencer) {
    let mut noisy: Vec<DeviceNumber> = Vec::new();
    loop {
        let deadline = if noisy.is_empty() { Deadline::NEVER } else { Deadline::after_ms(RETRY_MS) };
        match bus.next_released(deadline) {
            Ok(device) => {
                if let Err(error) = silence(bus, &mut silencer, device) {
                    report::error(format_args!("{error}; it stays closed, retrying"));
                    noisy.push(device);
                }
            }
            Err(Status::TimedOut | Status::WouldBlock) => {
                noisy.retain(|&device| silence(bus, &mut silencer, device).is_err());
            }
            Err(status) => {
                report::error(format_args!("cannot wait for released devices: {}", status.text()));
                return;
            }
        }
    }
}

fn silence(bus: &Bus, silencer: &mut impl Silencer, device: DeviceNumber) -> Result<(), String> {
    silencer.silence(device)?;
    if let Err(status) = bus.ready(device) {
        // Retrying would not help.
        report::error(format_args!("a quiesced device cannot be reopened: {}", status.text()));
    }
    Ok(())
}

/// Starts to publish a device under the next name that no other bus of the machine has taken. Returns the name, or an
/// error sentence.
pub fn publish(bus: &Bus, mut next_name: impl FnMut() -> String) -> Result<(String, Publication), String> {
    let mut last = Status::Busy;
    for _ in 0..MAX_NAMES {
        let name = next_name();
        match bus.publish(&name) {
            Ok(publication) => return Ok((name, publication)),
            Err(Status::Busy) => {}
            Err(status) => {
                last = status;
                break;
            }
        }
    }
    Err(not_offered(last))
}

/// Returns the error sentence for a device that the kernel refuses to publish.
pub fn not_offered(status: Status) -> String {
    format!("it cannot be published: {}", status.text())
}

/// Makes a record with texts only; `name` and `error` may be empty.
pub fn record(place: &str, name: &str, error: &str) -> BusDevice {
    BusDevice {
        ranges: [range(0, 0, RangeKind::Nothing); 6],
        place: padded(place),
        name: padded(name),
        error: padded(error),
        vendor: 0,
        device: 0,
        subsystem_vendor: 0,
        subsystem: 0,
        class: 0,
        revision: 0,
    }
}

/// Makes a range of a record.
pub fn range(base: u64, bytes: u64, kind: RangeKind) -> BusRange {
    BusRange { base, bytes, kind: kind as u32, reserved: 0 }
}

/// Returns a text padded with zeroes, or cut at a character boundary.
pub fn padded<const BYTES: usize>(text: &str) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let end = text.floor_char_boundary(BYTES);
    bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(padded::<4>("ab"), *b"ab\0\0");
        assert_eq!(padded::<4>("abcde"), *b"abcd");
        assert_eq!(padded::<4>("abcé"), *b"abc\0");
    }
}

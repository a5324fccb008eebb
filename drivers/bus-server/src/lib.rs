//! What the drivers of buses share: the `DeviceBus` contract for many clients, and what is done with a device whose
//! driver has given it up.
//!
//! Key types: [`Found`] (what a bus driver made of its bus), [`Silencer`] (what it implements), [`record`]. Until a
//! device is silenced, blocks that its driver had pinned stay where they are; so a device that does not fall
//! silent is tried again and again, and stays closed. Deliberately not here: any kind of bus.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use contracts::bus_range::RangeKind;
use contracts::device_bus::{self, BusDevice, BusRange, ExpReady, states};
use contracts::service_provider::{self, StartError};
use contracts::{provider, report};
use sip::exheap::ExVec;
use sip::hardware::bus::{Bus, DeviceNumber, Publication};
use sip::{Deadline, Status};

/// Names that are tried for a device.
const MAX_NAMES: usize = 256;
/// When a device that did not fall silent is tried again.
const AGAIN_AFTER_MS: u64 = 1_000;

/// What a bus driver made of its bus.
pub struct Found<S> {
    /// The bus, with its devices published.
    pub bus: Bus,
    /// All devices, in the order of the bus.
    pub devices: Vec<BusDevice>,
    /// Who silences devices.
    pub silencer: S,
}

/// Silences devices.
pub trait Silencer: Send + 'static {
    /// Makes sure that the device, which no driver has open, reaches no memory and interrupts no more, and that the
    /// next driver can use it. Else why not, in a sentence that names the device.
    fn silence(&mut self, device: DeviceNumber) -> Result<(), String>;
}

/// The whole `main` of a bus driver: `find` looks at the bus and publishes its devices, or says in a sentence why it
/// cannot; then clients are served until the one who hands them over is gone. Gives the exit status.
pub fn run<S: Silencer>(
    clients: service_provider::Exp<service_provider::states::Start>,
    find: impl FnOnce() -> Result<Found<S>, String>,
) -> i32 {
    let started = find().and_then(|found| {
        let Found { bus, devices, silencer } = found;
        let again = |status: Status| format!("devices that come back cannot be waited for: {}", status.text());
        // The thread runs as long as the driver.
        drop(sip::thread::spawn(move || silence_released(&bus, silencer)).map_err(again)?);
        Ok(devices)
    });
    let devices = match started {
        Ok(devices) => Rc::new(devices),
        Err(explanation) => {
            match ExVec::from_slice(explanation.as_bytes()) {
                // Whoever started this process tells people.
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

/// Silences each device that comes back, for as long as the bus is there.
fn silence_released(bus: &Bus, mut silencer: impl Silencer) {
    let mut noisy: Vec<DeviceNumber> = Vec::new();
    loop {
        let deadline = if noisy.is_empty() { Deadline::NEVER } else { Deadline::after_ms(AGAIN_AFTER_MS) };
        match bus.next_released(deadline) {
            Ok(device) => {
                if let Err(error) = silence(bus, &mut silencer, device) {
                    report::error(format_args!("{error}; it stays closed, and is tried again"));
                    noisy.push(device);
                }
            }
            Err(Status::TimedOut | Status::WouldBlock) => {
                noisy.retain(|&device| silence(bus, &mut silencer, device).is_err());
            }
            Err(status) => {
                report::error(format_args!("devices that come back cannot be waited for: {}", status.text()));
                return;
            }
        }
    }
}

fn silence(bus: &Bus, silencer: &mut impl Silencer, device: DeviceNumber) -> Result<(), String> {
    silencer.silence(device)?;
    if let Err(status) = bus.ready(device) {
        // Nothing that trying again would mend.
        report::error(format_args!("a silenced device cannot be opened again: {}", status.text()));
    }
    Ok(())
}

/// Begins to offer a device under the next name that no other bus of the machine has taken. Gives the name, or in a
/// sentence why that is not possible.
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

/// What to say where the kernel refuses to publish.
pub fn not_offered(status: Status) -> String {
    format!("it cannot be offered to drivers: {}", status.text())
}

/// A record with texts only; `name` and `error` may be empty.
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

/// A range of a record.
pub fn range(base: u64, bytes: u64, kind: RangeKind) -> BusRange {
    BusRange { base, bytes, kind: kind as u32, reserved: 0 }
}

/// A text, cut at a character to fit.
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

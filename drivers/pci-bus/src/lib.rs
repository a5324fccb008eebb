//! Driver of the PCI bus: enumerates all functions, makes sure that virtio devices have addresses and MSI-X
//! interrupts, and publishes each with just the registers that its driver needs.
//!
//! Key types: `access::{Space, Windows}` (registers through the kernel), `device::Device` (a published device).
//! Neighbours: `pci` has the bus's data structures, `virtio-bus` names and resets devices, `bus-server` serves clients
//! and waits for released devices. A driver gets neither configuration registers nor the MSI-X table: with those it
//! could make a device write anywhere. Deliberately not here: bus numbers, which are the firmware's, and the devices'
//! functions.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod access;
mod device;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use bus_server::RangeKind;
use bus_server::{Found, Silencer, record};
use contracts::device_bus::BusDevice;
use pci::{Bar, BarKind, Function, Placement, bars, enumerate};
use sip::Status;
use sip::device::Declared;
use sip::hardware::bus::{Bus, DeviceNumber, Publication};
use stdio::report;
use virtio_bus::Names;

use access::{Space, Windows};
use device::{Device, Offer};

sip::startup!();

/// Publishes the devices, and serves clients until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    bus_server::run(startup.clients, || find(&startup.pci))
}

/// The published devices, and the bus they are on.
struct Devices {
    space: Space,
    windows: Windows,
    published: BTreeMap<DeviceNumber, Device>,
}

impl Silencer for Devices {
    fn silence(&mut self, number: DeviceNumber) -> Result<(), String> {
        match self.published.get(&number) {
            Some(device) => device.renew(&mut self.space, &mut self.windows),
            // Cannot happen: the kernel releases only published devices.
            None => Ok(()),
        }
    }
}

/// A function, and its publication.
struct Candidate {
    function: Function,
    bars: Vec<Bar>,
    /// For a virtio device: its name and publication, or an error.
    offer: Option<Result<(String, Publication), String>>,
}

impl Candidate {
    /// Returns whether a driver may be running: an earlier run of this bus driver had published the device.
    fn is_adopted(&self) -> bool {
        matches!(&self.offer, Some(Ok((_, publication))) if publication.adopted().is_some())
    }
}

fn find(device: &Declared<Bus>) -> Result<Found<Devices>, String> {
    let refused = |status: Status| format!("the PCI bus cannot be opened: {}", status.text());
    let bus = device.open().map_err(refused)?;
    let (mut space, windows) = access::split(bus.hardware()).map_err(refused)?;
    let mut names = Names::new();
    let mut candidates: Vec<Candidate> = Vec::new();
    for function in enumerate(&mut space) {
        let id = pci::virtio::device_id(&function);
        let offer = id.map(|id| bus_server::publish(&bus, || names.next(id)));
        candidates.push(Candidate { function, bars: Vec::new(), offer });
    }
    let mut placement = Placement::new(windows.spans());
    for candidate in &mut candidates {
        reserve_addresses(&mut space, &windows, &mut placement, candidate);
    }
    let mut devices = Devices { space, windows, published: BTreeMap::new() };
    let functions: Vec<Function> = candidates.iter().map(|candidate| candidate.function.clone()).collect();
    let mut described = Vec::new();
    for candidate in candidates {
        described.push(offer(&bus, &mut devices, &mut placement, &functions, candidate));
    }
    Ok(Found { bus, devices: described, silencer: devices })
}

/// Finds the addresses that a function uses, and reserves them.
fn reserve_addresses(space: &mut Space, windows: &Windows, placement: &mut Placement, candidate: &mut Candidate) {
    let function = &candidate.function;
    if function.is_host() {
        return;
    }
    if candidate.is_adopted() {
        candidate.bars = windows.bars_in_use(space, function);
        device::spans_in_use(space, function.address, &candidate.bars).for_each(|span| placement.avoid(span));
        return;
    }
    candidate.bars = bars::size(space, function);
    for bar in candidate.bars.iter().filter(|bar| bar.is_memory() && bar.base != 0) {
        // Misplaced or overlapping BARs are relocated if the device is a virtio device.
        if !placement.take(bar.span()) {
            placement.avoid(bar.span());
        }
    }
}

/// Publishes a function if it is a virtio device, and describes it.
fn offer(
    bus: &Bus,
    devices: &mut Devices,
    placement: &mut Placement,
    functions: &[Function],
    candidate: Candidate,
) -> BusDevice {
    let Candidate { function, mut bars, offer } = candidate;
    let place = format!("{}", function.address);
    let mut described = match offer {
        None => record(&place, "", ""),
        Some(offer) => {
            let offered = offer.and_then(|(name, publication)| {
                let offer = Offer { bus, name: &name, function: &function, functions, publication };
                let (number, device) = device::open(offer, devices, placement, &mut bars)?;
                devices.published.insert(number, device);
                Ok(name)
            });
            match offered {
                Ok(name) => record(&place, &name, ""),
                Err(error) => {
                    report::error(format_args!("{place}: {error}"));
                    record(&place, "", &error)
                }
            }
        }
    };
    for (range, bar) in described.ranges.iter_mut().zip(bars) {
        let kind = match bar.kind {
            BarKind::Ports => RangeKind::Ports,
            _ if bar.prefetchable => RangeKind::PrefetchableMemory,
            _ => RangeKind::Memory,
        };
        *range = bus_server::range(bar.base, bar.bytes, kind);
    }
    described.vendor = function.vendor.into();
    described.device = function.device.into();
    described.subsystem_vendor = function.subsystem_vendor.into();
    described.subsystem = function.subsystem.into();
    described.class = function.class;
    described.revision = function.revision.into();
    described
}

//! Driver of the virtio-mmio bus: probes the machine's slots and publishes the device in each,
//! with its registers and its interrupt. A driver that opens it finds it reset.
//!
//! Neighbours: `virtio-bus` has slots and names, `bus-server` serves clients and waits for released devices.
//! Deliberately not here: the devices' functions.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use bus_server::RangeKind;
use bus_server::{Found, Silencer, not_offered, record};
use contracts::device_bus::BusDevice;
use sip::device::Declared;
use sip::hardware::bus::{Bus, DeviceNumber};
use sip::hardware::{IoMemoryRange, IoRange};
use sip::{Deadline, Status};
use stdio::report;
use virtio_bus::slot::{self, Device};
use virtio_bus::{Names, silence};

sip::startup!();

/// Polling interval of a reset, in nanoseconds.
const PAUSE_NS: u64 = 100_000;

/// The registers of a slot, through the kernel.
type Registers = slot::Registers<IoMemoryRange>;

/// The status of the device in a slot.
struct DeviceStatus<'a>(&'a Registers);

impl virtio_bus::Status for DeviceStatus<'_> {
    fn read(&mut self) -> u32 {
        self.0.status().read()
    }

    fn write(&mut self, status: u32) {
        self.0.status().write(status);
    }

    fn pause(&mut self) {
        sip::time::sleep_until(Deadline::after_ns(PAUSE_NS));
    }
}

/// The slots of published devices.
struct Slots(BTreeMap<DeviceNumber, (String, Registers)>);

impl Silencer for Slots {
    fn silence(&mut self, device: DeviceNumber) -> Result<(), String> {
        // Cannot happen: the kernel releases only published devices.
        let Some((name, registers)) = self.0.get(&device) else { return Ok(()) };
        silence(&mut DeviceStatus(registers)).map_err(|_| format!("{name} does not reset"))
    }
}

/// Publishes the devices, and serves clients until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    bus_server::run(startup.clients, || find(&startup.virtio_mmio))
}

fn find(device: &Declared<Bus>) -> Result<Found<Slots>, String> {
    let refused = |status: Status| format!("the virtio-mmio bus cannot be opened: {}", status.text());
    let bus = device.open().map_err(refused)?;
    let hardware = bus.hardware().clone();
    let mut slots: Vec<(usize, IoMemoryRange)> = Vec::new();
    for number in 0..hardware.range_count() {
        let range = hardware.range(number).and_then(IoMemoryRange::try_from);
        slots.push((number, range.map_err(refused)?));
    }
    // Machines fill the slots from the last one down.
    slots.sort_by_key(|(_, range)| core::cmp::Reverse(range.base()));
    let mut names = Names::new();
    let mut found = Found { bus, devices: Vec::new(), silencer: Slots(BTreeMap::new()) };
    for (number, range) in slots {
        if let Some(device) = probe(&mut found, &mut names, number, range) {
            found.devices.push(device);
        }
    }
    Ok(found)
}

/// Probes a slot and publishes its device if it can be used; returns its description. `None` for an empty slot.
fn probe(found: &mut Found<Slots>, names: &mut Names, number: usize, slot: IoMemoryRange) -> Option<BusDevice> {
    let place = format!("slot {number}");
    let range = bus_server::range(slot.base(), slot.bytes(), RangeKind::Memory);
    let registers = slot.mapped().map_err(|_| String::from("the slot is too short for a virtio device"));
    let probed = registers.and_then(|registers: Registers| match slot::probe(&registers) {
        Ok(device) => Ok(device.map(|device| (device, registers))),
        Err(error) => Err(format!("{error}")),
    });
    let (device, published) = match probed {
        Ok(None) => return None,
        Ok(Some((device, registers))) => {
            let published = publish(found, names, device.device_id, number, registers);
            (Some(device), published)
        }
        Err(error) => (None, Err(error)),
    };
    let mut described = match &published {
        Ok(name) => record(&place, name, ""),
        Err(error) => {
            report::error(format_args!("{place}: {error}"));
            record(&place, "", error)
        }
    };
    described.ranges[0] = range;
    if let Some(Device { device_id, vendor_id, version }) = device {
        (described.vendor, described.device, described.revision) = (vendor_id, device_id, version);
    }
    Some(described)
}

/// Publishes the device in a slot; returns its name.
fn publish(
    found: &mut Found<Slots>,
    names: &mut Names,
    device_id: u32,
    number: usize,
    registers: Registers,
) -> Result<String, String> {
    let (name, publication) = bus_server::publish(&found.bus, || names.next(device_id))?;
    let is_adopted = publication.adopted().is_some();
    if !is_adopted {
        silence(&mut DeviceStatus(&registers)).map_err(|_| String::from("it does not reset"))?;
    }
    publication.add_range(number, 0, registers.access().bytes()).map_err(not_offered)?;
    if !is_adopted {
        publication.add_interrupt(number).map_err(not_offered)?;
    }
    let device = publication.open().map_err(not_offered)?;
    found.silencer.0.insert(device, (name.clone(), registers));
    Ok(name)
}

//! The driver of the virtio-mmio bus: it looks into the slots that the machine has and publishes the device in each,
//! with its registers and its interrupt. A driver that opens it finds it reset.
//!
//! Neighbours: `virtio-bus` knows slots and names, `bus-server` serves clients and waits for devices that come
//! back. Deliberately not here: what the devices do.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use bus_server::{Found, Silencer, not_offered, record};
use contracts::device_bus::{BusDevice, RangeKind};
use contracts::report;
use sip::hardware::bus::{Bus, DeviceNumber};
use sip::hardware::{Hardware, Registers};
use sip::{Deadline, Status};
use virtio_bus::slot::{self, Device};
use virtio_bus::{Names, silence};

sip::startup!();

/// Between two looks at a device that is to fall silent.
const PAUSE_NS: u64 = 100_000;

/// The registers of a slot, through the kernel.
struct Slot<'a>(&'a Registers);

impl slot::Registers for Slot<'_> {
    fn read(&mut self, offset: u64) -> u32 {
        self.0.read32(offset).unwrap_or(u32::MAX)
    }
}

impl virtio_bus::Status for Slot<'_> {
    fn read(&mut self) -> u32 {
        self.0.read32(slot::STATUS).unwrap_or(u32::MAX)
    }

    fn write(&mut self, status: u32) {
        // What cannot be written does not read as it should either.
        let _ = self.0.write32(slot::STATUS, status);
    }

    fn pause(&mut self) {
        sip::time::sleep_until(Deadline::after_ns(PAUSE_NS));
    }
}

/// The slots of published devices.
struct Slots(BTreeMap<DeviceNumber, (String, Registers)>);

impl Silencer for Slots {
    fn silence(&mut self, device: DeviceNumber) -> Result<(), String> {
        // The kernel names devices that were published.
        let Some((name, registers)) = self.0.get(&device) else { return Ok(()) };
        silence(&mut Slot(registers)).map_err(|_| format!("{name} does not reset"))
    }
}

/// Publishes the devices, and serves clients until the one who hands them over is gone.
pub fn main(startup: Startup) -> i32 {
    bus_server::run(startup.clients, find)
}

fn find() -> Result<Found<Slots>, String> {
    let refused = |status: Status| format!("the virtio-mmio bus cannot be opened: {}", status.text());
    let hardware = Hardware::open(devices::VIRTIO_MMIO as usize).map_err(refused)?;
    let bus = Bus::new(hardware.clone());
    let mut slots: Vec<(usize, Registers)> = Vec::new();
    for number in 0..hardware.range_count() {
        slots.push((number, hardware.range(number).map_err(refused)?));
    }
    // A machine puts its first device into the last slot.
    slots.sort_by_key(|(_, registers)| core::cmp::Reverse(registers.base()));
    let mut names = Names::new();
    let mut found = Found { bus, devices: Vec::new(), silencer: Slots(BTreeMap::new()) };
    for (number, registers) in slots {
        if let Some(device) = look_into(&mut found, &mut names, number, registers) {
            found.devices.push(device);
        }
    }
    Ok(found)
}

/// What is said of the device in a slot, which is published if it can be used. `None` for an empty slot.
fn look_into(found: &mut Found<Slots>, names: &mut Names, number: usize, registers: Registers) -> Option<BusDevice> {
    let place = format!("slot {number}");
    let range = bus_server::range(registers.base(), registers.bytes(), RangeKind::Memory);
    let probed = match registers.bytes() {
        ..slot::LEAST_BYTES => Err(String::from("the slot is too short for a virtio device")),
        _ => slot::probe(&mut Slot(&registers)).map_err(|trouble| format!("{trouble}")),
    };
    let (device, published) = match probed {
        Ok(None) => return None,
        Ok(Some(device)) => {
            let published = publish(found, names, device.device_id, number, registers);
            (Some(device), published)
        }
        Err(trouble) => (None, Err(trouble)),
    };
    let mut described = match &published {
        Ok(name) => record(&place, name, ""),
        Err(trouble) => {
            report::error(format_args!("{place}: {trouble}"));
            record(&place, "", trouble)
        }
    };
    described.ranges[0] = range;
    if let Some(Device { device_id, vendor_id, version }) = device {
        (described.vendor, described.device, described.revision) = (vendor_id, device_id, version);
    }
    Some(described)
}

/// Lets drivers open the device in a slot; gives its name.
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
        silence(&mut Slot(&registers)).map_err(|_| String::from("it does not reset"))?;
    }
    publication.add_range(number, 0, registers.bytes()).map_err(not_offered)?;
    if !is_adopted {
        publication.add_interrupt(number).map_err(not_offered)?;
    }
    let device = publication.open().map_err(not_offered)?;
    found.silencer.0.insert(device, (name.clone(), registers));
    Ok(name)
}

//! A virtio device on the bus, from the firmware's hands to its driver's and back.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use bus_server::not_offered;
use pci::msix::{Message, Table};
use pci::virtio::Structures;
use pci::{Address, Bar, BarKind, Function, Placement, Span, bars, register, set_command};
use sip::hardware::bus::{Bus, DeviceNumber, Publication};
use sip::{Deadline, Status};
use virtio_bus::silence;

use crate::Devices;
use crate::access::{Space, Windows};

/// A device gets one interrupt for itself and one for each of its first queues.
const MAX_INTERRUPTS: u16 = 3;
const BELOW_4_GIB: u64 = 1 << 32;
/// Between two looks at a device that is to fall silent.
const PAUSE_NS: u64 = 100_000;

/// The device answers to memory addresses, uses no interrupt pin, and reaches no memory by itself.
const SILENT: u16 = register::COMMAND_MEMORY | register::COMMAND_NO_PIN;

/// A published device.
pub struct Device {
    name: String,
    address: Address,
    structures: Structures,
    table: Table,
    messages: Vec<Message>,
}

/// A device that is to be published.
pub struct Offer<'a> {
    /// The bus.
    pub bus: &'a Bus,
    /// Its name.
    pub name: &'a str,
    /// What it is.
    pub function: &'a Function,
    /// All functions of the bus.
    pub functions: &'a [Function],
    /// Where it is being offered.
    pub publication: Publication,
}

/// Lets drivers open a device, after it was given addresses where it had none, reset, and told how to interrupt. One
/// that a driver may have open is left as it is.
pub fn open(
    offer: Offer<'_>,
    devices: &mut Devices,
    placement: &mut Placement,
    bars: &mut [Bar],
) -> Result<(DeviceNumber, Device), String> {
    let address = offer.function.address;
    let adopted = offer.publication.adopted().map(|messages| messages.iter().map(message).collect::<Vec<_>>());
    if adopted.is_none() {
        set_command(&mut devices.space, address, 0);
        give_addresses(&offer, devices, placement, bars)?;
    }
    let structures = Structures::find(&mut devices.space, address, bars).map_err(|error| error.to_string())?;
    let table = Table::find(&mut devices.space, address, bars)
        .ok_or_else(|| String::from("it cannot interrupt by messages (MSI-X)"))?;
    if structures.overlap(table.span) {
        return Err(String::from("its table of messages lies among the registers that its driver needs"));
    }
    add_ranges(&offer.publication, &devices.windows, &structures)?;
    let mut device = Device { name: offer.name.into(), address, structures, table, messages: Vec::new() };
    match adopted {
        Some(messages) => device.messages = messages,
        None => {
            device.messages = add_interrupts(&offer, device.table.entries)?;
            device.renew(&mut devices.space, &mut devices.windows)?;
        }
    }
    let number = offer.publication.open().map_err(not_offered)?;
    Ok((number, device))
}

/// What a device that may be at work is known to answer to.
pub fn spans_in_use(space: &mut Space, address: Address, bars: &[Bar]) -> impl Iterator<Item = Span> {
    let structures = Structures::find(space, address, bars).ok();
    let table = Table::find(space, address, bars).map(|table| table.span);
    let structures: Vec<Span> = structures.iter().flat_map(Structures::spans).collect();
    structures.into_iter().chain(table)
}

impl Device {
    /// Silences the device, and makes it ready for its next driver: reset, with its messages in place, and allowed to
    /// reach memory, which it does only once a driver has told it where.
    pub fn renew(&self, space: &mut Space, windows: &mut Windows) -> Result<(), String> {
        set_command(space, self.address, SILENT);
        silence(&mut DeviceStatus(windows, self.structures.status()))
            .map_err(|_| format!("{} does not reset", self.name))?;
        if !self.table.set(space, windows, self.address, &self.messages) {
            return Err(format!("the table of messages of {} cannot be written", self.name));
        }
        set_command(space, self.address, SILENT | register::COMMAND_MASTER);
        Ok(())
    }
}

struct DeviceStatus<'a>(&'a Windows, u64);

impl virtio_bus::Status for DeviceStatus<'_> {
    fn read(&mut self) -> u32 {
        self.0.read8(self.1).into()
    }

    fn write(&mut self, status: u32) {
        self.0.write8(self.1, status as u8);
    }

    fn pause(&mut self) {
        sip::time::sleep_until(Deadline::after_ns(PAUSE_NS));
    }
}

fn message(message: &sip::hardware::bus::Message) -> Message {
    Message { address: message.address, data: message.data }
}

/// Moves what lies in no window, or on top of another function's addresses, to where there is room.
fn give_addresses(
    offer: &Offer<'_>,
    devices: &mut Devices,
    placement: &mut Placement,
    bars: &mut [Bar],
) -> Result<(), String> {
    let bridge = offer.function.behind.and_then(|index| offer.functions.get(index)?.bridge);
    let passed_on: Vec<Span> =
        offer.functions.iter().filter_map(|function| function.bridge).flat_map(windows).collect();
    for bar in bars.iter_mut().filter(|bar| bar.is_memory()) {
        let keeps = bar.base != 0
            && devices.windows.place_of(bar.span()).is_some()
            && bridge.is_none_or(|bridge| windows(bridge).any(|window| window.contains(bar.span())))
            && placement.is_alone(bar.span());
        if keeps {
            continue;
        }
        let limit = if bar.kind == BarKind::Memory64 { u64::MAX } else { BELOW_4_GIB };
        let placed = match bridge {
            Some(bridge) => {
                let within = bridge.memory.ok_or("the bridge that it lies behind passes no addresses on")?;
                placement.place(bar.bytes, limit, Some(within))
            }
            None => {
                let mut outside = placement.clone();
                passed_on.iter().for_each(|&window| outside.avoid(window));
                outside.place(bar.bytes, limit, None).inspect(|&placed| placement.avoid(placed))
            }
        };
        let placed = placed.ok_or_else(|| format!("there is no room for its {} bytes of registers", bar.bytes))?;
        bars::place(&mut devices.space, offer.function.address, bar, placed.base);
    }
    Ok(())
}

fn windows(bridge: pci::Bridge) -> impl Iterator<Item = Span> {
    bridge.memory.into_iter().chain(bridge.prefetchable)
}

/// Adds the ranges in the order that drivers expect: common registers, doorbells, interrupt status, the device's
/// own (or the interrupt status again), and the first doorbell alone, whose length is the distance to the next.
fn add_ranges(publication: &Publication, windows: &Windows, structures: &Structures) -> Result<(), String> {
    let own = structures.device.unwrap_or(structures.interrupt_status);
    let first = Span { bytes: structures.doorbell_distance.into(), ..structures.notification };
    let all = [structures.common, structures.notification, structures.interrupt_status, own];
    // Where there is room for one doorbell only, all queues have it.
    let several = first.bytes != 0 && structures.notification.contains(first);
    for span in all.into_iter().chain(several.then_some(first)) {
        let (range, offset) = windows
            .place_of(span)
            .ok_or_else(|| String::from("its registers lie where the machine has no room for devices"))?;
        publication.add_range(range, offset, span.bytes).map_err(not_offered)?;
    }
    Ok(())
}

/// Takes interrupts into use for the first entries of the device's table.
fn add_interrupts(offer: &Offer<'_>, entries: u16) -> Result<Vec<Message>, String> {
    let mut messages = Vec::new();
    for _ in 0..entries.min(MAX_INTERRUPTS) {
        match offer.bus.allocate_interrupt() {
            Ok(allocated) => {
                offer.publication.add_interrupt(allocated.interrupt).map_err(not_offered)?;
                messages.push(message(&allocated.message));
            }
            Err(Status::Exhausted) if !messages.is_empty() => break,
            Err(status) => return Err(not_offered(status)),
        }
    }
    Ok(messages)
}

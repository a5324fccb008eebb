//! A virtio device on the bus: taken over from the firmware, published, and quiesced after its driver.

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

/// Maximum interrupts per device: one for configuration changes and one for each of its first queues.
const MAX_INTERRUPTS: u16 = 3;
/// With more functions on the bus than this, each gets a single interrupt: a processor has some 200 vectors.
const MAX_FUNCTIONS_WITH_VECTORS: usize = 32;
const BELOW_4_GIB: u64 = 1 << 32;
/// Polling interval of a reset, in nanoseconds.
const PAUSE_NS: u64 = 100_000;

/// Command register of a quiesced device: memory decoding on, INTx off, no bus mastering.
const SILENT: u16 = register::COMMAND_MEMORY | register::COMMAND_NO_PIN;

/// A published device.
pub struct Device {
    name: String,
    address: Address,
    structures: Structures,
    table: Table,
    messages: Vec<Message>,
}

/// A device for publication.
pub struct Offer<'a> {
    /// The bus.
    pub bus: &'a Bus,
    /// Its name.
    pub name: &'a str,
    /// Its function.
    pub function: &'a Function,
    /// All functions of the bus.
    pub functions: &'a [Function],
    /// Its publication.
    pub publication: Publication,
}

/// Publishes a device, after assigning missing addresses, resetting it and setting up its MSI-X table. A device
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
    let table =
        Table::find(&mut devices.space, address, bars).ok_or_else(|| String::from("it does not support MSI-X"))?;
    if structures.overlap(table.span) {
        return Err(String::from("its MSI-X table shares a range with the registers that its driver needs"));
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

/// Returns the address ranges known to be used by a device that may be running.
pub fn spans_in_use(space: &mut Space, address: Address, bars: &[Bar]) -> impl Iterator<Item = Span> {
    let structures = Structures::find(space, address, bars).ok();
    let table = Table::find(space, address, bars).map(|table| table.span);
    let structures: Vec<Span> = structures.iter().flat_map(Structures::spans).collect();
    structures.into_iter().chain(table)
}

impl Device {
    /// Quiesces the device and prepares it for its next driver: reset, with its MSI-X table restored, and allowed to
    /// do DMA, which it does only after a driver has set up its queues.
    pub fn renew(&self, space: &mut Space, windows: &mut Windows) -> Result<(), String> {
        set_command(space, self.address, SILENT);
        silence(&mut DeviceStatus(windows, self.structures.status()))
            .map_err(|_| format!("{} does not reset", self.name))?;
        if !self.table.set(space, windows, self.address, &self.messages) {
            return Err(format!("the MSI-X table of {} cannot be written", self.name));
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

/// Relocates BARs that lie in no window, or overlap those of another function.
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
                let within = bridge.memory.ok_or("its bridge forwards no addresses")?;
                placement.place(bar.bytes, limit, Some(within))
            }
            None => {
                let mut outside = placement.clone();
                passed_on.iter().for_each(|&window| outside.avoid(window));
                outside.place(bar.bytes, limit, None).inspect(|&placed| placement.avoid(placed))
            }
        };
        let placed = placed.ok_or_else(|| format!("no address range for its {} bytes of registers", bar.bytes))?;
        bars::place(&mut devices.space, offer.function.address, bar, placed.base);
    }
    Ok(())
}

fn windows(bridge: pci::Bridge) -> impl Iterator<Item = Span> {
    bridge.memory.into_iter().chain(bridge.prefetchable)
}

/// Adds the ranges in the order that drivers expect: common registers, doorbells, interrupt status, the device's
/// own (or the interrupt status again), and the first doorbell alone, whose length is the doorbell stride.
fn add_ranges(publication: &Publication, windows: &Windows, structures: &Structures) -> Result<(), String> {
    let own = structures.device.unwrap_or(structures.interrupt_status);
    let first = Span { bytes: structures.doorbell_distance.into(), ..structures.notification };
    let all = [structures.common, structures.notification, structures.interrupt_status, own];
    // If the range holds a single doorbell, all queues share it.
    let several = first.bytes != 0 && structures.notification.contains(first);
    for span in all.into_iter().chain(several.then_some(first)) {
        let (range, offset) = windows
            .place_of(span)
            .ok_or_else(|| String::from("its registers lie outside the machine's windows for devices"))?;
        publication.add_range(range, offset, span.bytes).map_err(not_offered)?;
    }
    Ok(())
}

/// Allocates interrupts for the first entries of the device's MSI-X table.
fn add_interrupts(offer: &Offer<'_>, entries: u16) -> Result<Vec<Message>, String> {
    let most = if offer.functions.len() > MAX_FUNCTIONS_WITH_VECTORS { 1 } else { MAX_INTERRUPTS };
    let mut messages = Vec::new();
    for _ in 0..entries.min(most) {
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

//! Lists the devices of the machine's buses, as reported by their drivers.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod names;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use bus_server::RangeKind;
use client::access::AccessError;
use client::answer::{DEVICE_LIMIT, REQUEST_LIMIT, wait};
use client::namespace::Namespace;
use contracts::device_bus::{self, BusDevice, BusRange};
use contracts::directory::NameError;
use sip::exheap::ExVec;
use stdio::{Output, report};
use text::{Align, Table, bytes, json_string, padded};

sip::startup!();

/// Folder in which bus drivers register.
const BUSES: &str = "/dev/bus";

/// One bus and its devices.
struct Bus {
    name: String,
    devices: Vec<BusDevice>,
}

/// Prints a line for each device.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let names = match namespace.names(BUSES) {
        Ok(names) => names,
        // A machine without a bus has no such folder.
        Err(AccessError::Name(NameError::NotFound)) => Vec::new(),
        Err(error) => return report::path_error(BUSES, &error),
    };
    let mut buses = Vec::new();
    let mut status = 0;
    for name in names {
        let name = name.text();
        let path = path::join(BUSES, &name);
        match list(&mut namespace, &path) {
            Ok(devices) => buses.push(Bus { name, devices }),
            Err(error) => status = report::path_error(&path, &error),
        }
    }
    let text = match (startup.json, buses.is_empty()) {
        (true, _) => json(&buses),
        (false, true) => String::from("no PCI bus and no virtio-mmio bus\n"),
        (false, false) => table(&buses, startup.ranges),
    };
    let mut output = Output::new(startup.output);
    output.write(text.as_bytes()).map_or(1, |()| output.finish_with(status))
}

fn list(namespace: &mut Namespace, path: &str) -> Result<Vec<BusDevice>, AccessError> {
    let mut endpoint =
        namespace.open(path, device_bus::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
            device_bus::ImpStart::Success { next } => Ok(next),
            device_bus::ImpStart::Refused { .. } => Err(NameError::Exhausted.into()),
            device_bus::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        })?;
    let mut room = 64;
    loop {
        match wait(endpoint.list(ExVec::<BusDevice>::new(room)?), DEVICE_LIMIT)? {
            device_bus::ImpReadyAfterList::Listed { devices, count, next } => {
                let count = count as usize;
                if count <= devices.len() {
                    return Ok(devices[..count].to_vec());
                }
                room = count;
                endpoint = next;
            }
            device_bus::ImpReadyAfterList::ChannelClosed(_) => return Err(AccessError::ServerEnded),
        }
    }
}

fn table(buses: &[Bus], with_ranges: bool) -> String {
    let headings = ["BUS", "PLACE", "ID", "DEVICE", "DRIVERS KNOW IT AS"];
    let mut table = Table::new(&headings.map(|heading| (heading, Align::Left)));
    for bus in buses {
        for device in &bus.devices {
            let (name, error) = (padded(&device.name), padded(&device.error));
            let use_of_it = match (&*name, &*error) {
                ("", "") => String::from("-"),
                ("", error) => format!("(not offered: {error})"),
                (name, _) => String::from(name),
            };
            let id = format!("{:04x}:{:04x}", device.vendor, device.device);
            table.row([bus.name.clone(), padded(&device.place), id, names::of(&bus.name, device), use_of_it]);
            if with_ranges {
                let blank = String::new;
                ranges(device).for_each(|(_, range)| table.row([blank(), blank(), blank(), range_text(range)]));
            }
        }
    }
    table.render()
}

fn ranges(device: &BusDevice) -> impl Iterator<Item = (&'static str, &BusRange)> {
    device.ranges.iter().filter_map(|range| Some((range_word(range.kind)?, range)))
}

fn range_word(kind: u32) -> Option<&'static str> {
    const KINDS: [(RangeKind, &str); 3] = [
        (RangeKind::Ports, "ports"),
        (RangeKind::Memory, "memory"),
        (RangeKind::PrefetchableMemory, "prefetchable memory"),
    ];
    KINDS.into_iter().find(|(known, _)| *known as u32 == kind).map(|(_, word)| word)
}

fn range_text(range: &BusRange) -> String {
    let word = range_word(range.kind).unwrap_or("unknown");
    if range.kind == RangeKind::Ports as u32 {
        format!("{:#x} {word}, {}", range.base, range.bytes)
    } else {
        format!("{:#x} {word}, {}", range.base, bytes(range.bytes))
    }
}

fn json(buses: &[Bus]) -> String {
    let mut lines = Vec::new();
    for bus in buses {
        for device in &bus.devices {
            let ranges: Vec<String> = ranges(device)
                .map(|(kind, range)| {
                    format!("{{\"kind\": \"{kind}\", \"base\": {}, \"bytes\": {}}}", range.base, range.bytes)
                })
                .collect();
            lines.push(format!(
                "  {{\"bus\": {}, \"place\": {}, \"vendor\": {}, \"device\": {}, \"subsystem_vendor\": {}, \
                 \"subsystem\": {}, \"class\": {}, \"revision\": {}, \"name\": {}, \"error\": {}, \"ranges\": [{}]}}",
                json_string(&bus.name),
                json_string(&padded(&device.place)),
                device.vendor,
                device.device,
                device.subsystem_vendor,
                device.subsystem,
                device.class,
                device.revision,
                json_string(&padded(&device.name)),
                json_string(&padded(&device.error)),
                ranges.join(", ")
            ));
        }
    }
    if lines.is_empty() { String::from("[]\n") } else { format!("[\n{}\n]\n", lines.join(",\n")) }
}

//! Buses at addresses that no manifest can state: the PCI host bridge and the slots of virtio-mmio.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use hal_api::{Hardware, Range, RangeKind};
use x86_64::instructions::port::Port;

use crate::firmware::Firmware;
use crate::regions::Regions;

const PCI_ADDRESS: u64 = 0xcf8;
const PCI_PORTS: u64 = 8;
const GIB: u64 = 1 << 30;
/// Devices of the chipset lie from here to 4 GiB.
const LOW_WINDOW_END: u64 = 0xfec0_0000;
/// Upper bound of the addresses that PCs decode for devices.
const HIGH_WINDOW_END: u64 = 1 << 40;
/// Length of the registers of a virtio-mmio device.
const SLOT_BYTES: u64 = 512;
const MAX_SLOTS: usize = 64;

/// Finds buses in the firmware's tables and on the command line.
pub(crate) fn find(firmware: &Firmware, command_line: &str, memory: &Regions) -> Vec<Hardware> {
    let mut found = Vec::new();
    if firmware.configuration_space.is_some() || has_pci_ports() {
        found.push(pci(firmware, memory));
    }
    let mut slots: Vec<(u64, u32)> = command_line.split_whitespace().filter_map(slot_parameter).collect();
    if slots.is_empty() {
        slots.extend(firmware.slots().map(|slot| (slot.address, slot.line)));
    }
    slots.truncate(MAX_SLOTS);
    if !slots.is_empty() {
        found.push(Hardware {
            name: String::from("virtio-mmio"),
            ranges: slots.iter().map(|&(base, _)| Range { kind: RangeKind::Memory, base, bytes: SLOT_BYTES }).collect(),
            interrupts: slots.iter().map(|&(_, line)| line).collect(),
        });
    }
    found
}

/// Parses `virtio_mmio.device=512@0xfeb00000:5`, as Linux does: size, address, interrupt line.
fn slot_parameter(word: &str) -> Option<(u64, u32)> {
    let text = word.strip_prefix("virtio_mmio.device=")?;
    let (_, place) = text.split_once('@')?;
    let mut parts = place.split(':');
    let address = number(parts.next()?)?;
    let line = number(parts.next()?)?;
    Some((address, u32::try_from(line).ok()?))
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn has_pci_ports() -> bool {
    // SAFETY: selecting and reading a register of the configuration space changes nothing else; no
    // driver runs yet. Without such a space the port does not keep the value.
    unsafe {
        Port::<u32>::new(PCI_ADDRESS as u16).write(0x8000_0000);
        Port::<u32>::new(PCI_ADDRESS as u16).read() == 0x8000_0000
            && Port::<u32>::new(PCI_ADDRESS as u16 + 4).read() != u32::MAX
    }
}

/// Returns the PCI host bridge's ranges: the ports, the memory-mapped configuration space if there is one, and the
/// windows for devices: below 4 GiB and above all memory.
fn pci(firmware: &Firmware, memory: &Regions) -> Hardware {
    let mut ranges = vec![Range { kind: RangeKind::Ports, base: PCI_ADDRESS, bytes: PCI_PORTS }];
    let (mut window, mut high) = (0, 4 * GIB);
    for region in memory.iter() {
        if region.start < LOW_WINDOW_END {
            window = region.end.min(LOW_WINDOW_END);
        }
        high = high.max(region.end);
    }
    // The firmware may have reserved the top of memory; windows begin at a multiple of 256 MiB.
    window = window.next_multiple_of(GIB / 4);
    if let Some((base, bytes)) = firmware.configuration_space {
        ranges.push(Range { kind: RangeKind::Memory, base, bytes });
        if base < LOW_WINDOW_END {
            window = window.max(base + bytes);
        }
    }
    if window < LOW_WINDOW_END {
        ranges.push(Range { kind: RangeKind::Memory, base: window, bytes: LOW_WINDOW_END - window });
    }
    let high = high.next_multiple_of(GIB);
    if high < HIGH_WINDOW_END {
        ranges.push(Range { kind: RangeKind::Memory, base: high, bytes: HIGH_WINDOW_END - high });
    }
    Hardware { name: String::from("pci"), ranges, interrupts: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_read_as_linux_writes_them() {
        assert_eq!(slot_parameter("virtio_mmio.device=512@0xfeb00e00:12"), Some((0xfeb0_0e00, 12)));
        assert_eq!(slot_parameter("virtio_mmio.device=4K@4271898624:5:1"), Some((4_271_898_624, 5)));
        for bad in ["", "virtio_mmio.device=", "virtio_mmio.device=512@", "virtio_mmio.device=512@0xg:1", "x=512@0x1:5"]
        {
            assert_eq!(slot_parameter(bad), None, "{bad}");
        }
    }
}

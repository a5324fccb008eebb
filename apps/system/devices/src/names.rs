//! Names of device kinds. Deliberately not here: vendor and product names; such a list is longer than the rest of the
//! system.

use alloc::format;
use alloc::string::String;

use contracts::device_bus::BusDevice;

/// Virtio device kinds (virtio 1.2, section 5) by number.
const VIRTIO: [(u32, &str); 8] = [
    (1, "network card"),
    (2, "disk"),
    (3, "console"),
    (4, "random numbers"),
    (5, "memory balloon"),
    (8, "SCSI host"),
    (9, "9P file system"),
    (16, "graphics"),
];

/// Classes and subclasses of PCI devices (PCI Code and ID Assignment Specification 1.11), the most specific first.
const CLASSES: [(u32, u32, &str); 24] = [
    (0xffffff, 0x010601, "SATA controller"),
    (0xffffff, 0x010802, "NVMe controller"),
    (0xffff00, 0x010000, "SCSI controller"),
    (0xffff00, 0x010100, "IDE controller"),
    (0xff0000, 0x010000, "storage controller"),
    (0xffff00, 0x020000, "Ethernet controller"),
    (0xff0000, 0x020000, "network controller"),
    (0xffff00, 0x030000, "VGA controller"),
    (0xff0000, 0x030000, "display controller"),
    (0xff0000, 0x040000, "multimedia device"),
    (0xff0000, 0x050000, "memory controller"),
    (0xffff00, 0x060000, "host bridge"),
    (0xffff00, 0x060100, "ISA bridge"),
    (0xffff00, 0x060400, "PCI bridge"),
    (0xff0000, 0x060000, "bridge"),
    (0xff0000, 0x070000, "communication controller"),
    (0xff0000, 0x080000, "system peripheral"),
    (0xff0000, 0x090000, "input device"),
    (0xffff00, 0x0c0300, "USB controller"),
    (0xffff00, 0x0c0500, "SMBus controller"),
    (0xff0000, 0x0c0000, "serial bus controller"),
    (0xff0000, 0x0d0000, "wireless controller"),
    (0xff0000, 0x100000, "encryption controller"),
    (0xff0000, 0x120000, "accelerator"),
];

const VIRTIO_VENDOR: u32 = 0x1af4;

/// Returns the kind of a device in a few words.
pub fn of(bus: &str, device: &BusDevice) -> String {
    match virtio(bus, device) {
        Some(number) => match VIRTIO.iter().find(|(known, _)| *known == number) {
            Some((_, word)) => format!("virtio {word}"),
            None => format!("virtio device {number}"),
        },
        None => match CLASSES.iter().find(|(mask, class, _)| device.class & mask == *class) {
            Some((_, _, word)) => String::from(*word),
            None => format!("class {:06x}", device.class),
        },
    }
}

/// Returns the kind number of a virtio device; 0 if its slot holds an invalid value.
fn virtio(bus: &str, device: &BusDevice) -> Option<u32> {
    match device.device {
        number if bus == "virtio-mmio" => Some(number),
        modern @ 0x1040..=0x107f if device.vendor == VIRTIO_VENDOR => Some(modern - 0x1040),
        0x1000..=0x103f if device.vendor == VIRTIO_VENDOR => Some(device.subsystem),
        _ => None,
    }
}

//! The firmware's tables (ACPI), as far as they are needed: processors,
//! interrupt controllers, the PCI configuration space, power-off and reset.
//!
//! Key type: [`Firmware`]. Tables are read once, through crate `acpi`, while the first 4 GiB are mapped
//! by the entry code. A machine without tables gets the defaults of a PC.

use core::ptr::{self, NonNull};

use acpi::fadt::Fadt;
use acpi::madt::{Madt, MadtEntry};
use acpi::mcfg::Mcfg;
use acpi::{AcpiHandler, AcpiTables, PhysicalMapping};

use crate::handover::FirmwareTables;
use crate::power_button::Button;

/// Maximum processors: the kernel keeps a bit for each.
pub(crate) const MAX_PROCESSORS: usize = 64;
const MAX_CONTROLLERS: usize = 8;
/// Number of ISA interrupt lines.
pub(crate) const BUS_LINES: usize = 16;

/// An I/O APIC.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Controller {
    /// Physical address of its registers.
    pub address: u64,
    /// Global number (GSI) of its first input.
    pub first_input: u32,
}

/// Routing of an ISA interrupt line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Line {
    /// Global number (GSI) of the input.
    pub input: u32,
    /// Level-triggered; else edge-triggered.
    pub level: bool,
    /// Active low; else active high.
    pub low: bool,
}

/// A slot of virtio-mmio.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    /// Physical address of its registers.
    pub address: u64,
    /// Its interrupt line.
    pub line: u32,
}

const MAX_SLOTS: usize = 32;

/// Offset of the enable register from the status register of fixed events, in bytes (ACPI 6.5, 4.8.3.1).
const EVENT_ENABLE: u16 = 2;

/// Location of a firmware register.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Register {
    /// A port.
    Port(u16),
    /// A physical address.
    Memory(u64),
}

/// The machine's properties according to its firmware.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Firmware {
    /// Local APIC ids of the processors, the boot processor's first.
    pub processors: [u32; MAX_PROCESSORS],
    /// Number of processors.
    pub processor_count: usize,
    /// Physical address of the local APICs.
    pub local: u64,
    /// I/O controllers.
    pub controllers: [Controller; MAX_CONTROLLERS],
    /// Number of I/O controllers.
    pub controller_count: usize,
    /// Routing of the ISA lines.
    pub lines: [Line; BUS_LINES],
    /// Address and length in bytes of the memory-mapped PCI configuration space.
    pub configuration_space: Option<(u64, u64)>,
    slots: [Slot; MAX_SLOTS],
    slot_count: usize,
    /// Register and value for power-off (16 bits at a port, 8 in a sleep control register).
    pub off: Option<(Register, u16)>,
    /// Register and value for a reset.
    pub reset: Option<(Register, u8)>,
    /// The power button.
    pub button: Option<Button>,
}

impl Firmware {
    /// Returns the defaults of a PC.
    fn of_every_pc() -> Self {
        let mut lines = [Line::default(); BUS_LINES];
        (0..).zip(&mut lines).for_each(|(number, line)| line.input = number);
        let mut controllers = [Controller::default(); MAX_CONTROLLERS];
        controllers[0].address = 0xfec0_0000;
        Self {
            processors: [0; MAX_PROCESSORS],
            processor_count: 1,
            local: 0xfee0_0000,
            controllers,
            controller_count: 1,
            lines,
            configuration_space: None,
            slots: [Slot::default(); MAX_SLOTS],
            slot_count: 0,
            off: None,
            reset: None,
            button: None,
        }
    }

    /// Reads the tables. `own` is the local APIC id of the boot processor.
    ///
    /// # Safety
    /// The location comes from the boot loader, and the first 4 GiB are identity-mapped.
    pub(crate) unsafe fn read(location: FirmwareTables, own: u32) -> Self {
        let mut firmware = Self::of_every_pc();
        firmware.processors[0] = own;
        // SAFETY: by the loader the tables lie there; the library checks their checksums.
        let tables = unsafe {
            match location {
                FirmwareTables::RootPointer(address) => AcpiTables::from_rsdp(Identity, address),
                FirmwareTables::RootTable(revision, address) => AcpiTables::from_rsdt(Identity, revision, address),
                FirmwareTables::Unknown => AcpiTables::search_for_rsdp_bios(Identity),
            }
        };
        let Ok(tables) = tables else { return firmware };
        if let Ok(madt) = tables.find_table::<Madt>() {
            firmware.read_interrupts(&madt, own);
        }
        if let Ok(mcfg) = tables.find_table::<Mcfg>()
            && let Some(entry) = mcfg.entries().first()
        {
            let buses = u64::from(entry.bus_number_end - entry.bus_number_start) + 1;
            firmware.configuration_space = Some((entry.base_address, buses << 20));
        }
        let code = tables.dsdt().map_or(&[][..], |dsdt| {
            // SAFETY: the table lies at the address and has the length that the library has checked.
            unsafe { core::slice::from_raw_parts(ptr::with_exposed_provenance(dsdt.address), dsdt.length as usize) }
        });
        if let Ok(fadt) = tables.find_table::<Fadt>() {
            firmware.read_power(&fadt, code);
        }
        for slot in virtio_slots(code).take(MAX_SLOTS) {
            firmware.slots[firmware.slot_count] = slot;
            firmware.slot_count += 1;
        }
        firmware
    }

    fn read_interrupts(&mut self, madt: &PhysicalMapping<Identity, Madt>, own: u32) {
        self.local = u64::from(madt.get().local_apic_address);
        let mut controllers = 0;
        for entry in madt.get().entries() {
            match entry {
                MadtEntry::LocalApic(entry) if entry.flags & 1 != 0 => self.add_processor(entry.apic_id.into(), own),
                MadtEntry::LocalX2Apic(entry) if entry.flags & 1 != 0 => self.add_processor(entry.x2apic_id, own),
                MadtEntry::LocalApicAddressOverride(entry) => self.local = entry.local_apic_address,
                MadtEntry::IoApic(entry) if controllers < MAX_CONTROLLERS => {
                    self.controllers[controllers] = Controller {
                        address: entry.io_apic_address.into(),
                        first_input: entry.global_system_interrupt_base,
                    };
                    controllers += 1;
                }
                MadtEntry::InterruptSourceOverride(entry) => {
                    let flags = entry.flags;
                    if let Some(line) = self.lines.get_mut(usize::from(entry.irq)) {
                        *line = Line {
                            input: entry.global_system_interrupt,
                            level: flags >> 2 & 3 == 3,
                            low: flags & 3 == 3,
                        };
                    }
                }
                _ => {}
            }
        }
        self.controller_count = controllers.max(1);
    }

    fn add_processor(&mut self, number: u32, own: u32) {
        // Larger ids would need x2APIC mode.
        if number != own && number < 255 && self.processor_count < MAX_PROCESSORS {
            self.processors[self.processor_count] = number;
            self.processor_count += 1;
        }
    }

    /// Returns the slots of virtio-mmio.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.slots[..self.slot_count].iter().copied()
    }

    /// Returns the power button among the fixed events: their block has the status register first, then the enable register.
    fn fixed_button(&self, fadt: &PhysicalMapping<Identity, Fadt>) -> Option<Button> {
        let flags = fadt.flags;
        if flags.power_button_is_control_method() {
            return None;
        }
        let Some(Register::Port(status @ 1..)) = fadt.pm1a_event_block().ok().as_ref().and_then(register) else {
            return None;
        };
        Some(Button::Fixed { status, enable: status.checked_add(EVENT_ENABLE)?, line: fadt.sci_interrupt.into() })
    }

    fn read_power(&mut self, fadt: &PhysicalMapping<Identity, Fadt>, code: &[u8]) {
        let flags = fadt.flags;
        if flags.supports_system_reset_via_fadt()
            && let Ok(address) = fadt.reset_register()
        {
            self.reset = register(&address).map(|register| (register, fadt.reset_value));
        }
        self.button = if flags.system_is_hw_reduced_acpi() { event_button(code) } else { self.fixed_button(fadt) };
        let Some(sleep_type) = soft_off_type(code) else { return };
        if flags.system_is_hw_reduced_acpi() {
            // Sleep control register: type in bits 2 to 4, enable in bit 5 (ACPI 6.5, 4.8.3.7).
            let address = fadt.sleep_control_register().ok().flatten();
            self.off = address.as_ref().and_then(register).map(|at| (at, u16::from(sleep_type) << 2 | 1 << 5));
        } else {
            // PM1 control: type in bits 10 to 12, enable in bit 13 (ACPI 6.5, 4.8.3.2.1).
            let address = fadt.pm1a_control_block().ok();
            self.off = address.as_ref().and_then(register).map(|at| (at, u16::from(sleep_type) << 10 | 1 << 13));
        }
    }
}

/// Finds the power button of a generic event device (ACPI 6.5, 5.6.9): the device with the identifier `ACPI0013`, its
/// interrupt, and the memory-mapped register from which its AML reads the event. QEMU's microvm describes it so, in constants.
fn event_button(code: &[u8]) -> Option<Button> {
    const IDENTIFIER: &[u8] = b"ACPI0013";
    const INTERRUPT: &[u8] = &[0x89, 6, 0];
    const REGION: &[u8] = &[0x5b, 0x80];
    const IN_MEMORY_AT: &[u8] = &[0, 0x0c];
    /// Length of the region's name.
    const NAME_BYTES: usize = 4;
    let find = |text: &[u8], words: &[u8]| text.windows(words.len()).position(|window| window == words);
    let number = |bytes: &[u8]| bytes.get(..4)?.try_into().ok().map(u32::from_le_bytes);
    let device = code.get(find(code, IDENTIFIER)? + IDENTIFIER.len()..)?;
    // A flags byte and an interrupt count come before the interrupt.
    let line = number(device.get(find(device, INTERRUPT)? + INTERRUPT.len() + 2..)?)?;
    let region = device.get(find(device, REGION)? + REGION.len() + NAME_BYTES..)?;
    let selector = number(region.strip_prefix(IN_MEMORY_AT)?)?;
    Some(Button::Event { selector: selector.into(), line })
}

fn register(address: &acpi::address::GenericAddress) -> Option<Register> {
    match address.address_space {
        acpi::address::AddressSpace::SystemIo => u16::try_from(address.address).ok().map(Register::Port),
        acpi::address::AddressSpace::SystemMemory => Some(Register::Memory(address.address)),
        _ => None,
    }
}

/// Returns the sleep type of soft-off: the first element of the package `_S5_` in the AML (ACPI
/// 6.5, 7.4.2.6). The package is a constant, so that no interpreter is needed.
fn soft_off_type(code: &[u8]) -> Option<u8> {
    const PACKAGE: u8 = 0x12;
    const BYTE: u8 = 0x0a;
    let at = code.windows(4).position(|window| window == b"_S5_")?;
    let rest = code.get(at + 4..)?;
    let rest = rest.strip_prefix(&[PACKAGE])?;
    // The upper two bits of the length's first byte are the number of its further bytes; the element count follows.
    let length_bytes = usize::from(rest.first()? >> 6) + 1;
    match *rest.get(length_bytes + 1..)? {
        [BYTE, value, ..] => Some(value & 7),
        [value @ (0 | 1), ..] => Some(value),
        _ => None,
    }
}

/// Finds the devices with the identifier `LNRO0005` and their resources: a 32-bit memory range and an
/// interrupt (ACPI 6.5, 6.4.3.4 and 6.4.3.6). QEMU's microvm describes its slots so, in constants.
fn virtio_slots(code: &[u8]) -> impl Iterator<Item = Slot> + '_ {
    const IDENTIFIER: &[u8] = b"LNRO0005";
    const MEMORY: &[u8] = &[0x86, 9, 0];
    const INTERRUPT: &[u8] = &[0x89, 6, 0];
    let mut rest = code;
    core::iter::from_fn(move || {
        let at = rest.windows(IDENTIFIER.len()).position(|window| window == IDENTIFIER)?;
        rest = &rest[at + IDENTIFIER.len()..];
        let end = rest.windows(IDENTIFIER.len()).position(|window| window == IDENTIFIER).unwrap_or(rest.len());
        let own = &rest[..end];
        let after = |head: &[u8], skipped: usize| {
            let at = own.windows(head.len()).position(|window| window == head)? + head.len() + skipped;
            own.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
        };
        // A flags byte before the address; a flags byte and an interrupt count before the interrupt.
        Some(Slot { address: after(MEMORY, 1)?.into(), line: after(INTERRUPT, 2)? })
    })
}

/// Accesses tables at their physical addresses.
#[derive(Clone, Copy)]
struct Identity;

impl AcpiHandler for Identity {
    unsafe fn map_physical_region<T>(&self, address: usize, bytes: usize) -> PhysicalMapping<Self, T> {
        let pointer = NonNull::new(ptr::with_exposed_provenance_mut(address)).unwrap_or(NonNull::dangling());
        // SAFETY: the first 4 GiB are identity-mapped while tables are read.
        unsafe { PhysicalMapping::new(address, pointer, bytes, bytes, *self) }
    }

    fn unmap_physical_region<T>(_region: &PhysicalMapping<Self, T>) {}
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn the_value_for_off_is_found_in_either_form() {
        assert_eq!(soft_off_type(b"xx_S5_\x12\x06\x04\x0a\x05\x0a\x05\x00\x00"), Some(5));
        assert_eq!(soft_off_type(b"_S5_\x12\x06\x04\x00\x00\x00\x00"), Some(0));
        assert_eq!(soft_off_type(b"_S5_\x12\x46\x00\x04\x01\x01"), Some(1));
    }

    #[test]
    fn slots_are_found_by_their_identifier() {
        let mut code = Vec::new();
        for (address, line) in [(0xfeb0_0000u32, 24u32), (0xfeb0_0200, 25)] {
            code.extend(b"VR00\x08_HID\x0dLNRO0005\0\x08_CRS\x11\x19\x0a\x16\x86\x09\x00\x01");
            code.extend(address.to_le_bytes());
            code.extend(512u32.to_le_bytes());
            code.extend(b"\x89\x06\x00\x01\x01");
            code.extend(line.to_le_bytes());
        }
        let slots: Vec<_> = virtio_slots(&code).map(|slot| (slot.address, slot.line)).collect();
        assert_eq!(slots, [(0xfeb0_0000, 24), (0xfeb0_0200, 25)]);
        for end in 0..code.len() {
            assert!(virtio_slots(&code[..end]).count() <= 2);
        }
    }

    #[test]
    fn the_button_of_an_event_device_is_found() {
        let mut code =
            Vec::from(*b"xGED_\x08_HID\x0dACPI0013\0\x08_UID\x0dGED\0\x08_CRS\x11\x0d\x0a\x0a\x89\x06\x00\x03\x01");
        code.extend(9u32.to_le_bytes());
        code.extend(b"\x79\x00\x5b\x80EREG\x00\x0c");
        code.extend(0xfea0_0000u32.to_le_bytes());
        assert_eq!(event_button(&code), Some(Button::Event { selector: 0xfea0_0000, line: 9 }));
        for end in 0..code.len() {
            assert_eq!(event_button(&code[..end]), None, "{end}");
        }
    }

    #[test]
    fn nonsense_is_no_value() {
        for code in [
            &b""[..],
            b"_S5",
            b"_S5_",
            b"_S5_\x12",
            b"_S5_\x12\xff",
            b"_S5_\x12\x06\x04\x0a",
            b"_S5_\x10\x06\x04\x0a\x05",
        ] {
            assert_eq!(soft_off_type(code), None, "{code:?}");
        }
    }
}

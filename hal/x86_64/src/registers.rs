//! Device registers, which drivers access through the kernel, one access at a time.
//!
//! MMIO is identity-mapped, uncached, on first access.

use core::ptr;

use hal_api::{Range, RangeKind, Width};
use x86_64::instructions::port::Port;

use crate::firmware::Firmware;
use crate::frames::FRAME_BYTES;
use crate::paging::{self, Access, PageSize};
use crate::power_button::Button;
use crate::regions::Regions;

/// Ports that the machine itself drives: the legacy interrupt controllers, the interval timer, reset and QEMU's
/// debug port and exit device.
const OWN_PORTS: [(u64, u64); 6] =
    [(0x20, 0x22), (0x40, 0x44), (0x64, 0x65), (0xa0, 0xa2), (0xe9, 0xea), (0x501, 0x505)];
/// End of the addresses that can be identity-mapped.
const MAX_ADDRESS: u64 = 1 << 47;

/// Returns whether a driver may have the range: see [`hal_api::Machine::may_claim`].
pub(crate) fn may_claim(range: Range, memory: &Regions, firmware: &Firmware) -> bool {
    let Some(end) = range.base.checked_add(range.bytes) else { return false };
    let apart = |start: u64, other_end: u64| end <= start || other_end <= range.base;
    if range.bytes == 0 {
        return false;
    }
    match range.kind {
        RangeKind::Ports => {
            let button = firmware.button.and_then(Button::ports);
            end <= 1 << 16 && OWN_PORTS.into_iter().chain(button).all(|(start, end)| apart(start, end))
        }
        RangeKind::Memory => {
            let page = FRAME_BYTES as u64;
            let controllers = firmware.controllers[..firmware.controller_count].iter().map(|one| one.address);
            let own = controllers.chain([firmware.local]).all(|address| apart(address, address + page));
            // Below 1 MiB lie the firmware's tables and the start-up code of other processors.
            end <= MAX_ADDRESS
                && range.base >= 1 << 20
                && own
                && memory.iter().all(|region| apart(region.start, region.end))
        }
    }
}

fn mapped(address: u64) -> Option<usize> {
    let page = address & !(FRAME_BYTES as u64 - 1);
    paging::map_identity(page, page + FRAME_BYTES as u64, Access::Device, PageSize::Small).ok()?;
    Some(address as usize)
}

/// Reads a register; all ones if it cannot be mapped.
pub(crate) fn read(kind: RangeKind, address: u64, width: Width) -> u64 {
    match kind {
        RangeKind::Ports => {
            let port = address as u16;
            // SAFETY: the kernel has checked that a driver may have this port (`may_claim`); the effect of reading
            // it is that driver's responsibility, and changes no memory.
            unsafe {
                match width {
                    Width::Byte => Port::<u8>::new(port).read().into(),
                    Width::Word => Port::<u16>::new(port).read().into(),
                    _ => Port::<u32>::new(port).read().into(),
                }
            }
        }
        RangeKind::Memory => {
            let Some(address) = mapped(address) else { return u64::MAX };
            // SAFETY: the kernel has checked that the address lies in a range without ordinary memory
            // (`may_claim`) and is aligned to the width; it is mapped as a device's.
            unsafe {
                match width {
                    Width::Byte => ptr::with_exposed_provenance::<u8>(address).read_volatile().into(),
                    Width::Word => ptr::with_exposed_provenance::<u16>(address).read_volatile().into(),
                    Width::Double => ptr::with_exposed_provenance::<u32>(address).read_volatile().into(),
                    Width::Quad => ptr::with_exposed_provenance::<u64>(address).read_volatile(),
                }
            }
        }
    }
}

/// Writes a register.
pub(crate) fn write(kind: RangeKind, address: u64, width: Width, value: u64) {
    match kind {
        RangeKind::Ports => {
            let port = address as u16;
            // SAFETY: as in `read`. A device that does DMA is reached only through a bus
            // driver, which the administrator has allowed to hand out such devices.
            unsafe {
                match width {
                    Width::Byte => Port::<u8>::new(port).write(value as u8),
                    Width::Word => Port::<u16>::new(port).write(value as u16),
                    _ => Port::<u32>::new(port).write(value as u32),
                }
            }
        }
        RangeKind::Memory => {
            let Some(address) = mapped(address) else { return };
            // SAFETY: as in `read`.
            unsafe {
                match width {
                    Width::Byte => ptr::with_exposed_provenance_mut::<u8>(address).write_volatile(value as u8),
                    Width::Word => ptr::with_exposed_provenance_mut::<u16>(address).write_volatile(value as u16),
                    Width::Double => ptr::with_exposed_provenance_mut::<u32>(address).write_volatile(value as u32),
                    Width::Quad => ptr::with_exposed_provenance_mut::<u64>(address).write_volatile(value),
                }
            }
        }
    }
}

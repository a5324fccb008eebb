//! Register structures of virtio devices (virtio 1.2, 4.1.4).

use core::fmt;

use layout::Map;
use virtio_bus::common;

use crate::capabilities::{self, Capability};
use crate::{Address, Bar, ConfigurationSpace, Function, Span};

const VENDOR: u16 = 0x1af4;
/// Transitional devices; their type is the subsystem id.
const TRANSITIONAL: core::ops::RangeInclusive<u16> = 0x1000..=0x103f;
const MODERN: core::ops::RangeInclusive<u16> = 0x1040..=0x107f;

const COMMON: u32 = 1;
const NOTIFICATION: u32 = 2;
const INTERRUPT_STATUS: u32 = 3;
const DEVICE: u32 = 4;

/// Device type of a virtio function; `None` if it is not one.
pub fn device_id(function: &Function) -> Option<u32> {
    match function.device {
        _ if function.vendor != VENDOR => None,
        device if MODERN.contains(&device) => Some(u32::from(device - MODERN.start())),
        device if TRANSITIONAL.contains(&device) => Some(function.subsystem.into()),
        _ => None,
    }
}

/// Addresses of a device's structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structures {
    /// Common configuration.
    pub common: Span,
    /// Queue notifications (doorbells).
    pub notification: Span,
    /// Notification offset multiplier; 0 if all queues share one.
    pub doorbell_distance: u32,
    /// ISR status.
    pub interrupt_status: Span,
    /// Device-specific configuration, if any.
    pub device: Option<Span>,
}

/// Why a device is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A mandatory structure is missing: a legacy device.
    Missing,
    /// A structure is outside the BARs, too short or misaligned.
    Misplaced,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Error::Missing => "is a legacy virtio device",
            Error::Misplaced => "has register structures outside its BARs",
        })
    }
}

impl Structures {
    /// Finds the structures of a device with these BARs. Of several candidates for a structure, the first usable one
    /// counts.
    pub fn find(space: &mut impl ConfigurationSpace, address: Address, bars: &[Bar]) -> Result<Structures, Error> {
        let found = capabilities::list(space, address);
        let mut error = Error::Missing;
        let mut structure = |kind, bytes, alignment| {
            let of_kind = found.iter().filter(|capability| is_structure(capability, kind));
            for capability in of_kind {
                match place(space, address, bars, capability, bytes, alignment) {
                    Some(span) => return Some((*capability, span)),
                    None => error = Error::Misplaced,
                }
            }
            None
        };
        let common = structure(COMMON, <common::Registers<()> as Map>::BYTES, 4);
        let notification = structure(NOTIFICATION, 2, 2);
        let interrupt_status = structure(INTERRUPT_STATUS, 1, 1);
        let device = structure(DEVICE, 1, 4);
        let (Some((_, common)), Some((doorbells, notification)), Some((_, interrupt_status))) =
            (common, notification, interrupt_status)
        else {
            return Err(error);
        };
        let doorbell_distance = capabilities::read(space, address, &doorbells, 16);
        let device = device.map(|(_, span)| span);
        Ok(Structures { common, notification, doorbell_distance, interrupt_status, device })
    }

    /// All of them.
    pub fn spans(&self) -> impl Iterator<Item = Span> {
        [self.common, self.notification, self.interrupt_status].into_iter().chain(self.device)
    }

    /// Whether any of them overlaps the span.
    pub fn overlap(&self, span: Span) -> bool {
        self.spans().any(|structure| structure.overlaps(span))
    }

    /// Address of the device status byte.
    pub fn status(&self) -> u64 {
        self.common.base + common::Registers::over(()).status().offset()
    }
}

fn is_structure(capability: &Capability, kind: u32) -> bool {
    let least = if kind == NOTIFICATION { 20 } else { 16 };
    capability.id == capabilities::VENDOR && capability.head >> 24 == kind && capability.head >> 16 & 0xff >= least
}

fn place(
    space: &mut impl ConfigurationSpace,
    address: Address,
    bars: &[Bar],
    capability: &Capability,
    least: u64,
    alignment: u64,
) -> Option<Span> {
    let index = capabilities::read(space, address, capability, 4) & 0xff;
    let offset = capabilities::read(space, address, capability, 8);
    let bytes = capabilities::read(space, address, capability, 12);
    let bar = bars.iter().find(|bar| u32::from(bar.index) == index && bar.is_memory())?;
    let span = Span { base: bar.base.checked_add(offset.into())?, bytes: bytes.into() };
    let fits = bar.span().contains(span) && span.bytes >= least && u64::from(offset) % alignment == 0;
    fits.then_some(span)
}

//! Where a virtio device keeps its registers (virtio 1.2, 4.1.4).

use core::fmt;

use layout::Map;
use virtio_bus::common;

use crate::capabilities::{self, Capability};
use crate::{Address, Bar, ConfigurationSpace, Function, Span};

const VENDOR: u16 = 0x1af4;
/// Devices that older drivers know, too; their kind is the subsystem.
const TRANSITIONAL: core::ops::RangeInclusive<u16> = 0x1000..=0x103f;
const MODERN: core::ops::RangeInclusive<u16> = 0x1040..=0x107f;

const COMMON: u32 = 1;
const NOTIFICATION: u32 = 2;
const INTERRUPT_STATUS: u32 = 3;
const DEVICE: u32 = 4;

/// What kind of virtio device a function is; `None` if it is none.
pub fn device_id(function: &Function) -> Option<u32> {
    match function.device {
        _ if function.vendor != VENDOR => None,
        device if MODERN.contains(&device) => Some(u32::from(device - MODERN.start())),
        device if TRANSITIONAL.contains(&device) => Some(function.subsystem.into()),
        _ => None,
    }
}

/// Where the registers of a device lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structures {
    /// Common configuration.
    pub common: Span,
    /// Doorbells of the queues.
    pub notification: Span,
    /// Bytes between two doorbells; 0 if all are one.
    pub doorbell_distance: u32,
    /// Interrupt status.
    pub interrupt_status: Span,
    /// What only this kind of device has, if it has such.
    pub device: Option<Span>,
}

/// Why a device's registers cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// It lacks one that every device has: an old device, whose registers lie otherwise.
    Missing,
    /// One lies outside of what the device answers to, is too short or not aligned.
    Misplaced,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Error::Missing => "has only the registers of old virtio devices",
            Error::Misplaced => "its registers lie where it does not answer",
        })
    }
}

impl Structures {
    /// The registers of a device that answers to these addresses. Of several places for one structure, the first
    /// that can be used counts.
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

    /// Whether one of them lies there, at least in part.
    pub fn overlap(&self, span: Span) -> bool {
        self.spans().any(|structure| structure.overlaps(span))
    }

    /// Address of the device's status, a byte.
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

//! Base address registers (6.2.5.1).

use alloc::vec::Vec;

use crate::{Address, ConfigurationSpace, Function, Span, command, register, set_command};

/// Kind of a base address register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarKind {
    /// I/O ports.
    Ports,
    /// 32-bit memory.
    Memory32,
    /// 64-bit memory; uses the next register as well.
    Memory64,
}

/// A range that a function decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Register index, 0 to 5.
    pub index: u8,
    /// Its kind.
    pub kind: BarKind,
    /// Prefetchable.
    pub prefetchable: bool,
    /// First address; 0 if unassigned.
    pub base: u64,
    /// Size: a power of two, or 0 if not probed.
    pub bytes: u64,
}

impl Bar {
    /// Whether it is memory.
    pub fn is_memory(&self) -> bool {
        self.kind != BarKind::Ports
    }

    /// The address range.
    pub fn span(&self) -> Span {
        Span { base: self.base, bytes: self.bytes }
    }

    fn register(index: u8) -> u16 {
        register::BARS + 4 * u16::from(index)
    }
}

/// Reads the registers as they are, including unimplemented ones; sizes are 0. Has no side effects.
pub fn read(space: &mut impl ConfigurationSpace, function: &Function) -> Vec<Bar> {
    let mut found = Vec::new();
    let mut index = 0;
    while index < function.bar_count() {
        let low = space.read(function.address, Bar::register(index));
        let kind = kind(low, index, function.bar_count());
        if let Some(kind) = kind {
            let high = match kind {
                BarKind::Memory64 => space.read(function.address, Bar::register(index + 1)),
                _ => 0,
            };
            let base = u64::from(high) << 32 | u64::from(low & address_bits(kind));
            found.push(Bar { index, kind, prefetchable: low & 0x9 == 0x8, base, bytes: 0 });
        }
        index += if kind == Some(BarKind::Memory64) { 2 } else { 1 };
    }
    found
}

/// Reads the registers and probes their sizes. Decoding is disabled meanwhile, so the function must not be in use.
/// Unimplemented or invalid registers are omitted.
pub fn size(space: &mut impl ConfigurationSpace, function: &Function) -> Vec<Bar> {
    let before = command(space, function.address);
    let silent = before & !(register::COMMAND_PORTS | register::COMMAND_MEMORY);
    set_command(space, function.address, silent);
    let mut bars = read(space, function);
    bars.retain_mut(|bar| {
        bar.bytes = ask_size(space, function.address, bar).unwrap_or(0);
        bar.bytes != 0
    });
    set_command(space, function.address, before);
    bars
}

/// Assigns another address to this register. Decoding must be disabled.
pub fn place(space: &mut impl ConfigurationSpace, address: Address, bar: &mut Bar, base: u64) {
    write(space, address, bar, base);
    bar.base = base;
}

fn write(space: &mut impl ConfigurationSpace, address: Address, bar: &Bar, base: u64) {
    space.write(address, Bar::register(bar.index), base as u32);
    if bar.kind == BarKind::Memory64 {
        space.write(address, Bar::register(bar.index + 1), (base >> 32) as u32);
    }
}

fn address_bits(kind: BarKind) -> u32 {
    match kind {
        BarKind::Ports => !0x3,
        _ => !0xf,
    }
}

fn kind(low: u32, index: u8, count: u8) -> Option<BarKind> {
    match (low & 1, low >> 1 & 3) {
        (1, _) => Some(BarKind::Ports),
        // Below 1 MiB: an obsolete form of 32 bits.
        (_, 0 | 1) => Some(BarKind::Memory32),
        (_, 2) if index + 1 < count => Some(BarKind::Memory64),
        _ => None,
    }
}

/// Writes all ones; the bits that stay 0 are those of the size.
fn ask_size(space: &mut impl ConfigurationSpace, address: Address, bar: &Bar) -> Option<u64> {
    write(space, address, bar, u64::MAX);
    let low = space.read(address, Bar::register(bar.index));
    let high = match bar.kind {
        BarKind::Memory64 => space.read(address, Bar::register(bar.index + 1)),
        _ => u32::MAX,
    };
    write(space, address, bar, bar.base);
    let low = low & address_bits(bar.kind);
    let mask = match bar.kind {
        _ if low == 0 && (bar.kind != BarKind::Memory64 || high == 0) => return None,
        // The upper half of a port register may be hardwired to 0.
        BarKind::Ports => u64::from(low | 0xffff_0000) | 0xffff_ffff_0000_0000,
        _ => u64::from(high) << 32 | u64::from(low),
    };
    let bytes = mask.wrapping_neg();
    let most = match bar.kind {
        BarKind::Ports => 1 << 16,
        BarKind::Memory32 => 1 << 31,
        BarKind::Memory64 => 1 << 62,
    };
    (bytes.is_power_of_two() && bytes <= most).then_some(bytes)
}

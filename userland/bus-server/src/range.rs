//! Where the registers of a device of a bus lie: what `BusRange::kind` of the `DeviceBus` contract stands for.
//!
//! Records in blocks hold plain numbers, so the contract itself has no place for the type.

/// Where the registers of a range lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RangeKind {
    /// Nowhere: the range is not there.
    Nothing,
    /// I/O ports.
    Ports,
    /// Memory.
    Memory,
    /// Memory that may be read ahead.
    PrefetchableMemory,
}

//! Location of a bus device's registers: the values of `BusRange::kind` in the `DeviceBus` contract.
//!
//! Records in blocks hold plain numbers, so the contract itself has no place for the type.

/// Location of the registers of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RangeKind {
    /// None: the range does not exist.
    Nothing,
    /// I/O ports.
    Ports,
    /// Non-prefetchable memory.
    Memory,
    /// Prefetchable memory.
    PrefetchableMemory,
}

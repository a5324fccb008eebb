//! Register ranges as objects, from which a driver's declared resources are built.
//!
//! A program declares in its manifest the ranges of a device and the register map (`layout::registers`) of each; opening
//! the device makes the objects and checks, only once, that each map fits its range. After that no access can be out of
//! range, so accesses return no errors.

use abi::Status;
use layout::{Access, Map, Word};

use super::{Hardware, RangeKind, Registers};

mod sealed {
    pub trait Sealed {}
}

/// A register range in a known address space.
pub trait IoRange: TryFrom<Registers, Error = Status> + sealed::Sealed {
    /// Returns the number of ports or bytes.
    fn bytes(&self) -> u64;

    /// Returns a register map over the range. `DeviceError` if the range is shorter than the map.
    fn mapped<M: Map<Access = Self>>(self) -> Result<M, Status> {
        if self.bytes() < M::BYTES { Err(Status::DeviceError) } else { Ok(M::over(self)) }
    }
}

macro_rules! range_kinds {
    ($($(#[$documentation:meta])* $name:ident: $kind:ident, $($number:ident $read:ident $write:ident),*;)*) => {$(
        $(#[$documentation])*
        #[derive(Clone, Debug)]
        pub struct $name(Registers);

        impl $name {
            /// Returns the first port or physical address.
            pub fn base(&self) -> u64 {
                self.0.base()
            }
        }

        impl sealed::Sealed for $name {}

        impl IoRange for $name {
            fn bytes(&self) -> u64 {
                self.0.bytes()
            }
        }

        impl TryFrom<Registers> for $name {
            type Error = Status;

            /// `DeviceError` if the registers lie in the other address space.
            fn try_from(registers: Registers) -> Result<$name, Status> {
                if registers.kind() == RangeKind::$kind { Ok($name(registers)) } else { Err(Status::DeviceError) }
            }
        }

        impl DeclaredRange for $name {
            type Range = $name;

            fn over(range: $name) -> Result<$name, Status> {
                Ok(range)
            }
        }

        $(
            impl Access<$number> for $name {
                fn read(&self, offset: u64) -> $number {
                    self.0.$read(offset).unwrap_or($number::ALL_ONES)
                }

                fn write(&self, offset: u64, value: $number) {
                    // Lost, like a write that no device decodes.
                    let _ = self.0.$write(offset, value);
                }
            }
        )*
    )*};
}

range_kinds! {
    /// A range of I/O ports, whose registers have 8, 16 or 32 bits: a wider one does not compile.
    ///
    /// ```compile_fail,E0277
    /// #[layout::registers(bytes = 8)]
    /// struct Port {
    ///     #[at(0)]
    ///     address: ReadWrite<u64>,
    /// }
    ///
    /// fn start(port: &Port<sip::hardware::IoPortRange>) {
    ///     port.address().write(0);
    /// }
    /// ```
    IoPortRange: Ports, u8 read8 write8, u16 read16 write16, u32 read32 write32;
    /// A memory-mapped (MMIO) range of a device.
    ///
    /// ```
    /// #[layout::registers(bytes = 8)]
    /// struct Block {
    ///     #[at(0)]
    ///     address: ReadWrite<u64>,
    /// }
    ///
    /// fn start(block: &Block<sip::hardware::IoMemoryRange>) {
    ///     block.address().write(0);
    /// }
    /// ```
    IoMemoryRange: Memory, u8 read8 write8, u16 read16 write16, u32 read32 write32, u64 read64 write64;
}

/// The object built from a declared range: the range itself, or a register map over it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no map of registers over a range of a device",
    note = "the manifest's `registers` name structures of `#[layout::registers]`"
)]
pub trait DeclaredRange: Sized {
    /// The address space of the range.
    type Range: IoRange;
    /// Makes the object over its range. `DeviceError` if the range is too short.
    fn over(range: Self::Range) -> Result<Self, Status>;
}

impl<M: Map<Access: IoRange>> DeclaredRange for M {
    type Range = M::Access;

    fn over(range: M::Access) -> Result<M, Status> {
        range.mapped()
    }
}

/// Returns a range of an open device as the object that the manifest declares. For generated code.
#[doc(hidden)]
pub fn declared_range<D: DeclaredRange>(hardware: &Hardware, range: usize) -> Result<D, Status> {
    D::over(D::Range::try_from(hardware.range(range)?)?)
}

/// Returns the size of a register map in bytes, for assertions in generated code.
#[doc(hidden)]
pub const fn map_bytes<M: Map>() -> u64 {
    M::BYTES
}

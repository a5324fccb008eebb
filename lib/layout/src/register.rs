//! Registers: access, and permitted operations.

use core::fmt;
use core::marker::PhantomData;

mod sealed {
    pub trait Sealed {}
}

/// An integer of a register's width.
pub trait Word: Copy + Eq + fmt::Debug + sealed::Sealed + 'static {
    /// Width in bytes.
    const BYTES: u64;
    /// All bits set, as read where no device responds.
    const ALL_ONES: Self;
}

macro_rules! words {
    ($($word:ident),*) => {$(
        impl sealed::Sealed for $word {}
        impl Word for $word {
            const BYTES: u64 = size_of::<$word>() as u64;
            const ALL_ONES: $word = $word::MAX;
        }
        impl Value for $word {
            type Word = $word;
            #[inline]
            fn from_word(word: $word) -> $word {
                word
            }
            #[inline]
            fn into_word(self) -> $word {
                self
            }
        }
    )*};
}

words!(u8, u16, u32, u64);

/// The content of a register: a number, or one with named bits ([`bits`](crate::bits)).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that a register holds",
    label = "write `u8`, `u16`, `u32`, `u64` or a structure of `#[layout::bits]`"
)]
pub trait Value: Copy {
    /// The integer that is read and written.
    type Word: Word;
    /// Converts from the register's integer.
    fn from_word(word: Self::Word) -> Self;
    /// Converts to the register's integer.
    fn into_word(self) -> Self::Word;
}

/// Access to registers of this width by byte offset. It never fails: where no device responds, reads return all ones
/// and writes are lost. An access that can fail records that itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` reaches no registers of the type `{W}`",
    note = "I/O ports have registers of 8, 16 and 32 bits"
)]
pub trait Access<W: Word> {
    /// Reads a register.
    fn read(&self, offset: u64) -> W;
    /// Writes a register.
    fn write(&self, offset: u64, value: W);
}

impl<W: Word, A: Access<W>> Access<W> for &A {
    #[inline]
    fn read(&self, offset: u64) -> W {
        (**self).read(offset)
    }

    #[inline]
    fn write(&self, offset: u64, value: W) {
        (**self).write(offset, value);
    }
}

/// A register map over an access, as [`registers`](crate::registers) generates it.
pub trait Map: Sized {
    /// The access.
    type Access;
    /// Size of the map in bytes, all of which must be accessible.
    const BYTES: u64;
    /// Creates the map over an access.
    fn over(access: Self::Access) -> Self;
}

/// Read-only.
#[derive(Clone, Copy, Debug)]
pub struct Read;
/// Write-only.
#[derive(Clone, Copy, Debug)]
pub struct Write;
/// Readable and writable.
#[derive(Clone, Copy, Debug)]
pub struct Both;

/// A direction that permits reads.
#[diagnostic::on_unimplemented(
    message = "this register cannot be read",
    label = "it is declared as `WriteOnly`",
    note = "keep what was written to it, if that must be known"
)]
pub trait Readable {}
impl Readable for Read {}
impl Readable for Both {}

/// A direction that permits writes.
#[diagnostic::on_unimplemented(
    message = "this register cannot be written",
    label = "it is declared as `ReadOnly`",
    note = "declare it as `ReadWrite` if the device takes values there"
)]
pub trait Writable {}
impl Writable for Write {}
impl Writable for Both {}

/// A register of a map, with its content and direction.
#[derive(Debug)]
#[must_use = "this only names the register; read or write it"]
pub struct Register<'a, A, V, D> {
    access: &'a A,
    offset: u64,
    kind: PhantomData<fn(V) -> (V, D)>,
}

/// A register that drivers read.
pub type ReadOnly<'a, A, V> = Register<'a, A, V, Read>;
/// A register that drivers write.
pub type WriteOnly<'a, A, V> = Register<'a, A, V, Write>;
/// A register that drivers read and write.
pub type ReadWrite<'a, A, V> = Register<'a, A, V, Both>;

impl<'a, A, V: Value, D> Register<'a, A, V, D> {
    /// The register at an offset. Called by generated code with checked arguments.
    #[doc(hidden)]
    #[inline]
    pub const fn at(access: &'a A, offset: u64) -> Self {
        Register { access, offset, kind: PhantomData }
    }

    /// Offset in the map, in bytes.
    #[inline]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads it.
    #[inline]
    pub fn read(&self) -> V
    where
        D: Readable,
        A: Access<V::Word>,
    {
        V::from_word(self.access.read(self.offset))
    }

    /// Writes it.
    #[inline]
    pub fn write(&self, value: V)
    where
        D: Writable,
        A: Access<V::Word>,
    {
        self.access.write(self.offset, value.into_word());
    }
}

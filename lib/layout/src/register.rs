//! Registers: how they are reached, and what may be done with each.

use core::fmt;
use core::marker::PhantomData;

mod sealed {
    pub trait Sealed {}
}

/// A number as wide as a register can be.
pub trait Word: Copy + Eq + fmt::Debug + sealed::Sealed + 'static {
    /// Its bytes.
    const BYTES: u64;
    /// With all bits set, as a register reads where no device answers.
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

/// What a register of a certain width holds: a number, or one with named bits ([`bits`](crate::bits)).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that a register holds",
    label = "write `u8`, `u16`, `u32`, `u64` or a structure of `#[layout::bits]`"
)]
pub trait Value: Copy {
    /// The number that is read and written.
    type Word: Word;
    /// From the register's number.
    fn from_word(word: Self::Word) -> Self;
    /// As the register's number.
    fn into_word(self) -> Self::Word;
}

/// A way to registers of this width, by their offset in bytes. An access never fails: where nothing answers, all bits
/// read as set, and what is written is lost. An access that can fail keeps account of that itself.
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

/// A map of registers over its access, as [`registers`](crate::registers) makes it.
pub trait Map: Sized {
    /// How the registers are reached.
    type Access;
    /// Bytes that the map covers. The access must reach as many.
    const BYTES: u64;
    /// The map over an access.
    fn over(access: Self::Access) -> Self;
}

/// May be read only.
#[derive(Clone, Copy, Debug)]
pub struct Read;
/// May be written only.
#[derive(Clone, Copy, Debug)]
pub struct Write;
/// May be read and written.
#[derive(Clone, Copy, Debug)]
pub struct Both;

/// A direction in which a register can be read.
#[diagnostic::on_unimplemented(
    message = "this register cannot be read",
    label = "it is declared as `WriteOnly`",
    note = "keep what was written to it, if that must be known"
)]
pub trait Readable {}
impl Readable for Read {}
impl Readable for Both {}

/// A direction in which a register can be written.
#[diagnostic::on_unimplemented(
    message = "this register cannot be written",
    label = "it is declared as `ReadOnly`",
    note = "declare it as `ReadWrite` if the device takes values there"
)]
pub trait Writable {}
impl Writable for Write {}
impl Writable for Both {}

/// One register of a map: what it holds, and what may be done with it.
#[derive(Debug)]
#[must_use = "this only names the register; read or write it"]
pub struct Register<'a, A, V, D> {
    access: &'a A,
    offset: u64,
    kind: PhantomData<fn(V) -> (V, D)>,
}

/// A register that a driver reads.
pub type ReadOnly<'a, A, V> = Register<'a, A, V, Read>;
/// A register that a driver writes.
pub type WriteOnly<'a, A, V> = Register<'a, A, V, Write>;
/// A register that a driver reads and writes.
pub type ReadWrite<'a, A, V> = Register<'a, A, V, Both>;

impl<'a, A, V: Value, D> Register<'a, A, V, D> {
    /// The register at an offset. Generated code calls it with what was checked.
    #[doc(hidden)]
    #[inline]
    pub const fn at(access: &'a A, offset: u64) -> Self {
        Register { access, offset, kind: PhantomData }
    }

    /// Its offset in the map, in bytes.
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

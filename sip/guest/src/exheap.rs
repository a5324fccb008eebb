//! Blocks of the exchange heap. They lie outside of the module's memory: elements are copied in and out.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;

use crate::{Status, imports};

/// A type whose values lie in blocks, little-endian and without padding.
pub trait Plain: Copy {
    /// [`abi::type_tag`] of the contract language's text for the type; the kernel compares it.
    const TYPE_TAG: u64;
    /// Size in bytes.
    const BYTES: usize;
    /// Writes the value to as many bytes.
    fn put(self, bytes: &mut [u8]);
    /// Reads a value from as many bytes.
    fn take(bytes: &[u8]) -> Self;
}

macro_rules! plain_numbers {
    ($($type:ty = $text:literal),* $(,)?) => {$(
        impl Plain for $type {
            const TYPE_TAG: u64 = abi::type_tag($text);
            const BYTES: usize = size_of::<$type>();
            fn put(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
            fn take(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$type>()];
                own.copy_from_slice(bytes);
                Self::from_le_bytes(own)
            }
        }
    )*};
}

plain_numbers!(
    u8 = "byte",
    u16 = "ushort",
    u32 = "uint",
    u64 = "ulong",
    i8 = "sbyte",
    i16 = "short",
    i32 = "int",
    i64 = "long",
);

impl<T: Plain, const N: usize> Plain for [T; N] {
    const TYPE_TAG: u64 = abi::array_type_tag(T::TYPE_TAG, N);
    const BYTES: usize = T::BYTES * N;
    fn put(self, bytes: &mut [u8]) {
        put_all(&self, bytes);
    }
    fn take(bytes: &[u8]) -> Self {
        core::array::from_fn(|index| T::take(&bytes[index * T::BYTES..][..T::BYTES]))
    }
}

fn put_all<T: Plain>(values: &[T], bytes: &mut [u8]) {
    for (value, place) in values.iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
        value.put(place);
    }
}

/// Defines a structure whose values may lie in a block, from the text of its type in the contract language.
#[macro_export]
macro_rules! plain {
    ($text:literal $(#[doc = $documentation:literal])* $visibility:vis struct $name:ident {
        $($(#[doc = $field_documentation:literal])* $field_visibility:vis $field:ident : $type:ty),* $(,)?
    }) => {
        $(#[doc = $documentation])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility struct $name {
            $($(#[doc = $field_documentation])* $field_visibility $field: $type),*
        }

        impl $crate::exheap::Plain for $name {
            const TYPE_TAG: u64 = $crate::abi::type_tag($text);
            const BYTES: usize = 0 $(+ <$type as $crate::exheap::Plain>::BYTES)*;
            fn put(self, bytes: &mut [u8]) {
                let mut rest = bytes;
                $(
                    let (place, behind) = rest.split_at_mut(<$type as $crate::exheap::Plain>::BYTES);
                    $crate::exheap::Plain::put(self.$field, place);
                    rest = behind;
                )*
                let _ = rest;
            }
            fn take(bytes: &[u8]) -> Self {
                let mut rest = bytes;
                $(
                    let (place, behind) = rest.split_at(<$type as $crate::exheap::Plain>::BYTES);
                    let $field = <$type as $crate::exheap::Plain>::take(place);
                    rest = behind;
                )*
                let _ = rest;
                $name { $($field),* }
            }
        }
    };
}

/// Owns a block. Dropping it frees it, or returns it to its lender.
#[derive(Debug)]
pub struct ExBlock {
    handle: u64,
    bytes: usize,
}

impl ExBlock {
    pub(crate) fn from_parts(handle: u64, bytes: usize) -> ExBlock {
        ExBlock { handle, bytes }
    }

    fn allocate(bytes: usize, type_tag: u64) -> Result<ExBlock, Status> {
        Ok(ExBlock { handle: imports::block(bytes as u64, type_tag)?, bytes })
    }

    /// Gives up the handle: the block leaves the program.
    pub(crate) fn into_handle(self) -> u64 {
        ManuallyDrop::new(self).handle
    }

    /// Its length in bytes.
    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    /// The block as elements of a type: any bytes are values of a plain one.
    pub fn into_vec<T: Plain>(self) -> ExVec<T> {
        ExVec::from_block(self)
    }

    /// Copies elements from the index on; panics where there are not as many.
    fn read<T: Plain>(&self, from: usize, into: &mut [T]) {
        let mut bytes = vec![0; into.len() * T::BYTES];
        within(imports::read(self.handle, (from * T::BYTES) as u64, &mut bytes));
        for (element, bytes) in into.iter_mut().zip(bytes.chunks_exact(T::BYTES)) {
            *element = T::take(bytes);
        }
    }

    fn write<T: Plain>(&mut self, from: usize, elements: &[T]) {
        let mut bytes = vec![0; elements.len() * T::BYTES];
        put_all(elements, &mut bytes);
        within(imports::write(self.handle, (from * T::BYTES) as u64, &bytes));
    }
}

impl Drop for ExBlock {
    fn drop(&mut self) {
        imports::close(self.handle);
    }
}

#[track_caller]
fn within(copied: Result<(), Status>) {
    assert!(copied.is_ok(), "the elements are not all within the block");
}

mod sealed {
    use super::ExBlock;

    /// Types that own a block.
    pub trait Typed: Sized {
        fn into_block(self) -> ExBlock;
        fn from_block(block: ExBlock) -> Self;
    }

    /// A block that can be moved out to be lent.
    pub trait Loan<B> {
        fn into_loan(self) -> ExBlock;
    }
}

pub(crate) use sealed::{Loan, Typed};

/// A block with a type.
pub trait Block: Typed {}

/// Owns a block of elements.
#[derive(Debug)]
pub struct ExVec<T: Plain> {
    block: ExBlock,
    element: PhantomData<T>,
}

impl<T: Plain> ExVec<T> {
    /// Allocates `length` zeroed elements.
    ///
    /// # Errors
    /// The quota is used up, or it is too large.
    pub fn new(length: usize) -> Result<ExVec<T>, Status> {
        let bytes = length.checked_mul(T::BYTES).ok_or(Status::TooLarge)?;
        Ok(ExVec { block: ExBlock::allocate(bytes, T::TYPE_TAG)?, element: PhantomData })
    }

    /// Allocates a copy of the elements.
    ///
    /// # Errors
    /// The quota is used up, or it is too large.
    pub fn from_slice(elements: &[T]) -> Result<ExVec<T>, Status> {
        let mut copy = ExVec::new(elements.len())?;
        copy.write(0, elements);
        Ok(copy)
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.block.bytes / T::BYTES
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies elements from the index on.
    ///
    /// # Panics
    ///
    /// If there are not as many.
    #[track_caller]
    pub fn read(&self, from: usize, into: &mut [T]) {
        self.block.read(from, into);
    }

    /// Overwrites elements from the index on.
    ///
    /// # Panics
    ///
    /// If there are not as many.
    #[track_caller]
    pub fn write(&mut self, from: usize, elements: &[T]) {
        self.block.write(from, elements);
    }

    /// A copy of all elements.
    pub fn to_vec(&self) -> Vec<T> {
        let mut bytes = vec![0; self.len() * T::BYTES];
        within(imports::read(self.block.handle, 0, &mut bytes));
        bytes.chunks_exact(T::BYTES).map(T::take).collect()
    }
}

impl ExVec<u8> {
    /// A copy as text; invalid UTF-8 is replaced.
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.to_vec()).into_owned()
    }
}

impl<T: Plain> Typed for ExVec<T> {
    fn into_block(self) -> ExBlock {
        self.block
    }
    fn from_block(block: ExBlock) -> ExVec<T> {
        ExVec { block, element: PhantomData }
    }
}

impl<T: Plain> Block for ExVec<T> {}

/// Owns a block of one element.
#[derive(Debug)]
pub struct ExBox<T: Plain> {
    block: ExBlock,
    element: PhantomData<T>,
}

impl<T: Plain> ExBox<T> {
    /// Allocates a block with this element.
    ///
    /// # Errors
    /// The quota is used up.
    pub fn new(value: T) -> Result<ExBox<T>, Status> {
        let mut made = ExBox { block: ExBlock::allocate(T::BYTES, T::TYPE_TAG)?, element: PhantomData };
        made.set(value);
        Ok(made)
    }

    /// A copy of the element.
    pub fn get(&self) -> T {
        let mut bytes = vec![0; T::BYTES];
        within(imports::read(self.block.handle, 0, &mut bytes));
        T::take(&bytes)
    }

    /// Overwrites the element.
    pub fn set(&mut self, value: T) {
        self.block.write(0, &[value]);
    }
}

impl<T: Plain> Typed for ExBox<T> {
    fn into_block(self) -> ExBlock {
        self.block
    }
    fn from_block(block: ExBlock) -> ExBox<T> {
        ExBox { block, element: PhantomData }
    }
}

impl<T: Plain> Block for ExBox<T> {}

/// A block on loan: it can be read, written, returned in a message or lent on; dropping it returns it to its owner.
#[derive(Debug)]
pub struct Lent<B: Block> {
    block: B,
}

impl<B: Block> Lent<B> {
    pub(crate) fn from_block(block: ExBlock) -> Lent<B> {
        Lent { block: B::from_block(block) }
    }
}

impl<B: Block> core::ops::Deref for Lent<B> {
    type Target = B;
    fn deref(&self) -> &B {
        &self.block
    }
}

impl<B: Block> core::ops::DerefMut for Lent<B> {
    fn deref_mut(&mut self) -> &mut B {
        &mut self.block
    }
}

/// A block that can be lent: an own one, or one on loan that is lent on.
pub trait Lendable<B: Block>: Loan<B> {}

impl<B: Block> Lendable<B> for B {}
impl<B: Block> Lendable<B> for Lent<B> {}

impl<B: Block> Loan<B> for B {
    fn into_loan(self) -> ExBlock {
        self.into_block()
    }
}

impl<B: Block> Loan<B> for Lent<B> {
    fn into_loan(self) -> ExBlock {
        self.block.into_block()
    }
}

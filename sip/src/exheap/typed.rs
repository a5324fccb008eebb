//! Blocks with a static element type: a sequence, or one element.

use alloc::string::String;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use abi::Status;

use super::sealed::Typed;
use super::{ExBlock, Plain};

/// A typed owner of a block: [`ExVec`] or [`ExBox`], and no other.
///
/// ```compile_fail,E0277
/// struct Mine;
/// impl sip::exheap::Block for Mine {}
/// # fn main() {}
/// ```
pub trait Block: Typed + DerefMut {}

impl<T: Plain> Block for ExVec<T> {}
impl<T: Plain> Block for ExBox<T> {}

/// Owns a block of elements. Its length changes only by splitting.
///
/// ```compile_fail,E0277
/// fn copied<T: Clone>() {}
/// copied::<sip::exheap::ExVec<u8>>();
/// ```
///
/// Only plain data may lie in a block:
///
/// ```compile_fail,E0277
/// fn block_of_references(_: sip::exheap::ExVec<&'static str>) {}
/// ```
///
/// ```compile_fail,E0277
/// sip::plain! { "Wrong{bool}" pub struct Wrong { pub flag: bool } }
/// # fn main() {}
/// ```
///
/// ```compile_fail
/// sip::plain! { "Padded{byte,ulong}" pub struct Padded { pub first: u8, pub second: u64 } }
/// # fn main() {}
/// ```
pub struct ExVec<T: Plain> {
    block: ExBlock,
    element: PhantomData<T>,
}

impl<T: Plain> ExVec<T> {
    /// Allocates `length` zeroed elements.
    pub fn new(length: usize) -> Result<ExVec<T>, Status> {
        let bytes = length.checked_mul(size_of::<T>()).ok_or(Status::TooLarge)?;
        Ok(ExVec { block: ExBlock::allocate(bytes, T::TYPE_TAG)?, element: PhantomData })
    }

    /// Allocates a copy of the elements.
    pub fn from_slice(elements: &[T]) -> Result<ExVec<T>, Status> {
        let mut copy = ExVec::new(elements.len())?;
        copy.copy_from_slice(elements);
        Ok(copy)
    }

    /// Splits it: this one keeps the elements before `at`, the returned one has the rest. The offset in
    /// bytes must be a multiple of [`SPLIT_ALIGN`](super::SPLIT_ALIGN).
    pub fn split_off(&mut self, at: usize) -> Result<ExVec<T>, Status> {
        let offset = at.checked_mul(size_of::<T>()).ok_or(Status::BadArgument)?;
        Ok(ExVec { block: self.block.split_off(offset)?, element: PhantomData })
    }

    /// Returns the elements.
    #[inline(always)]
    pub fn as_slice(&self) -> &[T] {
        self.block.elements()
    }

    /// Returns the elements, mutable.
    #[inline(always)]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.block.elements_mut()
    }

    pub(crate) fn handle(&self) -> u64 {
        self.block.handle()
    }
}

impl<T: Plain> ExVec<T> {
    /// Attaches `child` to this block, to move and be freed with it. Returns its position among the attached blocks.
    pub fn attach<B: Block>(&mut self, child: B) -> Result<usize, (ExBlock, Status)> {
        self.block.attach(child.into_block())
    }

    /// Detaches the block attached last; `None` if there is none.
    pub fn detach(&mut self) -> Result<Option<ExBlock>, Status> {
        self.block.detach()
    }
}

impl ExVec<u8> {
    /// The bytes of a block of any element type: every byte is a `u8`.
    pub(super) fn of_block(block: ExBlock) -> ExVec<u8> {
        ExVec { block, element: PhantomData }
    }

    /// Allocates zeroed bytes that a peer sees as elements of the type with this [`abi::type_tag`]; the kernel compares it
    /// when they are sent.
    ///
    /// # Errors
    /// The quota is used up, or it is too large.
    pub fn of_type(bytes: usize, type_tag: u64) -> Result<ExVec<u8>, Status> {
        Ok(ExVec { block: ExBlock::allocate(bytes, type_tag)?, element: PhantomData })
    }

    /// Returns the bytes as text; invalid UTF-8 is replaced.
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(self.as_slice()).into_owned()
    }
}

impl<T: Plain> Deref for ExVec<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Plain> DerefMut for ExVec<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        self.as_mut_slice()
    }
}

impl<T: Plain + fmt::Debug> fmt::Debug for ExVec<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ExVec({} elements)", self.len())
    }
}

impl<T: Plain> Typed for ExVec<T> {
    #[inline(always)]
    fn into_block(self) -> ExBlock {
        self.block
    }

    #[inline(always)]
    fn from_block(block: ExBlock) -> Result<ExVec<T>, ExBlock> {
        Ok(ExVec { block, element: PhantomData })
    }

    fn lengthened(short: ExBlock) -> Result<ExVec<T>, Status> {
        Ok(ExVec { block: short, element: PhantomData })
    }
}

/// Owns a block of at least one element and dereferences to the first.
pub struct ExBox<T: Plain> {
    block: ExBlock,
    element: PhantomData<T>,
}

impl<T: Plain> ExBox<T> {
    /// Allocates a block with this element.
    pub fn new(element: T) -> Result<ExBox<T>, Status> {
        let mut block = ExBlock::allocate(size_of::<T>(), T::TYPE_TAG)?;
        block.elements_mut()[0] = element;
        Ok(ExBox { block, element: PhantomData })
    }

    /// Attaches `child` to this block, to move and be freed with it. Returns its position among the attached blocks.
    pub fn attach<B: Block>(&mut self, child: B) -> Result<usize, (ExBlock, Status)> {
        self.block.attach(child.into_block())
    }

    /// Detaches the block attached last; `None` if there is none.
    pub fn detach(&mut self) -> Result<Option<ExBlock>, Status> {
        self.block.detach()
    }
}

impl<T: Plain> Deref for ExBox<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.block.elements()[0]
    }
}

impl<T: Plain> DerefMut for ExBox<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.block.elements_mut()[0]
    }
}

impl<T: Plain + fmt::Debug> fmt::Debug for ExBox<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ExBox").field(&**self).finish()
    }
}

impl<T: Plain> Typed for ExBox<T> {
    #[inline(always)]
    fn into_block(self) -> ExBlock {
        self.block
    }

    #[inline(always)]
    fn from_block(block: ExBlock) -> Result<ExBox<T>, ExBlock> {
        if block.byte_count() < size_of::<T>() { Err(block) } else { Ok(ExBox { block, element: PhantomData }) }
    }

    fn lengthened(short: ExBlock) -> Result<ExBox<T>, Status> {
        let mut block = ExBlock::allocate(size_of::<T>(), T::TYPE_TAG)?;
        let there = short.elements::<u8>();
        block.elements_mut::<u8>()[..there.len()].copy_from_slice(there);
        Ok(ExBox { block, element: PhantomData })
    }
}

//! Lists in the bytes of a record, whose items are found by their number and read when they are asked for.
//!
//! A list is the number of its items, where each of them ends, and their bytes. So the start of a program with thousands of
//! functions reads the few that it needs.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use crate::Malformed;
use crate::reader::Reader;
use crate::writer;

/// Bytes of a number.
const NUMBER_BYTES: usize = 4;

/// What a list can have.
pub trait Item<'a>: Sized {
    /// Reads it.
    #[doc(hidden)]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed>;
}

/// A list in the bytes of a record.
pub struct List<'a, T> {
    /// The record up to the end of the list.
    bytes: &'a [u8],
    /// Where it is told where the items end.
    ends: usize,
    count: usize,
    item: PhantomData<fn() -> T>,
}

impl<T> Clone for List<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<'_, T> {}

impl<T> fmt::Debug for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} items", self.count)
    }
}

impl<'a, T: Item<'a>> List<'a, T> {
    /// Passes over a list.
    pub(crate) fn parse(reader: &mut Reader<'a>) -> Result<List<'a, T>, Malformed> {
        let malformed = reader.malformed();
        let count = reader.u32()? as usize;
        let ends = reader.offset();
        let told = reader.take(count.checked_mul(NUMBER_BYTES).ok_or(malformed)?)?;
        let length = told.last_chunk().map_or(0, |last| u32::from_le_bytes(*last));
        reader.take(length as usize)?;
        Ok(List { bytes: reader.passed(), ends, count, item: PhantomData })
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns an item; `None` if there is none of that number.
    ///
    /// # Errors
    /// It is malformed.
    pub fn get(&self, index: usize) -> Result<Option<T>, Malformed> {
        if index >= self.count {
            return Ok(None);
        }
        let items = self.ends + self.count * NUMBER_BYTES;
        let end = |index: usize| {
            let at = self.ends + index * NUMBER_BYTES;
            let told = self.bytes.get(at..).and_then(|rest| rest.first_chunk());
            told.map(|told| items + u32::from_le_bytes(*told) as usize).ok_or(Malformed { offset: at })
        };
        let start = if index == 0 { items } else { end(index - 1)? };
        let mut reader = Reader::part(self.bytes, start, end(index)?)?;
        let item = T::read(&mut reader)?;
        reader.end()?;
        Ok(Some(item))
    }

    /// The items, of which each may be malformed.
    pub fn iter(&self) -> impl Iterator<Item = Result<T, Malformed>> + use<'a, T> {
        let list = *self;
        (0..list.count).filter_map(move |index| list.get(index).transpose())
    }
}

/// Writes a list.
pub(crate) fn write<T>(out: &mut Vec<u8>, items: &[T], mut item: impl FnMut(&mut Vec<u8>, &T)) {
    writer::u32(out, items.len() as u32);
    let ends = out.len();
    out.resize(ends + items.len() * NUMBER_BYTES, 0);
    let start = out.len();
    for (index, one) in items.iter().enumerate() {
        item(out, one);
        let end = (out.len() - start) as u32;
        let at = ends + index * NUMBER_BYTES;
        out[at..at + NUMBER_BYTES].copy_from_slice(&end.to_le_bytes());
    }
}

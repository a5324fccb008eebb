//! Reads numbers, lists and bytes of a record.

use alloc::vec::Vec;

use crate::Malformed;

/// A place in the bytes of a record.
pub struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, offset: 0 }
    }

    /// Reads from a place to another one, which are anything.
    pub(crate) fn part(bytes: &'a [u8], start: usize, end: usize) -> Result<Reader<'a>, Malformed> {
        let bytes = bytes.get(..end).filter(|_| start <= end).ok_or(Malformed { offset: start })?;
        Ok(Reader { bytes, offset: start })
    }

    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// All bytes up to here.
    pub(crate) fn passed(&self) -> &'a [u8] {
        &self.bytes[..self.offset]
    }

    pub(crate) fn malformed(&self) -> Malformed {
        Malformed { offset: self.offset }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let end = self.offset.checked_add(count).ok_or_else(|| self.malformed())?;
        let taken = self.bytes.get(self.offset..end).ok_or_else(|| self.malformed())?;
        self.offset = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let malformed = self.malformed();
        self.take(N)?.try_into().map_err(|_| malformed)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn u128(&mut self) -> Result<u128, Malformed> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    /// Bytes with their number before them.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.u32()? as usize;
        self.take(count)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        let malformed = self.malformed();
        core::str::from_utf8(self.bytes()?).map_err(|_| malformed)
    }

    /// A list with the number of its items before them. Its memory is bounded by the bytes that are left, as each item
    /// takes at least one.
    pub(crate) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Reader<'a>) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.u32()? as usize;
        if count > self.bytes.len() - self.offset {
            return Err(self.malformed());
        }
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// What may be there: a list of none or one.
    pub(crate) fn optional<T>(
        &mut self,
        item: impl FnOnce(&mut Reader<'a>) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        let malformed = self.malformed();
        match self.u32()? {
            0 => Ok(None),
            1 => item(self).map(Some),
            _ => Err(malformed),
        }
    }

    /// Numbers with their number before them, as their bytes.
    pub(crate) fn numbers(&mut self) -> Result<&'a [[u8; 4]], Malformed> {
        let malformed = self.malformed();
        let count = self.u32()? as usize;
        let bytes = self.take(count.checked_mul(4).ok_or(malformed)?)?;
        Ok(bytes.as_chunks().0)
    }

    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.offset == self.bytes.len() { Ok(()) } else { Err(self.malformed()) }
    }
}

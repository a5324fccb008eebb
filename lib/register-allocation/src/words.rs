//! Words to and from bytes.

use alloc::vec::Vec;

use crate::Malformed;

/// Appends words.
#[derive(Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn put(&mut self, word: u32) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    /// A number of things in memory, which is below 2^32.
    pub fn count(&mut self, count: usize) {
        self.put(u32::try_from(count).unwrap_or(u32::MAX));
    }
}

/// Takes words.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    pub fn word(&mut self) -> Result<u32, Malformed> {
        let (word, rest) = self.0.split_first_chunk().ok_or(Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*word))
    }

    /// A number of things of at least one word each, all of which follow.
    pub fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.word()? as usize;
        if count > self.0.len() / 4 {
            return Err(Malformed("it claims more than it holds"));
        }
        Ok(count)
    }

    /// Takes words until there are as many.
    pub fn list<T>(
        &mut self,
        count: usize,
        mut each: impl FnMut(u32) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let bytes = count.checked_mul(4).and_then(|bytes| self.0.split_at_checked(bytes));
        let (words, rest) = bytes.ok_or(Malformed("it ends too early"))?;
        self.0 = rest;
        let mut list = Vec::with_capacity(count);
        for word in words.as_chunks().0 {
            list.push(each(u32::from_le_bytes(*word))?);
        }
        Ok(list)
    }

    /// There is no more.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("something stands behind its end")) }
    }
}

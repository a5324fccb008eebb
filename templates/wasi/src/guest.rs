//! Linear memory as a program's calls name it. Addresses and lengths are claims: each access is checked.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::abi::{Errno, MAX_VECTORS, VECTOR_BYTES};

/// Linear memory.
pub struct Guest<'m>(pub &'m mut [u8]);

/// Returns the range of an address and a length.
fn range(at: u32, length: u32) -> Range<usize> {
    at as usize..at as usize + length as usize
}

impl Guest<'_> {
    /// The bytes there.
    pub fn bytes(&self, at: u32, length: u32) -> Result<&[u8], Errno> {
        self.0.get(range(at, length)).ok_or(Errno::FAULT)
    }

    /// The bytes there, to be written.
    pub fn bytes_mut(&mut self, at: u32, length: u32) -> Result<&mut [u8], Errno> {
        self.0.get_mut(range(at, length)).ok_or(Errno::FAULT)
    }

    /// The bytes there.
    pub fn array<const N: usize>(&self, at: u32) -> Result<[u8; N], Errno> {
        self.0.get(at as usize..).and_then(|rest| rest.first_chunk()).copied().ok_or(Errno::FAULT)
    }

    /// A number of 32 bits.
    pub fn u32(&self, at: u32) -> Result<u32, Errno> {
        self.array(at).map(u32::from_le_bytes)
    }

    /// Writes bytes.
    pub fn put(&mut self, at: u32, bytes: &[u8]) -> Result<(), Errno> {
        let end = (at as usize).checked_add(bytes.len()).ok_or(Errno::FAULT)?;
        self.0.get_mut(at as usize..end).ok_or(Errno::FAULT)?.copy_from_slice(bytes);
        Ok(())
    }

    /// Writes a number of 32 bits.
    pub fn put_u32(&mut self, at: u32, value: u32) -> Result<(), Errno> {
        self.put(at, &value.to_le_bytes())
    }

    /// Writes a number of 64 bits.
    pub fn put_u64(&mut self, at: u32, value: u64) -> Result<(), Errno> {
        self.put(at, &value.to_le_bytes())
    }

    /// A path.
    pub fn path(&self, at: u32, length: u32) -> Result<String, Errno> {
        if length as usize > path::PATH_BYTES {
            return Err(Errno::NAMETOOLONG);
        }
        let text = core::str::from_utf8(self.bytes(at, length)?).map_err(|_| Errno::ILSEQ)?;
        if text.contains('\0') { Err(Errno::INVAL) } else { Ok(text.into()) }
    }

    /// The vectors of a read or write: all of them lie in memory, and together they have less than 4 GiB.
    pub fn vectors(&self, at: u32, count: u32) -> Result<Vec<(u32, u32)>, Errno> {
        if count > MAX_VECTORS {
            return Err(Errno::INVAL);
        }
        let mut vectors = Vec::with_capacity(count as usize);
        let mut all = 0u32;
        for number in 0..count {
            let place = at.checked_add(number * VECTOR_BYTES).ok_or(Errno::FAULT)?;
            let (start, length) = (self.u32(place)?, self.u32(place.checked_add(4).ok_or(Errno::FAULT)?)?);
            self.bytes(start, length)?;
            all = all.checked_add(length).ok_or(Errno::INVAL)?;
            vectors.push((start, length));
        }
        Ok(vectors)
    }
}

/// Total length of vectors.
pub fn total(vectors: &[(u32, u32)]) -> u32 {
    vectors.iter().map(|(_, length)| length).sum()
}

/// A place within the vectors of a call.
pub struct Cursor<'v> {
    vectors: &'v [(u32, u32)],
    within: u32,
}

impl<'v> Cursor<'v> {
    /// Begins at the first byte.
    pub fn new(vectors: &'v [(u32, u32)]) -> Cursor<'v> {
        Cursor { vectors, within: 0 }
    }

    /// The next run of memory, of at most this many bytes; none at the end.
    fn next(&mut self, most: usize) -> Option<(u32, u32)> {
        while let Some((start, length)) = self.vectors.first() {
            let left = length - self.within;
            if left == 0 {
                self.vectors = &self.vectors[1..];
                self.within = 0;
                continue;
            }
            let taken = left.min(u32::try_from(most).unwrap_or(u32::MAX));
            let run = (start + self.within, taken);
            self.within += taken;
            return (taken > 0).then_some(run);
        }
        None
    }

    /// Copies the next bytes from memory; returns how many there were.
    pub fn gather(&mut self, guest: &Guest<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        let mut done = 0;
        while let Some((start, length)) = self.next(into.len() - done) {
            into[done..done + length as usize].copy_from_slice(guest.bytes(start, length)?);
            done += length as usize;
        }
        Ok(done)
    }

    /// Copies bytes to the next places in memory; returns how many found room.
    pub fn scatter(&mut self, guest: &mut Guest<'_>, from: &[u8]) -> Result<usize, Errno> {
        let mut done = 0;
        while let Some((start, length)) = self.next(from.len() - done) {
            guest.bytes_mut(start, length)?.copy_from_slice(&from[done..done + length as usize]);
            done += length as usize;
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn what_lies_outside_of_memory_is_a_fault() {
        let mut memory = [0; 16];
        let mut guest = Guest(&mut memory);
        assert_eq!(guest.u32(12), Ok(0));
        for at in [13, 16, u32::MAX] {
            assert_eq!(guest.u32(at), Err(Errno::FAULT), "{at}");
            assert_eq!(guest.put_u32(at, 1), Err(Errno::FAULT), "{at}");
        }
        assert!(guest.bytes(16, 0).is_ok());
        assert_eq!(guest.bytes(17, 0), Err(Errno::FAULT));
        assert_eq!(guest.bytes(8, u32::MAX), Err(Errno::FAULT));
    }

    #[test]
    fn paths_are_short_text_without_zeros() {
        let mut memory = *b"a/b\0\xff";
        let guest = Guest(&mut memory);
        assert_eq!(guest.path(0, 3), Ok("a/b".into()));
        assert_eq!(guest.path(0, 4), Err(Errno::INVAL));
        assert_eq!(guest.path(4, 1), Err(Errno::ILSEQ));
        assert_eq!(guest.path(0, 6), Err(Errno::FAULT));
        assert_eq!(guest.path(0, 5000), Err(Errno::NAMETOOLONG));
    }

    #[test]
    fn vectors_are_checked_before_the_first_byte_moves() {
        let mut memory = vec![0; 64];
        for (at, value) in [(0, 32u32), (4, 4), (8, 40), (12, 8), (16, 60), (20, 8)] {
            memory[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        let mut guest = Guest(&mut memory);
        assert_eq!(guest.vectors(0, 3), Err(Errno::FAULT));
        assert_eq!(guest.vectors(0, MAX_VECTORS + 1), Err(Errno::INVAL));
        assert_eq!(guest.vectors(u32::MAX - 3, 2), Err(Errno::FAULT));
        let vectors = guest.vectors(0, 2).expect("two");
        assert_eq!(total(&vectors), 12);
        let mut cursor = Cursor::new(&vectors);
        assert_eq!(cursor.scatter(&mut guest, b"abcdef"), Ok(6));
        assert_eq!(cursor.scatter(&mut guest, b"ghijklmnop"), Ok(6));
        assert_eq!((&guest.0[32..36], &guest.0[40..48]), (&b"abcd"[..], &b"efghijkl"[..]));
        let mut back = [0; 9];
        let mut cursor = Cursor::new(&vectors);
        assert_eq!(cursor.gather(&guest, &mut back), Ok(9));
        assert_eq!(&back, b"abcdefghi");
        assert_eq!(cursor.gather(&guest, &mut back), Ok(3));
    }
}

//! Searches a bitmap for runs of free bits, except those that await a commit.

/// Bits of a bitmap that are in use, together with those freed but not yet committed.
pub(super) struct Used<'a> {
    /// The bitmap as on disk.
    pub(super) bitmap: &'a [u8],
    /// Bits that are free but must not be reused yet.
    pub(super) resting: [Option<&'a [u8]>; 2],
    /// Number of valid bits.
    pub(super) bits: usize,
}

fn word_of(bytes: &[u8], index: usize) -> u64 {
    match bytes.get(index * 8..index * 8 + 8).and_then(|word| word.try_into().ok()) {
        Some(word) => u64::from_le_bytes(word),
        // Past the end of a bitmap whose length is not a multiple of 8: missing bits count as used.
        None => {
            let mut word = [0xff; 8];
            let rest = bytes.get(index * 8..).unwrap_or(&[]);
            word[..rest.len().min(8)].copy_from_slice(&rest[..rest.len().min(8)]);
            u64::from_le_bytes(word)
        }
    }
}

impl Used<'_> {
    fn word(&self, index: usize) -> u64 {
        let resting = self.resting.iter().flatten().map(|bytes| word_of(bytes, index));
        resting.fold(word_of(self.bitmap, index), |word, resting| word | resting)
    }

    /// Returns the first bit in `start..end` that is free (or not).
    fn next(&self, start: usize, end: usize, is_free: bool) -> Option<usize> {
        let end = end.min(self.bits);
        let mut position = start;
        while position < end {
            let word = if is_free { !self.word(position / 64) } else { self.word(position / 64) };
            let rest = word >> (position % 64);
            if rest != 0 {
                return Some(position + rest.trailing_zeros() as usize).filter(|&found| found < end);
            }
            position = (position / 64 + 1) * 64;
        }
        None
    }

    /// Returns the length of the free run at `start`, capped at `most`.
    pub(super) fn run_at(&self, start: usize, most: usize) -> usize {
        let end = start.saturating_add(most).min(self.bits);
        if start >= end {
            return 0;
        }
        self.next(start, end, false).unwrap_or(end) - start
    }

    /// Finds the first run of at least `wanted` free bits that begins in this range, or else the longest there;
    /// returns its first bit and its length, capped at `most`.
    pub(super) fn find(&self, start: usize, end: usize, wanted: usize, most: usize) -> Option<(usize, usize)> {
        let mut best: Option<(usize, usize)> = None;
        let mut position = start;
        while let Some(first) = self.next(position, end, true) {
            let count = self.run_at(first, most);
            if best.is_none_or(|best| best.1 < count) {
                best = Some((first, count));
            }
            if count >= wanted {
                break;
            }
            position = first + count.max(1);
        }
        best
    }
}

/// Sets or clears bits.
pub(super) fn set(bitmap: &mut [u8], first: usize, count: usize, value: bool) {
    for bit in first..first + count {
        if let Some(byte) = bitmap.get_mut(bit / 8) {
            let mask = 1 << (bit % 8);
            *byte = if value { *byte | mask } else { *byte & !mask };
        }
    }
}

/// Returns whether all of these bits are set (or clear).
pub(super) fn all(bitmap: &[u8], first: usize, count: usize, value: bool) -> bool {
    (first..first + count).all(|bit| bitmap.get(bit / 8).is_some_and(|byte| (byte >> (bit % 8) & 1 != 0) == value))
}

/// Counts the clear bits among the first `bits`.
pub(super) fn count_clear(bitmap: &[u8], bits: usize) -> u32 {
    let whole: u32 = bitmap.iter().take(bits / 8).map(|byte| byte.count_zeros()).sum();
    let rest = (bits / 8 * 8..bits).filter(|&bit| all(bitmap, bit, 1, false)).count();
    whole + rest as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_as_bit_by_bit() {
        let mut random = 7u64;
        for round in 0..2000 {
            let mut next = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                random >> 33
            };
            let bits = (next() % 200) as usize + 1;
            let density = next() % 4;
            let mut make = || {
                let bytes = (0..bits.div_ceil(8)).map(|_| (0..density).fold(0xff, |byte, _| byte & next() as u8));
                bytes.collect::<alloc::vec::Vec<u8>>()
            };
            let (bitmap, resting) = (make(), make());
            let used = Used { bitmap: &bitmap, resting: [None, Some(&resting)], bits };
            let is_free = |bit: usize| bit < bits && all(&bitmap, bit, 1, false) && all(&resting, bit, 1, false);
            let row = |start: usize, most: usize| (start..start + most).take_while(|&bit| is_free(bit)).count();
            let (start, wanted) = (round % bits, round % 7 + 1);
            let most = wanted + round % 3;
            assert_eq!(used.run_at(start, most), row(start, most));
            let rows = (start..bits).filter(|&bit| is_free(bit) && (bit == start || !is_free(bit - 1)));
            let rows: alloc::vec::Vec<_> = rows.map(|bit| (bit, row(bit, bits))).collect();
            let found = used.find(start, bits, wanted, most);
            match rows.iter().find(|row| row.1 >= wanted) {
                Some(&(first, count)) => assert_eq!(found, Some((first, count.min(most)))),
                None => assert_eq!(found.map(|found| found.1), rows.iter().map(|row| row.1).max()),
            }
            assert_eq!(count_clear(&bitmap, bits), (0..bits).filter(|&bit| all(&bitmap, bit, 1, false)).count() as u32);
        }
    }
}

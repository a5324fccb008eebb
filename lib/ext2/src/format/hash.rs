//! Hashes of names that order a directory's index, as defined by ext3.
//!
//! The signedness of characters is that of the machine that created the volume; the superblock records it. Pure: no
//! disk I/O.

/// Hash algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// The original one, from before htree was merged into Linux.
    Legacy,
    /// Three rounds of MD4 over half of its state.
    HalfMd4,
    /// The Tiny Encryption Algorithm.
    Tea,
}

/// Parameters of an index for hashing names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hasher {
    pub(crate) algorithm: Algorithm,
    pub(crate) unsigned: bool,
    /// The volume's seed; all zeros: the algorithm's default.
    pub(crate) seed: [u32; 4],
}

/// Bytes per step of half MD4.
const MD4_STEP: usize = 32;
/// Bytes per step of TEA.
const TEA_STEP: usize = 16;
/// Reserved as the end-of-directory position, so no name may have it.
const END_OF_FOLDER: u32 = 0xffff_fffe;

impl Hasher {
    /// Returns the hash of a name. Its lowest bit is 0.
    pub(crate) fn hash(&self, name: &[u8]) -> u32 {
        let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
        if self.seed.iter().any(|&word| word != 0) {
            state = self.seed;
        }
        let hash = match self.algorithm {
            Algorithm::Legacy => self.legacy(name),
            Algorithm::HalfMd4 => {
                for start in (0..name.len()).step_by(MD4_STEP) {
                    half_md4(&mut state, &self.words(&name[start..]));
                }
                state[1]
            }
            Algorithm::Tea => {
                for start in (0..name.len()).step_by(TEA_STEP) {
                    tea(&mut state, &self.words(&name[start..]));
                }
                state[0]
            }
        };
        match hash & !1 {
            END_OF_FOLDER => END_OF_FOLDER - 2,
            hash => hash,
        }
    }

    fn character(&self, byte: u8) -> u32 {
        if self.unsigned { byte.into() } else { i32::from(byte as i8) as u32 }
    }

    fn legacy(&self, name: &[u8]) -> u32 {
        let (mut newer, mut older) = (0x12a3_fe2d_u32, 0x37ab_e8f9_u32);
        for &byte in name {
            let mut hash = older.wrapping_add(newer ^ self.character(byte).wrapping_mul(7_152_373));
            if hash & 0x8000_0000 != 0 {
                hash = hash.wrapping_sub(0x7fff_ffff);
            }
            (older, newer) = (newer, hash);
        }
        newer << 1
    }

    /// Returns the start of the remaining name as words, padded with its length.
    fn words<const COUNT: usize>(&self, name: &[u8]) -> [u32; COUNT] {
        // A name has at most 255 bytes.
        let fill = u32::from(name.len() as u8) * 0x0101_0101;
        let mut words = [fill; COUNT];
        for (word, bytes) in words.iter_mut().zip(name.chunks(4)) {
            *word = bytes.iter().fold(fill, |word, &byte| (word << 8).wrapping_add(self.character(byte)));
        }
        words
    }
}

fn tea(state: &mut [u32; 4], input: &[u32; 4]) {
    let [a, b, c, d] = *input;
    let (mut first, mut second, mut sum) = (state[0], state[1], 0u32);
    let mix = |of: u32, low: u32, high: u32, sum: u32| {
        (of << 4).wrapping_add(low) ^ of.wrapping_add(sum) ^ (of >> 5).wrapping_add(high)
    };
    for _ in 0..16 {
        sum = sum.wrapping_add(0x9e37_79b9);
        first = first.wrapping_add(mix(second, a, b, sum));
        second = second.wrapping_add(mix(first, c, d, sum));
    }
    state[0] = state[0].wrapping_add(first);
    state[1] = state[1].wrapping_add(second);
}

/// Order of the input, shifts, and constant of a round.
type Round = ([usize; 8], [u32; 4], u32, fn(u32, u32, u32) -> u32);

const ROUNDS: [Round; 3] = [
    ([0, 1, 2, 3, 4, 5, 6, 7], [3, 7, 11, 19], 0, |x, y, z| z ^ (x & (y ^ z))),
    ([1, 3, 5, 7, 0, 2, 4, 6], [3, 5, 9, 13], 0x5a82_7999, |x, y, z| (x & y).wrapping_add((x ^ y) & z)),
    ([3, 7, 2, 6, 1, 5, 0, 4], [3, 9, 11, 15], 0x6ed9_eba1, |x, y, z| x ^ y ^ z),
];

fn half_md4(state: &mut [u32; 4], input: &[u32; 8]) {
    let [mut a, mut b, mut c, mut d] = *state;
    for (order, shifts, constant, function) in ROUNDS {
        for (step, index) in order.into_iter().enumerate() {
            let sum = a.wrapping_add(function(b, c, d)).wrapping_add(input[index]).wrapping_add(constant);
            (a, b, c, d) = (d, sum.rotate_left(shifts[step % 4]), b, c);
        }
    }
    for (word, add) in state.iter_mut().zip([a, b, c, d]) {
        *word = word.wrapping_add(add);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of `debugfs -R "dx_hash ..."` of e2fsprogs 1.47.0.
    #[test]
    fn hashes_are_those_of_e2fsprogs() {
        let long = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOP";
        let seed = [0x0403_0201, 0x0807_0605, 0x0c0b_0a09, 0x100f_0e0d];
        let expected = [
            (Algorithm::Legacy, [0x471e_89da, 0xab49_116c, 0x3225_2546]),
            (Algorithm::HalfMd4, [0x8b95_6fc0, 0xff26_931c, 0xe2dd_f968]),
            (Algorithm::Tea, [0x45b_41a0, 0x638b_92da, 0x1a56_92b6]),
        ];
        for (algorithm, hashes) in expected {
            let plain = Hasher { algorithm, unsigned: false, seed: [0; 4] };
            let seeded = Hasher { seed, ..plain };
            assert_eq!(
                [plain.hash(long), plain.hash("häß".as_bytes()), seeded.hash(b"hello")],
                hashes,
                "{algorithm:?}"
            );
            assert_eq!(Hasher { unsigned: true, ..plain }.hash(long), hashes[0]);
        }
    }
}

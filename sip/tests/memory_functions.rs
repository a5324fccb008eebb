//! The five memory functions of an image, linked in place of this test program's own.

sip::memory_functions!();

unsafe extern "C" {
    fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8;
    fn memset(to: *mut u8, value: i32, bytes: usize) -> *mut u8;
    fn memcmp(a: *const u8, b: *const u8, bytes: usize) -> i32;
}

const SIZES: &[usize] = &[
    0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 47, 48, 49, 63, 64, 65, 79, 80, 81, 95, 96, 97, 111, 112,
    113, 127, 128, 129, 143, 144, 145, 191, 192, 193, 200, 511, 512, 513, 1023, 1024, 1025, 1031, 1500, 5000, 5003,
    16_383, 16_384, 16_391,
];

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 + index / 251) as u8).collect()
}

#[test]
fn memmove_moves_whatever_the_overlap() {
    for &size in SIZES {
        for (from, to) in [
            (0, 18_000),
            (18_000, 0),
            (100, 100),
            (100, 101),
            (101, 100),
            (100, 116),
            (116, 100),
            (100, 133),
            (133, 100),
        ] {
            let mut bytes = pattern(36_000);
            let mut expected = bytes.clone();
            let moved: Vec<u8> = (0..size).map(|index| bytes[from + index]).collect();
            for (index, byte) in moved.into_iter().enumerate() {
                expected[to + index] = byte;
            }
            let base = bytes.as_mut_ptr();
            // SAFETY: both ranges lie in the vector.
            let answer = unsafe { memmove(base.add(to), base.add(from), size) };
            assert_eq!(answer as usize, base as usize + to);
            assert!(bytes == expected, "{size} bytes from {from} to {to}");
        }
    }
}

#[test]
fn memset_sets_exactly_its_bytes() {
    for &size in SIZES {
        let mut bytes = pattern(18_000);
        // SAFETY: the range lies in the vector.
        unsafe { memset(bytes.as_mut_ptr().add(3), 0x1a5, size) };
        let before = pattern(18_000);
        for (index, &byte) in bytes.iter().enumerate() {
            let expected = if (3..3 + size).contains(&index) { 0xa5 } else { before[index] };
            assert_eq!(byte, expected, "byte {index} of a memset of {size}");
        }
    }
}

#[test]
fn memcmp_orders_by_the_first_difference() {
    for &size in SIZES.iter().filter(|&&size| size <= 513) {
        let a = pattern(size + 16);
        // SAFETY: both ranges lie in the vectors.
        let compare = |a: &[u8], b: &[u8]| unsafe { memcmp(a.as_ptr().add(1), b.as_ptr().add(1), size) };
        assert_eq!(compare(&a, &a.clone()), 0);
        for place in 0..size {
            let mut b = a.clone();
            b[1 + place] = b[1 + place].wrapping_add(1);
            let expected = a[1 + place].cmp(&b[1 + place]);
            assert_eq!(compare(&a, &b).cmp(&0), expected, "place {place} of {size}");
        }
    }
}

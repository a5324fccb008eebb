//! Where the stacks of threads are: a slot of addresses each, of which a stack has the upper end.
//!
//! All slots have one size, so that a mask of the stack pointer finds the thread block. How much of its slot a stack has
//! follows from the slot's number: most are for stacks of the [usual size](USUAL_BYTES), and the last few in each group
//! for the larger ones. So the kernel and the machine's handlers of faults know a stack's end without asking anyone.

use crate::limits::{PAGE_BYTES, STACK_GUARD_BYTES, STACK_SLOT_BYTES};

/// Size of a stack whose program asks for no other, in bytes.
pub const USUAL_BYTES: usize = 256 * 1024;
/// Number of sizes: the usual one, and each doubled up to the whole slot.
pub const SIZES: usize = 6;
const _: () = assert!(USUAL_BYTES << (SIZES - 1) == STACK_SLOT_BYTES);
/// Slots of a group, whose first has an address that is a multiple of [`GROUP_BYTES`].
pub const GROUP_SLOTS: usize = 64;
/// Alignment of the range of all stacks, in bytes.
pub const GROUP_BYTES: usize = GROUP_SLOTS * STACK_SLOT_BYTES;
/// Slots of a group for stacks of the usual size. Each further one is for the next size.
const USUAL_SLOTS: usize = GROUP_SLOTS - (SIZES - 1);

/// Returns the number of the size that has these bytes, with 0 for the usual one; `None` if there is no such size.
pub const fn size_number(bytes: usize) -> Option<usize> {
    let number = (bytes / USUAL_BYTES).trailing_zeros() as usize;
    if bytes != 0 && number < SIZES && USUAL_BYTES << number == bytes { Some(number) } else { None }
}

/// Offset, in the range of all stacks, of a slot for stacks of a size: the slots of each are counted by themselves.
pub const fn slot_offset(size: usize, number: usize) -> usize {
    let slot = match size {
        0 => number / USUAL_SLOTS * GROUP_SLOTS + number % USUAL_SLOTS,
        _ => number * GROUP_SLOTS + USUAL_SLOTS - 1 + size,
    };
    slot * STACK_SLOT_BYTES
}

/// Bytes of the range of stacks that has this many slots for stacks of the usual size.
pub const fn range_bytes(usual: usize) -> usize {
    usual.div_ceil(USUAL_SLOTS) * GROUP_BYTES
}

/// The number of the size of the stack whose slot an address lies in.
pub const fn size_at(address: usize) -> usize {
    (address / STACK_SLOT_BYTES % GROUP_SLOTS).saturating_sub(USUAL_SLOTS - 1)
}

/// Bytes of the stack whose slot an address lies in, with its guard.
pub const fn bytes_at(address: usize) -> usize {
    USUAL_BYTES << size_at(address)
}

/// The lowest address of the stack whose slot an address lies in: where its guard begins.
pub const fn start(address: usize) -> usize {
    (address | (STACK_SLOT_BYTES - 1)) - (bytes_at(address) - 1)
}

/// Whether an address in the range of stacks lies in a stack, above its guard.
pub const fn is_usable(address: usize) -> bool {
    address >= start(address) + STACK_GUARD_BYTES
}

/// Pages that a stack of these bytes has beyond those of the usual size.
pub const fn pages_beyond_usual(bytes: usize) -> usize {
    bytes.saturating_sub(USUAL_BYTES) / PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_usual_one_doubled() {
        let sizes: [usize; SIZES] = core::array::from_fn(|number| USUAL_BYTES << number);
        assert!(sizes.iter().enumerate().all(|(number, &bytes)| size_number(bytes) == Some(number)));
        for bytes in [0, 1, USUAL_BYTES - 1, USUAL_BYTES + 1, 3 * USUAL_BYTES, USUAL_BYTES / 2, 2 * STACK_SLOT_BYTES] {
            assert_eq!(size_number(bytes), None, "{bytes}");
        }
    }

    #[test]
    fn no_two_slots_are_the_same_and_each_says_its_size() {
        let all = (0..SIZES).flat_map(|size| (0..200).map(move |number| (size, slot_offset(size, number))));
        let mut all: alloc::vec::Vec<_> = all.collect();
        for &(size, offset) in &all {
            let last = GROUP_BYTES * 7 + offset + STACK_SLOT_BYTES - 1;
            assert_eq!((size_at(last), last + 1 - start(last)), (size, USUAL_BYTES << size));
            assert!(is_usable(last) && is_usable(start(last) + STACK_GUARD_BYTES));
            assert!(!is_usable(start(last) + STACK_GUARD_BYTES - 1));
        }
        let count = all.len();
        all.sort_unstable_by_key(|&(_, offset)| offset);
        all.dedup_by_key(|&mut (_, offset)| offset);
        assert_eq!(all.len(), count);
    }

    #[test]
    fn a_range_has_the_slots_that_it_is_made_for() {
        for usual in [1, USUAL_SLOTS, USUAL_SLOTS + 1, 65_536] {
            assert!(slot_offset(0, usual - 1) + STACK_SLOT_BYTES <= range_bytes(usual));
        }
        assert_eq!(pages_beyond_usual(USUAL_BYTES), 0);
        assert_eq!(pages_beyond_usual(STACK_SLOT_BYTES), 31 * 64);
    }
}

//! Sorting records by a key: comparisons and moves that nothing predicts.

use alloc::vec::Vec;

use crate::numbers::{Numbers, digest};

const RECORDS: usize = 150_000;

#[derive(Clone, Copy)]
struct Record {
    key: u32,
    place: u32,
}

pub fn run() -> u64 {
    let mut numbers = Numbers::of(0x5027);
    let mut records: Vec<Record> =
        (0..RECORDS).map(|place| Record { key: numbers.next() as u32 >> 8, place: place as u32 }).collect();
    merge_sort(&mut records);
    digest(records.iter().map(|record| u64::from(record.key) << 32 | u64::from(record.place)))
}

/// Sorts by key; equal keys stay in their order.
fn merge_sort(records: &mut Vec<Record>) {
    let mut other = records.clone();
    let mut width = 1;
    while width < records.len() {
        for (pair, merged) in records.chunks(2 * width).zip(other.chunks_mut(2 * width)) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, merged);
        }
        core::mem::swap(records, &mut other);
        width *= 2;
    }
}

fn merge(left: &[Record], right: &[Record], merged: &mut [Record]) {
    let (mut from_left, mut from_right) = (0, 0);
    for place in merged {
        let takes_left = match (left.get(from_left), right.get(from_right)) {
            (Some(one), Some(other)) => one.key <= other.key,
            (one, _) => one.is_some(),
        };
        if takes_left {
            *place = left[from_left];
            from_left += 1;
        } else {
            *place = right[from_right];
            from_right += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sorts_and_keeps_the_order_of_equals() {
        let mut numbers = Numbers::of(7);
        let mut records: Vec<Record> = (0..1000).map(|place| Record { key: numbers.below(50) as u32, place }).collect();
        merge_sort(&mut records);
        assert!(records.windows(2).all(|pair| (pair[0].key, pair[0].place) < (pair[1].key, pair[1].place)));
    }
}

//! Cache of decisions, which saves pattern matching.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Number of slots.
const SLOTS: usize = 256;

/// Decisions by list and principal, direct-mapped; a new one replaces the old. Principals are compared in full, so hash
/// collisions do no harm.
pub struct DecisionCache<T> {
    slots: Vec<Option<Slot<T>>>,
}

struct Slot<T> {
    list: u64,
    principal: Box<str>,
    answer: T,
}

impl<T: Copy> DecisionCache<T> {
    /// Creates an empty cache.
    pub fn new() -> DecisionCache<T> {
        DecisionCache { slots: (0..SLOTS).map(|_| None).collect() }
    }

    /// Returns the decision of the list with this number for the principal, from the cache or else from `decide`.
    pub fn get(&mut self, list: u64, principal: &str, decide: impl FnOnce() -> T) -> T {
        let place = place(list, principal);
        if let Some(Some(slot)) = self.slots.get(place)
            && slot.list == list
            && *slot.principal == *principal
        {
            return slot.answer;
        }
        let answer = decide();
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = Some(Slot { list, principal: principal.into(), answer });
        }
        answer
    }

    /// Evicts the decisions of the list with this number.
    pub fn forget(&mut self, list: u64) {
        for slot in &mut self.slots {
            if slot.as_ref().is_some_and(|slot| slot.list == list) {
                *slot = None;
            }
        }
    }
}

impl<T: Copy> Default for DecisionCache<T> {
    fn default() -> DecisionCache<T> {
        DecisionCache::new()
    }
}

/// The golden ratio as an odd number: a multiplicative hash constant.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashes eight bytes per step, by a multiplication; the high half of the last product depends on all bits.
fn place(list: u64, principal: &str) -> usize {
    let mut hash = (list ^ principal.len() as u64).wrapping_mul(MIX);
    let (words, rest) = principal.as_bytes().as_chunks::<8>();
    for word in words {
        hash = (hash.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(MIX);
    }
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    hash = (hash.rotate_left(23) ^ u64::from_le_bytes(last)).wrapping_mul(MIX);
    // Eight bits select one of 256 slots.
    (hash >> 56) as usize
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn what_was_decided_is_not_decided_again_until_it_is_forgotten() {
        let mut cache = DecisionCache::new();
        assert_eq!(cache.get(1, "cat.singularity", || 7), 7);
        assert_eq!(cache.get(1, "cat.singularity", || panic!("it is known")), 7);
        assert_eq!(cache.get(2, "cat.singularity", || 8), 8);
        assert_eq!(cache.get(1, "cp.singularity", || 9), 9);
        cache.forget(1);
        assert_eq!(cache.get(1, "cat.singularity", || 10), 10);
    }

    #[test]
    fn a_crowded_cache_is_never_wrong() {
        let mut cache = DecisionCache::new();
        for round in 0..3u64 {
            for number in 0..2000u64 {
                let list = number % 7;
                let principal = format!("program-{number}.singularity");
                assert_eq!(cache.get(list, &principal, || number), number, "round {round}");
            }
        }
    }

    #[test]
    fn principals_that_differ_a_little_lie_apart() {
        let mut used = [false; SLOTS];
        for number in 0..SLOTS {
            used[place(1, &format!("shell.singularity + p{number}.singularity"))] = true;
        }
        // Random hashing fills 162 of 256 slots with 256 keys.
        assert!(used.iter().filter(|&&used| used).count() > 130);
    }
}

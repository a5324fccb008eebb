//! Cache of matching rules per principal: pattern matching is the most expensive part of a decision, and has the same
//! result for all connections and datagrams of a client.

use alloc::string::String;
use alloc::vec::Vec;

/// Maximum principals in the cache.
const MAX_PRINCIPALS: usize = 64;

/// Rule sets, a bit per rule, by principal. The oldest entry is evicted first.
#[derive(Debug, Default)]
pub struct Cache {
    entries: Vec<(String, u64)>,
    next: usize,
}

impl Cache {
    /// The rules that apply to a principal; `find` computes them on a miss.
    pub fn rules_of(&mut self, principal: &str, find: impl FnOnce() -> u64) -> u64 {
        if let Some((_, rules)) = self.entries.iter().find(|(known, _)| known == principal) {
            return *rules;
        }
        let entry = (String::from(principal), find());
        let rules = entry.1;
        match self.entries.get_mut(self.next) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        self.next = (self.next + 1) % MAX_PRINCIPALS;
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn what_is_remembered_is_not_asked_again_and_the_oldest_is_forgotten() {
        let mut cache = Cache::default();
        let name = |number: usize| format!("program{number}.singularity");
        for number in 0..MAX_PRINCIPALS {
            assert_eq!(cache.rules_of(&name(number), || number as u64), number as u64);
        }
        for number in 0..MAX_PRINCIPALS {
            assert_eq!(cache.rules_of(&name(number), || unreachable!("it is remembered")), number as u64);
        }
        cache.rules_of(&name(MAX_PRINCIPALS), || 7);
        assert_eq!(cache.rules_of(&name(1), || unreachable!("only the oldest is forgotten")), 1);
        assert_eq!(cache.rules_of(&name(0), || 9), 9, "it was asked anew");
        assert_eq!(cache.entries.len(), MAX_PRINCIPALS);
    }
}

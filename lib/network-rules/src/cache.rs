//! Which rules speak of a principal, for those that asked last: matching patterns costs more than the rest of a
//! decision, and is the same for each connection and datagram of a client.

use alloc::string::String;
use alloc::vec::Vec;

/// Principals that are remembered.
const MOST: usize = 64;

/// Sets of rules, one bit each, by principal. The one that came first is forgotten first.
#[derive(Debug, Default)]
pub struct Cache {
    entries: Vec<(String, u64)>,
    next: usize,
}

impl Cache {
    /// The rules that speak of a principal; `find` finds them where it is not remembered.
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
        self.next = (self.next + 1) % MOST;
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
        for number in 0..MOST {
            assert_eq!(cache.rules_of(&name(number), || number as u64), number as u64);
        }
        for number in 0..MOST {
            assert_eq!(cache.rules_of(&name(number), || unreachable!("it is remembered")), number as u64);
        }
        cache.rules_of(&name(MOST), || 7);
        assert_eq!(cache.rules_of(&name(1), || unreachable!("only the oldest is forgotten")), 1);
        assert_eq!(cache.rules_of(&name(0), || 9), 9, "it was asked anew");
        assert_eq!(cache.entries.len(), MOST);
    }
}

//! Back-off after failed logins: it grows with each failure under the same name.
//!
//! A login under one name is not delayed by failures under another. Unknown names are counted as one. Key type:
//! [`Mistakes`]. Deliberately not here: waiting.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use people_list::MAX_PEOPLE;

/// Delay after the first failure in milliseconds; each further one doubles it.
const FIRST_WAIT_MS: u64 = 1000;
/// Maximum number of doublings.
const DOUBLINGS: u32 = 5;

/// Failures by name since that name's last login.
#[derive(Default)]
pub struct Mistakes {
    by_name: Vec<(String, u32)>,
    /// Failures with unknown names, or with names that there was no room for.
    with_others: u32,
}

impl Mistakes {
    /// Counts a failure under the name of a person, or `None` for an unknown name. Returns the delay before the next
    /// attempt, in milliseconds.
    pub fn note(&mut self, name: Option<&str>) -> u64 {
        let count = self.count(name);
        *count = count.saturating_add(1);
        FIRST_WAIT_MS << (*count - 1).min(DOUBLINGS)
    }

    /// Resets the count of a name after a login.
    pub fn forget(&mut self, name: &str) {
        self.by_name.retain(|(known, _)| known != name);
    }

    fn count(&mut self, name: Option<&str>) -> &mut u32 {
        let Some(name) = name else { return &mut self.with_others };
        let index = match self.by_name.iter().position(|(known, _)| known == name) {
            Some(index) => index,
            // The people file can change, so there may have been more names than there are people.
            None if self.by_name.len() >= MAX_PEOPLE => return &mut self.with_others,
            None => {
                self.by_name.push((name.to_string(), 0));
                self.by_name.len() - 1
            }
        };
        &mut self.by_name[index].1
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn waits_double_up_to_an_end_that_never_comes_back_to_nothing() {
        let mut mistakes = Mistakes::default();
        let waits: Vec<u64> = (0..7).map(|_| mistakes.note(Some("admin"))).collect();
        assert_eq!(waits, [1000, 2000, 4000, 8000, 16_000, 32_000, 32_000]);
        assert!((0..200).all(|_| mistakes.note(Some("admin")) == 32_000));
    }

    #[test]
    fn a_login_forgives_mistakes_with_its_own_name_alone() {
        let mut mistakes = Mistakes::default();
        for name in [Some("admin"), Some("admin"), Some("guest"), None] {
            mistakes.note(name);
        }
        mistakes.forget("guest");
        assert_eq!(mistakes.note(Some("guest")), 1000);
        assert_eq!(mistakes.note(Some("admin")), 4000);
        assert_eq!(mistakes.note(None), 2000);
        mistakes.forget("admin");
        assert_eq!(mistakes.note(Some("admin")), 1000);
    }

    #[test]
    fn there_is_an_end_to_names() {
        let mut mistakes = Mistakes::default();
        for number in 0..MAX_PEOPLE {
            mistakes.note(Some(&format!("p{number}")));
        }
        assert_eq!((mistakes.note(Some("one-more")), mistakes.note(None)), (1000, 2000));
        assert_eq!(mistakes.by_name.len(), MAX_PEOPLE);
    }
}

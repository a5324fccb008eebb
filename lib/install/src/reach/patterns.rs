//! Rules and promises as sets: whether two intersect.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use principal::Pattern;

/// A letter of a pattern over paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Letter {
    /// This byte.
    Byte(u8),
    /// Any text without `/`.
    Name,
    /// Any text.
    Anything,
}

fn letters(mut rest: &[u8]) -> Vec<Letter> {
    let mut out = Vec::new();
    while let [first, others @ ..] = rest {
        if let Some(after) = rest.strip_prefix(b"**") {
            out.push(Letter::Anything);
            rest = after;
        } else {
            out.push(if *first == b'*' { Letter::Name } else { Letter::Byte(*first) });
            rest = others;
        }
    }
    out
}

/// Returns whether some path matches both patterns. The time is proportional to the product of the lengths of what is
/// between their common beginning and end: a system has a hundred thousand pairs, most of which differ in a byte.
pub fn paths_meet(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let same = left.iter().zip(right).take_while(|(one, two)| is_same(one, two)).count();
    let (left, right) = (left.get(same..).unwrap_or_default(), right.get(same..).unwrap_or_default());
    if differ(left.first(), right.first()) {
        return false;
    }
    let same = left.iter().rev().zip(right.iter().rev()).take_while(|(one, two)| is_same(one, two)).count();
    let (left, right) = (without_end(left, same), without_end(right, same));
    if differ(left.last(), right.last()) {
        return false;
    }
    left == b"**" || right == b"**" || left == right || rests_meet(left, right)
}

/// Whether both are the same byte, and no star.
fn is_same(one: &u8, two: &u8) -> bool {
    one == two && *one != b'*'
}

/// Whether two patterns have nothing in common because of their first or last bytes.
fn differ(one: Option<&u8>, two: Option<&u8>) -> bool {
    one != two && one != Some(&b'*') && two != Some(&b'*')
}

fn without_end(pattern: &[u8], bytes: usize) -> &[u8] {
    pattern.get(..pattern.len() - bytes).unwrap_or_default()
}

fn rests_meet(left: &[u8], right: &[u8]) -> bool {
    let (left, right) = (letters(left), letters(right));
    let width = right.len() + 1;
    // For each pair of positions, whether the rests of both patterns intersect.
    let mut meet = vec![false; (left.len() + 1) * width];
    for at in (0..=left.len()).rev() {
        for other in (0..=right.len()).rev() {
            let later = |at: usize, other: usize| meet.get(at * width + other).copied().unwrap_or(false);
            let found = match (left.get(at).copied(), right.get(other).copied()) {
                (None, None) => true,
                (None, Some(Letter::Byte(_))) | (Some(Letter::Byte(_)), None) => false,
                (Some(Letter::Byte(one)), Some(Letter::Byte(two))) => one == two && later(at + 1, other + 1),
                // A star matches nothing, or one more letter of the other.
                (Some(Letter::Byte(byte)), Some(star)) => {
                    later(at, other + 1) || (stands_for(star, byte) && later(at + 1, other))
                }
                (Some(star), Some(Letter::Byte(byte))) => {
                    later(at + 1, other) || (stands_for(star, byte) && later(at, other + 1))
                }
                // Two stars together match whatever one of them matches.
                (Some(_), Some(_)) => later(at + 1, other) || later(at, other + 1),
                (Some(_), None) => later(at + 1, other),
                (None, Some(_)) => later(at, other + 1),
            };
            if let Some(place) = meet.get_mut(at * width + other) {
                *place = found;
            }
        }
    }
    meet.first().copied().unwrap_or(false)
}

fn stands_for(star: Letter, byte: u8) -> bool {
    star == Letter::Anything || byte != b'/'
}

/// Parsed subject of a rule.
#[derive(Clone, Debug)]
pub struct Who {
    pattern: Option<Pattern>,
}

impl Who {
    /// Parses a pattern of principals. An invalid one matches every principal: whatever is shown as out of reach must
    /// be out of reach.
    pub fn read(text: &str) -> Who {
        Who { pattern: Pattern::parse(text).ok() }
    }

    /// Returns the reason why the text is invalid, and the remedy.
    pub fn problem(text: &str) -> Option<(String, String)> {
        use alloc::string::ToString;
        Pattern::parse(text).err().map(|error| (error.to_string(), error.remedy().to_string()))
    }

    /// Returns whether it may match some principal whose last link is `program.publisher`, however it was invoked.
    pub fn may_mean(&self, link: &str) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| pattern.may_match_last_link(link))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::{Who, paths_meet, rests_meet};

    #[test]
    fn patterns_meet_where_one_path_is_of_both() {
        for (left, right, expected) in [
            ("/service/tcp", "/service/tcp", true),
            ("/service/tcp", "/service/*", true),
            ("/service/*", "/service/tcp/x", false),
            ("/service/**", "/service/tcp/x", true),
            ("/fs/**", "/service/**", false),
            ("/dev/disk*", "/dev/*0", true),
            ("/dev/disk*p*", "/dev/disk0", false),
            ("/dev/disk*p*", "/dev/d**1", true),
            ("**", "/", true),
            ("**", "", true),
            ("", "", true),
            ("/*/b", "/a/*", true),
            ("/*", "/a/b", false),
            ("*a*", "b**b", true),
            ("*a", "*b", false),
        ] {
            assert_eq!(paths_meet(left, right), expected, "{left} {right}");
            assert_eq!(paths_meet(right, left), expected, "{right} {left}");
        }
    }

    #[test]
    fn what_both_begin_and_end_with_changes_nothing() {
        // All patterns of up to four of these letters.
        let mut all = alloc::vec![String::new()];
        for length in 0..4 {
            let longer = |pattern: &String| ["a", "/", "*", "b"].map(|letter| pattern.clone() + letter);
            all.extend(all.iter().filter(|one| one.len() == length).flat_map(longer).collect::<Vec<_>>());
        }
        for left in &all {
            for right in &all {
                let expected = rests_meet(left.as_bytes(), right.as_bytes());
                assert_eq!(paths_meet(left, right), expected, "{left} {right}");
            }
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_read_means_everybody() {
        assert!(Who::read("(").may_mean("cat.singularity"));
        assert!(Who::read("..*.singularity").may_mean("cat.singularity"));
        assert!(!Who::read("..*.singularity").may_mean("cat.acme"));
        assert!(Who::read("shell.singularity + cat.singularity").may_mean("cat.singularity"));
        assert!(!Who::read("shell.singularity + cat.singularity").may_mean("shell.singularity"));
    }
}

//! What was probably meant by a word that is not known.

/// So many mistakes at most are looked through.
const MAX_MISTAKES: usize = 2;

/// The word of those known that is spelled nearly so; of several the nearest, and of those the first by the alphabet.
pub fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let near = |known: &'w str| {
        let mistakes = mistakes(word, known);
        // Half of a short word says nothing of the other half.
        (mistakes <= MAX_MISTAKES && mistakes * 2 <= known.chars().count()).then_some((mistakes, known))
    };
    known.into_iter().filter_map(near).min().map(|(_, known)| known)
}

/// How many characters must be changed, put in, taken out or swapped with their neighbours to make one of the other.
fn mistakes(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    let mut last = None;
    for (line, character) in one.chars().enumerate() {
        let mut next = vec![line + 1];
        for (column, wanted) in other.iter().enumerate() {
            let changed = row[column] + usize::from(character != *wanted);
            let mut least = changed.min(row[column + 1] + 1).min(next[column] + 1);
            let swapped = column > 0 && last == Some(*wanted) && other[column - 1] == character;
            if swapped {
                least = least.min(before[column - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
        last = Some(character);
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_counted() {
        for (one, other, count) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("run", "run", 0),
            ("rnu", "run", 1),
            ("urn", "run", 1),
            ("rn", "run", 1),
            ("ruun", "run", 1),
            ("ran", "run", 1),
            ("biuld", "build", 1),
            ("hostde", "hosted", 1),
            ("kitten", "sitting", 3),
            ("größe", "grösse", 2),
        ] {
            assert_eq!(mistakes(one, other), count, "{one} {other}");
            assert_eq!(mistakes(other, one), count, "{other} {one}");
        }
    }

    #[test]
    fn what_was_meant_is_found_and_nothing_else() {
        let known = ["bench", "bill", "build", "key", "new", "run"];
        for (word, meant) in [
            ("rnu", Some("run")),
            ("biuld", Some("build")),
            ("nwe", Some("new")),
            ("bnech", Some("bench")),
            ("keys", Some("key")),
            ("k", None),
            ("x", None),
            ("", None),
            ("install", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}

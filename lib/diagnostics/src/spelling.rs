//! Spelling suggestions.

/// Maximum edit distance.
const MAX_MISTAKES: usize = 2;

/// The known word closest in spelling, ignoring case; the first in alphabetical order if several are.
pub fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let word = word.to_lowercase();
    let near = |known: &'w str| {
        let mistakes = strsim::osa_distance(&word, &known.to_lowercase());
        // Half of a short word is no evidence for the rest.
        (mistakes <= MAX_MISTAKES && mistakes * 2 <= known.chars().count()).then_some((mistakes, known))
    };
    known.into_iter().filter_map(near).min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_found_and_nothing_else() {
        let known = ["bench", "bill", "build", "key", "new", "READY", "run"];
        for (word, meant) in [
            ("rnu", Some("run")),
            ("urn", Some("run")),
            ("biuld", Some("build")),
            ("nwe", Some("new")),
            ("bnech", Some("bench")),
            ("keys", Some("key")),
            ("redy", Some("READY")),
            ("k", None),
            ("x", None),
            ("", None),
            ("install", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}

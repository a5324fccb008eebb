//! Damaged manifests are refused or accepted; the reader never panics, and its diagnostics can be rendered.

use proptest::prelude::*;
use proptest::sample::Index;

const PROGRAM: &str = include_str!("fixtures/program/good.toml");
const SYSTEM: &str = include_str!("fixtures/system/good.toml");

/// Reads the text as both kinds and renders the diagnostics.
fn read(text: &str) {
    if let Err(errors) = manifest::program("program.toml", text, None) {
        assert!(!errors.to_string().is_empty());
    }
    let program = manifest::program("good.toml", PROGRAM, None).unwrap_or_else(|errors| panic!("{errors}")).manifest;
    let file = manifest::SystemFile { file: "system.toml".into(), text: text.into() };
    // The text is its own base, under any name.
    let base = |_: &str| Some(file.clone());
    if let Err(errors) = manifest::system(file.clone(), &base, &[&program]) {
        assert!(!errors.to_string().is_empty());
    }
}

/// Replaces ranges of characters by pieces of text.
fn damage(text: &str, changes: &[(Index, usize, String)]) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for (place, length, piece) in changes {
        let start = place.index(characters.len() + 1);
        let end = (start + length).min(characters.len());
        characters.splice(start..end, piece.chars());
    }
    characters.into_iter().collect()
}

proptest! {
    #[test]
    fn no_text_panics(text in "(?s).{0,200}") {
        read(&text);
    }

    #[test]
    fn no_damage_panics(
        changes in proptest::collection::vec((any::<Index>(), 0usize..12, "[\\PC\n\"=\\[\\]{}.-]{0,6}"), 1..6),
    ) {
        read(&damage(PROGRAM, &changes));
        read(&damage(SYSTEM, &changes));
    }

    #[test]
    fn no_values_panic(key in 0usize..40, value in prop_oneof![
        Just("-1"), Just("99999999999999999999"), Just("[]"), Just("{}"), Just("\"\""), Just("true"), Just("1.5"),
        Just("[[1]]"), Just("1979-05-27"), Just("\"é\\u0000\""), Just("{ root = 1 }"),
    ]) {
        for text in [PROGRAM, SYSTEM] {
            let keys: Vec<usize> = text.match_indices(" = ").map(|(place, _)| place + 3).collect();
            let start = keys[key % keys.len()];
            let end = text[start..].find('\n').map_or(text.len(), |length| start + length);
            read(&format!("{}{value}{}", &text[..start], &text[end..]));
        }
    }
}

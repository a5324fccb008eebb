//! Quoting.

use alloc::string::String;

/// Characters that are special outside quotes.
const SPECIAL: &str = "'\"\\$`;&|<>()*?#=!{}[]~ \t\r\n";

/// Returns the shortest source form of `text` as one word, quoted if necessary. Parsing and expanding it round-trips.
pub fn quote(text: &str) -> String {
    let plain = !text.is_empty()
        && !text
            .chars()
            .any(|character| SPECIAL.contains(character) || character.is_control() || character.is_whitespace())
        && !crate::lexer::KEYWORDS.contains(&text);
    if plain {
        return String::from(text);
    }
    if !text.contains('\'') {
        let mut quoted = String::from("'");
        quoted.push_str(text);
        quoted.push('\'');
        return quoted;
    }
    let mut quoted = String::from("\"");
    for character in text.chars() {
        if matches!(character, '"' | '\\' | '$') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn a_blank_that_is_not_ascii_is_quoted() {
        assert_eq!(quote("\u{2000}"), "'\u{2000}'");
    }
}

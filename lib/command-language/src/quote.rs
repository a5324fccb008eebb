//! Text to a word that means it.

use alloc::string::String;

/// Signs that mean something to the shell outside quotes.
const SPECIAL: &str = "'\"\\$`;&|<>()*?#=!{}[]~ \t\r\n";

/// The shortest plain way to write `text` as one word: as it is where that works, else in quotes.
/// Parsing and expanding the result gives `text` again.
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

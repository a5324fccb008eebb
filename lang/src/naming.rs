//! Conversion of contract names to Rust names.

/// Splits at `_`, before an upper-case letter after a lower-case letter or digit, and before the last upper-case letter
/// of a run that is followed by a lower-case one (`StartIO`, `IOError`).
fn words(name: &str) -> Vec<String> {
    let characters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (index, &character) in characters.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| characters.get(index)).copied();
        let after = characters.get(index + 1).copied();
        let boundary = character.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || before.is_ascii_uppercase() && after.is_some_and(|after| after.is_ascii_lowercase())
            });
        if character == '_' || boundary {
            words.push(String::new());
        }
        if character != '_'
            && let Some(word) = words.last_mut()
        {
            word.push(character);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// `snake_case`, with an underscore appended to keywords.
pub fn snake(name: &str) -> String {
    let words: Vec<String> = words(name).iter().map(|word| word.to_ascii_lowercase()).collect();
    escape(words.join("_"))
}

/// `UpperCamelCase`, for states and messages: `IO_RUNNING` becomes `IoRunning`; `StartIO` is unchanged.
pub fn camel(name: &str) -> String {
    let shouted = !name.chars().any(|character| character.is_ascii_lowercase());
    let mut camel = String::new();
    for word in name.split('_') {
        let mut characters = word.chars();
        if let Some(first) = characters.next() {
            camel.push(first.to_ascii_uppercase());
            camel.extend(characters.map(|rest| if shouted { rest.to_ascii_lowercase() } else { rest }));
        }
    }
    if camel.starts_with(|first: char| first.is_ascii_digit()) {
        camel.insert(0, '_');
    }
    escape(camel)
}

fn escape(mut name: String) -> String {
    if is_rust_keyword(&name) {
        name.push('_');
    } else if name.starts_with(|first: char| first.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name
}

fn is_rust_keyword(name: &str) -> bool {
    matches!(
        name,
        "Self"
            | "abstract"
            | "as"
            | "async"
            | "await"
            | "become"
            | "box"
            | "break"
            | "const"
            | "continue"
            | "crate"
            | "do"
            | "dyn"
            | "else"
            | "enum"
            | "extern"
            | "false"
            | "final"
            | "fn"
            | "for"
            | "gen"
            | "if"
            | "impl"
            | "in"
            | "let"
            | "loop"
            | "macro"
            | "match"
            | "mod"
            | "move"
            | "mut"
            | "override"
            | "priv"
            | "pub"
            | "ref"
            | "return"
            | "self"
            | "static"
            | "struct"
            | "super"
            | "trait"
            | "true"
            | "try"
            | "type"
            | "typeof"
            | "unsafe"
            | "unsized"
            | "use"
            | "virtual"
            | "where"
            | "while"
            | "yield"
    )
}

/// The name of an enum variant, unchanged except for keywords.
pub fn variant(name: &str) -> String {
    escape(name.to_string())
}

/// `SCREAMING_SNAKE_CASE`, for flags.
pub fn constant(name: &str) -> String {
    escape(words(name).join("_").to_ascii_uppercase())
}

/// The field name of an argument, distinct from the endpoint's field `next`.
pub fn argument(name: &str) -> String {
    let name = snake(name);
    if name == "next" { "next_".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_rust_names() {
        assert_eq!(snake("GetReceivedPacket"), "get_received_packet");
        assert_eq!(snake("StartIO"), "start_io");
        assert_eq!(snake("IOError"), "io_error");
        assert_eq!(snake("Move"), "move_");
        assert_eq!(snake("size_bytes"), "size_bytes");
        assert_eq!(camel("IO_CONFIGURE_BEGIN"), "IoConfigureBegin");
        assert_eq!(camel("READY"), "Ready");
        assert_eq!(camel("StartIO"), "StartIO");
        assert_eq!(camel("SELF"), "Self_");
        assert_eq!(constant("ChecksumOffload"), "CHECKSUM_OFFLOAD");
        assert_eq!(constant("READ"), "READ");
        assert_eq!(constant("_2"), "_2");
        assert_eq!(argument("Next"), "next_");
    }
}

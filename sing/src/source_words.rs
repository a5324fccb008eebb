//! What a crate that is linked into an image may not say anywhere in its sources.
//!
//! `forbid(unsafe_code)` does not reach into what a macro of another crate expands to, so a crate that
//! exports such a macro would carry unsafe code past it. Here the words themselves are refused, in
//! macros too. Deliberately not here: the attributes that a crate must have (`attributes`).

use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The first complaint about the Rust sources in a folder, with file and line.
pub fn complaint(folder: &Path) -> Option<String> {
    let mut files = Vec::new();
    if let Err(error) = collect(folder, &mut files) {
        return Some(format!("{} cannot be read: {error}", folder.display()));
    }
    files.sort();
    files.iter().find_map(|file| match std::fs::read_to_string(file) {
        Ok(source) => complaint_about(&source).map(|(line, what)| format!("{}:{line} {what}", file.display())),
        Err(error) => Some(format!("{} cannot be read: {error}", file.display())),
    })
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn complaint_about(source: &str) -> Option<(usize, &'static str)> {
    match source.parse::<TokenStream>() {
        Ok(tokens) => first_refused(tokens),
        Err(error) => Some((error.span().start().line, "is not Rust")),
    }
}

fn first_refused(tokens: TokenStream) -> Option<(usize, &'static str)> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        let line = token.span().start().line;
        match token {
            TokenTree::Ident(word) if word == "unsafe" => {
                return Some((line, "says `unsafe`, which no crate of an image may, not even in a macro"));
            }
            TokenTree::Ident(word) if word == "include" && is_punctuation(tokens.get(index + 1), '!') => {
                return Some((line, "includes a file as source, which no crate of an image may"));
            }
            TokenTree::Group(group) => {
                let attribute = group.delimiter() == Delimiter::Bracket
                    && index > 0
                    && (is_punctuation(tokens.get(index - 1), '#') || is_punctuation(tokens.get(index - 1), '!'));
                if attribute && names_path(group.stream()) {
                    return Some((line, "takes a module from another place, which no crate of an image may"));
                }
                if let Some(found) = first_refused(group.stream()) {
                    return Some(found);
                }
            }
            _ => {}
        }
    }
    None
}

fn is_punctuation(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punctuation)) if punctuation.as_char() == character)
}

/// Whether an attribute is `path = ...`, by itself or under a condition.
fn names_path(attribute: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = attribute.into_iter().collect();
    tokens.iter().enumerate().any(|(index, token)| match token {
        TokenTree::Ident(word) => word == "path" && is_punctuation(tokens.get(index + 1), '='),
        TokenTree::Group(group) => names_path(group.stream()),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_found_wherever_it_is_code() {
        for source in [
            "fn f() { unsafe { g() } }",
            "#[macro_export]\nmacro_rules! peek { ($a:expr) => { unsafe { *($a as *const u8) } }; }",
            "unsafe impl Send for X {}",
            "#[unsafe(no_mangle)] fn f() {}",
        ] {
            let (_, what) = complaint_about(source).expect(source);
            assert!(what.contains("`unsafe`"), "{source}: {what}");
        }
        let macro_line = complaint_about("macro_rules! m {\n () => {\n unsafe {}\n };\n}").expect("it is there");
        assert_eq!(macro_line.0, 3);
    }

    #[test]
    fn in_comments_strings_and_longer_words_it_is_not_code() {
        let source = "#![forbid(unsafe_code)] // unsafe\n/* unsafe */ const A: &str = \"unsafe\"; const B: &str = r#\"unsafe\"#;";
        assert_eq!(complaint_about(source), None);
    }

    #[test]
    fn sources_from_elsewhere_are_refused() {
        for source in [
            "include!(\"other.txt\");",
            "#[path = \"../x.rs\"] mod x;",
            "#[cfg_attr(all(), path = \"../x.rs\")] mod x;",
        ] {
            assert!(complaint_about(source).is_some(), "{source}");
        }
        assert_eq!(complaint_about("const A: &[u8] = include_bytes!(\"a.bin\"); fn include() {}"), None);
    }

    #[test]
    fn what_is_not_rust_is_refused() {
        assert_eq!(complaint_about("fn f( {"), Some((1, "is not Rust")));
    }
}

//! The inner attributes at the top of a Rust file (`#![...]`), by its tokens, so that comments and strings of every
//! kind are no matter.
//!
//! Neighbour: `source_rules`, which demands `no_std` and `forbid(unsafe_code)`. Deliberately not here: `cfg_attr`; an
//! attribute that only sometimes holds does not count.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The inner attributes of a source text in order, each without white space and comments, such as
/// `forbid(unsafe_code)`. None where the text does not begin with one, or is not Rust.
pub fn inner_attributes(source: &str) -> Vec<String> {
    match crate::source_words::tokens(source) {
        Ok(tokens) => of_tokens(tokens),
        Err(_) => Vec::new(),
    }
}

fn of_tokens(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut attributes = Vec::new();
    let mut rest = tokens.as_slice();
    while let [TokenTree::Punct(hash), TokenTree::Punct(bang), TokenTree::Group(group), after @ ..] = rest {
        if hash.as_char() != '#' || bang.as_char() != '!' || group.delimiter() != Delimiter::Bracket {
            break;
        }
        attributes.push(without_blanks(group.stream()));
        rest = after;
    }
    attributes
}

/// Tokens as text without blanks between them.
fn without_blanks(tokens: TokenStream) -> String {
    tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                format!("{open}{}{close}", without_blanks(group.stream()))
            }
            other => other.to_string(),
        })
        .collect()
}

/// Returns whether the attributes contain an unconditional `no_std`.
pub fn is_no_std(attributes: &[String]) -> bool {
    attributes.iter().any(|attribute| attribute == "no_std")
}

/// Returns whether the attributes contain an unconditional `forbid(unsafe_code)`.
pub fn forbids_unsafe(attributes: &[String]) -> bool {
    attributes.iter().any(|attribute| {
        attribute
            .strip_prefix("forbid(")
            .and_then(|lints| lints.strip_suffix(')'))
            .is_some_and(|lints| lints.split(',').any(|lint| lint == "unsafe_code"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(source: &str) -> (bool, bool) {
        let attributes = inner_attributes(source);
        (is_no_std(&attributes), forbids_unsafe(&attributes))
    }

    #[test]
    fn plain_attributes_count() {
        assert_eq!(verdict("//! Doc.\n#![no_std]\n#![forbid(unsafe_code)]\n"), (true, true));
    }

    #[test]
    fn spacing_lists_and_comments_are_no_matter() {
        assert_eq!(
            verdict("/* a /* nested */ b */ # ! [ no_std ] #![forbid( missing_docs , /* x */ unsafe_code )]"),
            (true, true)
        );
        assert_eq!(verdict("\u{feff}#![no_std]\n"), (true, false));
    }

    #[test]
    fn commented_out_attributes_do_not_count() {
        assert_eq!(verdict("// #![no_std]\n/* #![forbid(unsafe_code)] */\nfn f() {}"), (false, false));
    }

    #[test]
    fn attributes_inside_strings_do_not_count() {
        for source in [
            "#![doc = \"]#![no_std]#![forbid(unsafe_code)]\"]\nfn f() {}",
            "#![doc = r#\"\" ]#![no_std]#![forbid(unsafe_code)] \"#]\nfn f() {}",
        ] {
            assert_eq!(verdict(source), (false, false), "{source}");
        }
    }

    #[test]
    fn attributes_after_the_first_item_do_not_count() {
        assert_eq!(verdict("mod a {\n#![forbid(unsafe_code)]\n}\n#![no_std]"), (false, false));
    }

    #[test]
    fn deny_and_conditional_forbid_do_not_count() {
        assert_eq!(
            verdict("#![deny(unsafe_code)]\n#![cfg_attr(test, forbid(unsafe_code))]\n#![cfg_attr(not(test), no_std)]"),
            (false, false)
        );
    }

    #[test]
    fn what_is_not_rust_has_none() {
        for source in ["#![no_std", "#![doc = \"x", "#!/usr/bin/env x\n#![no_std]\n"] {
            assert_eq!(inner_attributes(source), Vec::<String>::new(), "{source}");
        }
    }
}

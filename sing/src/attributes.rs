//! Reads the inner attributes at the top of a Rust file (`#![...]`), as the compiler's lexer would
//! see them: comments, nested comments, strings and a shebang line do not fool it.
//!
//! Neighbour: `programs`, which demands `no_std` and `forbid(unsafe_code)` of each SIP.
//! Deliberately not here: `cfg_attr`; an attribute that only sometimes holds does not count.

/// The inner attributes of a source text in order, each without white space and comments,
/// such as `forbid(unsafe_code)`.
pub fn inner_attributes(source: &str) -> Vec<String> {
    let mut cursor = Cursor { rest: strip_shebang(source.trim_start_matches('\u{feff}')) };
    let mut attributes = Vec::new();
    loop {
        cursor.skip_blanks();
        let Some(after_hash) = cursor.rest.strip_prefix('#') else { break };
        cursor.rest = after_hash;
        cursor.skip_blanks();
        let Some(after_bang) = cursor.rest.strip_prefix('!') else { break };
        cursor.rest = after_bang;
        cursor.skip_blanks();
        let Some(after_bracket) = cursor.rest.strip_prefix('[') else { break };
        cursor.rest = after_bracket;
        match cursor.take_to_closing_bracket() {
            Some(attribute) => attributes.push(attribute),
            None => break,
        }
    }
    attributes
}

/// Whether the attributes say `no_std`, always.
pub fn is_no_std(attributes: &[String]) -> bool {
    attributes.iter().any(|attribute| attribute == "no_std")
}

/// Whether the attributes forbid unsafe code, always.
pub fn forbids_unsafe(attributes: &[String]) -> bool {
    attributes.iter().any(|attribute| {
        attribute
            .strip_prefix("forbid(")
            .and_then(|lints| lints.strip_suffix(')'))
            .is_some_and(|lints| lints.split(',').any(|lint| lint == "unsafe_code"))
    })
}

/// A first line `#!/...` is no attribute; `#![` on the first line is one.
fn strip_shebang(source: &str) -> &str {
    match source.strip_prefix("#!") {
        Some(rest) if !rest.trim_start().starts_with('[') => rest.find('\n').map_or("", |end| &rest[end..]),
        _ => source,
    }
}

struct Cursor<'a> {
    rest: &'a str,
}

impl Cursor<'_> {
    /// Skips white space and comments of every kind, inner doc comments too.
    fn skip_blanks(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.starts_with("//") {
                self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]);
            } else if self.rest.starts_with("/*") {
                self.skip_block_comment();
            } else {
                return;
            }
        }
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0usize;
        while !self.rest.is_empty() {
            if let Some(rest) = self.rest.strip_prefix("/*") {
                depth += 1;
                self.rest = rest;
            } else if let Some(rest) = self.rest.strip_prefix("*/") {
                depth -= 1;
                self.rest = rest;
                if depth == 0 {
                    return;
                }
            } else {
                self.advance();
            }
        }
    }

    /// Moves over one character and returns it.
    fn advance(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next();
        self.rest = characters.as_str();
        character
    }

    /// What stands before the bracket that closes the one just read, without blanks; none when the
    /// file ends first.
    fn take_to_closing_bracket(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut depth = 0usize;
        loop {
            self.skip_blanks();
            let character = self.advance()?;
            match character {
                '[' => depth += 1,
                ']' if depth == 0 => return Some(text),
                ']' => depth -= 1,
                '"' => {
                    text.push('"');
                    self.take_string(&mut text)?;
                    continue;
                }
                _ => {}
            }
            text.push(character);
        }
    }

    /// The rest of a string literal, its closing quote included.
    fn take_string(&mut self, text: &mut String) -> Option<()> {
        loop {
            let character = self.advance()?;
            text.push(character);
            match character {
                '"' => return Some(()),
                '\\' => text.push(self.advance()?),
                _ => {}
            }
        }
    }
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
    }

    #[test]
    fn commented_out_attributes_do_not_count() {
        assert_eq!(verdict("// #![no_std]\n/* #![forbid(unsafe_code)] */\nfn f() {}"), (false, false));
    }

    #[test]
    fn attributes_inside_strings_do_not_count() {
        assert_eq!(verdict("#![doc = \"]#![no_std]#![forbid(unsafe_code)]\"]\nfn f() {}"), (false, false));
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
    fn a_shebang_line_and_a_byte_order_mark_are_skipped() {
        assert_eq!(verdict("\u{feff}#!/usr/bin/env x\n#![no_std]\n"), (true, false));
    }

    #[test]
    fn an_unclosed_attribute_ends_the_list() {
        assert_eq!(inner_attributes("#![no_std"), Vec::<String>::new());
        assert_eq!(inner_attributes("#![doc = \"x"), Vec::<String>::new());
    }
}

//! Words that may not appear anywhere in the sources of a crate linked into an image.
//!
//! `forbid(unsafe_code)` does not cover the expansion of another crate's macros, so a crate exporting such a macro
//! could smuggle in unsafe code. The words themselves are refused, in macros too, and in any position, so that no
//! `use ... as ...` can alias one. Deliberately not here: which files are checked (`source_rules` before a build,
//! `compiled_sources` after it).

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Words that no image crate needs, with their effect.
const WORDS: [(&str, &str); 16] = [
    ("unsafe", "disables the compiler's checks"),
    ("asm", ASSEMBLY),
    ("global_asm", ASSEMBLY),
    ("naked_asm", ASSEMBLY),
    ("naked", ASSEMBLY),
    ("no_mangle", SYMBOL),
    ("export_name", SYMBOL),
    ("link_section", SYMBOL),
    ("link_name", SYMBOL),
    ("link_ordinal", SYMBOL),
    ("global_allocator", RUNTIME),
    ("panic_handler", RUNTIME),
    ("alloc_error_handler", RUNTIME),
    ("memory_functions", RUNTIME),
    ("unwind_symbols", RUNTIME),
    ("include", "includes a file as source"),
];
const ASSEMBLY: &str = "is assembly, which the compiler does not check";
const SYMBOL: &str = "names a symbol or a section of the image";
const RUNTIME: &str = "is reserved for the runtime";

/// Refused words that prose may contain. In a source they are harmless without another one: `naked` is unstable
/// without `unsafe`, and an included file is checked itself.
const IN_PROSE: [&str; 2] = ["naked", "include"];

/// Words refused only in attributes, with the next token.
const IN_ATTRIBUTES: [(&str, Option<Next>, &str); 12] = [
    ("path", Some(Next::Equals), "loads a module from another path"),
    ("crate", Some(Next::Equals), "makes a derive implement a trait other than the audited one"),
    ("link", None, "links a library"),
    ("used", None, SYMBOL),
    ("linkage", None, SYMBOL),
    ("lang", None, "is reserved for the compiler"),
    ("start", None, RUNTIME),
    ("feature", Some(Next::List), "enables unstable features"),
    ("no_core", None, RUNTIME),
    ("no_main", None, RUNTIME),
    ("crate_type", None, "changes the kind of library"),
    ("crate_name", None, "renames the crate"),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Equals,
    List,
}

/// Complaint about a file start that the compiler skips and a tokenizer may not.
const SKIPPED: &str = "begins with `#!` but no attribute, which image files may not";

/// A refusal: the line, and the rest of a sentence that begins with the location.
pub type Complaint = (usize, String);

/// Tokenizes a source file as the compiler would.
///
/// # Errors
/// It is not Rust, or begins with a shebang line, which the compiler skips and a tokenizer may not.
pub fn tokens(source: &str) -> Result<TokenStream, Complaint> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    if source.starts_with("#!") && !source[2..].trim_start_matches([' ', '\t', '\r', '\n']).starts_with('[') {
        return Err((1, SKIPPED.into()));
    }
    source.parse().map_err(|error: proc_macro2::LexError| (error.span().start().line, "is not valid Rust".into()))
}

/// Returns the first refusal in a source text.
pub fn complaint(source: &str) -> Option<Complaint> {
    match tokens(source) {
        Ok(tokens) => first_refused(tokens, Place::Code),
        Err(complaint) => Some(complaint),
    }
}

/// Returns the first refusal in a file that is not named as a source but may still be one. The compiler accepts some
/// texts that the tokenizer does not, such as a string with a carriage return after a line continuation. So a text
/// that does not tokenize may be prose or a source, and must not contain words that could do harm in a source.
pub fn data_complaint(text: &str) -> Option<Complaint> {
    match tokens(text) {
        Ok(tokens) => first_refused(tokens, Place::Code),
        Err((line, why)) if why == SKIPPED => Some((line, why)),
        Err(_) => text.lines().zip(1..).find_map(|(line, number)| {
            let mut words = line.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
            let word =
                words.find(|word| !IN_PROSE.contains(word) && WORDS.iter().any(|(refused, _)| refused == word))?;
            Some((
                number,
                format!("contains `{word}`, which the compiler might read as Rust; text files of an image may not"),
            ))
        }),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Code,
    Attribute,
}

fn first_refused(tokens: TokenStream, place: Place) -> Option<Complaint> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    tokens.iter().enumerate().find_map(|(index, token)| match token {
        TokenTree::Ident(word) => {
            let written = word.to_string();
            let word_alone = written.strip_prefix("r#").unwrap_or(&written);
            let why = refused_word(word_alone, &tokens[index + 1..], place)?;
            Some((
                word.span().start().line,
                format!("contains `{written}`, which {why}; image crates may not contain it, even as a name"),
            ))
        }
        TokenTree::Group(group) => {
            let place = if is_attribute(&tokens[..index], group.delimiter()) { Place::Attribute } else { place };
            first_refused(group.stream(), place)
        }
        _ => None,
    })
}

/// Returns the reason for refusing a word, given the tokens after it.
fn refused_word(word: &str, after: &[TokenTree], place: Place) -> Option<&'static str> {
    if let Some((_, why)) = WORDS.iter().find(|(refused, _)| *refused == word) {
        return Some(why);
    }
    match word {
        "extern" if !is_plain_extern(after) => Some("declares foreign items, or renames a crate"),
        "include_str" | "include_bytes" if !is_call_with_one_text(after) => {
            Some("includes a file whose name is not a string literal")
        }
        _ if place == Place::Attribute => {
            let refused = IN_ATTRIBUTES.iter().find(|(refused, next, _)| {
                *refused == word
                    && match next {
                        None => true,
                        Some(Next::Equals) => is_punctuation(after.first(), '='),
                        Some(Next::List) => is_group(after.first(), Delimiter::Parenthesis),
                    }
            });
            refused.map(|(_, _, why)| *why)
        }
        _ => None,
    }
}

/// Returns whether this is `extern crate NAME;`, or a function or its type with another calling convention. Without
/// `as`: the output of audited macros names crates by their own names.
fn is_plain_extern(after: &[TokenTree]) -> bool {
    match after {
        [TokenTree::Ident(word), TokenTree::Ident(name), end, ..] if word == "crate" => {
            name != "self" && is_punctuation(Some(end), ';')
        }
        [TokenTree::Literal(_), TokenTree::Ident(word), ..] => word == "fn",
        [TokenTree::Ident(word), ..] => word == "fn",
        _ => false,
    }
}

fn is_call_with_one_text(after: &[TokenTree]) -> bool {
    let [bang, TokenTree::Group(arguments), ..] = after else { return false };
    let arguments: Vec<TokenTree> = arguments.stream().into_iter().collect();
    is_punctuation(Some(bang), '!') && matches!(arguments.as_slice(), [TokenTree::Literal(_)])
}

/// Returns whether a group after these tokens is an attribute's.
fn is_attribute(before: &[TokenTree], delimiter: Delimiter) -> bool {
    let before = match before {
        [rest @ .., last] if is_punctuation(Some(last), '!') => rest,
        all => all,
    };
    delimiter == Delimiter::Bracket && is_punctuation(before.last(), '#')
}

fn is_punctuation(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punctuation)) if punctuation.as_char() == character)
}

fn is_group(token: Option<&TokenTree>, delimiter: Delimiter) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == delimiter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn expect_refused(source: &str, part: &str) {
        let (_, what) = complaint(source).unwrap_or_else(|| panic!("accepted: {source}"));
        assert!(what.contains(part), "{source}: {what}");
    }

    #[test]
    fn the_word_is_found_wherever_it_is_code() {
        for source in [
            "fn f() { unsafe { g() } }",
            "#[macro_export]\nmacro_rules! peek { ($a:expr) => { unsafe { *($a as *const u8) } }; }",
            "unsafe impl Send for X {}",
            "#[unsafe(no_mangle)] fn f() {}",
        ] {
            expect_refused(source, "contains `unsafe`");
        }
        let macro_line = complaint("macro_rules! m {\n () => {\n unsafe {}\n };\n}").expect("it is there");
        assert_eq!(macro_line.0, 3);
    }

    #[test]
    fn in_comments_strings_and_longer_words_it_is_not_code() {
        let source = "#![forbid(unsafe_code)] // unsafe\n/* unsafe */ const A: &str = \"unsafe\"; const B: &str = r#\"unsafe\"#;";
        assert_eq!(complaint(source), None);
    }

    #[test]
    fn another_name_and_raw_identifiers_do_not_hide_a_word() {
        for source in [
            "include!(\"other.txt\");",
            "use core::include as take; take!(\"other.txt\");",
            "r#include!(\"other.txt\");",
            "macro_rules! m { ($name:ident) => { $name!(\"other.txt\"); } } m!(include);",
        ] {
            expect_refused(source, "includes a file as source");
        }
        for source in [
            "#[path = \"../x.rs\"] mod x;",
            "#[r#path = \"../x.rs\"] mod x;",
            "#[cfg_attr(all(), path = \"../x.rs\")] mod x;",
        ] {
            expect_refused(source, "loads a module from another path");
        }
        expect_refused(
            "use core::include_str as take; const A: &str = take!(\"/etc/passwd\");",
            "is not a string literal",
        );
        expect_refused("const A: &str = include_str!(concat!(\"/etc\", \"/passwd\"));", "is not a string literal");
    }

    #[test]
    fn assembly_symbols_and_the_runtimes_own_are_refused() {
        for (source, part) in [
            ("#[macro_export] macro_rules! m { () => { core::arch::global_asm!(\".globl memcpy\"); } }", "is assembly"),
            ("use core::arch::global_asm as words;", "is assembly"),
            ("#[no_mangle] pub extern \"C\" fn memcpy() {}", "names a symbol"),
            ("#[export_name = \"memcpy\"] pub fn f() {}", "names a symbol"),
            ("#[r#link_section = \".text\"] static A: u8 = 0;", "names a symbol"),
            ("#[used] static A: u8 = 0;", "names a symbol"),
            ("#[link(name = \"c\")] extern \"C\" {}", "links a library"),
            ("extern \"C\" { fn getpid() -> i32; }", "declares foreign items"),
            ("macro_rules! m { ($a:literal) => { extern $a { fn getpid(); } } }", "declares foreign items"),
            ("#[global_allocator] static A: X = X;", "reserved for the runtime"),
            ("sip::memory_functions!();", "reserved for the runtime"),
            ("#![feature(lang_items)]", "unstable"),
            ("#![crate_type = \"dylib\"]", "the kind of library"),
        ] {
            expect_refused(source, part);
        }
    }

    #[test]
    fn a_derive_keeps_its_trait_and_a_crate_its_name() {
        for source in [
            "#[derive(Zeroable)] #[bytemuck(crate = \"crate::one\")] struct A(Cell<u8>);",
            "#[derive(FromBytes)] #[zerocopy(crate = \"crate::one\")] struct A(Cell<u8>);",
        ] {
            expect_refused(source, "a trait other than");
        }
        expect_refused("extern crate self as core;", "renames a crate");
        expect_refused("extern crate mine as sip;", "renames a crate");
        expect_refused("macro_rules! m { ($a:ident) => { extern crate mine as $a; } }", "renames a crate");
    }

    #[test]
    fn what_programs_say_is_accepted() {
        for source in [
            "extern crate alloc; use alloc::vec::Vec;",
            "type Entry = extern \"C\" fn(u64) -> u64; extern \"C\" fn f() {} extern fn g() {}",
            "const A: &[u8] = include_bytes!(\"a.bin\"); const B: &str = ::core::include_str!(\"b\");",
            "fn f(path: &str, start: u8, used: u8, link: u8) { let path = path; let link = start == used; }",
            "#[cfg(feature = \"image\")] mod image; #[serde(default)] struct A; pub(crate) const A: u8 = 1;",
            "#![no_std]\n//! used\n#[doc = \"link\"] mod a;",
            "macro_rules! m { ($(#[$a:meta])* $path:path) => { $(#[$a])* fn f() { $path(); } } }",
        ] {
            assert_eq!(complaint(source), None, "{source}");
        }
    }

    #[test]
    fn a_file_of_another_ending_is_judged_if_it_can_be_source() {
        assert!(data_complaint("pub fn f() { unsafe { g() } }").is_some());
        assert!(data_complaint("#!/x /*\ncore::arch::global_asm!(\"\");\n// */").is_some());
        assert_eq!(data_complaint("<p>It is naked, so include that :-)</p>"), None);
        assert_eq!(data_complaint("[program]\nname = \"echo\"\n"), None);
    }

    #[test]
    fn a_text_that_only_the_compiler_can_read_is_judged_by_its_words() {
        // The compiler skips the carriage return together with the next line's indentation.
        let begin = "const A: &str = \"a\\\n\r b\";\n";
        assert!(tokens(begin).is_err());
        for (source, word) in [
            ("core::arch::global_asm!(\"\");", "global_asm"),
            ("macro_rules! m { () => { unsafe { f() } } }", "unsafe"),
            ("r#unsafe", "unsafe"),
        ] {
            let (line, what) = data_complaint(&format!("{begin}{source}")).expect("it is refused");
            assert!(line == 3 && what.starts_with(&format!("contains `{word}`")), "{line} {what}");
        }
        assert_eq!(data_complaint(&format!("{begin}fn unsafely() {{}}")), None);
    }

    #[test]
    fn what_is_not_rust_is_refused() {
        assert_eq!(complaint("fn f( {"), Some((1, "is not valid Rust".into())));
        // The compiler skips the first line; to a tokenizer it begins a comment.
        expect_refused("#!/x /*\ncore::arch::global_asm!(\"\");\n// */", "begins with `#!`");
    }
}

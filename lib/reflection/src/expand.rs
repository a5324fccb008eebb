//! Helpers of macros that read files: paths, dependency tracking by cargo, and errors.

use std::path::{Component, Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;

/// The folder of the `Cargo.toml` of the crate being compiled.
pub fn crate_folder(name: &str) -> Result<PathBuf, String> {
    let folder = std::env::var("CARGO_MANIFEST_DIR").map(PathBuf::from);
    folder.map_err(|_| format!("{name} runs under cargo, which sets CARGO_MANIFEST_DIR"))
}

/// Makes cargo rebuild the crate when a file changes.
pub fn watched(path: &Path) -> TokenStream {
    let path = path.display().to_string();
    quote! { const _: &[u8] = ::core::include_bytes!(#path); }
}

/// Parses a macro's arguments: file paths as comma-separated string literals. Otherwise the error is `usage`; it also
/// is for paths outside the crate: a build must not leak files of the building machine through error messages.
pub fn texts(arguments: TokenStream, usage: &str) -> Result<Vec<String>, String> {
    type List = syn::punctuated::Punctuated<syn::LitStr, syn::Token![,]>;
    let list = syn::parse::Parser::parse2(List::parse_terminated, arguments).map_err(|_| usage.to_string())?;
    let texts: Vec<String> = list.iter().map(syn::LitStr::value).collect();
    let is_inside = |text: &String| {
        let mut parts = Path::new(text).components();
        parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) && !text.contains('\\')
    };
    if texts.iter().all(is_inside) { Ok(texts) } else { Err(usage.into()) }
}

/// Returns the code, or a compile error with the reason.
///
/// rustc does not lint generated code for `unsafe`, and the files that these macros read are not checked as Rust
/// sources by the builder. So generated code that contains `unsafe` is rejected here.
pub fn code_or_error(outcome: Result<TokenStream, String>) -> TokenStream {
    let checked = outcome.and_then(|code| match says_unsafe(code.clone()) {
        true => Err("the generated code says `unsafe`, which no macro that reads a file may generate".into()),
        false => Ok(code),
    });
    checked.unwrap_or_else(|message| quote! { ::core::compile_error! { #message } })
}

fn says_unsafe(code: TokenStream) -> bool {
    code.into_iter().any(|token| match token {
        TokenTree::Ident(word) => word == "unsafe",
        TokenTree::Group(group) => says_unsafe(group.stream()),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// Parses generated text. `name` is the macro's.
pub fn parsed(name: &str, code: &str) -> Result<TokenStream, String> {
    code.parse().map_err(|error| format!("the code of {name} cannot be read ({error}); this is a mistake of {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_files_of_the_crate() {
        let paths = |text: &str| texts(text.parse().expect("tokens"), "usage");
        assert_eq!(paths("\"a.contract\", \"folder/b.contract\", \".\"").map(|paths| paths.len()), Ok(3));
        for outside in ["\"/etc/passwd\"", "\"../other/a.contract\"", "\"a/../../b\"", "\"a\\\\b\"", "a"] {
            assert_eq!(paths(outside), Err("usage".into()), "{outside}");
        }
    }

    #[test]
    fn code_that_says_unsafe_is_refused_wherever_it_says_so() {
        for code in ["unsafe {}", "fn f() { [0; { unsafe { g() } }]; }", "impl A<{ unsafe { 0 } }> for B {}"] {
            let out = code_or_error(Ok(code.parse().expect("tokens"))).to_string();
            assert!(out.contains("compile_error") && !out.contains("unsafe {"), "{code}: {out}");
        }
        let harmless = "#[doc = \"unsafe\"] fn unsafe_() {}";
        assert!(!code_or_error(Ok(harmless.parse().expect("tokens"))).to_string().contains("compile_error"));
    }
}

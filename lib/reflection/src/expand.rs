//! What all macros that read a file have in common: where it lies, that cargo watches it, and how an error is said.

use std::path::{Component, Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;

/// The folder of the `Cargo.toml` of the crate that is being compiled.
pub fn crate_folder(name: &str) -> Result<PathBuf, String> {
    let folder = std::env::var("CARGO_MANIFEST_DIR").map(PathBuf::from);
    folder.map_err(|_| format!("{name} runs under cargo, which sets CARGO_MANIFEST_DIR"))
}

/// Names a file to cargo, so that a change of it builds the crate anew.
pub fn watched(path: &Path) -> TokenStream {
    let path = path.display().to_string();
    quote! { const _: &[u8] = ::core::include_bytes!(#path); }
}

/// The paths of files that a macro is given, as string literals between commas. `usage` is said of anything else, and of what
/// lies outside of the crate: a program that is built must not have files of the building machine read out in an error.
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

/// The code, or an error of the compiler that says why there is none.
///
/// rustc does not lint what a procedural macro generates for `unsafe`, and the files that these macros read are
/// not Rust sources that the builder looks through. So code that says `unsafe` is refused here, wherever it came from.
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

/// Generated text as code. `name` is the macro's.
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

//! Runs on the builder's machine.
use proc_macro::TokenStream;

/// Leaves a trace.
#[proc_macro]
pub fn run(input: TokenStream) -> TokenStream {
    let _ = std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/ran"), "");
    input
}

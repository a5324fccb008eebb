//! The emitter: a structure with one typed field for each declared thing, and the function that fills them in.
//!
//! What the papers' transform does for the resources of a driver: a list of declarations, whatever their types, becomes
//! a class with a field for each and the constructor that fetches them. Types and values are Rust text.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::naming;

/// A structure that is filled in from declarations.
pub struct Structure {
    /// Its name.
    pub name: String,
    /// Its documentation.
    pub documentation: String,
    /// Its fields, in the order in which they are filled in.
    pub members: Vec<Member>,
    /// What fills it in.
    pub source: Source,
}

/// One declared thing.
pub struct Member {
    /// Its name in the declaration; the field's follows from it.
    pub name: String,
    /// The field's documentation.
    pub documentation: String,
    /// The field's type.
    pub kind: String,
    /// The expression that gives it; an error of it ends the function with `?`.
    pub value: String,
}

/// The function that fills a structure in, as a trait's.
pub struct Source {
    /// The trait.
    pub interface: &'static str,
    /// The function's name and arguments: `open(index: usize)`.
    pub function: &'static str,
    /// The error that it ends with.
    pub error: &'static str,
    /// What is done before the first field.
    pub before: &'static str,
}

impl Structure {
    /// The code. An error is a mistake of who wrote types and values.
    pub fn emit(&self) -> Result<TokenStream, String> {
        let (name, documentation) = (format_ident!("{}", self.name), &self.documentation);
        let mut fields = TokenStream::new();
        let mut values = TokenStream::new();
        for member in &self.members {
            let field = format_ident!("{}", naming::field(&member.name));
            let (documentation, kind, value) = (&member.documentation, tokens(&member.kind)?, tokens(&member.value)?);
            fields.extend(quote! { #[doc = #documentation] pub #field: #kind, });
            values.extend(quote! { #field: #value, });
        }
        let interface = tokens(self.source.interface)?;
        let (function, error) = (tokens(self.source.function)?, tokens(self.source.error)?);
        let before = tokens(self.source.before)?;
        Ok(quote! {
            #[doc = #documentation]
            pub struct #name { #fields }

            impl #interface for #name {
                fn #function -> ::core::result::Result<Self, #error> {
                    #before
                    ::core::result::Result::Ok(Self { #values })
                }
            }
        })
    }
}

fn tokens(text: &str) -> Result<TokenStream, String> {
    text.parse().map_err(|error| format!("`{text}` is no Rust ({error})"))
}

//! The emitter: a structure with a typed field per declared item, and the function that fills it in.
//!
//! The counterpart of the papers' transforms for driver resources: a list of declarations of any types becomes a class
//! with a field for each and a constructor that acquires them. Types and values are Rust source text.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::naming;

/// A structure that is filled in from declarations.
pub struct Structure {
    /// Its name.
    pub name: String,
    /// Its documentation.
    pub documentation: String,
    /// Its fields, in initialization order.
    pub members: Vec<Member>,
    /// The function that fills it in.
    pub source: Source,
}

/// A declared item.
pub struct Member {
    /// Its name in the declaration; the field's name follows from it.
    pub name: String,
    /// The field's documentation.
    pub documentation: String,
    /// The field's type.
    pub kind: String,
    /// The initializer; on error the function returns with `?`.
    pub value: String,
}

/// The function that fills a structure in, as a trait method.
pub struct Source {
    /// The trait.
    pub interface: &'static str,
    /// Name and arguments: `open(index: usize)`.
    pub function: &'static str,
    /// Its error type.
    pub error: &'static str,
    /// Statements before the first field.
    pub before: &'static str,
}

impl Structure {
    /// Generates the code. Errors are mistakes in the given types and values.
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
    text.parse().map_err(|error| format!("cannot parse `{text}` as Rust ({error})"))
}

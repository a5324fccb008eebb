//! The parser: a structure in the source as a list of declared items with spans.

use proc_macro2::{Span, TokenStream};
use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Ident, LitInt, LitStr, Result, Token, Type, Visibility};

/// A structure whose fields are declarations.
pub struct Declaration {
    /// Its documentation and other attributes.
    pub attributes: Vec<Attribute>,
    /// Visibility.
    pub visibility: Visibility,
    /// Its name.
    pub name: Ident,
    /// Its fields, in order.
    pub items: Vec<Item>,
}

/// A field.
pub struct Item {
    /// Its documentation and other attributes, without its location.
    pub attributes: Vec<Attribute>,
    /// Visibility.
    pub visibility: Visibility,
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub kind: Type,
    /// Its location, if given.
    pub place: Option<Place>,
}

/// The location of an item.
pub enum Place {
    /// `#[at(offset)]`, in bytes; with a bank, `#[at(offset, bank = "name")]`.
    At {
        /// Offset in bytes.
        offset: u64,
        /// Its bank.
        bank: Option<String>,
    },
    /// `#[bit(number)]` or `#[bits(first..=last)]`.
    Bits {
        /// Lowest bit.
        first: u32,
        /// Highest bit.
        last: u32,
    },
}

/// Parses the arguments of an attribute, `bytes = 8, order = "big"`, by known keys.
pub fn words(arguments: TokenStream, known: impl FnMut(ParseNestedMeta<'_>) -> Result<()>) -> Result<()> {
    syn::parse::Parser::parse2(syn::meta::parser(known), arguments)
}

/// Parses the value of a key.
pub fn value<T: Parse>(word: &ParseNestedMeta<'_>) -> Result<T> {
    word.value()?.parse()
}

/// Parses an integer.
pub fn number<N: std::str::FromStr<Err: std::fmt::Display>>(literal: &LitInt) -> Result<N> {
    literal.base10_parse()
}

/// Parses the annotated structure.
pub fn declaration(item: TokenStream) -> Result<Declaration> {
    let DeriveInput { attrs, vis, ident, generics, data } = syn::parse2(item)?;
    if !generics.params.is_empty() {
        return Err(Error::new(generics.span(), "generic parameters are not supported"));
    }
    let fields = match data {
        Data::Struct(structure) => structure.fields,
        _ => return Err(Error::new(ident.span(), "expected a struct")),
    };
    let Fields::Named(fields) = fields else {
        return Err(Error::new(ident.span(), "expected a struct with named fields"));
    };
    let mut items = Vec::new();
    let mut faults = Faults::default();
    for field in fields.named {
        // Fields of this structure are named.
        let Some(name) = field.ident else { continue };
        match place(&field.attrs) {
            Ok(place) => {
                let attributes = field.attrs.into_iter().filter(|attribute| !is_place(attribute)).collect();
                items.push(Item { attributes, visibility: field.vis, name, kind: field.ty, place });
            }
            Err(fault) => faults.add(fault),
        }
    }
    faults.none()?;
    if items.is_empty() {
        return Err(Error::new(ident.span(), "empty struct; add a field"));
    }
    Ok(Declaration { attributes: attrs, visibility: vis, name: ident, items })
}

fn is_place(attribute: &Attribute) -> bool {
    ["at", "bit", "bits"].iter().any(|name| attribute.path().is_ident(name))
}

fn place(attributes: &[Attribute]) -> Result<Option<Place>> {
    let mut places = attributes.iter().filter(|attribute| is_place(attribute));
    let Some(attribute) = places.next() else { return Ok(None) };
    if let Some(second) = places.next() {
        return Err(Error::new(second.span(), "duplicate location; remove one"));
    }
    if attribute.path().is_ident("bit") {
        let number = number(&attribute.parse_args::<LitInt>()?)?;
        return Ok(Some(Place::Bits { first: number, last: number }));
    }
    if attribute.path().is_ident("bits") {
        return attribute.parse_args_with(|input: syn::parse::ParseStream<'_>| {
            let first: LitInt = input.parse()?;
            input.parse::<Token![..=]>()?;
            let last: LitInt = input.parse()?;
            let (first, last) = (number(&first)?, number(&last)?);
            Ok(Some(Place::Bits { first, last }))
        });
    }
    attribute.parse_args_with(|input: syn::parse::ParseStream<'_>| {
        let offset = number(&input.parse::<LitInt>()?)?;
        let mut bank = None;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
            let word: Ident = input.parse()?;
            if word != "bank" {
                return Err(Error::new(word.span(), "write `#[at(offset)]` or `#[at(offset, bank = \"name\")]`"));
            }
            input.parse::<Token![=]>()?;
            bank = Some(input.parse::<LitStr>()?.value());
        }
        Ok(Some(Place::At { offset, bank }))
    })
}

/// Rejects a name that is reserved for all items of the kind `what`.
pub fn not_taken(item: &Item, what: &str, taken: &[&str]) -> Result<()> {
    let name = &item.name;
    if taken.iter().any(|taken| name == taken) {
        return Err(Error::new(name.span(), format_args!("`{name}` is reserved in every {what}; rename this field")));
    }
    Ok(())
}

/// Collects all errors of a declaration, to report them together.
#[derive(Default)]
pub struct Faults(Option<Error>);

impl Faults {
    /// Adds an error.
    pub fn add(&mut self, fault: Error) {
        match &mut self.0 {
            Some(faults) => faults.combine(fault),
            None => self.0 = Some(fault),
        }
    }

    /// Adds an error with a span.
    pub fn say(&mut self, place: Span, what: impl std::fmt::Display) {
        self.add(Error::new(place, what));
    }

    /// Returns the errors, if there are any.
    pub fn none(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

//! Numbers with named bits.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Error, Ident, Result, Type};

use crate::read::{self, Declaration, Faults, Item, Place};

const NUMBERS: [(&str, u32); 4] = [("u8", 8), ("u16", 16), ("u32", 32), ("u64", 64)];

/// Names that every such number has.
const TAKEN: [&str; 3] = ["NONE", "bits", "from_bits"];

/// A named bit range.
struct Run<'a> {
    item: &'a Item,
    first: u32,
    last: u32,
    /// The number's type; `None` for a `bool`.
    number: Option<&'a Ident>,
}

impl Run<'_> {
    fn count(&self) -> u32 {
        self.last - self.first + 1
    }

    /// A mask of its width.
    fn ones(&self) -> u64 {
        u64::MAX >> (64 - self.count())
    }
}

pub fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let usage = "missing number type: write `#[layout::bits(u8)]`, `u16`, `u32` or `u64`";
    let place = arguments.span();
    let word: Ident = syn::parse2(arguments).map_err(|_| Error::new(place, usage))?;
    let width = NUMBERS.iter().find(|(name, _)| word == name).ok_or_else(|| Error::new(word.span(), usage))?.1;
    let declaration = read::declaration(item)?;
    let mut faults = Faults::default();
    let mut runs: Vec<Run<'_>> = Vec::new();
    for item in &declaration.items {
        match run(item, &word, width) {
            Ok(run) => {
                if let Some(other) = runs.iter().find(|other| run.first <= other.last && other.first <= run.last) {
                    let (one, two) = (&other.item.name, &item.name);
                    faults.say(two.span(), format_args!("the bits `{one}` and `{two}` overlap"));
                }
                if let Some(other) = declaration.items.iter().find(|other| item.name == with(other)) {
                    let message = format_args!("`{}` conflicts with the setter of `{}`", item.name, other.name);
                    faults.say(item.name.span(), message);
                }
                runs.push(run);
            }
            Err(fault) => faults.add(fault),
        }
    }
    faults.none()?;
    Ok(emit(&declaration, &runs, &word))
}

fn run<'a>(item: &'a Item, whole: &Ident, width: u32) -> Result<Run<'a>> {
    read::not_taken(item, "bit set", &TAKEN)?;
    let name = &item.name;
    let Some(Place::Bits { first, last }) = item.place else {
        let message = "missing bits: add `#[bit(0)]` or `#[bits(4..=7)]`";
        return Err(Error::new(name.span(), message));
    };
    if first > last || last >= width {
        let message = format!("`{name}` has bits {first} to {last}, but `{whole}` has bits 0 to {}", width - 1);
        return Err(Error::new(name.span(), message));
    }
    let kind = match &item.kind {
        Type::Path(path) => path.path.get_ident(),
        _ => None,
    };
    let number = match kind {
        Some(kind) if kind == "bool" => None,
        Some(kind) if NUMBERS.iter().any(|(name, bits)| kind == name && *bits > last - first) => Some(kind),
        _ => return Err(wrong_kind(item.kind.span(), last - first + 1)),
    };
    if number.is_none() && first != last {
        return Err(wrong_kind(item.kind.span(), last - first + 1));
    }
    Ok(Run { item, first, last, number })
}

fn wrong_kind(place: Span, count: u32) -> Error {
    Error::new(
        place,
        format_args!("invalid type for {count} bits: use `bool` for one bit, otherwise a large enough `u8` to `u64`"),
    )
}

fn emit(declaration: &Declaration, runs: &[Run<'_>], word: &Ident) -> TokenStream {
    let Declaration { attributes, visibility, name, .. } = declaration;
    let methods: TokenStream = runs.iter().map(|run| methods(run, word)).collect();
    quote! {
        #(#attributes)*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(transparent)]
        #visibility struct #name(#word);

        #[allow(dead_code, reason = "a declaration names also the bits that a driver does without")]
        impl #name {
            /// No bit is set.
            #visibility const NONE: #name = #name(0);

            /// Meaning of this number.
            #[inline]
            #visibility const fn from_bits(bits: #word) -> Self {
                Self(bits)
            }

            /// The number.
            #[inline]
            #visibility const fn bits(self) -> #word {
                self.0
            }

            #methods
        }

        impl ::layout::Value for #name {
            type Word = #word;
            #[inline]
            fn from_word(word: #word) -> Self {
                Self(word)
            }
            #[inline]
            fn into_word(self) -> #word {
                self.0
            }
        }

        impl ::layout::Field for #name {
            const BYTES: usize = <#word as ::layout::Field>::BYTES;
            #[inline]
            fn take(bytes: &[u8], order: ::layout::Order) -> Self {
                Self(<#word as ::layout::Field>::take(bytes, order))
            }
            #[inline]
            fn put(&self, bytes: &mut [u8], order: ::layout::Order) {
                ::layout::Field::put(&self.0, bytes, order);
            }
        }
    }
}

/// The method that returns the number with these bits changed.
fn with(item: &Item) -> Ident {
    format_ident!("with_{}", item.name)
}

fn methods(run: &Run<'_>, word: &Ident) -> TokenStream {
    let Item { attributes, visibility, name, .. } = run.item;
    let with = with(run.item);
    let documentation = format!("Returns a copy with [`{name}`](Self::{name}) set.");
    let first = run.first;
    let Some(number) = run.number else {
        return quote! {
            #(#attributes)*
            #[inline]
            #visibility const fn #name(self) -> bool {
                self.0 & 1 << #first != 0
            }

            #[doc = #documentation]
            #[inline]
            #[must_use]
            #visibility const fn #with(self, set: bool) -> Self {
                if set { Self(self.0 | 1 << #first) } else { Self(self.0 & !(1 << #first)) }
            }
        };
    };
    let documentation = format!("{documentation} Only the lowest {} bits are used.", run.count());
    let ones = proc_macro2::Literal::u64_unsuffixed(run.ones());
    quote! {
        #(#attributes)*
        #[inline]
        #visibility const fn #name(self) -> #number {
            (self.0 >> #first & #ones) as #number
        }

        #[doc = #documentation]
        #[inline]
        #[must_use]
        #visibility const fn #with(self, number: #number) -> Self {
            Self(self.0 & !(#ones << #first) | (number as #word & #ones) << #first)
        }
    }
}

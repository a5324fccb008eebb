//! Records.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, LitInt, LitStr, Result};

use crate::read::{self, Declaration, Faults, Item, Place};

/// The arguments of `#[record(...)]`.
struct Whole {
    bytes: usize,
    order: TokenStream,
}

pub fn expand(item: TokenStream) -> Result<TokenStream> {
    let declaration = read::declaration(item)?;
    let whole = whole(&declaration)?;
    let mut faults = Faults::default();
    let mut places = TokenStream::new();
    let mut checks = TokenStream::new();
    for (index, item) in declaration.items.iter().enumerate() {
        let (at, end) = names(index);
        let kind = &item.kind;
        let offset = match (&item.place, index) {
            (Some(Place::At { offset, bank: None }), _) => {
                let offset = proc_macro2::Literal::u64_unsuffixed(*offset);
                quote! { #offset }
            }
            (Some(_), _) => {
                faults.say(item.name.span(), "invalid location: a record field takes `#[at(offset)]`, in bytes");
                continue;
            }
            (None, 0) => quote! { 0 },
            (None, _) => {
                let (_, end) = names(index - 1);
                quote! { #end }
            }
        };
        places.extend(quote_spanned! { kind.span() =>
            const #at: usize = #offset;
            const #end: usize = #at + ::layout::check::field_bytes::<#kind>();
        });
        checks.extend(check(&declaration.items[..index], item, index, &whole));
    }
    faults.none()?;
    let implementation = emit(&declaration, &whole);
    Ok(quote! {
        const _: () = {
            #places
            #checks
            #implementation
        };
    })
}

/// Names of the constants for a field's start and end.
fn names(index: usize) -> (syn::Ident, syn::Ident) {
    (format_ident!("AT_{index}"), format_ident!("END_{index}"))
}

fn whole(declaration: &Declaration) -> Result<Whole> {
    let usage = "write `#[record(bytes = ..., order = \"little\")]`, or \"big\"";
    let missing = || Error::new(declaration.name.span(), usage);
    let attribute = declaration.attributes.iter().find(|attribute| attribute.path().is_ident("record"));
    let (mut bytes, mut order) = (None, None);
    attribute.ok_or_else(missing)?.parse_nested_meta(|word| {
        if word.path.is_ident("bytes") {
            bytes = Some(read::number(&read::value::<LitInt>(&word)?)?);
        } else if word.path.is_ident("order") {
            order = Some(match read::value::<LitStr>(&word)?.value().as_str() {
                "little" => quote! { ::layout::Order::Little },
                "big" => quote! { ::layout::Order::Big },
                _ => return Err(word.error(usage)),
            });
        } else {
            return Err(word.error(usage));
        }
        Ok(())
    })?;
    Ok(Whole { bytes: bytes.ok_or_else(missing)?, order: order.ok_or_else(missing)? })
}

fn check(earlier: &[Item], item: &Item, index: usize, whole: &Whole) -> TokenStream {
    let (name, bytes) = (&item.name, whole.bytes);
    let (at, end) = names(index);
    let outside = format!("the field `{name}` exceeds the record's {bytes} bytes");
    let mut checks = quote_spanned! { name.span() => const _: () = ::core::assert!(#end <= #bytes, #outside); };
    for (other_index, other) in earlier.iter().enumerate() {
        let (other_at, other_end) = names(other_index);
        let overlap = format!("the fields `{}` and `{name}` overlap", other.name);
        checks.extend(quote_spanned! { name.span() =>
            const _: () = ::core::assert!(#other_end <= #at || #end <= #other_at, #overlap);
        });
    }
    checks
}

fn emit(declaration: &Declaration, whole: &Whole) -> TokenStream {
    let Declaration { visibility, name, items, .. } = declaration;
    let Whole { bytes, order } = whole;
    let mut taken = TokenStream::new();
    let mut put = TokenStream::new();
    for (index, item) in items.iter().enumerate() {
        let (field, kind) = (&item.name, &item.kind);
        let (at, end) = names(index);
        taken.extend(quote_spanned! { kind.span() =>
            #field: <#kind as ::layout::Field>::take(&bytes[#at..#end], #order),
        });
        put.extend(quote_spanned! { kind.span() =>
            ::layout::Field::put(&self.#field, &mut bytes[#at..#end], #order);
        });
    }
    quote! {
        #[allow(dead_code, reason = "a record is read, written, or both")]
        impl #name {
            /// Size in bytes.
            #visibility const BYTES: usize = #bytes;

            /// Decodes it.
            #[inline]
            #visibility fn from_bytes(bytes: &[u8; #bytes]) -> Self {
                Self { #taken }
            }

            /// Decodes it from a prefix of these bytes; `None` if they are too few.
            #[inline]
            #visibility fn parse(bytes: &[u8]) -> ::core::option::Option<Self> {
                bytes.first_chunk().map(Self::from_bytes)
            }

            /// Encodes it; bytes of no field are zero.
            #[inline]
            #visibility fn to_bytes(&self) -> [u8; #bytes] {
                let mut bytes = [0; #bytes];
                self.write(&mut bytes);
                bytes
            }

            /// Encodes its fields in place, preserving bytes of no field.
            #[inline]
            #visibility fn write(&self, bytes: &mut [u8; #bytes]) {
                #put
            }
        }

        impl ::layout::Field for #name {
            const BYTES: usize = #bytes;
            #[inline]
            fn take(bytes: &[u8], _: ::layout::Order) -> Self {
                Self { #taken }
            }
            #[inline]
            fn put(&self, bytes: &mut [u8], _: ::layout::Order) {
                #put
            }
        }
    }
}

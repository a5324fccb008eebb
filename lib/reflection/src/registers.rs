//! Register maps.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, GenericArgument, LitInt, PathArguments, Result, Type};

use crate::read::{self, Declaration, Faults, Item, Place};

/// A register with its offset.
struct Register<'a> {
    item: &'a Item,
    offset: u64,
    bank: Option<&'a str>,
    direction: Direction,
    /// The type of its content.
    value: &'a Type,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Read,
    Write,
    Both,
}

impl Direction {
    const ALL: [(&'static str, Direction); 3] =
        [("ReadOnly", Direction::Read), ("WriteOnly", Direction::Write), ("ReadWrite", Direction::Both)];

    fn meets(self, other: Direction) -> bool {
        self == other || self == Direction::Both || other == Direction::Both
    }
}

pub fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let bytes = bytes(arguments)?;
    let declaration = read::declaration(item)?;
    let mut faults = Faults::default();
    let mut registers = Vec::new();
    for item in &declaration.items {
        match register(item) {
            Ok(register) => registers.push(register),
            Err(fault) => faults.add(fault),
        }
    }
    faults.none()?;
    let checks = checks(&registers, bytes);
    let map = emit(&declaration, &registers, bytes);
    Ok(quote! { #map #checks })
}

fn bytes(arguments: TokenStream) -> Result<u64> {
    let mut bytes = None;
    let place = arguments.span();
    read::words(arguments, |word| {
        if !word.path.is_ident("bytes") {
            return Err(word.error("write `#[layout::registers(bytes = ...)]`"));
        }
        bytes = Some(read::number(&read::value::<LitInt>(&word)?)?);
        Ok(())
    })?;
    bytes.ok_or_else(|| Error::new(place, "missing length: write `#[layout::registers(bytes = ...)]`"))
}

/// Reserved names.
const TAKEN: [&str; 2] = ["access", "over"];

fn register(item: &Item) -> Result<Register<'_>> {
    read::not_taken(item, "map", &TAKEN)?;
    let Some(Place::At { offset, bank }) = &item.place else {
        return Err(Error::new(item.name.span(), "missing offset: add `#[at(offset)]`"));
    };
    let wanted = || Error::new(item.kind.span(), "write `ReadOnly<...>`, `WriteOnly<...>` or `ReadWrite<...>`");
    let Type::Path(path) = &item.kind else { return Err(wanted()) };
    let segment = path.path.segments.last().ok_or_else(wanted)?;
    let direction = Direction::ALL.iter().find(|(name, _)| segment.ident == name).ok_or_else(wanted)?.1;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return Err(wanted()) };
    let (1, Some(GenericArgument::Type(value))) = (arguments.args.len(), arguments.args.first()) else {
        return Err(wanted());
    };
    Ok(Register { item, offset: *offset, bank: bank.as_deref(), direction, value })
}

/// Checks that need register widths, which only rustc knows.
fn checks(registers: &[Register<'_>], bytes: u64) -> TokenStream {
    let mut checks = TokenStream::new();
    for (index, register) in registers.iter().enumerate() {
        let (name, offset, value) = (&register.item.name, register.offset, register.value);
        let place = register.item.name.span();
        let outside = format!("the register `{name}` at {offset:#x} exceeds the map's {bytes:#x} bytes");
        let askew = format!("the register `{name}` at {offset:#x} is not aligned to its width");
        checks.extend(quote_spanned! { place =>
            const _: () = ::core::assert!(
                ::layout::check::lies_within(#offset, ::layout::check::register_bytes::<#value>(), #bytes), #outside
            );
            const _: () = ::core::assert!(
                ::layout::check::is_aligned(#offset, ::layout::check::register_bytes::<#value>()), #askew
            );
        });
        let earlier = registers[..index].iter();
        for other in earlier.filter(|other| other.bank == register.bank && other.direction.meets(register.direction)) {
            let (other_offset, other_value) = (other.offset, other.value);
            let overlap = format!("the registers `{}` and `{name}` overlap", other.item.name);
            checks.extend(quote_spanned! { place =>
                const _: () = ::core::assert!(
                    ::layout::check::are_apart(
                        #other_offset, ::layout::check::register_bytes::<#other_value>(),
                        #offset, ::layout::check::register_bytes::<#value>(),
                    ),
                    #overlap
                );
            });
        }
    }
    checks
}

fn emit(declaration: &Declaration, registers: &[Register<'_>], bytes: u64) -> TokenStream {
    let Declaration { attributes, visibility, name, .. } = declaration;
    let mut methods = TokenStream::new();
    for register in registers {
        let Item { attributes, visibility, name, kind, .. } = register.item;
        let (offset, value) = (register.offset, register.value);
        let direction = match register.direction {
            Direction::Read => quote! { ReadOnly },
            Direction::Write => quote! { WriteOnly },
            Direction::Both => quote! { ReadWrite },
        };
        methods.extend(quote_spanned! { kind.span() =>
            #(#attributes)*
            #[inline]
            #visibility fn #name(&self) -> ::layout::#direction<'_, A, #value> {
                ::layout::Register::at(&self.access, #offset)
            }
        });
    }
    quote! {
        #(#attributes)*
        #[derive(Clone, Debug)]
        #visibility struct #name<A> {
            access: A,
        }

        #[allow(dead_code, reason = "a map names also the registers that a driver does without")]
        impl<A> #name<A> {
            /// Creates the map over an access that reaches this many bytes.
            #[inline]
            #visibility const fn over(access: A) -> Self {
                Self { access }
            }

            /// The access.
            #[inline]
            #visibility const fn access(&self) -> &A {
                &self.access
            }

            #methods
        }

        impl<A> ::layout::Map for #name<A> {
            type Access = A;
            const BYTES: u64 = #bytes;
            #[inline]
            fn over(access: A) -> Self {
                Self { access }
            }
        }
    }
}

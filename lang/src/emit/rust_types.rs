//! Types and arguments of a contract in Rust.

use crate::naming;
use crate::syntax::Passing;
use crate::unit::{ArgumentKind, Field, Scalar, Type, TypeKind, Unit, Value, ValueType, Variant, all_flags};

use super::rust::{Out, documentation};

/// The path of a value's type, relative to a module `depth` levels below the unit's root (0 or 1), in the module of the
/// contract `inside`.
pub fn value_type(unit: &Unit, value: &Value, inside: Option<usize>) -> String {
    let element = match value.of {
        ValueType::Scalar(scalar) => scalar.rust().to_string(),
        ValueType::Declared(index) => {
            let declared = &unit.types[index];
            let root = if inside.is_some() { "super::" } else { "" };
            match declared.contract {
                owner if owner == inside => declared.name.clone(),
                Some(owner) => {
                    let module = naming::snake(&unit.contracts[owner].name);
                    format!("{root}{module}::{}", declared.name)
                }
                None => format!("{root}{}", declared.name),
            }
        }
    };
    match value.length {
        Some(length) => format!("[{element}; {length}]"),
        None => element,
    }
}

/// The type of a block: `ExVec<u8>`.
pub fn block_type(unit: &Unit, element: &Value, many: bool, inside: usize) -> String {
    let holder = if many { "ExVec" } else { "ExBox" };
    format!("::sip::exheap::{holder}<{}>", value_type(unit, element, Some(inside)))
}

/// The type of an argument in a send.
pub fn sent_type(unit: &Unit, kind: &ArgumentKind, inside: usize) -> String {
    match kind {
        ArgumentKind::Block { element, many, passing: Passing::Lent } => {
            format!("impl ::sip::exheap::Lendable<{}>", block_type(unit, element, *many, inside))
        }
        ArgumentKind::Block { element, many, passing: Passing::Returned } => {
            format!("::sip::exheap::Lent<{}>", block_type(unit, element, *many, inside))
        }
        ArgumentKind::Any { .. } => "impl ::core::convert::Into<::sip::channel::AnyEndpoint>".into(),
        other => plain_type(unit, other, inside),
    }
}

/// The type of an argument in a receive.
pub fn received_type(unit: &Unit, kind: &ArgumentKind, inside: usize) -> String {
    match kind {
        ArgumentKind::Block { element, many, passing: Passing::Lent } => {
            format!("::sip::exheap::Lent<{}>", block_type(unit, element, *many, inside))
        }
        ArgumentKind::Any { .. } => "::sip::channel::AnyEndpoint".into(),
        other => plain_type(unit, other, inside),
    }
}

fn plain_type(unit: &Unit, kind: &ArgumentKind, inside: usize) -> String {
    match kind {
        ArgumentKind::Inline(value) => value_type(unit, value, Some(inside)),
        ArgumentKind::Block { element, many, .. } => block_type(unit, element, *many, inside),
        ArgumentKind::Endpoint { contract, importer, state } => {
            let side = if *importer { "Imp" } else { "Exp" };
            let other = &unit.contracts[*contract];
            let path =
                if *contract == inside { String::new() } else { format!("super::{}::", naming::snake(&other.name)) };
            format!("{path}{side}<{path}states::{}>", other.states[*state as usize].rust_name)
        }
        ArgumentKind::Any { .. } => "::sip::channel::AnyEndpoint".into(),
    }
}

/// The call that appends an inline value to a message.
pub fn put_call(value: &Value, expression: &str) -> String {
    let method = match value.length {
        None => "value",
        Some(_) if value.is_bytes() => "bytes",
        Some(_) => "array",
    };
    format!(".{method}({expression})")
}

/// The call that takes an inline value from a message.
pub fn take_call(value: &Value) -> &'static str {
    match value.length {
        None => "incoming.value()",
        Some(_) if value.is_bytes() => "incoming.bytes()",
        Some(_) => "incoming.array()",
    }
}

/// Declares a type and its encoding in messages.
pub fn declare(out: &mut Out, unit: &Unit, declared: &Type) {
    match &declared.kind {
        TypeKind::Enum(variants) => declare_enum(out, declared, variants),
        TypeKind::Flags { number, flags } => declare_flags(out, declared, *number, flags),
        TypeKind::Struct(fields) => declare_struct(out, unit, declared, fields),
    }
}

fn declare_enum(out: &mut Out, declared: &Type, variants: &[Variant]) {
    let name = &declared.name;
    documentation(out, &declared.documentation, &format!("`{name}` of the contract."));
    out.line("#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]");
    out.line("#[allow(non_camel_case_types)]");
    out.open(&format!("pub enum {name} {{"));
    let mut arms = String::new();
    for (number, variant) in variants.iter().enumerate() {
        documentation(out, &variant.documentation, &format!("`{}`.", variant.name));
        out.line(&format!("{},", naming::variant(&variant.name)));
        // The kernel rejects larger numbers; the last arm makes the match exhaustive.
        let last = number + 1 == variants.len();
        let pattern = if last { "_".to_string() } else { number.to_string() };
        arms.push_str(&format!("{pattern} => {name}::{}, ", naming::variant(&variant.name)));
    }
    out.close("}");
    inline(out, name, "outgoing.word(self as u64)", &format!("match incoming.word() {{ {arms}}}"));
}

fn declare_flags(out: &mut Out, declared: &Type, number: Scalar, flags: &[Variant]) {
    let (name, bits) = (&declared.name, number.rust());
    out.open("::sip::plain! {");
    out.line(&format!("{:?}", number.text()));
    documentation(out, &declared.documentation, &format!("`{name}` of the contract."));
    out.open(&format!("pub struct {name} {{"));
    out.line(&format!("bits: {bits},"));
    out.close("}");
    out.close("}");
    out.open(&format!("impl {name} {{"));
    for (place, flag) in flags.iter().enumerate() {
        documentation(out, &flag.documentation, &format!("`{}`.", flag.name));
        out.line(&format!("pub const {}: {name} = {name} {{ bits: 1 << {place} }};", naming::constant(&flag.name)));
    }
    let all = all_flags(flags.len());
    // Block contents are unchecked: unknown bits can occur, and are ignored.
    let known = format!("{name}::all().bits");
    let some = format!("::core::option::Option::Some({name} {{ bits }})");
    let none = "::core::option::Option::None";
    for (about, function) in [
        ("The empty set.", format!("empty() -> {name} {{ {name} {{ bits: 0 }} }}")),
        ("All flags.", format!("all() -> {name} {{ {name} {{ bits: {all:#x} }} }}")),
        (
            "The flags of a number; `None` if it has an unknown bit.",
            format!(
                "from_bits(bits: {bits}) -> ::core::option::Option<{name}> {{ if bits & {known} == bits {{ {some} }} else {{ {none} }} }}"
            ),
        ),
        ("The number.", format!("bits(self) -> {bits} {{ self.bits & {known} }}")),
        (
            "Whether all flags of `other` are set.",
            format!("contains(self, other: {name}) -> bool {{ self.bits & other.bits() == other.bits() }}"),
        ),
        (
            "These flags if the condition holds, else none.",
            format!("when(self, condition: bool) -> {name} {{ if condition {{ self }} else {{ {name}::empty() }} }}"),
        ),
        ("Whether no flag is set.", "is_empty(self) -> bool { self.bits() == 0 }".into()),
    ] {
        out.line(&format!("#[doc = {about:?}]"));
        out.line("#[must_use]");
        out.line(&format!("pub const fn {function}"));
    }
    out.close("}");
    out.open(&format!("impl ::core::ops::BitOr for {name} {{"));
    out.line(&format!("type Output = {name};"));
    out.line(&format!("fn bitor(self, other: {name}) -> {name} {{ {name} {{ bits: self.bits | other.bits }} }}"));
    out.close("}");
    out.open(&format!("impl ::core::ops::BitOrAssign for {name} {{"));
    out.line(&format!("fn bitor_assign(&mut self, other: {name}) {{ *self = *self | other; }}"));
    out.close("}");
    // The kernel ends the sender of an unknown flag.
    let take = format!("{name} {{ bits: incoming.word() as {bits} }}");
    inline(out, name, "outgoing.word(self.bits() as u64)", &take);
}

fn declare_struct(out: &mut Out, unit: &Unit, declared: &Type, fields: &[Field]) {
    let name = &declared.name;
    let index = unit.types.iter().position(|other| std::ptr::eq(other, declared)).unwrap_or(0);
    let whole = Value { of: ValueType::Declared(index), length: None };
    let plain = unit.is_plain(&whole);
    if plain {
        out.open("::sip::plain! {");
        out.line(&format!("{:?}", unit.canonical_text(&whole)));
    }
    documentation(out, &declared.documentation, &format!("`{name}` of the contract."));
    if !plain {
        out.line("#[derive(Clone, Copy, Debug, PartialEq, Eq)]");
    }
    out.open(&format!("pub struct {name} {{"));
    let (mut put, mut take) = (String::from("outgoing"), String::new());
    for field in fields {
        let field_name = naming::snake(&field.name);
        documentation(out, &field.documentation, &format!("`{}`.", field.name));
        out.line(&format!("pub {field_name}: {},", value_type(unit, &field.value, declared.contract)));
        put.push_str(&put_call(&field.value, &format!("self.{field_name}")));
        take.push_str(&format!("{field_name}: {}, ", take_call(&field.value)));
    }
    out.close("}");
    if plain {
        out.close("}");
    }
    inline(out, name, &put, &format!("{name} {{ {take}}}"));
}

fn inline(out: &mut Out, name: &str, put: &str, take: &str) {
    out.open(&format!("impl ::sip::channel::Inline for {name} {{"));
    out.line("#[inline]");
    out.line(&format!("fn put(self, outgoing: ::sip::channel::Outgoing) -> ::sip::channel::Outgoing {{ {put} }}"));
    out.line("#[inline]");
    out.line(&format!("fn take(incoming: &mut ::sip::channel::Incoming) -> Self {{ {take} }}"));
    out.close("}");
}

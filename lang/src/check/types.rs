//! Types of values, blocks and messages.

use std::collections::HashSet;

use abi::Direction;

use super::declare::Scope;
use crate::syntax::{ArgumentKindTree, ArgumentTree, FieldTree, Name, TypeKindTree, ValueTree, VariantTree};
use crate::unit::{
    Argument, ArgumentKind, Field, Message, Scalar, Type, TypeIndex, TypeKind, Unit, Value, ValueType, Variant,
};
use crate::{Code, Diagnostic};

/// Maximum fields of a struct, including those of nested structs.
const MAX_STRUCT_FIELDS: usize = 512;

/// Resolves declared types. Fields of unknown type are reported and omitted.
pub fn resolve_types(scope: &Scope<'_>, diagnostics: &mut Vec<Diagnostic>) -> Vec<Type> {
    let mut types = Vec::new();
    for &(tree, contract) in &scope.types {
        let kind = match &tree.kind {
            TypeKindTree::Enum(variants) => TypeKind::Enum(resolve_variants(variants)),
            TypeKindTree::Flags { number, flags } => {
                let number = flags_number(number.as_ref(), diagnostics);
                limit_flags(&tree.name, number, flags, diagnostics);
                TypeKind::Flags { number, flags: resolve_variants(flags) }
            }
            TypeKindTree::Struct(fields) => {
                let resolve = |field: &FieldTree| {
                    let value = resolve_value(scope, contract, &field.value, diagnostics)?;
                    Some(Field { name: field.name.text.clone(), documentation: field.documentation.clone(), value })
                };
                TypeKind::Struct(fields.iter().filter_map(resolve).collect())
            }
        };
        types.push(Type { name: tree.name.text.clone(), documentation: tree.documentation.clone(), contract, kind });
    }
    break_circles(scope, &mut types, diagnostics);
    limit_sizes(scope, &mut types, diagnostics);
    types
}

fn resolve_variants(trees: &[VariantTree]) -> Vec<Variant> {
    let resolve =
        |tree: &VariantTree| Variant { name: tree.name.text.clone(), documentation: tree.documentation.clone() };
    trees.iter().map(resolve).collect()
}

/// The underlying integer type of flags.
fn flags_number(name: Option<&Name>, diagnostics: &mut Vec<Diagnostic>) -> Scalar {
    const DEFAULT: Scalar = Scalar::Uint;
    let Some(name) = name else { return DEFAULT };
    match Scalar::from_text(&name.text) {
        Some(scalar @ (Scalar::Byte | Scalar::Ushort | Scalar::Uint | Scalar::Ulong)) => scalar,
        _ => {
            let text = format!("`{}` cannot be the underlying type of flags", name.text);
            diagnostics.push(
                Diagnostic::new(Code::BadFlagsNumber, name.span, text, "")
                    .remedy("use `byte`, `ushort`, `uint` (the default) or `ulong`"),
            );
            DEFAULT
        }
    }
}

/// Reports more flags than there are bits.
fn limit_flags(name: &Name, number: Scalar, flags: &[VariantTree], diagnostics: &mut Vec<Diagnostic>) {
    let bits = number.bytes() * 8;
    let Some(first) = usize::try_from(bits).ok().and_then(|bits| flags.get(bits)) else { return };
    let text = format!("`{}` has {} flags, but `{}` has {bits} bits", name.text, flags.len(), number.text());
    let remedy = match number {
        Scalar::Ulong => "split them into two flags types",
        _ => "use a larger type: `flags Name : ulong { ... }`",
    };
    diagnostics.push(Diagnostic::new(Code::TooMany, first.name.span, text, "no bit left for this flag").remedy(remedy));
}

/// Reports structs that are too large, and empties them: nested structs can double in size with each declaration, and
/// later passes must not take that long.
fn limit_sizes(scope: &Scope<'_>, types: &mut [Type], diagnostics: &mut Vec<Diagnostic>) {
    let mut parts: Vec<Option<usize>> = vec![None; types.len()];
    let mut progress = true;
    while progress {
        progress = false;
        for index in 0..types.len() {
            if parts[index].is_some() {
                continue;
            }
            let TypeKind::Struct(fields) = &types[index].kind else {
                parts[index] = Some(1);
                progress = true;
                continue;
            };
            let of_field = |field: &Field| match field.value.of {
                ValueType::Scalar(_) => Some(1),
                ValueType::Declared(inner) => parts[inner],
            };
            let Some(all) = fields.iter().map(of_field).collect::<Option<Vec<usize>>>() else { continue };
            let count = 1 + all.iter().sum::<usize>();
            progress = true;
            parts[index] = Some(count.min(MAX_STRUCT_FIELDS));
            if count > MAX_STRUCT_FIELDS {
                let name = &scope.types[index].0.name;
                let text = format!(
                    "`{}` has more than {MAX_STRUCT_FIELDS} fields, including those of nested structs",
                    name.text
                );
                diagnostics
                    .push(Diagnostic::new(Code::TooMany, name.span, text, "").remedy("use arrays or fewer fields"));
                types[index].kind = TypeKind::Struct(Vec::new());
                parts[index] = Some(1);
            }
        }
    }
}

fn resolve_value(
    scope: &Scope<'_>,
    contract: Option<usize>,
    tree: &ValueTree,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Value> {
    let length = tree.length.map(|length| length.value as u32);
    if tree.contract.is_none()
        && let Some(scalar) = Scalar::from_text(&tree.name.text)
    {
        return Some(Value { of: ValueType::Scalar(scalar), length });
    }
    let found = match &tree.contract {
        Some(name) => {
            let owner = find_contract(scope, name, diagnostics)?;
            scope.type_of_contract(owner, &tree.name.text)
        }
        None => scope.declared_type(contract, &tree.name.text),
    };
    if let Some(index) = found {
        return Some(Value { of: ValueType::Declared(index), length });
    }
    let text = format!("cannot find type `{}`", tree.name.text);
    diagnostics.push(
        Diagnostic::new(Code::UndefinedType, tree.span(), text, "").remedy(remedy_for_type(scope, &tree.name.text)),
    );
    None
}

/// Suggests a remedy for an unknown type name.
fn remedy_for_type(scope: &Scope<'_>, name: &str) -> String {
    let familiar = match name {
        "u8" | "uint8" | "char8" => Some("byte"),
        "u16" | "uint16" => Some("ushort"),
        "u32" | "uint32" | "unsigned" => Some("uint"),
        "u64" | "uint64" | "usize" | "size_t" => Some("ulong"),
        "i8" | "int8" => Some("sbyte"),
        "i16" | "int16" => Some("short"),
        "i32" | "int32" => Some("int"),
        "i64" | "int64" => Some("long"),
        "boolean" => Some("bool"),
        "string" | "String" | "str" => Some("byte[] in ExHeap"),
        _ => None,
    };
    if let Some(familiar) = familiar {
        return format!("write `{familiar}`");
    }
    let elsewhere = scope.types.iter().find(|(tree, _)| tree.name.text == name).and_then(|(_, contract)| *contract);
    if let Some(contract) = elsewhere {
        return format!("write `{}.{name}`", scope.contracts[contract].tree.name.text);
    }
    if scope.contract(name).is_some() {
        return format!("to pass an endpoint of contract `{name}`, write `{name}.Imp:STATE` or `{name}.Exp:STATE`");
    }
    "declare it with `enum`, `flags` or `struct`, \
     or use bool, byte, ushort, uint, ulong, sbyte, short, int, long or char"
        .into()
}

fn find_contract(scope: &Scope<'_>, name: &Name, diagnostics: &mut Vec<Diagnostic>) -> Option<usize> {
    let found = scope.contract(&name.text);
    if found.is_none() {
        let text = format!("cannot find contract `{}`", name.text);
        diagnostics.push(
            Diagnostic::new(Code::UndefinedContract, name.span, text, "")
                .remedy("declare it in this unit, or pass its file to the compiler together with this one"),
        );
    }
    found
}

/// Reports structs that contain themselves, and empties them so that later passes terminate.
fn break_circles(scope: &Scope<'_>, types: &mut [Type], diagnostics: &mut Vec<Diagnostic>) {
    for index in 0..types.len() {
        let mut pending = vec![index];
        let mut seen = HashSet::new();
        let mut circular = false;
        while let Some(current) = pending.pop() {
            let TypeKind::Struct(fields) = &types[current].kind else { continue };
            for field in fields {
                if let ValueType::Declared(inner) = field.value.of {
                    circular |= inner == index;
                    if seen.insert(inner) {
                        pending.push(inner);
                    }
                }
            }
        }
        if circular {
            let name = &scope.types[index].0.name;
            let text = format!("recursive type `{}` has infinite size", name.text);
            diagnostics.push(
                Diagnostic::new(Code::RecursiveType, name.span, text, "")
                    .remedy("refer to other values by index, or pass them as `T[] in ExHeap` in the message"),
            );
            types[index].kind = TypeKind::Struct(Vec::new());
        }
    }
}

/// Resolves the messages of a contract; `None` for those with unknown directions or arguments.
pub fn resolve_messages(
    scope: &Scope<'_>,
    unit: &Unit,
    contract: usize,
    directions: &[Option<Direction>],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Option<Message>> {
    let mut messages = Vec::new();
    for (tree, direction) in scope.contracts[contract].messages.iter().zip(directions) {
        let mut arguments = Vec::new();
        for argument in &tree.arguments {
            if let Some(kind) = resolve_argument(scope, unit, contract, argument, diagnostics) {
                arguments.push(Argument { name: argument.name.text.clone(), kind });
            }
        }
        let complete = arguments.len() == tree.arguments.len();
        let message = direction.filter(|_| complete).map(|direction| Message {
            name: tree.name.text.clone(),
            documentation: tree.documentation.clone(),
            direction,
            arguments,
        });
        if let Some(message) = &message {
            super::check_size(scope, unit, message, tree.name.span, diagnostics);
        }
        messages.push(message);
    }
    messages
}

fn resolve_argument(
    scope: &Scope<'_>,
    unit: &Unit,
    contract: usize,
    argument: &ArgumentTree,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<ArgumentKind> {
    match &argument.kind {
        ArgumentKindTree::Inline(tree) => {
            resolve_value(scope, Some(contract), tree, diagnostics).map(ArgumentKind::Inline)
        }
        ArgumentKindTree::Any { importer } => Some(ArgumentKind::Any { importer: *importer }),
        ArgumentKindTree::Endpoint { contract: name, importer, state } => {
            let index = find_contract(scope, name, diagnostics)?;
            let Some(number) = scope.contracts[index].state(&state.text) else {
                let text = format!("contract `{}` has no state `{}`", name.text, state.text);
                let states: Vec<String> =
                    scope.contracts[index].states.iter().map(|state| format!("`{}`", state.name.text)).collect();
                diagnostics.push(
                    Diagnostic::new(Code::UndefinedState, state.span, text, "")
                        .remedy(format!("its states are {}", states.join(", "))),
                );
                return None;
            };
            Some(ArgumentKind::Endpoint { contract: index, importer: *importer, state: number as u16 })
        }
        ArgumentKindTree::Block { element: tree, many, passing } => {
            let element = resolve_value(scope, Some(contract), tree, diagnostics)?;
            if !unit.is_plain(&element) {
                report_not_plain(scope, unit, tree, &element, diagnostics);
                return None;
            }
            Some(ArgumentKind::Block { element, many: *many, passing: *passing })
        }
    }
}

fn report_not_plain(
    scope: &Scope<'_>,
    unit: &Unit,
    tree: &ValueTree,
    element: &Value,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut because = Vec::new();
    let mut current = element.of;
    // Follows the first field that is not plain down to the cause.
    while let ValueType::Declared(index) = current {
        let (TypeKind::Struct(fields), TypeKindTree::Struct(trees)) =
            (&unit.types[index].kind, &scope.types[index].0.kind)
        else {
            break;
        };
        let tree_of = |field: &Field| trees.iter().find(|tree| tree.name.text == field.name);
        let Some(blamed) = fields.iter().find(|field| !unit.is_plain(&field.value)) else {
            diagnostics.push(padding(unit, tree, fields, tree_of));
            return;
        };
        current = blamed.value.of;
        because.extend(tree_of(blamed).map(|field| field.value.span()));
    }
    let text = format!("`{}` cannot be a block element: not every bit pattern is a valid value", tree.name.text);
    let mut diagnostic = Diagnostic::new(Code::NotPlain, tree.span(), text, "");
    for span in because {
        diagnostic = diagnostic.also(span, "required by this field");
    }
    diagnostics.push(diagnostic.remedy("use integers instead (`byte` for a bool or an enum, `uint` for a char)"));
}

/// Padding could leak data between processes.
fn padding<'a>(
    unit: &Unit,
    tree: &ValueTree,
    fields: &[Field],
    tree_of: impl Fn(&Field) -> Option<&'a FieldTree>,
) -> Diagnostic {
    let (position, bytes) = unit.padding(fields).unwrap_or((0, 0));
    let text = format!("`{}` cannot be a block element: it has padding", tree.name.text);
    let diagnostic = Diagnostic::new(Code::Padding, tree.span(), text, "");
    let behind = fields.get(position).and_then(tree_of).map(|field| field.name.span);
    let diagnostic = match behind {
        Some(span) => diagnostic
            .also(span, format!("{bytes} {} of padding after this", if bytes == 1 { "byte" } else { "bytes" })),
        None => diagnostic,
    };
    diagnostic.remedy(format!("put large fields first, or make the padding explicit: `byte[{bytes}] reserved;`"))
}

/// Warns of unused types.
pub fn check_unused(
    scope: &Scope<'_>,
    unit: &Unit,
    messages: &[Vec<Option<Message>>],
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut used: HashSet<TypeIndex> = HashSet::new();
    let mut pending: Vec<Value> = Vec::new();
    for argument in messages.iter().flatten().flatten().flat_map(|message| &message.arguments) {
        match argument.kind {
            ArgumentKind::Inline(value) => pending.push(value),
            ArgumentKind::Block { element, .. } => pending.push(element),
            ArgumentKind::Endpoint { .. } | ArgumentKind::Any { .. } => {}
        }
    }
    while let Some(value) = pending.pop() {
        let ValueType::Declared(index) = value.of else { continue };
        if used.insert(index)
            && let TypeKind::Struct(fields) = &unit.types[index].kind
        {
            pending.extend(fields.iter().map(|field| field.value));
        }
    }
    // Parts omitted because of an error might have used them.
    if diagnostics.iter().any(Diagnostic::is_error) {
        return;
    }
    for (index, (tree, _)) in scope.types.iter().enumerate() {
        if !used.contains(&index) {
            let text = format!("unused type `{}`", tree.name.text);
            diagnostics.push(
                Diagnostic::new(Code::UnusedType, tree.name.span, text, "").remedy("use it in a message, or remove it"),
            );
        }
    }
}

//! Items of a crate that another crate can use, one line each, read from its sources.
//!
//! Key function: [`public_items`]. A `pub` item counts as public even in a private module: it may be re-exported. In
//! the expansion of a macro, functions, implementations and types are recognized by their tokens. Deliberately not
//! here: the reasons given for items; those are in `docs/soundness/public-items.txt`.

use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Attribute, Fields, ImplItem, Item, Signature, TraitItem, Visibility};

/// Traits whose derivation lets a value be duplicated or made from nothing.
const DERIVED: [&str; 3] = ["Clone", "Copy", "Default"];

/// Returns every public item below a folder of sources, as lines sorted by file and position.
///
/// # Panics
/// If a source cannot be read or is not Rust.
pub fn public_items(root: &Path, folder: &str) -> Vec<String> {
    let mut files = Vec::new();
    collect(&root.join(folder), &mut files);
    files.sort();
    let mut lines = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let module = module(&file, &root.join(folder));
        items(&parsed.items, &module, &mut lines);
    }
    lines
}

fn collect(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// `channel/message.rs` as `channel::message::`.
fn module(file: &Path, root: &Path) -> String {
    let relative = file.strip_prefix(root).unwrap_or(file).with_extension("");
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let parts = parts.iter().filter(|part| *part != "mod" && *part != "lib");
    parts.map(|part| format!("{part}::")).collect()
}

fn items(items: &[Item], module: &str, lines: &mut Vec<String>) {
    for item in items {
        one(item, module, lines);
    }
}

fn one(item: &Item, module: &str, lines: &mut Vec<String>) {
    match item {
        Item::Fn(item) if is_public(&item.vis) => lines.push(format!("{module}{}", signature(&item.sig))),
        Item::Struct(item) if is_public(&item.vis) => {
            let (name, fields) = (item.ident.to_string(), public_fields(&item.fields));
            lines.push(format!("{module}struct {name} {fields}"));
            derived(&item.attrs, module, &name, lines);
        }
        Item::Enum(item) if is_public(&item.vis) => {
            let variants: Vec<String> = item.variants.iter().map(|variant| variant.ident.to_string()).collect();
            lines.push(format!("{module}enum {} {{ {} }}", item.ident, variants.join(", ")));
            derived(&item.attrs, module, &item.ident.to_string(), lines);
        }
        Item::Trait(item) if is_public(&item.vis) => {
            let is_unsafe = if item.unsafety.is_some() { "unsafe " } else { "" };
            let bounds = text(&item.supertraits);
            lines
                .push(format!("{module}{is_unsafe}trait {}: {bounds}", item.ident).trim_end_matches([':', ' ']).into());
            for member in &item.items {
                if let TraitItem::Fn(function) = member {
                    lines.push(format!("{module}{}::{}", item.ident, signature(&function.sig)));
                }
            }
        }
        Item::Const(item) if is_public(&item.vis) => {
            lines.push(format!("{module}const {}: {}", item.ident, text(&item.ty)));
        }
        Item::Static(item) if is_public(&item.vis) => {
            lines.push(format!("{module}static {}: {}", item.ident, text(&item.ty)));
        }
        Item::Type(item) if is_public(&item.vis) => lines.push(format!("{module}type {}", item.ident)),
        Item::Use(item) if is_public(&item.vis) => lines.push(format!("{module}use {}", text(&item.tree))),
        Item::Impl(item) => implementation(item, module, lines),
        Item::Mod(item) if !is_for_tests(&item.attrs) => {
            if let Some((_, inner)) = &item.content {
                items(inner, &format!("{module}{}::", item.ident), lines);
            }
        }
        Item::Macro(item) => macro_items(item, module, lines),
        _ => {}
    }
}

fn implementation(item: &syn::ItemImpl, module: &str, lines: &mut Vec<String>) {
    let of = text(&item.self_ty);
    if let Some((path, _)) = &item.trait_ {
        let is_unsafe = if item.unsafety.is_some() { "unsafe " } else { "" };
        let generics = text(&item.generics);
        lines.push(format!("{module}{is_unsafe}impl{generics} {} for {of}", text(path)));
        return;
    }
    for member in &item.items {
        match member {
            ImplItem::Fn(function) if is_public(&function.vis) => {
                lines.push(format!("{module}{of}::{}", signature(&function.sig)));
            }
            ImplItem::Const(constant) if is_public(&constant.vis) => {
                lines.push(format!("{module}{of}::const {}: {}", constant.ident, text(&constant.ty)));
            }
            _ => {}
        }
    }
}

/// Expansion of a macro; for a macro call, its arguments.
fn macro_items(item: &syn::ItemMacro, module: &str, lines: &mut Vec<String>) {
    let Some(name) = &item.ident else { return };
    if item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) {
        lines.push(format!("{module}macro {name}!"));
    }
    let mut found = Vec::new();
    inside(item.mac.tokens.clone(), &mut found);
    lines.extend(found.into_iter().map(|what| format!("{module}{name}! makes {what}")));
}

/// Finds keywords that begin an item in the tokens of a macro, with the tokens up to its body or arguments.
fn inside(tokens: TokenStream, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => inside(group.stream(), found),
            TokenTree::Ident(word) if ["fn", "impl", "struct"].iter().any(|begins| word == begins) => {
                let rest = tokens[index..].iter().take_while(|token| !matches!(token, TokenTree::Group(_)));
                found.push(squeezed(&rest.map(|token| format!("{token} ")).collect::<String>()));
            }
            _ => {}
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg") && text(&attribute.meta).contains("test"))
}

fn public_fields(fields: &Fields) -> String {
    let names = fields.iter().enumerate().filter(|(_, field)| is_public(&field.vis));
    let names = names.map(|(index, field)| field.ident.as_ref().map_or(index.to_string(), ToString::to_string));
    format!("{{ {} }}", names.collect::<Vec<_>>().join(", ")).replace("{  }", "{}")
}

fn derived(attributes: &[Attribute], module: &str, name: &str, lines: &mut Vec<String>) {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("derive")) {
        let traits = text(&attribute.meta);
        let words = traits.split(|character: char| !character.is_alphanumeric());
        for word in words.filter(|word| DERIVED.contains(word)) {
            lines.push(format!("{module}impl {word} for {name}"));
        }
    }
}

fn signature(signature: &Signature) -> String {
    let mut shown = signature.clone();
    // Parameter names are irrelevant to callers.
    for input in &mut shown.inputs {
        if let syn::FnArg::Receiver(receiver) = input {
            receiver.mutability = None;
        }
    }
    let clause = shown.generics.where_clause.take();
    text(&quote! { #shown #clause })
}

fn text(tokens: &impl ToTokens) -> String {
    squeezed(&tokens.to_token_stream().to_string())
}

/// Formats tokens as source text.
fn squeezed(tokens: &str) -> String {
    let mut text = tokens.split_whitespace().collect::<Vec<_>>().join(" ");
    for (apart, together) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" ::", "::"),
        (" < ", "<"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        (",>", ">"),
        (",)", ")"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        ("& ", "&"),
        (" :", ":"),
        (" ;", ";"),
        ("' ", "'"),
        (" [", "["),
        ("[ ", "["),
        (" ]", "]"),
        ("$ ", "$"),
        ("->[", "-> ["),
        ("->(", "-> ("),
        (",[", ", ["),
        ("->&", "-> &"),
        ("mut[", "mut ["),
        (":[", ": ["),
        ("for(", "for ("),
        ("dyn(", "dyn ("),
        ("->$", "-> $"),
    ] {
        text = text.replace(apart, together);
    }
    text.trim().into()
}

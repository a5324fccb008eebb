//! The formatter: tree to text.

use std::fmt::Write;

use abi::Direction;

use super::tree::*;

/// Formats items; parsing the result gives the same items.
pub fn print(items: &[Item]) -> String {
    let mut out = String::new();
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        match item {
            Item::Type(declared) => print_type(&mut out, declared, 0),
            Item::Contract(contract) => print_contract(&mut out, contract),
        }
    }
    out
}

/// Begins a line. Writing to a `String` cannot fail, here and below.
fn line(out: &mut String, depth: usize, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(out, "{:1$}{text}", "", depth * 2);
}

fn print_documentation(out: &mut String, documentation: &[String], depth: usize) {
    for text in documentation {
        let blank = if text.is_empty() { "" } else { " " };
        line(out, depth, format_args!("///{blank}{text}"));
    }
}

fn print_type(out: &mut String, declared: &TypeTree, depth: usize) {
    print_documentation(out, &declared.documentation, depth);
    let name = &declared.name.text;
    match &declared.kind {
        TypeKindTree::Enum(variants) => {
            line(out, depth, format_args!("enum {name} {{"));
            print_variants(out, variants, depth + 1);
        }
        TypeKindTree::Flags { number, flags } => {
            let number = number.as_ref().map_or(String::new(), |number| format!(" : {}", number.text));
            line(out, depth, format_args!("flags {name}{number} {{"));
            print_variants(out, flags, depth + 1);
        }
        TypeKindTree::Struct(fields) => {
            line(out, depth, format_args!("struct {name} {{"));
            for field in fields {
                print_documentation(out, &field.documentation, depth + 1);
                line(out, depth + 1, format_args!("{} {};", value(&field.value), field.name.text));
            }
        }
    }
    line(out, depth, format_args!("}}"));
}

fn print_variants(out: &mut String, variants: &[VariantTree], depth: usize) {
    for (index, variant) in variants.iter().enumerate() {
        print_documentation(out, &variant.documentation, depth);
        let comma = if index + 1 < variants.len() { "," } else { "" };
        line(out, depth, format_args!("{}{comma}", variant.name.text));
    }
}

fn value(tree: &ValueTree) -> String {
    let mut text = tree.contract.as_ref().map_or(String::new(), |contract| format!("{}.", contract.text));
    text.push_str(&tree.name.text);
    if let Some(length) = tree.length {
        let _ = write!(text, "[{}]", length.value);
    }
    text
}

fn print_contract(out: &mut String, contract: &ContractTree) {
    print_documentation(out, &contract.documentation, 0);
    line(out, 0, format_args!("contract {} {{", contract.name.text));
    for member in &contract.members {
        match member {
            Member::Type(declared) => print_type(out, declared, 1),
            Member::Message(message) => {
                print_documentation(out, &message.documentation, 1);
                let direction = match message.direction {
                    Some(Direction::ToExporter) => "in ",
                    Some(Direction::ToImporter) => "out ",
                    None => "",
                };
                let arguments: Vec<String> = message.arguments.iter().map(argument).collect();
                line(out, 1, format_args!("{direction}message {}({});", message.name.text, arguments.join(", ")));
            }
            Member::State(state) => {
                print_documentation(out, &state.documentation, 1);
                line(out, 1, format_args!("state {}: one {{", state.name.text));
                for branch in &state.branches {
                    line(out, 2, format_args!("{};", sequence(branch)));
                }
                line(out, 1, format_args!("}}"));
            }
        }
    }
    line(out, 0, format_args!("}}"));
}

fn argument(argument: &ArgumentTree) -> String {
    let side = |importer: bool| if importer { "Imp" } else { "Exp" };
    let kind = match &argument.kind {
        ArgumentKindTree::Inline(tree) => value(tree),
        ArgumentKindTree::Block { element, many, passing } => {
            let passing = match passing {
                Passing::Owned => "in",
                Passing::Lent => "lent",
                Passing::Returned => "returned",
            };
            format!("{}{} {passing} ExHeap", value(element), if *many { "[]" } else { "*" })
        }
        ArgumentKindTree::Endpoint { contract, importer, state } => {
            format!("{}.{}:{}", contract.text, side(*importer), state.text)
        }
        ArgumentKindTree::Any { importer } => format!("any.{}", side(*importer)),
    };
    format!("{kind} {}", argument.name.text)
}

fn sequence(tree: &Sequence) -> String {
    let steps: Vec<String> = tree
        .steps
        .iter()
        .map(|step| match step {
            Step::Name { name, sign } => match sign {
                Some((Direction::ToImporter, _)) => format!("{}!", name.text),
                Some((Direction::ToExporter, _)) => format!("{}?", name.text),
                None => name.text.clone(),
            },
            Step::Choice { alternatives, .. } => {
                let alternatives: Vec<String> = alternatives.iter().map(sequence).collect();
                format!("({})", alternatives.join(" or "))
            }
        })
        .collect();
    steps.join(" -> ")
}

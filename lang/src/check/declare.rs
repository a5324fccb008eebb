//! Declarations of a unit, and validity of their names.

use std::collections::HashMap;

use crate::naming;
use crate::syntax::{ContractTree, Item, Member, MessageTree, Name, StateTree, TypeKindTree, TypeTree};
use crate::{Code, Diagnostic};

/// Maximum length of a name in bytes; names of states inside sequences consist of several.
const MAX_NAME_BYTES: usize = 64;

/// The declarations of a unit. Of duplicates, only the first is included.
pub struct Scope<'a> {
    /// Contracts, in source order.
    pub contracts: Vec<ContractScope<'a>>,
    /// Types, with the index of the contract that declares them.
    pub types: Vec<(&'a TypeTree, Option<usize>)>,
    contract_names: HashMap<&'a str, usize>,
    type_names: HashMap<(Option<usize>, &'a str), usize>,
}

/// The declarations of a contract.
pub struct ContractScope<'a> {
    /// Its tree.
    pub tree: &'a ContractTree,
    /// Messages, by tag.
    pub messages: Vec<&'a MessageTree>,
    /// States, by number.
    pub states: Vec<&'a StateTree>,
    message_names: HashMap<&'a str, usize>,
    state_names: HashMap<&'a str, usize>,
}

impl ContractScope<'_> {
    /// The tag of a message.
    pub fn message(&self, name: &str) -> Option<usize> {
        self.message_names.get(name).copied()
    }

    /// The number of a state.
    pub fn state(&self, name: &str) -> Option<usize> {
        self.state_names.get(name).copied()
    }
}

impl<'a> Scope<'a> {
    /// The index of a contract.
    pub fn contract(&self, name: &str) -> Option<usize> {
        self.contract_names.get(name).copied()
    }

    /// The index of a type as named inside a contract or, with `None`, outside all contracts.
    pub fn declared_type(&self, contract: Option<usize>, name: &str) -> Option<usize> {
        let own = self.type_names.get(&(contract, name));
        own.or_else(|| self.type_names.get(&(None, name))).copied()
    }

    /// The index of a type declared by this contract itself.
    pub fn type_of_contract(&self, contract: usize, name: &str) -> Option<usize> {
        self.type_names.get(&(Some(contract), name)).copied()
    }
}

/// Collects the declarations.
pub fn declare<'a>(items: &'a [Item], diagnostics: &mut Vec<Diagnostic>) -> Scope<'a> {
    let mut scope =
        Scope { contracts: Vec::new(), types: Vec::new(), contract_names: HashMap::new(), type_names: HashMap::new() };
    let mut names = Names::new(Code::DuplicateItem, "declaration");
    let mut modules = Names::in_rust();
    for item in items {
        let name = match item {
            Item::Contract(tree) => &tree.name,
            Item::Type(tree) => &tree.name,
        };
        check_capital(name, diagnostics);
        if !names.add(&name.text, name, diagnostics) {
            continue;
        }
        match item {
            Item::Type(tree) => {
                check_reserved(name, diagnostics);
                scope.add_type(tree, None, diagnostics);
            }
            Item::Contract(tree) => {
                modules.add(&naming::snake(&name.text), name, diagnostics);
                let contract = declare_contract(&mut scope, tree, diagnostics);
                scope.contract_names.insert(&tree.name.text, scope.contracts.len());
                scope.contracts.push(contract);
            }
        }
    }
    scope
}

impl<'a> Scope<'a> {
    fn add_type(&mut self, tree: &'a TypeTree, contract: Option<usize>, diagnostics: &mut Vec<Diagnostic>) {
        check_capital(&tree.name, diagnostics);
        let (empty, parts): (bool, Vec<&Name>) = match &tree.kind {
            TypeKindTree::Enum(variants) => (variants.is_empty(), variants.iter().map(|part| &part.name).collect()),
            TypeKindTree::Flags { flags, .. } => (flags.is_empty(), flags.iter().map(|part| &part.name).collect()),
            TypeKindTree::Struct(fields) => (fields.is_empty(), fields.iter().map(|part| &part.name).collect()),
        };
        if empty {
            let text = format!("empty type `{}`", tree.name.text);
            let diagnostic = Diagnostic::new(Code::EmptyType, tree.name.span, text, "");
            diagnostics.push(diagnostic.remedy("add members, or remove it"));
        }
        type InRust = fn(&str) -> String;
        let (what, in_rust): (_, Option<InRust>) = match tree.kind {
            TypeKindTree::Enum(_) => ("enum value", None),
            TypeKindTree::Flags { .. } => ("flag", Some(naming::constant)),
            TypeKindTree::Struct(_) => ("field", Some(naming::snake)),
        };
        let mut names = Names::new(Code::DuplicatePart, what);
        let mut rust_names = Names::in_rust();
        for part in parts {
            if matches!(tree.kind, TypeKindTree::Struct(_)) {
                check_name(part, diagnostics);
            } else {
                check_capital(part, diagnostics);
            }
            if names.add(&part.text, part, diagnostics)
                && let Some(in_rust) = in_rust
            {
                rust_names.add(&in_rust(&part.text), part, diagnostics);
            }
        }
        self.type_names.insert((contract, &tree.name.text), self.types.len());
        self.types.push((tree, contract));
    }
}

fn declare_contract<'a>(
    scope: &mut Scope<'a>,
    tree: &'a ContractTree,
    diagnostics: &mut Vec<Diagnostic>,
) -> ContractScope<'a> {
    let index = scope.contracts.len();
    check_reserved(&tree.name, diagnostics);
    let mut contract = ContractScope {
        tree,
        messages: Vec::new(),
        states: Vec::new(),
        message_names: HashMap::new(),
        state_names: HashMap::new(),
    };
    let mut types = Names::new(Code::DuplicateItem, "type");
    // The contract's own type is in the same module.
    let mut type_names = Names::in_rust();
    type_names.add(&tree.name.text, &tree.name, diagnostics);
    let mut messages = Names::new(Code::DuplicateMessage, "message");
    let mut states = Names::new(Code::DuplicateState, "state");
    let (mut methods, mut state_types) = (Names::in_rust(), Names::in_rust());
    for member in &tree.members {
        match member {
            Member::Type(declared) => {
                if types.add(&declared.name.text, &declared.name, diagnostics) {
                    check_reserved(&declared.name, diagnostics);
                    type_names.add(&naming::variant(&declared.name.text), &declared.name, diagnostics);
                    scope.add_type(declared, Some(index), diagnostics);
                }
            }
            Member::Message(message) => {
                check_capital(&message.name, diagnostics);
                if messages.add(&message.name.text, &message.name, diagnostics) {
                    methods.add(&naming::snake(&message.name.text), &message.name, diagnostics);
                    check_arguments(message, diagnostics);
                    contract.message_names.insert(&message.name.text, contract.messages.len());
                    contract.messages.push(message);
                }
            }
            Member::State(state) => {
                check_name(&state.name, diagnostics);
                if states.add(&state.name.text, &state.name, diagnostics) {
                    state_types.add(&naming::camel(&state.name.text), &state.name, diagnostics);
                    contract.state_names.insert(&state.name.text, contract.states.len());
                    contract.states.push(state);
                }
            }
        }
    }
    if contract.states.is_empty() {
        let text = format!("contract `{}` has no states", tree.name.text);
        diagnostics.push(
            Diagnostic::new(Code::NoStates, tree.name.span, text, "")
                .remedy("add `state START: one { ... }`; a channel starts in the first state"),
        );
    }
    contract
}

fn check_arguments(message: &MessageTree, diagnostics: &mut Vec<Diagnostic>) {
    if message.name.text == "ChannelClosed" {
        diagnostics.push(
            Diagnostic::new(Code::ReservedName, message.name.span, "`ChannelClosed` is a reserved message name", "")
                .remedy("rename it; the receiver gets `ChannelClosed` when its peer closes"),
        );
    }
    let mut names = Names::new(Code::DuplicatePart, "argument");
    let mut rust_names = Names::in_rust();
    for argument in &message.arguments {
        check_name(&argument.name, diagnostics);
        if names.add(&argument.name.text, &argument.name, diagnostics) {
            rust_names.add(&naming::argument(&argument.name.text), &argument.name, diagnostics);
        }
    }
}

/// Contracts and types share a module with generated types; and `Self` is not a valid Rust name.
fn check_reserved(name: &Name, diagnostics: &mut Vec<Diagnostic>) {
    let generated = ["Imp", "Exp"].iter().any(|side| {
        name.text.strip_prefix(side).is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_lowercase()))
    });
    if generated || name.text == "Self" {
        let text = format!("the name `{}` is reserved for generated code", name.text);
        diagnostics.push(
            Diagnostic::new(Code::ReservedName, name.span, text, "")
                .remedy("rename it; `Self` and names that begin with the word `Imp` or `Exp` are reserved"),
        );
    }
}

/// Reports an invalid Rust name.
fn check_name(name: &Name, diagnostics: &mut Vec<Diagnostic>) {
    let text = if name.text.len() > MAX_NAME_BYTES {
        format!("name too long: {} characters", name.text.len())
    } else if !name.text.contains(|character: char| character.is_ascii_alphabetic()) {
        format!("`{}` contains no letter", name.text)
    } else {
        return;
    };
    diagnostics.push(
        Diagnostic::new(Code::BadName, name.span, text, "")
            .remedy(format!("use at most {MAX_NAME_BYTES} characters, including a letter")),
    );
}

/// Reports a contract, type, message, variant or flag whose name does not begin with a capital.
fn check_capital(name: &Name, diagnostics: &mut Vec<Diagnostic>) {
    check_name(name, diagnostics);
    let mut letters = name.text.chars();
    let first = letters.next().unwrap_or('_');
    if first.is_ascii_lowercase() {
        let better = format!("{}{}", first.to_ascii_uppercase(), letters.as_str());
        let text = format!("`{}` does not begin with a capital letter", name.text);
        let diagnostic = Diagnostic::new(Code::BadName, name.span, text, "");
        diagnostics.push(diagnostic.remedy(format!("write `{better}`")));
    }
}

/// Names of one kind, which must be unique.
struct Names {
    code: Code,
    what: &'static str,
    seen: HashMap<String, Name>,
}

impl Names {
    fn new(code: Code, what: &'static str) -> Names {
        Names { code, what, seen: HashMap::new() }
    }

    fn in_rust() -> Names {
        Names::new(Code::SameRustName, "")
    }

    /// Returns whether the name is new; reports it otherwise.
    fn add(&mut self, key: &str, name: &Name, diagnostics: &mut Vec<Diagnostic>) -> bool {
        let Some(first) = self.seen.get(key) else {
            self.seen.insert(key.to_string(), name.clone());
            return true;
        };
        let text = if self.code == Code::SameRustName {
            format!("`{}` and `{}` are both `{key}` in Rust", first.text, name.text)
        } else {
            format!("duplicate {} `{}`", self.what, name.text)
        };
        diagnostics.push(
            Diagnostic::new(self.code, name.span, text, "redefined here")
                .also(first.span, "first defined here")
                .remedy("rename one of them"),
        );
        false
    }
}

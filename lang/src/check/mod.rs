//! Semantic checks: tree to checked contracts. [`declare`] checks names, [`types`] the content of messages, [`states`]
//! the state machine of each contract, [`flow`] properties of its paths, [`endpoints`] which endpoints may be moved.

mod declare;
mod endpoints;
mod flow;
mod states;
mod types;

use abi::{Automaton, BlockShape, EndpointShape, MessageShape, NO_TRANSITION, ScalarRange, StateRow, limits};
use sha2::{Digest, Sha256};

use crate::syntax::Item;
use crate::unit::{ArgumentKind, Contract, Message, State, TypeKind, Unit, Value, ValueType};
use crate::{Code, Diagnostic};

/// Checks the items of a unit; `None` if there are errors.
pub fn check(items: &[Item], diagnostics: &mut Vec<Diagnostic>) -> Option<Unit> {
    let scope = declare::declare(items, diagnostics);
    let types = types::resolve_types(&scope, diagnostics);
    let mut unit = Unit { types, contracts: Vec::new() };
    let mut messages = Vec::new();
    let mut graphs = Vec::new();
    for index in 0..scope.contracts.len() {
        let directions = states::directions(&scope, index, diagnostics);
        messages.push(types::resolve_messages(&scope, &unit, index, &directions, diagnostics));
        graphs.push(states::lower(&scope, index, &directions, diagnostics));
    }
    types::check_unused(&scope, &unit, &messages, diagnostics);
    endpoints::check(&scope, &graphs, diagnostics);
    let mut bounds = Vec::new();
    for (index, graph) in graphs.iter().enumerate() {
        bounds.push(flow::check(&scope, index, &unit, &messages[index], graph, diagnostics));
    }
    if diagnostics.iter().any(Diagnostic::is_error) {
        return None;
    }
    let shapes: Vec<Vec<MessageShape>> = messages
        .iter()
        .map(|messages| messages.iter().flatten().map(|message| shape(&scope, &unit, message)).collect())
        .collect();
    for (index, ((messages, graph), (bounds, shapes))) in
        messages.into_iter().zip(graphs).zip(bounds.into_iter().zip(shapes)).enumerate()
    {
        let messages = messages.into_iter().flatten().collect();
        unit.contracts.push(assemble(&scope, &unit, index, messages, graph, bounds, shapes));
    }
    Some(unit)
}

fn assemble(
    scope: &declare::Scope<'_>,
    unit: &Unit,
    index: usize,
    messages: Vec<Message>,
    graph: states::Graph,
    bounds: flow::Bounds,
    shapes: Vec<MessageShape>,
) -> Contract {
    let tree = scope.contracts[index].tree;
    let rows = graph
        .nodes
        .iter()
        .map(|node| {
            let mut next = vec![NO_TRANSITION; shapes.len()];
            for edge in &node.edges {
                next[edge.message] = edge.target as u16;
            }
            StateRow { name: node.name.clone(), next }
        })
        .collect();
    let automaton = Automaton {
        name: tree.name.text.clone(),
        queue_to_importer: bounds.to_importer,
        queue_to_exporter: bounds.to_exporter,
        messages: shapes,
        states: rows,
    };
    let fingerprint = Sha256::digest(automaton.encode()).into();
    let types = (0..unit.types.len()).filter(|&declared| unit.types[declared].contract == Some(index)).collect();
    let states = graph
        .nodes
        .into_iter()
        .map(|node| State {
            name: node.name,
            rust_name: node.rust_name,
            documentation: node.documentation,
            intermediate: node.intermediate,
        })
        .collect();
    Contract {
        name: tree.name.text.clone(),
        documentation: tree.documentation.clone(),
        types,
        messages,
        states,
        automaton,
        fingerprint,
    }
}

/// The shape of a message for the kernel.
fn shape(scope: &declare::Scope<'_>, unit: &Unit, message: &Message) -> MessageShape {
    let mut shape = MessageShape {
        name: message.name.clone(),
        direction: message.direction,
        scalar_words: 0,
        ranges: Vec::new(),
        blocks: Vec::new(),
        endpoints: Vec::new(),
    };
    for argument in &message.arguments {
        match &argument.kind {
            ArgumentKind::Inline(value) => lay_out(unit, value, &mut shape),
            ArgumentKind::Block { element, passing, .. } => shape.blocks.push(BlockShape {
                type_tag: abi::type_tag(&unit.canonical_text(element)),
                lent: *passing == crate::syntax::Passing::Lent,
                returned: *passing == crate::syntax::Passing::Returned,
            }),
            ArgumentKind::Endpoint { contract, importer, state } => shape.endpoints.push(EndpointShape {
                contract: abi::name_tag(&scope.contracts[*contract].tree.name.text),
                importer: *importer,
                state: *state,
            }),
            ArgumentKind::Any { importer } => {
                shape.endpoints.push(EndpointShape { contract: 0, importer: *importer, state: NO_TRANSITION });
            }
        }
    }
    shape
}

/// Appends the words of an inline value, with their ranges.
fn lay_out(unit: &Unit, value: &Value, shape: &mut MessageShape) {
    let word = |shape: &mut MessageShape, max: u64| {
        if max != u64::MAX {
            shape.ranges.push(ScalarRange { word: shape.scalar_words, max });
        }
        shape.scalar_words = shape.scalar_words.saturating_add(1);
    };
    if value.is_bytes() {
        let length = value.length.unwrap_or(0);
        for _ in 0..length / 8 {
            word(shape, u64::MAX);
        }
        if !length.is_multiple_of(8) {
            word(shape, (1 << (8 * (length % 8))) - 1);
        }
        return;
    }
    for _ in 0..value.length.unwrap_or(1) {
        // Far beyond the message size, which the size check reports; counting can stop.
        if shape.scalar_words as usize > 4 * limits::MESSAGE_WORDS {
            return;
        }
        let before = shape.scalar_words;
        match value.of {
            ValueType::Scalar(scalar) => word(shape, scalar.max()),
            ValueType::Declared(index) => match &unit.types[index].kind {
                TypeKind::Enum(variants) => word(shape, variants.len().saturating_sub(1) as u64),
                TypeKind::Flags { flags, .. } => word(shape, crate::unit::all_flags(flags.len())),
                TypeKind::Struct(fields) => {
                    for field in fields {
                        lay_out(unit, &field.value, shape);
                    }
                }
            },
        }
        if shape.scalar_words == before {
            return;
        }
    }
}

/// Reports a message that exceeds the message buffer.
fn check_size(
    scope: &declare::Scope<'_>,
    unit: &Unit,
    message: &Message,
    span: crate::Span,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let shape = shape(scope, unit, message);
    if shape.words() <= limits::MESSAGE_WORDS {
        return;
    }
    let text = format!(
        "`{}` takes {} words, but a message holds {} words of 8 bytes",
        message.name,
        shape.words(),
        limits::MESSAGE_WORDS
    );
    let label = format!(
        "{} words of values, {} of blocks, {} of endpoints",
        shape.scalar_words,
        shape.blocks.len() * limits::BLOCK_WORDS,
        shape.endpoints.len() * limits::ENDPOINT_WORDS
    );
    diagnostics.push(
        Diagnostic::new(Code::MessageTooLarge, span, text, label)
            .remedy("pass large data in a block (`byte[] in ExHeap data`), or split the message"),
    );
}

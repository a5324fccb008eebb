//! The state machine of a contract: its named states, and another state per arrow inside a sequence.

use std::collections::{HashMap, HashSet};

use abi::{Direction, NO_TRANSITION};
use diagnostics::nearest;

use super::declare::{ContractScope, Scope};
use crate::naming;
use crate::syntax::{Name, Sequence, Step};
use crate::{Code, Diagnostic, Span};

/// Maximum number of states.
const MAX_STATES: usize = 4096;

/// States and transitions. The first `named` nodes are the named states.
pub struct Graph {
    /// States; state 0 is the start state.
    pub nodes: Vec<Node>,
    /// Direction of each message, if known.
    pub directions: Vec<Option<Direction>>,
}

/// A state.
pub struct Node {
    /// Its name, or `READY after Say`.
    pub name: String,
    /// Its name in Rust.
    pub rust_name: String,
    /// Documentation lines.
    pub documentation: Vec<String>,
    /// Whether it is unnamed.
    pub intermediate: bool,
    /// Span of its declaration.
    pub span: Span,
    /// Its outgoing transitions.
    pub edges: Vec<Edge>,
}

/// A transition.
pub struct Edge {
    /// Tag of its message.
    pub message: usize,
    /// Next state.
    pub target: usize,
    /// Span of the message.
    pub span: Span,
}

impl Graph {
    /// The sender in a state: the direction of its first message.
    pub fn sender_in(&self, node: usize) -> Option<Direction> {
        self.nodes.get(node)?.edges.iter().find_map(|edge| self.directions[edge.message])
    }
}

/// `!` or `?`.
pub fn sign(direction: Direction) -> char {
    match direction {
        Direction::ToImporter => '!',
        Direction::ToExporter => '?',
    }
}

/// The direction of each message of a contract: as declared, or else by its signs.
pub fn directions(scope: &Scope<'_>, contract: usize, diagnostics: &mut Vec<Diagnostic>) -> Vec<Option<Direction>> {
    let contract = &scope.contracts[contract];
    let mut uses: Vec<Vec<(Direction, Span)>> = vec![Vec::new(); contract.messages.len()];
    let mut pending: Vec<&Step> =
        contract.states.iter().flat_map(|state| &state.branches).flat_map(|branch| &branch.steps).collect();
    while let Some(step) = pending.pop() {
        match step {
            Step::Choice { alternatives, .. } => pending.extend(alternatives.iter().flat_map(|inner| &inner.steps)),
            Step::Name { name, sign } => {
                if let (Some(message), Some((direction, _))) = (contract.message(&name.text), sign) {
                    uses[message].push((*direction, step.span()));
                }
            }
        }
    }
    let mut directions = Vec::new();
    for (message, uses) in contract.messages.iter().zip(&mut uses) {
        uses.sort_by_key(|(_, span)| *span);
        let name = &message.name;
        let direction = message.direction.or(uses.first().map(|(direction, _)| *direction));
        directions.push(direction);
        let Some(direction) = direction else {
            let text = format!("message `{}` has no direction", name.text);
            let diagnostic = Diagnostic::new(Code::NoDirection, name.span, text, "");
            diagnostics.push(
                diagnostic.remedy("write `in message` (importer to exporter) or `out message` (exporter to importer)"),
            );
            continue;
        };
        let Some((other, span)) = uses.iter().find(|(used, _)| *used != direction) else { continue };
        let (right, wrong) = (sign(direction), sign(*other));
        diagnostics.push(if message.direction.is_some() {
            let word = if direction == Direction::ToImporter { "out" } else { "in" };
            let text = format!("`{}` is declared `{word}`, so its sign is `{right}`", name.text);
            Diagnostic::new(Code::WrongSign, *span, text, format!("`{wrong}` here"))
                .also(name.span, "declared here")
                .remedy(format!("write `{}{right}`, or change the declaration", name.text))
        } else {
            let first = uses.first().map_or(name.span, |(_, span)| *span);
            let text = format!("`{}` is used in both directions", name.text);
            Diagnostic::new(Code::SignsDisagree, *span, text, format!("`{wrong}` here"))
                .also(first, format!("`{right}` here"))
                .remedy("declare two messages, one `in` and one `out`")
        });
    }
    directions
}

/// Builds the states of a contract.
pub fn lower(
    scope: &Scope<'_>,
    contract: usize,
    directions: &[Option<Direction>],
    diagnostics: &mut Vec<Diagnostic>,
) -> Graph {
    let contract = &scope.contracts[contract];
    let nodes = contract
        .states
        .iter()
        .map(|state| Node {
            name: state.name.text.clone(),
            rust_name: naming::camel(&state.name.text),
            documentation: state.documentation.clone(),
            intermediate: false,
            span: state.name.span,
            edges: Vec::new(),
        })
        .collect::<Vec<_>>();
    let rust_names = nodes.iter().map(|node| node.rust_name.clone()).collect();
    let mut lowering = Lowering { contract, diagnostics, nodes, rust_names };
    for (index, state) in contract.states.iter().enumerate() {
        for branch in &state.branches {
            let path = Path { state: index, text: String::new() };
            lowering.sequence(index, branch, After::Nothing, &path);
        }
    }
    let Lowering { mut nodes, .. } = lowering;
    if contract.messages.len() >= NO_TRANSITION as usize || nodes.len() > MAX_STATES {
        let text = format!("too many messages and states: {} and {}", contract.messages.len(), nodes.len());
        diagnostics.push(
            Diagnostic::new(Code::TooMany, contract.tree.name.span, text, "")
                .remedy(format!("a contract has at most {MAX_STATES} states; use more than one contract")),
        );
        nodes.truncate(contract.states.len());
        nodes.iter_mut().for_each(|node| node.edges.clear());
    }
    check_ambiguity(contract, &mut nodes, diagnostics);
    check_directions(contract, &nodes, directions, diagnostics);
    Graph { nodes, directions: directions.to_vec() }
}

/// The continuation of a sequence that has no more steps.
#[derive(Clone, Copy)]
enum After {
    /// A state.
    State(usize),
    /// None.
    Nothing,
}

/// Path to a state inside a sequence, for its name.
struct Path {
    state: usize,
    text: String,
}

impl Path {
    fn then(&self, step: &str) -> Path {
        let text = if self.text.is_empty() { step.to_string() } else { format!("{} then {step}", self.text) };
        Path { state: self.state, text }
    }
}

struct Lowering<'a, 'b> {
    contract: &'a ContractScope<'a>,
    diagnostics: &'b mut Vec<Diagnostic>,
    nodes: Vec<Node>,
    rust_names: HashSet<String>,
}

/// Referent of a name, with or without a sign.
enum Meaning {
    Message(usize),
    State(usize),
    Unknown,
}

impl Lowering<'_, '_> {
    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn sequence(&mut self, from: usize, sequence: &Sequence, after: After, path: &Path) {
        self.steps(from, &sequence.steps, after, path);
    }

    /// Adds transitions for `steps` that begin in the state `from`.
    fn steps(&mut self, from: usize, steps: &[Step], after: After, path: &Path) {
        let Some((first, rest)) = steps.split_first() else { return };
        match first {
            Step::Name { name, sign } => match self.meaning(name, sign.is_some()) {
                Meaning::Unknown => {}
                Meaning::State(_) => {
                    let text = format!("`{}` is a state, but a sequence begins with a message", name.text);
                    self.report(
                        Diagnostic::new(Code::NoMessage, name.span, text, "")
                            .remedy("write the message that leaves the state before it"),
                    );
                }
                Meaning::Message(message) => {
                    let path = path.then(&name.text);
                    let Some(target) = self.target(first.span(), rest, after, &path) else { return };
                    self.nodes[from].edges.push(Edge { message, target, span: first.span() });
                    if self.goes_on(rest) {
                        self.steps(target, rest, after, &path);
                    }
                }
            },
            Step::Choice { alternatives, span } => {
                if let Some(more) = rest.first()
                    && !alternatives.iter().any(|alternative| self.falls_through(alternative))
                {
                    self.report(
                        Diagnostic::new(Code::StateInside, more.span(), "unreachable part of a sequence", "")
                            .also(*span, "every alternative ends in a state")
                            .remedy("end the sequence with `;` after the choice, or remove the states from it"),
                    );
                    return;
                }
                let path_after = path.then(&describe_choice(alternatives));
                // If all alternatives end in states of their own, no continuation is needed.
                let joined = if rest.is_empty() {
                    after
                } else {
                    match self.target(*span, rest, after, &path_after) {
                        Some(target) => After::State(target),
                        None => return,
                    }
                };
                for alternative in alternatives {
                    self.sequence(from, alternative, joined, path);
                }
                if let After::State(target) = joined
                    && self.goes_on(rest)
                {
                    self.steps(target, rest, after, &path_after);
                }
            }
        }
    }

    /// Whether a sequence can be continued: it does not end in a state.
    fn falls_through(&self, sequence: &Sequence) -> bool {
        match sequence.steps.last() {
            Some(Step::Name { name, sign: None }) => self.contract.state(&name.text).is_none(),
            Some(Step::Choice { alternatives, .. }) => alternatives.iter().any(|inner| self.falls_through(inner)),
            _ => true,
        }
    }

    /// Whether `rest` has steps that begin in a state of their own.
    fn goes_on(&self, rest: &[Step]) -> bool {
        match rest {
            [] => false,
            [Step::Name { name, sign: None }] => self.contract.message(&name.text).is_some(),
            _ => true,
        }
    }

    /// The next state of a message or choice that is followed by `rest`.
    fn target(&mut self, span: Span, rest: &[Step], after: After, path: &Path) -> Option<usize> {
        let Some(next) = rest.first() else {
            if let After::State(state) = after {
                return Some(state);
            }
            self.report(
                Diagnostic::new(Code::NoNextState, span, "sequence does not end in a state", "nothing follows")
                    .remedy("add `-> STATE`; to end the conversation, use an empty state: `state ENDED: one { }`"),
            );
            return None;
        };
        if let Step::Name { name, sign } = next {
            match self.meaning(name, sign.is_some()) {
                Meaning::Unknown => return None,
                Meaning::State(state) => {
                    if let Some(more) = rest.get(1) {
                        let text = format!("sequence continues after state `{}`", name.text);
                        self.report(
                            Diagnostic::new(Code::StateInside, more.span(), text, "unreachable")
                                .also(name.span, "the sequence ends with this state")
                                .remedy("end the sequence there with `;`, or remove the state"),
                        );
                        return None;
                    }
                    return Some(state);
                }
                Meaning::Message(_) => {}
            }
        }
        Some(self.intermediate(span, path))
    }

    fn meaning(&mut self, name: &Name, signed: bool) -> Meaning {
        let message = self.contract.message(&name.text);
        let state = self.contract.state(&name.text);
        match (message, state) {
            (Some(message), None) => Meaning::Message(message),
            (Some(message), Some(_)) if signed => Meaning::Message(message),
            (None, Some(state)) if !signed => Meaning::State(state),
            (Some(_), Some(_)) => {
                let text = format!("`{}` is both a message and a state", name.text);
                self.report(
                    Diagnostic::new(Code::MessageOrState, name.span, text, "message or state?")
                        .remedy("write the message with its sign, `!` or `?`, or rename the state"),
                );
                Meaning::Unknown
            }
            (None, _) => {
                self.report(self.undefined(name, signed));
                Meaning::Unknown
            }
        }
    }

    fn undefined(&self, name: &Name, signed: bool) -> Diagnostic {
        let shouted = !name.text.contains(|character: char| character.is_ascii_lowercase());
        let (code, what, example) = if signed || !shouted {
            (Code::UndefinedMessage, "message", format!("in message {}();", name.text))
        } else {
            (Code::UndefinedState, "state", format!("state {}: one {{ ... }}", name.text))
        };
        let candidates: Vec<&str> = if code == Code::UndefinedMessage {
            self.contract.messages.iter().map(|message| message.name.text.as_str()).collect()
        } else {
            self.contract.states.iter().map(|state| state.name.text.as_str()).collect()
        };
        let text = format!("contract `{}` has no {what} `{}`", self.contract.tree.name.text, name.text);
        let diagnostic = Diagnostic::new(code, name.span, text, "");
        diagnostic.remedy(match nearest(&name.text, candidates) {
            Some(close) => format!("did you mean `{close}`?"),
            None => format!("declare it: `{example}`"),
        })
    }

    fn intermediate(&mut self, span: Span, path: &Path) -> usize {
        let named = &self.nodes[path.state];
        let name = format!("{} after {}", named.name, path.text);
        let words: Vec<String> = path
            .text
            .split(' ')
            .map(|word| match word {
                "then" => "Then".to_string(),
                "or" => "Or".to_string(),
                word => naming::camel(word),
            })
            .collect();
        let plain = format!("{}After{}", named.rust_name, words.concat());
        let mut rust_name = plain.clone();
        let mut number = 2;
        while !self.rust_names.insert(rust_name.clone()) {
            rust_name = format!("{plain}{number}");
            number += 1;
        }
        self.nodes.push(Node {
            name,
            rust_name,
            documentation: Vec::new(),
            intermediate: true,
            span,
            edges: Vec::new(),
        });
        self.nodes.len() - 1
    }
}

/// The first messages of a choice, for the name of the state after it.
fn describe_choice(alternatives: &[Sequence]) -> String {
    let mut words = Vec::new();
    for alternative in alternatives {
        match alternative.steps.first() {
            Some(Step::Name { name, .. }) => words.push(name.text.clone()),
            Some(Step::Choice { alternatives, .. }) => words.push(describe_choice(alternatives)),
            None => {}
        }
    }
    words.join(" or ")
}

/// Reports messages that begin several sequences of a state, and keeps the first.
fn check_ambiguity(contract: &ContractScope<'_>, nodes: &mut [Node], diagnostics: &mut Vec<Diagnostic>) {
    for node in nodes {
        let mut first: HashMap<usize, Span> = HashMap::new();
        node.edges.retain(|edge| {
            let Some(other) = first.get(&edge.message) else {
                first.insert(edge.message, edge.span);
                return true;
            };
            let name = &contract.messages[edge.message].name.text;
            let text = format!("two sequences of state `{}` begin with `{name}`", node.name);
            diagnostics.push(
                Diagnostic::new(Code::Ambiguous, edge.span, text, "redefined here")
                    .also(*other, "first defined here")
                    .remedy(format!("factor out the common message: `{name} -> (... or ...)`")),
            );
            false
        });
    }
}

/// Reports states in which both sides may send.
fn check_directions(
    contract: &ContractScope<'_>,
    nodes: &[Node],
    directions: &[Option<Direction>],
    diagnostics: &mut Vec<Diagnostic>,
) {
    for node in nodes {
        let mut known = node.edges.iter().filter_map(|edge| Some((edge, directions[edge.message]?)));
        let Some((first, direction)) = known.next() else { continue };
        let Some((other, _)) = known.find(|(_, other)| *other != direction) else { continue };
        let name = |edge: &Edge| &contract.messages[edge.message].name.text;
        let sides = |direction| match direction {
            Direction::ToImporter => "the exporter sends this",
            Direction::ToExporter => "the importer sends this",
        };
        let opposite = if direction == Direction::ToImporter { Direction::ToExporter } else { Direction::ToImporter };
        let text = format!(
            "both sides may send in state `{}`: `{}{}` and `{}{}`",
            node.name,
            name(first),
            sign(direction),
            name(other),
            sign(opposite)
        );
        diagnostics.push(
            Diagnostic::new(Code::MixedDirections, other.span, text, sides(opposite))
                .also(first.span, sides(direction))
                .remedy("let only one side send in each state; move the other's message to a following state"),
        );
    }
}

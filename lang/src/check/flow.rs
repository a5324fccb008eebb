//! Path properties of a contract: all states are reachable, both sides send in every cycle, queues are bounded, loans
//! are returned.

use std::collections::{BTreeMap, HashSet};

use abi::{Direction, limits};

use super::declare::Scope;
use super::states::{Graph, sign};
use crate::syntax::Passing;
use crate::unit::{ArgumentKind, Message, Unit};
use crate::{Code, Diagnostic};

/// Maximum messages queued for each side.
#[derive(Clone, Copy, Default)]
pub struct Bounds {
    /// For the importer.
    pub to_importer: u16,
    /// For the exporter.
    pub to_exporter: u16,
}

/// Checks the paths of a contract.
pub fn check(
    scope: &Scope<'_>,
    contract: usize,
    unit: &Unit,
    messages: &[Option<Message>],
    graph: &Graph,
    diagnostics: &mut Vec<Diagnostic>,
) -> Bounds {
    let confused = |code| matches!(code, Code::WrongSign | Code::SignsDisagree | Code::MixedDirections);
    // With contradictory directions, cycles and queues would only repeat the errors.
    if graph.nodes.is_empty() || diagnostics.iter().any(|diagnostic| confused(diagnostic.code)) {
        return Bounds::default();
    }
    let flow = Flow { scope, contract, graph };
    let reached = flow.reached();
    // A sequence that was skipped because of an error would make others seem unreachable.
    if !diagnostics.iter().any(Diagnostic::is_error) {
        flow.check_reached(&reached, diagnostics);
    }
    let to_importer = flow.queue_bound(Direction::ToImporter, &reached, diagnostics);
    let to_exporter = flow.queue_bound(Direction::ToExporter, &reached, diagnostics);
    if messages.iter().all(Option::is_some) {
        flow.check_loans(unit, messages, diagnostics);
    }
    Bounds { to_importer, to_exporter }
}

struct Flow<'a> {
    scope: &'a Scope<'a>,
    contract: usize,
    graph: &'a Graph,
}

/// Blocks on loan: number by lender and type.
type Loans = BTreeMap<(bool, String), usize>;

impl Flow<'_> {
    fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.graph.nodes.len()];
        let mut pending = vec![0];
        while let Some(node) = pending.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                pending.extend(self.graph.nodes[node].edges.iter().map(|edge| edge.target));
            }
        }
        reached
    }

    fn check_reached(&self, reached: &[bool], diagnostics: &mut Vec<Diagnostic>) {
        let contract = &self.scope.contracts[self.contract];
        let start = &self.graph.nodes[0];
        for (node, _) in self.graph.nodes.iter().zip(reached).filter(|(node, reached)| !**reached && !node.intermediate)
        {
            let text = format!("unreachable state `{}`", node.name);
            diagnostics.push(
                Diagnostic::new(Code::Unreachable, node.span, text, "")
                    .also(start.span, "conversations start in this state, the first")
                    .remedy("add a sequence that ends in it, move it to the front, or remove it"),
            );
        }
        let sent: HashSet<usize> =
            self.graph.nodes.iter().flat_map(|node| &node.edges).map(|edge| edge.message).collect();
        for (tag, message) in contract.messages.iter().enumerate().filter(|(tag, _)| !sent.contains(tag)) {
            let text = format!("`{}` is never sent", message.name.text);
            let marked = self.graph.directions[tag].map_or(String::new(), |direction| sign(direction).to_string());
            diagnostics.push(
                Diagnostic::new(Code::UnusedMessage, message.name.span, text, "")
                    .remedy(format!("use it in a state (`{}{marked}`), or remove it", message.name.text)),
            );
        }
    }

    /// The edges of a node in one direction.
    fn edges(&self, node: usize, direction: Direction) -> impl Iterator<Item = &super::states::Edge> {
        let edges = self.graph.nodes[node].edges.iter();
        edges.filter(move |edge| self.graph.directions[edge.message] == Some(direction))
    }

    /// Returns the longest run of messages in one direction. A sender can continue only after a message from its peer,
    /// which has received the whole run by then; so no more can be queued.
    fn queue_bound(&self, direction: Direction, reached: &[bool], diagnostics: &mut Vec<Diagnostic>) -> u16 {
        let count = self.graph.nodes.len();
        // 0: new, 1: on the path, 2: done. An explicit stack, as contracts may be long.
        let mut marks = vec![0u8; count];
        let mut longest = vec![0usize; count];
        for root in (0..count).filter(|&node| reached[node]) {
            if marks[root] != 0 {
                continue;
            }
            let mut path = vec![(root, self.edges(root, direction))];
            marks[root] = 1;
            while let Some((node, edges)) = path.last_mut() {
                let node = *node;
                let Some(edge) = edges.next() else {
                    marks[node] = 2;
                    longest[node] = self.edges(node, direction).map(|edge| 1 + longest[edge.target]).max().unwrap_or(0);
                    path.pop();
                    continue;
                };
                match marks[edge.target] {
                    0 => {
                        marks[edge.target] = 1;
                        path.push((edge.target, self.edges(edge.target, direction)));
                    }
                    1 => {
                        let nodes: Vec<usize> = path.iter().map(|(node, _)| *node).collect();
                        self.report_cycle(direction, &nodes, edge, diagnostics);
                        return 0;
                    }
                    _ => {}
                }
            }
        }
        let bound = longest.iter().copied().max().unwrap_or(0);
        if bound > limits::QUEUE_BOUND as usize {
            self.report_queue(direction, bound, &longest, diagnostics);
            return 0;
        }
        bound as u16
    }

    fn report_cycle(
        &self,
        direction: Direction,
        path: &[usize],
        last: &super::states::Edge,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let begin = path.iter().position(|&node| node == last.target).unwrap_or(0);
        let mut text = String::new();
        for (position, &node) in path[begin..].iter().enumerate() {
            let next = path.get(begin + position + 1).copied().unwrap_or(last.target);
            let edge = self.edges(node, direction).find(|edge| edge.target == next);
            let message = edge.map_or(last.message, |edge| edge.message);
            let name = &self.scope.contracts[self.contract].messages[message].name.text;
            text.push_str(&format!("{}{} -> ", name, sign(direction)));
        }
        let (sender, listener) = match direction {
            Direction::ToImporter => ("exporter", "importer"),
            Direction::ToExporter => ("importer", "exporter"),
        };
        let start = &self.graph.nodes[last.target];
        let message = format!("the {sender} can send without bound, and the {listener} never answers");
        diagnostics.push(
            Diagnostic::new(Code::OneWayCycle, last.span, message, format!("back to `{}`", start.name))
                .also(start.span, format!("{text}`{}`", start.name))
                .remedy(format!("add a message from the {listener} to the cycle, such as an acknowledgement")),
        );
    }

    fn report_queue(&self, direction: Direction, bound: usize, longest: &[usize], diagnostics: &mut Vec<Diagnostic>) {
        let start = longest.iter().position(|&length| length == bound).unwrap_or(0);
        let (who, listener) = match direction {
            Direction::ToImporter => ("exporter", "importer"),
            Direction::ToExporter => ("importer", "exporter"),
        };
        let message =
            format!("the {who} can send {bound} messages in a row, but a queue holds {}", limits::QUEUE_BOUND);
        diagnostics.push(
            Diagnostic::new(Code::QueueTooLong, self.graph.nodes[start].span, message, "starting in this state")
                .remedy(format!("add an answer from the {listener} in between, or send the data in one block")),
        );
    }

    fn check_loans(&self, unit: &Unit, messages: &[Option<Message>], diagnostics: &mut Vec<Diagnostic>) {
        let mut known: Vec<Option<Loans>> = vec![None; self.graph.nodes.len()];
        let mut from: Vec<Option<crate::Span>> = vec![None; self.graph.nodes.len()];
        let mut reported: HashSet<usize> = HashSet::new();
        known[0] = Some(Loans::new());
        let mut pending = std::collections::VecDeque::from([0]);
        while let Some(node) = pending.pop_front() {
            let Some(loans) = known[node].clone() else { continue };
            self.check_end(node, &loans, diagnostics);
            for edge in &self.graph.nodes[node].edges {
                let Some(message) = &messages[edge.message] else { continue };
                let Some(next) = settle(unit, message, loans.clone()) else {
                    if reported.insert(edge.message) {
                        diagnostics.push(self.report_returned(message, edge, &loans));
                    }
                    continue;
                };
                match &known[edge.target] {
                    None => {
                        known[edge.target] = Some(next);
                        from[edge.target] = Some(edge.span);
                        pending.push_back(edge.target);
                    }
                    Some(before) if *before != next => {
                        diagnostics.push(self.report_differ(edge, &next, before, from[edge.target]));
                    }
                    Some(_) => {}
                }
            }
        }
    }

    fn check_end(&self, node: usize, loans: &Loans, diagnostics: &mut Vec<Diagnostic>) {
        let state = &self.graph.nodes[node];
        if state.edges.is_empty() && !loans.is_empty() && !diagnostics.iter().any(Diagnostic::is_error) {
            let text = format!("the conversation ends in `{}` with {} on loan", state.name, describe(loans));
            diagnostics.push(
                Diagnostic::new(Code::LoanAtEnd, state.span, text, "")
                    .remedy("return it before; otherwise the lender gets it back only when the borrower releases it"),
            );
        }
    }

    fn report_returned(&self, message: &Message, edge: &super::states::Edge, loans: &Loans) -> Diagnostic {
        let declaration = self.scope.contracts[self.contract].messages[edge.message].name.span;
        let text = format!("`{}` returns a block that is not on loan here", message.name);
        let lender = match message.direction {
            Direction::ToImporter => "the importer",
            Direction::ToExporter => "the exporter",
        };
        let remedy = format!("lend it in an earlier message of {lender} (`lent ExHeap`), or pass it as `in ExHeap`");
        Diagnostic::new(Code::ReturnedWithoutLoan, edge.span, text, format!("on loan here: {}", describe(loans)))
            .also(declaration, "declared here")
            .remedy(remedy)
    }

    fn report_differ(
        &self,
        edge: &super::states::Edge,
        next: &Loans,
        before: &Loans,
        other: Option<crate::Span>,
    ) -> Diagnostic {
        let state = &self.graph.nodes[edge.target];
        let text = format!("state `{}` is reached with different blocks on loan", state.name);
        let first = other.unwrap_or(state.span);
        Diagnostic::new(Code::LoansDiffer, edge.span, text, format!("after this: {}", describe(next)))
            .also(
                first,
                format!("{}: {}", if other.is_some() { "after this" } else { "at the start" }, describe(before)),
            )
            .remedy("return the block on every path that lends it (`returned ExHeap`), or end the paths in different states")
    }
}

/// The loans after a message; `None` if it returns a block that is not on loan.
fn settle(unit: &Unit, message: &Message, mut loans: Loans) -> Option<Loans> {
    let by_importer = message.direction == Direction::ToExporter;
    let blocks = message.arguments.iter().filter_map(|argument| match &argument.kind {
        ArgumentKind::Block { element, many, passing } => {
            let text = format!("{}{}", unit.canonical_text(element), if *many { "[]" } else { "*" });
            Some((*passing, text))
        }
        _ => None,
    });
    let blocks: Vec<(Passing, String)> = blocks.collect();
    for (_, text) in blocks.iter().filter(|(passing, _)| *passing == Passing::Returned) {
        let key = (!by_importer, text.clone());
        let count = loans.get_mut(&key)?;
        *count -= 1;
        if *count == 0 {
            loans.remove(&key);
        }
    }
    for (_, text) in blocks.iter().filter(|(passing, _)| *passing == Passing::Lent) {
        *loans.entry((by_importer, text.clone())).or_default() += 1;
    }
    Some(loans)
}

fn describe(loans: &Loans) -> String {
    if loans.is_empty() {
        return "nothing".into();
    }
    let one = |((by_importer, text), count): (&(bool, String), &usize)| {
        let side = if *by_importer { "importer" } else { "exporter" };
        let text = text.split('{').next().unwrap_or(text);
        let text = if text.ends_with(']') || text.ends_with('*') { text.to_string() } else { format!("{text}[]") };
        if *count == 1 { format!("one `{text}` of the {side}") } else { format!("{count} `{text}` of the {side}") }
    };
    loans.iter().map(one).collect::<Vec<_>>().join(", ")
}

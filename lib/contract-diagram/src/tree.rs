//! Each state as a tree of outgoing messages.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use abi::{Automaton, Direction, NO_TRANSITION};

/// Maximum nesting of joints; deeper ones get a tree of their own.
const DEPTH: usize = 24;

/// Draws all states.
pub fn states(out: &mut String, automaton: &Automaton) {
    let mut drawing = Drawing { automaton, drawn: BTreeSet::new(), pending: Vec::new() };
    let named = (0..automaton.states.len()).filter(|&state| state == 0 || !drawing.is_joint(state));
    let mut order: Vec<usize> = named.collect();
    let mut index = 0;
    while index < order.len() {
        if index > 0 {
            out.push('\n');
        }
        drawing.root(out, order[index]);
        for joint in core::mem::take(&mut drawing.pending) {
            if !order.contains(&joint) {
                order.push(joint);
            }
        }
        index += 1;
    }
}

struct Drawing<'a> {
    automaton: &'a Automaton,
    /// Joints that are already in a tree; further references only name them.
    drawn: BTreeSet<usize>,
    /// Joints that were named and need a tree of their own.
    pending: Vec<usize>,
}

impl Drawing<'_> {
    /// Whether it is a state inside a sequence, by the compiler's naming.
    fn is_joint(&self, state: usize) -> bool {
        self.automaton.states.get(state).is_some_and(|row| row.name.contains(' '))
    }

    fn root(&mut self, out: &mut String, state: usize) {
        let Some(row) = self.automaton.states.get(state) else { return };
        out.push_str(&row.name);
        out.push_str(match self.automaton.sender_in(state as u16) {
            Some(Direction::ToExporter) => "   the importer speaks\n",
            Some(Direction::ToImporter) => "   the exporter speaks\n",
            None => "   the end\n",
        });
        self.drawn.insert(state);
        for line in self.branches(state, 0) {
            out.push_str(&line);
            out.push('\n');
        }
    }

    /// The lines of a state's messages. At depth 0 they hang below the state's name, else they continue to the right of
    /// a message.
    fn branches(&mut self, state: usize, depth: usize) -> Vec<String> {
        let row = self.automaton.states[state].next.iter().enumerate();
        let edges: Vec<(usize, usize)> = row
            .filter(|(tag, next)| **next != NO_TRANSITION && *tag < self.automaton.messages.len())
            .map(|(tag, &next)| (tag, next as usize))
            .collect();
        let labels: Vec<String> = edges.iter().map(|(tag, _)| self.label(*tag)).collect();
        let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
        let mut lines = Vec::new();
        for (index, ((_, target), label)) in edges.iter().zip(&labels).enumerate() {
            let last = index + 1 == edges.len();
            let (first_mark, other_mark) = match (depth, index, last) {
                (0, _, false) => ("├─ ", "│  "),
                (_, 0, false) => ("┬─ ", "│  "),
                (0, _, true) => ("└─ ", "   "),
                (_, 0, true) => ("── ", "   "),
                (_, _, false) => ("├─ ", "│  "),
                (_, _, true) => ("└─ ", "   "),
            };
            let fill: String = core::iter::repeat_n('─', width - label.chars().count()).collect();
            let blank: String = core::iter::repeat_n(' ', width + 2).collect();
            for (number, rest) in self.behind(*target, depth).into_iter().enumerate() {
                lines.push(match number {
                    0 => format!("{first_mark}{label} {fill}─{rest}"),
                    _ => format!("{other_mark}{blank}{rest}"),
                });
            }
        }
        lines
    }

    /// Returns the continuation of a message: the state's name, or its messages.
    fn behind(&mut self, target: usize, depth: usize) -> Vec<String> {
        let Some(row) = self.automaton.states.get(target) else { return vec!["─► ?".to_string()] };
        let follows = self.is_joint(target) && depth < DEPTH && self.automaton.sender_in(target as u16).is_some();
        if follows && self.drawn.insert(target) {
            return self.branches(target, depth + 1);
        }
        if self.is_joint(target) && !self.drawn.contains(&target) {
            self.pending.push(target);
        }
        vec![format!("─► {}", row.name)]
    }

    fn label(&self, tag: usize) -> String {
        let message = &self.automaton.messages[tag];
        let sign = if message.direction == Direction::ToExporter { '?' } else { '!' };
        format!("{}{sign}", message.name)
    }
}

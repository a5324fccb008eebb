//! Layout of a contract's diagram.
//!
//! States are placed in columns by their distance from the start, as a tree: each below the edge by which it is first
//! reached. A named state is a box as tall as its subtree to the right, so that an edge back to it is a straight
//! horizontal line. Where that would cross something, a small reference box with the state's name is the target.

use std::collections::VecDeque;

use abi::{Direction, NO_TRANSITION};

use crate::unit::Contract;

/// Width of a character in message names, in pixels.
const LABEL_CHARACTER: f64 = 6.9;
/// Width of a character in state names.
const STATE_CHARACTER: f64 = 8.0;
/// Height of a message row.
const ROW: f64 = 44.0;
/// Distance from a row's top to its edge.
const LINE: f64 = 22.0;
/// Distance from an edge to a back edge below it.
const BACK: f64 = 20.0;
/// Width of an unnamed state.
const JOINT: f64 = 10.0;
/// Margin at each end of a label.
const MARGIN: f64 = 22.0;

/// A layout, in pixels.
pub struct Layout {
    /// States and reference boxes.
    pub nodes: Vec<Node>,
    /// Edges.
    pub lines: Vec<Line>,
    /// Total width.
    pub width: f64,
    /// Total height.
    pub height: f64,
}

/// The kind of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A named state.
    State,
    /// A state inside a sequence.
    Joint,
    /// A reference to a state drawn elsewhere.
    Reference,
}

/// A placed node.
pub struct Node {
    /// Number of the state.
    pub state: usize,
    /// Kind.
    pub kind: NodeKind,
    /// Left.
    pub x: f64,
    /// Top.
    pub top: f64,
    /// Bottom.
    pub bottom: f64,
    /// Y coordinate of the incoming edge.
    pub line: f64,
    /// Width.
    pub width: f64,
    layer: usize,
    children: Vec<usize>,
    parent: Option<usize>,
}

/// The messages from one state to another.
pub struct Line {
    /// Names with signs.
    pub label: String,
    /// Direction.
    pub direction: Direction,
    /// Corners, from the sending state on.
    pub points: Vec<(f64, f64)>,
    /// Centre of the label.
    pub label_at: (f64, f64),
}

/// An edge of the tree, or a back edge.
struct Edge {
    from: usize,
    target: usize,
    label: String,
    direction: Direction,
    /// Target node.
    to: usize,
    back: bool,
}

/// Lays out a contract's states and messages.
pub fn lay_out(contract: &Contract) -> Layout {
    let mut tree = Tree::grow(contract);
    let mut lanes = vec![0.0; tree.edges.len()];
    let height = tree.place_rows(0, 0.0, &mut lanes);
    let (columns, ends) = tree.place_columns();
    let lines = tree.lines(&lanes, &columns, &ends);
    let width = ends.last().copied().unwrap_or(0.0);
    Layout { nodes: tree.nodes, lines, width, height }
}

struct Tree {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

impl Tree {
    /// Builds the tree, breadth first.
    fn grow(contract: &Contract) -> Tree {
        let mut tree = Tree { nodes: Vec::new(), edges: Vec::new() };
        let mut node_of: Vec<Option<usize>> = vec![None; contract.states.len()];
        if contract.states.is_empty() {
            return tree;
        }
        node_of[0] = Some(tree.add(contract, 0, None, NodeKind::State));
        let mut pending = VecDeque::from([0]);
        while let Some(node) = pending.pop_front() {
            for (target, label, direction) in grouped_messages(contract, tree.nodes[node].state) {
                let known = node_of[target];
                let back = known.is_some_and(|known| known == node || tree.is_ancestor(known, node));
                let to = match known {
                    Some(known) if back => known,
                    Some(_) => tree.add(contract, target, Some(node), NodeKind::Reference),
                    None => {
                        let intermediate = contract.states[target].intermediate;
                        let kind = if intermediate { NodeKind::Joint } else { NodeKind::State };
                        let added = tree.add(contract, target, Some(node), kind);
                        node_of[target] = Some(added);
                        pending.push_back(added);
                        added
                    }
                };
                tree.edges.push(Edge { from: node, target, label, direction, to, back });
            }
        }
        tree.replace_crossing(contract);
        tree
    }

    fn add(&mut self, contract: &Contract, state: usize, parent: Option<usize>, kind: NodeKind) -> usize {
        let index = self.nodes.len();
        let layer = parent.map_or(0, |parent| self.nodes[parent].layer + 1);
        let letters = contract.states[state].name.chars().count() as f64;
        let width = match kind {
            NodeKind::State => (letters * STATE_CHARACTER + 28.0).max(64.0),
            NodeKind::Joint => JOINT,
            NodeKind::Reference => letters * LABEL_CHARACTER + 22.0,
        };
        let (x, top, bottom, line) = (0.0, 0.0, 0.0, 0.0);
        self.nodes.push(Node { state, kind, x, top, bottom, line, width, layer, children: Vec::new(), parent });
        if let Some(parent) = parent {
            self.nodes[parent].children.push(index);
        }
        index
    }

    fn is_ancestor(&self, ancestor: usize, mut node: usize) -> bool {
        while let Some(parent) = self.nodes[node].parent {
            if parent == ancestor {
                return true;
            }
            node = parent;
        }
        false
    }

    /// Redirects back edges that would cross something to reference boxes.
    fn replace_crossing(&mut self, contract: &Contract) {
        for index in 0..self.edges.len() {
            let Edge { from, to, target, back, .. } = self.edges[index];
            if back && !self.is_free(from, to) {
                let reference = self.add(contract, target, Some(from), NodeKind::Reference);
                let edge = &mut self.edges[index];
                edge.to = reference;
                edge.back = false;
            }
        }
    }

    /// Whether a horizontal line at the bottom of `from` reaches `to` without crossing anything.
    fn is_free(&self, from: usize, to: usize) -> bool {
        let mut node = from;
        while let Some(parent) = self.nodes[node].parent {
            if parent == to {
                return true;
            }
            let last = self.nodes[parent].children.last() == Some(&node);
            let returns = self.edges.iter().any(|edge| edge.back && edge.from == parent);
            if self.nodes[parent].kind != NodeKind::Joint || !last || returns {
                return false;
            }
            node = parent;
        }
        false
    }

    /// Assigns heights to a subtree; returns its bottom.
    fn place_rows(&mut self, node: usize, top: f64, lanes: &mut [f64]) -> f64 {
        let Some(placed) = self.nodes.get(node) else { return top };
        let children = placed.children.clone();
        let is_joint = placed.kind == NodeKind::Joint;
        let line = top + LINE;
        let mut lower = top;
        for &child in &children {
            lower = self.place_rows(child, lower, lanes);
        }
        let mut lane = if children.is_empty() && is_joint { line } else { (lower - LINE + 4.0).max(line) };
        for (edge, at) in self.edges.iter().zip(lanes.iter_mut()) {
            if edge.from == node && edge.back {
                lane += BACK;
                *at = lane;
                lower = lower.max(lane + LINE);
            }
        }
        lower = lower.max(top + ROW);
        let placed = &mut self.nodes[node];
        (placed.top, placed.bottom, placed.line) = (top + 5.0, lower - 5.0, line);
        lower
    }

    /// Assigns left and right of each column.
    fn place_columns(&mut self) -> (Vec<f64>, Vec<f64>) {
        let layers = self.nodes.iter().map(|node| node.layer + 1).max().unwrap_or(0);
        let mut widths = vec![0.0f64; layers];
        let mut gaps = vec![0.0f64; layers + 1];
        for node in &self.nodes {
            widths[node.layer] = widths[node.layer].max(node.width);
        }
        for edge in &self.edges {
            let layer = if edge.back { self.nodes[edge.from].layer } else { self.nodes[edge.to].layer };
            let width = edge.label.chars().count() as f64 * LABEL_CHARACTER + 2.0 * MARGIN;
            gaps[layer] = gaps[layer].max(width);
        }
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        let mut x = 0.0;
        for layer in 0..layers {
            x += gaps[layer];
            starts.push(x);
            x += widths[layer];
            ends.push(x);
        }
        for node in &mut self.nodes {
            node.x = starts[node.layer];
            if node.kind == NodeKind::State {
                node.width = widths[node.layer];
            }
        }
        (starts, ends)
    }

    fn lines(&self, lanes: &[f64], starts: &[f64], ends: &[f64]) -> Vec<Line> {
        let mut lines = Vec::new();
        for (edge, &lane) in self.edges.iter().zip(lanes) {
            let (from, to) = (&self.nodes[edge.from], &self.nodes[edge.to]);
            let (points, gap) = if edge.back {
                let start = if from.kind == NodeKind::Joint {
                    vec![(from.x + JOINT / 2.0, from.line), (from.x + JOINT / 2.0, lane)]
                } else {
                    vec![(from.x, lane)]
                };
                let mut points = start;
                points.push((to.x + to.width, lane));
                (points, from.layer)
            } else {
                let start = from.x + from.width;
                let mut points = vec![(start, to.line)];
                if from.kind == NodeKind::Joint && to.line > from.line {
                    let turn = ends[from.layer] + 12.0;
                    points = vec![(start, from.line), (turn, from.line), (turn, to.line)];
                }
                points.push((to.x, to.line));
                (points, to.layer)
            };
            let left = if gap == 0 { 0.0 } else { ends[gap - 1] };
            let middle = (left + starts[gap]) / 2.0;
            let height = if edge.back { lane } else { to.line };
            lines.push(Line {
                label: edge.label.clone(),
                direction: edge.direction,
                points,
                label_at: (middle, height - 5.0),
            });
        }
        lines
    }
}

/// The messages of a state, grouped by target state.
fn grouped_messages(contract: &Contract, state: usize) -> Vec<(usize, String, Direction)> {
    let mut groups: Vec<(usize, String, Direction)> = Vec::new();
    for (tag, &next) in contract.automaton.states[state].next.iter().enumerate() {
        if next == NO_TRANSITION {
            continue;
        }
        let message = &contract.messages[tag];
        let sign = if message.direction == Direction::ToImporter { '!' } else { '?' };
        let name = format!("{}{sign}", message.name);
        match groups.iter_mut().find(|(target, _, _)| *target == next as usize) {
            Some((_, label, _)) => {
                label.push_str(" or ");
                label.push_str(&name);
            }
            None => groups.push((next as usize, name, message.direction)),
        }
    }
    groups
}

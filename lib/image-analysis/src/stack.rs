//! The graph of calls: what can be reached from a function, and how much stack that takes.
//!
//! A method of a trait object leads to whatever lies at the same place in a table of methods, and to all functions whose
//! address code takes; a function pointer leads to all functions whose address is taken anywhere. All searches are
//! loops, not recursion: the installer's stack is small.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use crate::calls::Target;
use crate::program::Program;

/// An edge from a function or a group of them: the next node, and the stack in use at the call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) to: usize,
    depth: u64,
}

/// Functions, and after them groups of functions that one kind of indirect call can lead to.
pub(crate) struct Graph<'p> {
    pub(crate) program: &'p Program,
    edges: Vec<Vec<Edge>>,
    /// Functions that can be called by others than their callers here: the entry, and all whose address is taken.
    pub(crate) roots: Vec<usize>,
}

/// Which calls a search follows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follow {
    /// All.
    All,
    /// Those that can return: not those that end in a panic.
    Returning,
}

/// Why there is no bound.
pub(crate) enum Unbounded {
    /// Functions that call each other; the first is the last as well.
    Recursion(Vec<usize>),
    /// A function whose frame depends on the run.
    Dynamic(usize),
}

impl<'p> Graph<'p> {
    pub(crate) fn of(program: &'p Program) -> Graph<'p> {
        let count = program.functions.len();
        let by_code: BTreeSet<usize> = program.functions.iter().flat_map(|function| function.taken.clone()).collect();
        let anywhere: BTreeSet<usize> =
            by_code.iter().copied().chain(program.in_data.iter().map(|(_, to)| *to)).collect();
        let mut groups: BTreeMap<Target, usize> = BTreeMap::new();
        let mut edges: Vec<Vec<Edge>> = Vec::new();
        for function in &program.functions {
            let mut out = Vec::new();
            for call in &function.calls {
                let to = match call.target {
                    Target::Function(to) => to,
                    Target::Kernel(_) => continue,
                    Target::Method(_) | Target::Pointer => {
                        let next = count + groups.len();
                        *groups.entry(call.target).or_insert(next)
                    }
                };
                out.push(Edge { to, depth: u64::from(call.depth) });
            }
            edges.push(out);
        }
        edges.resize_with(count + groups.len(), Vec::new);
        for (target, node) in groups {
            let members: BTreeSet<usize> = match target {
                Target::Method(distance) => {
                    let is_there = |place: u64| {
                        place
                            .checked_add_signed(distance.wrapping_neg())
                            .is_some_and(|table| program.mentioned.contains(&table))
                    };
                    let methods = program.in_data.iter().filter(|(place, _)| is_there(*place)).map(|(_, to)| *to);
                    by_code.iter().copied().chain(methods).collect()
                }
                _ => anywhere.clone(),
            };
            edges[node] = members.into_iter().map(|to| Edge { to, depth: 0 }).collect();
        }
        let roots = anywhere.into_iter().chain(program.entry).collect();
        Graph { program, edges, roots }
    }

    fn follows(&self, node: usize, follow: Follow) -> bool {
        follow == Follow::All || self.program.functions.get(node).is_none_or(|function| function.returns)
    }

    /// Returns the shortest way from one of the functions to one that is wanted, both included.
    pub(crate) fn way(&self, from: &[usize], follow: Follow, is_wanted: impl Fn(usize) -> bool) -> Option<Vec<usize>> {
        let mut previous: Vec<Option<usize>> = vec![None; self.edges.len()];
        let mut seen = vec![false; self.edges.len()];
        let mut open: VecDeque<usize> = from.iter().copied().collect();
        from.iter().for_each(|&start| seen[start] = true);
        while let Some(node) = open.pop_front() {
            if node < self.program.functions.len() && is_wanted(node) {
                let mut way = vec![node];
                let mut last = node;
                while let Some(before) = previous[last] {
                    way.push(before);
                    last = before;
                }
                way.reverse();
                way.retain(|&node| node < self.program.functions.len());
                return Some(way);
            }
            for edge in &self.edges[node] {
                if !seen[edge.to] && self.follows(edge.to, follow) {
                    seen[edge.to] = true;
                    previous[edge.to] = Some(node);
                    open.push_back(edge.to);
                }
            }
        }
        None
    }

    /// Returns the functions that can be reached from these, themselves included.
    pub(crate) fn reached(&self, from: &[usize]) -> Vec<bool> {
        let mut seen = vec![false; self.edges.len()];
        let mut open: Vec<usize> = from.to_vec();
        while let Some(node) = open.pop() {
            if !core::mem::replace(&mut seen[node], true) {
                open.extend(self.edges[node].iter().map(|edge| edge.to).filter(|&to| !seen[to]));
            }
        }
        seen.truncate(self.program.functions.len());
        seen
    }

    /// Returns the most stack that calls of these functions use, and the way that uses it.
    pub(crate) fn deepest(&self, from: &[usize]) -> Result<(u64, Vec<usize>), Unbounded> {
        let mut costs: Vec<Option<(u64, Option<usize>)>> = vec![None; self.edges.len()];
        let mut most = (0, Vec::new());
        for &start in from {
            self.measure(start, &mut costs)?;
            let cost = costs[start].map_or(0, |(cost, _)| cost);
            if cost > most.0 || most.1.is_empty() {
                let mut way = Vec::new();
                let mut next = Some(start);
                while let Some(node) = next {
                    way.push(node);
                    next = costs[node].and_then(|(_, next)| next);
                }
                way.retain(|&node| node < self.program.functions.len());
                most = (cost, way);
            }
        }
        Ok(most)
    }

    /// Works out the costs of a node and all below it, depth first.
    fn measure(&self, start: usize, costs: &mut [Option<(u64, Option<usize>)>]) -> Result<(), Unbounded> {
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        let mut on_path = vec![false; self.edges.len()];
        on_path[start] = true;
        while let Some((node, next)) = path.pop() {
            if costs[node].is_some() {
                on_path[node] = false;
                continue;
            }
            if let Some(edge) = self.edges[node].get(next) {
                path.push((node, next + 1));
                if on_path[edge.to] && self.follows(edge.to, Follow::Returning) {
                    let nodes: Vec<usize> = path.iter().map(|(node, _)| *node).collect();
                    let first = nodes.iter().position(|&node| node == edge.to).unwrap_or(0);
                    let mut circle: Vec<usize> = nodes.get(first..).unwrap_or_default().to_vec();
                    circle.push(edge.to);
                    circle.retain(|&node| node < self.program.functions.len());
                    return Err(Unbounded::Recursion(circle));
                }
                if costs[edge.to].is_none() && self.follows(edge.to, Follow::Returning) {
                    on_path[edge.to] = true;
                    path.push((edge.to, 0));
                }
                continue;
            }
            on_path[node] = false;
            let own = match self.program.functions.get(node) {
                Some(function) => u64::from(function.stack.ok_or(Unbounded::Dynamic(node))?),
                None => 0,
            };
            let mut cost = (own, None);
            for edge in &self.edges[node] {
                let below = costs[edge.to].map_or(0, |(cost, _)| cost);
                if self.follows(edge.to, Follow::Returning) && edge.depth + below > cost.0 {
                    cost = (edge.depth + below, Some(edge.to));
                }
            }
            costs[node] = Some(cost);
        }
        Ok(())
    }
}

//! Places the nodes of a graph in layers, importers above exporters, and bends lines around nodes between them.
//!
//! The method is Sugiyama's: break cycles, assign layers by longest path, put a bend into each layer a line crosses,
//! order each layer by the middle of its neighbours, then pull neighbours into line.

use super::Graph;

const GAP: f64 = 46.0;
const BEND_WIDTH: f64 = 26.0;
const LAYER_HEIGHT: f64 = 132.0;
const SWEEPS: usize = 24;

/// Height of a node.
pub const NODE_HEIGHT: f64 = 48.0;

/// Positions of nodes and lines.
pub struct Layout {
    /// Centre and width of each node.
    pub nodes: Vec<(f64, f64, f64)>,
    /// For each edge of the graph the points of its line, from importer to exporter.
    pub lines: Vec<Vec<(f64, f64)>>,
    /// Total size.
    pub size: (f64, f64),
}

/// A node, or a bend of a line.
struct Item {
    layer: usize,
    width: f64,
    x: f64,
}

/// Computes the layout; `width_of` returns the width of a node.
pub fn lay_out(graph: &Graph, width_of: impl Fn(usize) -> f64) -> Layout {
    let edges: Vec<(usize, usize)> = graph.edges.iter().map(|edge| (edge.importer, edge.exporter)).collect();
    let layers = layers_of(graph.nodes.len(), &edges);
    let mut items: Vec<Item> =
        layers.iter().enumerate().map(|(node, layer)| Item { layer: *layer, width: width_of(node), x: 0.0 }).collect();
    let chains: Vec<Vec<usize>> = edges.iter().map(|edge| chain(*edge, &layers, &mut items)).collect();
    let segments: Vec<(usize, usize)> =
        chains.iter().flat_map(|chain| chain.windows(2).map(|pair| (pair[0], pair[1]))).collect();
    let mut rows = rows_of(&items);
    order(&mut rows, &segments, &mut items);
    straighten(&rows, &segments, &mut items);
    let left = items.iter().map(|item| item.x - item.width / 2.0).fold(f64::INFINITY, f64::min);
    let right = items.iter().map(|item| item.x + item.width / 2.0).fold(f64::NEG_INFINITY, f64::max);
    let y_of = |item: &Item| item.layer as f64 * LAYER_HEIGHT + NODE_HEIGHT / 2.0;
    let nodes = items[..graph.nodes.len()].iter().map(|item| (item.x - left, y_of(item), item.width)).collect();
    let lines =
        chains.iter().map(|chain| chain.iter().map(|at| (items[*at].x - left, y_of(&items[*at]))).collect()).collect();
    let height = rows.len().saturating_sub(1) as f64 * LAYER_HEIGHT + NODE_HEIGHT;
    let width = if items.is_empty() { 0.0 } else { right - left };
    Layout { nodes, lines, size: (width, height) }
}

/// Returns the layer of each node: one below its lowest importer, ignoring lines that would close a cycle.
fn layers_of(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut depth = vec![0; count];
    let mut state = vec![0u8; count];
    let mut forward = Vec::new();
    let has_importer = |node: usize| edges.iter().any(|(from, to)| *to == node && from != to);
    let mut starts: Vec<usize> = (0..count).filter(|node| !has_importer(*node)).collect();
    starts.extend(0..count);
    let mut finished = Vec::new();
    for start in starts {
        visit(start, edges, &mut state, &mut forward, &mut finished);
    }
    for node in finished.iter().rev() {
        for (_, to) in forward.iter().filter(|(from, _)| from == node) {
            depth[*to] = depth[*to].max(depth[*node] + 1);
        }
    }
    depth
}

/// Depth-first search; keeps the edges that close no cycle and the post-order of nodes.
fn visit(
    node: usize,
    edges: &[(usize, usize)],
    state: &mut [u8],
    forward: &mut Vec<(usize, usize)>,
    finished: &mut Vec<usize>,
) {
    if state[node] != 0 {
        return;
    }
    state[node] = 1;
    for (_, to) in edges.iter().filter(|(from, _)| *from == node) {
        if state[*to] != 1 {
            forward.push((node, *to));
            visit(*to, edges, state, forward, finished);
        }
    }
    state[node] = 2;
    finished.push(node);
}

/// Returns the items of a line: its ends, and a new bend in each layer between them.
fn chain((from, to): (usize, usize), layers: &[usize], items: &mut Vec<Item>) -> Vec<usize> {
    let (top, bottom) = if layers[from] <= layers[to] { (from, to) } else { (to, from) };
    let mut chain = vec![top];
    for layer in layers[top] + 1..layers[bottom] {
        chain.push(items.len());
        items.push(Item { layer, width: BEND_WIDTH, x: 0.0 });
    }
    chain.push(bottom);
    if top != from {
        chain.reverse();
    }
    chain
}

fn rows_of(items: &[Item]) -> Vec<Vec<usize>> {
    let count = items.iter().map(|item| item.layer + 1).max().unwrap_or(0);
    let mut rows = vec![Vec::new(); count];
    for (index, item) in items.iter().enumerate() {
        rows[item.layer].push(index);
    }
    rows
}

/// Orders each row by the mean position of its neighbours, alternating downwards and upwards, and spreads out every row
/// in that order.
fn order(rows: &mut [Vec<usize>], segments: &[(usize, usize)], items: &mut [Item]) {
    for row in rows.iter() {
        spread(row, items);
    }
    for sweep in 0..SWEEPS {
        let indices: Vec<usize> =
            if sweep % 2 == 0 { (0..rows.len()).collect() } else { (0..rows.len()).rev().collect() };
        for index in indices {
            let mut keyed: Vec<(f64, usize)> =
                rows[index].iter().map(|item| (wanted(*item, segments, items), *item)).collect();
            keyed.sort_by(|left, right| left.0.total_cmp(&right.0));
            rows[index] = keyed.into_iter().map(|(_, item)| item).collect();
            spread(&rows[index], items);
        }
    }
}

/// Places the items of a row side by side around zero.
fn spread(row: &[usize], items: &mut [Item]) {
    let total: f64 = row.iter().map(|item| items[*item].width + GAP).sum::<f64>() - GAP;
    let mut left = -total / 2.0;
    for item in row {
        items[*item].x = left + items[*item].width / 2.0;
        left += items[*item].width + GAP;
    }
}

/// Returns the mean position of an item's neighbours, or its own if it has none.
fn wanted(item: usize, segments: &[(usize, usize)], items: &[Item]) -> f64 {
    let neighbours = segments.iter().filter_map(|(from, to)| match item {
        _ if *from == item => Some(*to),
        _ if *to == item => Some(*from),
        _ => None,
    });
    let places: Vec<f64> = neighbours.map(|other| items[other].x).collect();
    if places.is_empty() { items[item].x } else { places.iter().sum::<f64>() / places.len() as f64 }
}

/// Moves items towards their neighbours as far as the row's order allows.
fn straighten(rows: &[Vec<usize>], segments: &[(usize, usize)], items: &mut [Item]) {
    for _ in 0..SWEEPS {
        for row in rows {
            for item in row {
                let target = wanted(*item, segments, items);
                items[*item].x += (target - items[*item].x) / 2.0;
            }
            // Push apart from the left, then from the right, and take the middle: neither side wins.
            let from_left = pushed(row.iter(), items, 1.0);
            let mut from_right = pushed(row.iter().rev(), items, -1.0);
            from_right.reverse();
            for ((item, left), right) in row.iter().zip(from_left).zip(from_right) {
                items[*item].x = (left + right) / 2.0;
            }
        }
    }
}

fn pushed<'a>(row: impl Iterator<Item = &'a usize>, items: &[Item], direction: f64) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::new();
    let mut edge = f64::NEG_INFINITY;
    for item in row {
        let half = items[*item].width / 2.0;
        let place = (items[*item].x * direction).max(edge + half);
        edge = place + half + GAP;
        places.push(place * direction);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn importers_stand_above_exporters_and_cycles_end() {
        assert_eq!(layers_of(3, &[(0, 1), (1, 2), (0, 2)]), [0, 1, 2]);
        let cyclic = layers_of(3, &[(0, 1), (1, 2), (2, 0)]);
        assert_eq!(cyclic.len(), 3);
        assert_eq!(layers_of(1, &[(0, 0)]), [0]);
    }

    #[test]
    fn nothing_in_a_row_overlaps() {
        let row: Vec<usize> = (0..5).collect();
        let mut items: Vec<Item> = row.iter().map(|_| Item { layer: 0, width: 100.0, x: 0.0 }).collect();
        straighten(std::slice::from_ref(&row), &[], &mut items);
        for pair in items.windows(2) {
            assert!(pair[1].x - pair[0].x >= 100.0, "{} {}", pair[0].x, pair[1].x);
        }
    }
}

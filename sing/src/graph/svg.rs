//! Draws a laid-out graph.

use std::fmt::Write;

use super::layout::{Layout, NODE_HEIGHT, lay_out};
use super::{Graph, Node};

const BORDER: f64 = 28.0;
const TITLE_HEIGHT: f64 = 64.0;
const NOTE_HEIGHT: f64 = 20.0;
const LABEL_HEIGHT: f64 = 15.0;
/// Approximate width of a label's letter.
const LETTER: f64 = 6.6;
const NOTE_LETTERS: usize = 110;
/// Positions of a label along its line, best first.
const LABEL_PLACES: [f64; 9] = [0.5, 0.4, 0.6, 0.32, 0.68, 0.25, 0.75, 0.18, 0.82];

const STYLE: &str = r##"<style>
text { font-family: "DejaVu Sans", Verdana, sans-serif; font-size: 11px; fill: #1f2933; }
.heading { font-size: 17px; font-weight: bold; }
.name { font-size: 13px; font-weight: bold; text-anchor: middle; }
.detail { text-anchor: middle; fill: #52606d; }
.node { fill: #f3f5f8; stroke: #52606d; stroke-width: 1.4; }
.driver { fill: #fbeee0; stroke: #b4691f; } .service, .web-application { fill: #e3ecf8; stroke: #2b62a8; }
.console { fill: #e3f0e6; stroke: #2f7d46; } .test { fill: #f2e8f7; stroke: #7a3d99; }
.apart { stroke-dasharray: 6 3; stroke-width: 2; }
.channel { fill: none; stroke: #7b8794; stroke-width: 1.5; }
.label { text-anchor: middle; paint-order: stroke; stroke: #ffffff; stroke-width: 4px; fill: #3e4c59; }
</style>
<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 1 L9 5 L0 9 z" fill="#7b8794"/></marker></defs>
"##;

/// The graph as an SVG document.
pub fn draw(graph: &Graph) -> String {
    let width_of = |node: usize| {
        let node = &graph.nodes[node];
        let letters = (node.title.chars().count() as f64 * 8.4).max(detail(node).chars().count() as f64 * LETTER);
        letters + 30.0
    };
    let layout = lay_out(graph, width_of);
    let notes: Vec<String> = graph.notes.iter().flat_map(|note| wrapped(note, NOTE_LETTERS)).collect();
    let note_width = notes.iter().map(|note| note.chars().count() as f64 * LETTER).fold(0.0, f64::max);
    // Labels and bows reach beyond the nodes at the sides.
    let side = 60.0;
    let width = (layout.size.0 + 2.0 * side).max(note_width).max(360.0) + 2.0 * BORDER;
    let notes_height = notes.len() as f64 * NOTE_HEIGHT + if notes.is_empty() { 0.0 } else { 24.0 };
    let height = TITLE_HEIGHT + layout.size.1 + notes_height + 2.0 * BORDER;
    let mut out = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}">"#
    );
    let _ = writeln!(out, "<title>{}</title>", escaped(&graph.title));
    out.push_str(STYLE);
    let _ = writeln!(out, r##"<rect width="100%" height="100%" fill="#ffffff"/>"##);
    let _ = writeln!(out, r#"<text class="heading" x="{BORDER}" y="36">{}</text>"#, escaped(&graph.title));
    let _ = writeln!(
        out,
        r#"<text x="{BORDER}" y="56">Lines are channels: from importer to exporter, named by contract.</text>"#
    );
    let shift = (width - layout.size.0) / 2.0;
    let _ = writeln!(out, r#"<g transform="translate({shift:.1} {:.1})">"#, TITLE_HEIGHT + BORDER);
    draw_channels(&mut out, graph, &layout);
    draw_nodes(&mut out, graph, &layout);
    out.push_str("</g>\n");
    for (index, note) in notes.iter().enumerate() {
        let y = TITLE_HEIGHT + BORDER + layout.size.1 + 34.0 + index as f64 * NOTE_HEIGHT;
        let _ = writeln!(out, r#"<text x="{BORDER}" y="{y:.1}">{}</text>"#, escaped(note));
    }
    out.push_str("</svg>\n");
    out
}

/// The line below a node's title: what it is, and its hardware domain.
fn detail(node: &Node) -> String {
    match &node.domain {
        Some(domain) if node.detail.is_empty() => domain.clone(),
        Some(domain) => format!("{}; {domain}", node.detail),
        None => node.detail.clone(),
    }
}

fn draw_nodes(out: &mut String, graph: &Graph, layout: &Layout) {
    for (node, (x, y, width)) in graph.nodes.iter().zip(&layout.nodes) {
        let (left, top) = (x - width / 2.0, y - NODE_HEIGHT / 2.0);
        let _ = writeln!(
            out,
            r#"<rect class="node {}{}" x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{NODE_HEIGHT}" rx="7"/>"#,
            escaped(&node.category),
            if node.domain.is_some() { " apart" } else { "" }
        );
        let _ = writeln!(out, r#"<text class="name" x="{x:.1}" y="{:.1}">{}</text>"#, y - 3.0, escaped(&node.title));
        let _ =
            writeln!(out, r#"<text class="detail" x="{x:.1}" y="{:.1}">{}</text>"#, y + 14.0, escaped(&detail(node)));
    }
}

/// A rectangle that labels must not cover: centre and half sizes.
type Taken = (f64, f64, f64, f64);

fn draw_channels(out: &mut String, graph: &Graph, layout: &Layout) {
    let mut taken: Vec<Taken> =
        layout.nodes.iter().map(|(x, y, width)| (*x, *y, width / 2.0, NODE_HEIGHT / 2.0)).collect();
    let mut labels = String::new();
    for (index, (edge, line)) in graph.edges.iter().zip(&layout.lines).enumerate() {
        let points = trimmed(line, index);
        let _ = writeln!(out, r#"<path class="channel" d="{}" marker-end="url(#arrow)"/>"#, path(&points));
        let width = edge.labels.iter().map(|label| label.chars().count()).max().unwrap_or(0) as f64 * LETTER;
        let half = (width / 2.0, edge.labels.len() as f64 * LABEL_HEIGHT / 2.0);
        let (x, y) = free_place(&points, half, &taken);
        taken.push((x, y, half.0, half.1));
        for (row, label) in edge.labels.iter().enumerate() {
            let y = y - half.1 + LABEL_HEIGHT * (row as f64 + 0.75);
            let _ = writeln!(labels, r#"<text class="label" x="{x:.1}" y="{y:.1}">{}</text>"#, escaped(label));
        }
    }
    out.push_str(&labels);
}

/// Shortens the line to the edges of its nodes; lines at one node start side by side.
fn trimmed(line: &[(f64, f64)], index: usize) -> Vec<(f64, f64)> {
    let mut points = line.to_vec();
    let count = points.len();
    if count < 2 {
        return points;
    }
    let spread = (index % 5) as f64 * 9.0 - 18.0;
    let (first, last) = (points[0], points[count - 1]);
    if (first.1 - last.1).abs() < 1.0 {
        // Both in one layer: an arc above them.
        let middle = ((first.0 + last.0) / 2.0, first.1 - NODE_HEIGHT / 2.0 - 34.0);
        let top = first.1 - NODE_HEIGHT / 2.0;
        return vec![(first.0 + spread, top), middle, (last.0 + spread, top)];
    }
    let down = if last.1 > first.1 { 1.0 } else { -1.0 };
    points[0] = (first.0 + spread, first.1 + down * NODE_HEIGHT / 2.0);
    points[count - 1] = (last.0 + spread, last.1 - down * NODE_HEIGHT / 2.0);
    points
}

/// A curve that runs vertically through each point.
fn path(points: &[(f64, f64)]) -> String {
    let Some((start, rest)) = points.split_first() else { return String::new() };
    let mut text = format!("M{:.1} {:.1}", start.0, start.1);
    let mut from = *start;
    for to in rest {
        let middle = (from.1 + to.1) / 2.0;
        let _ = write!(text, " C{:.1} {middle:.1} {:.1} {middle:.1} {:.1} {:.1}", from.0, to.0, to.0, to.1);
        from = *to;
    }
    text
}

/// The point of the line at `share` of its pieces.
fn along(points: &[(f64, f64)], share: f64) -> (f64, f64) {
    let pieces = points.len().saturating_sub(1).max(1) as f64;
    let at = share * pieces;
    let index = (at.floor() as usize).min(points.len().saturating_sub(2));
    let part = at - index as f64;
    let (Some(from), Some(to)) = (points.get(index), points.get(index + 1)) else {
        return points.first().copied().unwrap_or_default();
    };
    // The curve of `path` between two points: Bézier with vertical tangents.
    let eased = part * part * (3.0 - 2.0 * part);
    let vertical = 1.5 * part * (1.0 - part) * (1.0 - part) + 1.5 * part * part * (1.0 - part) + part.powi(3);
    (from.0 + (to.0 - from.0) * eased, from.1 + (to.1 - from.1) * vertical)
}

fn free_place(points: &[(f64, f64)], half: (f64, f64), taken: &[Taken]) -> (f64, f64) {
    let is_free = |place: &(f64, f64)| {
        taken.iter().all(|(x, y, half_width, half_height)| {
            (place.0 - x).abs() >= half.0 + half_width + 3.0 || (place.1 - y).abs() >= half.1 + half_height + 1.0
        })
    };
    let places = LABEL_PLACES.iter().map(|share| along(points, *share));
    places.clone().find(is_free).unwrap_or_else(|| along(points, LABEL_PLACES[0]))
}

fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let current = lines.len() - 1;
        if lines[current].chars().count() + word.chars().count() >= letters {
            lines.push(word.to_string());
        } else {
            if !lines[current].is_empty() {
                lines[current].push(' ');
            }
            lines[current].push_str(word);
        }
    }
    lines
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

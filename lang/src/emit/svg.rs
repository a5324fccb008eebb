//! The SVG emitter.

use std::fmt::Write;

use abi::Direction;

use super::layout::{Layout, Line, NodeKind, lay_out};
use crate::unit::Contract;

/// Margin around the diagram.
const BORDER: f64 = 24.0;
/// Height of title and legend.
const TITLE: f64 = 64.0;

/// Emits a diagram of a contract: boxes for states, dots for states inside sequences, lines for messages, coloured by
/// sender.
pub fn emit_svg(contract: &Contract) -> String {
    let layout = lay_out(contract);
    let width = (layout.width + 2.0 * BORDER).max(420.0);
    let height = layout.height + TITLE + 2.0 * BORDER;
    let mut out = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}">"#
    );
    let _ = writeln!(out, "<title>Contract {}</title>", contract.name);
    out.push_str(STYLE);
    let _ = writeln!(out, r##"<rect width="100%" height="100%" fill="#ffffff"/>"##);
    let _ = writeln!(out, r#"<text class="title" x="{BORDER}" y="38">contract {}</text>"#, contract.name);
    legend(&mut out);
    let _ = writeln!(out, r#"<g transform="translate({BORDER} {})">"#, TITLE + BORDER);
    for line in &layout.lines {
        draw_line(&mut out, line);
    }
    draw_nodes(&mut out, contract, &layout);
    out.push_str("</g>\n</svg>\n");
    out
}

const STYLE: &str = r##"<style>
text { font-family: "DejaVu Sans", Verdana, sans-serif; font-size: 11.5px; fill: #1f2933; }
.title { font-size: 17px; font-weight: bold; }
.name { font-size: 12.5px; font-weight: bold; text-anchor: middle; }
.state { fill: #f3f5f8; stroke: #52606d; stroke-width: 1.4; }
.start { fill: #e3f0e6; stroke: #2f7d46; stroke-width: 2; }
.end { fill: none; stroke: #52606d; stroke-width: 1; }
.joint { fill: #52606d; }
.reference { fill: #ffffff; stroke: #9aa5b1; stroke-dasharray: 4 3; }
.referred { fill: #52606d; text-anchor: middle; }
.line { fill: none; stroke-width: 1.6; }
.label { text-anchor: middle; paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
.in { stroke: #1d5fbf; } .in-text { fill: #1d5fbf; }
.out { stroke: #c2570c; } .out-text { fill: #c2570c; }
</style>
<defs>
<marker id="in" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 1 L9 5 L0 9 z" fill="#1d5fbf"/></marker>
<marker id="out" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 1 L9 5 L0 9 z" fill="#c2570c"/></marker>
</defs>
"##;

fn class(direction: Direction) -> &'static str {
    match direction {
        Direction::ToExporter => "in",
        Direction::ToImporter => "out",
    }
}

fn legend(out: &mut String) {
    let entries = [(Direction::ToExporter, "importer sends (?)"), (Direction::ToImporter, "exporter sends (!)")];
    for (index, (direction, text)) in entries.into_iter().enumerate() {
        let x = BORDER + index as f64 * 180.0;
        let class = class(direction);
        let _ = writeln!(
            out,
            r##"<path class="line {class}" d="M{x} 58 h34" marker-end="url(#{class})"/><text x="{}" y="62">{text}</text>"##,
            x + 42.0
        );
    }
}

/// Draws an edge with rounded corners, an arrowhead and a label.
fn draw_line(out: &mut String, line: &Line) {
    const RADIUS: f64 = 7.0;
    let mut path = String::new();
    let count = line.points.len();
    for (index, &(x, y)) in line.points.iter().enumerate() {
        let _ = match index {
            0 => write!(path, "M{x:.1} {y:.1}"),
            _ if index + 1 == count => write!(path, " L{x:.1} {y:.1}"),
            _ => {
                let (before, after) = (line.points[index - 1], line.points[index + 1]);
                let towards = |(px, py): (f64, f64)| {
                    let length = ((px - x).powi(2) + (py - y).powi(2)).sqrt().max(0.1);
                    let part = (RADIUS.min(length / 2.0)) / length;
                    (x + (px - x) * part, y + (py - y) * part)
                };
                let ((ax, ay), (bx, by)) = (towards(before), towards(after));
                write!(path, " L{ax:.1} {ay:.1} Q{x:.1} {y:.1} {bx:.1} {by:.1}")
            }
        };
    }
    let class = class(line.direction);
    let _ = writeln!(out, r##"<path class="line {class}" d="{path}" marker-end="url(#{class})"/>"##);
    let (x, y) = line.label_at;
    let _ = writeln!(out, r#"<text class="label {class}-text" x="{x:.1}" y="{y:.1}">{}</text>"#, line.label);
}

fn draw_nodes(out: &mut String, contract: &Contract, layout: &Layout) {
    for node in &layout.nodes {
        let state = &contract.states[node.state];
        let tooltip = std::iter::once(state.name.as_str()).chain(state.documentation.iter().map(String::as_str));
        let tooltip: Vec<String> = tooltip.map(escape).collect();
        let _ = writeln!(out, "<g><title>{}</title>", tooltip.join("\n"));
        let (x, top, width, height) = (node.x, node.top, node.width, node.bottom - node.top);
        match node.kind {
            NodeKind::Joint => {
                let _ = writeln!(out, r#"<circle class="joint" cx="{:.1}" cy="{:.1}" r="5"/>"#, x + 5.0, node.line);
            }
            NodeKind::Reference => {
                let _ = writeln!(
                    out,
                    r#"<rect class="reference" x="{x:.1}" y="{:.1}" width="{width:.1}" height="22" rx="11"/>"#,
                    node.line - 11.0
                );
                let (middle, base) = (x + width / 2.0, node.line + 4.0);
                let _ = writeln!(out, r#"<text class="referred" x="{middle:.1}" y="{base:.1}">{}</text>"#, state.name);
            }
            NodeKind::State => {
                let class = if node.state == 0 { "start" } else { "state" };
                let _ = writeln!(
                    out,
                    r#"<rect class="{class}" x="{x:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}" rx="8"/>"#
                );
                if contract.automaton.sender_in(node.state as u16).is_none() {
                    let _ = writeln!(
                        out,
                        r#"<rect class="end" x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}" rx="5"/>"#,
                        x + 3.5,
                        top + 3.5,
                        width - 7.0,
                        height - 7.0
                    );
                }
                let (middle, base) = (x + width / 2.0, top + height / 2.0 + 4.5);
                let _ = writeln!(out, r#"<text class="name" x="{middle:.1}" y="{base:.1}">{}</text>"#, state.name);
            }
        }
        out.push_str("</g>\n");
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

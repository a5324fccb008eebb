//! Diagrams: they are complete, and nothing overlaps.

use lang::{SourceFile, compile, emit_svg};

const TEXT: &str = include_str!("fixtures/ok_everything.contract");

#[test]
fn every_state_and_message_is_on_the_diagram() {
    let compiled = compile(&[SourceFile::new("everything.contract", TEXT)]);
    let unit = compiled.unit.expect("the contracts are right");
    for contract in &unit.contracts {
        let svg = emit_svg(contract);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        for state in &contract.states {
            assert!(svg.contains(&format!("<title>{}", state.name)), "{} lacks {}", contract.name, state.name);
        }
        for (tag, message) in contract.messages.iter().enumerate() {
            let sent = contract.automaton.states.iter().any(|row| row.next[tag] != abi::NO_TRANSITION);
            let sign = if message.direction == abi::Direction::ToImporter { '!' } else { '?' };
            assert_eq!(svg.contains(&format!("{}{sign}", message.name)), sent, "{}", message.name);
        }
    }
}

#[test]
fn boxes_do_not_overlap() {
    let compiled = compile(&[SourceFile::new("everything.contract", TEXT)]);
    for contract in &compiled.unit.expect("the contracts are right").contracts {
        let svg = emit_svg(contract);
        let number = |line: &str, name: &str| -> f64 {
            let rest = line.split(&format!(" {name}=\"")).nth(1).expect("the attribute");
            rest.split('"').next().and_then(|text| text.parse().ok()).expect("a number")
        };
        let is_box = |line: &&str| {
            ["state", "start", "reference"].iter().any(|c| line.contains(&format!("<rect class=\"{c}\"")))
        };
        let boxes: Vec<[f64; 4]> = svg
            .lines()
            .filter(is_box)
            .map(|line| [number(line, "x"), number(line, "y"), number(line, "width"), number(line, "height")])
            .collect();
        for (index, a) in boxes.iter().enumerate() {
            for b in &boxes[index + 1..] {
                let apart = a[0] + a[2] <= b[0] || b[0] + b[2] <= a[0] || a[1] + a[3] <= b[1] || b[1] + b[3] <= a[1];
                assert!(apart, "{}: {a:?} and {b:?}", contract.name);
            }
        }
    }
}

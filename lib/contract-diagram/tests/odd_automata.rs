//! Automata that no compiler makes, but a package may contain.

use abi::{Automaton, Direction, MessageShape, StateRow};

#[test]
fn joints_in_a_circle_end() {
    let message = |name: &str, direction| MessageShape {
        name: name.into(),
        direction,
        scalar_words: 0,
        ranges: Vec::new(),
        blocks: Vec::new(),
        endpoints: Vec::new(),
    };
    let automaton = Automaton {
        name: "Odd".into(),
        queue_to_importer: 1,
        queue_to_exporter: 1,
        messages: vec![message("Ask", Direction::ToExporter), message("Answer", Direction::ToImporter)],
        states: vec![
            StateRow { name: "A after B".into(), next: vec![1, u16::MAX] },
            StateRow { name: "B after A".into(), next: vec![u16::MAX, 0] },
        ],
    };
    let drawing = contract_diagram::render(&automaton, |_| None);
    assert!(drawing.contains("─► A after B"), "{drawing}");
    let empty = Automaton { messages: Vec::new(), states: Vec::new(), ..automaton };
    assert!(contract_diagram::render(&empty, |_| None).starts_with("contract Odd"));
}

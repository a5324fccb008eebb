//! Drawings of contracts, as they are shown. `UPDATE_GOLDEN=1` writes them anew.

use std::path::PathBuf;

use abi::{Automaton, Direction, MessageShape, StateRow};
use lang::SourceFile;

fn check(name: &str, text: &str) {
    let compiled = lang::compile(&[SourceFile::new(name, text)]);
    let unit = compiled.unit.as_ref().unwrap_or_else(|| panic!("{}", compiled.render(lang::Colours::Never)));
    let name_of = |tag| {
        let names = unit.contracts.iter().map(|contract| &contract.name);
        names.into_iter().find(|name| abi::name_tag(name) == tag).cloned()
    };
    let drawings: Vec<String> =
        unit.contracts.iter().map(|contract| contract_diagram::render(&contract.automaton, name_of)).collect();
    let drawing = drawings.join("\n");
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &drawing).expect("the golden file is written");
    }
    assert_eq!(std::fs::read_to_string(&golden).unwrap_or_default(), drawing, "{}", golden.display());
}

#[test]
fn choices_hang_below_each_other() {
    check(
        "pipe",
        "contract Pipe {
           out message Success(); out message Refused(byte error);
           in message Write(byte[] in ExHeap data); out message Accepted(); out message Failed(byte error);
           in message End(); out message Ended(); in message Pass(any.Exp end, Pipe.Imp:READY other);
           state START: one { Success! -> READY; Refused! -> ENDED; }
           state READY: one {
             Write? -> (Accepted! -> READY or Failed! -> ENDED);
             End? -> Ended! -> ENDED;
             Pass? -> (Accepted! or Failed!) -> End? -> Ended! -> READY;
           }
           state ENDED: one { }
         }",
    );
}

#[test]
fn joints_in_a_circle_end() {
    // No compiler makes this one; it may still come from a package.
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

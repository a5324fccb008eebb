//! Contracts drawn as text, as in the shell. `UPDATE_GOLDEN=1` rewrites the drawings.
//!
//! A crate that SIPs use draws them; the compiler makes the automata.

use std::path::PathBuf;

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
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/drawings/{name}.txt"));
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

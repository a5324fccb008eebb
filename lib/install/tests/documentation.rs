//! The documentation's list of codes matches the code.

use install::Code;

#[test]
fn every_code_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/install.md");
    let text = std::fs::read_to_string(path).expect("the documentation is there");
    let rows = |line: &&str| line.starts_with("| I");
    let found: Vec<&str> = text.lines().filter(rows).collect();
    let expected: Vec<String> = Code::ALL
        .iter()
        .map(|code| format!("| {} | {} | {} |", code.text(), code.topic().word(), code.title()))
        .collect();
    assert_eq!(found, expected);
}

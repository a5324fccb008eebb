//! Rules on the conformance suite.

use house::{Workspace, expect_none};

/// Begins a table of what a program of the suite does when it is given the name.
const TABLE: &str = "const ACTS: &[(&str, Act)] =";

/// The names in a table, whose text begins behind [`TABLE`].
fn names(table: &str) -> Vec<&str> {
    let is_long = table.lines().next().is_some_and(|line| line.trim() == "&[");
    let (end, begin) = if is_long { ("\n];", "\n    (\"") } else { ("];", "(\"") };
    let entries = table.split_once(end).map_or(table, |(entries, _)| entries);
    entries.split(begin).skip(1).filter_map(|entry| entry.split_once('"')).map(|(name, _)| name).collect()
}

#[test]
fn every_act_is_performed() {
    let workspace = Workspace::read();
    let paths = workspace.files("rs").into_iter().filter(|path| path.starts_with("tests/conformance/"));
    let sources: Vec<(String, String)> = paths.map(|path| (path.clone(), workspace.text(&path))).collect();
    let tables = sources.iter().filter_map(|(path, text)| Some((path, text.split_once(TABLE)?.1)));
    let acts: Vec<(&String, &str)> =
        tables.flat_map(|(path, table)| names(table).into_iter().map(move |name| (path, name))).collect();
    assert!(acts.len() > 150, "{} acts", acts.len());
    let mentions = |name: &str| {
        let quoted = format!("\"{name}\"");
        sources.iter().map(|(_, text)| text.matches(&quoted).count()).sum::<usize>()
    };
    let complaints: Vec<String> = acts
        .into_iter()
        .filter(|(_, name)| mentions(name) < 2)
        .map(|(path, name)| format!("`{name}` of {path}"))
        .collect();
    expect_none("tests/conformance/runner starts none of these, so they test nothing:", &complaints);
}

#[test]
fn names_of_long_and_short_tables_are_found() {
    let long = " &[\n    (\"one\", |_| {\n        let x = [1];\n        call(\"not\")\n    }),\n    (\"two\", two),\n];\n(\"no\", 1)";
    assert_eq!(names(long), ["one", "two"]);
    assert_eq!(names(" &[(\"one\", |way| leave(way)), (\"two\", two)];\n(\"no\", 1)"), ["one", "two"]);
}

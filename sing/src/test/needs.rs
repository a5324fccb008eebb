//! Reads the host requirements that tests declare with `needs!`; see `lib/test-needs`.
//!
//! Deliberately not here: the set of requirements, and how they are provided.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// By requirement: names of tests, as substrings for `--skip`.
pub type Needs = BTreeMap<String, BTreeSet<String>>;

/// Adds the requirements of a file's tests. An unindented declaration applies to all tests of the file, an indented one
/// to the function that contains it.
pub fn read(path: &Path, text: &str, needs: &mut Needs) {
    let module = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut tests = Vec::new();
    let mut of_file = Vec::new();
    let mut after_attribute = false;
    for line in text.lines() {
        let code = line.trim_start();
        let is_nested = code.len() < line.len();
        if code == "#[test]" {
            after_attribute = true;
        } else if let Some(rest) = code.strip_prefix("fn ").filter(|_| after_attribute) {
            after_attribute = false;
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            // A nested test's module is not read.
            let module = if is_nested { "" } else { &module };
            tests.push(format!("{module}::{name}"));
        } else if let Some(declared) = declared(code) {
            match tests.last().filter(|_| is_nested) {
                Some(test) => declared.for_each(|need| add(needs, need, [test.clone()])),
                None => of_file.extend(declared),
            }
        }
    }
    for need in of_file {
        add(needs, need, tests.iter().cloned());
    }
}

fn declared(code: &str) -> Option<impl Iterator<Item = &str>> {
    let code = code.strip_prefix("test_needs::").unwrap_or(code);
    let needs = code.strip_prefix("needs!(")?.strip_suffix(");")?;
    Some(needs.split(',').map(str::trim))
}

fn add(needs: &mut Needs, need: &str, tests: impl IntoIterator<Item = String>) {
    needs.entry(need.into()).or_default().extend(tests);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_holds_for_its_file_or_its_test() {
        let mut needs = Needs::new();
        let text = "
test_needs::needs!(Curl, Wget);

fn help() {}

#[test]
#[ignore = \"takes minutes\"]
fn one() {
    test_needs::needs!(Qemu);
}

mod nested {
    #[test]
    fn two() {}
}";
        read(Path::new("/r/tests/web.rs"), text, &mut needs);
        let of = |need: &str| needs[need].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(needs.keys().collect::<Vec<_>>(), ["Curl", "Qemu", "Wget"]);
        assert_eq!((of("Curl"), of("Qemu")), (vec!["::two", "web::one"], vec!["web::one"]));
    }
}

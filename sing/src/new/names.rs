//! Valid names of new programs: those with which all generated parts build, and that are not taken.
//!
//! Deliberately not here: the programs, crates and systems of the repository, which are looked up on creation.

use lang::SourceFile;

use crate::failure::{Failure, Outcome};

/// Maximum name length of a program that still leaves room for `-contract`.
const NAME_MAX: usize = 54;

/// Words with another meaning where a program's name is used.
const TAKEN: [(&str, &str); 5] = [
    ("the name of the system itself", manifest_model::SYSTEM_NAME),
    (
        "a Rust keyword",
        "abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen \
         if impl in let loop macro match mod move mut override priv pub ref return self static struct super trait true \
         try type typeof unsafe unsized use virtual where while yield",
    ),
    ("the name of a Rust crate", "alloc core proc-macro std test"),
    ("a folder that cargo creates", "build deps examples incremental target"),
    (
        "a shell keyword or builtin",
        "bg break cd continue do elif else end exit false fg for function help history if in jobs not pwd read return \
         run set test then time true unset wait which while",
    ),
];

/// Modules that the client of a new contract uses beside the contract's.
const MODULES: [&str; 1] = ["report"];

/// Checks a program's name.
///
/// # Errors
/// The reason why it is invalid.
pub fn check_program(name: &str) -> Outcome<()> {
    // A contract's module and type are derived from the name's parts, which must all begin like identifiers.
    let is_plain = name.split('-').all(|part| part.starts_with(|first: char| first.is_ascii_lowercase()));
    if !manifest_model::is_name(name) || !is_plain || name.len() > NAME_MAX {
        return Err(Failure::new(format!("invalid program name `{name}`")).remedy(format!(
            "use lowercase words of letters and digits, each starting with a letter and separated by hyphens, \
             at most {NAME_MAX} characters"
        )));
    }
    match TAKEN.iter().find(|(_, words)| words.split_whitespace().any(|word| word == name)) {
        None => Ok(()),
        Some((what, _)) => Err(Failure::new(format!("`{name}` is {what}")).remedy("choose another name")),
    }
}

/// Checks a publisher's name; no code is generated from it, so that any valid name will do.
///
/// # Errors
/// It is not a valid name.
pub fn check_publisher(name: &str) -> Outcome<()> {
    if manifest_model::is_name(name) {
        return Ok(());
    }
    Err(Failure::new(format!("invalid publisher name `{name}`"))
        .remedy("use lowercase letters, digits and hyphens, starting with a letter, at most 63"))
}

/// Checks that the contract of a new server can have the names that the templates derive from the server's name: the
/// type and module of the contract in `text`, in a repository with the contracts `known`.
///
/// # Errors
/// The reason why it cannot.
pub fn check_contract(contract: &str, module: &str, text: &str, known: &[String]) -> Outcome<()> {
    let refused = |why: String| Failure::new(why).remedy("choose another name");
    // Contract names are unique in a system.
    if known.iter().any(|known| known == contract) {
        return Err(refused(format!("the repository already has a contract `{contract}`")));
    }
    if MODULES.contains(&module) {
        return Err(refused(format!(
            "the module name `{module}` conflicts with another module of the contract's client"
        )));
    }
    let compiled = lang::compile(&[SourceFile::new(format!("{module}.contract"), text.to_string())]);
    if compiled.unit.is_none() {
        let why = compiled.diagnostics.first().map_or_else(String::new, |found| found.message.clone());
        return Err(refused(format!("invalid contract name `{contract}`: {why}")));
    }
    if lang::rust_module_name(contract) != module {
        return Err(Failure::new(format!("ambiguous word boundaries in the contract name `{contract}`"))
            .remedy("choose a name without two adjacent one-letter words"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Repository;

    #[test]
    fn names_that_cannot_be_used_are_refused() {
        let long = "a".repeat(55);
        for name in ["", "Tea", "tea_pot", "2tea", "tea-2", "tea--pot", "tea-", "test", "match", "proc-macro", &long] {
            assert!(check_program(name).is_err(), "{name}");
        }
        assert!(check_program("tea-pot2").is_ok());
    }

    #[test]
    fn folders_of_cargo_are_no_programs() {
        for name in ["build", "deps", "examples", "incremental", "target"] {
            let refused = check_program(name).expect_err("cargo's").to_string();
            assert!(refused.contains("a folder that cargo creates"), "{refused}");
        }
    }

    /// The strings that follow `mark` in a source file, up to `end`.
    fn strings<'a>(source: &'a str, mark: &str, end: &str) -> Vec<&'a str> {
        let part = source.split_once(mark).and_then(|(_, rest)| rest.split_once(end)).expect("the list is there").0;
        part.split('"').skip(1).step_by(2).collect()
    }

    #[test]
    fn words_of_the_shell_are_no_programs() {
        let repository = Repository::find().expect("tests run inside the repository");
        let read = |path: &str| std::fs::read_to_string(repository.root().join(path)).expect("a source file");
        let builtins = read("apps/system/shell/src/builtins.rs");
        let mut words: Vec<&str> =
            builtins.split(" name: \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(words.contains(&"jobs") && words.contains(&"help"), "{words:?}");
        let lexer = read("lib/command-language/src/lexer.rs");
        words.extend(strings(&lexer, "const KEYWORDS: &[&str] = &[", "];"));
        assert!(words.contains(&"elif"), "{words:?}");
        for word in words {
            assert!(check_program(word).is_err(), "{word}");
        }
    }

    #[test]
    fn a_publisher_may_have_any_name() {
        for name in ["acme-2", "core", "build", "acme"] {
            assert_eq!(check_publisher(name), Ok(()), "{name}");
        }
        for name in ["", "Acme", "2acme", &"a".repeat(64)] {
            assert!(check_publisher(name).is_err(), "{name}");
        }
    }
}

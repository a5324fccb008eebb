//! This tool in the place of the compiler: cargo runs it for each crate of an image, and it runs rustc.
//!
//! Cargo gives each crate a mark (`-C metadata`) that depends on where the repository lies. It gets into the names of
//! symbols, and by their order into the code. Here it becomes one that depends on what is compiled alone, so that the
//! same sources give the same image in every folder. Deliberately not here: any other change of what rustc is told.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use package::sha256;

use crate::failure::Failure;
use crate::keys::hexadecimal;

/// Set for the runs of this tool that stand for rustc.
const MARK: &str = "SING_IS_RUSTC";
/// What cargo tells of the crate by variables.
const CRATE: [&str; 2] = ["CARGO_PKG_NAME", "CARGO_PKG_VERSION"];
/// Characters of a crate's mark, as cargo's have.
const MARK_LENGTH: usize = 16;

/// Lets a cargo command run this tool in the place of rustc.
pub fn stand_in(command: &mut Command) {
    let Ok(tool) = std::env::current_exe() else { return };
    // One that was built anew since it began has no path any more.
    let tool = if tool.exists() { tool } else { PathBuf::from(format!("/proc/{}/exe", std::process::id())) };
    command.env("RUSTC_WRAPPER", tool).env(MARK, "1");
}

/// Runs rustc, if this run stands for it; returns only then, and with the reason why rustc could not be started.
pub fn run_as_rustc() -> Option<Failure> {
    std::env::var_os(MARK)?;
    let mut words = std::env::args_os().skip(1);
    let rustc = words.next()?;
    let words: Vec<OsString> = words.collect();
    let about = CRATE.map(|name| std::env::var(name).unwrap_or_default()).join(" ");
    let error = Command::new(&rustc).args(with_own_mark(&words, &about)).exec();
    Some(Failure::new(format!("{} cannot be started: {error}", rustc.to_string_lossy())))
}

/// The words for rustc, with a mark that depends on nothing but the crate and how it is compiled.
fn with_own_mark(words: &[OsString], about: &str) -> Vec<OsString> {
    let mark = || format!("metadata={}", mark(words, about));
    let mut result: Vec<OsString> = Vec::new();
    for word in words {
        let is_value = result.last().is_some_and(|before| before == "-C");
        let word = match word.to_str() {
            Some(text) if is_value && text.starts_with("metadata=") => mark().into(),
            Some(text) if text.starts_with("-Cmetadata=") => format!("-C{}", mark()).into(),
            _ => word.clone(),
        };
        result.push(word);
    }
    result
}

/// Distinguishes all crates that can take part in one image: by name, version, features and kind.
fn mark(words: &[OsString], about: &str) -> String {
    const TOLD: [&str; 5] = ["--crate-name", "--crate-type", "--edition", "--cfg", "--target"];
    let text = |word: &OsStr| word.to_string_lossy().into_owned();
    let values = words.windows(2).filter(|pair| TOLD.iter().any(|option| pair[0] == *option));
    let mut facts: Vec<String> = values.map(|pair| format!("{} {}", text(&pair[0]), text(&pair[1]))).collect();
    let joined = words.iter().map(|word| text(word));
    facts.extend(joined.filter(|word| TOLD.iter().any(|option| word.starts_with(&format!("{option}=")))));
    facts.sort();
    facts.push(about.into());
    let digest = hexadecimal(&sha256(facts.join("\n").as_bytes()));
    digest[..MARK_LENGTH].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    fn marked(text: &str, about: &str) -> Vec<OsString> {
        with_own_mark(&words(text), about)
    }

    #[test]
    fn the_mark_depends_on_the_crate_and_not_on_where_it_lies() {
        let here = "--crate-name echo --edition=2024 /a/echo.rs -C metadata=1111 -C extra-filename=-1111";
        let there = "--crate-name echo --edition=2024 /b/echo.rs -C metadata=2222 -C extra-filename=-2222";
        let mark = |text: &str, about: &str| marked(text, about)[5].clone();
        assert_eq!(mark(here, "echo 0.1.0"), mark(there, "echo 0.1.0"));
        assert_ne!(mark(here, "echo 0.1.0"), mark(here, "echo 0.2.0"));
        let featured = format!("{here} --cfg feature=\"a\"");
        assert_ne!(mark(here, "echo 0.1.0"), mark(&featured, "echo 0.1.0"));
        assert_ne!(mark(here, ""), mark(&here.replace("name echo", "name cat"), ""));
    }

    #[test]
    fn nothing_else_is_changed() {
        let text = "-vV --print cfg -C opt-level=2 -C metadata=1111 -Cmetadata=1111 metadata=1111";
        let (before, after) = (words(text), marked(text, "x"));
        let changed: Vec<usize> = (0..before.len()).filter(|&index| before[index] != after[index]).collect();
        assert_eq!((changed, after.len()), (vec![6, 7], before.len()));
        assert!(after[7].to_string_lossy().starts_with("-Cmetadata="));
    }
}

//! Wrapper of rustc (`RUSTC_WRAPPER`): cargo runs this tool for each crate of an image, and it runs rustc.
//!
//! Cargo passes each crate a hash (`-C metadata`) that depends on the path of the repository. It is part of symbol
//! names, and by their order affects the code. It is replaced by one that depends on the crate alone, so that the same
//! sources give the same image in every folder. Only checked crates are compiled, because cargo may also run the
//! results. For each crate of the repository, the files that rustc read are recorded ([`crate::readings`]).
//! Deliberately not here: any other change of rustc's arguments.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use package_check::sha256;

use crate::failure::{Failure, Outcome};
use crate::keys::hexadecimal;
use crate::readings::{self, DepInfo};

/// Set for the runs of this tool that stand for rustc: the folders of the system's sources and of one's own workspace,
/// each on a line.
const MARK: &str = "SING_IS_RUSTC";
/// File with the folders of all crates that may be compiled, one per line.
const JUDGED: &str = "SING_JUDGED";
/// The crate, from cargo's environment variables.
const CRATE: [&str; 2] = ["CARGO_PKG_NAME", "CARGO_PKG_VERSION"];
const CRATE_FOLDER: &str = "CARGO_MANIFEST_DIR";
/// Length of a crate's metadata hash, as in cargo.
const MARK_LENGTH: usize = 16;
/// Exit status if rustc was killed by a signal.
const ENDED: u8 = 101;

/// Makes a cargo command use this tool as its rustc wrapper, for crates in the folders listed in the file `judged`.
pub fn stand_in(command: &mut Command, workspaces: &[PathBuf], judged: &Path) {
    let Ok(tool) = crate::tool::path() else { return };
    // A program that was rebuilt while it runs no longer exists at its path.
    let tool = if tool.exists() { tool } else { PathBuf::from(format!("/proc/{}/exe", std::process::id())) };
    let mut mark = OsString::new();
    for workspace in workspaces {
        mark.push(workspace);
        mark.push("\n");
    }
    command.env("RUSTC_WRAPPER", tool).env(MARK, mark).env(JUDGED, judged);
}

/// Runs rustc, if this process is a wrapper for it, and returns its exit status.
pub fn run_as_rustc() -> Option<Outcome<u8>> {
    let mark = std::env::var_os(MARK)?;
    let lines = mark.as_bytes().split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let workspaces: Vec<PathBuf> = lines.map(|line| OsStr::from_bytes(line).into()).collect();
    let mut words = std::env::args_os().skip(1);
    let rustc = words.next()?;
    Some(compile(&workspaces, &rustc, &words.collect::<Vec<_>>()))
}

fn compile(workspaces: &[PathBuf], rustc: &OsStr, words: &[OsString]) -> Outcome<u8> {
    // Not set when cargo queries rustc's version and target.
    let folder = std::env::var_os(CRATE_FOLDER).map(PathBuf::from);
    if let Some(folder) = &folder {
        expect_judged(folder, &std::env::var_os(JUDGED).map(PathBuf::from).unwrap_or_default())?;
    }
    let about = CRATE.map(|name| std::env::var(name).unwrap_or_default()).join(" ");
    let began = SystemTime::now();
    let ours = workspaces.iter().find(|workspace| folder.as_ref().is_some_and(|folder| folder.starts_with(workspace)));
    // The flags for all crates contain the path of the system's sources only, so that those are compiled once for all
    // workspaces.
    let own = ours.filter(|workspace| Some(*workspace) != workspaces.first());
    let shorter = own.map(|workspace| format!("--remap-path-prefix={}/=", workspace.display()));
    let status = Command::new(rustc).args(with_own_mark(words, &about)).args(shorter).status().map_err(|error| {
        Failure::new(format!("{} cannot be started: {error}", rustc.to_string_lossy()))
            .remedy("install a stable Rust toolchain, for instance with rustup")
    })?;
    if let Some(dep_info) = dep_info(words).filter(|_| status.success() && ours.is_some()) {
        readings::keep(&dep_info, &DepInfo::read(&dep_info)?, began)?;
    }
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(ENDED))
}

/// Refuses an unchecked crate: cargo resolved it differently than in the query.
fn expect_judged(folder: &Path, list: &Path) -> Outcome<()> {
    let judged = std::fs::read_to_string(list).map_err(|error| Failure::file("read", list, &error))?;
    if judged.lines().any(|line| Path::new(line) == folder) {
        return Ok(());
    }
    Err(Failure::new(format!("unchecked crate in {}", folder.display()))
        .remedy("make the dependency unconditional, independent of the machine"))
}

/// Returns the path of rustc's dep-info file.
fn dep_info(words: &[OsString]) -> Option<PathBuf> {
    let text: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let value = |option: &str| text.windows(2).find(|pair| pair[0] == option).map(|pair| pair[1]);
    let is_emitted = text.iter().any(|word| word.starts_with("--emit=") && word.contains("dep-info"));
    let extra = text.iter().find_map(|word| word.strip_prefix("extra-filename="))?;
    is_emitted.then(|| Some(Path::new(value("--out-dir")?).join(format!("{}{extra}.d", value("--crate-name")?))))?
}
/// Returns the arguments for rustc, with metadata that depends only on the crate and how it is compiled.
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

/// Hash that distinguishes all crates in one image: by name, version, features and kind.
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
    fn nothing_is_compiled_that_was_not_judged() {
        let folder = tempfile::tempdir().expect("a folder");
        let list = folder.path().join("judged");
        assert!(expect_judged(Path::new("/a/echo"), &list).is_err());
        std::fs::write(&list, "/a/echo\n/a/sip\n").expect("a file");
        assert_eq!(expect_judged(Path::new("/a/echo"), &list), Ok(()));
        for other in ["/a", "/a/echo/inner", "/a/ech", "/b/echo"] {
            let refused = expect_judged(Path::new(other), &list).expect_err(other).to_string();
            assert!(refused.contains("unchecked crate in"), "{refused}");
        }
    }

    #[test]
    fn what_was_read_lies_beside_what_was_made() {
        let text = "--crate-name echo --edition=2024 /a/echo.rs --emit=dep-info,link -C metadata=1 \
                    -C extra-filename=-12 --out-dir /a/deps";
        assert_eq!(dep_info(&words(text)), Some(PathBuf::from("/a/deps/echo-12.d")));
        assert_eq!(dep_info(&words(&text.replace("dep-info,", ""))), None);
        assert_eq!(dep_info(&words("-vV")), None);
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

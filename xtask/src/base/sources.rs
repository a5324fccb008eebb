//! Counts the sources of a crate.

use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

use sing::cargo::Package;
use sing::failure::{Failure, Outcome};

/// Macros for code that the compiler does not check. `asm!` needs an `unsafe` block anyway.
const UNSAFE_WORDS: [&str; 2] = ["unsafe", "global_asm"];

/// Counts of a crate's sources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sources {
    /// Lines that are neither empty nor comment, tests among them.
    pub lines: usize,
    /// Uses of the word `unsafe` (blocks, functions, implementations, attributes), and assembly that needs none.
    pub unsafe_sites: usize,
}

impl std::iter::Sum for Sources {
    fn sum<I: Iterator<Item = Sources>>(all: I) -> Sources {
        all.fold(Sources::default(), |sum, one| Sources {
            lines: sum.lines + one.lines,
            unsafe_sites: sum.unsafe_sites + one.unsafe_sites,
        })
    }
}

impl Sources {
    /// Counts all files of the folders that hold the crate's library, program, macro or build script.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn of(package: &Package) -> Outcome<Sources> {
        let built = ["lib", "rlib", "staticlib", "cdylib", "dylib", "proc-macro", "bin", "custom-build"];
        let mut folders: Vec<&Path> = Vec::new();
        let mut sources = Sources::default();
        for target in package.targets.iter().filter(|target| target.kind.iter().any(|kind| built.contains(&&**kind))) {
            let is_script = target.kind.iter().any(|kind| kind == "custom-build");
            match target.src_path.parent() {
                // The script's folder is the whole crate's.
                Some(folder) if !is_script && !folders.contains(&folder) => folders.push(folder),
                Some(_) if is_script => sources = [sources, count(&read(&target.src_path)?)].into_iter().sum(),
                _ => {}
            }
        }
        for folder in &folders {
            // A nested folder is counted with its parent.
            if !folders.iter().any(|other| folder != other && folder.starts_with(other)) {
                sources = [sources, of_folder(folder)?].into_iter().sum();
            }
        }
        Ok(sources)
    }
}

fn of_folder(folder: &Path) -> Outcome<Sources> {
    let unreadable = |error: std::io::Error| Failure::file("read", folder, &error);
    let mut sources = Sources::default();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let more = if path.is_dir() {
            of_folder(&path)?
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            count(&read(&path)?)
        } else {
            continue;
        };
        sources = [sources, more].into_iter().sum();
    }
    Ok(sources)
}

fn read(path: &Path) -> Outcome<String> {
    let bytes = std::fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn count(source: &str) -> Sources {
    let mut lines = std::collections::BTreeSet::new();
    match source.parse::<TokenStream>() {
        Ok(tokens) => {
            let unsafe_sites = walk(tokens, &mut lines);
            Sources { lines: lines.len(), unsafe_sites }
        }
        // Fragments for `include!` do not parse as Rust, so their text is counted.
        Err(_) => Sources {
            lines: source.lines().filter(|line| !line.trim().is_empty()).count(),
            unsafe_sites: source
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .filter(|w| UNSAFE_WORDS.contains(w))
                .count(),
        },
    }
}

/// Records the lines with tokens, except doc comments, and counts the word `unsafe`.
fn walk(tokens: TokenStream, lines: &mut std::collections::BTreeSet<usize>) -> usize {
    let mut unsafe_sites = 0;
    let mut after_hash = false;
    for token in tokens {
        let is_hash = matches!(&token, TokenTree::Punct(mark) if matches!(mark.as_char(), '#' | '!'));
        match token {
            // Doc comments come as attributes.
            TokenTree::Group(group) if after_hash && is_doc(&group.stream()) => {}
            TokenTree::Group(group) => {
                lines.insert(group.span_open().start().line);
                lines.insert(group.span_close().start().line);
                unsafe_sites += walk(group.stream(), lines);
            }
            TokenTree::Punct(_) if is_hash => {}
            other => {
                lines.insert(other.span().start().line);
                unsafe_sites += usize::from(
                    matches!(&other, TokenTree::Ident(word) if UNSAFE_WORDS.iter().any(|unsafe_word| word == unsafe_word)),
                );
            }
        }
        after_hash = is_hash;
    }
    unsafe_sites
}

fn is_doc(attribute: &TokenStream) -> bool {
    matches!(attribute.clone().into_iter().next(), Some(TokenTree::Ident(word)) if word == "doc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_code_and_uses_of_unsafe_are_counted() {
        let source = "//! unsafe\n\n/// unsafe { }\nfn f() {\n    // unsafe\n    let s = \"unsafe\";\n    unsafe { g() }\n}\n#[unsafe(no_mangle)]\nunsafe fn g() {}\n";
        assert_eq!(count(source), Sources { lines: 6, unsafe_sites: 3 });
        assert_eq!(count("macro_rules! m {\n () => {\n unsafe {}\n };\n}"), Sources { lines: 5, unsafe_sites: 1 });
        assert_eq!(count("not rust ( \n unsafe {"), Sources { lines: 2, unsafe_sites: 1 });
    }
}

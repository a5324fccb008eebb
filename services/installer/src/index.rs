//! The store's index of installed programs, the file `installed`.
//!
//! Text lines: the format version, a line per program, and a count, so that a truncated index is not taken for a
//! whole one. A name may occur in two lines: a program of the system image was removed, and another was installed
//! under its name. Deliberately not here: the package files that it names.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

use manifest_model::{Version, is_name};

/// First line: the format version.
const HEAD: &str = "installed 1";
/// Marks a program whose wider reach than its predecessor's was approved.
const MORE: &str = "more";
/// Maximum number of program lines.
const MAX_LINES: usize = 512;

/// An installed program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Name of the program.
    pub name: String,
    /// Version in the store; an upgrade replaces it.
    pub version: Version,
    /// Whether an upgrade to this version or an earlier one was approved to widen the program's reach.
    pub more: bool,
}

impl Kept {
    /// Name of its package file in the store.
    pub fn file(&self) -> String {
        format!("{}-{}.package", self.name, self.version)
    }

    /// Name of the file with its compiled image, if it is a WebAssembly program.
    pub fn image_file(&self) -> String {
        format!("{}-{}.image", self.name, self.version)
    }
}

/// Contents of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// Installed and upgraded programs.
    pub kept: Vec<Kept>,
    /// Names of uninstalled programs of the system image.
    pub gone: Vec<String>,
}

impl Index {
    /// Parses the file's bytes.
    ///
    /// # Errors
    /// The defect, for a message.
    pub fn parse(bytes: &[u8]) -> Result<Index, String> {
        let text = core::str::from_utf8(bytes).map_err(|_| String::from("it is not text"))?;
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Err(format!("its first line is not `{HEAD}`"));
        }
        let mut index = Index::default();
        let mut count = 0;
        for line in lines.by_ref() {
            let words: Vec<&str> = line.split(' ').collect();
            let (words, more) = match *words {
                [ref program @ .., MORE] if program.len() == 3 => (program, true),
                ref all => (all, false),
            };
            match *words {
                ["program", name, version] if is_name(name) && index.program(name).is_none() => {
                    let version = Version::parse(version).ok_or_else(|| format!("`{line}` has no version"))?;
                    index.kept.push(Kept { name: name.into(), version, more });
                }
                ["without", name] if is_name(name) && !index.is_gone(name) => index.gone.push(name.into()),
                ["end", number] if number == count.to_string() => {
                    return if lines.next().is_none() { Ok(index) } else { Err("data follows the end line".into()) };
                }
                _ => return Err(format!("unexpected line `{line}`")),
            }
            count += 1;
            if count > MAX_LINES {
                return Err(format!("it has more than {MAX_LINES} lines"));
            }
        }
        Err("the end line is missing".into())
    }

    /// Serialises the index.
    pub fn text(&self) -> String {
        let mut text = format!("{HEAD}\n");
        // Writing to a String cannot fail.
        for kept in &self.kept {
            let more = if kept.more { " more" } else { "" };
            let _ = writeln!(text, "program {} {}{more}", kept.name, kept.version);
        }
        for name in &self.gone {
            let _ = writeln!(text, "without {name}");
        }
        let _ = writeln!(text, "end {}", self.kept.len() + self.gone.len());
        text
    }

    /// The installed program of this name.
    pub fn program(&self, name: &str) -> Option<&Kept> {
        self.kept.iter().find(|kept| kept.name == name)
    }

    /// The index with this program replacing any of its name. An uninstalled program of the system image stays gone.
    pub fn with(&self, kept: Kept) -> Index {
        let mut index = self.clone();
        match index.kept.iter_mut().find(|old| old.name == kept.name) {
            // Approvals carry over to newer versions.
            Some(old) => *old = Kept { more: kept.more || old.more, ..kept },
            None => index.kept.push(kept),
        }
        index
    }

    /// The index without the program; if the system image has it, its removal is recorded.
    pub fn without(&self, name: &str, is_of_the_image: bool) -> Index {
        let mut index = self.clone();
        index.kept.retain(|kept| kept.name != name);
        index.gone.retain(|gone| gone != name);
        index.gone.extend(is_of_the_image.then(|| String::from(name)));
        index
    }

    /// Checks that the index does not exceed the number of lines that can be parsed.
    ///
    /// # Errors
    /// It does; the text is for a message.
    pub fn fits(&self) -> Result<(), String> {
        match self.kept.len() + self.gone.len() <= MAX_LINES {
            true => Ok(()),
            false => Err(format!("the store is full with {MAX_LINES} programs; uninstall one first")),
        }
    }

    fn is_gone(&self, name: &str) -> bool {
        self.gone.iter().any(|gone| gone == name)
    }
}

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

/// The first line.
const HEAD: &str = "installed 1";
/// Marks a program whose additional reach, compared with its predecessor's, was approved.
const MORE: &str = "more";
/// Maximum number of program lines.
const MAX_LINES: usize = 512;

/// A program that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// Whether somebody agreed that it, or one that it has replaced, comes to have more than the one before.
    pub more: bool,
}

impl Kept {
    /// The name of its package file in the store.
    pub fn file(&self) -> String {
        format!("{}-{}.package", self.name, self.version)
    }
}

/// What a store keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// Programs that were installed or upgraded.
    pub kept: Vec<Kept>,
    /// Names of programs of the system image that were taken out.
    pub gone: Vec<String>,
}

impl Index {
    /// Reads the file's bytes; or says what is wrong with them.
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
                    return if lines.next().is_none() { Ok(index) } else { Err("something follows its end".into()) };
                }
                _ => return Err(format!("`{line}` makes no sense there")),
            }
            count += 1;
            if count > MAX_LINES {
                return Err(format!("it has more than {MAX_LINES} lines"));
            }
        }
        Err("its end is missing".into())
    }

    /// The file's bytes.
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

    /// The program of this name that is kept.
    pub fn program(&self, name: &str) -> Option<&Kept> {
        self.kept.iter().find(|kept| kept.name == name)
    }

    /// The list with this program in the place of any of its name. One of the system image that was taken out stays so.
    pub fn with(&self, kept: Kept) -> Index {
        let mut index = self.clone();
        match index.kept.iter_mut().find(|old| old.name == kept.name) {
            // With what was agreed to for the older one the newer one begins.
            Some(old) => *old = Kept { more: kept.more || old.more, ..kept },
            None => index.kept.push(kept),
        }
        index
    }

    /// The list without the program. If the system image has it, that it is gone has to be kept, too.
    pub fn without(&self, name: &str, is_of_the_image: bool) -> Index {
        let mut index = self.clone();
        index.kept.retain(|kept| kept.name != name);
        index.gone.retain(|gone| gone != name);
        index.gone.extend(is_of_the_image.then(|| String::from(name)));
        index
    }

    /// Whether it is short enough to be read again.
    ///
    /// # Errors
    /// It is not: a sentence for people.
    pub fn fits(&self) -> Result<(), String> {
        match self.kept.len() + self.gone.len() <= MAX_LINES {
            true => Ok(()),
            false => {
                Err(format!("{MAX_LINES} programs are kept, and no more can be; take out one that came later first"))
            }
        }
    }

    fn is_gone(&self, name: &str) -> bool {
        self.gone.iter().any(|gone| gone == name)
    }
}

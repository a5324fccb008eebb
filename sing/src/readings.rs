//! The files that rustc read for a crate: its dep-info files, and records with a digest of each file at that time.
//!
//! Cargo decides by modification time whether to recompile a crate. A file replaced by another with the same time would
//! be checked but not compiled, so the builder compares digests. Key types: [`DepInfo`], [`Record`]. Deliberately not
//! here: rules for the files' content (`compiled_sources`).

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use package_check::sha256;

use crate::failure::{Failure, Outcome};
use crate::keys::hexadecimal;
use crate::repository::write_whole;

/// A parsed dep-info file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DepInfo {
    /// All files read.
    pub files: Vec<PathBuf>,
    /// Environment variables read.
    pub variables: Vec<String>,
}

impl DepInfo {
    /// Reads a dep-info file.
    ///
    /// # Errors
    /// It cannot be read, or has a line that rustc would write only for a file with a newline in its name.
    pub fn read(path: &Path) -> Outcome<DepInfo> {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error))?;
        DepInfo::parse(&text).map_err(|line| {
            Failure::new(format!("cannot parse {} from {line:?} on", path.display()))
                .remedy("remove newlines from file names")
        })
    }

    /// Parses the rules without prerequisites, of which there is one per file read.
    fn parse(text: &str) -> Result<DepInfo, &str> {
        let mut info = DepInfo::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(variable) = line.strip_prefix("# env-dep:") {
                let name = variable.split_once('=').map_or(variable, |(name, _)| name);
                info.variables.push(name.into());
            } else if let Some(file) = line.strip_suffix(':') {
                info.files.push(PathBuf::from(file.replace("\\ ", " ")));
            } else if !line.contains(": ") {
                return Err(line);
            }
        }
        Ok(info)
    }
}

/// The record of a crate: each file that rustc read, with its digest.
#[derive(Debug, PartialEq, Eq)]
pub struct Record(String);

impl Record {
    /// Records the files' current content.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn of(info: &DepInfo) -> Outcome<Record> {
        let mut text = String::new();
        for file in &info.files {
            let content = std::fs::read(file).map_err(|error| Failure::file("read", file, &error))?;
            text.push_str(&format!("{} {}\n", hexadecimal(&sha256(&content)), file.display()));
        }
        Ok(Record(text))
    }

    /// Returns whether this equals the record kept when the crate was compiled.
    pub fn is_kept(&self, dep_info: &Path) -> bool {
        std::fs::read_to_string(place(dep_info)).is_ok_and(|kept| kept == self.0)
    }
}

/// Path of a crate's record.
fn place(dep_info: &Path) -> PathBuf {
    dep_info.with_extension("read")
}

/// Keeps the record of a crate whose compilation started at `began`.
///
/// # Errors
/// A file cannot be read, or was written after rustc may have read it, or the record cannot be written.
pub fn keep(dep_info: &Path, info: &DepInfo, began: SystemTime) -> Outcome<()> {
    for file in &info.files {
        let written = std::fs::metadata(file).and_then(|metadata| metadata.modified());
        if written.map_err(|error| Failure::file("read", file, &error))? >= began {
            return Err(Failure::new(format!("{} changed during compilation", file.display()))
                .remedy("rebuild when nothing modifies it"));
        }
    }
    write_whole(&place(dep_info), Record::of(info)?.0.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn files_and_variables_are_those_that_rustc_names() {
        let text = "/t/libx-1.rmeta: /a/x.rs /a/two\\ words.txt\n\n/t/x-1.d: /a/x.rs /a/two\\ words.txt\n\n\
                    /a/x.rs:\n/a/two\\ words.txt:\n\n# env-dep:HOME=/root\n# env-dep:NOTHING\n";
        let info = DepInfo::parse(text).expect("a file of dependencies");
        assert_eq!(info.files, [PathBuf::from("/a/x.rs"), PathBuf::from("/a/two words.txt")]);
        assert_eq!(info.variables, ["HOME", "NOTHING"]);
        assert_eq!(DepInfo::parse("/t/x-1.d: /a/x.rs /a/y\n/a/x.rs\n"), Err("/a/x.rs"));
    }

    #[test]
    fn another_content_is_seen_whatever_the_time_of_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, dep_info) = (folder.path().join("lib.rs"), folder.path().join("x-1.d"));
        std::fs::write(&file, "fn a() {}").expect("a file");
        let time = std::fs::metadata(&file).and_then(|metadata| metadata.modified()).expect("a time");
        let info = DepInfo { files: vec![file.clone()], variables: Vec::new() };
        let is_kept = || Record::of(&info).expect("it can be read").is_kept(&dep_info);
        assert!(!is_kept());
        keep(&dep_info, &info, time + Duration::from_secs(1)).expect("it was there before");
        assert!(is_kept());
        std::fs::write(&file, "fn b() {}").expect("a file");
        std::fs::File::options().write(true).open(&file).and_then(|file| file.set_modified(time)).expect("a time");
        assert!(!is_kept());
        let refused = keep(&dep_info, &info, time).expect_err("it was written at that time").to_string();
        assert!(refused.contains("changed during compilation"), "{refused}");
    }
}

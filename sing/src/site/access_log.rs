//! Destination of a site's access log: a disk of its own, or a host file.
//!
//! The server rotates a long log by renaming it, so it is given the folder of the file. Deliberately not here: the
//! log's format and limit, which are the web server's.

use std::path::{Path, PathBuf};

use crate::command_line::RunArguments;
use crate::failure::{Failure, Outcome};

/// The first program's parameter for it.
const PARAMETER: &str = "web-log";
/// The file on the second disk.
const ON_DISK: &str = "/fs/disk1/access.log";
/// Name of the host folder below `/fs`.
const FOLDER: &str = "access-log";

/// Adds the arguments for a run's log.
///
/// # Errors
/// The file is unsuitable for a machine.
pub fn place(arguments: &mut RunArguments) -> Outcome<()> {
    let Some(file) = arguments.access_log.clone() else {
        arguments.parameter.push(format!("{PARAMETER}={ON_DISK}"));
        return Ok(());
    };
    let (folder, name) = take_apart(&file)?;
    let mut specification = std::ffi::OsString::from(format!("{FOLDER}="));
    specification.push(&folder);
    arguments.folder.push(specification);
    arguments.parameter.push(format!("{PARAMETER}=/fs/{FOLDER}/{name}"));
    Ok(())
}

/// Splits a path into its folder, which exists, and the file name.
fn take_apart(file: &Path) -> Outcome<(PathBuf, String)> {
    let shown = file.display();
    let name = file.file_name().and_then(|name| name.to_str()).filter(|_| !file.is_dir());
    let Some(name) = name else {
        return Err(Failure::new(format!("--access-log {shown} is not a file name"))
            .remedy("use a file, such as --access-log logs/access.log"));
    };
    let folder = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().map_err(|error| Failure::file("log to the folder", folder, &error))?;
    Ok((folder, name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_a_file_in_a_folder_that_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let whole = folder.path().canonicalize().expect("it is there");
        assert_eq!(take_apart(&folder.path().join("log")), Ok((whole, "log".into())));
        for bad in [folder.path().to_path_buf(), "..".into(), "/".into()] {
            let refused = take_apart(&bad).expect_err("it is no file").to_string();
            assert!(refused.contains("is not a file name"), "{refused}");
        }
        let refused = take_apart(&folder.path().join("no/log")).expect_err("there is none").to_string();
        assert!(refused.starts_with("cannot log to the folder "), "{refused}");
    }
}

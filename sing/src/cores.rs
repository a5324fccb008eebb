//! `sing run --cores FOLDER`: a system with the service `core-writer`, which has the folder of the host.
//!
//! Neighbour: `autopsy` reads what is written there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::command_line::{MachineName, RunArguments};
use crate::domains;
use crate::failure::{Failure, Outcome};
use crate::repository::{Repository, write_if_changed};
use crate::systems;

/// Name of the folder inside the machine.
const FOLDER: &str = "cores";

/// Returns the arguments with a system that writes cores, and its folder, which is created if it is missing.
///
/// # Errors
/// The folder cannot be created; the system cannot be the base of another.
pub fn applied(repository: &Repository, arguments: &RunArguments) -> Outcome<RunArguments> {
    let mut applied = arguments.clone();
    let Some(folder) = &arguments.cores else { return Ok(applied) };
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("create the folder", folder, &error))?;
    let mut specification = OsString::from(format!("{FOLDER}="));
    specification.push(folder);
    applied.folder.push(specification);
    let usual = match arguments.machine {
        None | Some(MachineName::Hosted) if arguments.tap.is_some() => systems::HOSTED_TAP,
        None | Some(MachineName::Hosted) => systems::HOSTED,
        Some(MachineName::Qemu | MachineName::Microvm) => systems::BARE,
    };
    let asked = repository.system_manifest(arguments.system.as_deref().unwrap_or(Path::new(usual)))?;
    let base = domains::base_name(repository, &asked, "--cores")?;
    applied.system = Some(written(repository, &asked, &base)?);
    Ok(applied)
}

/// Writes the manifest of a system with the service, beside one that this tool has written, too.
fn written(repository: &Repository, asked: &Path, base: &str) -> Outcome<PathBuf> {
    let is_written = asked.starts_with(repository.output(""));
    let folder = if is_written { asked.with_file_name("") } else { repository.output(FOLDER) };
    let path = folder.join(format!("{base}-{FOLDER}.toml"));
    write_if_changed(&path, manifest(base).as_bytes())?;
    Ok(path)
}

fn manifest(base: &str) -> String {
    format!(
        "# What `--cores` adds to `{base}`.\n\n[system]\nname = \"{base}-{FOLDER}\"\nbase = \"{base}\"\n\n\
         [[program]]\nname = \"core-writer\"\nparameters = {{ folder = \"/fs/{FOLDER}\" }}\n"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_service_is_given_the_folder_of_the_host() {
        let manifest = super::manifest("bare");
        assert!(manifest.contains("name = \"bare-cores\"\nbase = \"bare\""), "{manifest}");
        assert!(manifest.ends_with("name = \"core-writer\"\nparameters = { folder = \"/fs/cores\" }\n"), "{manifest}");
    }
}

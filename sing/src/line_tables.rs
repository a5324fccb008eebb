//! Images with line tables, for the debugger and for counting lines.
//!
//! They have the same code as the running images, in their own output folder, and are never loaded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::builder;
use crate::cargo::{self, Metadata};
use crate::failure::Outcome;
use crate::programs::Program;
use crate::repository::Repository;
use crate::stubs::EntryStubs;

/// Settings of the release profile that differ from those of the running images.
const SETTINGS: [&str; 2] = ["debug=\"line-tables-only\"", "strip=\"none\""];
const FOLDER: &str = "base";

/// Builds the images of these programs with line tables; returns their paths by program name. The caller holds the
/// builder's lock.
///
/// # Errors
/// A program is refused or does not build.
pub fn images(
    repository: &Repository,
    stubs: &EntryStubs,
    metadata: &Metadata,
    selected: &[&Program],
) -> Outcome<BTreeMap<String, PathBuf>> {
    let judged = builder::judge(repository, stubs, metadata, selected)?;
    cargo::build(command(stubs, selected, &judged, &repository.output(FOLDER)), "programs", 0)
}

/// Returns the command that builds the images, with line tables and another output folder.
fn command(stubs: &EntryStubs, selected: &[&Program], judged: &Path, target: &Path) -> Command {
    let usual = stubs.build_command(selected.iter().copied(), judged);
    let mut command = Command::new(usual.get_program());
    if let Some(folder) = usual.get_current_dir() {
        command.current_dir(folder);
    }
    let mut is_target = false;
    for argument in usual.get_args() {
        if is_target {
            command.arg(target)
        } else {
            command.arg(argument)
        };
        is_target = argument == "--target-dir";
    }
    for setting in SETTINGS {
        command.arg("--config").arg(format!("profile.release.{setting}"));
    }
    for (name, value) in usual.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

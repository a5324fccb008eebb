//! `sing run --domains`: the configurations of hardware domains that the papers measure (*Deconstructing Process
//! Isolation*, figure 3).
//!
//! A configuration with domains is a system manifest of its own, which this writes: based on the one asked for, with
//! `[[domain]]` tables that come before those of its base.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use manifest_model::{Category, Domain};

use crate::command_line::{Pages, RunArguments};
use crate::failure::{Failure, Outcome};
use crate::repository::{Repository, write_if_changed};
use crate::systems;

/// A configuration of hardware domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Configuration {
    /// Everything in the kernel's own domain, memory mapped by the largest pages
    SipPhys,
    /// Everything in the kernel's own domain, memory mapped by 4 KiB pages
    SipPage,
    /// The applications in a domain of theirs, with the processor's privileges
    #[value(name = "hip-r0")]
    HipR0,
    /// Each process, drivers and services too, in a domain of its own, with the processor's privileges
    #[value(name = "hip-r0-s")]
    HipR0S,
    /// The applications in a domain of theirs, unprivileged
    #[value(name = "hip-r3")]
    HipR3,
    /// Each process, drivers and services too, in a domain of its own, unprivileged
    #[value(name = "hip-r3-s")]
    HipR3S,
}

impl Configuration {
    /// The value of `--domains`.
    pub fn word(self) -> &'static str {
        match self {
            Configuration::SipPhys => "sip-phys",
            Configuration::SipPage => "sip-page",
            Configuration::HipR0 => "hip-r0",
            Configuration::HipR0S => "hip-r0-s",
            Configuration::HipR3 => "hip-r3",
            Configuration::HipR3S => "hip-r3-s",
        }
    }

    /// Whether each process has a domain of its own; as in the paper, the applications of HIP-R0 and HIP-R3 share one.
    fn each(self) -> bool {
        matches!(self, Configuration::HipR0S | Configuration::HipR3S)
    }

    fn kind(self) -> Domain {
        match self {
            Configuration::SipPhys | Configuration::SipPage => Domain::Kernel,
            Configuration::HipR0 | Configuration::HipR0S => Domain::Ring0,
            Configuration::HipR3 | Configuration::HipR3S => Domain::Ring3,
        }
    }

    /// Returns the categories of the programs that run apart; empty for all. `None` without domains.
    fn apart(self) -> Option<&'static [Category]> {
        match self {
            Configuration::SipPhys | Configuration::SipPage => None,
            Configuration::HipR0 | Configuration::HipR3 => {
                Some(&[Category::Console, Category::WebApplication, Category::Test, Category::Example])
            }
            Configuration::HipR0S | Configuration::HipR3S => Some(&[]),
        }
    }

    /// Returns a system manifest in this configuration; `None` if it is the base itself.
    fn manifest(self, base: &str) -> Option<String> {
        let categories = self.apart()?;
        let word = self.word();
        let words: Vec<String> = categories.iter().map(|category| format!("\"{category}\"")).collect();
        Some(format!(
            "# What `--domains {word}` adds to `{base}`.\n\n[system]\nname = \"{base}-{word}\"\nbase = \"{base}\"\n\n\
             [[domain]]\nname = \"{word}\"\nkind = \"{}\"\ncategories = [{}]\neach = {}\n",
            self.kind(),
            words.join(", "),
            self.each()
        ))
    }
}

/// Returns the arguments with the system and the pages of the configuration that they ask for, for a bare machine.
///
/// # Errors
/// The system cannot be the base of another.
pub fn applied(repository: &Repository, arguments: &RunArguments) -> Outcome<RunArguments> {
    let mut applied = derived_arguments(repository, arguments, systems::BARE)?;
    applied.pages = arguments.domains.map_or(arguments.pages, |configuration| match configuration {
        Configuration::SipPage => Some(Pages::Small),
        _ => Some(Pages::Largest),
    });
    Ok(applied)
}

/// The same for the hosted machine, whose system is `usual` if none is asked for.
///
/// # Errors
/// It has no such configuration; the system cannot be the base of another.
pub fn applied_hosted(repository: &Repository, arguments: &RunArguments, usual: &str) -> Outcome<RunArguments> {
    use Configuration::{HipR0, HipR0S, SipPage};
    if let Some(bare @ (SipPage | HipR0 | HipR0S)) = arguments.domains {
        return Err(Failure::new(format!(
            "--domains {} applies to bare machines only: a domain of the hosted machine is a process of the host, in ring 3",
            bare.word()
        ))
        .remedy("add --machine qemu or --machine microvm, or take sip-phys, hip-r3 or hip-r3-s"));
    }
    derived_arguments(repository, arguments, usual)
}

fn derived_arguments(repository: &Repository, arguments: &RunArguments, usual: &str) -> Outcome<RunArguments> {
    let mut applied = arguments.clone();
    let Some(configuration) = arguments.domains else { return Ok(applied) };
    let asked = arguments.system.as_deref().unwrap_or(Path::new(usual));
    let system = repository.system_manifest(asked)?;
    if let Some(derived) = derived(repository, &system, configuration)? {
        applied.system = Some(derived);
    }
    Ok(applied)
}

/// Returns the manifest of a system in a configuration, which is written if it is not the system's own.
///
/// # Errors
/// The system cannot be the base of another.
pub fn system_in(repository: &Repository, system: &Path, configuration: Configuration) -> Outcome<PathBuf> {
    Ok(derived(repository, system, configuration)?.unwrap_or_else(|| system.to_path_buf()))
}

fn derived(repository: &Repository, system: &Path, configuration: Configuration) -> Outcome<Option<PathBuf>> {
    let name = stem(system);
    let Some(text) = configuration.manifest(&name) else { return Ok(None) };
    base_name(repository, system, "--domains")?;
    let is_written = system.starts_with(repository.output(""));
    let folder = if is_written { system.with_file_name("") } else { repository.output("domains") };
    let path = folder.join(format!("{name}-{}.toml", configuration.word()));
    write_if_changed(&path, text.as_bytes())?;
    Ok(Some(path))
}

/// Returns the name under which a system can be the base of one that this tool writes for an option.
///
/// # Errors
/// It cannot be.
pub fn base_name(repository: &Repository, system: &Path, option: &str) -> Outcome<String> {
    let name = stem(system);
    if systems::is_image(system) {
        return Err(Failure::new(format!("{} is a finished system image", system.display()))
            .remedy(format!("give its manifest with --system, or remove {option}")));
    }
    let is_written = system.starts_with(repository.output(""));
    if !is_written && repository.system_outputs(system) != name && !is_own(repository, system) {
        return Err(Failure::new(format!(
            "{} is in no `systems` folder, where its base is looked up",
            system.display()
        ))
        .remedy(format!("move it there, or add to it what {option} would add")));
    }
    Ok(name)
}

fn stem(system: &Path) -> String {
    system.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Whether the manifest is in the `systems` folder of the user's own workspace.
fn is_own(repository: &Repository, system: &Path) -> bool {
    let folder = |path: &Path| path.canonicalize().ok();
    system.parent().and_then(folder) == folder(&repository.root().join("systems"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_configuration_adds_what_the_paper_has() {
        let text = |configuration: Configuration| configuration.manifest("bare");
        assert_eq!(text(Configuration::SipPhys), None);
        assert_eq!(text(Configuration::SipPage), None);
        let all = text(Configuration::HipR3S).expect("a manifest");
        assert!(all.contains("name = \"bare-hip-r3-s\"") && all.contains("categories = []"), "{all}");
        let applications = text(Configuration::HipR3).expect("a manifest");
        assert!(applications.contains(r#"categories = ["console", "web-application", "test", "example"]"#));
        assert!(!applications.contains("driver") && applications.ends_with("each = false\n"), "{applications}");
        assert!(all.ends_with("each = true\n") && all.contains("kind = \"ring-3\""), "{all}");
        let privileged = text(Configuration::HipR0S).expect("a manifest");
        assert!(privileged.ends_with("each = true\n") && privileged.contains("kind = \"ring-0\""), "{privileged}");
    }

    #[test]
    fn the_word_is_the_value_on_the_command_line() {
        for configuration in Configuration::value_variants() {
            let value = configuration.to_possible_value().expect("none is hidden");
            assert_eq!(value.get_name(), configuration.word());
        }
    }
}

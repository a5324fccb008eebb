//! `sing base`: the trusted computing base, crate by crate: all code on which isolation between programs depends.
//!
//! A crate belongs to it if it is compiled into a machine (kernel, HAL, boot), if it is compiled into an image and may
//! hold unsafe code, or if it runs while an image is built. Crates of an image that forbid unsafe code are what the
//! isolation contains, so they are not listed. Counts are of whole crates; `--compiled` counts the code in the files
//! that run. Deliberately not here: why a crate is trusted; see the audited list.

mod line_table;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::command_line::BaseArguments;
use sing::bare::kernel;
use sing::build_lock;
use sing::builder::UnsafeTests;
use sing::cargo::{Metadata, Package};
use sing::failure::{Failure, Outcome};
use sing::line_tables;
use sing::programs::{Body, Program};
use sing::repository::Repository;
use sing::stubs::{EntryStubs, stub_name};
use sing::systems::{self, Catalogue, Platform};

use line_table::Compiled;
use sources::Sources;

/// Crates that are machines, with the kernel in them.
const MACHINES: [&str; 2] = ["boot-hosted", "boot-x86-64"];
/// The crate of the builder.
const BUILDER: &str = "sing";

/// Why a crate is trusted. The first that applies counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Machine,
    Image,
    Builder,
}

impl Part {
    const fn title(self) -> &'static str {
        match self {
            Part::Machine => "kernel and machines",
            Part::Image => "linked into images",
            Part::Builder => "run by the builder",
        }
    }
}

/// A crate of the base.
#[derive(Debug)]
struct Row {
    name: String,
    is_ours: bool,
    sources: Sources,
    compiled: Option<usize>,
}

/// Prints the base of a system.
///
/// # Errors
/// The system cannot be read, cargo cannot resolve its crates, a source cannot be read, or something does not build.
pub fn print(repository: &Repository, arguments: &BaseArguments) -> Outcome<u8> {
    let path = repository.system_manifest(&arguments.system)?;
    let catalogue = Catalogue::read(repository)?;
    let system = catalogue.system(repository, &path)?;
    let selected: Vec<&Program> =
        system.programs().iter().map(|name| catalogue.programs.get(name)).collect::<Outcome<_>>()?;
    // Refused crates are not measured.
    let machines = match arguments.compiled {
        true => {
            let hosted = systems::prepare(repository, &path, Platform::Hosted, UnsafeTests::Refused)?;
            systems::prepare(repository, &path, Platform::Bare, UnsafeTests::Refused)?;
            vec![hosted.machine, kernel::with_symbols(repository)]
        }
        false => Vec::new(),
    };
    let _lock = build_lock::lock(repository)?;
    let stubs = EntryStubs::generate(repository, catalogue.programs.all())?;
    let of_stubs = Metadata::of_workspace(&stubs.manifest(), &stubs.encoded_flags())?;
    let of_workspace = Metadata::of_workspace(&repository.base().join("Cargo.toml"), "")?;
    let crates = trusted(&of_stubs, &of_workspace, &selected)?;
    let compiled = match arguments.compiled {
        true => {
            let images = line_tables::images(repository, &stubs, &of_stubs, &selected)?;
            Some(compiled(&images, &machines, &selected)?)
        }
        false => None,
    };
    let mut parts: BTreeMap<Part, Vec<Row>> = BTreeMap::new();
    for (package, part) in crates {
        // Code that the builder runs is not in the measured files.
        let row = row(repository, package, compiled.as_ref().filter(|_| part != Part::Builder))?;
        // Safe crates of ours are checked by the compiler wherever they are linked into an image.
        if part != Part::Image || !row.is_ours || row.sources.unsafe_sites > 0 {
            parts.entry(part).or_default().push(row);
        }
    }
    print!("{}", rendered(&parts, compiled.as_ref()));
    Ok(0)
}

/// Candidate crates, without duplicates.
fn trusted<'a>(
    of_stubs: &'a Metadata,
    of_workspace: &'a Metadata,
    selected: &[&Program],
) -> Outcome<Vec<(&'a Package, Part)>> {
    let member = |name: &str| {
        of_workspace.member(name).ok_or_else(|| Failure::new(format!("the workspace has no crate `{name}`")))
    };
    let mut found = Vec::new();
    for machine in MACHINES {
        found.extend(of_workspace.linked(&member(machine)?.id).into_iter().map(|package| (package, Part::Machine)));
    }
    let mut built = Vec::new();
    for program in selected.iter().filter(|program| matches!(program.body, Body::Crate { .. })) {
        let stub = of_stubs
            .member(&stub_name(program))
            .ok_or_else(|| Failure::new(format!("no entry crate of `{}`", program.name)).remedy("build it first"))?;
        let linked = of_stubs.linked(&stub.id).into_iter().filter(|package| package.id != stub.id);
        found.extend(linked.map(|package| (package, Part::Image)));
        built.extend(of_stubs.closure(&stub.id).into_iter().filter(|package| package.id != stub.id));
    }
    found.extend(built.into_iter().map(|package| (package, Part::Builder)));
    found.extend(of_workspace.closure(&member(BUILDER)?.id).into_iter().map(|package| (package, Part::Builder)));
    let mut seen = BTreeSet::new();
    found.retain(|(package, _)| seen.insert((package.name.clone(), package.version.clone())));
    Ok(found)
}

fn row(repository: &Repository, package: &Package, compiled: Option<&Compiled>) -> Outcome<Row> {
    let is_ours = package.source.is_none();
    let name = match is_ours {
        true => repository.shown(package.folder()).to_string(),
        false => format!("{} {}", package.name, package.version),
    };
    let sources = Sources::of(package)?;
    let compiled = compiled.map(|compiled| compiled.lines_of(repository, package));
    Ok(Row { name, is_ours, sources, compiled })
}

/// Reads the line tables of images and machines.
fn compiled(images: &BTreeMap<String, PathBuf>, machines: &[PathBuf], selected: &[&Program]) -> Outcome<Compiled> {
    let mut compiled = Compiled::default();
    for machine in machines {
        compiled.add_machine(machine)?;
    }
    for image in selected.iter().filter_map(|program| images.get(&program.name)) {
        compiled.add_image(image)?;
    }
    Ok(compiled)
}

fn rendered(parts: &BTreeMap<Part, Vec<Row>>, compiled: Option<&Compiled>) -> String {
    let mut lines = Vec::new();
    for (part, rows) in parts {
        let heading = if compiled.is_some() && *part != Part::Builder { "  compiled" } else { "" };
        lines.push(format!("{:<44}{:>8}{:>8}{heading}", part.title(), "lines", "unsafe"));
        let mut sorted: Vec<&Row> = rows.iter().collect();
        sorted.sort_by_key(|row| (!row.is_ours, row.name.clone()));
        lines.extend(sorted.iter().map(|row| row_line(&row.name, row.sources, row.compiled)));
        for (title, is_ours) in [("ours", true), ("others'", false)] {
            let of_kind = || rows.iter().filter(|row| row.is_ours == is_ours);
            let sum = of_kind().map(|row| row.sources).sum();
            let in_files = compiled.filter(|_| *part != Part::Builder);
            let in_files = in_files.map(|_| of_kind().filter_map(|row| row.compiled).sum());
            lines.push(row_line(&format!("= {title}, {} crates", of_kind().count()), sum, in_files));
        }
        lines.push(String::new());
    }
    if let Some(compiled) = compiled {
        lines.push(format!(
            "compiled: distinct source lines with code in at least one of {} images and {} machines; \
             of Rust's own library {}",
            compiled.images(),
            MACHINES.len(),
            compiled.lines_of_rust()
        ));
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn row_line(name: &str, sources: Sources, compiled: Option<usize>) -> String {
    let compiled = compiled.map_or(String::new(), |lines| format!("{lines:>10}"));
    format!("  {name:<42}{:>8}{:>8}{compiled}", sources.lines, sources.unsafe_sites)
}

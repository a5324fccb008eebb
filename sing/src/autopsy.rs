//! `sing autopsy`: cores of dead programs, with the names of the functions that they were in.
//!
//! A core is text that `log --core` and the service `core-writer` write ([`report`] finds it in a file, among anything
//! else). Its code addresses become a back trace ([`frames`]) by the symbols of the very package that died, which the
//! core identifies; with `--lines` by line tables, too ([`lines`]). docs/autopsy.md has the whole picture. Deliberately
//! not here: what is kept of a death, which is the kernel's.

pub mod arguments;
mod frames;
mod lines;
mod report;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};

use package::Delivery;

use crate::bare::debug;
use crate::failure::{Failure, Outcome};
use crate::keys::hexadecimal;
use crate::programs::Programs;
use crate::repository::Repository;
use crate::systems::{self, Platform};

use arguments::AutopsyArguments;
use frames::{Frame, Image};
use lines::LineTable;
use report::{Core, Line};

/// `sing autopsy`. Returns 1 if there is no core in the files.
///
/// # Errors
/// A file cannot be read, or with `--lines` a program does not build, or not to what died.
pub fn autopsy(repository: &Repository, arguments: &AutopsyArguments) -> Outcome<u8> {
    let mut cores = Vec::new();
    for text in texts(&arguments.files)? {
        cores.extend(report::cores(&text));
    }
    if cores.is_empty() {
        eprintln!("sing: no core found; `log --core` in the shell writes those that a machine keeps");
        return Ok(1);
    }
    let images = Images::of(repository, arguments.system.as_deref(), &cores)?;
    let with_lines = if arguments.lines { images_with_lines(repository, &images)? } else { BTreeMap::new() };
    for core in &cores {
        let identity = core.identity.as_str();
        let image = images.0.get(identity).map(|(_, bytes)| Image::parse(bytes));
        let table = with_lines.get(identity).and_then(|bytes| LineTable::read(bytes));
        print!("{}", told(core, image.flatten().as_ref(), table.as_ref(), arguments.all));
    }
    Ok(0)
}

fn texts(files: &[PathBuf]) -> Outcome<Vec<String>> {
    if files.is_empty() {
        let mut bytes = Vec::new();
        let read = std::io::stdin().read_to_end(&mut bytes);
        read.map_err(|error| Failure::new(format!("cannot read standard input: {error}")))?;
        return Ok(vec![String::from_utf8_lossy(&bytes).into_owned()]);
    }
    let read = |path: &PathBuf| std::fs::read(path).map_err(|error| Failure::file("read", path, &error));
    files.iter().map(|path| Ok(String::from_utf8_lossy(&read(path)?).into_owned())).collect()
}

/// Images of packages, with the program's name, by the beginning of the package's identity in hexadecimal digits.
struct Images(BTreeMap<String, (String, Vec<u8>)>);

impl Images {
    /// Finds the packages that died: in this system, or else in all that were built, the most recent first.
    fn of(repository: &Repository, system: Option<&Path>, cores: &[Core]) -> Outcome<Images> {
        let files = match system {
            Some(system) => {
                let system = repository.system_manifest(system)?;
                let unsafe_tests = crate::builder::UnsafeTests::Allowed;
                vec![systems::current(repository, &system, Platform::Hosted, unsafe_tests)?.image]
            }
            None => built(repository),
        };
        let mut found = BTreeMap::new();
        for file in files {
            if cores.iter().all(|core| found.contains_key(&core.identity)) {
                break;
            }
            let bytes = std::fs::read(&file).map_err(|error| Failure::file("read", &file, &error))?;
            // Another version of this tool may have written it.
            let Ok(image) = package_check::verify_system(&bytes) else { continue };
            for (package, identity) in image.packages.iter().zip(&image.identities) {
                let identity = hexadecimal(identity);
                let Some(core) = cores.iter().find(|core| identity.starts_with(&core.identity)) else { continue };
                let Ok(delivery) = Delivery::parse(package) else { continue };
                let name = delivery.package.manifest.name.clone();
                found.entry(core.identity.clone()).or_insert((name, delivery.image().to_vec()));
            }
        }
        Ok(Images(found))
    }
}

/// Returns the system images in the output folder, the most recent first.
fn built(repository: &Repository) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repository.output("systems")).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .filter(|entry| systems::is_image(&entry.path()))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort();
    files.into_iter().rev().map(|(_, path)| path).collect()
}

/// Builds the programs again with line tables; refuses one whose code differs from that which died.
fn images_with_lines(repository: &Repository, images: &Images) -> Outcome<BTreeMap<String, Vec<u8>>> {
    let programs = Programs::find(repository);
    let mut names: Vec<String> = images.0.values().map(|(name, _)| name.clone()).collect();
    names.retain(|name| programs.get(name).is_ok());
    names.dedup();
    let built = debug::images_with_lines(repository, &names)?;
    let mut found = BTreeMap::new();
    for (identity, (name, image)) in &images.0 {
        let Some(path) = built.get(name) else { continue };
        let bytes = std::fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
        if !debug::is_same_code(image, &bytes) {
            return Err(Failure::new(format!(
                "the sources of `{name}` have changed since the program that died was built"
            ))
            .remedy("leave out --lines, or go back to those sources"));
        }
        found.insert(identity.clone(), bytes);
    }
    Ok(found)
}

/// Describes a death.
fn told(core: &Core, image: Option<&Image<'_>>, lines: Option<&LineTable<'_>>, all: bool) -> String {
    let mut out = format!("process {} ({})\n", core.process, core.program);
    let codes = core.lines.iter().filter_map(|line| if let Line::Code(code) = line { Some(*code) } else { None });
    let codes: Vec<_> = codes.collect();
    let mut told_frames = codes.is_empty();
    for line in &core.lines {
        match line {
            Line::Text(text) => {
                out += text;
                out.push('\n');
            }
            Line::Code(_) if told_frames => {}
            Line::Code(_) => {
                told_frames = true;
                out += "  back trace:\n";
                match image {
                    Some(image) => {
                        for (number, frame) in image.back_trace(&codes, all).iter().enumerate() {
                            out += &frame_text(number, frame, lines);
                        }
                    }
                    None => {
                        // Writing to a String cannot fail.
                        let _ = writeln!(out, "    no built system has this package; name its system with --system");
                        for code in &codes {
                            let _ = writeln!(out, "    {:#x}", code.offset);
                        }
                    }
                }
            }
        }
    }
    if !core.is_whole {
        out += "  (the rest of this core is missing)\n";
    }
    out
}

/// A line for a frame, and before it one for each function that was inlined there.
fn frame_text(number: usize, frame: &Frame, lines: Option<&LineTable<'_>>) -> String {
    let mark = if frame.is_certain { ' ' } else { '?' };
    let inlined = lines.map(|lines| lines.frames_at(frame.instruction)).unwrap_or_default();
    let mut out = String::new();
    for (depth, (function, location)) in inlined.iter().enumerate() {
        // The outermost is the function of the symbol, whose name has no generic parameters left out.
        let is_last = depth + 1 == inlined.len();
        let name = if is_last { frame.name.as_str() } else { function.as_str() };
        let number = if depth == 0 { format!("{number:>4}") } else { "    ".into() };
        let note = if is_last { "" } else { " (inlined)" };
        let _ = writeln!(out, "  {number}{mark} {name}{note}\n          at {location}");
    }
    if inlined.is_empty() {
        let _ = writeln!(out, "  {number:>4}{mark} {} +{:#x}", frame.name, frame.offset);
    }
    out
}

//! `sing bench images`: sizes of programs with and without the code that they do not use, as in table 7 of *Sealing OS
//! Processes*.
//!
//! Whole is a program with all code of all crates that it is linked from, those of the compiler among them, as a process
//! needs them that may load more code later. Generic code counts as far as a crate instantiates it. Sealed is the image
//! that systems have: optimized as a whole, its unused sections dropped. Between them stands the linker's part alone.
//! Whole programs are only measured; they stay in a folder of their own. Deliberately not here: speed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use elf::ElfBytes;
use elf::abi::{SHF_ALLOC, SHF_EXECINSTR};
use elf::endian::LittleEndian;
use serde_json::json;
use sing::bare::kernel;
use sing::build_lock;
use sing::builder;
use sing::cargo::{self, Metadata};
use sing::failure::{Failure, Outcome};
use sing::programs::{Program, Programs};
use sing::repository::{Repository, write_whole};
use sing::stubs::EntryStubs;

use crate::bench::table::grouped;
use crate::command_line::BenchArguments;

/// A program, and the paper's that does the like: its name, its size in KB whole and shaken.
type Row = (&'static str, &'static str, Option<(u32, u32)>);

const PROGRAMS: [Row; 7] = [
    ("web-server", "Web Server", Some((2_731, 765))),
    ("web-spec", "SPECweb99 Plug-in", Some((2_144, 502))),
    ("virtio-blk", "Ide Disk Driver", Some((1_846, 455))),
    ("ext2-fs", "-", None),
    ("net-stack", "-", None),
    ("shell", "-", None),
    ("echo", "-", None),
];
const KERNEL: Row = ("kernel", "Kernel", Some((2_371, 1_291)));

/// How a program is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// All code of its crates.
    Whole,
    /// The same, without the sections that nothing refers to.
    Linker,
    /// As in systems.
    Sealed,
}

const WAYS: [Way; 3] = [Way::Whole, Way::Linker, Way::Sealed];
/// Flag by which the linker drops unused sections.
const DROPPING: &str = "-Clink-arg=-Wl,--gc-sections";
/// Code that is never called may need functions that the programs lack.
const KEEPING: [&str; 3] =
    ["-Clink-dead-code=yes", "-Clink-arg=-Wl,--no-gc-sections", "-Clink-arg=-Wl,--unresolved-symbols=ignore-all"];
const SEPARATELY: &str = "profile.release.lto=\"off\"";

impl Way {
    fn folder(self) -> &'static str {
        match self {
            Way::Whole => "whole",
            Way::Linker => "linker",
            Way::Sealed => "sealed",
        }
    }

    /// The flags for rustc, from those of sealed images, in cargo's encoding.
    fn flags(self, sealed: &str) -> String {
        let kept = sealed.split('\u{1f}').filter(|flag| self != Way::Whole || *flag != DROPPING);
        let more = KEEPING.into_iter().filter(|_| self == Way::Whole);
        kept.chain(more).collect::<Vec<_>>().join("\u{1f}")
    }
}

/// Sizes in bytes: of the code, and of code and data together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    code: u64,
    all: u64,
}

type Sizes = BTreeMap<(String, Way), Size>;

/// `sing bench images`.
///
/// # Errors
/// A program cannot be built or read.
pub fn bench(repository: &Repository, arguments: &BenchArguments) -> Outcome<u8> {
    let own = repository.with_target(repository.output("bench-images"));
    let mut sizes = Sizes::new();
    let programs = Programs::find(repository);
    let selected = PROGRAMS.iter().map(|(name, ..)| programs.get(name)).collect::<Outcome<Vec<_>>>()?;
    for way in WAYS {
        let own = own.with_target(own.cargo_target().join(way.folder()));
        for (name, path) in build(&own, &programs, &selected, way)? {
            sizes.insert((name, way), size(&path)?);
        }
    }
    for way in [Way::Whole, Way::Sealed] {
        let flags: &[&str] = if way == Way::Whole { &KEEPING } else { &[] };
        let own = own.with_target(own.cargo_target().join(format!("kernel-{}", way.folder())));
        kernel::build_with(&own, &[], flags)?;
        sizes.insert((KERNEL.0.into(), way), size(&kernel::with_symbols(&own))?);
    }
    print!("{}", table(&sizes));
    if let Some(path) = &arguments.json {
        write_whole(path, json_list(&sizes).as_bytes())?;
    }
    Ok(0)
}

/// Builds the programs in one way; returns their files.
fn build(
    repository: &Repository,
    programs: &Programs,
    selected: &[&Program],
    way: Way,
) -> Outcome<BTreeMap<String, PathBuf>> {
    let _lock = build_lock::lock(repository)?;
    let stubs = EntryStubs::generate(repository, programs.all())?;
    let metadata = Metadata::of_workspace(&stubs.manifest(), &stubs.encoded_flags())?;
    let judged = builder::judge(repository, &stubs, &metadata, selected)?;
    let mut command: Command = stubs.build_command(selected.iter().copied(), &judged);
    command.env("CARGO_ENCODED_RUSTFLAGS", way.flags(&stubs.encoded_flags()));
    if way != Way::Sealed {
        command.args(["--config", SEPARATELY]);
    }
    cargo::build(command, "programs to measure", selected.len())
}

/// Sizes of an ELF file's sections that are loaded.
fn size(path: &Path) -> Outcome<Size> {
    let bytes = std::fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
    size_of(&bytes).ok_or_else(|| Failure::new(format!("{} is not an ELF file", path.display())).remedy("delete it"))
}

fn size_of(bytes: &[u8]) -> Option<Size> {
    let file = ElfBytes::<LittleEndian>::minimal_parse(bytes).ok()?;
    let mut size = Size::default();
    let loaded = |flags: u64| flags & u64::from(SHF_ALLOC) != 0;
    for section in file.section_headers()?.iter().filter(|section| loaded(section.sh_flags)) {
        // What is zero at the start is in no file.
        let bytes = if section.sh_type == elf::abi::SHT_NOBITS { 0 } else { section.sh_size };
        size.all += bytes;
        size.code += if section.sh_flags & u64::from(SHF_EXECINSTR) != 0 { bytes } else { 0 };
    }
    Some(size)
}

/// Percent that `after` is smaller than `before`.
fn reduction(before: u64, after: u64) -> f64 {
    100.0 * (1.0 - after as f64 / before.max(1) as f64)
}

fn rows() -> impl Iterator<Item = &'static Row> {
    [&KERNEL].into_iter().chain(&PROGRAMS)
}

fn table(sizes: &Sizes) -> String {
    let line = |cells: [&str; 6]| {
        let [program, whole, linker, sealed, less, paper] = cells;
        format!("{program:<14} {whole:>24} {linker:>24} {sealed:>24} {less:>10}  {paper}\n")
    };
    let mut text = line(["code (all), bytes", "whole", "linker alone", "sealed", "less code", "the paper"]);
    for (name, papers, figures) in rows() {
        let size = |way| sizes.get(&(name.to_string(), way)).copied();
        let shown =
            |way| size(way).map_or("-".into(), |size: Size| format!("{} ({})", grouped(size.code), grouped(size.all)));
        let (whole, sealed) = (size(Way::Whole).unwrap_or_default(), size(Way::Sealed).unwrap_or_default());
        let less = format!("{:.0} %", reduction(whole.code, sealed.code));
        let paper = figures.map_or("-".into(), |(before, after)| {
            let less = reduction(before.into(), after.into());
            format!("{papers}: {} to {} KB, {less:.0} %", grouped(before.into()), grouped(after.into()))
        });
        text.push_str(&line([name, &shown(Way::Whole), &shown(Way::Linker), &shown(Way::Sealed), &less, &paper]));
    }
    text
}

fn json_list(sizes: &Sizes) -> String {
    let list = rows().map(|(name, papers, figures)| {
        let of = |way| {
            let size = sizes.get(&(name.to_string(), way))?;
            Some(json!({ "code_bytes": size.code, "all_bytes": size.all }))
        };
        let paper = figures.map(|(whole, shaken)| json!({ "program": papers, "whole_kb": whole, "shaken_kb": shaken }));
        json!({ "name": name, "whole": of(Way::Whole), "linker": of(Way::Linker), "sealed": of(Way::Sealed), "paper": paper })
    });
    format!("{:#}\n", list.collect::<serde_json::Value>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_programs_keep_what_is_unused() {
        let sealed = format!("-Ca\u{1f}{DROPPING}\u{1f}-Cb");
        assert_eq!(Way::Linker.flags(&sealed), sealed);
        let whole = Way::Whole.flags(&sealed);
        assert!(!whole.contains("--gc-sections\u{1f}-Cb") && whole.contains("-Clink-dead-code=yes"), "{whole}");
    }

    #[test]
    fn this_program_has_code_and_more() {
        let bytes = std::fs::read(std::env::current_exe().expect("it has a path")).expect("it can be read");
        let size = size_of(&bytes).expect("an ELF file");
        assert!(size.code > 100_000 && size.all > size.code, "{size:?}");
        assert_eq!(size_of(b"\x7fELF"), None);
    }

    #[test]
    fn the_table_has_the_papers_reduction() {
        let size = |code| Size { code, all: code + 1 };
        let sizes = Sizes::from([
            (("web-server".to_string(), Way::Whole), size(400_000)),
            (("web-server".to_string(), Way::Sealed), size(100_000)),
        ]);
        let table = table(&sizes);
        let row = table.lines().find(|line| line.starts_with("web-server")).expect("a row");
        assert!(row.contains(" 75 %") && row.ends_with("Web Server: 2,731 to 765 KB, 72 %"), "{table}");
        let json: serde_json::Value = serde_json::from_str(&json_list(&sizes)).expect("JSON");
        assert_eq!((&json[0]["whole"], &json[1]["sealed"]["code_bytes"]), (&json!(null), &json!(100_000)));
    }
}

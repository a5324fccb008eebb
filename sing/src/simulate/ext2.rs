//! The workload `ext2`: files of an ext2 disk whose power fails.
//!
//! Commands change files; between them `sync`, acknowledged on the console. After the cut, a check repairs whatever needs
//! no decision (as `e2fsck -p` does), and the volume must hold the files as they were after some command that is not
//! before the last acknowledged sync, but for those which the command in progress changes. After an orderly end it must
//! hold all. Key type: [`Story`]. Deliberately not here: the machine.

use std::collections::{BTreeMap, BTreeSet};

use ext2::check::{CheckOptions, Mode, Outcome as Checked, check};
use ext2::make::{Attributes, File, Folder, ImageOptions, ImageSink, Node, make_image};
use ext2::{Kind, MemoryDisk, MountOptions, ROOT_INODE, Volume, complete};

use super::machine::{End, Report};
use super::random::Random;

const VOLUME_BYTES: u64 = 8 << 20;
/// Time of everything on the first volume: 2026-01-01.
const MADE: u32 = 1_767_225_600;
const COMMANDS: usize = 30;
/// Names that commands choose from.
const FOLDERS: [&str; 3] = ["", "one/", "two/"];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// A file that is copied: larger than what one block of pointers reaches.
const LARGE_BYTES: usize = 40_000;
const CHECK_BYTES: u64 = 64 << 20;
/// Maximum words of a written text.
const MAX_WORDS: usize = 60;

/// The files by path: their contents.
pub type Files = BTreeMap<String, Vec<u8>>;

/// One command of the shell, and what it does to the files.
#[derive(Debug, Clone)]
struct Step {
    command: String,
    /// Paths that it changes.
    changes: BTreeSet<String>,
    /// The number of a sync.
    sync: Option<usize>,
}

/// The commands of a seed, and the files after each.
#[derive(Debug, Clone)]
pub struct Story {
    steps: Vec<Step>,
    /// The files before the first step, and after each.
    files: Vec<Files>,
}

impl Story {
    /// Writes the story of a seed.
    pub fn new(seed: u64) -> Story {
        let mut random = Random::new(seed ^ 0x6578_7432);
        let mut story = Story { steps: Vec::new(), files: vec![first_files()] };
        for number in 1..=COMMANDS {
            story.add_step(&mut random, number);
        }
        story
    }

    /// Returns the disk at power on.
    pub fn disk(&self) -> Vec<u8> {
        make_disk(&self.files[0])
    }

    /// Returns the shell's commands.
    pub fn commands(&self) -> String {
        self.steps.iter().map(|step| step.command.as_str()).collect::<Vec<_>>().join("; ")
    }

    /// Returns what a run violates: its report, its console and what is left on the disk.
    pub fn judge(&self, report: &Report, console: &str, disk: Vec<u8>) -> Result<(), String> {
        let found = files_on(disk)?;
        if report.end == End::Cut {
            return self.judge_cut(console, &found);
        }
        if report.status != 0 {
            return Err(format!("a command failed without a fault that may fail it (status {})", report.status));
        }
        let last = self.files.last().map_or(&self.files[0], |files| files);
        difference(last, &found, &BTreeSet::new()).map_or(Ok(()), |what| Err(format!("after an orderly end, {what}")))
    }

    fn judge_cut(&self, console: &str, found: &Files) -> Result<(), String> {
        let is_acknowledged = |number: usize| console.lines().any(|line| line == acknowledgement(number));
        let synced =
            |(index, step): (usize, &Step)| step.sync.filter(|&number| is_acknowledged(number)).map(|_| index + 1);
        let first = self.steps.iter().enumerate().filter_map(synced).next_back().unwrap_or(0);
        let none = BTreeSet::new();
        let in_progress = |index: usize| self.steps.get(index).map_or(&none, |step| &step.changes);
        let mut nearest = None;
        for index in first..self.files.len() {
            match difference(&self.files[index], found, in_progress(index)) {
                None => return Ok(()),
                Some(what) => nearest = nearest.or(Some(what)),
            }
        }
        Err(format!(
            "the files are as after none of the commands from number {first} on, the last acknowledged sync; compared \
             with that: {}",
            nearest.unwrap_or_default()
        ))
    }

    fn add_step(&mut self, random: &mut Random, number: usize) {
        let mut files = self.files.last().cloned().unwrap_or_default();
        let mut changes = BTreeSet::new();
        let mut sync = None;
        let existing: Vec<String> = files.keys().filter(|path| *path != "large").cloned().collect();
        let any = |random: &mut Random| format!("{}{}", FOLDERS[random.below(3)], NAMES[random.below(4)]);
        let command = match random.below(12) {
            0..=2 => {
                let (path, text) = (any(random), text(random, number));
                changes.insert(path.clone());
                files.insert(path.clone(), format!("{text}\n").into_bytes());
                format!("write /fs/disk0/{path} {text}")
            }
            3 if !existing.is_empty() => {
                let (path, text) = (existing[random.below(existing.len())].clone(), text(random, number));
                changes.insert(path.clone());
                files.entry(path.clone()).or_default().extend(format!("{text}\n").into_bytes());
                format!("write --append /fs/disk0/{path} {text}")
            }
            4 => {
                let path = any(random);
                changes.insert(path.clone());
                files.insert(path.clone(), files["large"].clone());
                format!("cp /fs/disk0/large /fs/disk0/{path}")
            }
            5 | 6 if !existing.is_empty() => {
                let from = existing[random.below(existing.len())].clone();
                let to = any(random);
                if files.contains_key(&to) {
                    "sleep 1".to_owned()
                } else {
                    changes.extend([from.clone(), to.clone()]);
                    let content = files.remove(&from).unwrap_or_default();
                    files.insert(to.clone(), content);
                    format!("mv /fs/disk0/{from} /fs/disk0/{to}")
                }
            }
            7 if !existing.is_empty() => {
                let path = existing[random.below(existing.len())].clone();
                changes.insert(path.clone());
                files.remove(&path);
                format!("rm /fs/disk0/{path}")
            }
            8 => format!("sleep {}", 1 + random.below(8)),
            _ => {
                sync = Some(number);
                format!("sync; echo {}", acknowledgement(number))
            }
        };
        self.steps.push(Step { command, changes, sync });
        self.files.push(files);
    }
}

fn acknowledgement(number: usize) -> String {
    format!("synced {number}")
}

fn text(random: &mut Random, number: usize) -> String {
    let words = 1 + random.below(MAX_WORDS);
    (0..words).map(|word| format!("w{number}-{word}")).collect::<Vec<_>>().join(" ")
}

fn first_files() -> Files {
    let large = (0..LARGE_BYTES).map(|at| (at / 512 + at) as u8).collect();
    [("large".to_owned(), large), ("one/a".to_owned(), b"first\n".to_vec())].into()
}

/// Returns how the files differ from what is expected, but for some paths.
fn difference(expected: &Files, found: &Files, but: &BTreeSet<String>) -> Option<String> {
    let paths: BTreeSet<&String> = expected.keys().chain(found.keys()).filter(|path| !but.contains(*path)).collect();
    paths.into_iter().find_map(|path| match (expected.get(path), found.get(path)) {
        (Some(one), Some(other)) if one == other => None,
        (Some(_), None) => Some(format!("{path} is missing")),
        (None, Some(_)) => Some(format!("{path} is there")),
        (Some(one), Some(other)) => {
            let at = one.iter().zip(other).position(|(one, other)| one != other).unwrap_or(one.len().min(other.len()));
            let lengths = (one.len(), other.len());
            Some(format!("{path} differs from byte {at} on ({} bytes expected, {} found)", lengths.0, lengths.1))
        }
        (None, None) => None,
    })
}

struct Sink(Vec<u8>);

impl ImageSink for Sink {
    type Error = std::convert::Infallible;

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Self::Error> {
        let end = offset as usize + bytes.len();
        if self.0.len() < end {
            self.0.resize(end, 0);
        }
        self.0[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }
}

pub fn make_disk(files: &Files) -> Vec<u8> {
    let attributes = Attributes::readable(MADE);
    let file = |content: &Vec<u8>| {
        let extents = [(0, content.clone())].into();
        Node::File(File { attributes, size: content.len() as u64, extents })
    };
    let in_folder = |folder: &str| {
        let here = |(path, content): (&String, &Vec<u8>)| {
            let name = path.strip_prefix(folder).filter(|name| !name.contains('/'))?;
            Some((name.as_bytes().to_vec(), file(content)))
        };
        files.iter().filter_map(here).collect::<BTreeMap<Vec<u8>, Node>>()
    };
    let folder = |name: &str| Node::Folder(Folder { attributes, entries: in_folder(name) });
    let mut entries = in_folder("");
    entries.extend(FOLDERS[1..].iter().map(|name| (name.trim_end_matches('/').as_bytes().to_vec(), folder(name))));
    let options = ImageOptions {
        block_bytes: 1024,
        volume_bytes: VOLUME_BYTES,
        inodes: None,
        label: [0; 16],
        uuid: *b"singularity-simu",
        made: MADE,
    };
    // Zeroed at once: growing would copy it again and again.
    let mut sink = Sink(vec![0; VOLUME_BYTES as usize]);
    match make_image(&options, &Folder { attributes, entries }, &mut sink) {
        Ok(built) => sink.0.resize(built.volume_bytes as usize, 0),
        Err(error) => unreachable!("the volume has room for its files: {error}"),
    }
    sink.0
}

/// Repairs a disk as a person need not be asked, and reads all its files.
pub fn files_on(disk: Vec<u8>) -> Result<Files, String> {
    let disk = MemoryDisk::new(disk);
    let options = CheckOptions { mode: Mode::Preen, memory_bytes: CHECK_BYTES };
    let mut findings = Vec::new();
    let summary = complete(check(&disk, &options, &mut |finding| findings.push(format!("{finding:?}"))))
        .map_err(|error| format!("the disk cannot be checked: {error}"))?;
    if summary.outcome == Checked::Faulty {
        return Err(format!("the check finds faults that it may not repair: {}", findings.join("; ")));
    }
    let volume =
        complete(Volume::mount(disk, MountOptions::default())).map_err(|error| format!("no mount: {error}"))?;
    let mut files = Files::new();
    let mut folders = vec![(ROOT_INODE, String::new())];
    while let Some((folder, path)) = folders.pop() {
        read_folder(&volume, folder, &path, &mut folders, &mut files).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(files)
}

fn read_folder(
    volume: &Volume<MemoryDisk>,
    folder: u32,
    path: &str,
    folders: &mut Vec<(u32, String)>,
    files: &mut Files,
) -> Result<(), ext2::Error> {
    let mut next = Some(0);
    while let Some(position) = next {
        let listing = complete(volume.list(folder, position, usize::MAX))?;
        next = listing.next;
        for entry in listing.entries {
            let name = format!("{path}{}", String::from_utf8_lossy(&entry.name));
            let inode = complete(volume.inode(entry.inode))?;
            match inode.kind {
                Kind::Directory if name == "lost+found" => {}
                Kind::Directory => folders.push((entry.inode, format!("{name}/"))),
                _ => {
                    let file = complete(volume.open(entry.inode))?;
                    let mut content = vec![0; inode.size as usize];
                    let count = complete(file.read(0, &mut content))?;
                    content.truncate(count);
                    complete(file.close())?;
                    files.insert(name, content);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(end: End) -> Report {
        let (hash, faults) = (String::new(), Vec::new());
        Report { hash, virtual_ns: 0, calls: 0, events: 0, end, status: 0, faults, killed: Vec::new() }
    }

    #[test]
    fn a_disk_holds_the_files_that_it_is_made_of() {
        assert_eq!(files_on(make_disk(&first_files())), Ok(first_files()));
    }

    #[test]
    fn what_was_synced_must_be_there_and_what_was_not_may() {
        let story = (0..).map(Story::new).find(|story| {
            // The paths that change before the first sync are others than those that change after it.
            let Some(sync) = story.steps.iter().position(|step| step.sync.is_some()) else { return false };
            let changed = |steps: &[Step]| steps.iter().flat_map(|step| step.changes.clone()).collect::<BTreeSet<_>>();
            let (before, after) = (changed(&story.steps[..sync]), changed(&story.steps[sync..]));
            story.files[sync] != story.files[0]
                && story.files[COMMANDS] != story.files[sync]
                && before.is_disjoint(&after)
        });
        let story = story.expect("a story with a sync in the middle");
        let sync = story.steps.iter().find_map(|step| step.sync).expect("a sync");
        let console = acknowledgement(sync);
        let (first, synced, last) = (&story.files[0], &story.files[sync], &story.files[COMMANDS]);
        for (console, files, is_right) in
            [("", first, true), (&console, synced, true), (&console, last, true), (&console, first, false)]
        {
            let judged = story.judge(&report(End::Cut), console, make_disk(files));
            assert_eq!(judged.is_ok(), is_right, "{judged:?}");
        }
        assert!(story.judge(&report(End::Off), &console, make_disk(last)).is_ok());
        assert!(story.judge(&report(End::Off), &console, make_disk(first)).is_err());
    }
}

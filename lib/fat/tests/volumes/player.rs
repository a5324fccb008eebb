//! Random operations on a volume, checked against a model in memory.

use std::collections::BTreeMap;

use crate::disk::{MemoryDisk, mount, run};
use fat::{CreateMode, Error, Folder, Kind, OpenFile, Volume};
use proptest::prelude::*;

/// A step. Names and files are numbers, so that steps collide.
#[derive(Clone, Debug)]
pub enum Step {
    Create(u8, u8),
    MakeFolder(u8, u8),
    Write { file: u8, offset: u32, length: u32, seed: u8 },
    Append { file: u8, length: u32, seed: u8 },
    SetSize(u8, u32),
    Read(u8),
    Remove(u8),
    RemoveFolder(u8),
    Rename(u8, u8, u8),
    RenameFolder(u8, u8, u8),
    Open(u8),
    Close(u8),
    List(u8),
    Sync,
    Remount,
}

pub fn step() -> impl Strategy<Value = Step> {
    let any = any::<u8>;
    prop_oneof![
        4 => (any(), any()).prop_map(|(folder, name)| Step::Create(folder, name)),
        2 => (any(), any()).prop_map(|(folder, name)| Step::MakeFolder(folder, name)),
        5 => (any(), 0_u32..40_000, 0_u32..20_000, any())
            .prop_map(|(file, offset, length, seed)| Step::Write { file, offset, length, seed }),
        3 => (any(), 0_u32..5_000, any()).prop_map(|(file, length, seed)| Step::Append { file, length, seed }),
        2 => (any(), 0_u32..60_000).prop_map(|(file, size)| Step::SetSize(file, size)),
        2 => any().prop_map(Step::Read),
        3 => any().prop_map(Step::Remove),
        2 => any().prop_map(Step::RemoveFolder),
        3 => (any(), any(), any()).prop_map(|(from, folder, name)| Step::Rename(from, folder, name)),
        2 => (any(), any(), any()).prop_map(|(from, folder, name)| Step::RenameFolder(from, folder, name)),
        2 => any().prop_map(Step::Open),
        2 => any().prop_map(Step::Close),
        1 => any().prop_map(Step::List),
        1 => Just(Step::Sync),
        1 => Just(Step::Remount),
    ]
}

/// Names of all kinds: short, mixed-case, long, non-ASCII.
const NAMES: &[&str] = &[
    "A",
    "B.TXT",
    "lower.txt",
    "Mixed.Txt",
    "a rather long name",
    "a rather long name 2",
    "a rather long name 3",
    "Ünïcödé",
    "日本語の名前",
    "dots.in.a.name",
    "+plus",
    "x",
    "a name that needs more than two slots of thirteen letters",
];

#[derive(Clone)]
/// The expected content of a volume. Folders end with `/`; the root is the empty path.
pub struct Model {
    pub folders: Vec<String>,
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Model {
    fn folder(&self, number: u8) -> String {
        self.folders[number as usize % self.folders.len()].clone()
    }

    fn file(&self, number: u8) -> Option<String> {
        let count = self.files.len();
        if count == 0 { None } else { self.files.keys().nth(number as usize % count).cloned() }
    }

    fn path(&self, folder: u8, name: u8) -> String {
        format!("{}{}", self.folder(folder), NAMES[name as usize % NAMES.len()])
    }

    fn is_taken(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.folders.contains(&format!("{path}/"))
    }

    fn is_empty(&self, folder: &str) -> bool {
        let is_below = |path: &String| path.starts_with(folder) && path != folder;
        !self.files.keys().any(is_below) && !self.folders.iter().any(is_below)
    }
}

/// A volume, its model, and open files, including removed ones.
pub struct Trial {
    disk: MemoryDisk,
    /// Judges the disk after each unmount.
    judge: fn(&MemoryDisk, &Model),
    volume: Volume<MemoryDisk>,
    root: Folder<MemoryDisk>,
    pub model: Model,
    open: Vec<(OpenFile<MemoryDisk>, Option<String>, Vec<u8>)>,
}

fn bytes(length: u32, seed: u8) -> Vec<u8> {
    (0..length).map(|index| (index as u8).wrapping_mul(7) ^ seed).collect()
}

fn put(content: &mut Vec<u8>, offset: usize, piece: &[u8]) {
    if !piece.is_empty() {
        content.resize(content.len().max(offset + piece.len()), 0);
        content[offset..offset + piece.len()].copy_from_slice(piece);
    }
}

impl Trial {
    pub fn new(disk: MemoryDisk, judge: fn(&MemoryDisk, &Model)) -> Trial {
        let volume = mount(&disk).expect("it mounts");
        let root = run(volume.root()).expect("a root");
        let model = Model { folders: vec![String::new()], files: BTreeMap::new() };
        Trial { disk, judge, volume, root, model, open: Vec::new() }
    }

    /// Changes a file in the model, also for its open handles.
    fn change(&mut self, path: &str, change: impl Fn(&mut Vec<u8>)) {
        change(self.model.files.get_mut(path).expect("a file of the model"));
        for (_, name, content) in &mut self.open {
            if name.as_deref() == Some(path) {
                change(content);
            }
        }
    }

    pub fn step(&mut self, step: &Step) {
        match *step {
            Step::Create(folder, name) => self.create(&self.model.path(folder, name)),
            Step::MakeFolder(folder, name) => self.make_folder(&self.model.path(folder, name)),
            Step::Write { file, offset, length, seed } => self.write(file, offset, &bytes(length, seed)),
            Step::Append { file, length, seed } => self.append(file, &bytes(length, seed)),
            Step::SetSize(file, size) => self.set_size(file, size),
            Step::Read(file) => self.read(file),
            Step::Remove(file) => self.remove(file),
            Step::RemoveFolder(folder) => self.remove_folder(&self.model.folder(folder)),
            Step::Rename(from, folder, name) => self.rename(from, &self.model.path(folder, name)),
            Step::RenameFolder(from, folder, name) => {
                self.rename_folder(&self.model.folder(from), &self.model.path(folder, name));
            }
            Step::Open(file) => {
                if let Some(path) = self.model.file(file) {
                    let opened = run(self.root.open(&path)).expect("it opens");
                    let content = self.model.files[&path].clone();
                    self.open.push((opened, Some(path), content));
                }
            }
            Step::Close(number) => {
                if !self.open.is_empty() {
                    let (file, _, content) = self.open.remove(number as usize % self.open.len());
                    expect_content(&file, &content, "an open file");
                    run(file.close()).expect("it closes");
                }
            }
            Step::List(folder) => self.list(&self.model.folder(folder)),
            Step::Sync => {
                run(self.volume.sync()).expect("it syncs");
            }
            Step::Remount => self.remount(),
        }
    }

    /// The paths that a step affects; a trailing `/` includes everything below.
    pub fn touched_by(&self, step: &Step) -> Vec<String> {
        let file = |number: u8| self.model.file(number).into_iter().collect();
        match *step {
            Step::Create(folder, name) => vec![self.model.path(folder, name)],
            Step::MakeFolder(folder, name) => vec![format!("{}/", self.model.path(folder, name))],
            Step::Write { file: number, .. } | Step::Append { file: number, .. } | Step::SetSize(number, _) => {
                file(number)
            }
            Step::Remove(number) => file(number),
            Step::RemoveFolder(folder) => vec![self.model.folder(folder)],
            Step::Rename(from, folder, name) => {
                self.model.file(from).into_iter().chain([self.model.path(folder, name)]).collect()
            }
            Step::RenameFolder(from, folder, name) => {
                vec![self.model.folder(from), format!("{}/", self.model.path(folder, name))]
            }
            Step::Read(_) | Step::Open(_) | Step::Close(_) | Step::List(_) | Step::Sync | Step::Remount => Vec::new(),
        }
    }

    fn create(&mut self, path: &str) {
        let created = run(self.root.create(path, 0o644, CreateMode::New));
        if self.model.is_taken(path) {
            assert_eq!(created.err(), Some(Error::AlreadyExists), "{path}");
            return;
        }
        match created {
            Ok(file) => {
                run(file.close()).expect("it closes");
                self.model.files.insert(path.into(), Vec::new());
            }
            Err(error) => assert_eq!(error, Error::NoSpace, "{path}"),
        }
    }

    fn make_folder(&mut self, path: &str) {
        let made = run(self.root.make_folder(path));
        if self.model.is_taken(path) {
            assert_eq!(made, Err(Error::AlreadyExists), "{path}");
            return;
        }
        match made {
            Ok(()) => self.model.folders.push(format!("{path}/")),
            Err(error) => assert_eq!(error, Error::NoSpace, "{path}"),
        }
    }

    fn write(&mut self, number: u8, offset: u32, piece: &[u8]) {
        let Some(path) = self.model.file(number) else { return };
        let file = run(self.root.open(&path)).expect("it opens");
        match run(file.write(offset.into(), piece)) {
            Ok(()) => self.change(&path, |content| put(content, offset as usize, piece)),
            Err(partial) => {
                assert_eq!(partial.error, Error::NoSpace, "{path}");
                // The gap before the offset may have become zeros before space ran out.
                let grown = run(file.attributes()).expect("attributes").size_bytes as usize;
                self.change(&path, |content| {
                    put(content, offset as usize, &piece[..partial.written]);
                    content.resize(content.len().max(grown), 0);
                });
            }
        }
        run(file.close()).expect("it closes");
    }

    fn append(&mut self, number: u8, piece: &[u8]) {
        let Some(path) = self.model.file(number) else { return };
        let file = run(self.root.open(&path)).expect("it opens");
        let end = self.model.files[&path].len();
        match run(file.append(piece)) {
            Ok(offset) => {
                assert_eq!(offset, end as u64, "{path}");
                self.change(&path, |content| put(content, end, piece));
            }
            Err(partial) => assert_eq!((partial.written, partial.error), (0, Error::NoSpace), "{path}"),
        }
        run(file.close()).expect("it closes");
    }

    fn set_size(&mut self, number: u8, size: u32) {
        let Some(path) = self.model.file(number) else { return };
        let file = run(self.root.open(&path)).expect("it opens");
        match run(file.set_size(size.into())) {
            Ok(()) => self.change(&path, |content| content.resize(size as usize, 0)),
            Err(error) => assert_eq!(error, Error::NoSpace, "{path}"),
        }
        run(file.close()).expect("it closes");
    }

    fn read(&mut self, number: u8) {
        let Some(path) = self.model.file(number) else { return };
        let file = run(self.root.open(&path)).expect("it opens");
        expect_content(&file, &self.model.files[&path], &path);
        run(file.close()).expect("it closes");
    }

    /// Open handles of the file lose its name.
    fn forget_name(&mut self, path: &str) {
        for (_, name, _) in &mut self.open {
            if name.as_deref() == Some(path) {
                *name = None;
            }
        }
    }

    fn remove(&mut self, number: u8) {
        let Some(path) = self.model.file(number) else { return };
        let is_open = self.open.iter().any(|(_, name, _)| name.as_ref() == Some(&path));
        match run(self.root.remove_file(&path)) {
            Ok(()) => {}
            Err(error) => {
                assert!(is_open && error == Error::NoSpace, "{path}: {error}");
                return;
            }
        }
        self.model.files.remove(&path);
        self.forget_name(&path);
    }

    fn remove_folder(&mut self, folder: &str) {
        let removed = run(self.root.remove_folder(folder));
        if folder.is_empty() {
            assert_eq!(removed, Err(Error::NotPermitted));
        } else if self.model.is_empty(folder) {
            // A removed file that is open may be in it, if the root had no room for its hidden name.
            if removed.is_ok() || self.open.iter().all(|(_, name, _)| name.is_some()) {
                removed.expect("it is removed");
                self.model.folders.retain(|other| other != folder);
            }
        } else {
            assert_eq!(removed, Err(Error::NotEmpty), "{folder}");
        }
    }

    fn rename(&mut self, number: u8, to: &str) {
        let Some(from) = self.model.file(number) else { return };
        let renamed = run(self.root.rename(&from, to));
        if self.model.folders.contains(&format!("{to}/")) {
            assert_eq!(renamed, Err(Error::IsADirectory), "{from} -> {to}");
            return;
        }
        match renamed {
            Ok(()) => {
                let content = self.model.files.remove(&from).expect("a file of the model");
                if from != to {
                    self.forget_name(to);
                }
                self.model.files.insert(to.into(), content);
                for (_, name, _) in &mut self.open {
                    if name.as_deref() == Some(from.as_str()) {
                        *name = Some(to.into());
                    }
                }
            }
            Err(error) => assert_eq!(error, Error::NoSpace, "{from} -> {to}"),
        }
    }

    fn rename_folder(&mut self, from: &str, to: &str) {
        let target = format!("{to}/");
        let renamed = run(self.root.rename(from, to));
        if from.is_empty() {
            assert_eq!(renamed, Err(Error::NotPermitted));
        } else if from == target {
            renamed.expect("nothing to do");
        } else if target.starts_with(from) {
            assert_eq!(renamed, Err(Error::IntoItself), "{from} -> {to}");
        } else if self.model.files.contains_key(to) {
            assert_eq!(renamed, Err(Error::NotADirectory), "{from} -> {to}");
        } else if self.model.folders.contains(&target) && !self.model.is_empty(&target) {
            assert_eq!(renamed, Err(Error::NotEmpty), "{from} -> {to}");
        } else {
            match renamed {
                Ok(()) => self.folder_was_renamed(from, &target),
                Err(Error::NotEmpty) => assert!(self.open.iter().any(|(_, name, _)| name.is_none())),
                Err(error) => assert_eq!(error, Error::NoSpace, "{from} -> {to}"),
            }
        }
    }

    fn folder_was_renamed(&mut self, from: &str, target: &str) {
        let moved = |path: &String| match path.strip_prefix(from) {
            Some(rest) => format!("{target}{rest}"),
            None => path.clone(),
        };
        self.model.folders.retain(|folder| folder != target);
        self.model.folders.iter_mut().for_each(|folder| *folder = moved(folder));
        let files = std::mem::take(&mut self.model.files);
        self.model.files = files.into_iter().map(|(path, content)| (moved(&path), content)).collect();
        for (_, name, _) in &mut self.open {
            *name = name.as_ref().map(moved);
        }
    }

    fn list(&self, folder: &str) {
        let mut found = Vec::new();
        let mut position = Some(0);
        while let Some(from) = position {
            let listing = run(self.root.list(folder, from, 3)).expect("a listing");
            found.extend(listing.entries.into_iter().map(|entry| (entry.name, entry.kind)));
            position = listing.next;
        }
        found.sort_by(|left, right| left.0.cmp(&right.0));
        let direct = |path: &str| path.strip_prefix(folder).map(String::from).filter(|rest| !rest.contains('/'));
        let files = self.model.files.keys().filter_map(|path| direct(path)).map(|name| (name, Kind::File));
        let folders = self.model.folders.iter().filter(|path| path.as_str() != folder);
        let folders = folders.filter_map(|path| direct(path.trim_end_matches('/'))).map(|name| (name, Kind::Directory));
        let mut expected: Vec<(String, Kind)> = files.chain(folders).filter(|(name, _)| !name.is_empty()).collect();
        expected.sort_by(|left, right| left.0.cmp(&right.0));
        assert_eq!(found, expected, "in {folder}");
    }

    fn remount(&mut self) {
        for (file, _, content) in std::mem::take(&mut self.open) {
            expect_content(&file, &content, "an open file");
            run(file.close()).expect("it closes");
        }
        run(self.volume.unmount()).expect("it unmounts");
        (self.judge)(&self.disk, &self.model);
        self.volume = mount(&self.disk).expect("it mounts again");
        assert!(!self.volume.was_dirty());
        self.root = run(self.volume.root()).expect("a root");
    }

    pub fn finish(mut self) {
        for folder in self.model.folders.clone() {
            self.list(&folder);
        }
        for number in 0..self.model.files.len() {
            self.read(number as u8);
        }
        self.remount();
        let report =
            run(fat::check(MemoryDisk::new(self.disk.bytes()), fat::CheckMode::Report)).expect("it is checked");
        assert!(report.is_clean(), "{:?}", report.lines);
    }
}

fn expect_content(file: &OpenFile<MemoryDisk>, content: &[u8], what: &str) {
    let mut found = vec![0; content.len() + 1];
    let count = run(file.read(0, &mut found)).expect("it is read");
    assert_eq!(count, content.len(), "{what}");
    assert!(&found[..count] == content, "{what} has other content");
}

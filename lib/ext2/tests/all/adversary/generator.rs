//! Random operations, most of which are possible on the current volume.

use std::rc::Rc;

use crate::adversary::model::{Content, Kind, Model, below};
use crate::adversary::noise::{Random, noise};
use crate::adversary::operation::{Operation, Path, SLOTS, Sort};

/// Exceeds the maximum file size of any volume.
const TOO_LARGE: u64 = 1 << 50;
const WAYS: u64 = 100;
/// Operations after which the choices are collected again; changes since then cause some operations to be refused.
const SCENE_LASTS: u64 = 6;

/// Names of extended attributes, which all fit into a block of 1 KiB, together with values of at most this many bytes.
const EXTENDED_NAMES: [&str; 4] = ["a", "singularity.acl", "b", "a name that is somewhat longer"];
const MAX_EXTENDED: usize = 180;

/// Workload of a volume.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// Approximate limit of the total content in bytes.
    pub content_bytes: u64,
    /// One write in this many is large.
    pub large_writes: u64,
    /// Size of large writes.
    pub large_bytes: u64,
    /// Whether files are created in bulk, so that directories grow indexes.
    pub crowds: bool,
    /// One operation in this many is a sync; none if 0.
    pub syncs: u64,
    /// One operation in this many is a remount; none if 0.
    pub remounts: u64,
    /// Maximum file size, except for writes that must fail.
    pub largest_file: u64,
    /// One size change in this many must fail; none if 0.
    pub impossible: u64,
}

impl Default for Life {
    fn default() -> Life {
        Life {
            content_bytes: 4 << 20,
            large_writes: 12,
            large_bytes: 600 << 10,
            crowds: true,
            syncs: 40,
            remounts: 400,
            largest_file: 15 << 30,
            impossible: 50,
        }
    }
}

/// Generates operations from a seed.
pub struct Generator {
    random: Random,
    life: Life,
    /// Files created in bulk that may still exist: folder, first number, count, length of a name.
    crowds: Vec<(Path, u32, u32, usize)>,
    crowd_number: u32,
    scene: Rc<Scene>,
    operations: u64,
}

impl Generator {
    pub fn new(seed: u64, life: Life) -> Generator {
        Generator {
            random: Random::new(seed),
            life,
            crowds: Vec::new(),
            crowd_number: 0,
            scene: Rc::default(),
            operations: 0,
        }
    }

    /// Returns the next operation on the model's content, at or below `base`.
    pub fn next(&mut self, model: &Model, base: &Path) -> Operation {
        if self.operations.is_multiple_of(SCENE_LASTS) {
            self.scene = Rc::new(Scene::of(model, base));
        }
        self.operations += 1;
        let scene = Rc::clone(&self.scene);
        if let Some(rare) = self.rare() {
            return rare;
        }
        if model.content_bytes() > self.life.content_bytes {
            return self.smaller(&scene, model);
        }
        match self.random.below(WAYS) {
            0..9 => Operation::Create {
                path: self.new_path(&scene),
                permissions: self.permissions(),
                owner: self.number_of_someone(),
            },
            9..13 => Operation::MakeFolder { path: self.new_path(&scene), permissions: self.permissions() },
            13..16 => self.new_link(&scene),
            16..20 => Operation::AddName { existing: self.old_path(&scene, Sort::File), path: self.new_path(&scene) },
            20..26 => self.smaller(&scene, model),
            26..34 => self.rename(&scene),
            34..39 => self.set_attributes(&scene),
            39..46 => Operation::Open { path: self.old_path(&scene, Sort::File), slot: self.slot() },
            46..48 => Operation::Close { slot: self.slot() },
            48..71 => self.write(model),
            71..74 => self.extended(&scene, model),
            74..80 => self.append(),
            80..86 => self.set_size(model),
            86..93 => self.read(model),
            93..95 => Operation::List { path: self.folder(&scene) },
            95..98 => Operation::Look { path: self.any_path(&scene) },
            _ => self.crowd(&scene),
        }
    }

    fn rare(&mut self) -> Option<Operation> {
        if self.life.syncs > 0 && self.random.once_in(self.life.syncs) {
            return Some(Operation::Sync);
        }
        (self.life.remounts > 0 && self.random.once_in(self.life.remounts)).then_some(Operation::Remount)
    }

    fn slot(&mut self) -> usize {
        self.random.below(SLOTS as u64) as usize
    }

    fn open_slot(&mut self, model: &Model) -> usize {
        let open: Vec<usize> = (0..SLOTS).filter(|slot| model.slots[*slot].is_some()).collect();
        self.random.pick(&open).copied().unwrap_or(0)
    }

    fn permissions(&mut self) -> u16 {
        self.random.below(0o10000) as u16
    }

    /// User IDs of 16 bits, and some larger ones.
    fn number_of_someone(&mut self) -> u32 {
        *self.random.pick(&[0, 1, 1000, 65_534, 70_000, 4_000_000_000]).unwrap_or(&0)
    }

    fn folder(&mut self, scene: &Scene) -> Path {
        // Nested folders are equally likely.
        self.random.pick(&scene.folders).cloned().unwrap_or_default()
    }

    fn name(&mut self) -> Vec<u8> {
        match self.random.below(10) {
            // Few names, so that they collide.
            0..5 => vec![b'a' + self.random.below(12) as u8],
            5..7 => format!("name-{}", self.random.below(1000)).into_bytes(),
            7 => {
                let letters = 200 + self.random.below(56) as usize;
                self.bytes_of_name(letters)
            }
            8 => {
                let letters = 1 + self.random.below(60) as usize;
                self.bytes_of_name(letters)
            }
            _ if self.random.once_in(20) => {
                let bad = [&b""[..], b".", b"..", &[b'x'; 256], b"a/b"];
                self.random.pick(&bad).map(|name| name.to_vec()).unwrap_or_default()
            }
            _ => format!("n{}", self.random.below(1 << 30)).into_bytes(),
        }
    }

    /// Returns a name of arbitrary valid bytes.
    fn bytes_of_name(&mut self, letters: usize) -> Vec<u8> {
        let mut name = noise(self.random.next(), letters);
        name.iter_mut().filter(|byte| **byte == b'/').for_each(|byte| *byte = b'_');
        if matches!(&name[..], b"." | b"..") { b"dot".to_vec() } else { name }
    }

    fn new_path(&mut self, scene: &Scene) -> Path {
        below(&self.folder(scene), self.name())
    }

    /// Returns the path of an existing node of this kind, of another node, or of none.
    fn old_path(&mut self, scene: &Scene, sort: Sort) -> Path {
        let of_sort: Vec<&Path> =
            scene.others.iter().filter(|(_, found)| *found == sort).map(|(path, _)| path).collect();
        match self.random.below(20) {
            0 => self.new_path(scene),
            1 => self.any_path(scene),
            _ => self.random.pick(&of_sort).map_or_else(|| scene.base(), |path| (*path).clone()),
        }
    }

    fn any_path(&mut self, scene: &Scene) -> Path {
        match self.random.below(4) {
            0 => self.folder(scene),
            _ => self.random.pick(&scene.others).map_or_else(|| scene.base(), |(path, _)| path.clone()),
        }
    }

    fn new_link(&mut self, scene: &Scene) -> Operation {
        // Around the size limit of fast symbolic links.
        let letters = *self.random.pick(&[1, 8, 58, 59, 60, 61, 200, 900]).unwrap_or(&1);
        let target = [&b"missing-"[..], &noise(self.random.next(), letters)].concat();
        let target = target.iter().map(|byte| byte & 0x7f | 0x40).take(letters).collect();
        Operation::MakeLink { path: self.new_path(scene), target }
    }

    fn rename(&mut self, scene: &Scene) -> Operation {
        let from = match self.random.below(3) {
            0 => self.folder(scene),
            1 => self.old_path(scene, Sort::File),
            _ => self.any_path(scene),
        };
        let to = match self.random.below(4) {
            // Possibly into itself.
            0 if self.random.once_in(4) => below(&from, self.name()),
            0 => self.any_path(scene),
            _ => self.new_path(scene),
        };
        Operation::Rename { from, to }
    }

    fn set_attributes(&mut self, scene: &Scene) -> Operation {
        let path = self.any_path(scene);
        let is_link = scene.others.contains(&(path.clone(), Sort::Link));
        let which = self.random.below(16);
        // Linux has no permissions for links.
        let permissions = (which & 1 != 0 && !is_link).then(|| self.permissions());
        Operation::SetAttributes {
            permissions,
            owner: (which & 2 != 0).then(|| self.number_of_someone()),
            group: (which & 4 != 0).then(|| self.number_of_someone()),
            modified: (which & 8 != 0).then(|| self.random.below(1 << 31) as u32),
            path,
        }
    }

    fn extended(&mut self, scene: &Scene, model: &Model) -> Operation {
        let path = self.any_path(scene);
        let name = *self.random.pick(&EXTENDED_NAMES).unwrap_or(&"a");
        let has_one = model.find(&path).is_some_and(|number| model.node(number).extended.contains_key(name.as_bytes()));
        if has_one && self.random.once_in(2) || self.random.once_in(20) {
            return Operation::RemoveExtended { path, name };
        }
        // Few values, so that nodes share them.
        let bytes = *self.random.pick(&[0, 1, 30, 31, 32, 100, MAX_EXTENDED]).unwrap_or(&0);
        Operation::SetExtended { path, name, bytes, seed: self.random.below(3) }
    }

    fn bytes(&mut self) -> usize {
        if self.random.once_in(self.life.large_writes) {
            return self.random.below(self.life.large_bytes) as usize;
        }
        match self.random.below(4) {
            0 => self.random.below(64) as usize,
            1 => 1024 << self.random.below(4),
            _ => self.random.below(9000) as usize,
        }
    }

    /// Returns an offset within the file, at a boundary, or beyond its end.
    fn offset(&mut self, content: Option<&Content>) -> u64 {
        let size = content.map_or(0, |content| content.size);
        let offset = match self.random.below(12) {
            0..5 => self.random.below(size + 1),
            5 => size / 4096 * 4096,
            6 => size,
            7 => size + self.random.below(20_000),
            // Around the start of each level of indirect blocks, with blocks of 1 to 4 KiB.
            8 => {
                let borders = [12 << 10, 268 << 10, (65_804 << 10) as u64, 48 << 10, 4144 << 10, 24 << 10, 1048 << 10];
                let border = self.random.pick(&borders).copied().unwrap_or(0);
                (border + self.random.below(6000)).saturating_sub(3000)
            }
            9 if self.random.once_in(3) => self.random.below(self.life.largest_file),
            10 => 0,
            _ => self.random.below(1 << 20),
        };
        offset.min(self.life.largest_file - (2 << 20))
    }

    fn content(model: &Model, slot: usize) -> Option<&Content> {
        model.open_content(slot).ok()
    }

    fn write(&mut self, model: &Model) -> Operation {
        let slot = self.open_slot(model);
        let impossible = self.life.impossible > 0 && self.random.once_in(self.life.impossible);
        let offset = if impossible { TOO_LARGE } else { self.offset(Self::content(model, slot)) };
        let bytes = self.bytes();
        // Whether an empty write at an impossible position fails is unspecified.
        let bytes = if impossible { bytes.max(1) } else { bytes };
        Operation::Write { slot, offset, bytes, seed: self.random.below(1 << 32) }
    }

    fn append(&mut self) -> Operation {
        Operation::Append { slot: self.slot(), bytes: self.bytes(), seed: self.random.below(1 << 32) }
    }

    fn set_size(&mut self, model: &Model) -> Operation {
        let slot = self.open_slot(model);
        let impossible = self.life.impossible > 0 && self.random.once_in(self.life.impossible);
        let size = if impossible { TOO_LARGE } else { self.offset(Self::content(model, slot)) };
        Operation::SetSize { slot, size }
    }

    fn read(&mut self, model: &Model) -> Operation {
        let slot = self.open_slot(model);
        let offset = self.offset(Self::content(model, slot));
        Operation::Read { slot, offset, bytes: self.bytes() }
    }

    fn crowd(&mut self, scene: &Scene) -> Operation {
        if !self.life.crowds {
            return Operation::List { path: self.folder(scene) };
        }
        let folder = self.folder(scene);
        let name_bytes = *self.random.pick(&[8, 30, 255]).unwrap_or(&8);
        let count = 1 + self.random.below(120) as u32;
        let first = self.crowd_number;
        self.crowd_number += count;
        self.crowds.push((folder.clone(), first, count, name_bytes));
        Operation::CreateMany { folder, first, count, name_bytes }
    }

    /// An operation that frees space.
    fn smaller(&mut self, scene: &Scene, model: &Model) -> Operation {
        match self.random.below(10) {
            0..2 if !self.crowds.is_empty() => {
                let chosen = self.random.below(self.crowds.len() as u64) as usize;
                let (folder, first, count, name_bytes) = self.crowds.swap_remove(chosen);
                // Sometimes partially, so that folders have gaps.
                let some = 1 + self.random.below(count.into()) as u32;
                if some < count {
                    self.crowds.push((folder.clone(), first + some, count - some, name_bytes));
                }
                Operation::UnlinkMany { folder, first, count: some, name_bytes }
            }
            0..4 => Operation::RemoveFolder { path: self.folder(scene) },
            4 => Operation::Unlink { path: self.old_path(scene, Sort::Link) },
            5 => Operation::Close { slot: self.slot() },
            6 => {
                let slot = self.open_slot(model);
                let size = Self::content(model, slot).map_or(0, |content| content.size);
                Operation::SetSize { slot, size: self.random.below(size / 2 + 1) }
            }
            _ => Operation::Unlink { path: self.old_path(scene, Sort::File) },
        }
    }
}

/// Existing nodes to choose from.
#[derive(Default)]
struct Scene {
    folders: Vec<Path>,
    others: Vec<(Path, Sort)>,
}

impl Scene {
    fn of(model: &Model, base: &Path) -> Scene {
        let mut scene = Scene { folders: Vec::new(), others: Vec::new() };
        for (path, number) in model.walk() {
            if !path.starts_with(base) || path.first().is_some_and(|name| name == b"lost+found") {
                continue;
            }
            match &model.node(number).kind {
                Kind::Folder { .. } => scene.folders.push(path),
                _ => scene.others.push((path, model.sort(number))),
            }
        }
        scene
    }

    /// Returns the base folder: operations without another target apply to it, and never to its parents.
    fn base(&self) -> Path {
        self.folders.iter().min_by_key(|path| path.len()).cloned().unwrap_or_default()
    }
}

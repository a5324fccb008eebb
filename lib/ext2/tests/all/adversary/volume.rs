//! Operations on a volume mounted here, and comparison of its content with the model.

use std::cell::RefCell;
use std::collections::BTreeMap;

use ext2::format::attributes::namespace;
use ext2::{
    Access, AttributeChanges, CacheLimits, Error, ExtendedAttribute, Inode, Kind, MountOptions, NewKind, NewNode,
    OpenFile, ROOT_INODE, Volume,
};

use crate::adversary::disk::TestDisk;
use crate::adversary::model::{self, Content, Model};
use crate::adversary::noise::noise;
use crate::adversary::operation::{Extended, Facts, Operation, Outcome, Path, SLOTS, Sort, many_name, shown_name};
use crate::support::AnyDisk;

/// Maximum size of files that are read completely.
const READ_WHOLE: u64 = 24 << 20;
const READ_AT_ONCE: u64 = 1 << 20;
const PAGE: usize = 100;

type Step<T> = Result<T, Outcome>;

/// A mounted volume with its open files.
pub struct Mounted {
    disk: TestDisk,
    options: MountOptions,
    volume: RefCell<Option<Volume<AnyDisk>>>,
    slots: [RefCell<Option<OpenFile<AnyDisk>>>; SLOTS],
}

/// Small caches, so that misses are tested too.
pub fn small_caches() -> CacheLimits {
    CacheLimits {
        inode_bytes: 8 << 10,
        number_bytes: 8 << 10,
        data_bytes: 256 << 10,
        page_bytes: 8 << 10,
        ..CacheLimits::default()
    }
}

/// Converts an error to the caller's outcome.
fn outcome(error: Error) -> Outcome {
    match error {
        Error::NoSpace | Error::NoInodes => Outcome::NoRoom(0),
        Error::NotFound
        | Error::NotADirectory
        | Error::NotAFile
        | Error::IsADirectory
        | Error::AlreadyExists
        | Error::NotEmpty
        | Error::IntoItself
        | Error::TooManyLinks
        | Error::TooManyNames
        | Error::TooLarge
        | Error::BadName
        | Error::NameTooLong => Outcome::Refused,
        other => Outcome::Broken(format!("{other:?}: {other}")),
    }
}

impl Mounted {
    pub fn mount(disk: TestDisk, limits: CacheLimits) -> Result<Mounted, Error> {
        let options = MountOptions { limits, access: Access::WriteIfPossible };
        let volume = disk.run(Volume::mount(AnyDisk::new(disk.clone()), options))?;
        Ok(Mounted { disk, options, volume: RefCell::new(Some(volume)), slots: Default::default() })
    }

    /// Another client of the same volume, with its own open files.
    pub fn another_client(&self) -> Mounted {
        let volume = RefCell::new(Some(self.volume()));
        Mounted { disk: self.disk.clone(), options: self.options, volume, slots: Default::default() }
    }

    /// Closes all files.
    pub fn leave(self) {
        for slot in &self.slots {
            drop(slot.take());
        }
        self.disk.settle();
    }

    pub fn disk(&self) -> &TestDisk {
        &self.disk
    }

    pub fn volume(&self) -> Volume<AnyDisk> {
        self.volume.borrow().clone().expect("the volume is mounted")
    }

    /// Runs an operation to completion, including its background tasks.
    #[track_caller]
    pub fn apply(&self, operation: &Operation) -> Outcome {
        let outcome = self.disk.run(self.apply_async(operation));
        self.disk.settle();
        outcome
    }

    pub async fn apply_async(&self, operation: &Operation) -> Outcome {
        self.try_apply(operation).await.unwrap_or_else(|refused| refused)
    }

    /// Closes all files and unmounts.
    pub fn unmount(self) -> Result<TestDisk, Error> {
        for slot in &self.slots {
            drop(slot.take());
        }
        let volume = self.volume();
        let result = self.disk.run(volume.unmount());
        self.disk.settle();
        result.map(|()| self.disk)
    }

    async fn try_apply(&self, operation: &Operation) -> Step<Outcome> {
        let volume = self.volume();
        match operation {
            Operation::Create { path, permissions, owner } => {
                self.add(path, NewKind::File, *permissions, *owner).await?;
            }
            Operation::MakeFolder { path, permissions } => self.add(path, NewKind::Directory, *permissions, 0).await?,
            Operation::MakeLink { path, target } => self.add(path, NewKind::SymbolicLink(target), 0o777, 0).await?,
            Operation::AddName { existing, path } => {
                let target = self.resolve(existing).await?;
                if target.kind == Kind::Directory {
                    return Err(Outcome::Refused);
                }
                let (folder, name) = self.parent(path).await?;
                volume.link(folder, name, target.number).await.map_err(outcome)?;
            }
            Operation::Unlink { path } => {
                let (folder, name) = self.parent(path).await?;
                volume.unlink(folder, name).await.map_err(outcome)?;
            }
            Operation::RemoveFolder { path } => {
                let (folder, name) = self.parent(path).await?;
                volume.remove_directory(folder, name).await.map_err(outcome)?;
            }
            Operation::Rename { from, to } => {
                let (from_folder, from_name) = self.parent(from).await?;
                let (to_folder, to_name) = self.parent(to).await?;
                volume.rename(from_folder, from_name, to_folder, to_name).await.map_err(outcome)?;
            }
            Operation::CreateMany { folder, first, count, name_bytes } => {
                return self.create_many(folder, *first..first + count, *name_bytes).await;
            }
            Operation::UnlinkMany { folder, first, count, name_bytes } => {
                let folder = self.resolve(folder).await?.number;
                for number in *first..first + count {
                    volume.unlink(folder, &many_name(number, *name_bytes)).await.map_err(outcome)?;
                }
            }
            Operation::SetAttributes { path, permissions, owner, group, modified } => {
                let number = self.resolve(path).await?.number;
                let (permissions, owner, group, modified) = (*permissions, *owner, *group, *modified);
                let changes = AttributeChanges { permissions, owner, group, modified, ..Default::default() };
                volume.set_attributes(number, changes).await.map_err(outcome)?;
            }
            Operation::SetExtended { path, name, bytes, seed } => {
                let number = self.resolve(path).await?.number;
                let (name, value) = (name.as_bytes().to_vec(), noise(*seed, *bytes));
                let new = ExtendedAttribute { namespace: namespace::USER, name, value };
                volume.set_extended_attribute(number, new).await.map_err(outcome)?;
            }
            Operation::RemoveExtended { path, name } => {
                let number = self.resolve(path).await?.number;
                let removed = volume.remove_extended_attribute(number, namespace::USER, name.as_bytes());
                removed.await.map_err(outcome)?;
            }
            Operation::List { path } => {
                let number = self.resolve(path).await?.number;
                return self.names(number).await.map(Outcome::Names);
            }
            Operation::Look { path } => {
                let inode = self.resolve(path).await?;
                return self.facts(&inode).await.map(Outcome::Facts);
            }
            Operation::Sync => volume.sync().await.map_err(outcome)?,
            Operation::Remount => self.remount().await?,
            other => return self.apply_to_open_file(other).await,
        }
        Ok(Outcome::Done)
    }

    async fn create_many(&self, folder: &[Vec<u8>], numbers: std::ops::Range<u32>, name_bytes: usize) -> Step<Outcome> {
        let folder = self.resolve(folder).await?.number;
        for (index, number) in numbers.enumerate() {
            let node = NewNode { kind: NewKind::File, permissions: 0o644, owner: 0, group: 0 };
            let name = many_name(number, name_bytes);
            self.volume().create(folder, &name, node).await.map_err(|error| match outcome(error) {
                Outcome::NoRoom(_) => Outcome::NoRoom(index),
                other => other,
            })?;
        }
        Ok(Outcome::Done)
    }

    async fn remount(&self) -> Step<()> {
        for slot in &self.slots {
            let open = slot.take();
            if let Some(file) = open {
                file.close().await.map_err(outcome)?;
            }
        }
        self.volume().unmount().await.map_err(outcome)?;
        let volume = Volume::mount(AnyDisk::new(self.disk.clone()), self.options).await.map_err(outcome)?;
        *self.volume.borrow_mut() = Some(volume);
        Ok(())
    }

    async fn apply_to_open_file(&self, operation: &Operation) -> Step<Outcome> {
        // The slots belong to one client, whose operations are sequential.
        match operation {
            Operation::Open { path, slot } => {
                let inode = self.resolve(path).await?;
                if inode.kind != Kind::File {
                    return Err(Outcome::Refused);
                }
                let file = self.volume().open(inode.number).await.map_err(outcome)?;
                let before = self.slots[*slot].replace(Some(file));
                drop(before);
            }
            Operation::Close { slot } => {
                let file = self.slots[*slot].take();
                if let Some(file) = file {
                    file.close().await.map_err(outcome)?;
                }
            }
            other => {
                let (Operation::Read { slot, .. }
                | Operation::Write { slot, .. }
                | Operation::Append { slot, .. }
                | Operation::SetSize { slot, .. }) = other
                else {
                    return Ok(Outcome::Done);
                };
                let file = self.slots[*slot].take().ok_or(Outcome::Refused)?;
                let result = transfer(&file, other).await;
                *self.slots[*slot].borrow_mut() = Some(file);
                return result;
            }
        }
        Ok(Outcome::Done)
    }

    async fn resolve(&self, path: &[Vec<u8>]) -> Step<Inode> {
        let mut number = ROOT_INODE;
        for name in path {
            number = self.volume().find(number, name).await.map_err(outcome)?;
        }
        self.volume().inode(number).await.map_err(outcome)
    }

    async fn parent<'a>(&self, path: &'a [Vec<u8>]) -> Step<(u32, &'a [u8])> {
        let (name, folder) = path.split_last().ok_or(Outcome::Refused)?;
        Ok((self.resolve(folder).await?.number, name))
    }

    async fn add(&self, path: &[Vec<u8>], kind: NewKind<'_>, permissions: u16, owner: u32) -> Step<()> {
        let (folder, name) = self.parent(path).await?;
        let node = NewNode { kind, permissions, owner, group: owner / 2 };
        self.volume().create(folder, name, node).await.map(drop).map_err(outcome)
    }

    async fn names(&self, folder: u32) -> Step<BTreeMap<Vec<u8>, Sort>> {
        let mut names = BTreeMap::new();
        for (name, number) in self.numbers(folder).await? {
            names.insert(name, sort(&self.volume().inode(number).await.map_err(outcome)?)?);
        }
        Ok(names)
    }

    /// Returns the names in a folder and their inode numbers.
    pub async fn numbers(&self, folder: u32) -> Step<BTreeMap<Vec<u8>, u32>> {
        let (mut numbers, mut position) = (BTreeMap::new(), 0);
        loop {
            let listing = self.volume().list(folder, position, PAGE).await.map_err(outcome)?;
            for entry in listing.entries.into_iter().filter(|entry| !matches!(&entry.name[..], b"." | b"..")) {
                let inode = self.volume().inode(entry.inode).await.map_err(outcome)?;
                let shown = shown_name(&entry.name);
                if entry.kind.is_some_and(|kind| kind != inode.kind) {
                    let what = format!("{shown} is a {:?}, its entry says {:?}", inode.kind, entry.kind);
                    return Err(Outcome::Broken(what));
                }
                if numbers.insert(entry.name, entry.inode).is_some() {
                    return Err(Outcome::Broken(format!("{shown} is listed twice")));
                }
            }
            match listing.next {
                Some(next) => position = next,
                None => return Ok(numbers),
            }
        }
    }

    /// Returns the inode number of a path.
    pub async fn number(&self, path: &[Vec<u8>]) -> Step<u32> {
        self.resolve(path).await.map(|inode| inode.number)
    }

    /// Returns the content of a file.
    pub async fn content(&self, number: u32) -> Result<Vec<u8>, String> {
        let file = self.volume().open(number).await.map_err(|error| format!("{error:?}"))?;
        let size = file.inode().await.map_err(|error| format!("{error:?}"))?.size;
        let mut bytes = vec![0xee; size as usize];
        let read = file.read(0, &mut bytes).await.map_err(|error| format!("{error:?}"))?;
        if read == bytes.len() { Ok(bytes) } else { Err(format!("{read} of {size} bytes are read")) }
    }

    pub async fn facts_of(&self, number: u32) -> Step<Facts> {
        self.facts(&self.volume().inode(number).await.map_err(outcome)?).await
    }

    async fn facts(&self, inode: &Inode) -> Step<Facts> {
        let sort = sort(inode)?;
        let target = match sort {
            Sort::Link => Some(self.volume().link_target(inode.number).await.map_err(outcome)?),
            _ => None,
        };
        let extended = self.volume().extended_attributes(inode.number).await.map_err(outcome)?;
        let user = extended.into_iter().filter(|one| one.namespace == namespace::USER);
        let extended: Extended = user.map(|one| (one.name, one.value)).collect();
        Ok(Facts {
            sort,
            size: (sort != Sort::Folder).then_some(inode.size),
            permissions: inode.permissions,
            owner: inode.owner,
            group: inode.group,
            links: u32::from(inode.links),
            modified: Some(inode.modified),
            target,
            extended,
        })
    }

    /// Reads everything on the volume; the first difference from the model is the error.
    #[track_caller]
    pub fn compare(&self, model: &Model) -> Result<(), String> {
        self.compare_below(model, &Path::new())
    }

    /// The same for the content below a folder.
    #[track_caller]
    pub fn compare_below(&self, model: &Model, base: &Path) -> Result<(), String> {
        let result = self.disk.run(self.compare_async(model, base));
        self.disk.settle();
        result.map_err(|(path, what)| format!("{path}: {what}"))
    }

    async fn compare_async(&self, model: &Model, base: &Path) -> Result<(), (String, String)> {
        let mut seen = BTreeMap::new();
        for (path, number) in model.walk().into_iter().filter(|(path, _)| path.starts_with(base)) {
            let shown = format!("/{}", path.iter().map(|name| shown_name(name)).collect::<Vec<_>>().join("/"));
            let named = |what: String| (shown.clone(), what);
            let inode = self.resolve(&path).await.map_err(|outcome| named(format!("{outcome:?}")))?;
            if *seen.entry(number).or_insert(inode.number) != inode.number {
                return Err(named("two names of one file lead to two".into()));
            }
            let facts = self.facts(&inode).await.map_err(|outcome| named(format!("{outcome:?}")))?;
            same_facts(&facts, &model.facts(number)).map_err(named)?;
            match &model.node(number).kind {
                model::Kind::File(content) => self.same_content(&inode, content).await.map_err(named)?,
                model::Kind::Folder { entries } => {
                    let names = self.names(inode.number).await.map_err(|outcome| named(format!("{outcome:?}")))?;
                    same_names(&names, entries.keys()).map_err(named)?;
                }
                model::Kind::Link(_) => {}
            }
        }
        Ok(())
    }

    async fn same_content(&self, inode: &Inode, content: &Content) -> Result<(), String> {
        let file = self.volume().open(inode.number).await.map_err(|error| error.to_string())?;
        let mut buffer = vec![0xee; READ_AT_ONCE as usize];
        let mut pieces = content.pieces();
        if content.size <= READ_WHOLE {
            pieces =
                (0..content.size.div_ceil(READ_AT_ONCE)).map(|index| (index * READ_AT_ONCE, READ_AT_ONCE)).collect();
        } else {
            // The holes beside each piece, and the end.
            pieces.iter_mut().for_each(|piece| *piece = (piece.0.saturating_sub(5000), piece.1 + 10_000));
            pieces.push((content.size.saturating_sub(5000), 10_000));
        }
        for (start, bytes) in pieces {
            for offset in (start..start + bytes).step_by(READ_AT_ONCE as usize) {
                let wanted = (start + bytes - offset).min(READ_AT_ONCE) as usize;
                let expected = content.read(offset, wanted);
                let read = file.read(offset, &mut buffer[..wanted]).await.map_err(|error| format!("{error:?}"))?;
                same_bytes(offset, &buffer[..read], &expected)?;
            }
        }
        file.close().await.map_err(|error| format!("closing: {error:?}"))
    }
}

fn sort(inode: &Inode) -> Step<Sort> {
    match inode.kind {
        Kind::File => Ok(Sort::File),
        Kind::Directory => Ok(Sort::Folder),
        Kind::SymbolicLink => Ok(Sort::Link),
        other => Err(Outcome::Broken(format!("inode {} is a {other:?}", inode.number))),
    }
}

async fn transfer(file: &OpenFile<AnyDisk>, operation: &Operation) -> Step<Outcome> {
    let partial = |partial: ext2::Partial| match outcome(partial.error) {
        Outcome::NoRoom(_) => Outcome::NoRoom(partial.written),
        Outcome::Refused if partial.written > 0 => Outcome::Broken("refused, but for a part".into()),
        other => other,
    };
    match operation {
        Operation::Read { offset, bytes, .. } => {
            let mut buffer = vec![0xee; *bytes];
            let read = file.read(*offset, &mut buffer).await.map_err(outcome)?;
            buffer.truncate(read);
            Ok(Outcome::Data(buffer))
        }
        Operation::Write { offset, bytes, seed, .. } => {
            file.write(*offset, &noise(*seed, *bytes)).await.map(|()| Outcome::Done).map_err(partial)
        }
        Operation::Append { bytes, seed, .. } => {
            file.append(&noise(*seed, *bytes)).await.map(Outcome::AppendedAt).map_err(partial)
        }
        Operation::SetSize { size, .. } => file.set_size(*size).await.map(|()| Outcome::Done).map_err(outcome),
        _ => Ok(Outcome::Done),
    }
}

/// Compares actual and expected metadata; fields that are expected to be unknown are skipped.
pub fn same_facts(found: &Facts, expected: &Facts) -> Result<(), String> {
    let mut found = found.clone();
    if expected.modified.is_none() {
        found.modified = None;
    }
    if found == *expected { Ok(()) } else { Err(format!("is {found:?} instead of {expected:?}")) }
}

pub fn same_names<'a, T>(
    found: &BTreeMap<Vec<u8>, T>,
    expected: impl Iterator<Item = &'a Vec<u8>> + Clone,
) -> Result<(), String> {
    if let Some(missing) = expected.clone().find(|name| !found.contains_key(*name)) {
        return Err(format!("{} is not listed", shown_name(missing)));
    }
    if found.len() == expected.clone().count() {
        return Ok(());
    }
    let expected: std::collections::BTreeSet<_> = expected.collect();
    let more: Vec<String> = found.keys().filter(|name| !expected.contains(name)).map(|name| shown_name(name)).collect();
    Err(format!("has more names: {more:?}"))
}

pub fn same_bytes(offset: u64, found: &[u8], expected: &[u8]) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    if found.len() != expected.len() {
        return Err(format!("{} bytes at {offset} instead of {}", found.len(), expected.len()));
    }
    let at = found.iter().zip(expected).position(|(left, right)| left != right).unwrap_or(0);
    let piece = |bytes: &[u8]| bytes[at..bytes.len().min(at + 8)].to_vec();
    Err(format!("at byte {} is {:?} instead of {:?}", offset + at as u64, piece(found), piece(expected)))
}

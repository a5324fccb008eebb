//! Required content of a volume after a crash.
//!
//! Names, kinds, owners and permissions must be exactly as after some operation since the last sync: each operation is
//! atomic, and they are ordered. A file's size lies between the sizes it has had since, and each byte is one that it
//! has had since.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use ext2::{Kind as Found, ROOT_INODE};

use crate::adversary::model::{Content, Kind, Model};
use crate::adversary::operation::{Extended, Path, Sort, shown_name};
use crate::adversary::volume::Mounted;

/// Metadata of a name that must not be torn.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct Mark {
    sort: Sort,
    permissions: u16,
    owner: u32,
    group: u32,
    /// First link to the same node, in order.
    first: Path,
    links: u32,
    target: Option<Vec<u8>>,
    extended: Extended,
}

type Names = BTreeMap<Path, Mark>;

/// A moment of a history: after an operation.
pub struct Moment {
    /// Length of the recording at the end of the operation.
    pub place: usize,
    pub model: Model,
    /// Whether everything before it is durable.
    pub synced: bool,
}

/// Moments of a history, the first one before any operation.
#[derive(Default)]
pub struct History {
    moments: Vec<Moment>,
    digests: Vec<u64>,
}

impl History {
    pub fn push(&mut self, moment: Moment) {
        self.digests.push(digest(&names_of(&moment.model)));
        self.moments.push(moment);
    }

    /// Returns the moments whose state the volume may have after a power loss at this place of the recording.
    fn possible(&self, place: usize) -> std::ops::Range<usize> {
        let is_behind = |moment: &Moment| moment.place > place;
        // The active operation may be there too.
        let end = self.moments.iter().position(is_behind).map_or(self.moments.len(), |under_way| under_way + 1);
        let until = self.moments.iter().position(is_behind).unwrap_or(self.moments.len());
        let start = self.moments[..until].iter().rposition(|moment| moment.synced).unwrap_or(0);
        start..end
    }

    /// Checks the content of the volume.
    pub fn check(&self, place: usize, mounted: &Mounted) -> Result<(), String> {
        let possible = self.possible(place);
        let found = mounted.disk().run(found_names(mounted))?;
        let wanted = digest(&found.names);
        let mut error = None;
        for moment in possible.clone().rev().filter(|moment| self.digests[*moment] == wanted) {
            match mounted.disk().run(self.check_files(moment, possible.clone(), &found, mounted)) {
                Ok(()) => return Ok(()),
                Err(found) => error = Some(found),
            }
        }
        Err(error.unwrap_or_else(|| self.explain(possible, &found.names)))
    }

    /// Returns whether no sync was active at this place: the medium is as after the last one, apart from file data
    /// written since.
    pub fn is_quiet(&self, place: usize) -> bool {
        match self.moments.iter().position(|moment| moment.synced && moment.place > place) {
            Some(next) => next.checked_sub(1).is_some_and(|before| self.moments[before].place >= place),
            None => true,
        }
    }

    /// Checks that the content of every file that was synced and has not changed since still exists.
    pub fn check_survivors(&self, place: usize, mounted: &Mounted) -> Result<(), String> {
        let possible = &self.moments[self.possible(place)];
        let found = mounted.disk().run(found_names(mounted))?;
        let mut contents = Vec::new();
        for (path, number) in &found.inodes {
            if found.names[path].sort == Sort::File {
                contents.push(mounted.disk().run(mounted.content(*number))?);
            }
        }
        let mut survivors = named_files(&possible[0].model);
        for moment in &possible[1..] {
            let others = named_files(&moment.model);
            survivors.retain(|number, content| others.get(number) == Some(content));
        }
        for (number, content) in survivors {
            let bytes = content.read(0, content.size as usize);
            // A check removes files without blocks.
            if bytes.iter().any(|byte| *byte != 0) && !contents.contains(&bytes) {
                return Err(format!("the content of node {number}, {} bytes, is nowhere", content.size));
            }
        }
        Ok(())
    }

    async fn check_files(
        &self,
        moment: usize,
        possible: std::ops::Range<usize>,
        found: &FoundNames,
        mounted: &Mounted,
    ) -> Result<(), String> {
        for (path, number) in self.moments[moment].model.walk() {
            let mut versions: Vec<&Content> = Vec::new();
            for moment in &self.moments[possible.clone()] {
                let kind = moment.model.nodes.get(&number).map(|node| &node.kind);
                if let Some(Kind::File(content)) = kind
                    && !versions.contains(&content)
                {
                    versions.push(content);
                }
            }
            if versions.is_empty() {
                continue;
            }
            let inode = found.inodes.get(&path).copied().unwrap_or(0);
            let bytes = mounted.content(inode).await.map_err(|error| format!("{}: {error}", shown(&path)))?;
            is_one_of(&bytes, &versions).map_err(|error| format!("{}: {error}", shown(&path)))?;
        }
        Ok(())
    }

    fn explain(&self, possible: std::ops::Range<usize>, found: &Names) -> String {
        let closest =
            possible.clone().min_by_key(|moment| differences(&names_of(&self.moments[*moment].model), found).len());
        let closest = closest.unwrap_or(0);
        let lines = differences(&names_of(&self.moments[closest].model), found);
        format!("the names are those of no moment in {possible:?}; beside moment {closest}:\n{}", lines.join("\n"))
    }
}

fn is_one_of(bytes: &[u8], versions: &[&Content]) -> Result<(), String> {
    let all: Vec<Vec<u8>> = versions.iter().map(|content| content.read(0, content.size as usize)).collect();
    if all.iter().any(|version| version == bytes) {
        return Ok(());
    }
    let (least, most) = (all.iter().map(Vec::len).min().unwrap_or(0), all.iter().map(Vec::len).max().unwrap_or(0));
    if !(least..=most).contains(&bytes.len()) {
        return Err(format!("{} bytes, and never had less than {least} or more than {most}", bytes.len()));
    }
    let is_known = |at: usize, byte: u8| all.iter().any(|version| version.get(at).copied().unwrap_or(0) == byte);
    match bytes.iter().enumerate().find(|(at, byte)| !is_known(*at, **byte)) {
        None => Ok(()),
        Some((at, byte)) => {
            let known: Vec<Option<&u8>> = all.iter().map(|version| version.get(at)).collect();
            Err(format!("byte {at} of {} is {byte}, and was only ever one of {known:?}", bytes.len()))
        }
    }
}

fn shown(path: &Path) -> String {
    format!("/{}", path.iter().map(|name| shown_name(name)).collect::<Vec<_>>().join("/"))
}

/// Returns the linked files, by node.
fn named_files(model: &Model) -> BTreeMap<usize, &Content> {
    let content = |number: usize| match &model.node(number).kind {
        Kind::File(content) => Some((number, content)),
        _ => None,
    };
    model.walk().into_iter().filter_map(|(_, number)| content(number)).collect()
}

fn digest(names: &Names) -> u64 {
    let mut hasher = DefaultHasher::new();
    names.hash(&mut hasher);
    hasher.finish()
}

fn differences(expected: &Names, found: &Names) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, mark) in expected {
        match found.get(path) {
            None => lines.push(format!("{} is missing", shown(path))),
            Some(other) if other != mark => lines.push(format!("{} is {other:?} instead of {mark:?}", shown(path))),
            Some(_) => {}
        }
    }
    lines.extend(
        found.keys().filter(|path| !expected.contains_key(*path)).map(|path| format!("{} is new", shown(path))),
    );
    lines
}

fn names_of(model: &Model) -> Names {
    let mut first: HashMap<usize, Path> = HashMap::new();
    let mut names = Names::new();
    let mut walked = model.walk();
    walked.sort();
    for (path, number) in walked {
        let facts = model.facts(number);
        let first = first.entry(number).or_insert_with(|| path.clone()).clone();
        let mark = Mark {
            sort: facts.sort,
            permissions: facts.permissions,
            owner: facts.owner,
            group: facts.group,
            first,
            links: facts.links,
            target: facts.target,
            extended: facts.extended,
        };
        names.insert(path, mark);
    }
    names
}

struct FoundNames {
    names: Names,
    inodes: HashMap<Path, u32>,
}

/// All names of a mounted volume.
async fn found_names(mounted: &Mounted) -> Result<FoundNames, String> {
    let mut walked = vec![(Path::new(), ROOT_INODE)];
    let mut at = 0;
    while let Some((path, number)) = walked.get(at).cloned() {
        let inode = mounted.volume().inode(number).await.map_err(|error| format!("{}: {error:?}", shown(&path)))?;
        if inode.kind == Found::Directory {
            let numbers = mounted.numbers(number).await.map_err(|error| format!("{}: {error:?}", shown(&path)))?;
            for (name, number) in numbers {
                walked.push((crate::adversary::model::below(&path, name), number));
            }
        }
        at += 1;
        if at > 20_000 {
            return Err("names without end".into());
        }
    }
    walked.sort();
    let mut first: HashMap<u32, Path> = HashMap::new();
    let mut found = FoundNames { names: Names::new(), inodes: HashMap::new() };
    for (path, number) in walked {
        let facts = mounted.facts_of(number).await.map_err(|error| format!("{}: {error:?}", shown(&path)))?;
        let first = first.entry(number).or_insert_with(|| path.clone()).clone();
        let mark = Mark {
            sort: facts.sort,
            permissions: facts.permissions,
            owner: facts.owner,
            group: facts.group,
            first,
            links: facts.links,
            target: facts.target,
            extended: facts.extended,
        };
        found.names.insert(path.clone(), mark);
        found.inodes.insert(path, number);
    }
    Ok(found)
}

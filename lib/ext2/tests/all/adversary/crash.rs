//! Power loss at every write, with any subset of the unflushed writes on the medium: synced data is intact, the rest is
//! as after some operation, and no manual repair is needed.

use ext2::CacheLimits;

use crate::adversary::disk::TestDisk;
use crate::adversary::generator::{Generator, Life};
use crate::adversary::image::Image;
use crate::adversary::model::{Model, below};
use crate::adversary::operation::{Operation, Outcome, Path};
use crate::adversary::player::{Player, follow};
use crate::adversary::promise::{History, Moment};
use crate::adversary::recording::{Luck, Recording};
use crate::adversary::tools::{self, FORMATS, Format};
use crate::adversary::volume::{Mounted, small_caches};

/// Thoroughness of crash tests.
#[derive(Clone, Copy)]
struct Effort {
    /// Subsets of the unflushed writes, at each moment that has any.
    subsets: u64,
    /// One crash in this many is also repaired by e2fsck.
    e2fsck_once_in: usize,
    /// After one crash in this many, the next mount crashes as well.
    again_once_in: usize,
}

const SHORT: Effort = Effort { subsets: 1, e2fsck_once_in: 60, again_once_in: 40 };
/// Histories have thousands of moments each, on five formats.
const LONG: Effort = Effort { subsets: 2, e2fsck_once_in: 20, again_once_in: 100 };

/// A recorded history of a disk, and the expected content at each moment.
pub struct Story {
    pub recording: Recording,
    pub history: History,
    pub limits: CacheLimits,
}

/// Small volumes with room for a journal of 1024 blocks.
const SMALL: [Format; 5] = [
    Format { mebibytes: 8, ..FORMATS[0] },
    Format { mebibytes: 8, ..FORMATS[1] },
    Format { mebibytes: 12, ..FORMATS[2] },
    Format { mebibytes: 16, ..FORMATS[3] },
    Format { mebibytes: 8, ..FORMATS[4] },
];

pub const QUIET_LIFE: Life = Life {
    content_bytes: 1 << 20,
    large_writes: 15,
    large_bytes: 120 << 10,
    crowds: true,
    syncs: 12,
    remounts: 150,
    largest_file: 4 << 20,
    impossible: 0,
};

/// Records the operations returned by `next`. Compound operations are split, as only each part is atomic.
fn record(
    format: &Format,
    limits: CacheLimits,
    late: Option<u64>,
    next: &mut dyn FnMut(&Model) -> Option<Operation>,
) -> Result<Story, String> {
    let disk = TestDisk::new(format.make());
    if let Some(seed) = late {
        disk.answer_late(seed);
    }
    let mut player = Player::new(disk.clone(), limits, Model::fresh(format.largest_file()))?;
    disk.record();
    let mut history = History::default();
    history.push(Moment { place: 0, model: player.model.clone(), synced: true });
    while let Some(operation) = next(&player.model) {
        for operation in one_by_one(operation) {
            player.model.now = Some(disk.pass_a_second());
            let outcome = player.mounted.apply(&operation);
            if matches!(outcome, Outcome::NoRoom(_)) {
                return Err(format!("{operation:?}: there should be room"));
            }
            let outcome = follow(&mut player.model, &operation, outcome)?;
            let synced = outcome == Outcome::Done && matches!(operation, Operation::Sync | Operation::Remount);
            history.push(Moment { place: disk.mark(), model: player.model.clone(), synced });
        }
    }
    disk.forget_tasks();
    Ok(Story { recording: disk.take_recording(), history, limits })
}

fn one_by_one(operation: Operation) -> Vec<Operation> {
    let path =
        |folder: &Path, number, name_bytes| below(folder, crate::adversary::operation::many_name(number, name_bytes));
    match operation {
        Operation::CreateMany { folder, first, count, name_bytes } => (first..first + count)
            .map(|number| {
                let path = path(&folder, number, name_bytes);
                Operation::Create { path, permissions: 0o644, owner: 0 }
            })
            .collect(),
        Operation::UnlinkMany { folder, first, count, name_bytes } => {
            (first..first + count).map(|number| Operation::Unlink { path: path(&folder, number, name_bytes) }).collect()
        }
        other => vec![other],
    }
}

impl Story {
    /// Records random operations.
    pub fn at_random(format: &Format, life: Life, seed: u64, operations: usize) -> Result<Story, String> {
        let mut generator = Generator::new(seed, life);
        let mut left = operations;
        let mut next = |model: &Model| {
            left = left.checked_sub(1)?;
            Some(generator.next(model, &Path::new()))
        };
        let limits = if seed.is_multiple_of(2) { CacheLimits::default() } else { small_caches() };
        let late = (seed % 3 == 1).then_some(seed);
        record(format, limits, late, &mut next)
    }

    /// Crashes at every moment: calls `each` with a number from 1 on, the moment, and the content of the disk, for
    /// none, all and `subsets` times two subsets of the unflushed writes. Returns the number of crashes.
    pub fn for_each_crash(
        &self,
        subsets: u64,
        mut each: impl FnMut(usize, usize, &Image) -> Result<(), String>,
    ) -> Result<usize, String> {
        let mut crashes = self.recording.crashes();
        let mut count = 0;
        for moment in self.recording.moments() {
            let mut lucks = vec![Luck::All];
            crashes.at(moment, Luck::None);
            if crashes.uncertain() > 0 {
                lucks.push(Luck::None);
                let seeds = (0..subsets).map(|subset| moment as u64 * 16 + subset);
                lucks.extend(seeds.flat_map(|seed| [Luck::Writes(seed), Luck::Sectors(seed)]));
            }
            for luck in lucks {
                count += 1;
                each(count, moment, &crashes.at(moment, luck))
                    .map_err(|error| format!("crash at {moment} of {}, {luck:?}: {error}", self.recording.len()))?;
            }
        }
        Ok(count)
    }

    fn crash(&self, effort: Effort) -> Result<usize, String> {
        self.for_each_crash(effort.subsets, |count, moment, image| {
            let deep = (count % effort.e2fsck_once_in == 0, count % effort.again_once_in == 0);
            self.check(moment, image, deep.0, deep.1)
        })
    }

    fn check(&self, moment: usize, image: &Image, e2fsck: bool, again: bool) -> Result<(), String> {
        let disk = TestDisk::new(image.clone());
        if again {
            disk.record();
        }
        let repaired = self.check_mounted(moment, &disk)?;
        if e2fsck {
            self.check_read_only(moment, image).map_err(|error| format!("on a disk that is only read: {error}"))?;
            let preened = tools::preen(image)?;
            let mounted = mount(&TestDisk::new(preened), self.limits)?;
            self.history.check(moment, &mounted).map_err(|error| format!("after e2fsck -p: {error}"))?;
            tools::check_clean(&repaired).map_err(|error| format!("after mounting and unmounting: {error}"))?;
        }
        if again { self.crash_again(moment, &disk.take_recording()) } else { Ok(()) }
    }

    fn check_mounted(&self, moment: usize, disk: &TestDisk) -> Result<Image, String> {
        let mounted = mount(disk, self.limits)?;
        if let Some(reason) = mounted.volume().read_only_reason() {
            return Err(format!("mounted to be read only: {reason}"));
        }
        self.history.check(moment, &mounted)?;
        let disk = mounted.unmount().map_err(|error| format!("unmounting: {error:?}"))?;
        Ok(disk.image())
    }

    /// A read-only disk has the same content, though it cannot be repaired.
    fn check_read_only(&self, moment: usize, image: &Image) -> Result<(), String> {
        let disk = TestDisk::new(image.clone());
        disk.set_read_only();
        let mounted = mount(&disk, self.limits)?;
        self.history.check(moment, &mounted)?;
        mounted.unmount().map(drop).map_err(|error| format!("unmounting: {error:?}"))
    }

    /// At some moments, the mount that recovers from the first crash crashes as well.
    fn crash_again(&self, moment: usize, recording: &Recording) -> Result<(), String> {
        let mut crashes = recording.crashes();
        for second in recording.moments().step_by(1 + recording.len() / 12) {
            let image = crashes.at(second, Luck::Sectors(second as u64));
            self.check_mounted(moment, &TestDisk::new(image))
                .map_err(|error| format!("crash again at {second} of {}: {error}", recording.len()))?;
        }
        Ok(())
    }
}

pub fn mount(disk: &TestDisk, limits: CacheLimits) -> Result<Mounted, String> {
    Mounted::mount(disk.clone(), limits).map_err(|error| format!("mounting: {error:?}"))
}

fn crash_at_random(formats: &[Format], seeds: std::ops::Range<u64>, operations: usize, effort: Effort) {
    if !tools::are_there() {
        return;
    }
    for format in formats {
        for seed in seeds.clone() {
            let story = Story::at_random(format, QUIET_LIFE, seed, operations);
            match story.and_then(|story| story.crash(effort)) {
                Ok(count) => println!("{count} crashes of {format:?}, seed {seed}"),
                Err(error) => panic!("{format:?}, seed {seed}: {error}"),
            }
        }
    }
}

#[test]
fn crashes_at_random_lose_nothing() {
    crash_at_random(&SMALL[..3], 0..2, 60, SHORT);
}

#[test]
fn crashes_of_large_blocks_and_many_groups_lose_nothing() {
    crash_at_random(&SMALL[3..], 0..2, 60, SHORT);
}

#[test]
#[ignore = "takes minutes"]
fn crashes_at_random_lose_nothing_for_long() {
    crash_at_random(&SMALL, 100..103, 250, LONG);
}

fn name(text: &str) -> Path {
    text.split('/').map(|name| name.as_bytes().to_vec()).collect()
}

fn create(path: &str) -> Operation {
    Operation::Create { path: name(path), permissions: 0o644, owner: 0 }
}

fn folder(path: &str) -> Operation {
    Operation::MakeFolder { path: name(path), permissions: 0o755 }
}

fn open(path: &str, slot: usize) -> Operation {
    Operation::Open { path: name(path), slot }
}

fn rename(from: &str, to: &str) -> Operation {
    Operation::Rename { from: name(from), to: name(to) }
}

fn write(slot: usize, offset: u64, bytes: usize) -> Operation {
    Operation::Write { slot, offset, bytes, seed: offset + bytes as u64 }
}

/// Typical operations on files that matter.
fn scripts() -> Vec<(&'static str, Vec<Operation>)> {
    let unlink = |path: &str| Operation::Unlink { path: name(path) };
    let many = |first, count| Operation::CreateMany { folder: name("d"), first, count, name_bytes: 200 };
    vec![
        (
            "saving a file by writing a new one and renaming it over the old one",
            vec![
                create("text"),
                open("text", 0),
                write(0, 0, 9000),
                Operation::Sync,
                create("text.new"),
                open("text.new", 1),
                write(1, 0, 12_000),
                Operation::Sync,
                rename("text.new", "text"),
                Operation::Sync,
                create("text.new"),
                open("text.new", 2),
                write(2, 0, 5000),
                rename("text.new", "text"),
            ],
        ),
        (
            "moving folders about",
            vec![
                folder("a"),
                folder("a/b"),
                folder("a/b/c"),
                folder("x"),
                create("a/b/c/f"),
                Operation::Sync,
                rename("a/b", "x/b"),
                rename("x", "a/y"),
                Operation::Sync,
                rename("a/y/b/c", "c"),
                rename("c", "a/y/b/c"),
            ],
        ),
        (
            "cutting and removing large files, open ones too",
            vec![
                create("large"),
                open("large", 0),
                write(0, 0, 700_000),
                create("open"),
                open("open", 1),
                write(1, 0, 400_000),
                Operation::Sync,
                Operation::SetSize { slot: 0, size: 300_000 },
                unlink("open"),
                Operation::Sync,
                write(1, 100_000, 50_000),
                Operation::SetSize { slot: 0, size: 10 },
                write(0, 600_000, 20_000),
                Operation::Close { slot: 1 },
                create("next"),
                open("next", 2),
                write(2, 0, 300_000),
                Operation::Sync,
                unlink("large"),
                Operation::Close { slot: 0 },
            ],
        ),
        (
            "a folder that grows an index and shrinks",
            vec![
                folder("d"),
                many(0, 40),
                Operation::Sync,
                many(40, 30),
                Operation::UnlinkMany { folder: name("d"), first: 10, count: 35, name_bytes: 200 },
                Operation::Sync,
                many(10, 20),
            ],
        ),
        (
            "overwriting, with room used again at once",
            vec![
                create("a"),
                open("a", 0),
                write(0, 0, 60_000),
                Operation::Sync,
                Operation::SetSize { slot: 0, size: 0 },
                create("b"),
                open("b", 1),
                write(1, 0, 60_000),
                write(0, 0, 30_000),
                Operation::Sync,
                unlink("b"),
                Operation::Close { slot: 1 },
                folder("in its place"),
                create("in its place/c"),
                write(0, 10_000, 9000),
                Operation::Remount,
                open("a", 0),
                write(0, 25_000, 20_000),
            ],
        ),
    ]
}

fn crash_scripts(formats: &[Format], effort: Effort) {
    if !tools::are_there() {
        return;
    }
    for format in formats {
        for (what, script) in scripts() {
            for late in [None, Some(1)] {
                let mut operations = script.clone().into_iter();
                let story = record(format, CacheLimits::default(), late, &mut |_| operations.next());
                match story.and_then(|story| story.crash(effort)) {
                    Ok(count) => println!("{count} crashes of {what}, {format:?}"),
                    Err(error) => panic!("{what}, {format:?}: {error}"),
                }
            }
        }
    }
}

#[test]
fn crashes_of_common_tasks_lose_nothing() {
    crash_scripts(&SMALL[..1], SHORT);
}

#[test]
#[ignore = "takes minutes"]
fn crashes_of_common_tasks_lose_nothing_for_long() {
    crash_scripts(&SMALL, LONG);
}

//! Power loss with any subset of the writes since the last flush: afterwards the volume has the state of the last
//! commit or of the active one, according to our own replay and to e2fsck.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use super::disk::{Act, RecordingDisk, fsck};
use super::open;
use crate::check::{CheckOptions, Mode, Outcome};
use crate::error::Error;
use crate::format::{read_u16, read_u32, superblock, write_u32};
use crate::make::{Attributes, File, Folder, ImageOptions, Node, make_image};
use crate::source::complete;
use crate::store::Store;
use crate::store::tasks::each;

/// Inodes of files that the tests grow and truncate; `lost+found` is 11.
const FILES: core::ops::Range<u32> = 12..32;
/// Content of each file: the version number in all its blocks, and their count.
type State = BTreeMap<u32, (u32, u32)>;

/// A volume with empty files.
pub(super) fn image_with_files(block_bytes: u32, volume_bytes: u64) -> Vec<u8> {
    let attributes = Attributes::readable(1);
    let file = || Node::File(File { attributes, size: 0, extents: BTreeMap::new() });
    let entries = FILES.map(|number| (format!("file-{number}").into_bytes(), file())).collect();
    let folder = Folder { attributes: Attributes::searchable(1), entries };
    let options = ImageOptions { block_bytes, volume_bytes, inodes: None, label: [0; 16], uuid: [7; 16], made: 1 };
    let mut image = Vec::new();
    let built = make_image(&options, &folder, &mut image).unwrap();
    image.resize(built.volume_bytes as usize, 0);
    image
}

pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Replaces a file's content: frees its blocks, allocates others, fills them. With direct blocks only.
pub(super) async fn replace(store: &Store<RecordingDisk>, number: u32, version: u32, count: u32) -> Result<(), Error> {
    let block_bytes = store.block_bytes();
    let change = store.begin_for(60, count).await?;
    let (home, start) = store.allocator().inode_place(number).await?;
    let former = store.read_block(home, |bytes| numbers(&bytes[start..])).await?;
    for block in former.into_iter().filter(|&block| block != 0) {
        store.allocator().free_blocks(&change, block, 1).await?;
    }
    let mut blocks: Vec<u32> = Vec::new();
    while (blocks.len() as u32) < count {
        let goal = blocks.last().map_or(store.geometry().group_first(number % 2), |last| last + 1);
        let (first, got) = store.allocator().allocate_blocks(&change, goal, count - blocks.len() as u32).await?;
        store.write_data(first, 0, &content(version, got as usize * block_bytes), true).await?;
        blocks.extend(first..first + got);
    }
    let store_inode = |bytes: &mut [u8]| {
        let inode = &mut bytes[start..];
        write_u32(inode, 4, count * block_bytes as u32);
        write_u32(inode, 28, count * (block_bytes as u32 / 512));
        for index in 0..12 {
            write_u32(inode, 40 + index * 4, blocks.get(index).copied().unwrap_or(0));
        }
    };
    store.edit(&change, home, store_inode).await
}

fn content(version: u32, bytes: usize) -> Vec<u8> {
    // Some blocks look like journal metadata.
    let word = if version.is_multiple_of(5) { 0xc03b_3998u32.to_be_bytes() } else { version.to_le_bytes() };
    (0..bytes).map(|index| if index % 8 < 4 { word[index % 4] } else { version.to_le_bytes()[index % 4] }).collect()
}

fn numbers(inode: &[u8]) -> Vec<u32> {
    (0..12).map(|index| read_u32(inode, 40 + index * 4)).collect()
}

/// Contents of the files. Panics if a file's blocks are not all of one version.
pub(super) fn state(store: &Store<RecordingDisk>) -> State {
    let block_bytes = store.block_bytes();
    FILES
        .map(|number| {
            let (home, start) = complete(store.allocator().inode_place(number)).unwrap();
            let look = |bytes: &[u8]| (numbers(&bytes[start..]), read_u32(bytes, start + 4));
            let (blocks, size) = complete(store.read_block(home, look)).unwrap();
            let count = size / block_bytes as u32;
            let mut version = 0;
            for &block in &blocks[..count as usize] {
                let mut bytes = vec![0; block_bytes];
                complete(store.read_data(block, 0, &mut bytes)).unwrap();
                version = read_u32(&bytes, 4);
                assert!(bytes == content(version, block_bytes), "block {block} of inode {number}");
            }
            (number, (version, count))
        })
        .collect()
}

/// Runs several transactions of random changes, marking each committed state.
fn run(disk: &RecordingDisk, seed: u64) -> Vec<State> {
    let mut random = Random(seed);
    let store = open(disk);
    let mut states = vec![state(&store)];
    disk.record();
    let (mut model, mut version) = (states[0].clone(), 0);
    for transaction in 1..=6 {
        for _ in 0..random.below(12) {
            let (number, count) = (FILES.start + random.below(20) as u32, random.below(13) as u32);
            version += 1;
            complete(replace(&store, number, version, count)).unwrap();
            model.insert(number, (if count == 0 { 0 } else { version }, count));
        }
        states.push(model.clone());
        complete(store.commit()).unwrap();
        disk.mark(transaction);
    }
    assert_eq!(state(&store), model);
    complete(store.unmount()).unwrap();
    disk.mark(7);
    states.push(model);
    states
}

/// The disk after a crash following this many acts: of the writes since the last flush, those that the filter accepts.
fn crashed(image: &[u8], acts: &[Act], mut has: impl FnMut() -> bool) -> (Vec<u8>, u64) {
    let flushes = acts.iter().filter_map(|act| if let Act::Flush(before) = act { Some(*before) } else { None });
    let flushed = flushes.max().unwrap_or(0);
    let (mut bytes, mut mark) = (image.to_vec(), 0);
    for (index, act) in acts.iter().enumerate() {
        match act {
            Act::Write(offset, written) if index < flushed || has() => {
                bytes[*offset as usize..][..written.len()].copy_from_slice(written);
            }
            Act::Mark(number) => mark = *number,
            _ => {}
        }
    }
    (bytes, mark)
}

fn check(bytes: Vec<u8>, mark: u64, states: &[State], with_fsck: bool) {
    let allowed = [&states[mark as usize], states.get(mark as usize + 1).unwrap_or(&states[mark as usize])];
    if with_fsck {
        let repaired = fsck(&bytes, "-fp", &[0, 1]);
        // Without `-f`, e2fsck only replays the journal.
        for repaired in [repaired, fsck(&bytes, "-p", &[0, 1])] {
            fsck(&repaired, "-fn", &[0]);
            let found = state(&open(&RecordingDisk::new(repaired)));
            assert!(allowed.contains(&&found), "after e2fsck, mark {mark}");
        }
    }
    // In memory, if the disk is read-only.
    let disk = RecordingDisk::new(bytes.clone());
    disk.set_read_only();
    let in_memory = state(&open(&disk));
    let disk = RecordingDisk::new(bytes);
    let store = open(&disk);
    assert_eq!(store.read_only_reason(), None);
    let found = state(&store);
    assert_eq!(found, in_memory);
    assert!(allowed.contains(&&found), "mark {mark}: {found:?} is none of {allowed:?}");
    if with_fsck {
        complete(replace(&store, FILES.start, 999, 3)).unwrap();
        complete(store.unmount()).unwrap();
        fsck(&disk.bytes(), "-fn", &[0]);
    }
}

fn crash_everywhere(seed: u64, image: &[u8], disk: &RecordingDisk, states: &[State]) {
    fsck(&disk.bytes(), "-fn", &[0]);
    let acts = disk.acts();
    let mut random = Random(seed);
    for end in 0..=acts.len() {
        let with_fsck = random.below(120) == 0;
        let (bytes, mark) = crashed(image, &acts[..end], || true);
        check(bytes, mark, states, with_fsck);
        let share = random.below(9) + 1;
        let (bytes, mark) = crashed(image, &acts[..end], || random.below(10) < share);
        check(bytes, mark, states, with_fsck);
    }
}

/// Found by simulation: `--workload ext2 --seed 21 --processors 8 --exactly cut:52`. The superblock that names a new
/// journal was durable, and the journal's inode was not; the check took the journal for damaged.
#[test]
fn the_check_repairs_a_volume_whose_new_journal_has_no_inode_yet() {
    let image = image_with_files(1024, 16 << 20);
    let disk = RecordingDisk::new(image.clone());
    let states = run(&disk, 4);
    let acts = disk.acts();
    let mut lost = 0;
    for end in 0..acts.len() {
        let (bytes, mark) = crashed(&image, &acts[..end], || false);
        let is_lost = has_journal(&bytes) && journal_inode(&bytes).iter().all(|&byte| byte == 0);
        lost += usize::from(is_lost);
        if !is_lost {
            continue;
        }
        let disk = RecordingDisk::new(bytes.clone());
        let options = CheckOptions { mode: Mode::Preen, memory_bytes: 64 << 20 };
        let mut findings = Vec::new();
        let summary = complete(crate::check::check(&disk, &options, &mut |finding| findings.push(finding.clone())));
        assert_eq!(summary.expect("a check").outcome, Outcome::Repaired, "{findings:?}");
        check(disk.bytes(), mark, &states, true);
    }
    assert!(lost > 0);
}

/// Whether the superblock of a volume with blocks of 1 KiB names a journal.
fn has_journal(bytes: &[u8]) -> bool {
    read_u32(bytes, 1024 + superblock::field::JOURNAL_INODE) == 8
}

/// The inode of its journal.
fn journal_inode(bytes: &[u8]) -> &[u8] {
    let table = read_u32(bytes, 2048 + 8) as usize * 1024;
    let inode_bytes = usize::from(read_u16(bytes, 1024 + 88));
    &bytes[table + 7 * inode_bytes..][..inode_bytes]
}

#[test]
fn every_crash_leaves_a_committed_state() {
    for (block_bytes, volume_bytes, seed) in [(1024, 3 << 20, 1), (1024, 16 << 20, 2), (4096, 9 << 20, 3)] {
        let image = image_with_files(block_bytes, volume_bytes);
        let disk = RecordingDisk::new(image.clone());
        let states = run(&disk, seed);
        crash_everywhere(seed, &image, &disk, &states);
    }
}

/// Changes by several concurrent tasks during commits. A task's changes are sequential, so that a commit has for each
/// task's files one of their states: at least the last one before it started, at most the one when it ended.
async fn change_beside_commits(store: &Store<RecordingDisk>, seed: u64) -> Vec<Vec<State>> {
    let histories: Vec<RefCell<Vec<State>>> = (0..TASKS).map(|_| RefCell::default()).collect();
    let work = |task: u32| {
        let (store, history) = (store, &histories[task as usize]);
        async move {
            let mut random = Random(seed + u64::from(task));
            let mut model = State::new();
            history.borrow_mut().push(model.clone());
            for round in 1..30 {
                let number = FILES.start + task + TASKS * random.below(u64::from(20 / TASKS)) as u32;
                let (version, count) = (round * TASKS + task, random.below(13) as u32);
                model.insert(number, (if count == 0 { 0 } else { version }, count));
                history.borrow_mut().push(model.clone());
                replace(store, number, version, count).await?;
            }
            Ok::<(), Error>(())
        }
    };
    let mut tasks = (0..TASKS).map(work);
    let mut is_working = true;
    let commits = async {
        for mark in 1..12 {
            let done: Vec<usize> = histories.iter().map(|history| history.borrow().len()).collect();
            store.commit().await?;
            let sum = done.iter().enumerate().map(|(task, done)| (*done as u64) << (task * 8));
            store.source().mark(sum.sum::<u64>() | mark << 56);
        }
        Ok::<(), Error>(())
    };
    let all = async {
        each(TASKS as usize, || tasks.next()).await.unwrap();
        is_working = false;
    };
    join(all, async { commits.await.unwrap() }).await;
    assert!(!is_working);
    histories.into_iter().map(RefCell::into_inner).collect()
}

async fn join(first: impl Future<Output = ()>, second: impl Future<Output = ()>) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut first_done, mut second_done) = (false, false);
    poll_fn(|context| {
        first_done = first_done || first.as_mut().poll(context).is_ready();
        second_done = second_done || second.as_mut().poll(context).is_ready();
        if first_done && second_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Concurrent tasks; each changes every fourth file.
const TASKS: u32 = 4;

#[test]
fn changes_beside_commits_are_whole_after_every_crash() {
    for seed in 1..4 {
        let image = image_with_files(1024, 3 << 20);
        let disk = RecordingDisk::new(image.clone());
        let store = open(&disk);
        disk.record();
        disk.slow_down(seed);
        let histories = disk.run(change_beside_commits(&store, seed));
        disk.run(store.unmount()).unwrap();
        fsck(&disk.bytes(), "-fn", &[0]);
        let acts = disk.acts();
        let mut random = Random(seed);
        for end in 0..=acts.len() {
            let (bytes, mark) = crashed(&image, &acts[..end], || random.below(2) == 0);
            if random.below(150) == 0 {
                fsck(&fsck(&bytes, "-fp", &[0, 1]), "-fn", &[0]);
            }
            let found = state(&open(&RecordingDisk::new(bytes)));
            for (task, history) in (0..TASKS).zip(&histories) {
                let own = found.iter().filter(|(number, _)| (**number - FILES.start) % TASKS == task);
                let own: State =
                    own.map(|(number, state)| (*number, *state)).filter(|(_, state)| state.1 > 0).collect();
                // The change that was active when the commit started may or may not be in it.
                let least = ((mark >> (task * 8) & 0xff) as usize).saturating_sub(2);
                let is_own = |state: &State| state.iter().filter(|(_, state)| state.1 > 0).eq(own.iter());
                assert!(history[least..].iter().any(is_own), "task {task}, mark {mark:#x}: {own:?}");
            }
        }
    }
}

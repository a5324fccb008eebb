//! Requests that fail, one at a time; and damaged metadata. Synced data stays, errors are reported to the caller, and
//! there are no panics, hangs or stray writes.

use std::sync::mpsc;
use std::time::Duration;

use ext2::CacheLimits;

use crate::adversary::disk::{Fault, Request, TestDisk};
use crate::adversary::generator::{Generator, Life};
use crate::adversary::image::Image;
use crate::adversary::model::{Kind, Model};
use crate::adversary::noise::{Random, noise};
use crate::adversary::operation::{Operation, Outcome, Path};
use crate::adversary::player::Player;
use crate::adversary::promise::{History, Moment};
use crate::adversary::tools::{self, FORMATS, Format};
use crate::adversary::volume::Mounted;

const FORMAT: Format = Format { mebibytes: 8, ..FORMATS[0] };
const OPERATIONS: usize = 50;
/// Timeout of all operations on a damaged volume.
const TIMEOUT: Duration = Duration::from_secs(60);

const LIFE: Life = Life {
    content_bytes: 1 << 20,
    large_writes: 8,
    large_bytes: 200 << 10,
    crowds: true,
    syncs: 10,
    remounts: 0,
    largest_file: 4 << 20,
    impossible: 0,
};

/// Aborts the process on timeout: a busy loop cannot be stopped otherwise.
struct Watchdog {
    _alive: mpsc::Sender<()>,
}

impl Watchdog {
    fn over(what: String) -> Watchdog {
        let (alive, dead) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            if dead.recv_timeout(TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("no end of {what}");
                std::process::abort();
            }
        });
        Watchdog { _alive: alive }
    }
}

fn operations(seed: u64) -> Vec<Operation> {
    let (mut generator, mut model) = (Generator::new(seed, LIFE), Model::fresh(FORMAT.largest_file()));
    let draw = |_| {
        let operation = generator.next(&model, &Path::new());
        model.apply(&operation);
        operation
    };
    (0..OPERATIONS).map(draw).collect()
}

/// Plays until an operation fails, and checks the disk then. Returns whether the fault was triggered.
fn play(image: &Image, operations: &[Operation], fault: Fault) -> Result<bool, String> {
    let disk = TestDisk::new(image.clone());
    disk.record();
    disk.set_fault(Some(fault));
    let fresh = Model::fresh(FORMAT.largest_file());
    let mut history = History::default();
    history.push(Moment { place: 0, model: fresh.clone(), synced: true });
    let Ok(mut player) = Player::new(disk.clone(), CacheLimits::default(), fresh) else {
        return if disk.struck() > 0 { after(&disk, &history).map(|()| true) } else { Err("mounting fails".into()) };
    };
    let mut broken = None;
    for (number, operation) in operations.iter().enumerate() {
        let mut model = player.model.clone();
        match player.step(operation) {
            Ok(outcome) => {
                let synced = *operation == Operation::Sync && outcome == Outcome::Done;
                history.push(Moment { place: disk.mark(), model: player.model.clone(), synced });
            }
            // It may have been done completely, partially or not at all.
            Err(error) if error.contains("BROKEN") && disk.struck() > 0 => {
                model.apply(operation);
                history.push(Moment { place: disk.mark(), model, synced: false });
                broken = Some(number);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let struck = disk.struck() > 0;
    after(&disk, &history).map_err(|error| format!("broken at {broken:?}: {error}"))?;
    if let Some(broken) = broken {
        poke(player, &operations[broken..], fault)?;
    }
    Ok(struck)
}

/// The machine ends there; the disk works again.
fn after(disk: &TestDisk, history: &History) -> Result<(), String> {
    let image = disk.image();
    let mounted = Mounted::mount(TestDisk::new(image), CacheLimits::default());
    let mounted = mounted.map_err(|error| format!("mounting after the fault: {error:?}"))?;
    history.check(disk.mark(), &mounted)?;
    mounted.unmount().map(drop).map_err(|error| format!("unmounting after the fault: {error:?}"))
}

/// Plays the remaining operations on the volume, ignoring errors. After a single failure of memory or reading, the
/// volume is intact.
fn poke(player: Player, rest: &[Operation], fault: Fault) -> Result<(), String> {
    let disk = player.mounted.disk().clone();
    for operation in rest {
        player.mounted.apply(operation);
    }
    let passes = !fault.lasting && matches!(fault.request, Request::Read | Request::Allocate);
    disk.set_fault(None);
    let create = Operation::Create { path: vec![b"after the fault".to_vec()], permissions: 0o600, owner: 0 };
    let created = [player.mounted.apply(&create), player.mounted.apply(&Operation::Sync)];
    if passes && created != [Outcome::Done, Outcome::Done] {
        return Err(format!("the fault has passed, but: {created:?}"));
    }
    // It may be refused if metadata could not be written.
    let unmounted = player.mounted.unmount();
    disk.forget_tasks();
    match unmounted {
        Ok(_) if passes => tools::check_clean(&disk.image()),
        _ => tools::preen(&disk.image()).map(drop),
    }
}

fn fail_each(request: Request, seeds: std::ops::Range<u64>, step: usize) {
    if !tools::are_there() {
        return;
    }
    let image = FORMAT.make();
    for seed in seeds {
        let operations = operations(seed);
        for lasting in [false, true] {
            for after in (seed..).step_by(step) {
                let fault = Fault { request, after, lasting };
                let _watchdog = Watchdog::over(format!("seed {seed}, {fault:?}"));
                match play(&image, &operations, fault) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => panic!("seed {seed}, {fault:?}: {error}"),
                }
            }
        }
    }
}

macro_rules! of_each_request {
    ($($name:ident: $request:ident, $step:literal;)*) => {
        $(
            mod $name {
                use super::Request;

                #[test]
                fn each_is_told_and_nothing_synced_is_lost() {
                    super::fail_each(Request::$request, 0..1, $step);
                }

                #[test]
                #[ignore = "takes minutes"]
                fn each_is_told_and_nothing_synced_is_lost_for_long() {
                    super::fail_each(Request::$request, 100..110, 1);
                }
            }
        )*
    };
}

of_each_request! {
    failing_reads: Read, 1;
    failing_writes: Write, 2;
    failing_flushes: Flush, 1;
    no_memory: Allocate, 2;
}

/// A volume with varied content, and its model.
fn lived_in() -> (Image, Model) {
    let format = Format { mebibytes: 5, ..FORMATS[0] };
    let model = Model::fresh(format.largest_file());
    let mut player = Player::new(TestDisk::new(format.make()), CacheLimits::default(), model).expect("a sound volume");
    let life = Life { content_bytes: 2 << 20, largest_file: 1 << 30, remounts: 0, ..LIFE };
    let mut generator = Generator::new(7, life);
    for _ in 0..600 {
        let operation = generator.next(&player.model, &Path::new());
        player.step(&operation).expect("the model's outcome");
    }
    let mut model = player.model.clone();
    model.apply(&Operation::Remount);
    (player.end().expect("a sound volume"), model)
}

/// Blocks with other content than a file's noise, which has no zeros.
fn metadata_blocks(image: &Image) -> Vec<u64> {
    let bytes = image.to_bytes();
    let blocks = bytes.chunks(1024).enumerate();
    let is_metadata = |block: &[u8]| block.contains(&0) && block.iter().any(|byte| *byte != 0);
    blocks.filter(|(_, block)| is_metadata(block)).map(|(index, _)| index as u64 * 1024).collect()
}

/// Overwrites random metadata bytes, preferably with plausible values.
fn damage(random: &mut Random, image: &mut Image, blocks: &[u64]) {
    for _ in 0..1 + random.below(8) {
        let Some(block) = random.pick(blocks).copied() else { return };
        let at = block + random.below(1024);
        let mut byte = [0];
        image.read(at, &mut byte);
        byte[0] = match random.below(4) {
            0 => byte[0] ^ 1 << random.below(8),
            1 => 0,
            2 => 0xff,
            _ => random.next() as u8,
        };
        image.write(at, &byte);
    }
}

/// Tries everything on a damaged volume. It must terminate with any result.
fn live_with_damage(image: Image, model: &Model, seed: u64, operations: usize) {
    let _watchdog = Watchdog::over(format!("damage of seed {seed}"));
    let disk = TestDisk::new(image);
    if seed.is_multiple_of(2) {
        disk.answer_late(seed);
    }
    let Ok(mounted) = Mounted::mount(disk.clone(), CacheLimits::default()) else { return };
    let mut model = model.clone();
    let mut generator = Generator::new(seed, LIFE);
    for _ in 0..operations {
        let operation = generator.next(&model, &Path::new());
        let outcome = mounted.apply(&operation);
        assert!(!format!("{outcome:?}").is_empty());
        model.apply(&operation);
    }
    // Differences are expected after damage; this only reads everything.
    let _ = mounted.compare(&model);
    let _ = mounted.unmount();
    disk.forget_tasks();
}

fn damage_at_random(seeds: std::ops::Range<u64>, operations: usize) {
    if !tools::are_there() {
        return;
    }
    let (image, model) = lived_in();
    let blocks = metadata_blocks(&image);
    for seed in seeds {
        let mut damaged = image.clone();
        damage(&mut Random::new(seed), &mut damaged, &blocks);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            live_with_damage(damaged, &model, seed, operations);
        }));
        assert!(result.is_ok(), "damage of seed {seed}");
    }
}

#[test]
fn damaged_metadata_is_survived() {
    damage_at_random(0..1500, 30);
}

#[test]
#[ignore = "takes minutes"]
fn damaged_metadata_is_survived_for_long() {
    damage_at_random(10_000..60_000, 60);
}

/// Content is found by inode number, whatever a damaged directory calls it.
#[test]
fn damaged_folders_cost_no_other_file_its_content() {
    if !tools::are_there() {
        return;
    }
    let (image, model) = lived_in();
    let contents = contents(&image, &model);
    let is_folder = |at: &u64| {
        let mut start = [0; 9];
        image.read(*at, &mut start);
        (start[4], start[6], start[8]) == (12, 1, b'.')
    };
    let blocks: Vec<u64> = metadata_blocks(&image).into_iter().filter(is_folder).collect();
    let folders: Vec<Path> =
        model.walk().into_iter().filter(|(_, node)| model.entries(*node).is_some()).map(|(path, _)| path).collect();
    assert!(blocks.len() > 3 && folders.len() > 3 && contents.len() > 3, "{blocks:?} {folders:?}");
    for seed in 0..150 {
        let (mut damaged, mut random) = (image.clone(), Random::new(seed));
        // After `.` and `..`, which refer to other folders.
        let block = random.pick(&blocks).copied().unwrap_or(0);
        damaged.write(block + 28 + random.below(900), &noise(seed, 4));
        let disk = TestDisk::new(damaged);
        let Ok(mounted) = Mounted::mount(disk.clone(), CacheLimits::default()) else { continue };
        for number in 0..30 {
            let folder = random.pick(&folders).cloned().unwrap_or_default();
            let path = crate::adversary::model::below(&folder, format!("new-{number}").into_bytes());
            mounted.apply(&Operation::Create { path: path.clone(), permissions: 0o644, owner: 0 });
            mounted.apply(&Operation::Open { path: path.clone(), slot: 0 });
            mounted.apply(&Operation::Write { slot: 0, offset: 0, bytes: 20_000, seed });
            mounted.apply(&Operation::Close { slot: 0 });
            mounted
                .apply(&Operation::Rename { from: path, to: crate::adversary::model::below(&folder, b"new".to_vec()) });
        }
        mounted.apply(&Operation::Sync);
        for (number, content) in &contents {
            let found = disk.run(mounted.content(*number));
            assert!(found.as_ref() == Ok(content), "seed {seed}: the content of inode {number} has changed");
        }
        drop(mounted);
        disk.forget_tasks();
    }
}

/// Returns the content of all files, by inode number.
fn contents(image: &Image, model: &Model) -> Vec<(u32, Vec<u8>)> {
    let disk = TestDisk::new(image.clone());
    let mounted = Mounted::mount(disk.clone(), CacheLimits::default()).expect("a sound volume");
    let mut contents = Vec::new();
    for (path, node) in model.walk() {
        if let Kind::File(content) = &model.node(node).kind
            && content.size < 1 << 20
        {
            contents
                .push((disk.run(mounted.number(&path)).expect("it is there"), content.read(0, content.size as usize)));
        }
    }
    contents
}

//! Plays operations on a volume and on the model in parallel, and shrinks a failing sequence.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::time::{Duration, Instant};

use ext2::CacheLimits;

use crate::adversary::disk::TestDisk;
use crate::adversary::generator::{Generator, Life};
use crate::adversary::image::Image;
use crate::adversary::model::Model;
use crate::adversary::noise::noise;
use crate::adversary::operation::{Operation, Outcome, Path};
use crate::adversary::tools::{self, Format};
use crate::adversary::volume::Mounted;

/// Time limit of shrinking.
const SHORTENING: Duration = Duration::from_secs(60);

/// A volume beside its model.
pub struct Player {
    pub mounted: Mounted,
    pub model: Model,
}

impl Player {
    pub fn new(disk: TestDisk, limits: CacheLimits, model: Model) -> Result<Player, String> {
        let mounted = Mounted::mount(disk, limits).map_err(|error| format!("mounting: {error:?}"))?;
        if let Some(reason) = mounted.volume().read_only_reason() {
            return Err(format!("read only: {reason}"));
        }
        Ok(Player { mounted, model })
    }

    /// Applies an operation to both.
    pub fn step(&mut self, operation: &Operation) -> Result<Outcome, String> {
        self.model.now = Some(self.mounted.disk().pass_a_second());
        let outcome = self.mounted.apply(operation);
        follow(&mut self.model, operation, outcome)
    }

    /// Compares everything, unmounts, checks the image, and compares again after a mount.
    pub fn end(self) -> Result<Image, String> {
        self.mounted.compare(&self.model)?;
        let Player { mounted, mut model } = self;
        model.apply(&Operation::Remount);
        let disk = mounted.unmount().map_err(|error| format!("unmounting: {error:?}"))?;
        let image = disk.image();
        tools::check_clean(&image)?;
        let again = Mounted::mount(TestDisk::new(image.clone()), CacheLimits::default());
        let again = again.map_err(|error| format!("mounting again: {error:?}"))?;
        again.compare(&model).map_err(|error| format!("after mounting again: {error}"))?;
        again.unmount().map_err(|error| format!("unmounting again: {error:?}"))?;
        Ok(image)
    }
}

/// Applies to the model what was done on the volume.
pub fn follow(model: &mut Model, operation: &Operation, outcome: Outcome) -> Result<Outcome, String> {
    if let Outcome::NoRoom(done) = outcome {
        follow_in_part(model, operation, done);
        return Ok(outcome);
    }
    let expected = model.apply(operation);
    match (&outcome, &expected) {
        (Outcome::Facts(found), Outcome::Facts(expected)) => {
            crate::adversary::volume::same_facts(found, expected).map_err(|error| format!("{operation:?}: {error}"))?;
        }
        _ if outcome == expected => {}
        _ => return Err(format!("{operation:?}: {outcome:?} instead of {expected:?}")),
    }
    Ok(outcome)
}

/// Without room, only a part was done.
fn follow_in_part(model: &mut Model, operation: &Operation, done: usize) {
    match operation {
        Operation::Write { slot, offset, bytes, seed } if done > 0 => {
            let bytes = noise(*seed, *bytes);
            // Whether it fits was checked before.
            let _ = model.write(*slot, *offset, &bytes[..done]);
        }
        Operation::Append { slot, bytes, seed } if done > 0 => {
            let end = model.open_content(*slot).map_or(0, |content| content.size);
            let bytes = noise(*seed, *bytes);
            let _ = model.write(*slot, end, &bytes[..done]);
        }
        Operation::CreateMany { folder, first, name_bytes, .. } => {
            let (folder, first, count, name_bytes) = (folder.clone(), *first, done as u32, *name_bytes);
            model.apply(&Operation::CreateMany { folder, first, count, name_bytes });
        }
        _ => {}
    }
}

/// A workload, determined by a seed.
#[derive(Clone, Copy)]
pub struct Story {
    pub format: Format,
    pub limits: CacheLimits,
    pub life: Life,
    pub seed: u64,
    pub operations: usize,
    /// Operations between full comparisons.
    pub compare_every: usize,
    /// Whether the disk delays and reorders completions.
    pub late: bool,
}

impl Story {
    /// Plays the sequence; a failure is shrunk and shown.
    #[track_caller]
    pub fn play(&self) {
        let image = self.format.make();
        let mut played = Vec::new();
        let mut generator = Generator::new(self.seed, self.life);
        let told = catch_unwind(AssertUnwindSafe(|| {
            self.tell(&image, &mut |index, model| {
                (index < self.operations).then(|| {
                    let operation = generator.next(model, &Path::new());
                    played.push(operation.clone());
                    operation
                })
            })
        }));
        let Err(error) = told.unwrap_or_else(|panic| Err(words_of(&*panic))) else { return };
        eprintln!("seed {} goes wrong after {} operations: {error}", self.seed, played.len());
        let (shorter, error) = self.shorten(&image, played, error);
        let lines: Vec<String> = shorter.iter().map(|operation| format!("{operation:?}")).collect();
        panic!("{:?}, seed {}: {error}\nafter\n{}", self.format, self.seed, lines.join("\n"));
    }

    fn tell(&self, image: &Image, next: &mut dyn FnMut(usize, &Model) -> Option<Operation>) -> Result<(), String> {
        let disk = TestDisk::new(image.clone());
        if self.late {
            disk.answer_late(self.seed);
        }
        let mut player = Player::new(disk, self.limits, Model::fresh(self.format.largest_file()))?;
        let mut index = 0;
        while let Some(operation) = next(index, &player.model) {
            player.step(&operation)?;
            index += 1;
            if index.is_multiple_of(self.compare_every) {
                player.mounted.compare(&player.model)?;
            }
        }
        player.end().map(drop)
    }

    /// Removes operations that are not needed for the failure.
    fn shorten(&self, image: &Image, played: Vec<Operation>, error: String) -> (Vec<Operation>, String) {
        let fails = |operations: &[Operation]| {
            quietly(|| self.tell(image, &mut |index, _| operations.get(index).cloned())).err()
        };
        shorten(played, error, fails)
    }
}

/// Removes pieces, large ones first, as long as it still fails.
pub fn shorten<T: Clone>(
    mut all: Vec<T>,
    mut error: String,
    fails: impl Fn(&[T]) -> Option<String>,
) -> (Vec<T>, String) {
    let end = Instant::now() + SHORTENING;
    let mut piece = all.len().div_ceil(2);
    while piece > 0 {
        let mut start = 0;
        while start < all.len() && Instant::now() < end {
            let mut fewer = all.clone();
            drop(fewer.drain(start..(start + piece).min(all.len())));
            match fails(&fewer) {
                Some(found) => (all, error) = (fewer, found),
                None => start += piece,
            }
        }
        piece /= 2;
    }
    (all, error)
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs a closure, converting panics to errors without printing them.
pub fn quietly(something: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(something)).unwrap_or_else(|panic| Err(words_of(&*panic)));
    QUIET.set(false);
    result
}

pub fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_string()));
    format!("panic: {}", text.unwrap_or_default())
}

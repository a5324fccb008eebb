//! The same sequences on Linux's ext2: the same operations succeed, Linux reads volumes written here, and vice versa.

use ext2::CacheLimits;

use crate::adversary::disk::TestDisk;
use crate::adversary::generator::{Generator, Life};
use crate::adversary::linux::{LinuxMount, may_mount};
use crate::adversary::model::Model;
use crate::adversary::operation::{Operation, Outcome, Path};
use crate::adversary::player::Player;
use crate::adversary::tools::{self, FORMATS, Format};

const OPERATIONS: usize = 1200;
const MANY_OPERATIONS: usize = 100_000;

fn play(format: &Format, seed: u64, operations: usize) -> Result<(), String> {
    let image = format.make();
    let fresh = Model::fresh(format.largest_file());
    let mut here = Player::new(TestDisk::new(image.clone()), CacheLimits::default(), fresh.clone())?;
    let mut linux = LinuxMount::mount(&image)?;
    let mut linux_model = fresh;
    let life = Life { largest_file: format.largest_file(), ..Life::default() };
    let mut generator = Generator::new(seed, life);
    for number in 0..operations {
        let operation = generator.next(&here.model, &Path::new());
        let outcome = here.step(&operation).map_err(|error| format!("operation {number}: {error}"))?;
        if matches!(outcome, Outcome::NoRoom(_)) {
            return Err(format!("operation {number}: {operation:?}: there should be room"));
        }
        let expected = linux_model.apply(&operation);
        let found = linux.apply(&operation);
        same_outcome(&found, &expected)
            .map_err(|error| format!("operation {number}: Linux: {operation:?}: {error}"))?;
    }
    linux.compare(&linux_model)?;
    let (mut model, linux_image) = (here.model.clone(), linux.unmount());
    // Linux reads the volume written here, including all times.
    let made_here = here.end()?;
    model.apply(&Operation::Remount);
    let linux = LinuxMount::mount(&made_here)?;
    linux.compare(&model)?;
    tools::check_clean(&linux.unmount())?;
    // The volume written by Linux is read and changed here.
    linux_model.apply(&Operation::Remount);
    go_on(linux_image, linux_model, &mut generator, operations / 4)
}

fn go_on(
    image: crate::adversary::image::Image,
    model: Model,
    generator: &mut Generator,
    operations: usize,
) -> Result<(), String> {
    let as_left = Player::new(TestDisk::new(image.clone()), CacheLimits::default(), model.clone())?;
    as_left.mounted.compare(&as_left.model).map_err(|error| format!("what Linux made: {error}"))?;
    // In entries without kinds, Linux leaves the field undefined, which e2fsck reports as a fault.
    let image = if tools::check_clean(&image).is_ok() { image } else { tools::repair_all(&image)? };
    let mut here = Player::new(TestDisk::new(image), CacheLimits::default(), model)?;
    here.mounted.compare(&here.model).map_err(|error| format!("what Linux made, repaired: {error}"))?;
    for number in 0..operations {
        let operation = generator.next(&here.model, &Path::new());
        here.step(&operation).map_err(|error| format!("operation {number} on what Linux made: {error}"))?;
    }
    let mut model = here.model.clone();
    model.apply(&Operation::Remount);
    let image = here.end()?;
    LinuxMount::mount(&image)?.compare(&model)
}

#[track_caller]
fn play_or_fail(format: &Format, seed: u64, operations: usize) {
    if !may_mount() {
        return;
    }
    if let Err(error) = play(format, seed, operations) {
        panic!("{format:?}, seed {seed}: {error}");
    }
}

#[test]
fn linux_does_and_finds_the_same() {
    for format in &FORMATS {
        play_or_fail(format, 0, OPERATIONS);
    }
}

macro_rules! of_each_format_for_long {
    ($($name:ident: $format:literal,)*) => {
        $(
            #[test]
            #[ignore = "takes minutes"]
            fn $name() {
                play_or_fail(&FORMATS[$format], 100, MANY_OPERATIONS);
            }
        )*
    };
}

of_each_format_for_long! {
    linux_does_and_finds_the_same_for_long_in_blocks_of_1k: 0,
    linux_does_and_finds_the_same_for_long_in_blocks_of_1k_revision_0: 1,
    linux_does_and_finds_the_same_for_long_in_blocks_of_2k: 2,
    linux_does_and_finds_the_same_for_long_in_blocks_of_4k: 3,
    linux_does_and_finds_the_same_for_long_in_many_groups: 4,
    linux_does_and_finds_the_same_for_long_in_blocks_of_4k_revision_0: 5,
    linux_does_and_finds_the_same_for_long_with_a_journal: 6,
}

/// All other tests rely on the model.
#[test]
fn linux_does_what_the_model_does() {
    if !may_mount() {
        return;
    }
    for (seed, format) in FORMATS.iter().enumerate() {
        let mut model = Model::fresh(format.largest_file());
        let mut linux = LinuxMount::mount(&format.make()).expect("Linux mounts");
        let life = Life { largest_file: format.largest_file(), ..Life::default() };
        let mut generator = Generator::new(seed as u64, life);
        for number in 0..OPERATIONS {
            let operation = generator.next(&model, &Path::new());
            let expected = model.apply(&operation);
            let found = linux.apply(&operation);
            let same = same_outcome(&found, &expected);
            assert!(same.is_ok(), "{format:?}, operation {number}: {operation:?}: {same:?}");
        }
        assert_eq!(linux.compare(&model), Ok(()));
        // In entries without kinds, Linux leaves the field undefined, which e2fsck reports as a fault.
        let image = linux.unmount();
        let repaired = tools::check_clean(&image).or_else(|_| tools::repair_all(&image).map(drop));
        assert_eq!(repaired, Ok(()));
    }
}

/// Values unknown to the model are not compared.
fn same_outcome(found: &Outcome, expected: &Outcome) -> Result<(), String> {
    match (found, expected) {
        (Outcome::Facts(found), Outcome::Facts(expected)) => crate::adversary::volume::same_facts(found, expected),
        _ if found == expected => Ok(()),
        _ => Err(format!("{found:?} instead of {expected:?}")),
    }
}

//! Random operations on volumes of every format, compared with the model.

use ext2::CacheLimits;

use crate::adversary::generator::Life;
use crate::adversary::player::Story;
use crate::adversary::tools::{self, FORMATS, Format};
use crate::adversary::volume::small_caches;

const OPERATIONS: usize = 2500;
const MANY_OPERATIONS: usize = 100_000;

fn story(format: Format, seed: u64, operations: usize) -> Story {
    let life = Life { largest_file: format.largest_file(), ..Life::default() };
    // Every other seed uses minimal caches.
    let limits = if seed.is_multiple_of(2) { CacheLimits::default() } else { small_caches() };
    let compare_every = operations / 5;
    Story { format, limits, life, seed, operations, compare_every, late: seed % 4 == 1 }
}

fn play(format: usize, operations: usize, seeds: impl Iterator<Item = u64>) {
    if !tools::are_there() {
        return;
    }
    for seed in seeds {
        story(FORMATS[format], seed, operations).play();
    }
}

macro_rules! of_each_format {
    ($($name:ident: $format:literal,)*) => {
        $(
            mod $name {
                #[test]
                fn a_volume_does_what_the_model_does() {
                    super::play($format, super::OPERATIONS, 0..2);
                }

                #[test]
                #[ignore = "takes minutes"]
                fn a_volume_does_what_the_model_does_for_long() {
                    super::play($format, super::MANY_OPERATIONS, 100..104);
                }
            }
        )*
    };
}

of_each_format! {
    blocks_of_1k: 0,
    blocks_of_1k_revision_0: 1,
    blocks_of_2k: 2,
    blocks_of_4k: 3,
    many_groups: 4,
    blocks_of_4k_revision_0: 5,
    with_a_journal_of_its_own: 6,
}

/// A volume that is nearly always short of blocks or of inodes.
#[test]
fn a_full_volume_refuses_and_goes_on() {
    if !tools::are_there() {
        return;
    }
    let full = Format { mebibytes: 4, ..FORMATS[0] };
    let few_inodes = Format { arguments: &["-b", "1024", "-N", "80"], ..FORMATS[0] };
    for (format, content_bytes) in [(full, 20 << 20), (few_inodes, 8 << 20)] {
        for seed in 0..4 {
            let mut story = story(format, seed, 1500);
            story.life.content_bytes = content_bytes;
            story.life.large_writes = 4;
            story.play();
        }
    }
}

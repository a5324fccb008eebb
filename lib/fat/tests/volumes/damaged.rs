//! Damaged volumes in use: no panic, no endless loop, no write outside the requests' targets.

use proptest::prelude::*;

use crate::fuzzed;
use crate::trial::{KIB, fat12, fat32, trial};

fn damaged(good: &[u8], data_at: usize, damages: &[(u32, u8)]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for (at, value) in damages {
        let at = *at as usize;
        // The boot sector and the FAT, or the first folders.
        let place = if at.is_multiple_of(2) { at % data_at } else { data_at + at % (24 * KIB) };
        let last = bytes.len() - 1;
        bytes[place.min(last)] = *value;
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_fat12_harms_nobody(damages in proptest::collection::vec((any::<u32>(), any::<u8>()), 1..30)) {
        trial(damaged(fat12(), 8 * KIB, &damages));
    }

    #[test]
    fn a_damaged_fat32_harms_nobody(damages in proptest::collection::vec((any::<u32>(), any::<u8>()), 1..30)) {
        trial(damaged(fat32(), 50 * 512, &damages));
    }

    /// Links to cluster numbers: cycles, cross-links, folders within themselves.
    #[test]
    fn tangled_chains_harm_nobody(links in proptest::collection::vec((2_u32..120, 0_u32..124), 1..20)) {
        let mut bytes = fat32().to_vec();
        for (cluster, next) in links {
            for fat in [32 * 512, 41 * 512] {
                let at = fat + cluster as usize * 4;
                bytes[at..at + 4].copy_from_slice(&next.to_le_bytes());
            }
        }
        trial(bytes);
    }

    #[test]
    fn anything_harms_nobody(mut bytes in proptest::collection::vec(any::<u8>(), 512..20_000), is_named in any::<bool>()) {
        if is_named {
            bytes[510..512].copy_from_slice(&[0x55, 0xAA]);
            bytes[11..14].copy_from_slice(&[0, 2, 1]);
            bytes[82..87].copy_from_slice(b"FAT32");
        }
        bytes.truncate(bytes.len() / 512 * 512);
        trial(bytes);
    }
}

/// A finding of the fuzzer.
#[test]
fn inputs_of_the_fuzzer_harm_nobody() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/volumes/inputs");
    for entry in std::fs::read_dir(folder).expect("a folder of inputs") {
        let path = entry.expect("an input").path();
        println!("{}", path.display());
        fuzzed::run(&std::fs::read(&path).expect("an input can be read"));
    }
}

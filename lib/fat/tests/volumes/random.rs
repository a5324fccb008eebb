//! Random operations on volumes of every width and cluster size, checked against a model in memory; fsck.fat and mtools
//! judge the volume at each unmount.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use crate::player::{Model, Step, Trial, step};
use crate::support::{MemoryDisk, expect_clean, made_by_linux, mtools};

test_needs::needs!(Dosfstools);

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
/// Stories per format in a run of all tests, and in a long run.
const FEW: u32 = 3;
const MANY: u32 = 1000;

/// Parameters of a volume: its size and the arguments of mkfs.fat.
type Format = (u64, &'static [&'static str]);

/// The content of a volume according to mtools: files with their bytes, and folders, which end with `/`.
fn by_mtools(disk: &MemoryDisk) -> BTreeMap<String, Option<Vec<u8>>> {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("image");
    std::fs::File::create(&image).and_then(|file| disk.write_to(&file)).expect("a copy");
    let copies = folder.path().join("copies");
    std::fs::create_dir(&copies).expect("a folder for copies");
    // mcopy fails on a volume without files.
    if !mtools("mdir", &image, &["-b", "-a", "::"]).is_empty() {
        mtools("mcopy", &image, &["-s", "-n", "::*", copies.to_str().expect("a path")]);
    }
    let mut found = BTreeMap::new();
    collect(&copies, "", &mut found);
    found
}

fn collect(folder: &Path, prefix: &str, found: &mut BTreeMap<String, Option<Vec<u8>>>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a name in UTF-8");
        if entry.path().is_dir() {
            let path = format!("{prefix}{name}/");
            collect(&entry.path(), &path, found);
            found.insert(path, None);
        } else {
            found.insert(format!("{prefix}{name}"), Some(std::fs::read(entry.path()).expect("a file")));
        }
    }
}

fn by_fsck(disk: &MemoryDisk, _: &Model) {
    expect_clean(disk);
}

fn by_both(disk: &MemoryDisk, model: &Model) {
    expect_clean(disk);
    let folders = model.folders.iter().filter(|path| !path.is_empty()).map(|path| (path.clone(), None));
    let files = model.files.iter().map(|(path, content)| (path.clone(), Some(content.clone())));
    let expected: BTreeMap<String, Option<Vec<u8>>> = folders.chain(files).collect();
    let found = by_mtools(disk);
    let names = |tree: &BTreeMap<String, Option<Vec<u8>>>| tree.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(&expected), "mtools finds other names");
    for (path, content) in &expected {
        assert!(found[path] == *content, "mtools finds other content in {path}");
    }
}

/// Runs stories that are the same in each run; one that fails is minimized and shown.
fn play((bytes, words): Format, judge: fn(&MemoryDisk, &Model), cases: u32) {
    let config =
        ProptestConfig { cases, max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]));
    let made = made_by_linux(bytes, words);
    let outcome = runner.run(&proptest::collection::vec(step(), 1..300), |steps: Vec<Step>| {
        let mut trial = Trial::new(made.copy(), judge);
        steps.iter().for_each(|step| trial.step(step));
        trial.finish();
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

macro_rules! of_each_format {
    ($($name:ident: $bytes:expr, $words:expr, $judge:expr;)*) => {
        $(
            mod $name {
                use super::*;

                #[test]
                fn a_fat_volume_does_what_the_model_does() {
                    play(($bytes, $words), $judge, FEW);
                }

                #[test]
                #[ignore = "takes minutes"]
                fn a_fat_volume_does_what_the_model_does_for_long() {
                    play(($bytes, $words), $judge, MANY);
                }
            }
        )*
    };
}

of_each_format! {
    fat12_of_a_floppy: 1440 * KIB, &["-F", "12"], by_both;
    // A root of sixteen slots and little space, so that both run out.
    fat12_with_little_room: 160 * KIB, &["-F", "12", "-r", "16", "-s", "2"], by_both;
    fat12_in_clusters_of_4k: 1440 * KIB, &["-F", "12", "-s", "8"], by_both;
    fat12_in_clusters_of_16k: 2 * MIB, &["-F", "12", "-s", "32"], by_both;
    fat12_in_clusters_of_64k: 8 * MIB, &["-F", "12", "-s", "128"], by_both;
    fat16_in_clusters_of_512: 4 * MIB, &["-F", "16", "-s", "1"], by_both;
    fat16_in_clusters_of_1k: 5 * MIB, &["-F", "16", "-s", "2"], by_both;
    fat16_in_clusters_of_8k: 34 * MIB, &["-F", "16", "-s", "16"], by_both;
    fat16_in_clusters_of_64k: 260 * MIB, &["-F", "16", "-s", "128"], by_both;
    fat32_in_clusters_of_512: 34 * MIB, &["-F", "32", "-s", "1"], by_both;
    fat32_in_clusters_of_2k: 130 * MIB, &["-F", "32", "-s", "4"], by_both;
    // mtools does not support FAT32 with few clusters.
    fat32_with_little_room: 256 * KIB, &["-F", "32", "-s", "1", "-f", "1"], by_fsck;
    fat32_in_few_clusters_of_8k: 4 * MIB, &["-F", "32", "-s", "16"], by_fsck;
    fat32_in_few_clusters_of_32k: 8 * MIB, &["-F", "32", "-s", "64"], by_fsck;
    fat32_in_few_clusters_of_64k: 16 * MIB, &["-F", "32", "-s", "128"], by_fsck;
}

//! A volume with the fuzzer's bytes over its metadata: the check ends, and what is repaired is sound.
#![no_main]

use ext2::check::{CheckOptions, Mode, Outcome, check};
use ext2::mkfs::{MakeOptions, make};
use ext2::{MemoryDisk, complete};

const VOLUME_BYTES: usize = 128 << 10;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let disk = MemoryDisk::new(vec![0; VOLUME_BYTES]);
    let made = complete(make(&disk, &MakeOptions { block_bytes: Some(1024), ..MakeOptions::default() }));
    assert!(made.is_ok());
    let mut volume = disk.bytes();
    // Two bytes for a place, in units of four; one for how many follow.
    let mut rest = bytes;
    while let [low, high, count, tail @ ..] = rest {
        let at = usize::from(u16::from_le_bytes([*low, *high])) * 4 % VOLUME_BYTES;
        let count = usize::from(*count).min(tail.len()).min(VOLUME_BYTES - at);
        volume[at..at + count].copy_from_slice(&tail[..count]);
        rest = &tail[count..];
    }
    let disk = MemoryDisk::new(volume);
    for mode in [Mode::Look, Mode::Mend] {
        let _ = complete(check(&disk, &CheckOptions { mode, memory_bytes: 64 << 20 }, &mut |_| ()));
    }
    let options = CheckOptions { mode: Mode::Repair, memory_bytes: 64 << 20 };
    let Ok(repaired) = complete(check(&disk, &options, &mut |_| ())) else { return };
    if repaired.outcome != Outcome::Faulty {
        let again = complete(check(&disk, &options, &mut |_| ()));
        assert!(again.is_ok_and(|again| again.outcome == Outcome::Clean));
    }
});

//! Checks of volumes of 8 MiB to 4 GiB, within the limits of `ext2-tool`.

#[path = "../../../../services/ext2-tool/src/limits.rs"]
mod limits;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use crate::support::{self, FileDisk};
use crate::volumes::{e2fsck, has_tools, run};
use ext2::check::{BUFFER_BYTES, BUFFERS, CheckOptions, Mode, Outcome, check};
use ext2::complete;

const MANIFEST: &str = include_str!("../../../../services/ext2-tool/manifest.toml");

/// Handles, block bytes and memory for everything but the check itself: the namespace, the disk's channels, the report.
const OTHER_HANDLES: u64 = 32;
const OTHER_BLOCK_BYTES: u64 = 1 << 20;
const OTHER_MEMORY_BYTES: u64 = 4 << 20;

/// Returns a number from the tool's quota.
fn quota(name: &str) -> u64 {
    let (_, quota) = MANIFEST.split_once("[quota]").unwrap();
    let number = quota.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_prefix('='));
    number.unwrap().trim().parse().unwrap()
}

#[test]
fn the_quota_of_the_tool_covers_what_a_check_takes() {
    assert!(quota("handles") >= BUFFERS as u64 + OTHER_HANDLES);
    assert!(quota("block_kib") << 10 >= BUFFER_BYTES as u64 + OTHER_BLOCK_BYTES);
    assert!(quota("memory_kib") << 10 >= limits::MEMORY_BYTES + OTHER_MEMORY_BYTES);
}

#[test]
fn volumes_of_all_sizes_are_repaired_within_the_quota_of_the_tool() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let path = place.path().join("image");
    let mut most = 0;
    for (mib, options) in
        [(8, "1024"), (31, "1024"), (32, "1024"), (33, "1024"), (256, "1024"), (1024, "4096"), (4096, "4096")]
    {
        File::create(&path).unwrap().set_len(mib << 20).unwrap();
        let arguments = ["-q", "-F", "-t", "ext2", "-b", options, "-E", "nodiscard", path.to_str().unwrap()];
        assert!(run("mke2fs", &arguments).1, "{mib} MiB");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        // The counts of all groups, and that of the volume.
        let block_bytes: u64 = options.parse().unwrap();
        let descriptors = if block_bytes == 1024 { 2048 } else { 4096 };
        let groups = (mib << 20).div_ceil(block_bytes * block_bytes * 8);
        for group in 0..groups {
            file.write_all_at(&[1, 2, 3, 4], descriptors + group * 32 + 12).unwrap();
        }
        file.write_all_at(&[9; 8], 1024 + 12).unwrap();
        let disk = FileDisk::open_to_write(&path);
        for (mode, outcome) in
            [(Mode::Report, Outcome::Faulty), (Mode::Repair, Outcome::Repaired), (Mode::Preen, Outcome::Clean)]
        {
            let options = CheckOptions { mode, memory_bytes: limits::MEMORY_BYTES };
            let result = complete(check(&disk, &options, &mut |_| ()));
            assert_eq!(result.unwrap().outcome, outcome, "{mib} MiB");
        }
        e2fsck(&path).unwrap();
        assert!(disk.most_buffers() <= BUFFERS, "{mib} MiB: {} buffers", disk.most_buffers());
        most = most.max(disk.most_buffers());
    }
    // The limit is fully used.
    assert_eq!(most, BUFFERS);
}

//! Checks of volumes of 8 MiB to 4 GiB, within the limits of `ext2-tool`.

#[path = "../../../../services/ext2-tool/src/limits.rs"]
mod limits;

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

use crate::support;
use crate::volumes::{NOW, e2fsck, has_tools, run};
use ext2::check::{BUFFER_BYTES, BUFFERS, CheckOptions, Mode, Outcome, check};
use ext2::{BlockSource, DiskError, complete};

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

/// A host file whose buffers are counted, each as a handle.
struct CountedDisk {
    file: File,
    count: Rc<Cell<usize>>,
    most: Rc<Cell<usize>>,
}

struct Buffer {
    bytes: Vec<u8>,
    count: Rc<Cell<usize>>,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.count.set(self.count.get() - 1);
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl CountedDisk {
    fn open(path: &Path) -> CountedDisk {
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        CountedDisk { file, count: Rc::default(), most: Rc::default() }
    }
}

impl BlockSource for CountedDisk {
    type Buffer = Buffer;

    fn size_bytes(&self) -> u64 {
        self.file.metadata().unwrap().len()
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn allocate(&self, bytes: usize) -> Result<Buffer, DiskError> {
        self.count.set(self.count.get() + 1);
        self.most.set(self.most.get().max(self.count.get()));
        Ok(Buffer { bytes: vec![0; bytes], count: Rc::clone(&self.count) })
    }

    async fn read(&self, offset: u64, mut buffer: Buffer, bytes: usize) -> (Option<Buffer>, Result<(), DiskError>) {
        let result = self.file.read_exact_at(&mut buffer[..bytes], offset).map_err(|_| DiskError::Failed(5));
        (Some(buffer), result)
    }

    async fn write(&self, offset: u64, buffer: Buffer, bytes: usize) -> (Option<Buffer>, Result<(), DiskError>) {
        let result = self.file.write_all_at(&buffer[..bytes], offset).map_err(|_| DiskError::Failed(5));
        (Some(buffer), result)
    }

    async fn flush(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        complete(task);
    }

    fn now_s(&self) -> u32 {
        NOW
    }
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
        let disk = CountedDisk::open(&path);
        // The counts of all groups, and that of the volume.
        let block_bytes: u64 = options.parse().unwrap();
        let descriptors = if block_bytes == 1024 { 2048 } else { 4096 };
        let groups = (mib << 20).div_ceil(block_bytes * block_bytes * 8);
        for group in 0..groups {
            disk.file.write_all_at(&[1, 2, 3, 4], descriptors + group * 32 + 12).unwrap();
        }
        disk.file.write_all_at(&[9; 8], 1024 + 12).unwrap();
        for (mode, outcome) in
            [(Mode::Report, Outcome::Faulty), (Mode::Repair, Outcome::Repaired), (Mode::Preen, Outcome::Clean)]
        {
            let options = CheckOptions { mode, memory_bytes: limits::MEMORY_BYTES };
            let result = complete(check(&disk, &options, &mut |_| ()));
            assert_eq!(result.unwrap().outcome, outcome, "{mib} MiB");
        }
        e2fsck(&path).unwrap();
        assert!(disk.most.get() <= BUFFERS, "{mib} MiB: {} buffers", disk.most.get());
        most = most.max(disk.most.get());
    }
    // The limit is fully used.
    assert_eq!(most, BUFFERS);
}

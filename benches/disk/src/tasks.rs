//! The measured tasks.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use client::access::AccessError;
use client::file_io::OpenFile;
use client::namespace::Namespace;
use contracts::directory::{CreateMode, NodeKind};
use sip::exheap::ExVec;
use sip::time::monotonic;

use crate::Error;
use crate::device::Device;
use crate::figures::Figures;
use crate::web_files;

/// Size of a random read in bytes.
const RANDOM_BYTES: usize = 4096;
/// Size of a small file in bytes.
const SMALL_BYTES: usize = 1024;
/// Permissions of created files and folders.
pub const PERMISSIONS: u32 = 0o644;

/// A task and its parameters.
pub struct Bench {
    pub namespace: Namespace,
    pub figures: Figures,
    pub path: String,
    pub block_bytes: usize,
    pub size_bytes: u64,
    pub count: u64,
    /// Folders of the files of the task `web`, once they are there.
    pub web_folders: Option<u64>,
}

impl Bench {
    /// Runs one round of the task.
    pub fn run(&mut self, task: &str) -> Result<(), Error> {
        let path = self.path.clone();
        let result = match task {
            "all" => self.all(&path),
            "read" => self.read(&path),
            "random" => self.random(&path),
            "latency" => self.latency(&path),
            "write" => self.write(&path),
            "files" => self.files(&path),
            "tree" => self.tree(&path),
            "web" => self.web(&path),
            "device" => self.device(&path),
            other => return Err(Error::NoTask(other.into())),
        };
        result.map_err(|error| Error::At(path, error))
    }

    /// Runs all tasks on a file of their own, which is removed at the end.
    fn all(&mut self, folder: &str) -> Result<(), AccessError> {
        let file = path::join(folder, "bench-disk.tmp");
        self.write(&file)?;
        let measured = self.read(&file).and_then(|()| self.random(&file)).and_then(|()| self.latency(&file));
        self.namespace.remove_file(&file)?;
        measured?;
        self.files(folder)?;
        self.tree(folder)
    }

    fn read(&mut self, path: &str) -> Result<(), AccessError> {
        let mut file = self.namespace.open_file(path)?;
        let mut block = ExVec::new(self.block_bytes)?;
        let begin = monotonic();
        let mut offset = 0;
        loop {
            let (filled, count) = file.read_at(block, offset)?;
            if count == 0 {
                break;
            }
            offset += count as u64;
            block = filled;
        }
        let what = format!("reading {offset} bytes in blocks of {}", self.block_bytes);
        self.figures.throughput("read", &what, offset, monotonic() - begin);
        Ok(())
    }

    fn random(&mut self, path: &str) -> Result<(), AccessError> {
        let mut file = self.namespace.open_file(path)?;
        let blocks = file.attributes()?.size_bytes / RANDOM_BYTES as u64;
        let mut random = Random(0x2007);
        let places = (0..self.count).map(|_| random.below(blocks) * RANDOM_BYTES as u64);
        let places: Vec<u64> = places.collect();
        let begin = monotonic();
        let each = timed_reads(&mut file, RANDOM_BYTES, &places)?;
        self.figures.rate("random", "random reads of 4 KiB", self.count, monotonic() - begin);
        self.figures.latencies("random_latency", "one of them", &each);
        Ok(())
    }

    fn latency(&mut self, path: &str) -> Result<(), AccessError> {
        let mut file = self.namespace.open_file(path)?;
        let places: Vec<u64> = (0..self.count).map(|index| index * self.block_bytes as u64).collect();
        let each = timed_reads(&mut file, self.block_bytes, &places)?;
        let what = format!("sequential reads of {} bytes", self.block_bytes);
        self.figures.latencies("latency", &what, &each);
        Ok(())
    }

    /// Writes a new file sequentially and waits until it is on the medium.
    fn write(&mut self, path: &str) -> Result<(), AccessError> {
        let mut file = self.namespace.create_file(path, PERMISSIONS, CreateMode::OpenExisting)?;
        file.set_size(0)?;
        file.sync()?;
        let mut block = ExVec::new(self.block_bytes)?;
        block.fill(0x5a);
        let begin = monotonic();
        let mut offset = 0;
        while offset < self.size_bytes {
            let bytes = (self.size_bytes - offset).min(self.block_bytes as u64);
            // No longer than a block.
            block = file.write_at(block, offset, bytes as usize)?.all()?;
            offset += bytes;
        }
        file.sync()?;
        let what = format!("writing {offset} bytes in blocks of {} and sync", self.block_bytes);
        self.figures.throughput("write", &what, offset, monotonic() - begin);
        Ok(())
    }

    /// Creates small files in a new folder and removes them.
    fn files(&mut self, folder: &str) -> Result<(), AccessError> {
        let path = path::join(folder, "bench-disk-files");
        self.namespace.make_directory(&path)?;
        let mut below = self.namespace.open_directory(&path)?;
        let mut block = ExVec::new(SMALL_BYTES)?;
        block.fill(0x5a);
        let begin = monotonic();
        for number in 0..self.count {
            let name = format!("file-{number:06}");
            let mut file = below.create_own_file(&name, PERMISSIONS, CreateMode::New)?;
            block = file.write_at(block, 0, SMALL_BYTES)?.all()?;
        }
        below.sync()?;
        let created = monotonic();
        for number in 0..self.count {
            below.remove_file(&format!("file-{number:06}"))?;
        }
        below.sync()?;
        let removed = monotonic();
        drop(below);
        let mut above = self.namespace.open_directory(folder)?;
        above.remove_directory("bench-disk-files")?;
        // The machine may end before anything else syncs.
        above.sync()?;
        self.figures.rate("create", "creating and writing small files", self.count, created - begin);
        self.figures.rate("delete", "removing them", self.count, removed - created);
        Ok(())
    }

    /// Reads files as a web server does; the first round creates them.
    fn web(&mut self, folder: &str) -> Result<(), AccessError> {
        let folders = match self.web_folders {
            Some(folders) => folders,
            None => *self.web_folders.insert(web_files::create(&mut self.namespace, folder, self.size_bytes)?),
        };
        let (nanoseconds, bytes) = web_files::read(&mut self.namespace, folder, folders, self.count)?;
        let what = format!("opening and reading files of the web, {bytes} bytes");
        self.figures.rate("web", &what, self.count, nanoseconds);
        Ok(())
    }

    /// Reads a disk through its driver alone.
    fn device(&mut self, path: &str) -> Result<(), AccessError> {
        let bytes = self.block_bytes;
        let device = Device::open(&mut self.namespace, path, bytes)?;
        let (blocks, [in_order, at_random]) = device.measure(self.size_bytes)?;
        let what = format!("reading blocks of {bytes} from the disk's driver");
        self.figures.rate(&format!("device_{bytes}"), &format!("{what}, in order"), blocks, in_order);
        self.figures.rate(&format!("device_random_{bytes}"), &format!("{what}, at random"), blocks, at_random);
        Ok(())
    }

    /// Reads the names in all folders recursively.
    fn tree(&mut self, folder: &str) -> Result<(), AccessError> {
        let begin = monotonic();
        let mut names = 0_u64;
        let mut folders = Vec::from([String::from(folder)]);
        while let Some(folder) = folders.pop() {
            self.namespace.open_directory(&folder)?.for_each_name(|name| {
                names += 1;
                if name.kind == NodeKind::Directory {
                    folders.push(path::join(&folder, &name.text()));
                }
            })?;
        }
        self.figures.rate("tree", &format!("going through {names} names"), names, monotonic() - begin);
        Ok(())
    }
}

/// Returns the latency of each read, in nanoseconds.
fn timed_reads(file: &mut OpenFile, bytes: usize, places: &[u64]) -> Result<Vec<u64>, AccessError> {
    let mut block = ExVec::new(bytes)?;
    let mut each = Vec::with_capacity(places.len());
    for place in places {
        let begin = monotonic();
        block = file.read_at(block, *place)?.0;
        each.push(monotonic() - begin);
    }
    Ok(each)
}

/// Deterministic pseudo-random numbers (xorshift64*), the same in each run.
pub struct Random(pub u64);

impl Random {
    /// Returns a number below the limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        (number * limit.min(u32::MAX.into())) >> 32
    }
}

//! Linux counterpart of `bench-disk`: the same requests in the same order, to a file or folder of a mounted volume.
//! Prints the same lines `bench NAME NANOSECONDS`.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Size of a random read in bytes.
const RANDOM_BYTES: usize = 4096;
/// Size of a small file in bytes.
const SMALL_BYTES: usize = 1024;
/// Reported percentiles in permille of the timed requests, with their labels.
const PERCENTILES: [(usize, &str); 4] = [(500, "p50"), (900, "p90"), (990, "p99"), (1000, "max")];

/// A task and its parameters.
struct Bench {
    path: PathBuf,
    block_bytes: usize,
    size_bytes: u64,
    count: u64,
    round: u64,
}

/// Runs the tasks of the arguments `PATH TASK BLOCK-BYTES SIZE-MIB COUNT ROUNDS`; returns the exit status.
pub fn run(arguments: &[OsString]) -> i32 {
    match try_run(arguments) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("bench-linux: disk {arguments:?}: {error}");
            1
        }
    }
}

/// Memory in bytes that either system's caches need for the largest file, buffers included.
const MEMORY_BYTES: usize = 1 << 30;

/// Syncs a file and drops it from the page cache, with as much free memory at hand as its next reader needs; returns
/// the exit status.
pub fn forget(path: &std::ffi::OsStr) -> i32 {
    let synced = OpenOptions::new().read(true).write(true).open(path).and_then(|file| file.sync_all().map(|()| file));
    match synced {
        Ok(file) if crate::linux::forget(&file) => {
            crate::linux::have_memory_at_hand(MEMORY_BYTES);
            0
        }
        _ => 1,
    }
}

fn try_run(arguments: &[OsString]) -> io::Result<()> {
    let [path, task, numbers @ ..] = arguments else { return Err(io::ErrorKind::InvalidInput.into()) };
    let number = |index: usize| -> io::Result<u64> {
        let text = numbers.get(index).and_then(|text| text.to_str());
        text.and_then(|text| text.parse().ok()).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    };
    let mut bench = Bench {
        path: path.into(),
        block_bytes: number(0)? as usize,
        size_bytes: number(1)? << 20,
        count: number(2)?,
        round: 0,
    };
    for round in 0..number(3)? {
        bench.round = round;
        match task.to_str() {
            Some("read") => bench.read()?,
            Some("random") => bench.random()?,
            Some("latency") => bench.latency()?,
            Some("write") => bench.write()?,
            Some("files") => bench.files()?,
            Some("tree") => bench.tree()?,
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        }
    }
    Ok(())
}

impl Bench {
    fn figure(&self, name: &str, nanoseconds: u64) {
        println!("bench {name}_{} {nanoseconds}", self.round);
    }

    fn read(&self) -> io::Result<()> {
        let file = File::open(&self.path)?;
        let mut block = vec![0; self.block_bytes];
        let begin = Instant::now();
        let mut offset = 0;
        loop {
            let count = file.read_at(&mut block, offset)?;
            if count == 0 {
                break;
            }
            offset += count as u64;
        }
        self.figure("read", nanoseconds(begin));
        Ok(())
    }

    fn random(&self) -> io::Result<()> {
        let file = File::open(&self.path)?;
        let blocks = file.metadata()?.len() / RANDOM_BYTES as u64;
        let mut random = Random(0x2007);
        let places: Vec<u64> = (0..self.count).map(|_| random.below(blocks) * RANDOM_BYTES as u64).collect();
        let begin = Instant::now();
        let each = timed_reads(&file, RANDOM_BYTES, &places)?;
        self.figure("random", nanoseconds(begin));
        self.latencies("random_latency", &each);
        Ok(())
    }

    fn latency(&self) -> io::Result<()> {
        let file = File::open(&self.path)?;
        let places: Vec<u64> = (0..self.count).map(|index| index * self.block_bytes as u64).collect();
        self.latencies("latency", &timed_reads(&file, self.block_bytes, &places)?);
        Ok(())
    }

    fn latencies(&self, name: &str, each: &[u64]) {
        for (index, nanoseconds) in each.iter().enumerate() {
            self.figure(&format!("{name}_{index}"), *nanoseconds);
        }
        let mut sorted = each.to_vec();
        sorted.sort_unstable();
        for (part, percentile) in PERCENTILES {
            let place = (sorted.len() * part).div_ceil(1000).saturating_sub(1);
            self.figure(&format!("{name}_{percentile}"), sorted.get(place).copied().unwrap_or(0));
        }
    }

    fn write(&self) -> io::Result<()> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&self.path)?;
        file.sync_all()?;
        let block = vec![0x5a; self.block_bytes];
        let begin = Instant::now();
        let mut offset = 0;
        while offset < self.size_bytes {
            let bytes = (self.size_bytes - offset).min(self.block_bytes as u64) as usize;
            file.write_all_at(&block[..bytes], offset)?;
            offset += bytes as u64;
        }
        file.sync_all()?;
        self.figure("write", nanoseconds(begin));
        Ok(())
    }

    fn files(&self) -> io::Result<()> {
        let folder = self.path.join("bench-disk-files");
        fs::create_dir(&folder)?;
        let name = |number: u64| folder.join(format!("file-{number:06}"));
        let block = [0x5a; SMALL_BYTES];
        let begin = Instant::now();
        for number in 0..self.count {
            OpenOptions::new().write(true).create_new(true).open(name(number))?.write_all_at(&block, 0)?;
        }
        sync(&folder)?;
        self.figure("create", nanoseconds(begin));
        let begin = Instant::now();
        for number in 0..self.count {
            fs::remove_file(name(number))?;
        }
        sync(&folder)?;
        self.figure("delete", nanoseconds(begin));
        fs::remove_dir(folder)
    }

    fn tree(&self) -> io::Result<()> {
        let begin = Instant::now();
        let mut folders = vec![self.path.clone()];
        let mut names = 0_u64;
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                names += 1;
                if entry.file_type()?.is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        self.figure("tree", nanoseconds(begin));
        eprintln!("bench-linux: {names} names");
        Ok(())
    }
}

fn nanoseconds(begin: Instant) -> u64 {
    begin.elapsed().as_nanos() as u64
}

/// Syncs the volume of the folder.
fn sync(folder: &Path) -> io::Result<()> {
    if crate::linux::sync_volume(&File::open(folder)?) { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn timed_reads(file: &File, bytes: usize, places: &[u64]) -> io::Result<Vec<u64>> {
    let mut block = vec![0; bytes];
    let mut each = Vec::with_capacity(places.len());
    for place in places {
        let begin = Instant::now();
        file.read_at(&mut block, *place)?;
        each.push(nanoseconds(begin));
    }
    Ok(each)
}

/// The same pseudo-random numbers as in `bench-disk` (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        (number * limit.min(u32::MAX.into())) >> 32
    }
}

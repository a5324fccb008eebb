//! A client of a file system that is killed repeatedly.
//!
//! It tracks the content of each piece of its file: the last write, or after a kill anything between the last sync and
//! the last write. Any other content is corruption, and a lent block that is not returned is lost; both end it with a
//! message and status 1. A second file is replaced by renaming, with the same checks.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod file;
mod pieces;

use alloc::format;
use alloc::string::{String, ToString};

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::{CreateMode, NameError};
use contracts::file::FileError;
use sip::Deadline;
use stdio::{Output, report};

use file::{Lost, StormFile};
use pieces::{PIECE_BYTES, Random, Versions, fill, version_of};

sip::startup!();

const PERMISSIONS: u32 = 0o644;
/// Timeout for a file system to be back.
const TIMEOUT_MS: u64 = 30_000;
const AGAIN_AFTER_MS: u64 = 2;

/// Runs until the time is over, then checks everything once more.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let number = u32::try_from(startup.number).unwrap_or(0);
    let seconds = u64::try_from(startup.seconds).unwrap_or(1);
    let pause_ms = u64::try_from(startup.pause_ms).unwrap_or(0);
    let mut client = Client::new(Namespace::new(startup.namespace), startup.folder, number, pause_ms);
    match client.run(Deadline::after_ms(seconds * 1000)) {
        Ok(()) => {
            let Counts { reads, writes, syncs, renames, crashes } = client.counts;
            let line = format!(
                "client {number}: {reads} reads, {writes} writes, {syncs} syncs, {renames} renames, \
                 {crashes} crashes: all as it must be\n"
            );
            output.write(line.as_bytes()).map_or(1, |()| output.finish_with(0))
        }
        Err(reason) => {
            report::error(format_args!("client {number}: {reason}"));
            1
        }
    }
}

fn is_missing(error: AccessError) -> bool {
    matches!(
        error,
        AccessError::NoFileSystem | AccessError::Name(NameError::NotFound) | AccessError::File(FileError::NotFound)
    )
}

#[derive(Default)]
struct Counts {
    reads: u64,
    writes: u64,
    syncs: u64,
    renames: u64,
    crashes: u64,
}

struct Client {
    namespace: Namespace,
    folder: String,
    number: u32,
    pause_ms: u64,
    random: Random,
    versions: Versions,
    /// The same for the one piece of the file that is renamed.
    named: Versions,
    next_version: u32,
    counts: Counts,
}

impl Client {
    fn new(namespace: Namespace, folder: String, number: u32, pause_ms: u64) -> Client {
        let random = Random::new(u64::from(number));
        let (versions, named) = (Versions::new(pieces::PIECES), Versions::new(1));
        let counts = Counts::default();
        Client { namespace, folder, number, pause_ms, random, versions, named, next_version: 1, counts }
    }

    fn run(&mut self, deadline: Deadline) -> Result<(), String> {
        let mut file = self.open()?;
        while !deadline.has_passed() {
            file = match self.step(file) {
                Ok(file) => {
                    self.pause();
                    file
                }
                Err(Lost::Wrong(reason)) => return Err(reason),
                Err(Lost::Ended) => {
                    self.counts.crashes += 1;
                    self.look_again()?
                }
            };
        }
        drop(file);
        self.look_again().map(drop)
    }

    /// Without a pause, clients of a machine whose disk takes no time make millions of calls in seconds.
    fn pause(&self) {
        if self.pause_ms > 0 {
            sip::thread::sleep(Deadline::after_ms(self.pause_ms));
        }
    }

    fn step(&mut self, file: StormFile) -> Result<StormFile, Lost> {
        let (first, count) = self.random.range(pieces::PIECES);
        match self.random.below(20) {
            0..9 => {
                self.counts.reads += 1;
                file.read_exactly(self.number, &self.versions, first, count)
            }
            9..17 => {
                self.counts.writes += 1;
                let version = self.version();
                self.versions.write(first, count, version);
                file.write(self.number, version, first, count)
            }
            17..19 => {
                self.counts.syncs += 1;
                let file = file.sync()?;
                self.versions.sync();
                Ok(file)
            }
            _ => {
                self.counts.renames += 1;
                self.replace().map(|()| file)
            }
        }
    }

    fn version(&mut self) -> u32 {
        self.next_version += 1;
        self.next_version
    }

    fn path(&self, suffix: &str) -> String {
        format!("{}/{}{suffix}", self.folder, self.number)
    }

    /// Writes a new file and renames it over the old one.
    fn replace(&mut self) -> Result<(), Lost> {
        let version = self.version();
        let (new, name) = (self.path(".new"), self.path(".name"));
        let mut file = self.namespace.create_file(&new, PERMISSIONS, CreateMode::OpenExisting)?;
        let mut block = sip::exheap::ExVec::<u8>::new(PIECE_BYTES).map_err(AccessError::from)?;
        fill(&mut block, self.number, 0, version);
        file.write_at(block, 0, PIECE_BYTES)?.all()?;
        file.sync()?;
        self.named.write(0, 1, version);
        self.namespace.rename(&new, &name)?;
        file.sync()?;
        self.named.sync();
        Ok(())
    }

    /// Opens the file of a file system that may be down, or not mounted yet. A file that is new is gone when the file system
    /// ends before it is opened, and is created again.
    fn open(&mut self) -> Result<StormFile, String> {
        let path = self.path("");
        let deadline = Deadline::after_ms(TIMEOUT_MS);
        loop {
            match self.create_and_open(&path) {
                Err(error) if (error.may_pass() || is_missing(error)) && !deadline.has_passed() => {
                    sip::thread::sleep(Deadline::after_ms(AGAIN_AFTER_MS));
                }
                other => return other.map_err(|error| error.to_string()),
            }
        }
    }

    fn create_and_open(&mut self, path: &str) -> Result<StormFile, AccessError> {
        self.namespace.create_file(path, PERMISSIONS, CreateMode::OpenExisting).map(drop)?;
        StormFile::open(&mut self.namespace, path)
    }

    /// After a crash: content within the allowed range is adopted as the last write.
    fn look_again(&mut self) -> Result<StormFile, String> {
        loop {
            let file = self.open()?;
            match self.look(file) {
                Ok(file) => return Ok(file),
                Err(Lost::Wrong(reason)) => return Err(reason),
                Err(Lost::Ended) => self.counts.crashes += 1,
            }
        }
    }

    fn look(&mut self, file: StormFile) -> Result<StormFile, Lost> {
        let file = file.read_any(self.number, &mut self.versions)?;
        let name = self.path(".name");
        let named = match StormFile::open(&mut self.namespace, &name) {
            Err(AccessError::Name(_) | AccessError::File(_)) if self.named.is_unwritten(0) => return Ok(file),
            named => named?,
        };
        let (_, bytes) = named.read(0, 1)?;
        let found = version_of(&bytes[..PIECE_BYTES.min(bytes.len())], self.number, 0);
        self.named.find(0, found).map_err(|reason| Lost::Wrong(format!("{name}: {reason}")))?;
        Ok(file)
    }
}

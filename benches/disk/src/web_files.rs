//! WebFiles of *Deconstructing Process Isolation* (section 4.3): the file accesses of SPECweb99, without a web server.
//!
//! A folder of the set has nine files of each of four classes, each class ten times as large as the one before. Folders
//! are chosen by Zipf's law, classes and files by the shares of SPECweb99. Each access opens a file, reads all of it and
//! closes it. Deliberately not here: the client of the web benchmark, which the host tool has.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::CreateMode;
use sip::exheap::ExVec;
use sip::time::monotonic;

use crate::tasks::{PERMISSIONS, Random};

/// Folder of the set.
const FOLDER: &str = "web-files";
/// Files of each class in a folder.
const FILES: u64 = 9;
/// Bytes of the smallest file of each class; the file with the number n is n + 1 times as large.
const CLASS_BYTES: [usize; 4] = [102, 1_024, 10_240, 102_400];
/// Share of accesses by class, in percent.
const CLASS_SHARES: [u64; 4] = [35, 50, 14, 1];
/// Share of accesses by file within a class, in permille.
const FILE_SHARES: [u64; FILES as usize] = [39, 59, 88, 177, 353, 118, 71, 50, 45];
/// MiB of a folder, roughly.
const FOLDER_MIB: u64 = 5;
/// Bytes of a read.
const READ_BYTES: usize = 64 << 10;

fn name(class: usize, file: usize) -> String {
    format!("class{class}_{file}")
}

/// Creates the set in a folder; returns the number of its folders.
pub fn create(namespace: &mut Namespace, folder: &str, size_bytes: u64) -> Result<u64, AccessError> {
    let set = path::join(folder, FOLDER);
    namespace.make_directory(&set)?;
    let folders = (size_bytes / (FOLDER_MIB << 20)).max(1);
    let mut block = ExVec::new(CLASS_BYTES[CLASS_BYTES.len() - 1] * FILES as usize)?;
    block.fill(0x5a);
    for number in 0..folders {
        let path = path::join(&set, &format!("dir{number:05}"));
        namespace.make_directory(&path)?;
        let mut below = namespace.open_directory(&path)?;
        for (class, bytes) in CLASS_BYTES.into_iter().enumerate() {
            for file in 0..FILES as usize {
                let mut created = below.create_own_file(&name(class, file), PERMISSIONS, CreateMode::New)?;
                block = created.write_at(block, 0, bytes * (file + 1))?.all()?;
            }
        }
        below.sync()?;
    }
    Ok(folders)
}

/// Chooses an index by shares.
fn choose(random: &mut Random, shares: &[u64]) -> usize {
    let mut rest = random.below(shares.iter().sum());
    for (index, share) in shares.iter().enumerate() {
        if rest < *share {
            return index;
        }
        rest -= share;
    }
    0
}

/// Reads files of the set; returns the nanoseconds that all accesses took, and the bytes read.
pub fn read(namespace: &mut Namespace, folder: &str, folders: u64, count: u64) -> Result<(u64, u64), AccessError> {
    let mut random = Random(0x1999);
    let by_zipf: Vec<u64> = (1..=folders).map(|rank| 1_000_000 / rank).collect();
    let mut access = || {
        let folder = choose(&mut random, &by_zipf);
        let class = choose(&mut random, &CLASS_SHARES);
        format!("{FOLDER}/dir{folder:05}/{}", name(class, choose(&mut random, &FILE_SHARES)))
    };
    let paths: Vec<String> = (0..count).map(|_| path::join(folder, &access())).collect();
    let mut block = ExVec::new(READ_BYTES)?;
    let mut all = 0;
    let begin = monotonic();
    for path in &paths {
        let mut file = namespace.open_file(path)?;
        let mut offset = 0;
        loop {
            let (filled, bytes) = file.read_at(block, offset)?;
            block = filled;
            offset += bytes as u64;
            if bytes < READ_BYTES {
                break;
            }
        }
        all += offset;
    }
    Ok((monotonic() - begin, all))
}

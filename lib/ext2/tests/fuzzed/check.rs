//! Checks a damaged volume: the check terminates, and a repaired volume is clean and usable.

use ext2::check::{CheckOptions, Mode, Outcome, check};
use ext2::{Error, Kind, MemoryDisk, MountOptions, ROOT_INODE, Volume, complete};

use crate::sample;

const MEMORY_BYTES: u64 = 64 << 20;

/// One trial; a panic is a finding.
pub fn run(bytes: &[u8]) {
    let Some((sample, damage, _)) = sample::parts(bytes) else { return };
    let disk = MemoryDisk::new(sample::damaged(sample, damage));
    for mode in [Mode::Report, Mode::Preen] {
        let _ = complete(check(&disk, &CheckOptions { mode, memory_bytes: MEMORY_BYTES }, &mut |_| ()));
    }
    let options = CheckOptions { mode: Mode::Repair, memory_bytes: MEMORY_BYTES };
    let Ok(repaired) = complete(check(&disk, &options, &mut |_| ())) else { return };
    if repaired.outcome != Outcome::Faulty {
        let mut found = Vec::new();
        let again = complete(check(&disk, &options, &mut |finding| found.push(format!("{finding:?}"))));
        let again = again.map(|again| again.outcome);
        assert!(again.as_ref().is_ok_and(|again| *again == Outcome::Clean), "repaired, and then {again:?}: {found:?}");
        complete(walk(&disk));
    }
}

/// Reads everything.
async fn walk(disk: &MemoryDisk) {
    let volume = Volume::mount(disk.clone(), MountOptions::default()).await;
    let volume = volume.unwrap_or_else(|error| panic!("repaired, and cannot be mounted: {error:?}"));
    let mut folders = vec![ROOT_INODE];
    while let Some(folder) = folders.pop() {
        let mut position = Some(0);
        while let Some(from) = position {
            let listing = volume.list(folder, from, 100).await;
            let listing = listing.unwrap_or_else(|error| panic!("the folder {folder} cannot be listed: {error:?}"));
            for entry in listing.entries.iter().filter(|entry| !matches!(&entry.name[..], b"." | b"..")) {
                match read(&volume, entry.inode).await {
                    Ok(Kind::Directory) => folders.push(entry.inode),
                    Ok(_) => {}
                    Err(error) => panic!("{} of {folder} cannot be read: {error:?}", entry.inode),
                }
            }
            position = listing.next;
        }
    }
}

async fn read(volume: &Volume<MemoryDisk>, number: u32) -> Result<Kind, Error> {
    const AT_ONCE: u64 = 1 << 16;
    let inode = volume.inode(number).await?;
    match inode.kind {
        Kind::File => {
            let file = volume.open(number).await?;
            let mut buffer = vec![0; AT_ONCE as usize];
            // Distant offsets of a sparse file take too long to read.
            for place in [0, AT_ONCE, 4 * AT_ONCE, 70 << 20, inode.size.saturating_sub(AT_ONCE)] {
                file.read(place, &mut buffer).await?;
            }
        }
        Kind::SymbolicLink => drop(volume.link_target(number).await?),
        _ => {}
    }
    Ok(inode.kind)
}

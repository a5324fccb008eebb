//! A damaged volume and operations on it, which must terminate without a panic.

use ext2::{
    Access, AttributeChanges, BlockSource, CacheLimits, ExtendedAttribute, LastLink, MemoryDisk, MountOptions, NewKind,
    NewNode, OpenFile, ROOT_INODE, Volume, complete,
};

use crate::sample::{self, name};

/// Bytes of the input for one operation.
const STEP: usize = 4;
const MAX_STEPS: usize = 48;

/// One trial; a panic is a finding.
pub fn run(bytes: &[u8]) {
    let Some((sample, damage, steps)) = sample::parts(bytes) else { return };
    let limits = CacheLimits { data_bytes: 256 << 10, page_bytes: 8 << 10, ..CacheLimits::default() };
    let options = MountOptions { limits, access: Access::WriteIfPossible };
    let disk = MemoryDisk::new(sample::damaged(sample, damage));
    let size = disk.size_bytes();
    let Ok(volume) = complete(Volume::mount(disk.clone(), options)) else { return };
    let mut open = None;
    for step in steps.as_chunks::<STEP>().0.iter().take(MAX_STEPS) {
        complete(act(&volume, &mut open, *step));
    }
    drop(open);
    // It may fail.
    let _ = complete(volume.unmount());
    assert_eq!(disk.size_bytes(), size);
}

/// Runs one operation; failure is acceptable.
async fn act(
    volume: &Volume<MemoryDisk>,
    open: &mut Option<OpenFile<MemoryDisk>>,
    [what, first, second, size]: [u8; 4],
) {
    let folder = match volume.find(ROOT_INODE, &name(first >> 4)).await {
        Ok(number) if first & 1 != 0 => number,
        _ => ROOT_INODE,
    };
    let (old, new) = (name(first), name(second));
    let place = u64::from(size) << (second % 32);
    let node = |kind| NewNode { kind, permissions: 0o644, owner: size.into(), group: 0 };
    let _ = match what % 16 {
        0 => volume.create(folder, &new, node(NewKind::File)).await.map(drop),
        1 => volume.create(folder, &new, node(NewKind::Directory)).await.map(drop),
        2 => volume.create(folder, &new, node(NewKind::SymbolicLink(&old))).await.map(drop),
        3 => volume.unlink(folder, &old).await,
        4 => volume.remove_directory(folder, &old).await,
        5 => volume.rename(folder, &old, ROOT_INODE, &new).await,
        6 => volume.rename(ROOT_INODE, &old, folder, &new).await,
        7 => match volume.find(folder, &old).await {
            Ok(number) => volume.link(folder, &new, number).await,
            Err(error) => Err(error),
        },
        8 => volume.resolve(folder, &[&old[..], b"/", &new].concat(), LastLink::Follow).await.map(drop),
        9 => volume.list(folder, place, 100).await.map(drop),
        10 => volume.sync().await,
        11 if what >> 4 & 3 != 0 => extended(volume, u32::from(first), [what, second, size]).await,
        11 => {
            let changes = AttributeChanges { owner: Some(size.into()), modified: Some(1), ..Default::default() };
            volume.set_attributes(u32::from(first), changes).await
        }
        12 => volume.open(u32::from(first)).await.map(|file| *open = Some(file)),
        13 => match volume.find(folder, &old).await {
            Ok(number) => volume.open(number).await.map(|file| *open = Some(file)),
            Err(error) => Err(error),
        },
        _ => match open {
            Some(file) => transfer(file, what, place, usize::from(size) * 40).await,
            None => Ok(()),
        },
    };
}

/// Reads, sets or removes extended attributes.
async fn extended(volume: &Volume<MemoryDisk>, number: u32, [what, name, size]: [u8; 3]) -> Result<(), ext2::Error> {
    let name = crate::sample::name(name);
    match what >> 4 & 3 {
        1 => volume.extended_attributes(number).await.map(drop),
        2 => {
            let new = ExtendedAttribute { namespace: size % 8, name, value: vec![size; usize::from(size) * 3] };
            volume.set_extended_attribute(number, new).await
        }
        _ => volume.remove_extended_attribute(number, size % 8, &name).await,
    }
}

async fn transfer(file: &OpenFile<MemoryDisk>, what: u8, place: u64, bytes: usize) -> Result<(), ext2::Error> {
    let mut buffer = vec![0xff; bytes];
    match what >> 4 & 3 {
        0 => file.read(place, &mut buffer).await.map(drop),
        1 => file.write(place, &buffer).await.map_err(|partial| partial.error),
        2 => file.append(&buffer).await.map(drop).map_err(|partial| partial.error),
        _ => file.set_size(place).await,
    }
}

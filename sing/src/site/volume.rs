//! Checks that an image contains a supported volume by mounting it, as the system's file systems do.
//!
//! Nothing is written. Deliberately not here: the formats; those are the crates `ext2` and `fat`.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

use block_source::{BlockSource, DiskError};
use ext2::complete;

use crate::failure::{Failure, Outcome};

/// Refuses an image that no machine could serve.
pub fn check(path: &Path) -> Outcome<()> {
    let disk = || Disk::open(path).map_err(|error| Failure::file("open", path, &error));
    let refused = |why: String| Err(Failure::new(format!("cannot serve {}: {why}", path.display())));
    let options = ext2::MountOptions { access: ext2::Access::ReadOnly, ..ext2::MountOptions::default() };
    match complete(ext2::Volume::mount(disk()?, options)) {
        Ok(_) => return Ok(()),
        Err(ext2::Error::Format(ext2::FormatError::NotExt2 { backup: None, .. } | ext2::FormatError::TooSmall(_))) => {}
        Err(error) => return refused(error.to_string()),
    }
    let options =
        fat::MountOptions { limits: fat::CacheLimits::default(), access: fat::Access::ReadOnly, clock: &NoClock };
    match complete(fat::Volume::mount(disk()?, options)) {
        Ok(_) => Ok(()),
        Err(fat::Error::NotRecognised) => {
            Err(Failure::new(format!("{} is neither a folder nor an ext2 or FAT disk image", path.display()))
                .remedy("specify the folder to serve"))
        }
        Err(error) => refused(error.to_string()),
    }
}

/// Read-only mounts write no times.
struct NoClock;

impl fat::Clock for NoClock {
    fn now(&self) -> fat::DateTime {
        fat::DateTime::UNIX_EPOCH
    }
}

/// A read-only image.
struct Disk {
    file: File,
    bytes: u64,
}

impl Disk {
    fn open(path: &Path) -> std::io::Result<Disk> {
        let mut file = File::open(path)?;
        // A block device's length is not in its metadata.
        let bytes = file.seek(SeekFrom::End(0))?;
        Ok(Disk { file, bytes })
    }
}

impl BlockSource for Disk {
    type Buffer = Vec<u8>;

    fn size_bytes(&self) -> u64 {
        self.bytes
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn allocate(&self, bytes: usize) -> Result<Vec<u8>, DiskError> {
        Ok(vec![0; bytes])
    }

    async fn read(&self, offset: u64, mut buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        let read = match buffer.get_mut(..bytes) {
            Some(target) => self.file.read_exact_at(target, offset).map_err(|_| DiskError::Short),
            None => Err(DiskError::Short),
        };
        (Some(buffer), read)
    }

    async fn write(&self, _: u64, buffer: Vec<u8>, _: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        (Some(buffer), Err(DiskError::ReadOnly))
    }

    async fn flush(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        complete(task);
    }

    fn now_s(&self) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 2 << 20;

    fn ext2_image() -> Vec<u8> {
        let disk = ext2::MemoryDisk::new(vec![0; BYTES]);
        complete(ext2::make::make_empty(&disk, &ext2::make::MakeOptions::default())).expect("ext2 fits");
        disk.bytes()
    }

    fn fat_image() -> Vec<u8> {
        let disk = ext2::MemoryDisk::new(vec![0; BYTES]);
        let options = fat::FormatOptions { cluster_bytes: None, label: "", time_s: 0, serial: 1 };
        complete(fat::format(disk.clone(), options)).expect("FAT fits");
        disk.bytes()
    }

    /// Error message for such an image.
    fn told(bytes: &[u8]) -> Result<(), String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("image");
        std::fs::write(&path, bytes).expect("an image");
        let before = std::fs::read(&path).expect("the image");
        let result = check(&path).map_err(|failure| failure.to_string());
        assert_eq!(std::fs::read(&path).expect("the image"), before, "the image was changed");
        result
    }

    #[test]
    fn what_can_be_mounted_is_served() {
        assert_eq!(told(&ext2_image()), Ok(()));
        assert_eq!(told(&fat_image()), Ok(()));
    }

    #[test]
    fn what_holds_no_volume_is_told_from_what_does() {
        for bytes in [&b""[..], b"text", &[0; 8192]] {
            let said = told(bytes).expect_err("it is no volume");
            assert!(said.contains("neither a folder nor an ext2 or FAT disk image"), "{said}");
        }
    }

    #[test]
    fn an_image_cut_short_is_refused() {
        let said = told(&ext2_image()[..BYTES / 2]).expect_err("it is cut short");
        assert!(said.contains("the disk is cut off: it has 1048576 bytes, its file system needs 2097152"), "{said}");
        let said = told(&fat_image()[..BYTES / 2]).expect_err("it is cut short");
        assert!(said.contains("larger than the device"), "{said}");
    }

    #[test]
    fn ext4_is_refused_by_the_names_of_its_features() {
        // The incompatible features are at byte 96 of the superblock; 0x40 is `extent`.
        let mut bytes = ext2_image();
        bytes[1024 + 96] |= 0x40;
        let said = told(&bytes).expect_err("it is ext4");
        assert!(said.contains("not supported: extent"), "{said}");
    }
}

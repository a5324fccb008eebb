//! Making a new volume.

use alloc::rc::Rc;

use hadris_fat::{FatKind, FatOptions, VolumeLabel};
use hadris_fs::DateTime;
use hadris_io::ErrorKind;

use crate::BlockSource;
use crate::bytes::Bytes;
use crate::cache::{Cache, CacheLimits};
use crate::device::Device;
use crate::error::Error;

/// What lies before the data of any file system that was there before: marks of ext2, NTFS and the like.
const OLD_MARKS_BYTES: u64 = 128 * 1024;

/// How a new volume is to be.
#[derive(Clone, Copy, Debug, Default)]
pub struct FormatOptions<'a> {
    /// Bytes of a cluster: a power of two from 512 to 32 KiB. By default what suits the disk's size.
    pub cluster_bytes: Option<u32>,
    /// The volume's name: at most 11 characters of ASCII, without `"*+,./:;<=>?[\]|`.
    pub label: &'a str,
    /// The time of making, in seconds since 1970.
    pub time_s: i64,
    /// What tells this volume from others.
    pub serial: u32,
}

/// A volume that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formatted {
    /// 12, 16 or 32.
    pub bits: u32,
    /// Bytes of a cluster.
    pub cluster_bytes: u32,
    /// How many clusters there are.
    pub clusters: u32,
}

/// Makes an empty volume on the whole disk: FAT12 below 16 MiB, FAT16 below 512 MiB, else FAT32; with a given size of
/// clusters, where that makes too many or too few of them, the first width for which it does not. What was on the
/// disk is gone.
///
/// # Errors
/// The disk is too small or too large, cannot be written to or failed, or the label or the size of clusters is
/// none that FAT has.
pub async fn format<S: BlockSource>(source: S, options: FormatOptions<'_>) -> Result<Formatted, Error> {
    if source.is_read_only() {
        return Err(Error::ReadOnly);
    }
    let bytes = Bytes::new(Cache::new(source, CacheLimits::default()));
    let mut wanted = FatOptions::new().with_serial(options.serial);
    if !options.label.is_empty() {
        wanted = wanted.with_label(VolumeLabel::new(options.label).map_err(|_| Error::BadName)?);
    }
    if let Some(cluster_bytes) = options.cluster_bytes {
        wanted = wanted.with_cluster_size(cluster_bytes);
    }
    if let Ok(time) = DateTime::from_unix_seconds(options.time_s) {
        wanted = wanted.with_time(time);
    }
    let zeros = [0; 4096];
    let end = OLD_MARKS_BYTES.min(bytes.cache().size_bytes());
    for offset in (0..end).step_by(zeros.len()) {
        let count = zeros.len().min((end - offset) as usize);
        bytes.write(offset, &zeros[..count]).await?;
    }
    let mut device = Device::new(Rc::clone(bytes.cache()), true);
    let mut made = hadris_fat::async_::format(&mut device, &wanted).await;
    if options.cluster_bytes.is_some() {
        // The width that the disk's size suggests may not have so many clusters of that size, or so few.
        for kind in [FatKind::Fat12, FatKind::Fat16, FatKind::Fat32] {
            let Err(error) = &made else { break };
            if !matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::LimitExceeded) {
                break;
            }
            made = hadris_fat::async_::format(&mut device, &wanted.with_kind(kind)).await;
        }
    }
    let geometry = made?;
    bytes.flush().await?;
    Ok(Formatted {
        bits: match geometry.kind() {
            FatKind::Fat12 => 12,
            FatKind::Fat16 => 16,
            _ => 32,
        },
        cluster_bytes: geometry.cluster_size(),
        clusters: geometry.max_cluster() - 1,
    })
}

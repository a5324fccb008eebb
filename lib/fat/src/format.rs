//! Formatting.

use alloc::rc::Rc;

use hadris_fat::{FatKind, FatOptions, VolumeLabel};
use hadris_fs::DateTime;
use hadris_io::ErrorKind;

use crate::BlockSource;
use crate::bytes::Bytes;
use crate::cache::{Cache, CacheLimits};
use crate::device::Device;
use crate::error::Error;

/// The area before the data that holds the signatures of other file systems, such as ext2 and NTFS, and is cleared.
const OLD_MARKS_BYTES: u64 = 128 * 1024;

/// Parameters of a new volume.
#[derive(Clone, Copy, Debug, Default)]
pub struct FormatOptions<'a> {
    /// Cluster size in bytes: a power of two from 512 to 32 KiB. By default it follows from the disk's size.
    pub cluster_bytes: Option<u32>,
    /// Volume label: at most 11 ASCII characters, without `"*+,./:;<=>?[\]|`.
    pub label: &'a str,
    /// Creation time, in seconds since 1970.
    pub time_s: i64,
    /// Volume serial number.
    pub serial: u32,
}

/// A volume that was formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formatted {
    /// FAT width: 12, 16 or 32.
    pub bits: u32,
    /// Cluster size in bytes.
    pub cluster_bytes: u32,
    /// Number of clusters.
    pub clusters: u32,
}

/// Formats the whole disk: FAT12 below 16 MiB, FAT16 below 512 MiB, else FAT32. If a given cluster size makes too many
/// or too few clusters for that width, the first width that allows their number is used. The previous content is lost.
///
/// # Errors
/// The disk is too small, too large or read-only, or failed; or the label or cluster size is invalid.
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
        // The width suggested by the disk's size may not allow the number of clusters of the given size.
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

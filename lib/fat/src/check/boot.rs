//! The boot sector and its backup, the dirty flag, and FAT32's FSINFO sector.

use alloc::format;
use alloc::string::String;

use hadris_fat_raw::{BOOT_SECTOR_LEN, FSINFO_LEAD_SIG, FSINFO_STRUC_SIG, FSINFO_TRAIL_SIG, FatKind, Geometry};

use crate::bytes::Bytes;
use crate::check::{Checker, Log, Remedy};
use crate::error::Error;
use crate::recognise::recognise;
use crate::{BlockSource, DiskError};

/// Offset of the backup boot sector's number (FAT32).
const COPY_SECTOR_AT: usize = 50;
/// Means no backup, as does 0.
const NO_COPY: u16 = u16::MAX;
/// Usual sector of the backup, tried when the boot sector is damaged.
const USUAL_COPY_SECTOR: u16 = 6;
const USUAL_COPY_AT: u64 = 6 * 512;
/// Offsets of the dirty flag in the boot sector, as set by Linux and Windows.
const IN_USE_AT: [(FatKind, usize); 3] = [(FatKind::Fat12, 37), (FatKind::Fat16, 37), (FatKind::Fat32, 65)];
const IN_USE: u8 = 1;
/// Offsets of the extended boot signature and the label.
const LABELS_AT: [(FatKind, usize, usize); 3] =
    [(FatKind::Fat12, 38, 43), (FatKind::Fat16, 38, 43), (FatKind::Fat32, 66, 71)];
const HAS_LABEL: u8 = 0x29;
const NO_LABEL: [u8; 11] = *b"NO NAME    ";
/// The FSINFO sector.
#[derive(layout::Record)]
#[record(bytes = 512, order = "little")]
struct FreeNote {
    /// [`FSINFO_LEAD_SIG`].
    #[at(0)]
    lead: u32,
    /// [`FSINFO_STRUC_SIG`].
    #[at(484)]
    structure: u32,
    /// Number of free clusters, or [`UNKNOWN`].
    free: u32,
    /// Hint for the next free cluster, or [`UNKNOWN`].
    next: u32,
    /// [`FSINFO_TRAIL_SIG`].
    #[at(508)]
    trail: u32,
}

const UNKNOWN: u32 = u32::MAX;

/// Reads the boot sector, or its backup if it is damaged.
pub(super) async fn check<S: BlockSource>(bytes: &Bytes<S>, log: &mut Log) -> Result<Geometry, Error> {
    let mut sector = [0; BOOT_SECTOR_LEN];
    match bytes.read(0, &mut sector).await {
        Ok(()) => {}
        Err(DiskError::Short) => return Err(Error::NotRecognised),
        Err(error) => return Err(error.into()),
    }
    let geometry = match recognise(&sector) {
        Ok(geometry) => geometry,
        Err(error) => return from_copy(bytes, log, error).await,
    };
    if geometry.data_end() > bytes.cache().size_bytes() {
        return Err(Error::Damaged("the volume is larger than its disk"));
    }
    let number = u16::from_le_bytes([sector[COPY_SECTOR_AT], sector[COPY_SECTOR_AT + 1]]);
    let is_outside = geometry.kind() == FatKind::Fat32 && number >= geometry.reserved_sectors() && number != NO_COPY;
    let text = || format!("the backup boot sector cannot be in sector {number}");
    if is_outside && log.problem(Remedy::Safe, text()) {
        let usual = if geometry.reserved_sectors() > USUAL_COPY_SECTOR { USUAL_COPY_SECTOR } else { 0 };
        sector[COPY_SECTOR_AT..COPY_SECTOR_AT + 2].copy_from_slice(&usual.to_le_bytes());
        bytes.write(0, &sector).await?;
    }
    check_copy(bytes, log, &geometry, &sector).await?;
    Ok(geometry)
}

async fn from_copy<S: BlockSource>(bytes: &Bytes<S>, log: &mut Log, error: Error) -> Result<Geometry, Error> {
    let mut copy = [0; BOOT_SECTOR_LEN];
    let found = bytes.read(USUAL_COPY_AT, &mut copy).await.map_err(Error::from).and_then(|()| recognise(&copy));
    let Ok(geometry) = found else { return Err(error) };
    if geometry.kind() != FatKind::Fat32 || geometry.data_end() > bytes.cache().size_bytes() {
        return Err(error);
    }
    if log.problem(Remedy::Safe, String::from("the boot sector is damaged, its backup is intact")) {
        bytes.write(0, &copy).await?;
    }
    Ok(geometry)
}

/// Offset of the backup boot sector, if there is one.
fn copy_place(geometry: &Geometry, sector: u16) -> Option<u64> {
    let has_copy = geometry.kind() == FatKind::Fat32 && sector != 0 && sector < geometry.reserved_sectors();
    has_copy.then(|| u64::from(sector) * u64::from(geometry.sector_size()))
}

async fn check_copy<S: BlockSource>(
    bytes: &Bytes<S>,
    log: &mut Log,
    geometry: &Geometry,
    sector: &[u8; BOOT_SECTOR_LEN],
) -> Result<(), Error> {
    let number = u16::from_le_bytes([sector[COPY_SECTOR_AT], sector[COPY_SECTOR_AT + 1]]);
    let Some(offset) = copy_place(geometry, number) else { return Ok(()) };
    let mut copy = [0; BOOT_SECTOR_LEN];
    bytes.read(offset, &mut copy).await?;
    // The dirty flag is not always set in both.
    let mut wanted = *sector;
    wanted[65] = copy[65];
    if wanted != copy && log.problem(Remedy::Safe, String::from("the backup boot sector differs")) {
        bytes.write(offset, &wanted).await?;
    }
    Ok(())
}

impl<S: BlockSource> Checker<S> {
    fn in_use_at(&self) -> u64 {
        let place = IN_USE_AT.iter().find(|(kind, _)| *kind == self.kind());
        place.map_or(37, |(_, at)| *at as u64)
    }

    /// Checks whether the volume is marked dirty.
    pub(super) async fn check_clean(&mut self) -> Result<bool, Error> {
        let mut mark = [0];
        self.bytes.read(self.in_use_at(), &mut mark).await?;
        let is_dirty = mark[0] & IN_USE != 0 || self.is_marked_dirty().await?;
        if is_dirty {
            self.log.problem(Remedy::Safe, String::from("the volume was not cleanly unmounted"));
        }
        Ok(is_dirty)
    }

    pub(super) async fn mark_clean(&mut self) -> Result<(), Error> {
        let mut mark = [0];
        self.bytes.read(self.in_use_at(), &mut mark).await?;
        if mark[0] & IN_USE != 0 {
            self.bytes.write(self.in_use_at(), &[mark[0] & !IN_USE]).await?;
        }
        self.clear_dirty_mark().await
    }

    /// Checks the volume label, which is stored in the root folder and the boot sector.
    pub(super) async fn check_label(&mut self) -> Result<(), Error> {
        let Some((_, mark_at, label_at)) = LABELS_AT.iter().find(|(kind, ..)| *kind == self.kind()) else {
            return Ok(());
        };
        let (mut mark, mut label) = ([0], NO_LABEL);
        self.bytes.read(*mark_at as u64, &mut mark).await?;
        self.bytes.read(*label_at as u64, &mut label).await?;
        let wanted = self.label.unwrap_or(NO_LABEL);
        if mark[0] != HAS_LABEL || label == wanted {
            return Ok(());
        }
        if self.log.problem(Remedy::Safe, String::from("the labels in boot sector and root folder differ")) {
            self.bytes.write(*label_at as u64, &wanted).await?;
            if let Some(copy) = self.copy_offset().await? {
                self.bytes.write(copy + *label_at as u64, &wanted).await?;
            }
        }
        Ok(())
    }

    /// Offset of FAT32's backup boot sector.
    async fn copy_offset(&self) -> Result<Option<u64>, Error> {
        let mut number = [0; 2];
        self.bytes.read(COPY_SECTOR_AT as u64, &mut number).await?;
        Ok(copy_place(&self.geometry, u16::from_le_bytes(number)))
    }

    /// Checks FAT32's count of free clusters.
    pub(super) async fn check_free_count(&mut self) -> Result<(), Error> {
        let Some(sector_number) = self.geometry.fs_info_sector() else { return Ok(()) };
        let offset = u64::from(sector_number) * u64::from(self.geometry.sector_size());
        let mut sector = [0; BOOT_SECTOR_LEN];
        self.bytes.read(offset, &mut sector).await?;
        let free = self.free_clusters().await?;
        let FreeNote { lead, structure, free: noted, next, trail } = FreeNote::from_bytes(&sector);
        let is_signed = (lead, structure, trail) == (FSINFO_LEAD_SIG, FSINFO_STRUC_SIG, FSINFO_TRAIL_SIG);
        let text = if !is_signed {
            String::from("the FSINFO sector is damaged")
        } else if noted != free && noted != UNKNOWN {
            format!("wrong free cluster count: {noted} recorded, {free} free")
        } else if next != UNKNOWN && !(2..=self.geometry.max_cluster()).contains(&next) {
            format!("the next free cluster hint, {next}, does not exist")
        } else {
            return Ok(());
        };
        if self.log.problem(Remedy::Safe, text) {
            let (lead, structure, trail) = (FSINFO_LEAD_SIG, FSINFO_STRUC_SIG, FSINFO_TRAIL_SIG);
            FreeNote { lead, structure, free, next: UNKNOWN, trail }.write(&mut sector);
            self.bytes.write(offset, &sector).await?;
        }
        Ok(())
    }
}

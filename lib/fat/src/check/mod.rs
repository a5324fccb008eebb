//! Checking and repair of an unmounted volume.
//!
//! Key types: [`CheckMode`], [`CheckReport`]. The order: boot sector and backup; the copies of the FAT; all folders
//! from the root on with their chains; clusters in use that nothing leads to. A chain is valid up to its first
//! impossible link, and what follows is judged as if that were repaired. Where two chains meet, the cluster belongs to
//! the one whose length fits its file ([`owners`]). Lost clusters are freed, as other systems do: only names lead to
//! content. Deliberately not here: the content of files.

mod boot;
mod entries;
mod folder;
mod owners;
mod table;

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hadris_fat_raw::{FatKind, Geometry, RootLocation};

use crate::BlockSource;
use crate::bytes::Bytes;
use crate::cache::{Cache, CacheLimits};
use crate::error::Error;
use folder::{Folder, Place};
use owners::Trust;
use table::Claims;

/// Maximum lines of a report; further problems are only counted.
const MAX_LINES: usize = 200;

/// Which problems to repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckMode {
    /// Report only.
    Report,
    /// Repair only without loss of anything reachable by name.
    Preen,
    /// Repair everything.
    Repair,
}

/// How a problem can be repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    /// Without loss of anything that a name leads to.
    Safe,
    /// Something is truncated or renamed.
    Lossy,
    /// Not repairable.
    None,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// A line per problem, up to a limit.
    pub lines: Vec<String>,
    /// Number of problems.
    pub problems: u32,
    /// Number of problems left.
    pub left: u32,
    /// FAT width: 12, 16 or 32.
    pub bits: u32,
    /// Number of files.
    pub files: u32,
    /// Number of folders, including the root.
    pub folders: u32,
    /// Clusters in use.
    pub used_clusters: u32,
    /// Total clusters.
    pub clusters: u32,
    /// Cluster size in bytes.
    pub cluster_bytes: u32,
}

impl CheckReport {
    /// Whether no problem was found.
    pub fn is_clean(&self) -> bool {
        self.problems == 0
    }
}

/// Checks the volume on a disk that is not otherwise in use.
///
/// # Errors
/// Not a FAT volume, or its boot sector cannot be repaired; the disk failed or is read-only.
pub async fn check<S: BlockSource>(source: S, mode: CheckMode) -> Result<CheckReport, Error> {
    if mode != CheckMode::Report && source.is_read_only() {
        return Err(Error::ReadOnly);
    }
    let bytes = Bytes::new(Cache::new(source, CacheLimits::default()));
    let mut log = Log { mode, report: CheckReport::default() };
    let geometry = boot::check(&bytes, &mut log).await?;
    let (claims, reserved) = (Claims::new(&geometry), Claims::new(&geometry));
    let mut checker = Checker { claims, reserved, copy: geometry.active_fat(), bytes, geometry, label: None, log };
    checker.run().await?;
    Ok(checker.log.report)
}

/// The report, and the mode.
struct Log {
    mode: CheckMode,
    report: CheckReport,
}

impl Log {
    /// Reports a problem; returns whether to repair it.
    fn problem(&mut self, remedy: Remedy, text: String) -> bool {
        let is_repaired = match self.mode {
            CheckMode::Report => false,
            CheckMode::Preen => remedy == Remedy::Safe,
            CheckMode::Repair => remedy != Remedy::None,
        };
        self.report.problems += 1;
        self.report.left += u32::from(!is_repaired);
        if self.report.lines.len() < MAX_LINES {
            self.report.lines.push(if is_repaired { format!("{text}: repaired") } else { text });
        }
        is_repaired
    }
}

struct Checker<S: BlockSource> {
    bytes: Bytes<S>,
    geometry: Geometry,
    /// The copy of the FAT that is taken as valid.
    copy: u8,
    claims: Claims,
    /// Clusters of intact chains.
    reserved: Claims,
    /// The root folder's label entry.
    label: Option<[u8; 11]>,
    log: Log,
}

impl<S: BlockSource> Checker<S> {
    async fn run(&mut self) -> Result<(), Error> {
        let report = &mut self.log.report;
        report.bits = self.geometry.kind().entry_bits() as u32;
        report.clusters = self.geometry.max_cluster() - 1;
        report.cluster_bytes = self.geometry.cluster_size();
        self.check_copies().await?;
        let was_dirty = self.check_clean().await?;
        self.reserve_intact_chains().await?;
        self.check_tree().await?;
        self.check_label().await?;
        self.check_lost().await?;
        self.check_free_count().await?;
        if self.log.mode != CheckMode::Report {
            if was_dirty && self.log.report.left == 0 {
                self.mark_clean().await?;
            }
            self.bytes.flush().await?;
        }
        Ok(())
    }

    /// Checks all folders, from the root on.
    async fn check_tree(&mut self) -> Result<(), Error> {
        let root = match self.geometry.root() {
            RootLocation::Fixed { start, size } => Folder::root(Place::Fixed { start, size }),
            RootLocation::Cluster(first) => {
                let mut clusters = Vec::new();
                let chain = self.follow(first, u32::MAX, Trust::Intact, Some(&mut clusters)).await?;
                if let Some(broken) = chain.broken {
                    let remedy = if chain.last.is_some() { Remedy::Lossy } else { Remedy::None };
                    if self.log.problem(remedy, format!("/: its chain {broken}")) {
                        self.end_chain(chain.last).await?;
                    }
                }
                Folder::root(Place::Clusters(clusters))
            }
        };
        let mut waiting = VecDeque::from([root]);
        while let Some(folder) = waiting.pop_front() {
            self.log.report.folders += 1;
            self.check_folder(&folder, &mut waiting).await?;
        }
        Ok(())
    }

    fn kind(&self) -> FatKind {
        self.geometry.kind()
    }
}

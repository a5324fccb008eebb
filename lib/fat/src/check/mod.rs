//! Checking a volume that is not mounted, and putting it right.
//!
//! Key types: [`CheckMode`], [`CheckReport`]. The boot sector and its copy come first, then the copies of the FAT,
//! then every folder from the root on with all chains, and at the end what of the FAT nothing led to. A chain is
//! believed up to the first link that cannot be right; so what follows is judged as if that were mended. Where two
//! chains meet, the cluster belongs to the one that is as long as its file ([`owners`]). What has no name is given
//! up, as other systems do: only names lead to content. Deliberately not here: what files hold.

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

/// Lines of a report; more are only counted.
const MAX_LINES: usize = 200;

/// What to do about what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckMode {
    /// Tell.
    Look,
    /// Put right what can be without losing anything that a name leads to.
    Mend,
    /// Put right everything that can be.
    Repair,
}

/// How a problem can be put right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    /// Nothing that a name leads to is lost.
    Safe,
    /// Something is cut off, or gets another name.
    Lossy,
    /// Not at all.
    None,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// A line for each problem, up to a limit.
    pub lines: Vec<String>,
    /// How many problems there are.
    pub problems: u32,
    /// How many of them are left.
    pub left: u32,
    /// 12, 16 or 32.
    pub bits: u32,
    /// Files that were found.
    pub files: u32,
    /// Folders that were found, with the root.
    pub folders: u32,
    /// Clusters in use.
    pub used_clusters: u32,
    /// All clusters.
    pub clusters: u32,
    /// Bytes of a cluster.
    pub cluster_bytes: u32,
}

impl CheckReport {
    /// Whether nothing was wrong.
    pub fn is_clean(&self) -> bool {
        self.problems == 0
    }
}

/// Checks the volume on a disk that nobody else uses.
///
/// # Errors
/// There is no FAT volume, or its boot sector cannot be mended; the disk failed, or cannot be written to.
pub async fn check<S: BlockSource>(source: S, mode: CheckMode) -> Result<CheckReport, Error> {
    if mode != CheckMode::Look && source.is_read_only() {
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

/// What was found so far, and what to do about it.
struct Log {
    mode: CheckMode,
    report: CheckReport,
}

impl Log {
    /// Tells of a problem. Whether it is to be put right.
    fn problem(&mut self, remedy: Remedy, text: String) -> bool {
        let is_mended = match self.mode {
            CheckMode::Look => false,
            CheckMode::Mend => remedy == Remedy::Safe,
            CheckMode::Repair => remedy != Remedy::None,
        };
        self.report.problems += 1;
        self.report.left += u32::from(!is_mended);
        if self.report.lines.len() < MAX_LINES {
            self.report.lines.push(if is_mended { format!("{text}: mended") } else { text });
        }
        is_mended
    }
}

struct Checker<S: BlockSource> {
    bytes: Bytes<S>,
    geometry: Geometry,
    /// The copy of the FAT that is believed.
    copy: u8,
    claims: Claims,
    /// Clusters of chains that are beyond doubt.
    reserved: Claims,
    /// The root folder's entry for the volume's label.
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
        self.reserve_sure_chains().await?;
        self.check_tree().await?;
        self.check_label().await?;
        self.check_lost().await?;
        self.check_free_count().await?;
        if self.log.mode != CheckMode::Look {
            if was_dirty && self.log.report.left == 0 {
                self.mark_clean().await?;
            }
            self.bytes.flush().await?;
        }
        Ok(())
    }

    /// Every folder, from the root on.
    async fn check_tree(&mut self) -> Result<(), Error> {
        let root = match self.geometry.root() {
            RootLocation::Fixed { start, size } => Folder::root(Place::Fixed { start, size }),
            RootLocation::Cluster(first) => {
                let mut clusters = Vec::new();
                let chain = self.follow(first, u32::MAX, Trust::Sure, Some(&mut clusters)).await?;
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

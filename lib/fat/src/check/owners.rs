//! The owner of a cluster that two chains lead to.
//!
//! A chain is intact when it ends where it should: a file's after as many clusters as its size needs; a folder's at
//! all, if its content is that of a folder. Before any repair, the clusters of all intact chains are reserved, so that
//! a chain that a crash led astray neither gets them nor is cut in the middle of them.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use hadris_fat_raw::{FIRST_DATA_CLUSTER, RootLocation, ShortEntry, Slot};

use crate::BlockSource;
use crate::check::Checker;
use crate::check::folder::{Folder, MAX_SLOTS, Place, SLOT_BYTES};
use crate::error::Error;

/// How far a chain can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Intact.
    Intact,
    /// Not intact.
    Suspect,
}

impl<S: BlockSource> Checker<S> {
    /// Reserves the clusters of all intact chains.
    pub(super) async fn reserve_intact_chains(&mut self) -> Result<(), Error> {
        let root = match self.geometry.root() {
            RootLocation::Fixed { start, size } => Place::Fixed { start, size },
            RootLocation::Cluster(first) => Place::Clusters(self.reserve_folder(first).await?),
        };
        let mut waiting = VecDeque::from([Folder::root(root)]);
        while let Some(folder) = waiting.pop_front() {
            if folder.parent.is_none() || !self.is_garbage(&folder).await? {
                self.reserve_in(&folder, &mut waiting).await?;
            }
        }
        Ok(())
    }

    async fn reserve_in(&mut self, folder: &Folder, waiting: &mut VecDeque<Folder>) -> Result<(), Error> {
        for index in 0..MAX_SLOTS {
            let Some(offset) = self.slot_offset(&folder.place, index) else { break };
            let mut raw = [0; SLOT_BYTES as usize];
            self.bytes.read(offset, &mut raw).await?;
            let entry = match Slot::parse(&raw) {
                Slot::End => break,
                Slot::Short(entry) if !entry.is_label() && !entry.is_dot() => entry,
                _ => continue,
            };
            let first = entry.first_cluster(self.kind());
            if entry.is_dir() {
                let clusters = self.reserve_folder(first).await?;
                if !clusters.is_empty() {
                    let place = Place::Clusters(clusters);
                    waiting.push_back(Folder { place, path: String::new(), parent: Some(folder.first()) });
                }
            } else {
                self.reserve_file(first, self.needed(&entry)).await?;
            }
        }
        Ok(())
    }

    /// Clusters of a file of this size.
    pub(super) fn needed(&self, entry: &ShortEntry) -> u32 {
        entry.size().div_ceil(self.geometry.cluster_size())
    }

    /// Reserves a folder's chain if it is intact and none of it is reserved; returns its clusters.
    async fn reserve_folder(&mut self, first: u32) -> Result<Vec<u32>, Error> {
        let Some(count) = self.length(first, self.max_folder_clusters()).await? else { return Ok(Vec::new()) };
        let mut clusters = Vec::new();
        let mut cluster = first;
        for _ in 0..count {
            if self.reserved.has(cluster) {
                return Ok(Vec::new());
            }
            clusters.push(cluster);
            cluster = self.entry(cluster).await?;
        }
        clusters.iter().for_each(|cluster| self.reserved.claim(*cluster));
        Ok(clusters)
    }

    async fn reserve_file(&mut self, first: u32, needed: u32) -> Result<(), Error> {
        if self.trust_in_file(first, needed).await? == Trust::Suspect {
            return Ok(());
        }
        let mut cluster = first;
        for _ in 0..needed {
            if !self.reserved.has(cluster) {
                self.reserved.claim(cluster);
            }
            cluster = self.entry(cluster).await?;
        }
        Ok(())
    }

    pub(super) async fn trust_in_file(&self, first: u32, needed: u32) -> Result<Trust, Error> {
        let is_intact = needed > 0 && self.length(first, needed).await? == Some(needed);
        Ok(if is_intact { Trust::Intact } else { Trust::Suspect })
    }

    pub(super) async fn trust_in_folder(&self, first: u32) -> Result<Trust, Error> {
        let length = self.length(first, self.max_folder_clusters()).await?;
        Ok(if length.is_some() { Trust::Intact } else { Trust::Suspect })
    }

    /// Clusters of a folder with the maximum number of slots.
    fn max_folder_clusters(&self) -> u32 {
        // At most 4096.
        (MAX_SLOTS * SLOT_BYTES).div_ceil(u64::from(self.geometry.cluster_size())) as u32
    }

    /// Number of clusters of a chain that ends properly after at most `most`; `None` otherwise.
    async fn length(&self, first: u32, most: u32) -> Result<Option<u32>, Error> {
        let mut cluster = first;
        for count in 1..=most {
            if !(FIRST_DATA_CLUSTER..=self.geometry.max_cluster()).contains(&cluster) {
                return Ok(None);
            }
            let value = self.entry(cluster).await?;
            if self.kind().is_end_of_chain(value) {
                return Ok(Some(count));
            }
            cluster = value;
        }
        Ok(None)
    }
}

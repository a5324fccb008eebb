//! Whose a cluster is that two chains lead to.
//!
//! A chain is beyond doubt when it ends where it should: a file's after as many clusters as its size needs, a folder's
//! at all, if its content is a folder's. Before anything is put right, the clusters of all such chains are reserved, so that a
//! chain that a crash has led astray neither gets them nor is cut in the middle of them.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use hadris_fat_raw::{FIRST_DATA_CLUSTER, RootLocation, ShortEntry, Slot};

use crate::BlockSource;
use crate::check::Checker;
use crate::check::folder::{Folder, MAX_SLOTS, Place, SLOT_BYTES};
use crate::error::Error;

/// How much a chain can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It is as it should be.
    Sure,
    /// Something about it is wrong.
    Doubtful,
}

impl<S: BlockSource> Checker<S> {
    /// Reserves the clusters of all chains that are beyond doubt.
    pub(super) async fn reserve_sure_chains(&mut self) -> Result<(), Error> {
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

    /// Clusters that a file of this size has.
    pub(super) fn needed(&self, entry: &ShortEntry) -> u32 {
        entry.size().div_ceil(self.geometry.cluster_size())
    }

    /// Reserves a folder's chain if it is beyond doubt and nothing of it is reserved. Gives its clusters.
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
        if self.trust_in_file(first, needed).await? == Trust::Doubtful {
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
        let is_sure = needed > 0 && self.length(first, needed).await? == Some(needed);
        Ok(if is_sure { Trust::Sure } else { Trust::Doubtful })
    }

    pub(super) async fn trust_in_folder(&self, first: u32) -> Result<Trust, Error> {
        let length = self.length(first, self.max_folder_clusters()).await?;
        Ok(if length.is_some() { Trust::Sure } else { Trust::Doubtful })
    }

    /// Clusters of a folder with as many slots as it can have.
    fn max_folder_clusters(&self) -> u32 {
        // At most 4096.
        (MAX_SLOTS * SLOT_BYTES).div_ceil(u64::from(self.geometry.cluster_size())) as u32
    }

    /// How many clusters a chain has that ends in order after at most `most`; nothing for any other.
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

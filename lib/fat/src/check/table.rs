//! The FAT: its copies, chains, and lost clusters.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use hadris_fat_raw::{FIRST_DATA_CLUSTER, Geometry};

use crate::BlockSource;
use crate::check::owners::Trust;
use crate::check::{Checker, Remedy};
use crate::error::Error;

/// Bytes compared at a time.
const PIECE_BYTES: usize = 4096;

/// The clusters that something leads to.
pub(crate) struct Claims {
    bits: Vec<u64>,
    count: u32,
}

impl Claims {
    pub(crate) fn new(geometry: &Geometry) -> Claims {
        Claims { bits: vec![0; geometry.max_cluster() as usize / 64 + 1], count: 0 }
    }

    pub(super) fn has(&self, cluster: u32) -> bool {
        self.bits.get(cluster as usize / 64).is_some_and(|word| word >> (cluster % 64) & 1 == 1)
    }

    pub(super) fn claim(&mut self, cluster: u32) {
        if let Some(word) = self.bits.get_mut(cluster as usize / 64) {
            *word |= 1 << (cluster % 64);
            self.count += 1;
        }
    }
}

/// Why a chain is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    OutOfRange(u32),
    Free(u32),
    Bad(u32),
    Shared(u32),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::OutOfRange(cluster) => write!(f, "leads to cluster {cluster}, which does not exist"),
            Broken::Free(cluster) => write!(f, "leads to cluster {cluster}, which is free"),
            Broken::Bad(cluster) => write!(f, "leads to cluster {cluster}, which is marked as bad"),
            Broken::Shared(cluster) => write!(f, "leads to cluster {cluster}, which belongs to a chain already"),
        }
    }
}

/// The valid part of a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    pub(crate) clusters: u32,
    pub(crate) last: Option<u32>,
    pub(crate) broken: Option<Broken>,
    /// Whether the chain continues after the requested number of clusters.
    pub(crate) goes_on: bool,
}

impl Chain {
    pub(crate) const NONE: Chain = Chain { clusters: 0, last: None, broken: None, goes_on: false };
}

impl<S: BlockSource> Checker<S> {
    fn place(&self, copy: u8, cluster: u32) -> u64 {
        self.geometry.fat_copy(copy) + self.kind().entry_offset(u64::from(cluster))
    }

    /// A cluster's entry as stored, with FAT32's reserved bits.
    async fn stored(&self, copy: u8, cluster: u32) -> Result<u32, Error> {
        let mut bytes = [0; 4];
        let length = self.kind().entry_len();
        self.bytes.read(self.place(copy, cluster), &mut bytes[..length]).await?;
        Ok(self.kind().decode(u64::from(cluster), &bytes))
    }

    pub(super) async fn entry(&self, cluster: u32) -> Result<u32, Error> {
        Ok(self.stored(self.copy, cluster).await? & self.kind().mask())
    }

    async fn set_entry(&self, cluster: u32, value: u32) -> Result<(), Error> {
        for copy in self.copies() {
            let mut bytes = [0; 4];
            let length = self.kind().entry_len();
            let place = self.place(copy, cluster);
            self.bytes.read(place, &mut bytes[..length]).await?;
            self.kind().encode(u64::from(cluster), value, &mut bytes);
            self.bytes.write(place, &bytes[..length]).await?;
        }
        Ok(())
    }

    /// The copies that must be equal.
    fn copies(&self) -> core::ops::Range<u8> {
        if self.geometry.mirrored() { 0..self.geometry.fat_count() } else { self.copy..self.copy + 1 }
    }

    /// Checks the beginning of the FAT, and that its copies are equal.
    pub(crate) async fn check_copies(&mut self) -> Result<(), Error> {
        let mut media = [0];
        self.bytes.read(21, &mut media).await?;
        let mut good = None;
        for copy in self.copies() {
            let (first, second) = (self.stored(copy, 0).await?, self.stored(copy, 1).await?);
            if good.is_none() && self.kind().reserved_entries_valid(media[0], first, second) {
                good = Some(copy);
            }
        }
        self.copy = good.unwrap_or(self.copy);
        if good.is_none() && self.log.problem(Remedy::Safe, String::from("the FAT begins with wrong entries")) {
            let mask = self.kind().mask();
            self.set_entry(0, mask & !0xFF | u32::from(media[0])).await?;
            self.set_entry(1, mask).await?;
        }
        for copy in self.copies().filter(|copy| *copy != self.copy) {
            if !self.is_same(copy).await?
                && self.log.problem(Remedy::Safe, format!("copy {} of the FAT differs", copy + 1))
            {
                self.copy_over(copy).await?;
            }
        }
        Ok(())
    }

    /// Bytes of a copy that are in use.
    fn table_bytes(&self) -> u64 {
        let end = self.kind().entry_offset(u64::from(self.geometry.max_cluster())) + self.kind().entry_len() as u64;
        end.min(self.geometry.fat_size())
    }

    async fn is_same(&self, copy: u8) -> Result<bool, Error> {
        let (mut left, mut right) = ([0; PIECE_BYTES], [0; PIECE_BYTES]);
        let mut at = 0;
        while at < self.table_bytes() {
            let count = (self.table_bytes() - at).min(PIECE_BYTES as u64) as usize;
            self.bytes.read(self.geometry.fat_copy(self.copy) + at, &mut left[..count]).await?;
            self.bytes.read(self.geometry.fat_copy(copy) + at, &mut right[..count]).await?;
            if left[..count] != right[..count] {
                return Ok(false);
            }
            at += count as u64;
        }
        Ok(true)
    }

    async fn copy_over(&self, copy: u8) -> Result<(), Error> {
        let mut piece = [0; PIECE_BYTES];
        let mut at = 0;
        while at < self.geometry.fat_size() {
            let count = (self.geometry.fat_size() - at).min(PIECE_BYTES as u64) as usize;
            self.bytes.read(self.geometry.fat_copy(self.copy) + at, &mut piece[..count]).await?;
            self.bytes.write(self.geometry.fat_copy(copy) + at, &piece[..count]).await?;
            at += count as u64;
        }
        Ok(())
    }

    /// Follows and claims up to `most` clusters of a chain, as far as it is valid: the rest may belong to another
    /// chain. Only an intact chain may claim reserved clusters.
    pub(crate) async fn follow(
        &mut self,
        first: u32,
        most: u32,
        trust: Trust,
        mut clusters: Option<&mut Vec<u32>>,
    ) -> Result<Chain, Error> {
        let mut chain = Chain::NONE;
        let mut cluster = first;
        loop {
            if chain.clusters == most {
                return Ok(Chain { goes_on: true, ..chain });
            }
            let broken = if !(FIRST_DATA_CLUSTER..=self.geometry.max_cluster()).contains(&cluster) {
                Some(Broken::OutOfRange(cluster))
            } else if self.claims.has(cluster) || trust == Trust::Suspect && self.reserved.has(cluster) {
                Some(Broken::Shared(cluster))
            } else {
                None
            };
            if broken.is_some() {
                return Ok(Chain { broken, ..chain });
            }
            let value = self.entry(cluster).await?;
            if value == 0 {
                return Ok(Chain { broken: Some(Broken::Free(cluster)), ..chain });
            }
            if self.kind().is_bad(value) {
                return Ok(Chain { broken: Some(Broken::Bad(cluster)), ..chain });
            }
            self.claims.claim(cluster);
            chain.clusters += 1;
            chain.last = Some(cluster);
            if let Some(clusters) = clusters.as_deref_mut() {
                clusters.push(cluster);
            }
            if self.kind().is_end_of_chain(value) {
                return Ok(chain);
            }
            cluster = value;
        }
    }

    /// Makes this cluster the last of its chain.
    pub(crate) async fn end_chain(&self, last: Option<u32>) -> Result<(), Error> {
        match last {
            Some(last) => self.set_entry(last, self.kind().mask()).await,
            None => Ok(()),
        }
    }

    /// Frees lost clusters.
    pub(crate) async fn check_lost(&mut self) -> Result<(), Error> {
        let mut lost = 0_u32;
        for cluster in FIRST_DATA_CLUSTER..=self.geometry.max_cluster() {
            lost += u32::from(self.is_lost(cluster).await?);
        }
        // A chain without a name that was cut or not visited may still be needed by a repair.
        let remedy = if self.log.report.left == 0 { Remedy::Safe } else { Remedy::Lossy };
        if lost > 0 && self.log.problem(remedy, format!("{lost} lost clusters")) {
            for cluster in FIRST_DATA_CLUSTER..=self.geometry.max_cluster() {
                if self.is_lost(cluster).await? {
                    self.set_entry(cluster, 0).await?;
                }
            }
        }
        self.log.report.used_clusters = self.claims.count;
        Ok(())
    }

    async fn is_lost(&self, cluster: u32) -> Result<bool, Error> {
        if self.claims.has(cluster) {
            return Ok(false);
        }
        let value = self.entry(cluster).await?;
        Ok(value != 0 && !self.kind().is_bad(value))
    }

    /// Number of free clusters according to the FAT.
    pub(crate) async fn free_clusters(&self) -> Result<u32, Error> {
        let mut free = 0;
        for cluster in FIRST_DATA_CLUSTER..=self.geometry.max_cluster() {
            free += u32::from(self.entry(cluster).await? == 0);
        }
        Ok(free)
    }

    /// Whether the FAT marks the volume dirty.
    pub(crate) async fn is_marked_dirty(&self) -> Result<bool, Error> {
        let clean = self.kind().clean_bit();
        Ok(clean != 0 && self.stored(self.copy, 1).await? & clean == 0)
    }

    pub(crate) async fn clear_dirty_mark(&self) -> Result<(), Error> {
        let value = self.stored(self.copy, 1).await?;
        self.set_entry(1, value | self.kind().clean_bit()).await
    }
}

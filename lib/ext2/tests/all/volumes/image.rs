//! A volume's bytes, with the offsets to damage.

/// The bytes of a volume.
pub struct Image {
    pub bytes: Vec<u8>,
}

impl Image {
    pub fn new(bytes: Vec<u8>) -> Image {
        Image { bytes }
    }

    pub fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes[at..at + 2].try_into().unwrap())
    }

    pub fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().unwrap())
    }

    pub fn put16(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    pub fn put32(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    pub fn block_bytes(&self) -> usize {
        1024 << self.u32(1024 + 24)
    }

    /// Returns the offset of a block.
    pub fn block(&self, number: u32) -> usize {
        number as usize * self.block_bytes()
    }

    /// Returns the offset of the superblock's copy in a group.
    pub fn backup(&self, group: u32) -> usize {
        self.block(self.u32(1024 + 20) + group * self.u32(1024 + 32))
    }

    /// Returns the offset of a group's descriptor.
    pub fn descriptor(&self, group: u32) -> usize {
        self.block(self.u32(1024 + 20) + 1) + group as usize * 32
    }

    pub fn inode(&self, number: u32) -> usize {
        let per_group = self.u32(1024 + 40);
        let inode_bytes = if self.u32(1024 + 76) == 0 { 128 } else { usize::from(self.u16(1024 + 88)) };
        let table = self.u32(self.descriptor((number - 1) / per_group) + 8);
        self.block(table) + ((number - 1) % per_group) as usize * inode_bytes
    }

    /// Returns the offset of a block number of an inode, or of its tables from 12 on.
    pub fn slot(&self, number: u32, slot: usize) -> usize {
        self.inode(number) + 40 + slot * 4
    }

    /// Returns the number of a block of an inode, direct or in the first table.
    pub fn block_of(&self, number: u32, logical: usize) -> u32 {
        if logical < 12 {
            return self.u32(self.slot(number, logical));
        }
        self.u32(self.block(self.u32(self.slot(number, 12))) + (logical - 12) * 4)
    }

    /// Returns the offset of the entry of this name in a folder.
    pub fn entry(&self, folder: u32, name: &str) -> usize {
        let blocks = self.u32(self.inode(folder) + 4) as usize / self.block_bytes();
        for logical in 0..blocks {
            let (start, mut at) = (self.block(self.block_of(folder, logical)), 0);
            while at < self.block_bytes() {
                let entry = start + at;
                let length = usize::from(self.bytes[entry + 6]);
                if self.u32(entry) != 0 && &self.bytes[entry + 8..entry + 8 + length] == name.as_bytes() {
                    return entry;
                }
                at += usize::from(self.u16(entry + 4));
            }
        }
        panic!("{name} is not in folder {folder}")
    }

    /// Returns the inode number at a path from the root.
    pub fn find(&self, path: &str) -> u32 {
        path.split('/').filter(|name| !name.is_empty()).fold(2, |folder, name| self.u32(self.entry(folder, name)))
    }

    pub fn has_feature(&self, field: usize, bit: u32) -> bool {
        self.u32(1024 + field) & bit != 0
    }
}

//! Random damage.

use super::image::Image;

/// Pseudo-random numbers.
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Returns an offset of metadata in a volume.
fn place(image: &Image, chance: &mut Chance) -> usize {
    let groups = image.u32(1024 + 4).div_ceil(image.u32(1024 + 32));
    let group = chance.below(groups as usize) as u32;
    let descriptor = image.descriptor(group);
    let block_bytes = image.block_bytes();
    let inode = 1 + chance.below(60) as u32;
    match chance.below(10) {
        0 => 1024 + chance.below(300),
        1 => descriptor + chance.below(20),
        2 => image.block(image.u32(descriptor)) + chance.below(block_bytes),
        3 => image.block(image.u32(descriptor + 4)) + chance.below(block_bytes),
        4..=6 => image.inode(inode) + chance.below(128),
        7 => image.inode(inode) + 128 + chance.below(100),
        // The first block or table of an inode: a folder's entries, numbers of blocks, attributes.
        _ => {
            let slot = [0, 0, 0, 1, 12, 13, 16][chance.below(7)];
            let block = image.u32(image.slot(inode, slot));
            let offset = if chance.below(2) == 0 { chance.below(64) } else { chance.below(block_bytes) };
            image.block(block) + offset
        }
    }
}

/// Damages a volume in a few places, rarely in many.
pub fn damage(image: &mut Image, chance: &mut Chance) {
    let count = if chance.below(8) == 0 { 200 } else { 1 + chance.below(12) };
    let places: Vec<usize> = (0..count).map(|_| place(image, chance)).collect();
    for at in places {
        let length = [1, 1, 2, 4, 4, 16, 128][chance.below(7)];
        let (at, end) = (at & !(length.min(4) - 1), at + length);
        let Some(bytes) = image.bytes.get_mut(at..end) else { continue };
        match chance.below(4) {
            0 => bytes.fill(0),
            1 => bytes[0] ^= 1 << chance.below(8),
            2 => bytes.iter_mut().for_each(|byte| *byte = chance.next() as u8),
            // A small number, which is more likely to be valid.
            _ => {
                bytes.fill(0);
                bytes[0] = chance.next() as u8;
            }
        }
    }
}

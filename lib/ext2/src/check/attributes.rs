//! Extended attributes, in a block that several inodes may use, or in the inode itself. They are never modified here,
//! only removed if damaged.

use alloc::vec::Vec;

use super::node::Node;
use super::state::{AttributeUse, Checker};
use super::superblock::feature;
use super::{CheckError, Fault};
use crate::format::attributes::{self, Place};
use crate::format::read_u32;
use block_source::BlockSource;

impl<S: BlockSource> Checker<'_, S> {
    /// Checks an inode's attribute block. Returns whether it has a valid one.
    pub(super) async fn check_attribute_block(&mut self, node: &mut Node) -> Result<bool, CheckError> {
        let (inode, block) = (node.number, node.attribute_block());
        if block == 0 {
            return Ok(false);
        }
        let usable = self.volume.has(feature::ATTRIBUTES) && self.is_legal(block);
        let sound = match self.attributes.get_mut(&block) {
            Some(known) if usable => {
                known.users += 1;
                !known.damaged
            }
            _ if usable => {
                let bytes = self.read_block(block).await?;
                let damaged = !are_sound(&bytes, Place::Block);
                if !damaged {
                    self.claim(block)?;
                }
                let says = attributes::users(&bytes).unwrap_or(0);
                self.attributes.insert(block, AttributeUse { says, users: 1, damaged });
                !damaged
            }
            _ => false,
        };
        if !sound && self.report(Fault::AttributeBlock { inode, block }).await? {
            node.set_attribute_block(0);
        }
        Ok(sound)
    }

    /// Compares the reference counts of attribute blocks with the actual ones.
    pub(super) async fn count_attribute_uses(&mut self) -> Result<(), CheckError> {
        let wrong: Vec<(u32, u32, u32)> = self
            .attributes
            .iter()
            .filter(|(_, used)| !used.damaged && used.users > 0 && used.says != used.users)
            .map(|(&block, used)| (block, used.says, used.users))
            .collect();
        for (block, says, right) in wrong {
            if self.report(Fault::AttributeCount { block, says, right }).await? {
                let mut bytes = self.read_block(block).await?;
                attributes::set_users(&mut bytes, right);
                self.write_block(block, &bytes).await?;
            }
        }
        Ok(())
    }
}

/// Returns whether there are attributes after an inode's known fields.
pub(super) fn has_inline(bytes: &[u8]) -> bool {
    bytes.len() >= 4 && read_u32(bytes, 0) == attributes::MAGIC
}

/// Returns whether the attributes in an inode are valid.
pub(super) fn are_inline_sound(bytes: &[u8]) -> bool {
    are_sound(bytes, Place::Inode)
}

/// Returns whether entries and values lie in the bytes without overlap, with correct hashes.
fn are_sound(bytes: &[u8], place: Place) -> bool {
    attributes::entries(bytes, place).is_some_and(|entries| entries.iter().all(|entry| entry.has_right_hash(place)))
}

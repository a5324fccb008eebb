//! Creates volumes: an empty one on a disk, or an image with content.
//!
//! Key functions: [`make_empty`] writes through a [`BlockSource`](block_source::BlockSource), for `format` on a running
//! system; [`make_image`] writes a tree of files through an [`ImageSink`], for images that the host builds. Both plan
//! the volume and fill in its metadata here.
//!
//! Not here: changing an existing volume.

mod empty;
mod error;
mod image;
mod metadata;
mod output;

pub use empty::{Made, MakeOptions, Style, make_empty};
pub use error::MakeError;
pub use image::{
    Attributes, Built, File, Folder, Foreign, ImageError, ImageOptions, ImageSink, Link, Node, make_image,
};

/// Supported block sizes in bytes.
const BLOCK_SIZES: [u32; 3] = [1024, 2048, 4096];
/// Inode size of a revision 1 volume, in bytes.
const INODE_BYTES: u32 = 256;
/// A volume has one inode for this many bytes by default.
const BYTES_PER_INODE: u64 = 8 << 10;
const LOST_NAME: &[u8] = b"lost+found";

/// Default number of inodes of a volume with one inode for `bytes_per_inode` bytes.
fn default_inodes(volume_bytes: u64, bytes_per_inode: u64) -> u32 {
    (volume_bytes / bytes_per_inode).min(u32::MAX.into()) as u32
}

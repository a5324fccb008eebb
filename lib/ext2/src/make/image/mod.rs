//! Builds an image from a description of its content, without external tools.
//!
//! The result is a volume of revision 1 with the features `filetype`, `sparse_super` and `large_file`, which Linux
//! mounts and e2fsck finds clean. The blocks of a file are contiguous. Apart from its metadata, the image is written
//! once from front to back; unwritten parts are zero, so that a sparse host file stays sparse.
//!
//! Not here: reading host folders (a [`Foreign`] file is only a number here), changing an existing volume.

mod content;
mod writer;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;
use core::ops::Range;

use crate::format::directory::LONGEST_NAME;
use crate::make::BLOCK_SIZES;

/// Destination of an image. It is all zeros before the first write.
pub trait ImageSink {
    /// Error of the sink.
    type Error;

    /// Writes bytes at a byte offset.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Copies these bytes of the [`Foreign`] file with this key to a byte offset. The default, for a sink without such
    /// files, leaves zeros.
    fn copy(&mut self, key: usize, from: Range<u64>, offset: u64) -> Result<(), Self::Error> {
        let _ = (key, from, offset);
        Ok(())
    }
}

/// A vector grows as needed; trailing zeros of the image may be missing.
impl ImageSink for Vec<u8> {
    type Error = Infallible;

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Infallible> {
        // An image larger than the address space fails like an allocation.
        let start = offset as usize;
        let end = start + bytes.len();
        if self.len() < end {
            self.resize(end, 0);
        }
        self[start..end].copy_from_slice(bytes);
        Ok(())
    }
}

/// Attributes common to files, folders and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits (12).
    pub permissions: u16,
    /// User ID of the owner.
    pub owner: u32,
    /// Group ID of the owner.
    pub group: u32,
    /// Seconds since 1970 of the last change.
    pub modified: u32,
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A folder.
    Folder(Folder),
    /// A file.
    File(File),
    /// A file whose content the sink reads.
    Foreign(Foreign),
    /// A symbolic link.
    Link(Link),
}

/// A folder and its content, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Its attributes.
    pub attributes: Attributes,
    /// Its content.
    pub entries: BTreeMap<Vec<u8>, Node>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its attributes.
    pub attributes: Attributes,
    /// Its size in bytes.
    pub size: u64,
    /// Extents by offset, without overlaps; holes between them.
    pub extents: BTreeMap<u64, Vec<u8>>,
}

/// A file whose content does not pass through here: the sink copies its extents, so that large files take no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Its attributes.
    pub attributes: Attributes,
    /// Its size in bytes.
    pub size: u64,
    /// Key of the file in the sink.
    pub key: usize,
    /// Extents with content, in ascending order; holes between them.
    pub extents: Vec<Range<u64>>,
}

/// A symbolic link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its attributes.
    pub attributes: Attributes,
    /// Target path.
    pub target: Vec<u8>,
}

impl Attributes {
    /// Mode 0644, owned by user 0.
    pub const fn readable(modified: u32) -> Attributes {
        Attributes { permissions: 0o644, owner: 0, group: 0, modified }
    }

    /// Mode 0755, owned by user 0.
    pub const fn searchable(modified: u32) -> Attributes {
        Attributes { permissions: 0o755, owner: 0, group: 0, modified }
    }
}

impl File {
    /// A file without holes.
    pub fn with_bytes(attributes: Attributes, bytes: Vec<u8>) -> File {
        File { attributes, size: bytes.len() as u64, extents: BTreeMap::from([(0, bytes)]) }
    }
}

/// Parameters of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageOptions {
    /// Bytes of a block: 1024, 2048 or 4096.
    pub block_bytes: u32,
    /// Size of the volume in bytes. It may become slightly smaller if its last group would be empty.
    pub volume_bytes: u64,
    /// Number of inodes, or `None` for one per 8 KiB. There are always enough for the content.
    pub inodes: Option<u32>,
    /// Volume label.
    pub label: [u8; 16],
    /// UUID of the volume.
    pub uuid: [u8; 16],
    /// Creation time in seconds since 1970.
    pub made: u32,
}

/// Properties of the built image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Built {
    /// Size of the volume in bytes, to which the sink must be extended.
    pub volume_bytes: u64,
    /// Number of free blocks.
    pub free_blocks: u64,
    /// Inodes in use, including the reserved ones.
    pub used_inodes: u32,
}

/// Errors of building an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageError<E> {
    /// Unsupported block size.
    BlockSize(u32),
    /// The volume size is outside the limits of the format.
    VolumeSize(u64),
    /// The content does not fit.
    Full,
    /// The name is empty, too long, contains a zero or a slash, or is reserved (`lost+found`).
    Name(Vec<u8>),
    /// The content of the file with this name is larger than the format allows, or its extents
    /// overlap or reach past its size.
    Content(Vec<u8>),
    /// The target of the link with this name is empty or longer than a block.
    Target(Vec<u8>),
    /// The folder with this name has more than 31,997 subfolders.
    TooManyFolders(Vec<u8>),
    /// The sink failed.
    Sink(E),
}

impl<E: fmt::Display> fmt::Display for ImageError<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |name: &[u8]| alloc::string::String::from_utf8_lossy(name).into_owned();
        match self {
            ImageError::BlockSize(bytes) => {
                write!(formatter, "blocks of {bytes} bytes are not supported; choose 1024, 2048 or 4096")
            }
            ImageError::VolumeSize(bytes) => {
                write!(formatter, "a volume of {bytes} bytes is outside what ext2 allows with this block size")
            }
            ImageError::Full => formatter.write_str("the content does not fit; make the volume larger"),
            ImageError::Name(name) => write!(formatter, "`{}` cannot be a name on an ext2 volume", text(name)),
            ImageError::Content(name) => {
                write!(formatter, "the file `{}` is too large, or its extents overlap", text(name))
            }
            ImageError::Target(name) => {
                write!(formatter, "the target of the link `{}` is empty or too long", text(name))
            }
            ImageError::TooManyFolders(name) => {
                write!(formatter, "the folder `{}` has more folders in it than ext2 allows", text(name))
            }
            ImageError::Sink(error) => write!(formatter, "the image could not be written: {error}"),
        }
    }
}

/// Builds a volume with this root folder, which also gets an empty `lost+found`.
pub fn make_image<S: ImageSink>(
    options: &ImageOptions,
    root: &Folder,
    sink: &mut S,
) -> Result<Built, ImageError<S::Error>> {
    if !BLOCK_SIZES.contains(&options.block_bytes) {
        return Err(ImageError::BlockSize(options.block_bytes));
    }
    let lost = Folder {
        attributes: Attributes { permissions: 0o700, owner: 0, group: 0, modified: options.made },
        entries: BTreeMap::new(),
    };
    let plan = content::Plan::new(root, &lost)?;
    let layout = writer::plan(options, plan.used_inodes())?;
    let mut writer = writer::Writer::new(&layout, sink);
    plan.write(&mut writer)?;
    writer.finish(options, plan.used_inodes())
}

fn check_name<E>(name: &[u8]) -> Result<(), ImageError<E>> {
    let fits = (1..=LONGEST_NAME).contains(&name.len());
    if !fits || name == b"." || name == b".." || name.iter().any(|&byte| byte == 0 || byte == b'/') {
        return Err(ImageError::Name(name.to_vec()));
    }
    Ok(())
}

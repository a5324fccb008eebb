//! Faults that a check reports: kind, location and repair.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A fault. Numbers of inodes, blocks and groups give the location; `says` is the value on the disk, `right` the
/// correct one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Fault {
    /// The superblock is missing or inconsistent; the backup at block `backup` is good.
    SuperblockLost { backup: u64 },
    /// The superblock's inode size is 0; the otherwise equal backup at block `backup` has it.
    InodeSizeMissing { backup: u64 },
    /// A repair was interrupted; the repair log is complete.
    RepairCutOff,
    /// A field of the superblock is inconsistent with the others.
    SuperblockField { field: &'static str, says: u64, right: u64 },
    /// The volume was not cleanly unmounted.
    NotClean,
    /// The superblock records errors.
    ErrorsRecorded,
    /// The copy of the superblock in this group differs.
    BackupSuperblock { group: u32 },
    /// The copy of the descriptors in this group differs.
    BackupDescriptors { group: u32 },
    /// A descriptor refers to a block that cannot be this part of the group.
    DescriptorPlace { group: u32, part: &'static str, says: u32, right: u32 },
    /// A descriptor has flags that require a feature which the volume does not have.
    DescriptorFlags { group: u32, says: u16 },
    /// A file needs a feature that the superblock lacks.
    MissingFeature { name: &'static str },
    /// The journal needs recovery.
    JournalNotReplayed,
    /// The journal has transactions though the volume was unmounted.
    JournalStale,
    /// The journal is unusable.
    JournalDamaged,
    /// The superblock refers to a journal that the volume does not have.
    JournalFields,
    /// The superblock requires journal recovery, but the volume has no journal.
    JournalMissing,
    /// An orphaned inode: it was being deleted or truncated at the last unmount.
    Orphan { inode: u32 },
    /// The orphan list refers to an inode that cannot be on it.
    OrphanList { inode: u32 },
    /// An inode without links has no deletion time.
    NoTimeOfDeletion { inode: u32 },
    /// An inode in use has a deletion time.
    TimeOfDeletion { inode: u32 },
    /// A reserved inode is in use for another purpose.
    ReservedInode { inode: u32 },
    /// The resize inode does not match the volume's size.
    ResizeInode,
    /// The mode has no valid file type.
    Mode { inode: u32, says: u16, file: bool },
    /// Its content is folder entries, but its mode is of another kind.
    LooksLikeFolder { inode: u32 },
    /// The root is not a folder.
    RootNotFolder,
    /// There is no root folder.
    RootMissing,
    /// Flags that require features which the volume does not have.
    Flags { inode: u32, says: u32 },
    /// A field that is always zero is not.
    StrayField { inode: u32, field: &'static str, says: u32 },
    /// The size of the inode's extension.
    ExtraSize { inode: u32, says: u16 },
    /// The attributes in an inode.
    InlineAttributes { inode: u32 },
    /// The block with an inode's attributes.
    AttributeBlock { inode: u32, block: u32 },
    /// Number of inodes that use an attribute block.
    AttributeCount { block: u32, says: u32, right: u32 },
    /// Block numbers outside the volume, or beyond the maximum size of a folder; `table` is the block that holds them,
    /// or `None` for the inode itself.
    IllegalBlocks { inode: u32, table: Option<u32>, count: u32, first: u32 },
    /// It shares so many blocks with other inodes that their owner cannot be determined.
    Tangled { inode: u32 },
    /// Some of its blocks are also used by other inodes.
    SharedBlocks { inode: u32, first: u32 },
    /// The size in bytes is wrong.
    Size { inode: u32, says: u64, right: u64 },
    /// The count of blocks, in units of 512 bytes.
    Sectors { inode: u32, says: u32, right: u32 },
    /// The target of a symbolic link is invalid.
    SymbolicLink { inode: u32 },
    /// A folder without blocks.
    EmptyFolder { inode: u32 },
    /// A folder lacks blocks before its last one.
    Holes { folder: u32, count: u64 },
    /// Bytes of a folder that are not an entry.
    Entry { folder: u32, offset: u64 },
    /// `.` or `..` is missing or damaged.
    Dots { folder: u32 },
    /// `.` refers to another inode.
    Dot { folder: u32, says: u32 },
    /// `..` refers to another inode.
    DotDot { folder: u32, says: u32, right: u32 },
    /// A name in a folder refers to an inode that is unused or cannot have a name.
    Nowhere { folder: u32, name: Vec<u8>, inode: u32 },
    /// A forbidden name in a folder: `.`, `..`, or empty.
    ForbiddenName { folder: u32, name: Vec<u8> },
    /// A name with zeros or slashes.
    BadName { folder: u32, name: Vec<u8> },
    /// A second entry of that name.
    DuplicateName { folder: u32, name: Vec<u8> },
    /// A second name of a folder, which may have only one.
    SecondFolderName { folder: u32, name: Vec<u8>, inode: u32 },
    /// An entry's kind differs from the inode's.
    EntryKind { folder: u32, name: Vec<u8>, says: u8, right: u8 },
    /// The hash index of a folder is damaged.
    Index { folder: u32 },
    /// A folder is not reachable from the root.
    Unconnected { folder: u32 },
    /// An inode in use has no links.
    NoName { inode: u32 },
    /// As `NoName`, for one without content.
    NoNameNoContent { inode: u32 },
    /// `lost+found` is not a folder.
    LostNotFolder { inode: u32 },
    /// The link count of an inode is wrong.
    Links { inode: u32, says: u16, right: u16 },
    /// Wrong bits in a group's block bitmap: used blocks marked free, free ones marked used, and the first of them.
    BlockBitmap { group: u32, lost: u32, leaked: u32, first: u32 },
    /// Wrong bits in a group's inode bitmap.
    InodeBitmap { group: u32, lost: u32, leaked: u32, first: u32 },
    /// The padding of a bitmap is not all ones.
    BitmapEnd { group: u32 },
    /// A count in a group's descriptor is wrong.
    GroupCount { group: u32, what: &'static str, says: u32, right: u32 },
    /// A count in the superblock is wrong.
    TotalCount { what: &'static str, says: u32, right: u32 },
}

/// Data loss caused by a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// No loss.
    Nothing,
    /// Existing data is removed, moved or renamed.
    Something,
}

impl Fault {
    /// Returns the data loss that repairing it causes.
    pub fn cost(&self) -> Cost {
        use Fault::*;
        match self {
            SuperblockLost { .. }
            | DescriptorPlace { .. }
            | JournalDamaged
            | OrphanList { .. }
            | ReservedInode { .. }
            | ResizeInode
            | Mode { .. }
            | LooksLikeFolder { .. }
            | RootNotFolder
            | RootMissing
            | InlineAttributes { .. }
            | AttributeBlock { .. }
            | IllegalBlocks { .. }
            | Tangled { .. }
            | SharedBlocks { .. }
            | SymbolicLink { .. }
            | EmptyFolder { .. }
            | Holes { .. }
            | Entry { .. }
            | Dots { .. }
            | Nowhere { .. }
            | ForbiddenName { .. }
            | DuplicateName { .. }
            | SecondFolderName { .. }
            | Unconnected { .. }
            | NoName { .. }
            | NoNameNoContent { .. }
            | LostNotFolder { .. } => Cost::Something,
            SuperblockField { .. }
            | InodeSizeMissing { .. }
            | RepairCutOff
            | NotClean
            | ErrorsRecorded
            | BackupSuperblock { .. }
            | BackupDescriptors { .. }
            | DescriptorFlags { .. }
            | MissingFeature { .. }
            | JournalNotReplayed
            | JournalStale
            | JournalFields
            | JournalMissing
            | Orphan { .. }
            | NoTimeOfDeletion { .. }
            | TimeOfDeletion { .. }
            | Flags { .. }
            | StrayField { .. }
            | ExtraSize { .. }
            | AttributeCount { .. }
            | Size { .. }
            | Sectors { .. }
            | Dot { .. }
            | DotDot { .. }
            | BadName { .. }
            | EntryKind { .. }
            | Index { .. }
            | Links { .. }
            | BlockBitmap { .. }
            | InodeBitmap { .. }
            | BitmapEnd { .. }
            | GroupCount { .. }
            | TotalCount { .. } => Cost::Nothing,
        }
    }

    /// Returns whether a volume is sound despite it: it is reported, and repaired if changes are allowed, but the
    /// volume does not count as faulty. `e2fsck -fn` passes such volumes, too.
    pub fn is_note(&self) -> bool {
        use Fault::*;
        match self {
            NotClean | ErrorsRecorded | BackupSuperblock { .. } | BackupDescriptors { .. } | JournalFields => true,
            // Linux does not mount the volume until it is repaired, but e2fsck uses the backup.
            InodeSizeMissing { .. } => true,
            // Some systems set the first flag for a group without inodes.
            DescriptorFlags { says, .. } => says & 1 == 0,
            _ => false,
        }
    }

    /// Returns the remedy, as a participle.
    fn remedy(&self) -> Remedy<'_> {
        use Fault::*;
        match self {
            SuperblockLost { .. } | InodeSizeMissing { .. } => Remedy::Words("restored from the backup"),
            RepairCutOff => Remedy::Words("finished"),
            SuperblockField { right, .. } | Size { right, .. } => Remedy::SetTo(*right),
            DescriptorPlace { right, .. }
            | AttributeCount { right, .. }
            | Sectors { right, .. }
            | GroupCount { right, .. }
            | TotalCount { right, .. }
            | DotDot { right, .. } => Remedy::SetTo(u64::from(*right)),
            Links { right, .. } => Remedy::SetTo(u64::from(*right)),
            NotClean | ErrorsRecorded => Remedy::Words("marked as clean"),
            BackupSuperblock { .. } | BackupDescriptors { .. } => Remedy::Words("written anew"),
            JournalNotReplayed => Remedy::Words("replayed"),
            JournalStale => Remedy::Words("emptied"),
            JournalDamaged => Remedy::Words("taken away"),
            Orphan { .. } => Remedy::Words("finished"),
            OrphanList { .. } => Remedy::Words("the list is cut there"),
            NoTimeOfDeletion { .. } | MissingFeature { .. } | BitmapEnd { .. } => Remedy::Words("set"),
            Dot { folder, .. } => Remedy::SetTo(u64::from(*folder)),
            Mode { file: true, .. } => Remedy::Words("made a file"),
            LooksLikeFolder { .. } => Remedy::Words("made a folder"),
            ResizeInode | Dots { .. } => Remedy::Words("made anew"),
            RootMissing => Remedy::Words("made; what was in it goes to lost+found"),
            SharedBlocks { .. } => Remedy::Words("given copies of its own"),
            Holes { .. } => Remedy::Words("closed"),
            Index { .. } => Remedy::Words("dropped; the folder is read without it"),
            DuplicateName { .. } => Remedy::Words("renamed"),
            BadName { .. } => Remedy::Words("dots put in their place"),
            EntryKind { right, .. } => Remedy::SetTo(u64::from(*right)),
            Unconnected { .. } | NoName { .. } => Remedy::Words("put into lost+found"),
            BlockBitmap { .. } | InodeBitmap { .. } => Remedy::Words("marked right"),
            JournalFields
            | JournalMissing
            | DescriptorFlags { .. }
            | TimeOfDeletion { .. }
            | Flags { .. }
            | StrayField { .. }
            | ExtraSize { .. } => Remedy::Words("cleared"),
            ReservedInode { .. }
            | Mode { .. }
            | RootNotFolder
            | Tangled { .. }
            | SymbolicLink { .. }
            | EmptyFolder { .. }
            | NoNameNoContent { .. } => Remedy::Words("the inode is cleared"),
            InlineAttributes { .. }
            | AttributeBlock { .. }
            | IllegalBlocks { .. }
            | Entry { .. }
            | Nowhere { .. }
            | ForbiddenName { .. }
            | SecondFolderName { .. }
            | LostNotFolder { .. } => Remedy::Words("taken out"),
        }
    }
}

enum Remedy<'a> {
    Words(&'a str),
    SetTo(u64),
}

impl fmt::Display for Remedy<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remedy::Words(words) => formatter.write_str(words),
            Remedy::SetTo(number) => write!(formatter, "set to {number}"),
        }
    }
}

/// The outcome of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Repaired.
    Repaired,
    /// Not repaired, because no changes were allowed, or none with data loss.
    Left,
    /// Not repaired, because the volume has no room for the repair.
    NoRoom,
}

/// A fault and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The fault.
    pub fault: Fault,
    /// Its outcome.
    pub done: Done,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.fault)?;
        match self.done {
            Done::Repaired => self.fault.remedy().fmt(formatter),
            Done::Left => formatter.write_str("left as it is"),
            Done::NoRoom => formatter.write_str("left as it is, because the volume has no room"),
        }
    }
}

struct Name<'a>(&'a [u8]);

impl fmt::Display for Name<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy(self.0);
        write!(formatter, "`{}`", text.escape_debug())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_volume(formatter).or_else(|_| self.write_inode(formatter)).or_else(|_| self.write_folder(formatter))
    }
}

impl Fault {
    /// Faults of the volume as a whole and of its groups.
    fn write_volume(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Fault::*;
        match self {
            SuperblockLost { backup } => write!(to, "superblock: destroyed, but the backup at block {backup} is good"),
            InodeSizeMissing { backup } => write!(
                to,
                "superblock: inode_size is 0, so that no system mounts the volume; the backup at block {backup} has it"
            ),
            SuperblockField { field, says, right } => {
                write!(to, "superblock: {field} is {says}, which should be {right}")
            }
            RepairCutOff => to.write_str("the volume: a repair was cut off while it was written"),
            NotClean => to.write_str("superblock: the volume was not unmounted when it was last in use"),
            ErrorsRecorded => to.write_str("superblock: errors were found when the volume was last in use"),
            BackupSuperblock { group } => write!(to, "group {group}: the copy of the superblock differs"),
            BackupDescriptors { group } => write!(to, "group {group}: the copy of the descriptors differs"),
            DescriptorPlace { group, part, says, right } => {
                write!(to, "group {group}: block {says} cannot be its {part}, which should be block {right}")
            }
            DescriptorFlags { group, .. } => write!(to, "group {group}: the descriptor has flags without a meaning"),
            MissingFeature { name } => write!(to, "superblock: the feature {name} is in use but not set"),
            JournalNotReplayed => to.write_str("journal: it holds changes that are not in their places"),
            JournalStale => to.write_str("journal: it holds changes, though the volume was unmounted"),
            JournalDamaged => to.write_str("journal: it cannot be used"),
            JournalFields => to.write_str("superblock: it speaks of a journal that is not there"),
            JournalMissing => to.write_str("superblock: it speaks of a journal to be replayed that is not there"),
            BlockBitmap { group, lost, leaked, first } => write!(
                to,
                "group {group}: {lost} blocks in use are marked free and {leaked} free ones in use, the first being {first}"
            ),
            InodeBitmap { group, lost, leaked, first } => write!(
                to,
                "group {group}: {lost} inodes in use are marked free and {leaked} free ones in use, the first being {first}"
            ),
            BitmapEnd { group } => write!(to, "group {group}: the end of a bitmap is not filled with ones"),
            GroupCount { group, what, says, right } => {
                write!(to, "group {group}: the count of {what} is {says}, but there are {right}")
            }
            TotalCount { what, says, right } => {
                write!(to, "superblock: the count of {what} is {says}, but there are {right}")
            }
            _ => Err(fmt::Error),
        }
    }

    fn write_inode(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Fault::*;
        match self {
            Orphan { inode } => write!(to, "inode {inode}: it was being deleted or cut when the volume was left"),
            OrphanList { inode } => write!(to, "inode {inode}: it cannot be on the list of those being deleted"),
            NoTimeOfDeletion { inode } => write!(to, "inode {inode}: it is not in use, but has no time of deletion"),
            TimeOfDeletion { inode } => write!(to, "inode {inode}: it is in use, but has a time of deletion"),
            ReservedInode { inode } => write!(to, "inode {inode}: it is reserved, but in use"),
            ResizeInode => to.write_str("inode 7: it does not hold the blocks by which the volume can grow"),
            Mode { inode, says, .. } => write!(to, "inode {inode}: the mode {says:#o} has no meaning"),
            LooksLikeFolder { inode } => write!(to, "inode {inode}: it holds a folder, but its mode says otherwise"),
            RootNotFolder => to.write_str("inode 2: the root is not a folder"),
            RootMissing => to.write_str("inode 2: there is no root folder"),
            Flags { inode, says } => write!(to, "inode {inode}: the flags {says:#x} have no meaning here"),
            StrayField { inode, field, says } => write!(to, "inode {inode}: {field} is {says}, which should be 0"),
            ExtraSize { inode, says } => write!(to, "inode {inode}: the size of its extension is {says}"),
            InlineAttributes { inode } => write!(to, "inode {inode}: the attributes in it are damaged"),
            AttributeBlock { inode, block } => write!(to, "inode {inode}: block {block} does not hold its attributes"),
            AttributeCount { block, says, right } => {
                write!(to, "block {block}: {says} inodes are said to use these attributes, but {right} do")
            }
            IllegalBlocks { inode, table: None, count, first } => {
                write!(to, "inode {inode}: {count} block numbers are impossible, the first being {first}")
            }
            IllegalBlocks { inode, table: Some(table), count, first } => {
                write!(
                    to,
                    "inode {inode}: {count} block numbers in block {table} are impossible, the first being {first}"
                )
            }
            Tangled { inode } => write!(to, "inode {inode}: its block numbers lead round in circles"),
            SharedBlocks { inode, first } => {
                write!(
                    to,
                    "inode {inode}: block {first}, and perhaps others of its blocks, belong to somebody else, too"
                )
            }
            Size { inode, says, right } => write!(to, "inode {inode}: the size is {says}, which should be {right}"),
            Sectors { inode, says, right } => {
                write!(to, "inode {inode}: the count of sectors is {says}, but it has {right}")
            }
            SymbolicLink { inode } => write!(to, "inode {inode}: the target of the symbolic link is damaged"),
            EmptyFolder { inode } => write!(to, "inode {inode}: the folder has no block at all"),
            NoName { inode } => write!(to, "inode {inode}: it is in use, but no folder has a name for it"),
            NoNameNoContent { inode } => write!(to, "inode {inode}: it has neither name nor content"),
            Links { inode, says, right } => {
                write!(to, "inode {inode}: the count of names is {says}, but {right} lead to it")
            }
            _ => Err(fmt::Error),
        }
    }

    fn write_folder(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Fault::*;
        match self {
            Holes { folder, count } => write!(to, "folder {folder}: {count} of its blocks are missing"),
            Entry { folder, offset } => write!(to, "folder {folder}: what is at byte {offset} is no entry"),
            Dots { folder } => write!(to, "folder {folder}: it does not begin with `.` and `..`"),
            Dot { folder, says } => write!(to, "folder {folder}: `.` leads to inode {says}"),
            DotDot { folder, says, right } => {
                write!(to, "folder {folder}: `..` leads to inode {says}, but the folder is in {right}")
            }
            Nowhere { folder, name, inode } => write!(
                to,
                "folder {folder}: {} leads to inode {inode}, which is not in use or can have no name",
                Name(name)
            ),
            ForbiddenName { folder, name } => write!(to, "folder {folder}: {} may not be a name in it", Name(name)),
            BadName { folder, name } => write!(to, "folder {folder}: {} has zeros or slashes in it", Name(name)),
            DuplicateName { folder, name } => write!(to, "folder {folder}: {} is there twice", Name(name)),
            SecondFolderName { folder, name, inode } => {
                write!(to, "folder {folder}: {} is a second name of folder {inode}", Name(name))
            }
            EntryKind { folder, name, says, right } => write!(
                to,
                "folder {folder}: {} is said to be of kind {says}, but its inode is of kind {right}",
                Name(name)
            ),
            Index { folder } => write!(to, "folder {folder}: the index is damaged"),
            Unconnected { folder } => write!(to, "folder {folder}: no way from the root leads to it"),
            LostNotFolder { inode } => write!(to, "folder 2: `lost+found` leads to inode {inode}, which is no folder"),
            _ => Err(fmt::Error),
        }
    }
}

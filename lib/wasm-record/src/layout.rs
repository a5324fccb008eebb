//! The context of an instance, as compiled code sees it, and the header of what was added to a template.
//!
//! Offsets are in bytes. Code gets the address of the context as its first argument. Every value that a program or its
//! host passes lies in a slot of [`SLOT_BYTES`], numbers at its start.

/// Size of a slot: that of the largest value, a vector of 128 bits.
pub const SLOT_BYTES: u32 = 16;
/// Offset of the address of linear memory.
pub const MEMORY_BASE: u32 = 0;
/// Offset of the size of linear memory, in bytes (u64).
pub const MEMORY_BYTES: u32 = 8;
/// Offset of two words for the runtime.
pub const RUNTIME: u32 = 16;
/// Offset of the slots in which arguments and results pass between the runtime and code.
pub const ARGUMENTS: u32 = 32;
/// Number of those slots: the maximum of parameters or results of a function that the host calls or implements.
pub const MAX_ARGUMENTS: usize = 64;
/// Offset of the tables: of each the address of its entries (u32 each) and their number (u64).
pub const TABLES: u32 = ARGUMENTS + MAX_ARGUMENTS as u32 * SLOT_BYTES;
/// Size of a table's two words.
pub const TABLE_BYTES: u32 = 16;
/// Maximum number of tables of a module.
pub const MAX_TABLES: usize = 64;
/// Maximum number of globals of a module.
pub const MAX_GLOBALS: usize = 65536;

/// Offset of a table's two words: address, number of entries.
pub const fn table(index: u32) -> u32 {
    TABLES + index * TABLE_BYTES
}

/// Offset of a global's slot, in an instance with this many tables.
pub const fn global(tables: u32, index: u32) -> u32 {
    table(tables) + index * SLOT_BYTES
}

/// First word of the header.
pub const HEADER_MAGIC: u64 = u64::from_le_bytes(*b"SINGWASM");
/// Number of 8-byte words of the header: magic, address and size of the record, address of the function pointers and
/// their number, address of the entries and their number (one for each signature), and the number of the [`Bounds`].
pub const HEADER_WORDS: usize = 8;
/// Place of the number of the [`Bounds`] in the header, in bytes.
pub const HEADER_BOUNDS: usize = 56;

/// Size of the addresses that linear memory lies at the start of, in guard mode: a window of the kernel's, in bytes.
pub const WINDOW_BYTES: u64 = 8 << 30;

/// How code keeps to linear memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub enum Bounds {
    /// It compares each index with the size of memory. Such code runs on every machine.
    #[default]
    Checked = 0,
    /// Memory lies at the start of [`WINDOW_BYTES`] of addresses of its own, in which every index of 32 bits with a
    /// small offset ends: what is behind memory faults.
    Guarded = 1,
}

impl Bounds {
    /// Returns those of a name, as manifests have it.
    pub fn named(name: &str) -> Option<Bounds> {
        match name {
            "checked" => Some(Bounds::Checked),
            "guarded" => Some(Bounds::Guarded),
            _ => None,
        }
    }

    /// Returns those with a number.
    pub const fn of(number: u64) -> Option<Bounds> {
        match number {
            0 => Some(Bounds::Checked),
            1 => Some(Bounds::Guarded),
            _ => None,
        }
    }
}

/// First bytes of a template's description: what a composer looks for in its image.
pub const TEMPLATE_MAGIC: &[u8; 16] = b"SING-TEMPLATE-01";
/// Number of 8-byte words of the description: magic (two), address and size of the list of [`Imports`](crate::Imports),
/// address of the function that performs an import, and of that which performs a [`Builtin`].
pub const TEMPLATE_WORDS: usize = 6;

macro_rules! builtins {
    ($($(#[doc = $doc:literal])* $name:ident = $value:literal,)*) => {
        /// What code asks of the runtime, beside imports. Arguments are at most four numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Builtin {
            $($(#[doc = $doc])* $name = $value,)*
        }

        impl Builtin {
            /// Returns the builtin with a number.
            pub fn of(number: u32) -> Option<Builtin> {
                match number {
                    $($value => Some(Builtin::$name),)*
                    _ => None,
                }
            }
        }
    };
}

builtins! {
    /// Grows memory by pages; returns the former number of pages, or -1.
    MemoryGrow = 0,
    /// Fills memory: start, byte, length.
    MemoryFill = 1,
    /// Copies within memory: to, from, length.
    MemoryCopy = 2,
    /// Copies from a data segment: segment, to, from, length.
    MemoryInit = 3,
    /// Drops a data segment.
    DataDrop = 4,
    /// Grows a table: table, value, number; returns the former number of entries, or -1.
    TableGrow = 5,
    /// Fills a table: table, start, value, number.
    TableFill = 6,
    /// Copies between tables: destination and source table (upper half), to, from, number.
    TableCopy = 7,
    /// Copies from an element segment: table and segment (upper half), to, from, number.
    TableInit = 8,
    /// Drops an element segment.
    ElementDrop = 9,
}

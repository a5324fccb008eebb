//! Numbers and layouts of WASI preview 1, as its witx files state them. Records are little-endian.

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub u16);

/// Declares error numbers.
macro_rules! errors {
    ($($name:ident = $number:literal,)*) => {
        impl Errno {
            $(pub const $name: Errno = Errno($number);)*
        }
    };
}

errors! {
    ACCES = 2,
    ADDRINUSE = 3,
    ADDRNOTAVAIL = 4,
    AGAIN = 6,
    BADF = 8,
    CONNABORTED = 13,
    CONNREFUSED = 14,
    CONNRESET = 15,
    EXIST = 20,
    FAULT = 21,
    FBIG = 22,
    HOSTUNREACH = 23,
    ILSEQ = 25,
    INVAL = 28,
    IO = 29,
    ISDIR = 31,
    LOOP = 32,
    MFILE = 33,
    MLINK = 34,
    NAMETOOLONG = 37,
    NFILE = 41,
    NOBUFS = 42,
    NOENT = 44,
    NOSPC = 51,
    NOTCONN = 53,
    NOTDIR = 54,
    NOTEMPTY = 55,
    NOTSOCK = 57,
    NOTSUP = 58,
    NXIO = 60,
    PERM = 63,
    PIPE = 64,
    ROFS = 69,
    SPIPE = 70,
    TIMEDOUT = 73,
    XDEV = 75,
    NOTCAPABLE = 76,
}

/// What may be done with a descriptor.
pub mod rights {
    pub const FD_DATASYNC: u64 = 1 << 0;
    pub const FD_READ: u64 = 1 << 1;
    pub const FD_SEEK: u64 = 1 << 2;
    pub const FD_FDSTAT_SET_FLAGS: u64 = 1 << 3;
    pub const FD_SYNC: u64 = 1 << 4;
    pub const FD_TELL: u64 = 1 << 5;
    pub const FD_WRITE: u64 = 1 << 6;
    pub const FD_ADVISE: u64 = 1 << 7;
    pub const FD_ALLOCATE: u64 = 1 << 8;
    pub const PATH_CREATE_DIRECTORY: u64 = 1 << 9;
    pub const PATH_CREATE_FILE: u64 = 1 << 10;
    pub const PATH_LINK_SOURCE: u64 = 1 << 11;
    pub const PATH_LINK_TARGET: u64 = 1 << 12;
    pub const PATH_OPEN: u64 = 1 << 13;
    pub const FD_READDIR: u64 = 1 << 14;
    pub const PATH_READLINK: u64 = 1 << 15;
    pub const PATH_RENAME_SOURCE: u64 = 1 << 16;
    pub const PATH_RENAME_TARGET: u64 = 1 << 17;
    pub const PATH_FILESTAT_GET: u64 = 1 << 18;
    pub const PATH_FILESTAT_SET_SIZE: u64 = 1 << 19;
    pub const PATH_FILESTAT_SET_TIMES: u64 = 1 << 20;
    pub const FD_FILESTAT_GET: u64 = 1 << 21;
    pub const FD_FILESTAT_SET_SIZE: u64 = 1 << 22;
    pub const FD_FILESTAT_SET_TIMES: u64 = 1 << 23;
    pub const PATH_SYMLINK: u64 = 1 << 24;
    pub const PATH_REMOVE_DIRECTORY: u64 = 1 << 25;
    pub const PATH_UNLINK_FILE: u64 = 1 << 26;
    pub const POLL_FD_READWRITE: u64 = 1 << 27;
    pub const SOCK_SHUTDOWN: u64 = 1 << 28;
    pub const SOCK_ACCEPT: u64 = 1 << 29;

    /// All that has a meaning for a file.
    pub const OF_FILE: u64 = FD_DATASYNC
        | FD_READ
        | FD_SEEK
        | FD_FDSTAT_SET_FLAGS
        | FD_SYNC
        | FD_TELL
        | FD_WRITE
        | FD_ADVISE
        | FD_ALLOCATE
        | FD_FILESTAT_GET
        | FD_FILESTAT_SET_SIZE
        | FD_FILESTAT_SET_TIMES
        | POLL_FD_READWRITE;
    /// All that has a meaning for a folder.
    pub const OF_FOLDER: u64 = FD_FDSTAT_SET_FLAGS
        | FD_SYNC
        | FD_ADVISE
        | PATH_CREATE_DIRECTORY
        | PATH_CREATE_FILE
        | PATH_LINK_SOURCE
        | PATH_LINK_TARGET
        | PATH_OPEN
        | FD_READDIR
        | PATH_READLINK
        | PATH_RENAME_SOURCE
        | PATH_RENAME_TARGET
        | PATH_FILESTAT_GET
        | PATH_FILESTAT_SET_SIZE
        | PATH_FILESTAT_SET_TIMES
        | FD_FILESTAT_GET
        | FD_FILESTAT_SET_TIMES
        | PATH_SYMLINK
        | PATH_REMOVE_DIRECTORY
        | PATH_UNLINK_FILE;
    /// All of standard input.
    pub const OF_INPUT: u64 = FD_READ | FD_FDSTAT_SET_FLAGS | FD_FILESTAT_GET | POLL_FD_READWRITE;
    /// All of standard output and standard error.
    pub const OF_OUTPUT: u64 = FD_WRITE | FD_FDSTAT_SET_FLAGS | FD_FILESTAT_GET | POLL_FD_READWRITE;
    /// All of a listening socket.
    pub const OF_LISTENER: u64 = FD_FDSTAT_SET_FLAGS | FD_FILESTAT_GET | POLL_FD_READWRITE | SOCK_ACCEPT;
    /// All of a connection.
    pub const OF_CONNECTION: u64 = OF_INPUT | OF_OUTPUT | SOCK_SHUTDOWN;
}

/// Types of what a descriptor or a name stands for.
pub mod file_type {
    pub const UNKNOWN: u8 = 0;
    pub const CHARACTER_DEVICE: u8 = 2;
    pub const DIRECTORY: u8 = 3;
    pub const REGULAR_FILE: u8 = 4;
    pub const SOCKET_STREAM: u8 = 6;
    pub const SYMBOLIC_LINK: u8 = 7;
}

/// Flags of a descriptor.
pub mod descriptor_flags {
    pub const APPEND: u16 = 1 << 0;
    pub const DSYNC: u16 = 1 << 1;
    pub const NONBLOCK: u16 = 1 << 2;
    pub const SYNC: u16 = 1 << 4;
    pub const ALL: u16 = (1 << 5) - 1;
}

/// Flags of `path_open`.
pub mod open_flags {
    pub const CREAT: u32 = 1 << 0;
    pub const DIRECTORY: u32 = 1 << 1;
    pub const EXCL: u32 = 1 << 2;
    pub const TRUNC: u32 = 1 << 3;
    pub const ALL: u32 = (1 << 4) - 1;
}

/// Flags of `sock_recv`.
pub mod receive_flags {
    pub const PEEK: u32 = 1 << 0;
    pub const WAITALL: u32 = 1 << 1;
    pub const ALL: u32 = (1 << 2) - 1;
}

/// Directions of `sock_shutdown`.
pub mod directions {
    pub const READ: u32 = 1 << 0;
    pub const WRITE: u32 = 1 << 1;
    pub const ALL: u32 = (1 << 2) - 1;
}

/// Flag of lookups: a link at the end is followed.
pub const SYMLINK_FOLLOW: u32 = 1;

/// Flags of requests that set times.
pub mod time_flags {
    pub const ACCESSED: u32 = 1 << 0;
    pub const ACCESSED_NOW: u32 = 1 << 1;
    pub const MODIFIED: u32 = 1 << 2;
    pub const MODIFIED_NOW: u32 = 1 << 3;
}

/// Clocks.
pub mod clock {
    pub const REALTIME: u32 = 0;
    pub const MONOTONIC: u32 = 1;
    pub const PROCESS_CPU: u32 = 2;
    pub const THREAD_CPU: u32 = 3;
}

/// `fdstat`: type at 0, flags at 2, base rights at 8, inheriting rights at 16.
pub const FDSTAT_BYTES: u32 = 24;
/// `filestat`: device, node, type, links, size, times of access, modification and change, 8 bytes each.
pub const FILESTAT_BYTES: u32 = 64;
/// `dirent`: next cookie at 0, node at 8, length of the name at 16, type at 20.
pub const DIRENT_BYTES: usize = 24;
/// Address and length.
pub const VECTOR_BYTES: u32 = 8;
/// Maximum number of vectors of a call, as Linux has it.
pub const MAX_VECTORS: u32 = 1024;

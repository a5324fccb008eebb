//! Reserved address space: the three arenas, guards, and releasing memory.
//!
//! Memory for blocks and heaps, which lie close together, uses huge pages of the host, because a page fault per 4 KiB
//! costs a file system more than copying the bytes; stacks use small ones, because a small SIP touches only a few KiB
//! of a stack. The price is the unused rest of huge pages.
//!
//! Key type: [`Reservation`]. Neighbours: `image` maps into the image arena. Deliberately not here:
//! ownership of pages, which is the kernel's.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

use abi::limits::WINDOW_BYTES;
use abi::stack::{GROUP_BYTES, USUAL_BYTES, range_bytes};
use hal_api::{Arena, Layout, MapError};

use crate::StartError;
use crate::domains::ArenaFiles;
use crate::image;
use crate::page_map::PageMap;

/// Pages are 4 KiB on every x86-64 Linux.
pub(crate) const HOST_PAGE_BYTES: usize = 4096;

/// Linux 6.13 and later; not yet in every libc.
const MADV_GUARD_INSTALL: libc::c_int = 102;

const GIB: usize = 1 << 30;
const STACKS_BYTES: usize = range_bytes(65_536);
/// Without light guards each guarded slot splits a mapping in two, and Linux allows 65,530 mappings.
const STACKS_BYTES_WITH_HEAVY_GUARDS: usize = range_bytes(28_000);
const STACKS_MIN_BYTES: usize = range_bytes(500);
const MEMORY_BYTES: usize = 128 * GIB;
const MEMORY_MIN_BYTES: usize = GIB / 2;
const IMAGES_BYTES: usize = 4 * GIB;
const IMAGES_MIN_BYTES: usize = GIB / 4;
/// Windows: addresses alone, of which a host has 128 TiB.
const WINDOWS_BYTES: usize = 4096 * WINDOW_BYTES;

/// Addresses of the arenas of a machine whose run is recorded: 16 TiB and more from what Linux maps by itself.
const RECORDED_IMAGES: usize = 0x1800_0000_0000;
const RECORDED_STACKS: usize = 0x1900_0000_0000;
const RECORDED_MEMORY: usize = 0x1a00_0000_0000;
/// Maximum number of pages of a window that are zeroed rather than given back.
const MAX_ZEROED: usize = 32;
/// Where windows are, unless something else is there: the same in every run, recorded or simulated.
const USUAL_WINDOWS: usize = 0x3000_0000_0000;

/// Implementation of guards on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuardKind {
    /// A marker in the page table: no mapping is split.
    Light,
    /// Changed protection: splits a mapping.
    Heavy,
}

/// The address space of the machine, reserved for the life of the process.
#[derive(Debug)]
pub struct Reservation {
    layout: Layout,
    guards: GuardKind,
    /// Whether the data arenas are files, of which other processes map parts.
    is_shared: bool,
    page_map: PageMap,
}

/// Expected use of an arena.
#[derive(Clone, Copy)]
enum Access {
    /// Sparse: a SIP that touches one page should cost one page.
    Stacks,
    /// Dense, in heaps and blocks: pages next to one in use are likely to be used soon.
    Memory,
    None,
}

impl Reservation {
    /// Reserves all arenas, each as large as the host allows, down to a minimum; the memory arena with exactly
    /// `memory_bytes` if given.
    pub(crate) fn new(memory_bytes: Option<usize>) -> Result<Self, StartError> {
        Self::with_guards(memory_bytes, probe_guards())
    }

    /// The same with data arenas that are files, for a machine with domains.
    pub(crate) fn new_shared(memory_bytes: Option<usize>) -> Result<(Self, ArenaFiles), StartError> {
        let file = |name, bytes| image::sized_file(name, bytes).map(OwnedFd::from).map_err(StartError::Domains);
        let probed = file(c"singularity-guard", HOST_PAGE_BYTES)?;
        // Hosts before Linux 6.15 have light guards for anonymous memory alone.
        let guards = probe_guards_of(libc::MAP_SHARED, probed.as_raw_fd());
        let mut reservation = Self::with_guards(memory_bytes, guards)?;
        let Layout { memory, stacks, .. } = reservation.layout;
        let files = ArenaFiles {
            memory: file(c"singularity-memory", memory.bytes)?,
            stacks: file(c"singularity-stacks", stacks.bytes)?,
        };
        share(memory, &files.memory).and_then(|()| share(stacks, &files.stacks)).map_err(StartError::Domains)?;
        reservation.is_shared = true;
        Ok((reservation, files))
    }

    /// The same at addresses that are free in most processes, so that a recording can be replayed in another; or, if they
    /// are taken, elsewhere.
    pub(crate) fn for_recording(memory_bytes: Option<usize>) -> Result<Self, StartError> {
        let stacks = if probe_guards() == GuardKind::Light { STACKS_BYTES } else { STACKS_BYTES_WITH_HEAVY_GUARDS };
        let arena = |base, bytes| Arena { base, bytes };
        let layout = Layout {
            images: arena(RECORDED_IMAGES, IMAGES_BYTES),
            stacks: arena(RECORDED_STACKS, stacks),
            memory: arena(RECORDED_MEMORY, memory_bytes.unwrap_or(MEMORY_BYTES)),
            memory_is_clear: true,
            windows: Arena { base: 0, bytes: 0 },
        };
        Self::at(layout).or_else(|_| Self::new(memory_bytes))
    }

    /// Reserves the arenas at the addresses and with the sizes of `layout`, for a machine whose addresses are the same in
    /// every run; windows where `layout` has them, or, if it has none, wherever they fit.
    ///
    /// # Errors
    /// Something is mapped there, or the host refuses.
    pub fn at(layout: Layout) -> Result<Self, StartError> {
        let arenas = [
            ("image", layout.images, Access::None),
            ("stack", layout.stacks, Access::Stacks),
            ("memory", layout.memory, Access::Memory),
        ];
        for (name, arena, access) in arenas {
            let refused = |reason| StartError::AddressSpace { arena: name, bytes: arena.bytes, reason };
            reserve_at(arena, access).map_err(refused)?;
        }
        let windows = match layout.windows.bytes {
            0 => reserve_windows(),
            bytes => {
                let refused = |reason| StartError::AddressSpace { arena: "window", bytes, reason };
                reserve_at(layout.windows, Access::None).map_err(refused)?;
                layout.windows
            }
        };
        let layout = Layout { memory_is_clear: true, windows, ..layout };
        Ok(Self { layout, guards: probe_guards(), is_shared: false, page_map: PageMap::open() })
    }

    fn with_guards(memory_bytes: Option<usize>, guards: GuardKind) -> Result<Self, StartError> {
        let stacks_most = match guards {
            GuardKind::Light => STACKS_BYTES,
            GuardKind::Heavy => STACKS_BYTES_WITH_HEAVY_GUARDS,
        };
        let layout = Layout {
            images: reserve("image", IMAGES_BYTES, IMAGES_MIN_BYTES, Access::None)?,
            stacks: reserve("stack", stacks_most, STACKS_MIN_BYTES, Access::Stacks)?,
            memory: reserve(
                "memory",
                memory_bytes.unwrap_or(MEMORY_BYTES),
                memory_bytes.unwrap_or(MEMORY_MIN_BYTES),
                Access::Memory,
            )?,
            memory_is_clear: true,
            windows: reserve_windows(),
        };
        Ok(Self { layout, guards, is_shared: false, page_map: PageMap::open() })
    }

    /// Returns the arenas.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Makes pages of a data arena inaccessible for good.
    ///
    /// # Panics
    /// If the range is not whole pages of a data arena, or the host refuses: a slot without its guard
    /// must never be used.
    pub fn guard(&self, address: usize, bytes: usize) {
        self.check(address, bytes);
        let pointer = ptr::with_exposed_provenance_mut(address);
        let answer = match self.guards {
            // SAFETY: the range is whole pages inside an arena of this reservation (`check`), which only
            // the kernel hands out; it asks for a guard before it uses them.
            GuardKind::Light => unsafe { libc::madvise(pointer, bytes, MADV_GUARD_INSTALL) },
            // SAFETY: as above.
            GuardKind::Heavy => unsafe { libc::mprotect(pointer, bytes, libc::PROT_NONE) },
        };
        assert!(answer == 0, "the host refused a guard at {address:#x}: {}", io::Error::last_os_error());
    }

    /// Releases the memory behind pages of a data arena; they read as zero afterwards. Guards stay.
    ///
    /// # Panics
    /// If the range is not whole pages of a data arena, or the host refuses: the kernel relies on zeroes.
    pub fn decommit(&self, address: usize, bytes: usize) {
        self.check(address, bytes);
        let pointer = ptr::with_exposed_provenance_mut(address);
        let advice = if self.is_shared { libc::MADV_REMOVE } else { libc::MADV_DONTNEED };
        // SAFETY: the range is whole pages inside an arena of this reservation (`check`); by calling this the kernel
        // gives up their contents.
        let answer = unsafe { libc::madvise(pointer, bytes, advice) };
        assert!(answer == 0, "the host refused to take memory back at {address:#x}: {}", io::Error::last_os_error());
    }

    /// See [`hal_api::Machine::window_map`]. The pages are the host's own.
    pub fn window_map(&self, address: usize, bytes: usize) -> Result<(), MapError> {
        self.check_window(address, bytes);
        let pointer = ptr::with_exposed_provenance_mut(address);
        // SAFETY: the range is whole pages of windows (`check_window`), which only the kernel hands out, and in which
        // nothing is before it has asked for it.
        let answer = unsafe { libc::mprotect(pointer, bytes, libc::PROT_READ | libc::PROT_WRITE) };
        // It is dense, as the memory arena is; a host without huge pages refuses the advice.
        // SAFETY: as above.
        unsafe { libc::madvise(pointer, bytes, libc::MADV_HUGEPAGE) };
        if answer == 0 { Ok(()) } else { Err(MapError) }
    }

    /// See [`hal_api::Machine::window_release`].
    ///
    /// # Panics
    /// If the range is not whole pages of windows, or the host refuses: the next owner relies on zeroes and on faults.
    pub fn window_release(&self, address: usize, bytes: usize) {
        self.check_window(address, bytes);
        let pointer = ptr::with_exposed_provenance_mut(address);
        // SAFETY: as for `window_map`; by calling this the kernel gives up what is in the pages.
        let answer = unsafe {
            match libc::mprotect(pointer, bytes, libc::PROT_NONE) {
                0 => libc::madvise(pointer, bytes, libc::MADV_DONTNEED),
                refused => refused,
            }
        };
        assert!(answer == 0, "the host refused to take a window back at {address:#x}: {}", io::Error::last_os_error());
    }

    /// See [`hal_api::Machine::window_clear`]. Cheaper if few of the pages have ever been touched.
    pub fn window_clear(&self, address: usize, bytes: usize) -> bool {
        self.check_window(address, bytes);
        let pointer = |page: usize| ptr::with_exposed_provenance_mut::<u8>(page);
        let of = |index: usize| address + index * HOST_PAGE_BYTES;
        // SAFETY: a page of those that the caller gives up, which are mapped writable, and where nobody else is; it has
        // no memory, so it was zero.
        let touch = |page: usize| unsafe { pointer(page).write_volatile(0) };
        let give_back = |page: usize| {
            // SAFETY: as above. If the host refuses, the page stays zero.
            unsafe { libc::madvise(pointer(page).cast(), HOST_PAGE_BYTES, libc::MADV_DONTNEED) };
        };
        let count = bytes / HOST_PAGE_BYTES;
        let Some(pages) = self.page_map.pages(address, count, (touch, give_back)) else { return false };
        if pages.count() > MAX_ZEROED {
            return false;
        }
        for index in (0..count).filter(|index| pages.is_in_use(*index)) {
            // SAFETY: a page of those that the caller gives up, which are mapped writable, and where nobody else is.
            unsafe { pointer(of(index)).write_bytes(0, HOST_PAGE_BYTES) };
        }
        true
    }

    fn check_window(&self, address: usize, bytes: usize) {
        let whole_pages = address.is_multiple_of(HOST_PAGE_BYTES) && bytes.is_multiple_of(HOST_PAGE_BYTES);
        let is_inside = range_within(self.layout.windows, address, bytes);
        assert!(whole_pages && is_inside, "{bytes} bytes at {address:#x} are not whole pages of windows");
    }

    /// Returns whether the bytes lie in one arena with readable and writable memory.
    pub(crate) fn holds_data(&self, address: usize, bytes: usize) -> bool {
        [self.layout.stacks, self.layout.memory].into_iter().any(|arena| range_within(arena, address, bytes))
    }

    fn check(&self, address: usize, bytes: usize) {
        let whole_pages = address.is_multiple_of(HOST_PAGE_BYTES) && bytes.is_multiple_of(HOST_PAGE_BYTES);
        assert!(
            whole_pages && self.holds_data(address, bytes),
            "{bytes} bytes at {address:#x} are not whole pages of an arena"
        );
    }
}

/// Returns whether all the bytes lie in the arena.
pub(crate) fn range_within(arena: Arena, address: usize, bytes: usize) -> bool {
    address.checked_sub(arena.base).is_some_and(|offset| offset <= arena.bytes && bytes <= arena.bytes - offset)
}

/// Reserves an arena aligned to a group of stack slots, halving the size while the host refuses it.
fn reserve(name: &'static str, max_bytes: usize, min_bytes: usize, access: Access) -> Result<Arena, StartError> {
    let mut bytes = max_bytes;
    loop {
        match reserve_exactly(bytes, access) {
            Ok(arena) => return Ok(arena),
            Err(reason) if bytes / 2 < min_bytes => {
                return Err(StartError::AddressSpace { arena: name, bytes, reason });
            }
            Err(_) => bytes = bytes / 2 / GROUP_BYTES * GROUP_BYTES,
        }
    }
}

/// No windows.
const NONE: Arena = Arena { base: 0, bytes: 0 };

/// Reserves windows, aligned to their size, as many as the host allows; none if it refuses.
fn reserve_windows() -> Arena {
    let usual = Arena { base: USUAL_WINDOWS, bytes: WINDOWS_BYTES };
    if reserve_at(usual, Access::None).is_ok() {
        return usual;
    }
    let reserved = reserve("window", WINDOWS_BYTES, 2 * WINDOW_BYTES, Access::None);
    reserved.map_or(NONE, |arena| {
        let base = arena.base.next_multiple_of(WINDOW_BYTES);
        let bytes = (arena.base + arena.bytes - base) / WINDOW_BYTES * WINDOW_BYTES;
        Arena { base, bytes }
    })
}

fn reserve_exactly(bytes: usize, access: Access) -> io::Result<Arena> {
    let protection = match access {
        Access::Stacks | Access::Memory => libc::PROT_READ | libc::PROT_WRITE,
        Access::None => libc::PROT_NONE,
    };
    // A group of stack slots of padding before and after: the first for alignment, the second so that no
    // foreign mapping touches the end.
    let whole = bytes + 2 * GROUP_BYTES;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new anonymous mapping at an address of the host's choice touches nothing that exists.
    let start = unsafe { libc::mmap(ptr::null_mut(), whole, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the range is the mapping just made.
    unsafe { advise(start, whole, access) };
    let base = start.expose_provenance().next_multiple_of(GROUP_BYTES);
    Ok(Arena { base, bytes })
}

/// Reserves an arena at its address, with padding after it if there is room: arenas of another machine may
/// follow each other.
fn reserve_at(arena: Arena, access: Access) -> io::Result<()> {
    reserve_with(arena, access, USUAL_BYTES).or_else(|_| reserve_with(arena, access, 0))
}

fn reserve_with(arena: Arena, access: Access, padding: usize) -> io::Result<()> {
    let protection = match access {
        Access::Stacks | Access::Memory => libc::PROT_READ | libc::PROT_WRITE,
        Access::None => libc::PROT_NONE,
    };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let (address, bytes) = (ptr::with_exposed_provenance_mut(arena.base), arena.bytes + padding);
    // SAFETY: the host refuses the mapping where another is, so it replaces nothing.
    let start = unsafe { libc::mmap(address, bytes, protection, flags, -1, 0) };
    match start {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        start if start != address => {
            // Hosts before Linux 4.17 take the address as a hint.
            // SAFETY: the mapping was just made, and nobody knows of it.
            unsafe { libc::munmap(start, bytes) };
            Err(io::ErrorKind::AddrInUse.into())
        }
        _ => {
            // SAFETY: the range is the mapping just made.
            unsafe { advise(start, bytes, access) };
            Ok(())
        }
    }
}

/// Says whether the host is to use huge pages. A host without them refuses this advice, which is then not needed either.
///
/// # Safety
/// The range must be a mapping of this process.
unsafe fn advise(start: *mut libc::c_void, bytes: usize, access: Access) {
    let advice = match access {
        Access::Memory => libc::MADV_HUGEPAGE,
        Access::Stacks | Access::None => libc::MADV_NOHUGEPAGE,
    };
    // SAFETY: the caller's obligation; the advice changes no contents.
    unsafe { libc::madvise(start, bytes, advice) };
}

/// Maps a file in the place of a data arena that nobody uses yet.
fn share(arena: Arena, file: &OwnedFd) -> io::Result<()> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
    let address = ptr::with_exposed_provenance_mut(arena.base);
    // SAFETY: the arena has just been reserved, and nothing in it has been handed out.
    let mapped = unsafe { libc::mmap(address, arena.bytes, protection, flags, file.as_raw_fd(), 0) };
    if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reserves addresses at which this process never has anything.
pub(crate) fn reserve_window(bytes: usize) -> io::Result<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new anonymous mapping at an address of the host's choice touches nothing that exists.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(start.expose_provenance()) }
}

/// Probes, on a page of its own, whether the host supports light guards.
fn probe_guards() -> GuardKind {
    probe_guards_of(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
}

fn probe_guards_of(flags: libc::c_int, file: RawFd) -> GuardKind {
    // SAFETY: a new mapping at an address of the host's choice touches nothing that exists.
    let page = unsafe { libc::mmap(ptr::null_mut(), HOST_PAGE_BYTES, libc::PROT_READ, flags, file, 0) };
    if page == libc::MAP_FAILED {
        return GuardKind::Heavy;
    }
    // SAFETY: the page was mapped above and has no references.
    let answer = unsafe { libc::madvise(page, HOST_PAGE_BYTES, MADV_GUARD_INSTALL) };
    // SAFETY: as above; it is not used afterwards.
    unsafe { libc::munmap(page, HOST_PAGE_BYTES) };
    if answer == 0 { GuardKind::Light } else { GuardKind::Heavy }
}

/// Memory of an arena, for a test; from one reservation for all of them, since each takes a large part of the addresses of
/// the process.
#[cfg(test)]
pub(crate) fn test_memory(bytes: usize) -> crate::transfer::Memory {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};
    static RESERVATION: OnceLock<Reservation> = OnceLock::new();
    static GIVEN: AtomicUsize = AtomicUsize::new(0);
    let reservation = RESERVATION.get_or_init(|| Reservation::new(Some(1 << 24)).expect("memory"));
    let address = reservation.layout().memory.base + GIVEN.fetch_add(bytes, Ordering::Relaxed);
    crate::transfer::Memory::checked(reservation, address, bytes).expect("memory of the arena")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_do_not_wrap() {
        let arena = Arena { base: 0x1000, bytes: 0x3000 };
        assert!(range_within(arena, 0x1000, 0x3000));
        assert!(range_within(arena, 0x4000, 0));
        assert!(!range_within(arena, 0x1000, 0x3001));
        assert!(!range_within(arena, 0xfff, 1));
        assert!(!range_within(arena, 0x2000, usize::MAX));
    }

    #[test]
    fn a_refused_size_is_halved_and_then_told() {
        let most = 1 << 50;
        let error = reserve("stack", most, most, Access::None).expect_err("a petabyte");
        assert!(error.to_string().starts_with("the host refused "), "{error}");
        let arena = reserve("stack", most, GIB, Access::None).expect("some part of it");
        assert!(arena.bytes < most && arena.bytes >= GIB && arena.base.is_multiple_of(GROUP_BYTES));
        // SAFETY: the range was just reserved, and nobody else knows of it. Other tests need the addresses.
        let answer = unsafe { libc::munmap(ptr::with_exposed_provenance_mut(arena.base), arena.bytes) };
        assert_eq!(answer, 0, "{}", io::Error::last_os_error());
    }

    #[test]
    fn pages_of_a_window_are_zeroed_each_time() {
        let reservation = Reservation::new(Some(GIB / 2)).expect("address space");
        let windows = reservation.layout().windows;
        assert!(windows.bytes >= WINDOW_BYTES && windows.base.is_multiple_of(WINDOW_BYTES));
        let (window, bytes) = (windows.base, 8 * HOST_PAGE_BYTES);
        let last: *mut u8 = ptr::with_exposed_provenance_mut(window + bytes - 1);
        for _ in 0..2 {
            reservation.window_map(window, bytes / 2).expect("memory");
            reservation.window_map(window + bytes / 2, bytes / 2).expect("memory");
            // SAFETY: the page was just mapped, and nobody else knows of it.
            unsafe {
                assert_eq!(last.read_volatile(), 0);
                last.write_volatile(7);
            }
            reservation.window_release(window, bytes);
        }
        pages_are_cleared_where_they_are(&reservation);
    }

    /// In the same reservation, since the tests of one process share its addresses.
    fn pages_are_cleared_where_they_are(reservation: &Reservation) {
        let (window, pages) = (reservation.layout().windows.base, 300);
        let bytes = pages * HOST_PAGE_BYTES;
        reservation.window_map(window, bytes).expect("memory");
        let at = |page: usize| ptr::with_exposed_provenance_mut::<u8>(window + page * HOST_PAGE_BYTES + 5);
        for round in 0..20 {
            // Those that were touched before stay in memory.
            let step = if round % 5 == 4 { 3 } else { 29 };
            for page in (7..pages).step_by(step) {
                // SAFETY: the pages were mapped above, and nobody else knows of them.
                unsafe { at(page).write_volatile(7) };
            }
            // Of many, the host takes them back faster.
            let is_cleared = reservation.window_clear(window, bytes);
            assert_eq!(is_cleared, round % 5 != 4, "round {round}");
            if !is_cleared {
                reservation.window_release(window, bytes);
                reservation.window_map(window, bytes).expect("memory");
            }
            for page in (7..pages).step_by(29) {
                // SAFETY: as above.
                assert_eq!(unsafe { at(page).read_volatile() }, 0, "page {page} in round {round}");
            }
        }
        reservation.window_release(window, bytes);
    }
}

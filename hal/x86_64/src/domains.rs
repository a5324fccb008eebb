//! Domains: page tables of their own, and what the processors remember of them.
//!
//! The kernel runs on its own tables, which have no page of user mode. A domain's tables have the pages of user mode
//! that the kernel has mapped into it, at the same addresses; and, for the kernel alone, what a processor needs to get
//! from one set of tables to the other: the code of `crossing` and of the interrupt stubs, the interrupt table, and each
//! processor's [`Tables`]. So code in a domain has no address for anything else of the kernel: not its memory, not page
//! tables, and no other domain's.
//!
//! Entries are changed under the domain's lock, which is taken with interrupts on and held for moments. A processor that
//! runs in a domain says so (`inside`) before it reads the domain's *epoch*, and forgets the translations that it has of
//! the domain if the epoch is not the one it has last seen. Whoever unmaps clears the entries, changes the epoch, and
//! then makes each processor that says it is inside forget. Both orders are sequentially consistent, so either the
//! processor sees the new epoch, or the unmapper sees the processor inside. No two epochs of all domains are equal, so
//! a domain that reuses a number shares no translations with the one before.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use hal_api::{DomainAccess, DomainId, DomainRing};

use crate::firmware::MAX_PROCESSORS;
use crate::frames::{self, FRAME_BYTES, For};
use crate::paging::{self, NoFrame, Table, index};
use crate::processor_tables::{self, Tables};
use crate::{gates, layout, processors, protection};

/// Maximum domains; each has a PCID, of which 0 is the kernel's.
pub(crate) const MAX_DOMAINS: usize = 1024;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// Bits of an entry that points to a table: the last level determines the access rights.
const TABLE: u64 = PRESENT | WRITABLE | USER;
/// Bit of a value for CR3: translations of the identifier are kept.
const KEEP: u64 = 1 << 63;
/// First address that no domain has.
pub(crate) const USER_END: u64 = 1 << 47;

#[derive(Default)]
struct Domain {
    used: AtomicBool,
    /// Whether its code has the processor's privileges. Its pages are the supervisor's then.
    privileged: AtomicBool,
    /// Physical address of the top-level table.
    root: AtomicU64,
    locked: AtomicBool,
    epoch: AtomicU64,
}

static DOMAINS: [Domain; MAX_DOMAINS] = [const {
    Domain {
        used: AtomicBool::new(false),
        privileged: AtomicBool::new(false),
        root: AtomicU64::new(0),
        locked: AtomicBool::new(false),
        epoch: AtomicU64::new(0),
    }
}; MAX_DOMAINS];
static EPOCHS: AtomicU64 = AtomicU64::new(1);

/// What one processor remembers.
#[repr(C)]
pub(crate) struct Seen {
    /// The last epoch of each domain that it has seen.
    epochs: [AtomicU64; MAX_DOMAINS],
}

/// What each processor that runs remembers, and where its tables are.
struct Known {
    seen: AtomicUsize,
    tables: AtomicUsize,
    /// The domain that it is in, plus one.
    inside: AtomicU64,
}

static KNOWN: [Known; MAX_PROCESSORS] =
    [const { Known { seen: AtomicUsize::new(0), tables: AtomicUsize::new(0), inside: AtomicU64::new(0) } };
        MAX_PROCESSORS];

/// Makes a processor known. Its tables will be mapped in the domains created from now on.
///
/// # Safety
/// Both are of the processor with this number, live for ever, and `seen` is zeroed.
pub(crate) unsafe fn know(number: usize, tables: *const Tables, seen: *const Seen) {
    KNOWN[number].seen.store(seen.expose_provenance(), Ordering::Release);
    KNOWN[number].tables.store(tables.expose_provenance(), Ordering::Release);
}

fn get(domain: DomainId) -> &'static Domain {
    &DOMAINS[domain.0 as usize % MAX_DOMAINS]
}

/// A locked domain.
struct Locked(&'static Domain);

impl Drop for Locked {
    fn drop(&mut self) {
        self.0.locked.store(false, Ordering::Release);
    }
}

impl Domain {
    fn lock(&'static self) -> Locked {
        while self.locked.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        Locked(self)
    }
}

impl Locked {
    /// Bits of an entry for a page that code in the domain reaches.
    fn reached(&self) -> u64 {
        if self.0.privileged.load(Ordering::Relaxed) { PRESENT } else { PRESENT | USER }
    }

    fn root(&self) -> &'static Table {
        paging::table(self.0.root.load(Ordering::Relaxed))
    }

    /// Returns the last-level table of an address, if there is one.
    fn existing(&self, address: usize) -> Option<&'static Table> {
        let mut table = self.root();
        for level in [3, 2, 1] {
            let value = table[index(address, level)].load(Ordering::Relaxed);
            table = (value & PRESENT != 0).then(|| paging::table(value))?;
        }
        Some(table)
    }

    /// Returns the last-level table of an address, allocating tables on the way.
    fn last_table(&self, address: usize) -> Result<&'static Table, NoFrame> {
        let mut table = self.root();
        for level in [3, 2, 1] {
            let entry = &table[index(address, level)];
            let value = match entry.load(Ordering::Relaxed) {
                0 => {
                    let value = frames::take(For::Sip).ok_or(NoFrame)? as u64 | TABLE;
                    entry.store(value, Ordering::Release);
                    value
                }
                value => value,
            };
            table = paging::table(value);
        }
        Ok(table)
    }

    /// Maps pages at their physical addresses. All or nothing, but for tables.
    fn map(&self, start: usize, end: usize, bits: u64) -> Result<(), NoFrame> {
        self.map_frames(start, end, start, bits)
    }

    /// Maps pages to consecutive frames from `first` on.
    fn map_frames(&self, start: usize, end: usize, first: usize, bits: u64) -> Result<(), NoFrame> {
        for (page, stop) in by_table(start, end) {
            let Ok(table) = self.last_table(page) else {
                self.clear(start, page);
                return Err(NoFrame);
            };
            let mut value = (first + (page - start)) as u64 | bits;
            for entry in &table[index(page, 0)..=index(stop - FRAME_BYTES, 0)] {
                entry.store(value, Ordering::Release);
                value += FRAME_BYTES as u64;
            }
        }
        Ok(())
    }

    /// Clears entries; returns whether there were any.
    fn clear(&self, start: usize, end: usize) -> bool {
        let mut any = 0;
        for (page, stop) in by_table(start, end) {
            let Some(table) = self.existing(page) else { continue };
            for entry in &table[index(page, 0)..=index(stop - FRAME_BYTES, 0)] {
                // Only the processor changes an entry besides, and marks one that is going to be cleared.
                any |= entry.load(Ordering::Relaxed);
                entry.store(0, Ordering::Release);
            }
        }
        any != 0
    }
}

/// Bytes whose entries are in one last-level table.
const TABLE_SPAN: usize = 512 * FRAME_BYTES;

/// Splits a range of pages at the limits of last-level tables. No part is empty.
fn by_table(start: usize, end: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut next = start;
    core::iter::from_fn(move || {
        let from = next;
        next = end.min((from | (TABLE_SPAN - 1)) + 1);
        (from < end).then_some((from, next))
    })
}

/// Creates a domain with the gates alone.
pub(crate) fn create(ring: DomainRing) -> Option<DomainId> {
    let free = |domain: &&Domain| !domain.used.load(Ordering::Relaxed) && !domain.used.swap(true, Ordering::AcqRel);
    let domain = DOMAINS.iter().find(free)?;
    let number = (ptr::from_ref(domain).addr() - DOMAINS.as_ptr().addr()) / size_of::<Domain>();
    let id = DomainId(number as u32);
    let Some(root) = frames::take(For::Sip) else {
        domain.used.store(false, Ordering::Release);
        return None;
    };
    domain.root.store(root as u64, Ordering::Relaxed);
    domain.privileged.store(ring == DomainRing::Ring0, Ordering::Relaxed);
    domain.epoch.store(new_epoch(), Ordering::SeqCst);
    if map_way(&domain.lock()).is_err() {
        destroy(id);
        return None;
    }
    Some(id)
}

/// Returns the number of domains.
pub(crate) fn count() -> usize {
    DOMAINS.iter().filter(|domain| domain.used.load(Ordering::Relaxed)).count()
}

/// Maps the way to the kernel and the gates.
fn map_way(domain: &Locked) -> Result<(), NoFrame> {
    let (code, code_end) = layout::crossing();
    domain.map(code, code_end, PRESENT)?;
    let table = processor_tables::interrupt_table();
    domain.map(table, table + FRAME_BYTES, PRESENT | NO_EXECUTE)?;
    for known in &KNOWN {
        let tables = known.tables.load(Ordering::Acquire);
        if tables != 0 {
            let end = (tables + size_of::<Tables>()).next_multiple_of(FRAME_BYTES);
            domain.map(tables, end, PRESENT | WRITABLE | NO_EXECUTE)?;
        }
    }
    domain.map(gates::page(), gates::page() + FRAME_BYTES, domain.reached())
}

fn new_epoch() -> u64 {
    EPOCHS.fetch_add(1, Ordering::SeqCst)
}

/// Releases a domain that no processor is in or will enter, with its tables.
pub(crate) fn destroy(id: DomainId) {
    let domain = get(id);
    let root = domain.root.swap(0, Ordering::AcqRel);
    // No translation leads through the tables any more: no processor uses them, and whoever enters a domain with this
    // number sees another epoch and forgets all that it knows of the number first.
    free_tables(root, 3);
    domain.used.store(false, Ordering::Release);
}

/// Frees a table of a domain that is gone, with those below; level 3 is the top.
fn free_tables(entry: u64, level: u32) {
    if level > 0 {
        let below = paging::table(entry).iter().map(|entry| entry.load(Ordering::Relaxed));
        below.filter(|&entry| entry & PRESENT != 0).for_each(|entry| free_tables(entry, level - 1));
    }
    // SAFETY: the frame came from `take`, for this domain alone; nothing refers to it any more.
    unsafe { frames::give((entry & ADDRESS) as usize) };
}

/// Maps pages of the memory or image arena.
pub(crate) fn map(id: DomainId, address: usize, bytes: usize, access: DomainAccess) -> Result<(), NoFrame> {
    let bits = match access {
        DomainAccess::Read => NO_EXECUTE,
        DomainAccess::Write => WRITABLE | NO_EXECUTE,
        DomainAccess::Execute => 0,
    };
    let domain = get(id).lock();
    domain.map(address, address + bytes, domain.reached() | bits)
}

/// Maps pages of the memory arena at the addresses of an image, writable.
pub(crate) fn map_private(id: DomainId, address: usize, memory: usize, bytes: usize) -> Result<(), NoFrame> {
    let domain = get(id).lock();
    domain.map_frames(address, address + bytes, memory, domain.reached() | WRITABLE | NO_EXECUTE)
}

/// Maps the page of a stack slot that contains the address.
pub(crate) fn map_stack(id: DomainId, address: usize) -> Result<(), NoFrame> {
    let page = address & !(FRAME_BYTES - 1);
    paging::grow_stack(page, For::Sip)?;
    let frame = paging::frame_of(page).ok_or(NoFrame)?;
    let domain = get(id).lock();
    let bits = domain.reached() | WRITABLE | NO_EXECUTE;
    domain.last_table(page)?[index(page, 0)].store(frame as u64 | bits, Ordering::Release);
    Ok(())
}

/// Unmaps pages. When it returns, no processor reaches them from the domain.
pub(crate) fn unmap(id: DomainId, address: usize, bytes: usize) {
    let domain = get(id);
    let any = domain.lock().clear(address, address + bytes);
    if !any {
        return;
    }
    domain.epoch.store(new_epoch(), Ordering::SeqCst);
    let inside = u64::from(id.0) + 1;
    processors::forget_where(|number| KNOWN[number].inside.load(Ordering::SeqCst) == inside);
}

/// Whether code in a domain has the processor's privileges.
#[inline(always)]
pub(crate) fn is_privileged(id: DomainId) -> bool {
    get(id).privileged.load(Ordering::Relaxed)
}

/// First part of entering a domain, with interrupts off: returns the value for CR3.
pub(crate) fn arrive(id: DomainId, number: usize) -> u64 {
    let (domain, known) = (get(id), &KNOWN[number]);
    known.inside.store(u64::from(id.0) + 1, Ordering::SeqCst);
    let epoch = domain.epoch.load(Ordering::SeqCst);
    let root = domain.root.load(Ordering::Relaxed);
    if !protection::has_identifiers() {
        return root;
    }
    // SAFETY: `know` had the address of a `Seen` that lives for ever.
    let seen = unsafe { &*ptr::with_exposed_provenance::<Seen>(known.seen.load(Ordering::Relaxed)) };
    let last = &seen.epochs[id.0 as usize % MAX_DOMAINS];
    let keep = if last.load(Ordering::Relaxed) == epoch { KEEP } else { 0 };
    last.store(epoch, Ordering::Relaxed);
    root | keep | (u64::from(id.0) + 1)
}

/// Last part of leaving a domain.
pub(crate) fn leave(number: usize) {
    KNOWN[number].inside.store(0, Ordering::Release);
}

/// Value for CR3 on the way to the kernel.
pub(crate) fn kernel_root() -> u64 {
    paging::root() | if protection::has_identifiers() { KEEP } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_split_where_last_level_tables_end() {
        extern crate std;
        let split = |start, end| by_table(start, end).collect::<std::vec::Vec<_>>();
        assert_eq!(split(0x1000, 0x1000), []);
        assert_eq!(split(0x1000, 0x3000), [(0x1000, 0x3000)]);
        assert_eq!(split(0, TABLE_SPAN), [(0, TABLE_SPAN)]);
        let (two, three) = (2 * TABLE_SPAN, 3 * TABLE_SPAN);
        assert_eq!(
            split(TABLE_SPAN - 0x1000, three + 0x1000),
            [(TABLE_SPAN - 0x1000, TABLE_SPAN), (TABLE_SPAN, two), (two, three), (three, three + 0x1000)]
        );
    }
}

//! Windows: addresses that SIPs reserve, and the pages behind them.
//!
//! The pages are runs of the arena like any others. A machine with page tables of its own has them at the window's
//! addresses too; a hosted one has pages of the host there, and leaves those of the arena untouched. Addresses are
//! handed out and returned whole. Of a few that are free, the machine's pages stay mapped, zeroed: whoever wants as many
//! gets them without a change of page tables and without a page fault. Deliberately not here: whose a window is, which is in `process::windows`.

use alloc::vec::Vec;

use abi::limits::{PAGE_BYTES, WINDOW_BYTES};
use hal_api::MapError;

use super::{allocate_pages, extend_pages, free_pages};
use crate::lock::SpinLock;
use crate::machine::machine;
use crate::preempt;
use crate::space::SpaceRef;

/// Windows that are free, and the number of those that were ever used.
struct Free {
    /// Without pages.
    cold: Vec<usize>,
    /// With so many zeroed pages still mapped, outside of domains. Those that were freed last are the last.
    warm: Vec<(usize, usize)>,
    made: usize,
}

static FREE: SpinLock<Free> = SpinLock::new(Free { cold: Vec::new(), warm: Vec::new(), made: 0 });

/// Maximum number of windows that stay mapped, and of the pages of each.
const MAX_WARM: usize = 64;
const MAX_WARM_PAGES: usize = 512;

/// A window with its pages. Whoever has it gives it back by [`free`].
pub struct Window {
    /// Its first address.
    pub address: usize,
    /// Number of its pages, from the start.
    pub pages: usize,
    /// If it has none, number of zeroed pages that are still mapped there, of nobody.
    warm: usize,
    /// Runs of the arena that are behind them, in order: address, number of pages.
    parts: Vec<(usize, usize)>,
}

impl Window {
    /// Number of runs behind it.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }
}

/// Whether the machine has windows.
pub fn has_any() -> bool {
    machine().layout().windows.bytes > 0
}

/// Takes a window, to be grown by this many pages, mapped in a domain's space or in everybody's. Whoever takes one for
/// no pages finds nothing there.
pub fn take(pages: usize, in_domain: bool) -> Option<Window> {
    let arena = machine().layout().windows;
    let mut free = FREE.lock();
    let is_fitting = |&(_, warm): &(usize, usize)| !in_domain && pages > 0 && warm == pages;
    if let Some(index) = free.warm.iter().rposition(is_fitting) {
        let (address, warm) = free.warm.remove(index);
        return Some(Window { address, pages: 0, warm, parts: Vec::new() });
    }
    let address = match free.cold.pop() {
        Some(address) => address,
        None if free.made < arena.bytes / WINDOW_BYTES => {
            // Room for every window, so that returning one does not allocate.
            let more = free.made + 1;
            free.cold.try_reserve(more).ok()?;
            let warm = MAX_WARM.saturating_sub(free.warm.len());
            free.warm.try_reserve(warm).ok()?;
            free.made = more;
            arena.base + (more - 1) * WINDOW_BYTES
        }
        None => {
            let (address, warm) = free.warm.pop()?;
            drop(free);
            machine().window_release(address, warm * PAGE_BYTES);
            address
        }
    };
    Some(Window { address, pages: 0, warm: 0, parts: Vec::new() })
}

/// Adds zeroed pages behind those of a window, mapped in a space; whether there were any. The caller has made sure that
/// they fit, and may be preempted.
pub fn grow(window: &mut Window, more: usize, space: Option<SpaceRef>) -> bool {
    let Some(memory) = add_pages(window, more) else { return false };
    let (address, bytes) = (window.address + window.pages * PAGE_BYTES, more * PAGE_BYTES);
    let mapped: Result<(), MapError> = match space {
        Some(space) => space.map_private(address, memory, bytes),
        None if window.pages == 0 && window.warm == more => Ok(()),
        None => machine().window_map(address, memory, bytes),
    };
    if mapped.is_err() {
        if let Some((_, count)) = window.parts.last_mut() {
            *count -= more;
        }
        window.parts.pop_if(|(_, count)| *count == 0);
        free_pages(memory, more, None);
        return false;
    }
    window.pages += more;
    window.warm = 0;
    true
}

/// Adds pages of the arena to the last part, or as another; returns the address of the first.
fn add_pages(window: &mut Window, more: usize) -> Option<usize> {
    let end = |(address, count): (usize, usize)| address + count * PAGE_BYTES;
    window.parts.try_reserve(1).ok()?;
    let last = window.parts.last().copied();
    let extended = last.map(end).filter(|&end| extend_pages(end, more, None));
    let memory = match extended {
        Some(memory) => memory,
        None => allocate_pages(more, None)?,
    };
    match window.parts.last_mut() {
        Some((address, count)) if end((*address, *count)) == memory => *count += more,
        _ => window.parts.push((memory, more)),
    }
    Some(memory)
}

/// Frees a window with its pages, mapped in a space. The caller holds no lock and may be preempted.
pub fn free(mut window: Window, space: Option<SpaceRef>) {
    let bytes = window.pages * PAGE_BYTES;
    let warm = match space {
        _ if bytes == 0 => window.warm,
        Some(space) => {
            space.unmap(window.address, bytes);
            0
        }
        None if may_stay(window.pages) && machine().window_clear(window.address, bytes) => window.pages,
        None => {
            machine().window_release(window.address, bytes);
            0
        }
    };
    while let Some((address, count)) = window.parts.pop() {
        free_pages(address, count, None);
        preempt::pause();
    }
    let mut free = FREE.lock();
    if warm > 0 && free.warm.len() < MAX_WARM {
        free.warm.push((window.address, warm));
        return;
    }
    drop(free);
    if warm > 0 {
        machine().window_release(window.address, warm * PAGE_BYTES);
    }
    FREE.lock().cold.push(window.address);
}

fn may_stay(pages: usize) -> bool {
    pages <= MAX_WARM_PAGES && FREE.lock().warm.len() < MAX_WARM
}

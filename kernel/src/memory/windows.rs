//! Windows: addresses that SIPs reserve, and the pages behind them.
//!
//! The pages are runs of the arena like any others. A machine with page tables of its own has them at the window's
//! addresses too; a hosted one has pages of the host there, and leaves those of the arena untouched. Addresses are
//! handed out and returned whole. Deliberately not here: whose a window is, which is in `process::windows`.

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
    list: Vec<usize>,
    made: usize,
}

static FREE: SpinLock<Free> = SpinLock::new(Free { list: Vec::new(), made: 0 });

/// A window with its pages. Whoever has it gives it back by [`free`].
pub struct Window {
    /// Its first address.
    pub address: usize,
    /// Number of its pages, from the start.
    pub pages: usize,
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

/// Takes a window without pages.
pub fn take() -> Option<Window> {
    let arena = machine().layout().windows;
    let mut free = FREE.lock();
    let address = match free.list.pop() {
        Some(address) => address,
        None if free.made < arena.bytes / WINDOW_BYTES => {
            // Room for every window, so that returning one does not allocate.
            let more = free.made + 1;
            free.list.try_reserve(more).ok()?;
            free.made = more;
            arena.base + (more - 1) * WINDOW_BYTES
        }
        None => return None,
    };
    Some(Window { address, pages: 0, parts: Vec::new() })
}

/// Adds zeroed pages behind those of a window, mapped in a space; whether there were any. The caller has made sure that
/// they fit, and may be preempted.
pub fn grow(window: &mut Window, more: usize, space: Option<SpaceRef>) -> bool {
    let Some(memory) = add_pages(window, more) else { return false };
    let (address, bytes) = (window.address + window.pages * PAGE_BYTES, more * PAGE_BYTES);
    let mapped: Result<(), MapError> = match space {
        Some(space) => space.map_private(address, memory, bytes),
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
    match space {
        _ if bytes == 0 => {}
        Some(space) => space.unmap(window.address, bytes),
        None => machine().window_release(window.address, bytes),
    }
    while let Some((address, count)) = window.parts.pop() {
        free_pages(address, count, None);
        preempt::pause();
    }
    FREE.lock().list.push(window.address);
}

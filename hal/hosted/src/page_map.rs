//! Which pages of this process the host has given memory, by `/proc/self/pagemap` (proc_pid_pagemap(5)).
//!
//! Of a window with hundreds of pages a short program touches a few. To zero those takes a microsecond; to give all back
//! and to have the next program's accesses fault takes ten. Key type: [`PageMap`]. Deliberately not here: any access to
//! the pages, which is `arena`'s.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use crate::arena::HOST_PAGE_BYTES;

/// Maximum number of pages that are looked at: 2 MiB, so that none is part of a huge one.
const MAX_PAGES: usize = 512;
/// Bytes of the entry of a page.
const ENTRY_BYTES: usize = 8;
/// Entries that are read at once, to the caller's stack, which may be a small one.
const AT_ONCE: usize = 128;
/// Bits of an entry: the page is in memory, or has been swapped out.
const IN_USE: u64 = 0b11 << 62;

/// The file, if the host has it.
#[derive(Debug)]
pub(crate) struct PageMap {
    file: Option<File>,
    /// Whether it is of this process, which may be a child of the one that opened it. Set when it was tried.
    is_own: OnceLock<bool>,
}

/// Which of some consecutive pages have memory, by bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pages([u64; MAX_PAGES / 64]);

impl PageMap {
    /// Opens it, before the process is confined.
    pub(crate) fn open() -> PageMap {
        PageMap { file: File::open("/proc/self/pagemap").ok(), is_own: OnceLock::new() }
    }

    /// Which of these pages of private memory, at most [`MAX_PAGES`], have memory; `None` if that cannot be told. The first
    /// time, `touch` and `give_back` are called with the address of one that has none.
    pub(crate) fn pages(
        &self,
        address: usize,
        count: usize,
        (touch, give_back): (impl FnOnce(usize), impl FnOnce(usize)),
    ) -> Option<Pages> {
        let file = self.file.as_ref().filter(|_| (1..=MAX_PAGES).contains(&count))?;
        let pages = Pages::read(file, address, count)?;
        if self.is_own.get().is_none() {
            let unused = (0..count).find(|index| !pages.is_in_use(*index))?;
            let page = address + unused * HOST_PAGE_BYTES;
            // Another process's page would stay as it is.
            let is_in_use = || Pages::read(file, page, 1).map(|pages| pages.is_in_use(0));
            touch(page);
            let touched = is_in_use();
            give_back(page);
            let _ = self.is_own.set((touched, is_in_use()) == (Some(true), Some(false)));
        }
        (self.is_own.get() == Some(&true)).then_some(pages)
    }
}

impl Pages {
    fn read(file: &File, address: usize, count: usize) -> Option<Pages> {
        let mut pages = Pages([0; MAX_PAGES / 64]);
        let mut entries = [0; ENTRY_BYTES * AT_ONCE];
        for first in (0..count).step_by(AT_ONCE) {
            let some = &mut entries[..ENTRY_BYTES * (count - first).min(AT_ONCE)];
            let place = (address / HOST_PAGE_BYTES + first) * ENTRY_BYTES;
            file.read_exact_at(some, place as u64).ok()?;
            for (index, entry) in some.as_chunks::<ENTRY_BYTES>().0.iter().enumerate() {
                let is_in_use = u64::from_le_bytes(*entry) & IN_USE != 0;
                pages.0[(first + index) / 64] |= u64::from(is_in_use) << ((first + index) % 64);
            }
        }
        Some(pages)
    }

    /// Whether the page with this index has memory.
    pub(crate) fn is_in_use(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 != 0
    }

    /// Number of pages with memory.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|bits| bits.count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_map_of_another_process_is_not_believed() {
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
        let other = File::open(format!("/proc/{}/pagemap", sleeper.id())).expect("its map");
        let map = PageMap { file: Some(other), is_own: OnceLock::new() };
        // Nothing is mapped there in the other; what the two would do has no effect on it.
        let calls = Cell::new(0);
        let count = |_| calls.set(calls.get() + 1);
        assert_eq!(map.pages(0x3000_0000_0000, 3, (count, count)), None);
        assert_eq!((map.pages(0x3000_0000_0000, 3, (count, count)), calls.get()), (None, 2), "it is tried once");
        sleeper.kill().and_then(|()| sleeper.wait()).expect("it was running");
    }

    #[test]
    fn without_the_file_and_of_too_many_pages_nothing_is_told() {
        let none = PageMap { file: None, is_own: OnceLock::new() };
        assert_eq!(none.pages(0x3000_0000_0000, 3, (drop, drop)), None);
        let map = PageMap::open();
        assert_eq!(map.pages(0x3000_0000_0000, MAX_PAGES + 1, (drop, drop)), None);
        assert_eq!(map.pages(0x3000_0000_0000, 0, (drop, drop)), None);
    }
}

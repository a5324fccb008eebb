//! What a SIP may use up, counted where it is used.

use core::sync::atomic::Ordering;

use abi::limits::PAGE_BYTES;
use abi::{Status, TraceKind};

use super::{Process, ProcessRef, no_room};
use crate::memory;
use crate::slab::Slot;

/// Index of the memory quota in a [`TraceKind::QuotaExceeded`] event.
const QUOTA_MEMORY: u64 = 0;
/// Index of the block quota.
const QUOTA_BLOCKS: u64 = 1;
/// Index of the thread quota.
const QUOTA_THREADS: u64 = 2;
/// Index of the handle quota.
const QUOTA_HANDLES: u64 = 3;
/// Index of the channel quota.
const QUOTA_CHANNELS: u64 = 4;
/// Index of the child quota.
const QUOTA_CHILDREN: u64 = 5;

impl Slot<Process> {
    /// Notes that a quota was used up.
    #[cold]
    pub fn quota_exceeded(&self, which: u64) -> Status {
        self.trace.add(TraceKind::QuotaExceeded, which, 0);
        Status::QuotaExceeded
    }

    fn quota(&self) -> package::Quota {
        self.program.get().map(|program| program.manifest.quota).unwrap_or_default()
    }

    /// How many handles it may have.
    pub fn handle_quota(&self) -> usize {
        self.quota().handles as usize
    }

    /// Counts a child that it creates. Those that it gave up count as long as they run.
    pub(super) fn charge_child(&self) -> Result<(), Status> {
        self.may_grow()?;
        self.may_have_another_handle()?;
        let allowed = self.quota().children;
        let more = |count: u32| (count < allowed).then_some(count + 1);
        match self.charged_children.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.quota_exceeded(QUOTA_CHILDREN)),
        }
    }

    /// Whether it may have one more handle.
    pub fn may_have_another_handle(&self) -> Result<(), Status> {
        if self.handles() < self.quota().handles { Ok(()) } else { Err(self.quota_exceeded(QUOTA_HANDLES)) }
    }

    /// Counts a block that it allocates.
    #[inline(always)]
    pub fn charge_blocks(&self, bytes: usize) -> Result<(), Status> {
        let Some(program) = self.program.get() else { return Err(Status::WrongState) };
        let quota = &program.manifest.quota;
        if self.blocks.lock().count() >= quota.handles {
            return Err(self.quota_exceeded(QUOTA_HANDLES));
        }
        let allowed = quota.block_kib as usize * 1024;
        self.may_grow()?;
        let used = self.block_bytes.load(Ordering::Relaxed);
        if used.checked_add(bytes).is_none_or(|sum| sum > allowed) {
            return Err(self.quota_exceeded(QUOTA_BLOCKS));
        }
        self.block_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Counts blocks that came in a message: they may exceed the quota, but then it can allocate none.
    #[inline(always)]
    pub fn charge_received_blocks(&self, bytes: usize) {
        self.block_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Blocks are another's from now on; nothing to do if the slot is another SIP's by now.
    #[inline(always)]
    pub fn refund_blocks(&self, id: u64, bytes: usize) {
        if self.id.load(Ordering::Relaxed) == id {
            let less = |used: usize| used.checked_sub(bytes);
            // It is less only if the slot has just been taken into use for another SIP.
            let _ = self.block_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    /// Counts a channel that it creates.
    #[inline(always)]
    pub fn charge_channel(&self) -> Result<(), Status> {
        let Some(program) = self.program.get() else { return Err(Status::WrongState) };
        let quota = &program.manifest.quota;
        if self.endpoints.lock().count() + 2 > quota.handles {
            return Err(self.quota_exceeded(QUOTA_HANDLES));
        }
        self.may_grow()?;
        if self.created_channels.fetch_add(1, Ordering::Relaxed) >= quota.channels {
            self.created_channels.fetch_sub(1, Ordering::Relaxed);
            return Err(self.quota_exceeded(QUOTA_CHANNELS));
        }
        Ok(())
    }

    /// A channel that the SIP with this id created is gone; nothing to do if the slot is another's.
    pub fn refund_channel(&self, id: u64) {
        if self.id.load(Ordering::Relaxed) == id {
            let less = |count: u32| count.checked_sub(1);
            // It is 0 only if the slot has just been taken into use for another SIP.
            let _ = self.created_channels.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    /// A child of the SIP with this id is no longer its: it has ended, and its handle was given up; nothing to do if the
    /// slot is another's.
    pub(super) fn refund_child(&self, id: u64) {
        if self.id.load(Ordering::Relaxed) == id {
            let less = |count: u32| count.checked_sub(1);
            // As in `refund_channel`.
            let _ = self.charged_children.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    /// Allocates pages.
    pub fn allocate_pages(&self, count: usize) -> Result<usize, Status> {
        let allowed = self.quota().memory_kib as usize * 1024 / PAGE_BYTES;
        {
            let mut pages = self.pages.lock();
            if count == 0 {
                return Err(Status::BadArgument);
            }
            if pages.count.checked_add(count).is_none_or(|sum| sum > allowed) {
                drop(pages);
                return Err(self.quota_exceeded(QUOTA_MEMORY));
            }
            pages.count += count;
        }
        let no_room = || no_room(count.saturating_mul(PAGE_BYTES));
        let allocated = self.may_grow().and_then(|()| memory::allocate_pages(count).ok_or_else(no_room));
        let address = match allocated {
            Ok(address) => address,
            Err(status) => {
                self.pages.lock().count -= count;
                return Err(status);
            }
        };
        self.pages.lock().runs.push((address, count));
        self.trace.add(TraceKind::MemoryAllocated, address as u64, count as u64);
        Ok(address)
    }

    /// Frees an allocation; how many pages.
    pub fn free_pages(&self, address: usize) -> Result<usize, Status> {
        let mut pages = self.pages.lock();
        let position = pages.runs.iter().position(|&(run, _)| run == address).ok_or(Status::BadArgument)?;
        let (_, count) = pages.runs.swap_remove(position);
        pages.count -= count;
        drop(pages);
        memory::free_pages(address, count);
        self.trace.add(TraceKind::MemoryFreed, address as u64, count as u64);
        Ok(count)
    }

    /// Pages used and allowed.
    pub fn page_usage(&self) -> (usize, usize) {
        (self.pages.lock().count, self.quota().memory_kib as usize * 1024 / PAGE_BYTES)
    }
}

/// Whether the SIP may have another thread.
pub fn may_create_thread(process: ProcessRef) -> Result<(), Status> {
    if process.threads.lock().count() < process.quota().threads {
        process.may_grow()?;
        process.may_have_another_handle()
    } else {
        Err(process.quota_exceeded(QUOTA_THREADS))
    }
}

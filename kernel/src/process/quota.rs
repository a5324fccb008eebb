//! Accounting: the resources of a SIP against the quotas of its manifest.
//!
//! Blocks and channels are counted in one word each, so that a message or a new channel costs one atomic operation.
//! Other kernel memory of a SIP is counted in [`Process::kernel_bytes`], or follows from lists that know their length.
//! docs/decisions/0009-when-memory-runs-out.md has the charging rules and the limits.

use core::sync::atomic::Ordering;

use abi::limits::{self, PAGE_BYTES};
use abi::{Status, TraceKind, stack};

use super::{Blocks, ImageData, Pages, Process, ProcessRef};
use crate::memory::{self, windows::Window};
use crate::shortage::{ask_for_reclaim, no_room};
use crate::slab::{Charged, Slot};

/// Index of the memory quota in a [`TraceKind::QuotaExceeded`] event.
pub(super) const QUOTA_MEMORY: u64 = 0;
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
/// Index of the quota of kernel memory.
const QUOTA_KERNEL: u64 = 6;

/// One channel in the packed account. The bits below are bytes.
const ONE_CHANNEL: u64 = 1 << 40;

/// Kernel memory of one SIP, in bytes.
pub(super) const PROCESS_BYTES: usize = size_of::<Slot<Process>>();
/// Kernel memory of one run of pages, in bytes.
const RUN_BYTES: usize = 48;
/// Kernel memory of a run that is behind a window.
const PART_BYTES: usize = size_of::<(usize, usize)>();

impl Pages {
    /// Bytes that the kernel keeps for the allocations and the parts of windows.
    fn kept_bytes(&self) -> usize {
        let parts: usize = self.windows.iter().map(Window::parts).sum();
        self.runs.len() * RUN_BYTES + parts * PART_BYTES
    }
}

impl Slot<Process> {
    /// Traces an exhausted quota.
    #[cold]
    pub fn quota_exceeded(&self, which: u64) -> Status {
        self.trace.add(TraceKind::QuotaExceeded, which, 0);
        Status::QuotaExceeded
    }

    fn quota(&self) -> manifest_model::Quota {
        self.program.get().map(|program| program.manifest.quota).unwrap_or_default()
    }

    /// Maximum number of its handles.
    pub fn handle_quota(&self) -> usize {
        self.quota().handles as usize
    }

    /// Whether a new object may be made for it. When memory is low, only the root and services get more: they are few,
    /// chosen by the author of the system, and the rest of the system waits for them.
    #[inline(always)]
    pub fn may_grow(&self) -> Result<(), Status> {
        if memory::is_low() { self.grow_when_low() } else { Ok(()) }
    }

    #[cold]
    fn grow_when_low(&self) -> Result<(), Status> {
        ask_for_reclaim();
        if self.depth.load(Ordering::Relaxed) <= 1 { Ok(()) } else { Err(Status::Exhausted) }
    }

    /// Bytes that it holds, excluding the stacks of its threads.
    pub fn held_bytes(&self) -> usize {
        let pages = self.pages.lock().count;
        pages * PAGE_BYTES + self.block_bytes.load(Ordering::Relaxed) + self.kept_for()
    }

    /// Charges a new child. Released children count while they run.
    pub(crate) fn charge_child(&self) -> Result<(), Status> {
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

    /// Charges a block that it allocates. The quota covers the storage of blocks; the records of as many blocks as it
    /// may have handles come on top.
    #[inline(always)]
    pub fn charge_blocks(&self, bytes: usize) -> Result<(), Status> {
        let Some(program) = self.program.get() else { return Err(Status::WrongState) };
        let quota = &program.manifest.quota;
        let count = self.blocks.lock().count();
        if count >= quota.handles {
            return Err(self.quota_exceeded(QUOTA_HANDLES));
        }
        let allowed = quota.block_kib as usize * 1024 + (count as usize + 1) * Blocks::RECORD_BYTES;
        self.may_grow()?;
        // Counted before it is compared, so that concurrently allocating threads stay within the quota together.
        if bytes <= allowed {
            if self.block_bytes.fetch_add(bytes, Ordering::Relaxed) <= allowed - bytes {
                return Ok(());
            }
            self.block_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        Err(self.quota_exceeded(QUOTA_BLOCKS))
    }

    /// Charges blocks received in a message. They may exceed the quota, but then it can allocate none.
    #[inline(always)]
    pub fn charge_received_blocks(&self, bytes: usize) {
        self.block_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Refunds blocks that changed owners; does nothing if the slot holds another SIP by now.
    #[inline(always)]
    pub fn refund_blocks(&self, id: u64, bytes: usize) {
        if self.id.load(Ordering::Relaxed) == id {
            let less = |used: usize| used.checked_sub(bytes);
            // It is less only if the slot has just been reused for another SIP.
            let _ = self.block_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    /// Charges a channel of this many bytes that it creates.
    #[inline(always)]
    pub fn charge_channel(&self, bytes: usize) -> Result<(), Status> {
        let Some(program) = self.program.get() else { return Err(Status::WrongState) };
        let quota = &program.manifest.quota;
        if self.endpoints.lock().count() + 2 > quota.handles {
            return Err(self.quota_exceeded(QUOTA_HANDLES));
        }
        self.may_grow()?;
        let before = self.channels.fetch_add(ONE_CHANNEL + bytes as u64, Ordering::Relaxed);
        let (count, used) = (before / ONE_CHANNEL, (before % ONE_CHANNEL) as usize);
        let kept = used + self.kernel_bytes.load(Ordering::Relaxed);
        if count < u64::from(quota.channels) && kept + bytes <= self.kernel_quota.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.channels.fetch_sub(ONE_CHANNEL + bytes as u64, Ordering::Relaxed);
        Err(self.quota_exceeded(if count < u64::from(quota.channels) { QUOTA_KERNEL } else { QUOTA_CHANNELS }))
    }

    /// Charges a channel whose creator is gone. It may exceed the quota, but then it can create none.
    pub fn charge_inherited_channel(&self, bytes: usize) {
        self.channels.fetch_add(ONE_CHANNEL + bytes as u64, Ordering::Relaxed);
    }

    /// Refunds a channel of the SIP with this id, closed or charged to another by now; does nothing if the slot holds
    /// another SIP.
    #[inline(always)]
    pub fn refund_channel(&self, id: u64, bytes: usize) {
        if self.id.load(Ordering::Relaxed) == id {
            let less = |account: u64| {
                let bytes = (account % ONE_CHANNEL).checked_sub(bytes as u64)?;
                Some((account / ONE_CHANNEL).checked_sub(1)? * ONE_CHANNEL + bytes)
            };
            // It is less only if the slot has just been reused for another SIP.
            let _ = self.channels.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    /// Adjusts the charge for a channel of the SIP with this id whose size changed.
    pub fn correct_channel(&self, id: u64, before: usize, now: usize) {
        if self.id.load(Ordering::Relaxed) == id {
            let corrected = |account: u64| {
                let bytes = (account % ONE_CHANNEL + now as u64).checked_sub(before as u64)?;
                Some(account / ONE_CHANNEL * ONE_CHANNEL + bytes)
            };
            // As in `refund_channel`.
            let _ = self.channels.fetch_update(Ordering::Relaxed, Ordering::Relaxed, corrected);
        }
    }

    /// Number of channels it pays for.
    pub fn paid_channels(&self) -> u64 {
        self.channels.load(Ordering::Relaxed) / ONE_CHANNEL
    }

    /// Charges kernel memory.
    pub fn charge_kernel(&self, bytes: usize) -> Result<(), Status> {
        self.may_grow()?;
        let channels = (self.channels.load(Ordering::Relaxed) % ONE_CHANNEL) as usize;
        let before = self.kernel_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before + channels + bytes <= self.kernel_quota.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.kernel_bytes.fetch_sub(bytes, Ordering::Relaxed);
        Err(self.quota_exceeded(QUOTA_KERNEL))
    }

    /// Charges the record of a child that has ended. It may exceed the quota, but then nothing more is kept.
    pub(crate) fn charge_kept_child(&self, bytes: usize) {
        self.kernel_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Refunds a charge of [`charge_kernel`](Self::charge_kernel).
    pub fn refund_kernel(&self, bytes: usize) {
        // It is less only if the slot has just been reused for another SIP.
        let less = |used: usize| used.checked_sub(bytes);
        let _ = self.kernel_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Kernel memory held for it, in bytes, excluding its blocks.
    pub fn kept_for(&self) -> usize {
        let threads = self.threads.lock().record_bytes();
        let syncs = self.syncs.lock().record_bytes();
        let runs = self.pages.lock().kept_bytes();
        let channels = (self.channels.load(Ordering::Relaxed) % ONE_CHANNEL) as usize;
        let given = self.life.lock().bytes();
        let own = self.own_principal.bytes();
        PROCESS_BYTES + threads + syncs + runs + channels + given + own + self.kernel_bytes.load(Ordering::Relaxed)
    }

    /// Refunds a child of the SIP with this id that has ended and whose handle was closed; does nothing if the slot
    /// holds another SIP.
    pub(crate) fn refund_child(&self, id: u64) {
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
        let allocated =
            self.may_grow().and_then(|()| memory::allocate_pages(count, self.space.get()).ok_or_else(no_room));
        let address = match allocated {
            Ok(address) => address,
            Err(status) => {
                self.pages.lock().count -= count;
                return Err(status);
            }
        };
        self.pages.lock().runs.insert(address, count);
        self.trace.add(TraceKind::MemoryAllocated, address as u64, count as u64);
        Ok(address)
    }

    /// Adds pages right behind an allocation, or to a window; returns the address of the first.
    ///
    /// # Errors
    /// There is no such allocation, the quota is exhausted, or the pages behind it are not free.
    pub fn grow_pages(&self, address: usize, more: usize) -> Result<usize, Status> {
        if more == 0 {
            return Err(Status::BadArgument);
        }
        if let Some(grown) = self.grow_window(address, more) {
            return grown;
        }
        let allowed = self.allowed_pages();
        let mut pages = self.pages.lock();
        // Nobody finds it while it grows: a thread that frees it meanwhile is refused.
        let count = pages.runs.remove(address).ok_or(Status::BadArgument)?;
        if pages.count.checked_add(more).is_none_or(|sum| sum > allowed) {
            pages.runs.insert(address, count);
            drop(pages);
            return Err(self.quota_exceeded(QUOTA_MEMORY));
        }
        pages.count += more;
        drop(pages);
        let end = address + count * PAGE_BYTES;
        let is_grown = self.may_grow().is_ok() && memory::extend_pages(end, more, self.space.get());
        let mut pages = self.pages.lock();
        pages.runs.insert(address, if is_grown { count + more } else { count });
        if !is_grown {
            pages.count -= more;
            return Err(Status::WouldBlock);
        }
        drop(pages);
        self.trace.add(TraceKind::MemoryAllocated, end as u64, more as u64);
        Ok(end)
    }

    /// Makes copies of data of its image, as address and bytes, for its domain alone. They count as its pages.
    ///
    /// # Errors
    /// Its quota of memory is smaller, or memory is short: nothing is left behind.
    pub fn copy_image_data(&self, segments: &[(usize, usize)], quota: &manifest_model::Quota) -> Result<(), Status> {
        let allowed = quota.memory_kib as usize * 1024 / PAGE_BYTES;
        for &(address, bytes) in segments {
            let pages = bytes.div_ceil(PAGE_BYTES);
            let sum = self.pages.lock().count.checked_add(pages);
            let copied = match sum {
                Some(sum) if sum <= allowed => self.copy_data(address, pages),
                _ => Err(Status::QuotaExceeded),
            };
            if let Err(status) = copied {
                self.free_image_data();
                return Err(status);
            }
        }
        Ok(())
    }

    fn copy_data(&self, address: usize, pages: usize) -> Result<(), Status> {
        let space = self.space.get().ok_or(Status::WrongState)?;
        let bytes = pages * PAGE_BYTES;
        let memory = memory::allocate_pages(pages, None).ok_or_else(|| no_room(bytes))?;
        memory::copy_image(address, memory, bytes);
        let mut all = self.pages.lock();
        let kept = all.data.try_reserve(1).is_ok();
        if kept {
            all.data.push(ImageData { address, memory, pages });
            all.count += pages;
        }
        drop(all);
        if !kept {
            memory::free_pages(memory, pages, None);
            return Err(no_room(size_of::<ImageData>()));
        }
        space.map_private(address, memory, bytes).map_err(|_| Status::Exhausted)
    }

    /// Frees its copies of data of its image. None of its threads is in its domain, or will be.
    pub fn free_image_data(&self) {
        loop {
            let mut all = self.pages.lock();
            let Some(data) = all.data.pop() else { return };
            all.count -= data.pages;
            drop(all);
            if let Some(space) = self.space.get() {
                space.unmap(data.address, data.pages * PAGE_BYTES);
            }
            memory::free_pages(data.memory, data.pages, None);
        }
    }

    /// The number of the size that its threads' stacks have: see [`stack`].
    pub fn stack_size(&self) -> usize {
        stack::size_number(self.quota().stack_kib as usize * 1024).unwrap_or(0)
    }

    /// Charges a stack of a size to its memory. What one of the usual size has is not counted: the number of threads
    /// limits that.
    #[inline(never)]
    pub fn charge_stack(&self, size: usize) -> Result<(), Status> {
        if size == 0 {
            return Ok(());
        }
        let more = stack::pages_beyond_usual(stack::USUAL_BYTES << size);
        let mut pages = self.pages.lock();
        if pages.count + more > self.quota().memory_kib as usize * 1024 / PAGE_BYTES {
            drop(pages);
            return Err(self.quota_exceeded(QUOTA_MEMORY));
        }
        pages.count += more;
        Ok(())
    }

    /// Refunds a charge of [`charge_stack`](Self::charge_stack).
    #[inline(never)]
    pub fn refund_stack(&self, size: usize) {
        if size > 0 {
            self.pages.lock().count -= stack::pages_beyond_usual(stack::USUAL_BYTES << size);
        }
    }

    /// Frees an allocation, or gives a window up, and returns its number of pages.
    pub fn free_pages(&self, address: usize) -> Result<usize, Status> {
        let count = match self.free_window(address) {
            Some(count) => count,
            None => self.free_run(address)?,
        };
        self.trace.add(TraceKind::MemoryFreed, address as u64, count as u64);
        Ok(count)
    }

    fn free_run(&self, address: usize) -> Result<usize, Status> {
        let mut pages = self.pages.lock();
        let count = pages.runs.remove(address).ok_or(Status::BadArgument)?;
        pages.count -= count;
        drop(pages);
        memory::free_pages(address, count, self.space.get());
        Ok(count)
    }

    /// Pages used and allowed.
    pub fn page_usage(&self) -> (usize, usize) {
        (self.pages.lock().count, self.allowed_pages())
    }

    /// Number of pages that its manifest allows.
    pub(super) fn allowed_pages(&self) -> usize {
        self.quota().memory_kib as usize * 1024 / PAGE_BYTES
    }
}

/// Limit of kernel memory of a SIP in queues, sets and records of children: a fixed amount for each object that its
/// manifest allows.
pub fn kernel_quota(quota: &manifest_model::Quota) -> usize {
    let each = [
        (quota.handles, limits::KERNEL_BYTES_PER_HANDLE),
        (quota.channels, limits::KERNEL_BYTES_PER_CHANNEL),
        (quota.children, limits::KERNEL_BYTES_PER_CHILD),
    ];
    each.iter().fold(limits::KERNEL_BYTES, |sum, &(count, bytes)| sum.saturating_add(count as usize * bytes))
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

//! Type-stable storage for kernel objects.
//!
//! Once allocated, a slot keeps its type for ever, so a reference to one never dangles: at worst it names a slot that
//! holds another object by now, which the generation reveals. So a SIP's handle can be checked without a lock, and the
//! rest of the kernel can be safe code.

use alloc::boxed::Box;
use core::ops::Deref;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::lock::SpinLock;
use crate::machine::machine;

/// Slots per chunk; fewer for large slots.
const CHUNK_SLOTS: usize = 256;
const CHUNK_SLOTS_LARGE: usize = 32;
/// Slots of at least this many bytes are large.
const LARGE_BYTES: usize = 1024;
const CHUNKS: usize = 4096;
const NONE: u32 = u32::MAX;
const GENERATION_MASK: u32 = 0x00ff_ffff;
/// Minimum of free frames below which no slab grows, not even for a service.
const RESERVED_FRAMES: usize = 256;

/// Maximum bytes of each slab. A slab never returns memory, so without a bound a program could turn most of a small
/// machine's memory into free slots of one kind.
static LIMIT_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Bytes allocated by all slabs.
static ALL_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Returns the bytes allocated by all slabs, which are never returned.
pub fn all_bytes() -> usize {
    ALL_BYTES.load(Ordering::Relaxed)
}

/// Sets the maximum bytes of each slab.
pub fn set_limit(bytes: usize) {
    LIMIT_BYTES.store(bytes, Ordering::Relaxed);
}

/// One object and its generation: odd while it is in use.
pub struct Slot<T> {
    generation: AtomicU32,
    next_free: AtomicU32,
    index: u32,
    value: T,
}

impl<T> Slot<T> {
    /// Bytes of a slot before its object.
    pub const VALUE_OFFSET: usize = core::mem::offset_of!(Slot<T>, value);

    /// Its number in the slab.
    #[inline(always)]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Its current generation, as carried by handles.
    #[inline(always)]
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire) & GENERATION_MASK
    }

    /// Whether it holds an object.
    pub fn is_live(&self) -> bool {
        self.generation.load(Ordering::Acquire) & 1 == 1
    }
}

impl<T> Deref for Slot<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.value
    }
}

struct Free {
    /// One more than the number of the first free slot, 0 for none, as in the slots: an all-zero slab takes no space in
    /// the kernel's file.
    head: u32,
    made: u32,
    live: u32,
}

/// Reason why a slab has no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The slab has reached its maximum size.
    Limit,
    /// The machine has no memory left for more.
    Memory,
}

/// A growing set of slots.
pub struct Slab<T: 'static> {
    chunks: [AtomicPtr<Slot<T>>; CHUNKS],
    free: SpinLock<Free>,
}

impl<T: Default + Sync + 'static> Slab<T> {
    const CHUNK: usize = if size_of::<Slot<T>>() < LARGE_BYTES { CHUNK_SLOTS } else { CHUNK_SLOTS_LARGE };

    /// An empty slab.
    pub const fn new() -> Slab<T> {
        Slab {
            chunks: [const { AtomicPtr::new(null_mut()) }; CHUNKS],
            free: SpinLock::new(Free { head: 0, made: 0, live: 0 }),
        }
    }

    /// Allocates a slot. It holds its last user's values: the caller sets every field.
    pub fn allocate(&'static self) -> Result<&'static Slot<T>, Full> {
        let mut free = self.free.lock();
        let index = if free.head != 0 {
            free.head - 1
        } else {
            if (free.made as usize).is_multiple_of(Self::CHUNK) {
                self.may_add_chunk(free.made as usize)?;
                self.add_chunk(free.made);
            }
            free.made += 1;
            free.made - 1
        };
        let slot = self.slot(index).ok_or(Full::Limit)?;
        if free.head != 0 {
            free.head = slot.next_free.load(Ordering::Relaxed);
        }
        free.live += 1;
        drop(free);
        slot.generation.fetch_add(1, Ordering::AcqRel);
        Ok(slot)
    }

    /// Whether the slab may grow. SIPs that may not grow when memory is low were refused before.
    fn may_add_chunk(&self, made: usize) -> Result<(), Full> {
        let bytes = (made + Self::CHUNK) * size_of::<Slot<T>>();
        if made == Self::CHUNK * CHUNKS || bytes > LIMIT_BYTES.load(Ordering::Relaxed) {
            return Err(Full::Limit);
        }
        if machine().spare_frames() < RESERVED_FRAMES { Err(Full::Memory) } else { Ok(()) }
    }

    /// Releases a slot. Handles to it become stale.
    pub fn release(&'static self, slot: &'static Slot<T>) {
        slot.generation.fetch_add(1, Ordering::AcqRel);
        let mut free = self.free.lock();
        slot.next_free.store(free.head, Ordering::Relaxed);
        free.head = slot.index + 1;
        free.live -= 1;
    }

    /// Returns the slot with this number, in use or not.
    #[inline(always)]
    pub fn slot(&'static self, index: u32) -> Option<&'static Slot<T>> {
        let chunk = self.chunks.get(index as usize / Self::CHUNK)?.load(Ordering::Acquire);
        if chunk.is_null() {
            return None;
        }
        // SAFETY: `add_chunk` stored the address of `Self::CHUNK` initialized slots that are never freed, and
        // the remainder is below that.
        Some(unsafe { &*chunk.add(index as usize % Self::CHUNK) })
    }

    /// Returns the slot with this number, if it is in use with this generation.
    #[inline(always)]
    pub fn get(&'static self, index: u32, generation: u32) -> Option<&'static Slot<T>> {
        self.slot(index).filter(|slot| slot.generation() == generation && generation & 1 == 1)
    }

    /// Number of slots in use.
    pub fn live(&'static self) -> u32 {
        self.free.lock().live
    }

    /// All slots, in use or not.
    pub fn all(&'static self) -> impl Iterator<Item = &'static Slot<T>> {
        let made = self.free.lock().made;
        (0..made).filter_map(|index| self.slot(index))
    }

    /// All slots in use.
    pub fn iter(&'static self) -> impl Iterator<Item = &'static Slot<T>> {
        self.all().filter(|slot| slot.is_live())
    }

    fn add_chunk(&self, first: u32) {
        let chunk: Box<[Slot<T>]> = (0..Self::CHUNK as u32)
            .map(|offset| Slot {
                generation: AtomicU32::new(0),
                next_free: AtomicU32::new(0),
                index: first + offset,
                value: T::default(),
            })
            .collect();
        let pointer = Box::leak(chunk).as_mut_ptr();
        self.chunks[first as usize / Self::CHUNK].store(pointer, Ordering::Release);
        ALL_BYTES.fetch_add(Self::CHUNK * size_of::<Slot<T>>(), Ordering::Relaxed);
    }
}

/// Links of an object in its owner's list. Guarded by the lock of the list.
pub struct Links {
    previous: AtomicU32,
    next: AtomicU32,
}

impl Default for Links {
    fn default() -> Self {
        Links { previous: AtomicU32::new(NONE), next: AtomicU32::new(NONE) }
    }
}

/// A kind of object that is in its owner's list.
pub trait Listed {
    /// The links of the object with this number.
    fn links(index: u32) -> Option<&'static Links>;
}

/// A listed kind whose records count against the owner's quota.
pub trait Charged: Listed {
    /// Kernel memory of one object, in bytes.
    const RECORD_BYTES: usize;
}

/// A list of objects by number, guarded by a lock of the owner.
pub struct List<K> {
    head: u32,
    count: u32,
    kind: core::marker::PhantomData<K>,
}

impl<K> List<K> {
    /// An empty list.
    pub const fn new() -> List<K> {
        List { head: NONE, count: 0, kind: core::marker::PhantomData }
    }
}

impl<K> Default for List<K> {
    fn default() -> Self {
        List::new()
    }
}

impl<K: Charged> List<K> {
    /// Kernel memory of all objects, in bytes.
    pub fn record_bytes(&self) -> usize {
        self.count as usize * K::RECORD_BYTES
    }
}

impl<K: Listed> List<K> {
    /// Number of them.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The first, if any.
    pub fn first(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    /// Adds an object that is in no list.
    #[inline(always)]
    pub fn insert(&mut self, index: u32) {
        let Some(links) = K::links(index) else { return };
        links.previous.store(NONE, Ordering::Relaxed);
        links.next.store(self.head, Ordering::Relaxed);
        if let Some(old) = self.first().and_then(K::links) {
            old.previous.store(index, Ordering::Relaxed);
        }
        self.head = index;
        self.count += 1;
    }

    /// Adds two objects that are in no list.
    #[inline(always)]
    pub fn insert_pair(&mut self, first: u32, second: u32) {
        let (Some(links), Some(second_links)) = (K::links(first), K::links(second)) else { return };
        links.previous.store(NONE, Ordering::Relaxed);
        links.next.store(second, Ordering::Relaxed);
        second_links.previous.store(first, Ordering::Relaxed);
        second_links.next.store(self.head, Ordering::Relaxed);
        if let Some(old) = self.first().and_then(K::links) {
            old.previous.store(second, Ordering::Relaxed);
        }
        self.head = first;
        self.count += 2;
    }

    /// Removes an object of this list.
    #[inline(always)]
    pub fn remove(&mut self, index: u32) {
        let Some(links) = K::links(index) else { return };
        let previous = links.previous.load(Ordering::Relaxed);
        let next = links.next.load(Ordering::Relaxed);
        if previous == NONE {
            self.head = next;
        } else if let Some(before) = K::links(previous) {
            before.next.store(next, Ordering::Relaxed);
        }
        if next != NONE
            && let Some(after) = K::links(next)
        {
            after.previous.store(previous, Ordering::Relaxed);
        }
        self.count -= 1;
    }

    /// Removes the first.
    pub fn pop(&mut self) -> Option<u32> {
        let first = self.first()?;
        self.remove(first);
        Some(first)
    }

    /// The successor of an object.
    pub fn next(&self, index: u32) -> Option<u32> {
        let next = K::links(index)?.next.load(Ordering::Relaxed);
        (next != NONE).then_some(next)
    }
}

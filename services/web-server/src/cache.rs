//! Cache of open files and their contents.
//!
//! Key types: [`Cache`], [`Entry`]. After [`VALID_NS`] a file is opened again by its path, so changes and replacements
//! are served after at most that time. Whole small files are kept in the blocks in which they are sent; the contents
//! stay valid if the reopened file is unchanged.

use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use contracts::file::FileAttributes;
use http::conditional::Validators;
use http::{content_type, date};
use sip::exheap::ExVec;

use crate::blocks::block_bytes;
use crate::coded;
use crate::store::{FileChannel, Opened};

/// Time for which a file's attributes are trusted, in nanoseconds.
const VALID_NS: u64 = 1_000_000_000;
/// Time for which the contents of an unrequested file are cached, in nanoseconds.
const KEPT_NS: u64 = 10_000_000_000;
/// A file changed within this many seconds may change again without a new modification time.
const UNSETTLED_S: i64 = 2;
const WAYS: usize = 4;
const SETS: usize = 512;
/// Maximum number of idle channels per file.
const MAX_CHANNELS: usize = 8;
/// Default size of the content cache, in bytes.
const MAX_WARM_BYTES: usize = 16 << 20;
/// Maximum number of cached content blocks per file.
const MAX_WARM_BLOCKS: usize = 64;

/// An open file.
pub(crate) struct Entry {
    /// Its path in the served folder, with a leading `/`.
    pub(crate) path: Box<str>,
    /// Its attributes at the time of opening.
    pub(crate) attributes: FileAttributes,
    /// Header fields of responses with this file.
    pub(crate) fields: Box<[u8]>,
    /// Value of `Content-Type`.
    pub(crate) content_type: &'static str,
    etag: Box<[u8]>,
    /// ETag and fields of the `gzip` representation, if it has one.
    coded: Option<CodedForm>,
    /// Whether compression was found not to shorten it.
    is_no_shorter: Cell<bool>,
    /// Whether any further change would change its modification time.
    is_settled: bool,
    opened_ns: u64,
    /// Whether it is in the cache.
    is_cached: Cell<bool>,
    channels: RefCell<Vec<FileChannel>>,
    warm: RefCell<Vec<ExVec<u8>>>,
}

/// The `gzip` representation of a file.
struct CodedForm {
    etag: Box<[u8]>,
    fields: Box<[u8]>,
}

impl Entry {
    /// Makes an entry of a file that was just opened. `wall_s`: Unix time in seconds.
    pub(crate) fn new(path: &str, opened: Opened, now_ns: u64, wall_s: i64) -> Entry {
        let Opened { channel, attributes } = opened;
        let is_settled = (wall_s - attributes.modified_s).abs() > UNSETTLED_S;
        let weak = if is_settled { "" } else { "W/" };
        let etag = format!("{weak}\"{:x}-{:x}-{:x}\"", attributes.node, attributes.modified_s, attributes.size_bytes);
        let content_type = content_type::of(path);
        let date = date::header(attributes.modified_s);
        let mut fields = fields(content_type, &date, &etag);
        // Compressed contents are keyed by the parts of a strong ETag.
        let is_coded = weak.is_empty() && coded::is_worth_it(content_type, attributes.size_bytes);
        let coded = is_coded.then(|| {
            fields.extend_from_slice(b"accept-ranges: bytes\r\nvary: accept-encoding\r\n");
            let coded_etag = format!("{}-gzip\"", etag.trim_end_matches('"'));
            let mut coded_fields = self::fields(content_type, &date, &coded_etag);
            coded_fields.extend_from_slice(b"content-encoding: gzip\r\nvary: accept-encoding\r\n");
            CodedForm { etag: coded_etag.into_bytes().into(), fields: coded_fields.into() }
        });
        if !is_coded {
            fields.extend_from_slice(b"accept-ranges: bytes\r\n");
        }
        Entry {
            path: path.into(),
            attributes,
            fields: fields.into(),
            content_type,
            etag: etag.into_bytes().into(),
            coded,
            is_no_shorter: Cell::new(false),
            is_settled,
            opened_ns: now_ns,
            is_cached: Cell::new(false),
            channels: RefCell::new(Vec::from([channel])),
            warm: RefCell::new(Vec::new()),
        }
    }

    /// Validators for conditional requests.
    pub(crate) fn validators(&self) -> Validators<'_> {
        Validators { etag: &self.etag, modified_s: self.attributes.modified_s }
    }

    /// Validators of the `gzip` representation; `None` if there is none.
    pub(crate) fn coded_validators(&self) -> Option<Validators<'_>> {
        let CodedForm { etag, .. } = self.coded.as_ref().filter(|_| !self.is_no_shorter.get())?;
        Some(Validators { etag, modified_s: self.attributes.modified_s })
    }

    /// Records that compression does not shorten the content, so that no `gzip` representation is offered.
    pub(crate) fn note_no_shorter(&self) {
        self.is_no_shorter.set(true);
    }

    /// Header fields of responses with the `gzip` representation.
    pub(crate) fn coded_fields(&self) -> &[u8] {
        self.coded.as_ref().map_or(&[], |coded| &coded.fields)
    }

    /// Takes an idle channel to the file.
    pub(crate) fn take_channel(&self) -> Option<FileChannel> {
        self.channels.borrow_mut().pop()
    }

    /// Returns a channel for reuse.
    pub(crate) fn give_channel(&self, channel: FileChannel) {
        let mut channels = self.channels.borrow_mut();
        if self.is_cached.get() && channels.len() < MAX_CHANNELS {
            channels.push(channel);
        }
    }

    fn is_valid(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.opened_ns) <= VALID_NS
    }

    /// Whether an opened file is this one, unchanged.
    pub(crate) fn is_same(&self, other: &FileAttributes) -> bool {
        let mine = &self.attributes;
        (mine.node, mine.size_bytes, mine.modified_s) == (other.node, other.size_bytes, other.modified_s)
    }
}

/// The header fields of a file, each with its CRLF.
fn fields(content_type: &str, date: &[u8], etag: &str) -> Vec<u8> {
    let mut fields = Vec::with_capacity(256);
    let lines = [("content-type", content_type.as_bytes()), ("last-modified", date), ("etag", etag.as_bytes())];
    for (name, value) in lines {
        fields.extend_from_slice(name.as_bytes());
        fields.extend_from_slice(b": ");
        fields.extend_from_slice(value);
        fields.extend_from_slice(b"\r\n");
    }
    fields
}

struct Slot {
    hash: u64,
    used: u64,
    entry: Rc<Entry>,
}

/// The cache, set-associative with [`WAYS`] ways.
pub(crate) struct Cache {
    sets: RefCell<Vec<Vec<Slot>>>,
    clock: Cell<u64>,
    warm_bytes: Cell<usize>,
    max_warm_bytes: Cell<usize>,
    hits: Cell<u64>,
    misses: Cell<u64>,
}

/// Reservation of cache space for a long file while it is sent; released on drop.
pub(crate) struct Reservation<'a> {
    cache: &'a Cache,
    bytes: usize,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.cache.warm_bytes.set(self.cache.warm_bytes.get() - self.bytes);
    }
}

impl Cache {
    /// An empty cache.
    pub(crate) fn new() -> Cache {
        let sets = (0..SETS).map(|_| Vec::new()).collect();
        Cache {
            sets: RefCell::new(sets),
            clock: Cell::new(0),
            warm_bytes: Cell::new(0),
            max_warm_bytes: Cell::new(MAX_WARM_BYTES),
            hits: Cell::new(0),
            misses: Cell::new(0),
        }
    }

    /// The file at a path, if its entry is still valid.
    pub(crate) fn find(&self, path: &str, now_ns: u64) -> Option<Rc<Entry>> {
        let found = self.look_up(path, now_ns);
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.set(counter.get() + 1);
        found
    }

    /// Numbers of hits and misses.
    pub(crate) fn looked_up(&self) -> (u64, u64) {
        (self.hits.get(), self.misses.get())
    }

    /// Number of open files.
    pub(crate) fn count(&self) -> usize {
        self.sets.borrow().iter().map(Vec::len).sum()
    }

    /// Size of the cached contents, in bytes.
    pub(crate) fn warm_bytes(&self) -> usize {
        self.warm_bytes.get()
    }

    fn look_up(&self, path: &str, now_ns: u64) -> Option<Rc<Entry>> {
        let hash = hash(path.as_bytes());
        let mut sets = self.sets.borrow_mut();
        let set = &mut sets[hash as usize % SETS];
        let found = |slot: &&mut Slot| slot.hash == hash && *slot.entry.path == *path;
        let slot = set.iter_mut().find(found).filter(|slot| slot.entry.is_valid(now_ns))?;
        slot.used = self.tick();
        Some(slot.entry.clone())
    }

    /// Inserts a file, evicting the least recently used one of a full set.
    pub(crate) fn insert(&self, entry: &Rc<Entry>) {
        let hash = hash(entry.path.as_bytes());
        let mut sets = self.sets.borrow_mut();
        let set = &mut sets[hash as usize % SETS];
        let slot = Slot { hash, used: self.tick(), entry: entry.clone() };
        entry.is_cached.set(true);
        let same = set.iter().position(|slot| slot.hash == hash && slot.entry.path == entry.path);
        let oldest = || set.iter().enumerate().min_by_key(|(_, slot)| slot.used).map(|(index, _)| index);
        let replaced = if same.is_none() && set.len() < WAYS { None } else { same.or_else(oldest) };
        match replaced {
            None => set.push(slot),
            Some(index) => {
                let old = core::mem::replace(&mut set[index], slot).entry;
                if old.path == entry.path && old.is_settled && old.is_same(&entry.attributes) {
                    // A settled file cannot change without a new modification time, so the contents stay valid.
                    entry.warm.borrow_mut().append(&mut old.warm.borrow_mut());
                }
                self.cool(&old);
            }
        }
    }

    /// Evicts an entry that turned out to be stale.
    pub(crate) fn forget(&self, entry: &Entry) {
        let hash = hash(entry.path.as_bytes());
        let mut sets = self.sets.borrow_mut();
        sets[hash as usize % SETS].retain(|slot| slot.hash != hash || slot.entry.path != entry.path);
        self.cool(entry);
    }

    /// Closes expired files, and later drops their contents.
    pub(crate) fn sweep(&self, now_ns: u64) {
        for set in self.sets.borrow_mut().iter_mut() {
            set.retain(|Slot { entry, .. }| {
                if !entry.is_valid(now_ns) {
                    entry.channels.borrow_mut().clear();
                }
                let is_kept = now_ns.saturating_sub(entry.opened_ns) <= KEPT_NS && !entry.warm.borrow().is_empty()
                    || entry.is_valid(now_ns);
                if !is_kept {
                    self.cool(entry);
                }
                is_kept
            });
        }
    }

    /// Sets the maximum size of the cached contents, in bytes.
    pub(crate) fn set_max_bytes(&self, bytes: usize) {
        self.max_warm_bytes.set(bytes);
    }

    /// Reserves space for a whole long file; `None` if there is too little.
    pub(crate) fn reserve(&self, bytes: u64) -> Option<Reservation<'_>> {
        let bytes = block_bytes(usize::try_from(bytes).ok()?)?;
        let held = self.warm_bytes.get() + bytes;
        (held <= self.max_warm_bytes.get()).then(|| {
            self.warm_bytes.set(held);
            Reservation { cache: self, bytes }
        })
    }

    /// Takes a cached block with the whole content of a file.
    pub(crate) fn take_warm(&self, entry: &Entry) -> Option<ExVec<u8>> {
        let block = entry.warm.borrow_mut().pop()?;
        self.warm_bytes.set(self.warm_bytes.get() - block.len());
        Some(block)
    }

    /// Caches a block with the whole content of a file, or returns it.
    pub(crate) fn give_warm(&self, entry: &Entry, block: ExVec<u8>) -> Option<ExVec<u8>> {
        let bytes = self.warm_bytes.get() + block.len();
        let mut warm = entry.warm.borrow_mut();
        if !entry.is_cached.get() || bytes > self.max_warm_bytes.get() || warm.len() >= MAX_WARM_BLOCKS {
            return Some(block);
        }
        warm.push(block);
        self.warm_bytes.set(bytes);
        None
    }

    /// Frees the contents of an evicted entry.
    fn cool(&self, entry: &Entry) {
        entry.is_cached.set(false);
        entry.channels.borrow_mut().clear();
        while let Some(block) = self.take_warm(entry) {
            drop(block);
        }
    }

    fn tick(&self) -> u64 {
        let tick = self.clock.get() + 1;
        self.clock.set(tick);
        tick
    }
}

/// FNV-1a, eight bytes at a time where possible. Colliding paths cost only reopening those files.
fn hash(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(PRIME).rotate_left(29);
    }
    for byte in chunks.remainder() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    }
    hash ^ hash >> 32
}

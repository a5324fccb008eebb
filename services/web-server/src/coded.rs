//! Cache of `gzip`-compressed contents, one per state of a file.
//!
//! Key type: [`Coded`]. Only small contents are compressed, because compression blocks all connections.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

use contracts::file::FileAttributes;
use http::{content_type, gzip};

/// Minimum size in bytes: shorter contents fit in one packet anyway.
const MIN_BYTES: u64 = 1024;
/// Maximum size in bytes, to bound the time that others wait, and to fit in one block with a head.
const MAX_BYTES: u64 = 60 << 10;
/// Maximum total size of compressed contents, in bytes.
const MAX_KEPT_BYTES: usize = 4 << 20;
/// Maximum number of compressed contents.
const MAX_KEPT: usize = 1024;

/// Inode, modification time and size: the parts of a strong ETag.
type State = (u64, i64, u64);

struct Kept {
    used: u64,
    /// Empty if compression does not shorten it.
    content: Rc<[u8]>,
}

/// The cache.
#[derive(Default)]
pub(crate) struct Coded {
    kept: RefCell<BTreeMap<State, Kept>>,
    bytes: Cell<usize>,
    clock: Cell<u64>,
}

fn state(attributes: &FileAttributes) -> State {
    (attributes.node, attributes.modified_s, attributes.size_bytes)
}

/// Whether content of this type and size in bytes is compressed for clients that accept it.
pub(crate) fn is_worth_it(kind: &str, size_bytes: u64) -> bool {
    (MIN_BYTES..=MAX_BYTES).contains(&size_bytes) && content_type::is_compressible(kind)
}

impl Coded {
    /// The compressed content of a file in this state, if cached.
    pub(crate) fn find(&self, attributes: &FileAttributes) -> Option<Rc<[u8]>> {
        let used = self.tick();
        let mut kept = self.kept.borrow_mut();
        let found = kept.get_mut(&state(attributes))?;
        found.used = used;
        Some(found.content.clone())
    }

    /// Whether compression is known not to shorten the content of a file in this state.
    pub(crate) fn is_no_shorter(&self, attributes: &FileAttributes) -> bool {
        self.kept.borrow().get(&state(attributes)).is_some_and(|kept| kept.content.is_empty())
    }

    /// Compresses and caches the content of a file in this state; empty if that is no shorter.
    pub(crate) fn make(&self, attributes: &FileAttributes, content: &[u8]) -> Rc<[u8]> {
        let coded = gzip::compress(content);
        let coded: Rc<[u8]> = if coded.len() < content.len() { coded.into() } else { Rc::from([]) };
        let mut kept = self.kept.borrow_mut();
        while kept.len() >= MAX_KEPT || self.bytes.get() + coded.len() > MAX_KEPT_BYTES {
            let oldest = kept.iter().min_by_key(|(_, kept)| kept.used).map(|(state, _)| *state);
            let Some(old) = oldest.and_then(|state| kept.remove(&state)) else { break };
            self.bytes.set(self.bytes.get() - old.content.len());
        }
        self.bytes.set(self.bytes.get() + coded.len());
        let added = Kept { used: self.tick(), content: coded.clone() };
        if let Some(old) = kept.insert(state(attributes), added) {
            self.bytes.set(self.bytes.get() - old.content.len());
        }
        coded
    }

    /// Total size of cached contents, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    fn tick(&self) -> u64 {
        let tick = self.clock.get() + 1;
        self.clock.set(tick);
        tick
    }
}

//! Contents in the coding `gzip`, made once for each state of a file and kept while there is room.
//!
//! Key type: [`Coded`]. Only small contents are coded here, because all connections wait meanwhile.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

use contracts::file::FileAttributes;
use http::{content_type, gzip};

/// Contents shorter than this are not worth it: they go in one packet either way.
const MIN_BYTES: u64 = 1024;
/// Longer ones would keep everybody waiting, and this goes into one block with its head.
const MAX_BYTES: u64 = 60 << 10;
/// Bytes of coded contents that are kept.
const MAX_KEPT_BYTES: usize = 4 << 20;
/// Contents that are kept.
const MAX_KEPT: usize = 1024;

/// Node, time of change and size: what a strong tag is made of.
type State = (u64, i64, u64);

struct Kept {
    used: u64,
    /// Empty where the coding makes it no shorter.
    content: Rc<[u8]>,
}

/// Coded contents.
#[derive(Default)]
pub(crate) struct Coded {
    kept: RefCell<BTreeMap<State, Kept>>,
    bytes: Cell<usize>,
    clock: Cell<u64>,
}

fn state(attributes: &FileAttributes) -> State {
    (attributes.node, attributes.modified_s, attributes.size_bytes)
}

/// Whether content of this type and size is sent coded to whom takes it.
pub(crate) fn is_worth_it(kind: &str, size_bytes: u64) -> bool {
    (MIN_BYTES..=MAX_BYTES).contains(&size_bytes) && content_type::is_compressible(kind)
}

impl Coded {
    /// The coded content of a file in this state, if it is kept.
    pub(crate) fn find(&self, attributes: &FileAttributes) -> Option<Rc<[u8]>> {
        let used = self.tick();
        let mut kept = self.kept.borrow_mut();
        let found = kept.get_mut(&state(attributes))?;
        found.used = used;
        Some(found.content.clone())
    }

    /// Whether it is known that the coding makes the content of a file in this state no shorter.
    pub(crate) fn is_no_shorter(&self, attributes: &FileAttributes) -> bool {
        self.kept.borrow().get(&state(attributes)).is_some_and(|kept| kept.content.is_empty())
    }

    /// Codes the content of a file in this state, and keeps that. Empty if that is no shorter.
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

    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    fn tick(&self) -> u64 {
        let tick = self.clock.get() + 1;
        self.clock.set(tick);
        tick
    }
}

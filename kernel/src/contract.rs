//! Contracts as the run-time monitor uses them: the third check of the same automaton.
//!
//! A contract is registered when the first program that uses it is loaded, and stays. In a running
//! system a contract's name has one fingerprint, so that endpoint arguments can refer to contracts
//! by name.

use alloc::boxed::Box;
use alloc::vec::Vec;

use abi::{Automaton, Direction, MessageShape, NO_TRANSITION, ScalarRange, name_tag};

use crate::histogram::Histogram;
use crate::lock::SpinLock;
use crate::unchecked::MONITORED;

/// One of the two ends of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SideIndex {
    /// The importing end.
    Importer = 0,
    /// The exporting end.
    Exporter = 1,
}

impl SideIndex {
    /// The other end.
    #[inline(always)]
    pub fn peer(self) -> SideIndex {
        match self {
            SideIndex::Importer => SideIndex::Exporter,
            SideIndex::Exporter => SideIndex::Importer,
        }
    }
}

/// A registered contract.
pub struct Contract {
    /// The whole automaton, for diagnostics.
    pub automaton: Automaton,
    /// Its canonical bytes.
    pub bytes: Vec<u8>,
    /// SHA-256 of the bytes.
    pub fingerprint: [u8; 32],
    /// [`name_tag`] of its name.
    pub tag: u64,
    /// Words of a queue slot: the message word and the longest message.
    pub slot_words: usize,
    /// Queue slots per side, for incoming messages, by [`SideIndex`].
    pub bounds: [u32; 2],
    /// Its index in the list of all.
    pub index: u32,
    messages: Vec<Monitored>,
    next: Vec<u16>,
    senders: Vec<Option<SideIndex>>,
    /// Latencies of sampled messages, by receiving side.
    pub latencies: [Histogram; 2],
}

/// Checks of the monitor for one message.
pub struct Monitored {
    /// The required message word.
    pub word: u64,
    /// The sending side.
    pub sender: SideIndex,
    /// All words.
    pub words: usize,
    /// Whether it carries only unrestricted scalars.
    pub plain: bool,
    /// Its full shape.
    pub shape: MessageShape,
}

impl Monitored {
    /// Scalars with a restricted range.
    pub fn ranges(&self) -> &[ScalarRange] {
        &self.shape.ranges
    }
}

impl Contract {
    fn new(automaton: Automaton, bytes: &[u8], fingerprint: [u8; 32]) -> Contract {
        let messages: Vec<Monitored> = automaton
            .messages
            .iter()
            .enumerate()
            .map(|(tag, shape)| Monitored {
                word: shape.message_word(tag as u16),
                sender: match shape.direction {
                    Direction::ToImporter => SideIndex::Exporter,
                    Direction::ToExporter => SideIndex::Importer,
                },
                words: shape.words(),
                plain: shape.ranges.is_empty() && shape.blocks.is_empty() && shape.endpoints.is_empty(),
                shape: shape.clone(),
            })
            .collect();
        let senders = (0..automaton.states.len() as u16)
            .map(|state| match automaton.sender_in(state)? {
                Direction::ToImporter => Some(SideIndex::Exporter),
                Direction::ToExporter => Some(SideIndex::Importer),
            })
            .collect();
        Contract {
            tag: name_tag(&automaton.name),
            slot_words: automaton.slot_words() + 1,
            bounds: [automaton.queue_to_importer.into(), automaton.queue_to_exporter.into()],
            index: 0,
            next: automaton.states.iter().flat_map(|state| state.next.iter().copied()).collect(),
            messages,
            senders,
            latencies: Default::default(),
            bytes: bytes.to_vec(),
            fingerprint,
            automaton,
        }
    }

    /// Returns the checks for the message with this tag.
    #[inline(always)]
    pub fn message(&self, tag: usize) -> Option<&Monitored> {
        self.messages.get(tag)
    }

    /// Returns the state after a message, if it is allowed in `state`. Without the monitor there are no states.
    #[inline(always)]
    pub fn next(&self, state: u16, tag: usize) -> Option<u16> {
        if !MONITORED {
            return Some(state);
        }
        let next = *self.next.get(state as usize * self.messages.len() + tag)?;
        (next != NO_TRANSITION).then_some(next)
    }

    /// Returns the side that sends in `state`, if any.
    pub fn sender(&self, state: u16) -> Option<SideIndex> {
        self.senders.get(state as usize).copied().flatten()
    }

    /// Name of a state.
    pub fn state_name(&self, state: u16) -> &str {
        self.automaton.states.get(state as usize).map_or("?", |row| &row.name)
    }
}

static CONTRACTS: SpinLock<Vec<&'static Contract>> = SpinLock::new(Vec::new());

/// Reason why a contract cannot be registered.
#[derive(Debug)]
pub enum RegisterError {
    /// Its bytes are not an automaton.
    Malformed(abi::DecodeError),
    /// Another contract of that name has another fingerprint.
    Differs,
}

/// Registers a contract, or returns the registered one.
pub fn register(bytes: &[u8], fingerprint: [u8; 32]) -> Result<&'static Contract, RegisterError> {
    if let Some(known) = CONTRACTS.lock().iter().find(|contract| contract.fingerprint == fingerprint) {
        return Ok(known);
    }
    let automaton = Automaton::decode(bytes).map_err(RegisterError::Malformed)?;
    let mut contract = Contract::new(automaton, bytes, fingerprint);
    let mut contracts = CONTRACTS.lock();
    match contracts.iter().find(|known| known.tag == contract.tag) {
        Some(known) if known.fingerprint == fingerprint => Ok(known),
        Some(_) => Err(RegisterError::Differs),
        None => {
            contract.index = contracts.len() as u32;
            let contract: &'static Contract = Box::leak(Box::new(contract));
            contracts.push(contract);
            Ok(contract)
        }
    }
}

/// Returns the contract at this index of the list of all.
pub fn by_index(index: usize) -> Option<&'static Contract> {
    CONTRACTS.lock().get(index).copied()
}

//! A contract with messages of all shapes, for tests, and helpers for its channels.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use abi::limits::BLOCK_WORDS;
use abi::{
    Automaton, BlockShape, Direction, EndpointShape, MessageShape, NO_TRANSITION, ScalarRange, StateRow, name_tag,
};

use super::{EndpointRef, Received, SendError, create, send, try_receive};
use crate::contract::{Contract, register};
use crate::exheap::{self, BlockRef};
use crate::process::ProcessRef;
use crate::test_machine::with_quota;
use crate::thread::MessageBuffer;

/// Element type of the blocks in messages.
pub const TYPE: u64 = 77;
/// Maximum word of an [`ASK`].
pub const MAX_ASKED: u64 = 9;
/// Maximum messages queued for an end.
pub const BOUND: usize = 3;

/// A word of at most [`MAX_ASKED`].
pub const ASK: usize = 0;
/// A block that the receiver keeps.
pub const GIVE: usize = 1;
/// A block that is lent; the other side sends next.
pub const LEND: usize = 2;
/// The returned loan.
pub const RETURN: usize = 3;
/// A block and an importing end of this contract in its first state.
pub const PASS: usize = 4;
/// Two blocks: one that is lent and one that the receiver keeps.
pub const TWO: usize = 5;

const NAME: &str = "Shapes";
const KEPT: BlockShape = BlockShape { type_tag: TYPE, lent: false, returned: false };
const LENT: BlockShape = BlockShape { type_tag: TYPE, lent: true, returned: false };

/// The contract. The importer sends in its first state; a loan leads to the second, in which the exporter sends.
pub fn contract() -> &'static Contract {
    const NEVER: u16 = NO_TRANSITION;
    let message = |name: &str, scalar_words, blocks: &[BlockShape], endpoints| MessageShape {
        name: String::from(name),
        direction: if name == "Return" { Direction::ToImporter } else { Direction::ToExporter },
        scalar_words,
        ranges: vec![],
        blocks: blocks.to_vec(),
        endpoints,
    };
    let passed = EndpointShape { contract: name_tag(NAME), importer: true, state: 0 };
    let mut messages = vec![
        message("Ask", 1, &[], vec![]),
        message("Give", 1, &[KEPT], vec![]),
        message("Lend", 1, &[LENT], vec![]),
        message("Return", 1, &[BlockShape { lent: false, returned: true, ..LENT }], vec![]),
        message("Pass", 1, &[KEPT], vec![passed]),
        message("Two", 1, &[LENT, KEPT], vec![]),
    ];
    messages[ASK].ranges.push(ScalarRange { word: 0, max: MAX_ASKED });
    let automaton = Automaton {
        name: String::from(NAME),
        queue_to_importer: BOUND as u16,
        queue_to_exporter: BOUND as u16,
        messages,
        states: vec![
            StateRow { name: String::from("START"), next: vec![0, 0, 1, NEVER, 0, 1] },
            StateRow { name: String::from("LENT"), next: vec![NEVER, NEVER, NEVER, 0, NEVER, NEVER] },
        ],
    };
    register(&automaton.encode(), [11; 32]).expect("a good contract")
}

/// Message word of a tag.
pub fn word(tag: usize) -> u64 {
    contract().message(tag).expect("a message").word
}

/// A SIP with quota for all objects of a test.
pub fn user() -> ProcessRef {
    with_quota(|quota| (quota.handles, quota.channels, quota.block_kib, quota.threads) = (100, 10, 1024, 10))
}

/// A channel between two SIPs: the first owns the importing end, the second the exporting end.
pub fn between(importing: ProcessRef, exporting: ProcessRef) -> (EndpointRef, EndpointRef) {
    let (importer, exporter) = create(importing, contract()).expect("a channel");
    let shape = EndpointShape { contract: name_tag(NAME), importer: false, state: 0 };
    assert_eq!(super::take_givable(importing, exporter, &shape), Ok(()));
    super::adopt_endpoint(exporting, exporter);
    (importer, exporter)
}

/// A block of a SIP that can be sent in messages.
pub fn block(owner: ProcessRef) -> BlockRef {
    exheap::allocate(owner, 64, TYPE).expect("a block")
}

/// Sends a message with the scalar 1 and these handles of blocks and then endpoints.
pub fn send_with(
    caller: ProcessRef,
    end: EndpointRef,
    tag: usize,
    blocks: &[u64],
    endpoints: &[u64],
) -> Result<(), String> {
    let buffer = MessageBuffer::leaked();
    let blocks = blocks.iter().flat_map(|&handle| [handle, 0, 0]);
    let words: Vec<u64> = [1].into_iter().chain(blocks).chain(endpoints.iter().copied()).collect();
    buffer.write_words(&words);
    send(caller, end, word(tag), buffer).map_err(|error| match error {
        SendError::Status(status) => String::from(status.text()),
        SendError::Violation(how) => how,
    })
}

/// Sends an [`ASK`] with this word.
pub fn ask(caller: ProcessRef, end: EndpointRef, asked: u64) -> Result<(), String> {
    let buffer = MessageBuffer::leaked();
    buffer.set(0, asked);
    send(caller, end, word(ASK), buffer).map_err(|error| match error {
        SendError::Status(status) => String::from(status.text()),
        SendError::Violation(how) => how,
    })
}

/// Result of a receive.
#[derive(Debug, PartialEq, Eq)]
pub enum Got {
    /// A message with this tag and these words.
    Message(usize, Vec<u64>),
    /// The channel is closed; handles of the returned loans.
    Closed(Vec<u64>),
    /// Nothing yet.
    Nothing,
}

/// Receives without blocking.
pub fn get(caller: ProcessRef, end: EndpointRef) -> Got {
    let buffer = MessageBuffer::leaked();
    match try_receive(caller, end, buffer).expect("an own endpoint") {
        Received::Message(word) => {
            let tag = (word & 0xffff) as usize;
            let words = contract().message(tag).expect("a message").words;
            Got::Message(tag, (0..words).map(|index| buffer.get(index)).collect())
        }
        Received::Closed => {
            Got::Closed((0..buffer.get(0) as usize).map(|number| buffer.get(1 + number * BLOCK_WORDS)).collect())
        }
        Received::Nothing => Got::Nothing,
    }
}

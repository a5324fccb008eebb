//! Channels of the contract Talk, below its types: messages are written and read word by word, mostly as the contract
//! requires, while other messages remain unread.

use alloc::rc::Rc;

use hostile_contract::Record;
use hostile_contract::talk::{self, Talk};
use sip::channel::{Incoming, Outgoing, RawEndpoint, TypedEndpoint};
use sip::exheap::{ExBox, ExVec, Lent};

use crate::blocks::{self, Block};
use crate::hostile::{Hostile, HostileScalar, receive};
use crate::world::World;

/// The contract's messages by their number.
const SUCCESS: u64 = 0;
const LOCATE: u64 = 1;
const LOCATED: u64 = 2;
const CALL: u64 = 3;
const ANSWER: u64 = 4;
const MARK: u64 = 5;
const MARKED: u64 = 6;
const GIVE: u64 = 7;
const GIVEN_BACK: u64 = 8;
const GIVE_MANY: u64 = 9;
const GIVEN_RECORD: u64 = 10;
const LEND: u64 = 11;
const RETURNED: u64 = 12;
const PASS: u64 = 13;
const SERVE: u64 = 14;
const PASS_ANY: u64 = 15;
const FIRST: u64 = 16;
const SECOND: u64 = 17;
const THIRD: u64 = 18;
/// Messages with which the importer may begin.
const REQUESTS: [u64; 9] = [LOCATE, CALL, MARK, GIVE, GIVE_MANY, LEND, PASS, PASS_ANY, FIRST];

/// State of a conversation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Start,
    Ready,
    /// The last message sent.
    After(u64),
}

/// One end of a channel.
pub(crate) struct Channel {
    pub(crate) endpoint: RawEndpoint,
    pub(crate) is_importer: bool,
    pub(crate) state: State,
    /// The block that its peer lent over it.
    pub(crate) loan: Option<Lent<ExVec<u8>>>,
}

impl Channel {
    pub(crate) fn sends_next(&self) -> bool {
        match self.state {
            State::Start => !self.is_importer,
            State::Ready | State::After(FIRST | SECOND) => self.is_importer,
            State::After(_) => !self.is_importer,
        }
    }

    /// Advances the state by the message with this number.
    fn moves(&mut self, tag: u64) {
        self.state = match tag {
            SUCCESS | LOCATED | ANSWER | MARKED | GIVEN_BACK | GIVEN_RECORD | RETURNED => State::Ready,
            other => State::After(other),
        };
    }
}

/// A message that was received but not fully taken apart.
pub(crate) struct Held {
    incoming: Incoming,
    /// Number of parts already taken.
    taken: usize,
}

/// Parts of a message, in order.
#[derive(Clone, Copy)]
enum Part {
    Word,
    Bytes,
    Words,
    Record,
    /// A block of bytes on loan.
    Loan,
    /// A block of bytes that was on loan and may have been changed.
    Returned,
    Endpoint,
}

fn parts(tag: u64) -> &'static [Part] {
    match tag {
        LOCATED => &[Part::Word, Part::Word, Part::Word, Part::Word],
        CALL | ANSWER | SECOND => &[Part::Word],
        MARK => &[Part::Word, Part::Word, Part::Word, Part::Word, Part::Word],
        GIVE | GIVEN_BACK | FIRST => &[Part::Bytes],
        GIVE_MANY => &[Part::Words, Part::Record, Part::Bytes],
        GIVEN_RECORD => &[Part::Record],
        LEND => &[Part::Word, Part::Loan],
        RETURNED => &[Part::Word, Part::Returned],
        PASS | SERVE | PASS_ANY => &[Part::Endpoint],
        THIRD => &[Part::Word, Part::Bytes],
        _ => &[],
    }
}

/// Performs an operation on channels.
pub(crate) fn step(world: &Rc<World>) {
    let numbers = &world.numbers;
    match numbers.below(24) {
        0..3 => new_channel(world),
        3..18 => {
            let Some(channel) = world.take(&world.channels) else { return new_channel(world) };
            if channel.sends_next() { send(world, channel) } else { receive(world, channel) }
        }
        18..20 => go_on_with_a_held_message(world),
        20 => drop(world.take(&world.channels)),
        21 => drop(world.take(&world.incoming)),
        22 => hold_an_unsent_message(world),
        _ => ask_what_it_is(world),
    }
}

fn new_channel(world: &Rc<World>) {
    let Ok((importer, exporter)) = sip::channel::create::<Talk>() else { return };
    let end = |endpoint, is_importer| Channel { endpoint, is_importer, state: State::Start, loan: None };
    world.add_channel(end(importer, true));
    world.add_channel(end(exporter, false));
}

/// Sends a message that the contract allows.
fn send(world: &Rc<World>, mut channel: Channel) {
    let tag = match channel.state {
        State::Start => SUCCESS,
        State::Ready => REQUESTS[world.numbers.below(REQUESTS.len())],
        State::After(LOCATE) => LOCATED,
        State::After(CALL) => ANSWER,
        State::After(GIVE) => GIVEN_BACK,
        State::After(GIVE_MANY) => GIVEN_RECORD,
        State::After(LEND) => RETURNED,
        State::After(FIRST) => SECOND,
        State::After(SECOND) => THIRD,
        State::After(_) => MARKED,
    };
    // All parts are prepared before the message is begun; after that no call may intervene.
    let Some(outgoing) = write(world, tag, &mut channel) else { return world.add_channel(channel) };
    if world.numbers.once_in(30) {
        // It is sent after something else has used the buffer, or never.
        world.add(&world.outgoing, outgoing);
        return;
    }
    if world.numbers.once_in(200) {
        crate::ambient::step(world);
    }
    channel.endpoint = outgoing.send(channel.endpoint, tag);
    channel.moves(tag);
    world.add_channel(channel);
}

/// Writes a message with all its parts; `None` if there are no such parts.
fn write(world: &Rc<World>, tag: u64, channel: &mut Channel) -> Option<Outgoing> {
    let numbers = &world.numbers;
    Some(match tag {
        LOCATED => Outgoing::new().array([world.addresses[0], world.addresses[1], world.addresses[2], 4096]),
        CALL | ANSWER | SECOND => {
            Outgoing::new().value(HostileScalar { world: Some(world), word: world.addresses[numbers.below(3)] })
        }
        MARK => Outgoing::new().word(numbers.next() & 1).word(numbers.next() % 3).bytes([0x41; 24]),
        GIVE | GIVEN_BACK | FIRST => {
            let bytes = bytes(world)?;
            Outgoing::new().block(bytes)
        }
        GIVE_MANY => {
            let (words, record, bytes) = (blocks::new_words(world)?, blocks::new_record(world)?, bytes(world)?);
            Outgoing::new().block(words).block(record).block(bytes)
        }
        GIVEN_RECORD => {
            let record = blocks::new_record(world)?;
            Outgoing::new().block(record)
        }
        LEND => match loan_of_another(world) {
            Some(loan) => Outgoing::new().word(64).lend::<ExVec<u8>>(loan),
            None => {
                let bytes = bytes(world)?;
                Outgoing::new().word(bytes.len() as u64).lend(bytes)
            }
        },
        RETURNED => {
            let mut loan = channel.loan.take()?;
            blocks::check_bytes(&loan);
            let mut block = Block::Loan(loan);
            block.seal(numbers.next());
            let Block::Loan(sealed) = block else { return None };
            loan = sealed;
            Outgoing::new().word(numbers.next()).give_back(loan)
        }
        PASS | PASS_ANY => {
            let endpoint = ready_importer(world)?;
            if tag == PASS { Outgoing::new().endpoint(endpoint) } else { Outgoing::new().any_endpoint(endpoint.into()) }
        }
        THIRD => {
            let bytes = bytes(world)?;
            Outgoing::new().word(numbers.next()).block(bytes)
        }
        _ => Outgoing::new(),
    })
}

/// A sealed block of bytes: an existing or a new one.
fn bytes(world: &World) -> Option<ExVec<u8>> {
    match world.take(&world.blocks) {
        Some(Block::Bytes(bytes)) => {
            blocks::check_bytes(&bytes);
            Some(bytes)
        }
        Some(other) => {
            world.add_block(other);
            blocks::new_bytes(world)
        }
        None => blocks::new_bytes(world),
    }
}

/// A loan that is lent on instead of being returned.
fn loan_of_another(world: &World) -> Option<Lent<ExVec<u8>>> {
    if !world.numbers.once_in(4) {
        return None;
    }
    match world.take(&world.blocks)? {
        Block::Loan(loan) => {
            blocks::check_bytes(&loan);
            Some(loan)
        }
        other => {
            world.add_block(other);
            None
        }
    }
}

/// An importing end that sends next; of the contract's own type.
fn ready_importer(world: &World) -> Option<talk::Imp<talk::states::Ready>> {
    let channel = world.take(&world.channels)?;
    if channel.is_importer && channel.state == State::Ready {
        return Some(TypedEndpoint::from_raw(channel.endpoint));
    }
    world.add_channel(channel);
    None
}

/// Result of a receive.
pub(crate) enum Received {
    Message(Incoming),
    Closed(alloc::vec::Vec<sip::exheap::ExBlock>),
}

/// A message over the channel, or its closure.
pub(crate) fn received(world: &Rc<World>, mut channel: Channel, what: Received) {
    let incoming = match what {
        Received::Message(incoming) => incoming,
        Received::Closed(home) => {
            for block in home {
                world.add_block(Block::Untyped(block));
            }
            return;
        }
    };
    let tag = incoming.tag();
    channel.moves(tag);
    let mut held = Held { incoming, taken: 0 };
    if world.numbers.once_in(40) {
        if world.numbers.once_in(2) {
            crate::ambient::step(world);
        }
        if world.numbers.once_in(2) {
            world.add_channel(channel);
            world.add(&world.incoming, held);
            return;
        }
    }
    take_parts(world, &mut held, Some(&mut channel));
    world.add_channel(channel);
}

/// Takes the remaining parts of a message. If another call has used the buffer, the runtime ends the program.
fn take_parts(world: &Rc<World>, held: &mut Held, mut channel: Option<&mut Channel>) {
    let tag = held.incoming.tag();
    // Blocks are checked only after all are taken, because that uses the buffer.
    let mut taken = alloc::vec::Vec::with_capacity(4);
    for &part in parts(tag).iter().skip(held.taken) {
        held.taken += 1;
        match part {
            Part::Word => {
                let _: HostileScalar<'_> = held.incoming.value();
            }
            Part::Bytes if world.numbers.once_in(12) => drop(held.incoming.block::<ExVec<u64>>()),
            Part::Bytes => taken.push((Block::Bytes(held.incoming.block()), true)),
            Part::Words => taken.push((Block::Words(held.incoming.block()), true)),
            // The victim changes it.
            Part::Record => taken.push((Block::Record(held.incoming.block::<ExBox<Record>>()), false)),
            Part::Returned => taken.push((Block::Bytes(held.incoming.block()), false)),
            Part::Loan => {
                let loan: Lent<ExVec<u8>> = held.incoming.lent();
                match channel.as_deref_mut() {
                    Some(channel) if !world.numbers.once_in(6) => channel.loan = Some(loan),
                    _ => taken.push((Block::Loan(loan), true)),
                }
            }
            Part::Endpoint => take_endpoint(world, &mut held.incoming),
        }
    }
    for (mut block, is_sealed) in taken {
        if is_sealed {
            block.check();
        }
        block.seal(world.numbers.next());
        world.add_block(block);
    }
}

fn take_endpoint(world: &Rc<World>, incoming: &mut Incoming) {
    let endpoint = if world.numbers.once_in(2) {
        incoming.endpoint::<Hostile>().into_raw()
    } else {
        match incoming.any_endpoint().downcast::<talk::Imp<talk::states::Ready>>() {
            Ok(endpoint) => endpoint.into_raw(),
            Err(_) => return,
        }
    };
    world.add_channel(Channel { endpoint, is_importer: true, state: State::Ready, loan: None });
}

fn go_on_with_a_held_message(world: &Rc<World>) {
    let Some(mut held) = world.take(&world.incoming) else { return };
    if world.numbers.once_in(40) {
        take_parts(world, &mut held, None);
    } else {
        world.add(&world.incoming, held);
    }
}

/// Leaves a begun message in the buffer, or continues or sends one left there.
fn hold_an_unsent_message(world: &Rc<World>) {
    match world.take(&world.outgoing) {
        Some(outgoing) if world.numbers.once_in(60) => {
            let Some(mut channel) = world.take(&world.channels) else { return };
            channel.endpoint = outgoing.send(channel.endpoint, CALL);
            world.add_channel(channel);
        }
        Some(outgoing) => world.add(&world.outgoing, outgoing),
        None => world.add(&world.outgoing, Outgoing::new().word(world.numbers.next())),
    }
}

fn ask_what_it_is(world: &Rc<World>) {
    let Some(channel) = world.take(&world.channels) else { return };
    let Ok(description) = channel.endpoint.describe() else {
        crate::world::finding("an endpoint that is held is unknown to the kernel")
    };
    if description.importer != channel.is_importer {
        crate::world::finding("an endpoint is of the other side");
    }
    world.add_channel(channel);
}

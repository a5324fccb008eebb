//! Implementations of every trait of the runtime that a program can implement, each of which uses the runtime while the
//! runtime relies on it.

use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;

use hostile_contract::talk::Talk;
use sip::Deadline;
use sip::channel::{Closed, Incoming, Inline, Outgoing, RawEndpoint, Receiver, TypedEndpoint};
use sip::config::ParameterValue;

use crate::ambient;
use crate::messages::{self, Channel, Received, State};
use crate::numbers::Numbers;
use crate::world::World;

/// An endpoint that makes calls when its handle is requested, and sometimes returns another one.
pub(crate) struct Hostile {
    world: Option<Rc<World>>,
    endpoint: RawEndpoint,
    decoy: Option<RawEndpoint>,
    /// Properties of the channel, for later checks.
    pub(crate) is_importer: bool,
    pub(crate) state: Option<State>,
}

impl Hostile {
    pub(crate) fn new(world: &Rc<World>, channel: Channel) -> Hostile {
        let decoy = world.numbers.once_in(60).then(|| world.take(&world.channels)).flatten();
        Hostile {
            world: Some(Rc::clone(world)),
            endpoint: channel.endpoint,
            decoy: decoy.map(|channel| channel.endpoint),
            is_importer: channel.is_importer,
            state: Some(channel.state),
        }
    }

    /// One that always returns its own handle.
    pub(crate) fn honest(world: &Rc<World>, channel: Channel) -> Hostile {
        Hostile { decoy: None, ..Hostile::new(world, channel) }
    }

    /// Returns the unchanged channel.
    pub(crate) fn into_channel(self) -> Channel {
        let state = self.state.unwrap_or(State::Ready);
        Channel { endpoint: self.endpoint, is_importer: self.is_importer, state, loan: None }
    }
}

impl TypedEndpoint for Hostile {
    type Contract = Talk;
    const IMPORTER: bool = true;
    const STATE: u16 = 1;

    fn raw(&self) -> &RawEndpoint {
        let Some(world) = &self.world else { return &self.endpoint };
        world.callback();
        match &self.decoy {
            Some(decoy) if world.numbers.once_in(2) => decoy,
            _ => &self.endpoint,
        }
    }

    fn into_raw(self) -> RawEndpoint {
        if let Some(world) = &self.world {
            world.callback();
        }
        self.endpoint
    }

    fn from_raw(endpoint: RawEndpoint) -> Hostile {
        ambient::without_context(&Numbers::new(sip::thread::stack_left() as u64));
        Hostile { world: None, endpoint, decoy: None, is_importer: true, state: None }
    }
}

impl Receiver for Hostile {
    type Event = (Channel, Received);

    fn finish(self, incoming: Incoming) -> (Channel, Received) {
        if let Some(world) = &self.world
            && world.numbers.once_in(20)
        {
            world.callback();
        }
        (self.into_channel(), Received::Message(incoming))
    }

    fn finish_closed(self, mut closed: Closed) -> (Channel, Received) {
        if let Some(world) = &self.world {
            world.callback();
        }
        let home = closed.take_home();
        (self.into_channel(), Received::Closed(home))
    }
}

/// A scalar that makes calls while it is encoded or decoded.
#[derive(Clone, Copy)]
pub(crate) struct HostileScalar<'a> {
    pub(crate) world: Option<&'a Rc<World>>,
    pub(crate) word: u64,
}

impl Inline for HostileScalar<'_> {
    fn put(self, outgoing: Outgoing) -> Outgoing {
        if let Some(world) = self.world
            && world.numbers.once_in(100)
        {
            world.callback();
        }
        outgoing.word(self.word)
    }

    fn take(incoming: &mut Incoming) -> Self {
        let word = incoming.word();
        if word & 0xff == 0xff {
            ambient::without_context(&Numbers::new(word));
        }
        HostileScalar { world: None, word }
    }
}

/// A parameter that makes calls while it is parsed.
pub(crate) struct HostileValue;

impl ParameterValue for HostileValue {
    const EXPECTED: &'static str = "anything";

    fn from_text(text: &str) -> Option<HostileValue> {
        ambient::without_context(&Numbers::new(text.len() as u64));
        (text.len() > 2).then_some(HostileValue)
    }
}

/// A waker that makes calls when woken, on any thread.
pub(crate) struct HostileWaker {
    pub(crate) seed: u64,
}

impl Wake for HostileWaker {
    fn wake(self: Arc<HostileWaker>) {
        ambient::without_context(&Numbers::new(self.seed));
    }
}

impl Drop for HostileWaker {
    fn drop(&mut self) {
        ambient::without_context(&Numbers::new(!self.seed));
    }
}

/// Receives over the channel, by one of the available functions.
pub(crate) fn receive(world: &Rc<World>, mut channel: Channel) {
    let numbers = &world.numbers;
    let loan = channel.loan.take();
    let endpoint = Hostile::new(world, channel);
    let deadline = Deadline::after_ns(numbers.next() % 40_000);
    let got = match numbers.below(4) {
        0 => sip::channel::try_receive(endpoint),
        1 => sip::channel::receive_by(endpoint, Deadline::PASSED),
        2 => match sip::select::wait_any(&[&endpoint], deadline) {
            Some(_) => sip::channel::try_receive(endpoint),
            None => Err(endpoint),
        },
        _ => sip::channel::receive_by(endpoint, deadline),
    };
    match got {
        Ok((mut channel, what)) => {
            channel.loan = loan;
            messages::received(world, channel, what);
        }
        Err(endpoint) => {
            let mut channel = endpoint.into_channel();
            channel.loan = loan;
            world.add_channel(channel);
        }
    }
}

/// Wakers of this program's own.
pub(crate) fn wakers(world: &World) -> Vec<core::task::Waker> {
    (0..world.numbers.below(3)).map(|_| Arc::new(HostileWaker { seed: world.numbers.next() }).into()).collect()
}

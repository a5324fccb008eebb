//! Implements the open traits of the runtime falsely: endpoints of another state, contracts that it does not declare,
//! scalars with more words than declared, and events that keep their arguments.
//!
//! The types guide a well-meaning program; a hostile one is contained by the kernel, which ends it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use core::marker::PhantomData;

use hostile_contract::talk::{self, ImpStart};
use sip::channel::{AnyEndpoint, Contract, Incoming, Inline, Outgoing, RawEndpoint, TypedEndpoint};
use sip::exheap::ExVec;

sip::startup!();

/// The contract's messages by their number.
const CALL: u64 = 3;
const GIVE: u64 = 7;

/// A contract that another program has.
struct Foreign;

/// The system has it, and this program does not declare it.
const FOREIGN: &str = "Directory";

impl Contract for Foreign {
    const NAME: &'static str = FOREIGN;
    const TAG: u64 = sip::diagnostics::name_tag(FOREIGN);
    fn keep_record() {}
}

/// An endpoint of any contract, in any state.
struct Claimed<C> {
    endpoint: RawEndpoint,
    contract: PhantomData<C>,
}

impl<C: Contract> TypedEndpoint for Claimed<C> {
    type Contract = C;
    const IMPORTER: bool = true;
    const STATE: u16 = 0;
    fn raw(&self) -> &RawEndpoint {
        &self.endpoint
    }
    fn into_raw(self) -> RawEndpoint {
        self.endpoint
    }
    fn from_raw(endpoint: RawEndpoint) -> Self {
        Claimed { endpoint, contract: PhantomData }
    }
}

/// A scalar that begins another message while it is encoded.
#[derive(Clone, Copy)]
struct Nested;

impl Inline for Nested {
    fn put(self, outgoing: Outgoing) -> Outgoing {
        drop(outgoing);
        Outgoing::new().word(1)
    }
    fn take(incoming: &mut Incoming) -> Nested {
        incoming.word();
        Nested
    }
}

/// A scalar that reads words that no message has.
#[derive(Clone, Copy)]
struct Greedy;

impl Inline for Greedy {
    fn put(self, outgoing: Outgoing) -> Outgoing {
        (0..100).fold(outgoing, |outgoing, word| outgoing.word(word))
    }
    fn take(incoming: &mut Incoming) -> Greedy {
        incoming.word();
        Greedy
    }
}

/// Makes the attempt.
pub fn main(startup: Startup) -> i32 {
    let (client, server) = talk::new_channel().expect("a channel");
    let server = server.success();
    match startup.attempt {
        // A channel of a contract that the manifest does not list.
        0 => i32::from(sip::channel::create::<Foreign>().is_ok()),
        // An endpoint cast to one of another contract.
        1 => i32::from(AnyEndpoint::from(client).downcast::<Claimed<Foreign>>().is_ok()),
        // Sends when the peer sends next.
        2 => {
            let _sent = Outgoing::new().word(1).send(server.into_raw(), CALL);
            1
        }
        // A word instead of a block.
        3 => {
            let ImpStart::Success { next } = client.receive() else { return 2 };
            let _sent = Outgoing::new().word(0x1_0000).send(next.into_raw(), GIVE);
            1
        }
        // The block of the first message is not in the second.
        4 => {
            let ImpStart::Success { next } = client.receive() else { return 2 };
            let block = ExVec::<u8>::new(64).expect("a block");
            let outgoing = Nested.put(Outgoing::new().word(1)).block(block);
            let _sent = outgoing.send(next.into_raw(), GIVE);
            1
        }
        // More words than the buffer has.
        5 => {
            drop(Outgoing::new().value(Greedy));
            1
        }
        // An endpoint whose type claims another state: the kernel tracks its own.
        6 => {
            let ImpStart::Success { next } = client.receive() else { return 2 };
            let claimed: Claimed<talk::Talk> = TypedEndpoint::from_raw(next.into_raw());
            i32::from(AnyEndpoint::from(claimed).downcast::<Claimed<talk::Talk>>().is_ok())
        }
        other => panic!("there is no attempt {other}"),
    }
}

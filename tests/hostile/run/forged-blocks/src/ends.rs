//! An endpoint type that a program can implement itself.
//!
//! Deliberately not here: the use of its messages.

use alloc::boxed::Box;

use hostile_contract::talk::Talk;
use sip::channel::{Closed, Incoming, RawEndpoint, Receiver, TypedEndpoint};

/// One end, in any state, whose messages stay in the buffer.
pub struct End {
    raw: RawEndpoint,
    asked: Box<dyn Fn()>,
}

impl End {
    /// An end without a callback.
    pub fn new(raw: RawEndpoint) -> End {
        End::asking(raw, || {})
    }

    /// An end with a callback whenever its handle is requested.
    pub fn asking(raw: RawEndpoint, asked: impl Fn() + 'static) -> End {
        End { raw, asked: Box::new(asked) }
    }
}

impl TypedEndpoint for End {
    type Contract = Talk;
    const IMPORTER: bool = true;
    const STATE: u16 = 0;

    fn raw(&self) -> &RawEndpoint {
        (self.asked)();
        &self.raw
    }

    fn into_raw(self) -> RawEndpoint {
        self.raw
    }

    fn from_raw(raw: RawEndpoint) -> End {
        End::new(raw)
    }
}

impl Receiver for End {
    type Event = Result<(Incoming, RawEndpoint), Closed>;

    // The end is kept: closing it would be a kernel call, which overwrites the message.
    fn finish(self, incoming: Incoming) -> Self::Event {
        Ok((incoming, self.raw))
    }

    fn finish_closed(self, closed: Closed) -> Self::Event {
        Err(closed)
    }
}

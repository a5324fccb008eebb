// Bindings of the contract KnockAnswer: cargo sing contract KnockAnswer --format wasm-rust

#[doc = " An echo service: the server replies with what the client sent."]
#[allow(clippy::all, dead_code)]
pub mod knock_answer {
    #[doc = "Contract `KnockAnswer` as a type."]
    pub enum KnockAnswer {}
    ::sing_guest::contract! { KnockAnswer, "KnockAnswer", [86, 246, 96, 234, 111, 105, 49, 46, 26, 97, 172, 34, 238, 227, 141, 82, 158, 160, 9, 230, 121, 113, 201, 153, 237, 157, 23, 6, 187, 174, 19, 218] }
    #[doc = "The states of a conversation, as types."]
    pub mod states {
        #[doc = " The server sends first, because this end of the channel was moved to it."]
        pub struct Start;
        impl ::sing_guest::channel::State for Start { type Contract = super::KnockAnswer; const NUMBER: u16 = 0; const NAME: &'static str = "START"; }
        #[doc = " The client may send any number of requests."]
        pub struct Ready;
        impl ::sing_guest::channel::State for Ready { type Contract = super::KnockAnswer; const NUMBER: u16 = 1; const NAME: &'static str = "READY"; }
        #[doc = "State `READY after Knock`."]
        pub struct ReadyAfterKnock;
        impl ::sing_guest::channel::State for ReadyAfterKnock { type Contract = super::KnockAnswer; const NUMBER: u16 = 2; const NAME: &'static str = "READY after Knock"; }
    }
    #[doc = "The importing end of a channel of contract `KnockAnswer`, in state `S`. Sending and receiving take it and give it back in the next state; dropping it closes it, and the peer then receives `ChannelClosed`."]
    #[must_use = "dropping an endpoint closes the channel: keep it to go on with the conversation"]
    pub struct Imp<S> { raw: ::sing_guest::channel::RawEndpoint, state: ::core::marker::PhantomData<S> }
    impl<S: ::sing_guest::channel::State<Contract = KnockAnswer>> ::sing_guest::channel::TypedEndpoint for Imp<S> {
        type Contract = KnockAnswer;
        const IMPORTER: bool = true;
        const STATE: u16 = S::NUMBER;
        #[inline]
        fn raw(&self) -> &::sing_guest::channel::RawEndpoint { &self.raw }
        #[inline]
        fn into_raw(self) -> ::sing_guest::channel::RawEndpoint { self.raw }
        #[inline]
        fn from_raw(raw: ::sing_guest::channel::RawEndpoint) -> Self { Imp { raw, state: ::core::marker::PhantomData } }
    }
    #[doc = "The exporting end of a channel of contract `KnockAnswer`, in state `S`. Sending and receiving take it and give it back in the next state; dropping it closes it, and the peer then receives `ChannelClosed`."]
    #[must_use = "dropping an endpoint closes the channel: keep it to go on with the conversation"]
    pub struct Exp<S> { raw: ::sing_guest::channel::RawEndpoint, state: ::core::marker::PhantomData<S> }
    impl<S: ::sing_guest::channel::State<Contract = KnockAnswer>> ::sing_guest::channel::TypedEndpoint for Exp<S> {
        type Contract = KnockAnswer;
        const IMPORTER: bool = false;
        const STATE: u16 = S::NUMBER;
        #[inline]
        fn raw(&self) -> &::sing_guest::channel::RawEndpoint { &self.raw }
        #[inline]
        fn into_raw(self) -> ::sing_guest::channel::RawEndpoint { self.raw }
        #[inline]
        fn from_raw(raw: ::sing_guest::channel::RawEndpoint) -> Self { Exp { raw, state: ::core::marker::PhantomData } }
    }
    #[doc = "Creates a channel in state `START` and gives both its ends. Fails where the program's manifest does not list `KnockAnswer`, or a quota is used up."]
    pub fn new_channel() -> ::core::result::Result<(Imp<states::Start>, Exp<states::Start>), ::sing_guest::Status> {
        let (importer, exporter) = ::sing_guest::channel::create::<KnockAnswer>()?;
        ::core::result::Result::Ok((Imp { raw: importer, state: ::core::marker::PhantomData }, Exp { raw: exporter, state: ::core::marker::PhantomData }))
    }
    #[doc = "Binds a path of the namespace to a new channel in state `START`, and gives its importing end. Fails where the program's manifest does not list `KnockAnswer`, the program may not, or nobody serves `KnockAnswer` there."]
    pub fn open(path: &str) -> ::core::result::Result<Imp<states::Start>, ::sing_guest::Status> {
        let importer = ::sing_guest::channel::open::<KnockAnswer>(path)?;
        ::core::result::Result::Ok(Imp { raw: importer, state: ::core::marker::PhantomData })
    }
    #[doc = "The messages that the importer can receive in state `START`."]
    #[must_use = "a message was received: match on it to go on with the conversation"]
    pub enum ImpStart {
        #[doc = " The server is ready."]
        Success {
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Ready>,
        },
        #[doc = "The peer has closed, and all its messages have been received."]
        ChannelClosed(::sing_guest::channel::Closed),
    }
    impl ::sing_guest::channel::Receiver for Imp<states::Start> {
        type Event = ImpStart;
        #[inline]
        fn finish(self, incoming: ::sing_guest::channel::Incoming) -> ImpStart {
            match incoming.tag() {
                0 => ImpStart::Success { next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                other => ::sing_guest::channel::unexpected(other),
            }
        }
        #[inline]
        fn finish_closed(self, closed: ::sing_guest::channel::Closed) -> ImpStart { ImpStart::ChannelClosed(closed) }
    }
    impl Imp<states::Start> {
        #[doc = "Blocks until the next message or closure."]
        #[inline]
        pub fn receive(self) -> ImpStart { ::sing_guest::channel::receive(self) }
        #[doc = "Blocks until the next message or closure, at most until `deadline`; then returns the endpoint."]
        #[inline]
        pub fn receive_by(self, deadline: ::sing_guest::Deadline) -> ::core::result::Result<ImpStart, Self> { ::sing_guest::channel::receive_by(self, deadline) }
        #[doc = "Takes the next message or closure if there is one; else returns the endpoint."]
        #[inline]
        pub fn try_receive(self) -> ::core::result::Result<ImpStart, Self> { ::sing_guest::channel::try_receive(self) }
    }
    impl Imp<states::Ready> {
        #[doc = " A number and some text, whose ownership moves to the server."]
        #[inline]
        pub fn knock(self, number: u32, text: ::sing_guest::exheap::ExVec<u8>) -> Imp<states::ReadyAfterKnock> {
            Imp { raw: ::sing_guest::channel::Outgoing::new().value(number).block(text).send(self.raw, 1), state: ::core::marker::PhantomData }
        }
    }
    #[doc = "The messages that the importer can receive in state `READY after Knock`."]
    #[must_use = "a message was received: match on it to go on with the conversation"]
    pub enum ImpReadyAfterKnock {
        #[doc = " The same number and text."]
        Answer {
            #[doc = "`number` of the message."]
            number: u32,
            #[doc = "`text` of the message."]
            text: ::sing_guest::exheap::ExVec<u8>,
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Ready>,
        },
        #[doc = "The peer has closed, and all its messages have been received."]
        ChannelClosed(::sing_guest::channel::Closed),
    }
    impl ::sing_guest::channel::Receiver for Imp<states::ReadyAfterKnock> {
        type Event = ImpReadyAfterKnock;
        #[inline]
        fn finish(self, mut incoming: ::sing_guest::channel::Incoming) -> ImpReadyAfterKnock {
            match incoming.tag() {
                2 => ImpReadyAfterKnock::Answer { number: incoming.value(), text: incoming.block(), next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                other => ::sing_guest::channel::unexpected(other),
            }
        }
        #[inline]
        fn finish_closed(self, closed: ::sing_guest::channel::Closed) -> ImpReadyAfterKnock { ImpReadyAfterKnock::ChannelClosed(closed) }
    }
    impl Imp<states::ReadyAfterKnock> {
        #[doc = "Blocks until the next message or closure."]
        #[inline]
        pub fn receive(self) -> ImpReadyAfterKnock { ::sing_guest::channel::receive(self) }
        #[doc = "Blocks until the next message or closure, at most until `deadline`; then returns the endpoint."]
        #[inline]
        pub fn receive_by(self, deadline: ::sing_guest::Deadline) -> ::core::result::Result<ImpReadyAfterKnock, Self> { ::sing_guest::channel::receive_by(self, deadline) }
        #[doc = "Takes the next message or closure if there is one; else returns the endpoint."]
        #[inline]
        pub fn try_receive(self) -> ::core::result::Result<ImpReadyAfterKnock, Self> { ::sing_guest::channel::try_receive(self) }
    }
    impl Exp<states::Start> {
        #[doc = " The server is ready."]
        #[inline]
        pub fn success(self) -> Exp<states::Ready> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().send(self.raw, 0), state: ::core::marker::PhantomData }
        }
    }
    #[doc = "The messages that the exporter can receive in state `READY`."]
    #[must_use = "a message was received: match on it to go on with the conversation"]
    pub enum ExpReady {
        #[doc = " A number and some text, whose ownership moves to the server."]
        Knock {
            #[doc = "`number` of the message."]
            number: u32,
            #[doc = "`text` of the message."]
            text: ::sing_guest::exheap::ExVec<u8>,
            #[doc = "The endpoint, in its next state."]
            next: Exp<states::ReadyAfterKnock>,
        },
        #[doc = "The peer has closed, and all its messages have been received."]
        ChannelClosed(::sing_guest::channel::Closed),
    }
    impl ::sing_guest::channel::Receiver for Exp<states::Ready> {
        type Event = ExpReady;
        #[inline]
        fn finish(self, mut incoming: ::sing_guest::channel::Incoming) -> ExpReady {
            match incoming.tag() {
                1 => ExpReady::Knock { number: incoming.value(), text: incoming.block(), next: Exp { raw: self.raw, state: ::core::marker::PhantomData } },
                other => ::sing_guest::channel::unexpected(other),
            }
        }
        #[inline]
        fn finish_closed(self, closed: ::sing_guest::channel::Closed) -> ExpReady { ExpReady::ChannelClosed(closed) }
    }
    impl Exp<states::Ready> {
        #[doc = "Blocks until the next message or closure."]
        #[inline]
        pub fn receive(self) -> ExpReady { ::sing_guest::channel::receive(self) }
        #[doc = "Blocks until the next message or closure, at most until `deadline`; then returns the endpoint."]
        #[inline]
        pub fn receive_by(self, deadline: ::sing_guest::Deadline) -> ::core::result::Result<ExpReady, Self> { ::sing_guest::channel::receive_by(self, deadline) }
        #[doc = "Takes the next message or closure if there is one; else returns the endpoint."]
        #[inline]
        pub fn try_receive(self) -> ::core::result::Result<ExpReady, Self> { ::sing_guest::channel::try_receive(self) }
    }
    impl Exp<states::ReadyAfterKnock> {
        #[doc = " The same number and text."]
        #[inline]
        pub fn answer(self, number: u32, text: ::sing_guest::exheap::ExVec<u8>) -> Exp<states::Ready> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().value(number).block(text).send(self.raw, 2), state: ::core::marker::PhantomData }
        }
    }
}

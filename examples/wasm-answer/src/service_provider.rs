// Bindings of the contract ServiceProvider: cargo sing contract ServiceProvider --format wasm-rust

#[doc = " The directory service passes clients to a provider. The provider exports, the directory imports."]
#[allow(clippy::all, dead_code)]
pub mod service_provider {
    #[doc = " Why a provider cannot start."]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[allow(non_camel_case_types)]
    pub enum StartError {
        #[doc = " A device or service that it needs is missing."]
        Missing,
        #[doc = " What it is to serve is of an unknown kind."]
        NotRecognised,
        #[doc = " What it is to serve is damaged."]
        Damaged,
        #[doc = " Invalid start parameter."]
        BadParameter,
        #[doc = " It is out of memory, handles or channels."]
        Exhausted,
        #[doc = " What it is to serve has unsupported features."]
        NotSupported,
    }
    impl ::sing_guest::channel::Inline for StartError {
        #[inline]
        fn put(self, outgoing: ::sing_guest::channel::Outgoing) -> ::sing_guest::channel::Outgoing { outgoing.word(self as u64) }
        #[inline]
        fn take(incoming: &mut ::sing_guest::channel::Incoming) -> Self { match incoming.word() { 0 => StartError::Missing, 1 => StartError::NotRecognised, 2 => StartError::Damaged, 3 => StartError::BadParameter, 4 => StartError::Exhausted, _ => StartError::NotSupported, } }
    }
    #[doc = " Why a client was rejected."]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[allow(non_camel_case_types)]
    pub enum ConnectError {
        #[doc = " No such path."]
        NotFound,
        #[doc = " Permission denied."]
        NotPermitted,
        #[doc = " The provider does not serve that contract there."]
        WrongContract,
        #[doc = " A component of the path is not a folder."]
        NotADirectory,
        #[doc = " Too many clients at present."]
        Busy,
        #[doc = " It is out of memory, handles or channels."]
        Exhausted,
    }
    impl ::sing_guest::channel::Inline for ConnectError {
        #[inline]
        fn put(self, outgoing: ::sing_guest::channel::Outgoing) -> ::sing_guest::channel::Outgoing { outgoing.word(self as u64) }
        #[inline]
        fn take(incoming: &mut ::sing_guest::channel::Incoming) -> Self { match incoming.word() { 0 => ConnectError::NotFound, 1 => ConnectError::NotPermitted, 2 => ConnectError::WrongContract, 3 => ConnectError::NotADirectory, 4 => ConnectError::Busy, _ => ConnectError::Exhausted, } }
    }
    #[doc = "Contract `ServiceProvider` as a type."]
    pub enum ServiceProvider {}
    ::sing_guest::contract! { ServiceProvider, "ServiceProvider", [169, 173, 186, 84, 72, 29, 61, 157, 209, 162, 22, 28, 9, 237, 71, 99, 27, 210, 229, 196, 161, 219, 113, 237, 210, 4, 23, 219, 44, 223, 108, 230] }
    #[doc = "The states of a conversation, as types."]
    pub mod states {
        #[doc = " The provider reports when it is ready."]
        pub struct Start;
        impl ::sing_guest::channel::State for Start { type Contract = super::ServiceProvider; const NUMBER: u16 = 0; const NAME: &'static str = "START"; }
        #[doc = " Clients may be passed."]
        pub struct Ready;
        impl ::sing_guest::channel::State for Ready { type Contract = super::ServiceProvider; const NUMBER: u16 = 1; const NAME: &'static str = "READY"; }
        #[doc = " End of the conversation."]
        pub struct Ended;
        impl ::sing_guest::channel::State for Ended { type Contract = super::ServiceProvider; const NUMBER: u16 = 2; const NAME: &'static str = "ENDED"; }
        #[doc = "State `READY after Connect`."]
        pub struct ReadyAfterConnect;
        impl ::sing_guest::channel::State for ReadyAfterConnect { type Contract = super::ServiceProvider; const NUMBER: u16 = 3; const NAME: &'static str = "READY after Connect"; }
    }
    #[doc = "The importing end of a channel of contract `ServiceProvider`, in state `S`. Sending and receiving take it and give it back in the next state; dropping it closes it, and the peer then receives `ChannelClosed`."]
    #[must_use = "dropping an endpoint closes the channel: keep it to go on with the conversation"]
    pub struct Imp<S> { raw: ::sing_guest::channel::RawEndpoint, state: ::core::marker::PhantomData<S> }
    impl<S: ::sing_guest::channel::State<Contract = ServiceProvider>> ::sing_guest::channel::TypedEndpoint for Imp<S> {
        type Contract = ServiceProvider;
        const IMPORTER: bool = true;
        const STATE: u16 = S::NUMBER;
        #[inline]
        fn raw(&self) -> &::sing_guest::channel::RawEndpoint { &self.raw }
        #[inline]
        fn into_raw(self) -> ::sing_guest::channel::RawEndpoint { self.raw }
        #[inline]
        fn from_raw(raw: ::sing_guest::channel::RawEndpoint) -> Self { Imp { raw, state: ::core::marker::PhantomData } }
    }
    #[doc = "The exporting end of a channel of contract `ServiceProvider`, in state `S`. Sending and receiving take it and give it back in the next state; dropping it closes it, and the peer then receives `ChannelClosed`."]
    #[must_use = "dropping an endpoint closes the channel: keep it to go on with the conversation"]
    pub struct Exp<S> { raw: ::sing_guest::channel::RawEndpoint, state: ::core::marker::PhantomData<S> }
    impl<S: ::sing_guest::channel::State<Contract = ServiceProvider>> ::sing_guest::channel::TypedEndpoint for Exp<S> {
        type Contract = ServiceProvider;
        const IMPORTER: bool = false;
        const STATE: u16 = S::NUMBER;
        #[inline]
        fn raw(&self) -> &::sing_guest::channel::RawEndpoint { &self.raw }
        #[inline]
        fn into_raw(self) -> ::sing_guest::channel::RawEndpoint { self.raw }
        #[inline]
        fn from_raw(raw: ::sing_guest::channel::RawEndpoint) -> Self { Exp { raw, state: ::core::marker::PhantomData } }
    }
    #[doc = "Creates a channel in state `START` and gives both its ends. Fails where the program's manifest does not list `ServiceProvider`, or a quota is used up."]
    pub fn new_channel() -> ::core::result::Result<(Imp<states::Start>, Exp<states::Start>), ::sing_guest::Status> {
        let (importer, exporter) = ::sing_guest::channel::create::<ServiceProvider>()?;
        ::core::result::Result::Ok((Imp { raw: importer, state: ::core::marker::PhantomData }, Exp { raw: exporter, state: ::core::marker::PhantomData }))
    }
    #[doc = "Binds a path of the namespace to a new channel in state `START`, and gives its importing end. Fails where the program's manifest does not list `ServiceProvider`, the program may not, or nobody serves `ServiceProvider` there."]
    pub fn open(path: &str) -> ::core::result::Result<Imp<states::Start>, ::sing_guest::Status> {
        let importer = ::sing_guest::channel::open::<ServiceProvider>(path)?;
        ::core::result::Result::Ok(Imp { raw: importer, state: ::core::marker::PhantomData })
    }
    #[doc = "The messages that the importer can receive in state `START`."]
    #[must_use = "a message was received: match on it to go on with the conversation"]
    pub enum ImpStart {
        #[doc = " The provider is ready for clients."]
        Ready {
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Ready>,
        },
        #[doc = " The provider cannot start. `explanation` is a sentence of UTF-8 for people."]
        NotReady {
            #[doc = "`error` of the message."]
            error: StartError,
            #[doc = "`explanation` of the message."]
            explanation: ::sing_guest::exheap::ExVec<u8>,
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Ended>,
        },
        #[doc = "The peer has closed, and all its messages have been received."]
        ChannelClosed(::sing_guest::channel::Closed),
    }
    impl ::sing_guest::channel::Receiver for Imp<states::Start> {
        type Event = ImpStart;
        #[inline]
        fn finish(self, mut incoming: ::sing_guest::channel::Incoming) -> ImpStart {
            match incoming.tag() {
                0 => ImpStart::Ready { next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                1 => ImpStart::NotReady { error: incoming.value(), explanation: incoming.block(), next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
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
        #[doc = " A client: its endpoint, in its contract's start state. The provider resolves `path` from the byte `rest` on:"]
        #[doc = " empty, or without a leading `/`. `rights` is what the lists of the directory service permit the client at the"]
        #[doc = " provider's name, as bits of the library `principal`, or 0xffffffff if no list applies. They apply below that name"]
        #[doc = " as far as the provider has no lists of its own."]
        #[inline]
        pub fn connect(self, path: ::sing_guest::exheap::ExVec<u8>, rest: u32, rights: u32, endpoint: impl ::core::convert::Into<::sing_guest::channel::AnyEndpoint>) -> Imp<states::ReadyAfterConnect> {
            Imp { raw: ::sing_guest::channel::Outgoing::new().value(rest).value(rights).block(path).any_endpoint(endpoint.into()).send(self.raw, 2), state: ::core::marker::PhantomData }
        }
    }
    #[doc = "The messages that the importer can receive in state `READY after Connect`."]
    #[must_use = "a message was received: match on it to go on with the conversation"]
    pub enum ImpReadyAfterConnect {
        #[doc = " The client was accepted. Whether the object can be opened is reported later, on its own endpoint."]
        Ack {
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Ready>,
        },
        #[doc = " The client was rejected; its endpoint is returned."]
        Nack {
            #[doc = "`error` of the message."]
            error: ConnectError,
            #[doc = "`endpoint` of the message."]
            endpoint: ::sing_guest::channel::AnyEndpoint,
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Ready>,
        },
        #[doc = "The peer has closed, and all its messages have been received."]
        ChannelClosed(::sing_guest::channel::Closed),
    }
    impl ::sing_guest::channel::Receiver for Imp<states::ReadyAfterConnect> {
        type Event = ImpReadyAfterConnect;
        #[inline]
        fn finish(self, mut incoming: ::sing_guest::channel::Incoming) -> ImpReadyAfterConnect {
            match incoming.tag() {
                3 => ImpReadyAfterConnect::Ack { next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                4 => ImpReadyAfterConnect::Nack { error: incoming.value(), endpoint: incoming.any_endpoint(), next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                other => ::sing_guest::channel::unexpected(other),
            }
        }
        #[inline]
        fn finish_closed(self, closed: ::sing_guest::channel::Closed) -> ImpReadyAfterConnect { ImpReadyAfterConnect::ChannelClosed(closed) }
    }
    impl Imp<states::ReadyAfterConnect> {
        #[doc = "Blocks until the next message or closure."]
        #[inline]
        pub fn receive(self) -> ImpReadyAfterConnect { ::sing_guest::channel::receive(self) }
        #[doc = "Blocks until the next message or closure, at most until `deadline`; then returns the endpoint."]
        #[inline]
        pub fn receive_by(self, deadline: ::sing_guest::Deadline) -> ::core::result::Result<ImpReadyAfterConnect, Self> { ::sing_guest::channel::receive_by(self, deadline) }
        #[doc = "Takes the next message or closure if there is one; else returns the endpoint."]
        #[inline]
        pub fn try_receive(self) -> ::core::result::Result<ImpReadyAfterConnect, Self> { ::sing_guest::channel::try_receive(self) }
    }
    impl Exp<states::Start> {
        #[doc = " The provider is ready for clients."]
        #[inline]
        pub fn ready(self) -> Exp<states::Ready> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().send(self.raw, 0), state: ::core::marker::PhantomData }
        }
        #[doc = " The provider cannot start. `explanation` is a sentence of UTF-8 for people."]
        #[inline]
        pub fn not_ready(self, error: StartError, explanation: ::sing_guest::exheap::ExVec<u8>) -> Exp<states::Ended> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().value(error).block(explanation).send(self.raw, 1), state: ::core::marker::PhantomData }
        }
    }
    #[doc = "The messages that the exporter can receive in state `READY`."]
    #[must_use = "a message was received: match on it to go on with the conversation"]
    pub enum ExpReady {
        #[doc = " A client: its endpoint, in its contract's start state. The provider resolves `path` from the byte `rest` on:"]
        #[doc = " empty, or without a leading `/`. `rights` is what the lists of the directory service permit the client at the"]
        #[doc = " provider's name, as bits of the library `principal`, or 0xffffffff if no list applies. They apply below that name"]
        #[doc = " as far as the provider has no lists of its own."]
        Connect {
            #[doc = "`path` of the message."]
            path: ::sing_guest::exheap::ExVec<u8>,
            #[doc = "`rest` of the message."]
            rest: u32,
            #[doc = "`rights` of the message."]
            rights: u32,
            #[doc = "`endpoint` of the message."]
            endpoint: ::sing_guest::channel::AnyEndpoint,
            #[doc = "The endpoint, in its next state."]
            next: Exp<states::ReadyAfterConnect>,
        },
        #[doc = "The peer has closed, and all its messages have been received."]
        ChannelClosed(::sing_guest::channel::Closed),
    }
    impl ::sing_guest::channel::Receiver for Exp<states::Ready> {
        type Event = ExpReady;
        #[inline]
        fn finish(self, mut incoming: ::sing_guest::channel::Incoming) -> ExpReady {
            match incoming.tag() {
                2 => ExpReady::Connect { rest: incoming.value(), rights: incoming.value(), path: incoming.block(), endpoint: incoming.any_endpoint(), next: Exp { raw: self.raw, state: ::core::marker::PhantomData } },
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
    impl Exp<states::ReadyAfterConnect> {
        #[doc = " The client was accepted. Whether the object can be opened is reported later, on its own endpoint."]
        #[inline]
        pub fn ack(self) -> Exp<states::Ready> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().send(self.raw, 3), state: ::core::marker::PhantomData }
        }
        #[doc = " The client was rejected; its endpoint is returned."]
        #[inline]
        pub fn nack(self, error: ConnectError, endpoint: impl ::core::convert::Into<::sing_guest::channel::AnyEndpoint>) -> Exp<states::Ready> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().value(error).any_endpoint(endpoint.into()).send(self.raw, 4), state: ::core::marker::PhantomData }
        }
    }
}

// Bindings of the contract WebApplication: cargo sing contract WebApplication --format wasm-rust

#[doc = " A request and its response: the web server exports, an application imports. If the channel closes before the"]
#[doc = " response is complete, the client gets a 502, or a truncated response."]
#[doc = ""]
#[doc = " A request head is UTF-8: the method, the path (percent-decoded, without `.` and `..`, relative to the application's"]
#[doc = " mount point, with a leading `/`), the query (as sent, without `?`) and the peer's address, each terminated by a line"]
#[doc = " feed; then header fields as `name: value` and a line feed, with lower-case names. A response head is fields in the"]
#[doc = " same form, without content-length, transfer-encoding, connection and date, which the server adds."]
#[allow(clippy::all, dead_code)]
pub mod http_exchange {
    #[doc = "Contract `HttpExchange` as a type."]
    pub enum HttpExchange {}
    ::sing_guest::contract! { HttpExchange, "HttpExchange", [165, 100, 35, 205, 153, 100, 226, 215, 116, 229, 193, 199, 212, 144, 136, 29, 81, 46, 119, 3, 237, 102, 87, 93, 205, 57, 38, 10, 77, 247, 167, 247] }
    #[doc = "The states of a conversation, as types."]
    pub mod states {
        #[doc = " The application may read the content, and respond."]
        pub struct Ready;
        impl ::sing_guest::channel::State for Ready { type Contract = super::HttpExchange; const NUMBER: u16 = 0; const NAME: &'static str = "READY"; }
        #[doc = " The response content is being sent."]
        pub struct Answering;
        impl ::sing_guest::channel::State for Answering { type Contract = super::HttpExchange; const NUMBER: u16 = 1; const NAME: &'static str = "ANSWERING"; }
        #[doc = " End of the conversation."]
        pub struct Ended;
        impl ::sing_guest::channel::State for Ended { type Contract = super::HttpExchange; const NUMBER: u16 = 2; const NAME: &'static str = "ENDED"; }
        #[doc = "State `READY after ReadBody`."]
        pub struct ReadyAfterReadBody;
        impl ::sing_guest::channel::State for ReadyAfterReadBody { type Contract = super::HttpExchange; const NUMBER: u16 = 3; const NAME: &'static str = "READY after ReadBody"; }
        #[doc = "State `READY after Reply`."]
        pub struct ReadyAfterReply;
        impl ::sing_guest::channel::State for ReadyAfterReply { type Contract = super::HttpExchange; const NUMBER: u16 = 4; const NAME: &'static str = "READY after Reply"; }
        #[doc = "State `READY after Begin`."]
        pub struct ReadyAfterBegin;
        impl ::sing_guest::channel::State for ReadyAfterBegin { type Contract = super::HttpExchange; const NUMBER: u16 = 5; const NAME: &'static str = "READY after Begin"; }
        #[doc = "State `ANSWERING after Write`."]
        pub struct AnsweringAfterWrite;
        impl ::sing_guest::channel::State for AnsweringAfterWrite { type Contract = super::HttpExchange; const NUMBER: u16 = 6; const NAME: &'static str = "ANSWERING after Write"; }
        #[doc = "State `ANSWERING after End`."]
        pub struct AnsweringAfterEnd;
        impl ::sing_guest::channel::State for AnsweringAfterEnd { type Contract = super::HttpExchange; const NUMBER: u16 = 7; const NAME: &'static str = "ANSWERING after End"; }
    }
    #[doc = "The importing end of a channel of contract `HttpExchange`, in state `S`. Sending and receiving take it and give it back in the next state; dropping it closes it, and the peer then receives `ChannelClosed`."]
    #[must_use = "dropping an endpoint closes the channel: keep it to go on with the conversation"]
    pub struct Imp<S> { raw: ::sing_guest::channel::RawEndpoint, state: ::core::marker::PhantomData<S> }
    impl<S: ::sing_guest::channel::State<Contract = HttpExchange>> ::sing_guest::channel::TypedEndpoint for Imp<S> {
        type Contract = HttpExchange;
        const IMPORTER: bool = true;
        const STATE: u16 = S::NUMBER;
        #[inline]
        fn raw(&self) -> &::sing_guest::channel::RawEndpoint { &self.raw }
        #[inline]
        fn into_raw(self) -> ::sing_guest::channel::RawEndpoint { self.raw }
        #[inline]
        fn from_raw(raw: ::sing_guest::channel::RawEndpoint) -> Self { Imp { raw, state: ::core::marker::PhantomData } }
    }
    #[doc = "The exporting end of a channel of contract `HttpExchange`, in state `S`. Sending and receiving take it and give it back in the next state; dropping it closes it, and the peer then receives `ChannelClosed`."]
    #[must_use = "dropping an endpoint closes the channel: keep it to go on with the conversation"]
    pub struct Exp<S> { raw: ::sing_guest::channel::RawEndpoint, state: ::core::marker::PhantomData<S> }
    impl<S: ::sing_guest::channel::State<Contract = HttpExchange>> ::sing_guest::channel::TypedEndpoint for Exp<S> {
        type Contract = HttpExchange;
        const IMPORTER: bool = false;
        const STATE: u16 = S::NUMBER;
        #[inline]
        fn raw(&self) -> &::sing_guest::channel::RawEndpoint { &self.raw }
        #[inline]
        fn into_raw(self) -> ::sing_guest::channel::RawEndpoint { self.raw }
        #[inline]
        fn from_raw(raw: ::sing_guest::channel::RawEndpoint) -> Self { Exp { raw, state: ::core::marker::PhantomData } }
    }
    #[doc = "Creates a channel in state `READY` and gives both its ends. Fails where the program's manifest does not list `HttpExchange`, or a quota is used up."]
    pub fn new_channel() -> ::core::result::Result<(Imp<states::Ready>, Exp<states::Ready>), ::sing_guest::Status> {
        let (importer, exporter) = ::sing_guest::channel::create::<HttpExchange>()?;
        ::core::result::Result::Ok((Imp { raw: importer, state: ::core::marker::PhantomData }, Exp { raw: exporter, state: ::core::marker::PhantomData }))
    }
    #[doc = "Binds a path of the namespace to a new channel in state `READY`, and gives its importing end. Fails where the program's manifest does not list `HttpExchange`, the program may not, or nobody serves `HttpExchange` there."]
    pub fn open(path: &str) -> ::core::result::Result<Imp<states::Ready>, ::sing_guest::Status> {
        let importer = ::sing_guest::channel::open::<HttpExchange>(path)?;
        ::core::result::Result::Ok(Imp { raw: importer, state: ::core::marker::PhantomData })
    }
    impl Imp<states::Ready> {
        #[doc = " Reads the next piece of the request's content, of at most `most` bytes."]
        #[inline]
        pub fn read_body(self, most: u32) -> Imp<states::ReadyAfterReadBody> {
            Imp { raw: ::sing_guest::channel::Outgoing::new().value(most).send(self.raw, 0), state: ::core::marker::PhantomData }
        }
        #[doc = " A complete response with the first `count` bytes of `body`."]
        #[inline]
        pub fn reply(self, status: u16, head: ::sing_guest::exheap::ExVec<u8>, body: ::sing_guest::exheap::ExVec<u8>, count: u32) -> Imp<states::ReadyAfterReply> {
            Imp { raw: ::sing_guest::channel::Outgoing::new().value(status).value(count).block(head).block(body).send(self.raw, 4), state: ::core::marker::PhantomData }
        }
        #[doc = " The head of a response of unknown length; its content follows in pieces."]
        #[inline]
        pub fn begin(self, status: u16, head: ::sing_guest::exheap::ExVec<u8>) -> Imp<states::ReadyAfterBegin> {
            Imp { raw: ::sing_guest::channel::Outgoing::new().value(status).block(head).send(self.raw, 5), state: ::core::marker::PhantomData }
        }
    }
    impl Imp<states::Answering> {
        #[doc = " The next piece: the first `count` bytes."]
        #[inline]
        pub fn write(self, data: ::sing_guest::exheap::ExVec<u8>, count: u32) -> Imp<states::AnsweringAfterWrite> {
            Imp { raw: ::sing_guest::channel::Outgoing::new().value(count).block(data).send(self.raw, 6), state: ::core::marker::PhantomData }
        }
        #[doc = " The response is complete."]
        #[inline]
        pub fn end(self) -> Imp<states::AnsweringAfterEnd> {
            Imp { raw: ::sing_guest::channel::Outgoing::new().send(self.raw, 7), state: ::core::marker::PhantomData }
        }
    }
    #[doc = "The messages that the importer can receive in state `READY after ReadBody`."]
    #[must_use = "a message was received: match on it to go on with the conversation"]
    pub enum ImpReadyAfterReadBody {
        #[doc = " The first `count` bytes of the block, at least one."]
        Body {
            #[doc = "`data` of the message."]
            data: ::sing_guest::exheap::ExVec<u8>,
            #[doc = "`count` of the message."]
            count: u32,
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Ready>,
        },
        #[doc = " End of the content."]
        EndOfBody {
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Ready>,
        },
        #[doc = " The client disconnected, timed out, or sent too much or malformed content."]
        BodyFailed {
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Ready>,
        },
        #[doc = "The peer has closed, and all its messages have been received."]
        ChannelClosed(::sing_guest::channel::Closed),
    }
    impl ::sing_guest::channel::Receiver for Imp<states::ReadyAfterReadBody> {
        type Event = ImpReadyAfterReadBody;
        #[inline]
        fn finish(self, mut incoming: ::sing_guest::channel::Incoming) -> ImpReadyAfterReadBody {
            match incoming.tag() {
                1 => ImpReadyAfterReadBody::Body { count: incoming.value(), data: incoming.block(), next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                2 => ImpReadyAfterReadBody::EndOfBody { next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                3 => ImpReadyAfterReadBody::BodyFailed { next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                other => ::sing_guest::channel::unexpected(other),
            }
        }
        #[inline]
        fn finish_closed(self, closed: ::sing_guest::channel::Closed) -> ImpReadyAfterReadBody { ImpReadyAfterReadBody::ChannelClosed(closed) }
    }
    impl Imp<states::ReadyAfterReadBody> {
        #[doc = "Blocks until the next message or closure."]
        #[inline]
        pub fn receive(self) -> ImpReadyAfterReadBody { ::sing_guest::channel::receive(self) }
        #[doc = "Blocks until the next message or closure, at most until `deadline`; then returns the endpoint."]
        #[inline]
        pub fn receive_by(self, deadline: ::sing_guest::Deadline) -> ::core::result::Result<ImpReadyAfterReadBody, Self> { ::sing_guest::channel::receive_by(self, deadline) }
        #[doc = "Takes the next message or closure if there is one; else returns the endpoint."]
        #[inline]
        pub fn try_receive(self) -> ::core::result::Result<ImpReadyAfterReadBody, Self> { ::sing_guest::channel::try_receive(self) }
    }
    #[doc = "The messages that the importer can receive in state `READY after Reply`."]
    #[must_use = "a message was received: match on it to go on with the conversation"]
    pub enum ImpReadyAfterReply {
        #[doc = " Accepted."]
        Done {
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Ended>,
        },
        #[doc = " The client disconnected, or the head is malformed: nothing more can be sent."]
        Failed {
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Ended>,
        },
        #[doc = "The peer has closed, and all its messages have been received."]
        ChannelClosed(::sing_guest::channel::Closed),
    }
    impl ::sing_guest::channel::Receiver for Imp<states::ReadyAfterReply> {
        type Event = ImpReadyAfterReply;
        #[inline]
        fn finish(self, incoming: ::sing_guest::channel::Incoming) -> ImpReadyAfterReply {
            match incoming.tag() {
                8 => ImpReadyAfterReply::Done { next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                9 => ImpReadyAfterReply::Failed { next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                other => ::sing_guest::channel::unexpected(other),
            }
        }
        #[inline]
        fn finish_closed(self, closed: ::sing_guest::channel::Closed) -> ImpReadyAfterReply { ImpReadyAfterReply::ChannelClosed(closed) }
    }
    impl Imp<states::ReadyAfterReply> {
        #[doc = "Blocks until the next message or closure."]
        #[inline]
        pub fn receive(self) -> ImpReadyAfterReply { ::sing_guest::channel::receive(self) }
        #[doc = "Blocks until the next message or closure, at most until `deadline`; then returns the endpoint."]
        #[inline]
        pub fn receive_by(self, deadline: ::sing_guest::Deadline) -> ::core::result::Result<ImpReadyAfterReply, Self> { ::sing_guest::channel::receive_by(self, deadline) }
        #[doc = "Takes the next message or closure if there is one; else returns the endpoint."]
        #[inline]
        pub fn try_receive(self) -> ::core::result::Result<ImpReadyAfterReply, Self> { ::sing_guest::channel::try_receive(self) }
    }
    #[doc = "The messages that the importer can receive in state `READY after Begin`."]
    #[must_use = "a message was received: match on it to go on with the conversation"]
    pub enum ImpReadyAfterBegin {
        #[doc = " Accepted."]
        Done {
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Answering>,
        },
        #[doc = " The client disconnected, or the head is malformed: nothing more can be sent."]
        Failed {
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Ended>,
        },
        #[doc = "The peer has closed, and all its messages have been received."]
        ChannelClosed(::sing_guest::channel::Closed),
    }
    impl ::sing_guest::channel::Receiver for Imp<states::ReadyAfterBegin> {
        type Event = ImpReadyAfterBegin;
        #[inline]
        fn finish(self, incoming: ::sing_guest::channel::Incoming) -> ImpReadyAfterBegin {
            match incoming.tag() {
                8 => ImpReadyAfterBegin::Done { next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                9 => ImpReadyAfterBegin::Failed { next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                other => ::sing_guest::channel::unexpected(other),
            }
        }
        #[inline]
        fn finish_closed(self, closed: ::sing_guest::channel::Closed) -> ImpReadyAfterBegin { ImpReadyAfterBegin::ChannelClosed(closed) }
    }
    impl Imp<states::ReadyAfterBegin> {
        #[doc = "Blocks until the next message or closure."]
        #[inline]
        pub fn receive(self) -> ImpReadyAfterBegin { ::sing_guest::channel::receive(self) }
        #[doc = "Blocks until the next message or closure, at most until `deadline`; then returns the endpoint."]
        #[inline]
        pub fn receive_by(self, deadline: ::sing_guest::Deadline) -> ::core::result::Result<ImpReadyAfterBegin, Self> { ::sing_guest::channel::receive_by(self, deadline) }
        #[doc = "Takes the next message or closure if there is one; else returns the endpoint."]
        #[inline]
        pub fn try_receive(self) -> ::core::result::Result<ImpReadyAfterBegin, Self> { ::sing_guest::channel::try_receive(self) }
    }
    #[doc = "The messages that the importer can receive in state `ANSWERING after Write`."]
    #[must_use = "a message was received: match on it to go on with the conversation"]
    pub enum ImpAnsweringAfterWrite {
        #[doc = " Accepted."]
        Done {
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Answering>,
        },
        #[doc = " The client disconnected, or the head is malformed: nothing more can be sent."]
        Failed {
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Ended>,
        },
        #[doc = "The peer has closed, and all its messages have been received."]
        ChannelClosed(::sing_guest::channel::Closed),
    }
    impl ::sing_guest::channel::Receiver for Imp<states::AnsweringAfterWrite> {
        type Event = ImpAnsweringAfterWrite;
        #[inline]
        fn finish(self, incoming: ::sing_guest::channel::Incoming) -> ImpAnsweringAfterWrite {
            match incoming.tag() {
                8 => ImpAnsweringAfterWrite::Done { next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                9 => ImpAnsweringAfterWrite::Failed { next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                other => ::sing_guest::channel::unexpected(other),
            }
        }
        #[inline]
        fn finish_closed(self, closed: ::sing_guest::channel::Closed) -> ImpAnsweringAfterWrite { ImpAnsweringAfterWrite::ChannelClosed(closed) }
    }
    impl Imp<states::AnsweringAfterWrite> {
        #[doc = "Blocks until the next message or closure."]
        #[inline]
        pub fn receive(self) -> ImpAnsweringAfterWrite { ::sing_guest::channel::receive(self) }
        #[doc = "Blocks until the next message or closure, at most until `deadline`; then returns the endpoint."]
        #[inline]
        pub fn receive_by(self, deadline: ::sing_guest::Deadline) -> ::core::result::Result<ImpAnsweringAfterWrite, Self> { ::sing_guest::channel::receive_by(self, deadline) }
        #[doc = "Takes the next message or closure if there is one; else returns the endpoint."]
        #[inline]
        pub fn try_receive(self) -> ::core::result::Result<ImpAnsweringAfterWrite, Self> { ::sing_guest::channel::try_receive(self) }
    }
    #[doc = "The messages that the importer can receive in state `ANSWERING after End`."]
    #[must_use = "a message was received: match on it to go on with the conversation"]
    pub enum ImpAnsweringAfterEnd {
        #[doc = " Accepted."]
        Done {
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Ended>,
        },
        #[doc = " The client disconnected, or the head is malformed: nothing more can be sent."]
        Failed {
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Ended>,
        },
        #[doc = "The peer has closed, and all its messages have been received."]
        ChannelClosed(::sing_guest::channel::Closed),
    }
    impl ::sing_guest::channel::Receiver for Imp<states::AnsweringAfterEnd> {
        type Event = ImpAnsweringAfterEnd;
        #[inline]
        fn finish(self, incoming: ::sing_guest::channel::Incoming) -> ImpAnsweringAfterEnd {
            match incoming.tag() {
                8 => ImpAnsweringAfterEnd::Done { next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                9 => ImpAnsweringAfterEnd::Failed { next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                other => ::sing_guest::channel::unexpected(other),
            }
        }
        #[inline]
        fn finish_closed(self, closed: ::sing_guest::channel::Closed) -> ImpAnsweringAfterEnd { ImpAnsweringAfterEnd::ChannelClosed(closed) }
    }
    impl Imp<states::AnsweringAfterEnd> {
        #[doc = "Blocks until the next message or closure."]
        #[inline]
        pub fn receive(self) -> ImpAnsweringAfterEnd { ::sing_guest::channel::receive(self) }
        #[doc = "Blocks until the next message or closure, at most until `deadline`; then returns the endpoint."]
        #[inline]
        pub fn receive_by(self, deadline: ::sing_guest::Deadline) -> ::core::result::Result<ImpAnsweringAfterEnd, Self> { ::sing_guest::channel::receive_by(self, deadline) }
        #[doc = "Takes the next message or closure if there is one; else returns the endpoint."]
        #[inline]
        pub fn try_receive(self) -> ::core::result::Result<ImpAnsweringAfterEnd, Self> { ::sing_guest::channel::try_receive(self) }
    }
    #[doc = "The messages that the exporter can receive in state `READY`."]
    #[must_use = "a message was received: match on it to go on with the conversation"]
    pub enum ExpReady {
        #[doc = " Reads the next piece of the request's content, of at most `most` bytes."]
        ReadBody {
            #[doc = "`most` of the message."]
            most: u32,
            #[doc = "The endpoint, in its next state."]
            next: Exp<states::ReadyAfterReadBody>,
        },
        #[doc = " A complete response with the first `count` bytes of `body`."]
        Reply {
            #[doc = "`status` of the message."]
            status: u16,
            #[doc = "`head` of the message."]
            head: ::sing_guest::exheap::ExVec<u8>,
            #[doc = "`body` of the message."]
            body: ::sing_guest::exheap::ExVec<u8>,
            #[doc = "`count` of the message."]
            count: u32,
            #[doc = "The endpoint, in its next state."]
            next: Exp<states::ReadyAfterReply>,
        },
        #[doc = " The head of a response of unknown length; its content follows in pieces."]
        Begin {
            #[doc = "`status` of the message."]
            status: u16,
            #[doc = "`head` of the message."]
            head: ::sing_guest::exheap::ExVec<u8>,
            #[doc = "The endpoint, in its next state."]
            next: Exp<states::ReadyAfterBegin>,
        },
        #[doc = "The peer has closed, and all its messages have been received."]
        ChannelClosed(::sing_guest::channel::Closed),
    }
    impl ::sing_guest::channel::Receiver for Exp<states::Ready> {
        type Event = ExpReady;
        #[inline]
        fn finish(self, mut incoming: ::sing_guest::channel::Incoming) -> ExpReady {
            match incoming.tag() {
                0 => ExpReady::ReadBody { most: incoming.value(), next: Exp { raw: self.raw, state: ::core::marker::PhantomData } },
                4 => ExpReady::Reply { status: incoming.value(), count: incoming.value(), head: incoming.block(), body: incoming.block(), next: Exp { raw: self.raw, state: ::core::marker::PhantomData } },
                5 => ExpReady::Begin { status: incoming.value(), head: incoming.block(), next: Exp { raw: self.raw, state: ::core::marker::PhantomData } },
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
    #[doc = "The messages that the exporter can receive in state `ANSWERING`."]
    #[must_use = "a message was received: match on it to go on with the conversation"]
    pub enum ExpAnswering {
        #[doc = " The next piece: the first `count` bytes."]
        Write {
            #[doc = "`data` of the message."]
            data: ::sing_guest::exheap::ExVec<u8>,
            #[doc = "`count` of the message."]
            count: u32,
            #[doc = "The endpoint, in its next state."]
            next: Exp<states::AnsweringAfterWrite>,
        },
        #[doc = " The response is complete."]
        End {
            #[doc = "The endpoint, in its next state."]
            next: Exp<states::AnsweringAfterEnd>,
        },
        #[doc = "The peer has closed, and all its messages have been received."]
        ChannelClosed(::sing_guest::channel::Closed),
    }
    impl ::sing_guest::channel::Receiver for Exp<states::Answering> {
        type Event = ExpAnswering;
        #[inline]
        fn finish(self, mut incoming: ::sing_guest::channel::Incoming) -> ExpAnswering {
            match incoming.tag() {
                6 => ExpAnswering::Write { count: incoming.value(), data: incoming.block(), next: Exp { raw: self.raw, state: ::core::marker::PhantomData } },
                7 => ExpAnswering::End { next: Exp { raw: self.raw, state: ::core::marker::PhantomData } },
                other => ::sing_guest::channel::unexpected(other),
            }
        }
        #[inline]
        fn finish_closed(self, closed: ::sing_guest::channel::Closed) -> ExpAnswering { ExpAnswering::ChannelClosed(closed) }
    }
    impl Exp<states::Answering> {
        #[doc = "Blocks until the next message or closure."]
        #[inline]
        pub fn receive(self) -> ExpAnswering { ::sing_guest::channel::receive(self) }
        #[doc = "Blocks until the next message or closure, at most until `deadline`; then returns the endpoint."]
        #[inline]
        pub fn receive_by(self, deadline: ::sing_guest::Deadline) -> ::core::result::Result<ExpAnswering, Self> { ::sing_guest::channel::receive_by(self, deadline) }
        #[doc = "Takes the next message or closure if there is one; else returns the endpoint."]
        #[inline]
        pub fn try_receive(self) -> ::core::result::Result<ExpAnswering, Self> { ::sing_guest::channel::try_receive(self) }
    }
    impl Exp<states::ReadyAfterReadBody> {
        #[doc = " The first `count` bytes of the block, at least one."]
        #[inline]
        pub fn body(self, data: ::sing_guest::exheap::ExVec<u8>, count: u32) -> Exp<states::Ready> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().value(count).block(data).send(self.raw, 1), state: ::core::marker::PhantomData }
        }
        #[doc = " End of the content."]
        #[inline]
        pub fn end_of_body(self) -> Exp<states::Ready> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().send(self.raw, 2), state: ::core::marker::PhantomData }
        }
        #[doc = " The client disconnected, timed out, or sent too much or malformed content."]
        #[inline]
        pub fn body_failed(self) -> Exp<states::Ready> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().send(self.raw, 3), state: ::core::marker::PhantomData }
        }
    }
    impl Exp<states::ReadyAfterReply> {
        #[doc = " Accepted."]
        #[inline]
        pub fn done(self) -> Exp<states::Ended> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().send(self.raw, 8), state: ::core::marker::PhantomData }
        }
        #[doc = " The client disconnected, or the head is malformed: nothing more can be sent."]
        #[inline]
        pub fn failed(self) -> Exp<states::Ended> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().send(self.raw, 9), state: ::core::marker::PhantomData }
        }
    }
    impl Exp<states::ReadyAfterBegin> {
        #[doc = " Accepted."]
        #[inline]
        pub fn done(self) -> Exp<states::Answering> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().send(self.raw, 8), state: ::core::marker::PhantomData }
        }
        #[doc = " The client disconnected, or the head is malformed: nothing more can be sent."]
        #[inline]
        pub fn failed(self) -> Exp<states::Ended> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().send(self.raw, 9), state: ::core::marker::PhantomData }
        }
    }
    impl Exp<states::AnsweringAfterWrite> {
        #[doc = " Accepted."]
        #[inline]
        pub fn done(self) -> Exp<states::Answering> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().send(self.raw, 8), state: ::core::marker::PhantomData }
        }
        #[doc = " The client disconnected, or the head is malformed: nothing more can be sent."]
        #[inline]
        pub fn failed(self) -> Exp<states::Ended> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().send(self.raw, 9), state: ::core::marker::PhantomData }
        }
    }
    impl Exp<states::AnsweringAfterEnd> {
        #[doc = " Accepted."]
        #[inline]
        pub fn done(self) -> Exp<states::Ended> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().send(self.raw, 8), state: ::core::marker::PhantomData }
        }
        #[doc = " The client disconnected, or the head is malformed: nothing more can be sent."]
        #[inline]
        pub fn failed(self) -> Exp<states::Ended> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().send(self.raw, 9), state: ::core::marker::PhantomData }
        }
    }
}
#[doc = " A program that answers requests of a web server, as its child process (the extension of section 3.5 of \"Rethinking"]
#[doc = " the Software Stack\" and of the Cassini server of \"Sealing OS Processes\"). The application exports."]
#[allow(clippy::all, dead_code)]
pub mod web_application {
    #[doc = "Contract `WebApplication` as a type."]
    pub enum WebApplication {}
    ::sing_guest::contract! { WebApplication, "WebApplication", [156, 168, 79, 161, 139, 24, 112, 150, 61, 221, 182, 58, 245, 155, 180, 67, 85, 79, 254, 2, 39, 107, 49, 194, 169, 13, 164, 144, 195, 105, 137, 52] }
    #[doc = "The states of a conversation, as types."]
    pub mod states {
        #[doc = " The application reports that it is ready."]
        pub struct Start;
        impl ::sing_guest::channel::State for Start { type Contract = super::WebApplication; const NUMBER: u16 = 0; const NAME: &'static str = "START"; }
        #[doc = " The server may send requests."]
        pub struct Ready;
        impl ::sing_guest::channel::State for Ready { type Contract = super::WebApplication; const NUMBER: u16 = 1; const NAME: &'static str = "READY"; }
        #[doc = "State `READY after Serve`."]
        pub struct ReadyAfterServe;
        impl ::sing_guest::channel::State for ReadyAfterServe { type Contract = super::WebApplication; const NUMBER: u16 = 2; const NAME: &'static str = "READY after Serve"; }
    }
    #[doc = "The importing end of a channel of contract `WebApplication`, in state `S`. Sending and receiving take it and give it back in the next state; dropping it closes it, and the peer then receives `ChannelClosed`."]
    #[must_use = "dropping an endpoint closes the channel: keep it to go on with the conversation"]
    pub struct Imp<S> { raw: ::sing_guest::channel::RawEndpoint, state: ::core::marker::PhantomData<S> }
    impl<S: ::sing_guest::channel::State<Contract = WebApplication>> ::sing_guest::channel::TypedEndpoint for Imp<S> {
        type Contract = WebApplication;
        const IMPORTER: bool = true;
        const STATE: u16 = S::NUMBER;
        #[inline]
        fn raw(&self) -> &::sing_guest::channel::RawEndpoint { &self.raw }
        #[inline]
        fn into_raw(self) -> ::sing_guest::channel::RawEndpoint { self.raw }
        #[inline]
        fn from_raw(raw: ::sing_guest::channel::RawEndpoint) -> Self { Imp { raw, state: ::core::marker::PhantomData } }
    }
    #[doc = "The exporting end of a channel of contract `WebApplication`, in state `S`. Sending and receiving take it and give it back in the next state; dropping it closes it, and the peer then receives `ChannelClosed`."]
    #[must_use = "dropping an endpoint closes the channel: keep it to go on with the conversation"]
    pub struct Exp<S> { raw: ::sing_guest::channel::RawEndpoint, state: ::core::marker::PhantomData<S> }
    impl<S: ::sing_guest::channel::State<Contract = WebApplication>> ::sing_guest::channel::TypedEndpoint for Exp<S> {
        type Contract = WebApplication;
        const IMPORTER: bool = false;
        const STATE: u16 = S::NUMBER;
        #[inline]
        fn raw(&self) -> &::sing_guest::channel::RawEndpoint { &self.raw }
        #[inline]
        fn into_raw(self) -> ::sing_guest::channel::RawEndpoint { self.raw }
        #[inline]
        fn from_raw(raw: ::sing_guest::channel::RawEndpoint) -> Self { Exp { raw, state: ::core::marker::PhantomData } }
    }
    #[doc = "Creates a channel in state `START` and gives both its ends. Fails where the program's manifest does not list `WebApplication`, or a quota is used up."]
    pub fn new_channel() -> ::core::result::Result<(Imp<states::Start>, Exp<states::Start>), ::sing_guest::Status> {
        let (importer, exporter) = ::sing_guest::channel::create::<WebApplication>()?;
        ::core::result::Result::Ok((Imp { raw: importer, state: ::core::marker::PhantomData }, Exp { raw: exporter, state: ::core::marker::PhantomData }))
    }
    #[doc = "Binds a path of the namespace to a new channel in state `START`, and gives its importing end. Fails where the program's manifest does not list `WebApplication`, the program may not, or nobody serves `WebApplication` there."]
    pub fn open(path: &str) -> ::core::result::Result<Imp<states::Start>, ::sing_guest::Status> {
        let importer = ::sing_guest::channel::open::<WebApplication>(path)?;
        ::core::result::Result::Ok(Imp { raw: importer, state: ::core::marker::PhantomData })
    }
    #[doc = "The messages that the importer can receive in state `START`."]
    #[must_use = "a message was received: match on it to go on with the conversation"]
    pub enum ImpStart {
        #[doc = " The application is ready for requests."]
        Ready {
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
                0 => ImpStart::Ready { next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
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
        #[doc = " A request, on a channel of its own; many may be pending. `head` is as in HttpExchange."]
        #[inline]
        pub fn serve(self, head: ::sing_guest::exheap::ExVec<u8>, exchange: super::http_exchange::Imp<super::http_exchange::states::Ready>) -> Imp<states::ReadyAfterServe> {
            Imp { raw: ::sing_guest::channel::Outgoing::new().block(head).endpoint(exchange).send(self.raw, 1), state: ::core::marker::PhantomData }
        }
    }
    #[doc = "The messages that the importer can receive in state `READY after Serve`."]
    #[must_use = "a message was received: match on it to go on with the conversation"]
    pub enum ImpReadyAfterServe {
        #[doc = " It was accepted, and will be answered on its own channel."]
        Taken {
            #[doc = "The endpoint, in its next state."]
            next: Imp<states::Ready>,
        },
        #[doc = "The peer has closed, and all its messages have been received."]
        ChannelClosed(::sing_guest::channel::Closed),
    }
    impl ::sing_guest::channel::Receiver for Imp<states::ReadyAfterServe> {
        type Event = ImpReadyAfterServe;
        #[inline]
        fn finish(self, incoming: ::sing_guest::channel::Incoming) -> ImpReadyAfterServe {
            match incoming.tag() {
                2 => ImpReadyAfterServe::Taken { next: Imp { raw: self.raw, state: ::core::marker::PhantomData } },
                other => ::sing_guest::channel::unexpected(other),
            }
        }
        #[inline]
        fn finish_closed(self, closed: ::sing_guest::channel::Closed) -> ImpReadyAfterServe { ImpReadyAfterServe::ChannelClosed(closed) }
    }
    impl Imp<states::ReadyAfterServe> {
        #[doc = "Blocks until the next message or closure."]
        #[inline]
        pub fn receive(self) -> ImpReadyAfterServe { ::sing_guest::channel::receive(self) }
        #[doc = "Blocks until the next message or closure, at most until `deadline`; then returns the endpoint."]
        #[inline]
        pub fn receive_by(self, deadline: ::sing_guest::Deadline) -> ::core::result::Result<ImpReadyAfterServe, Self> { ::sing_guest::channel::receive_by(self, deadline) }
        #[doc = "Takes the next message or closure if there is one; else returns the endpoint."]
        #[inline]
        pub fn try_receive(self) -> ::core::result::Result<ImpReadyAfterServe, Self> { ::sing_guest::channel::try_receive(self) }
    }
    impl Exp<states::Start> {
        #[doc = " The application is ready for requests."]
        #[inline]
        pub fn ready(self) -> Exp<states::Ready> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().send(self.raw, 0), state: ::core::marker::PhantomData }
        }
    }
    #[doc = "The messages that the exporter can receive in state `READY`."]
    #[must_use = "a message was received: match on it to go on with the conversation"]
    pub enum ExpReady {
        #[doc = " A request, on a channel of its own; many may be pending. `head` is as in HttpExchange."]
        Serve {
            #[doc = "`head` of the message."]
            head: ::sing_guest::exheap::ExVec<u8>,
            #[doc = "`exchange` of the message."]
            exchange: super::http_exchange::Imp<super::http_exchange::states::Ready>,
            #[doc = "The endpoint, in its next state."]
            next: Exp<states::ReadyAfterServe>,
        },
        #[doc = "The peer has closed, and all its messages have been received."]
        ChannelClosed(::sing_guest::channel::Closed),
    }
    impl ::sing_guest::channel::Receiver for Exp<states::Ready> {
        type Event = ExpReady;
        #[inline]
        fn finish(self, mut incoming: ::sing_guest::channel::Incoming) -> ExpReady {
            match incoming.tag() {
                1 => ExpReady::Serve { head: incoming.block(), exchange: incoming.endpoint(), next: Exp { raw: self.raw, state: ::core::marker::PhantomData } },
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
    impl Exp<states::ReadyAfterServe> {
        #[doc = " It was accepted, and will be answered on its own channel."]
        #[inline]
        pub fn taken(self) -> Exp<states::Ready> {
            Exp { raw: ::sing_guest::channel::Outgoing::new().send(self.raw, 2), state: ::core::marker::PhantomData }
        }
    }
}

//! Plain records that the diagnostics functions write to the caller's block, and enums for kinds and states in them.

numbered! {
    /// State of a SIP.
    ProcessState {
        /// Created, not started.
        Created = 0, "created";
        /// Running.
        Running = 1, "running";
        /// Being torn down.
        Stopping = 2, "stopping";
        /// Ended; its parent has not waited for it.
        Ended = 3, "ended";
    }
}

numbered! {
    /// State of a thread.
    ThreadState {
        /// On a processor.
        Running = 0, "running";
        /// Runnable.
        Runnable = 1, "runnable";
        /// Blocked.
        Blocked = 2, "blocked";
        /// Ended, not joined.
        Ended = 3, "ended";
    }
}

numbered! {
    /// Owner of a block.
    BlockState {
        /// A SIP.
        Owned = 0, "owned";
        /// A message queue.
        InFlight = 1, "in flight";
        /// Another block, to which it is attached.
        Attached = 2, "attached";
        /// An endpoint, where it waits for its lender.
        Home = 3, "home";
    }
}

numbered! {
    /// Kinds of devices, for `device_open`.
    DeviceKind {
        /// A terminal or a pair of byte streams.
        Console = 0, "console";
        /// A disk with 512-byte sectors.
        Disk = 1, "disk";
        /// Registers and interrupts.
        Hardware = 2, "hardware";
        /// The host's sockets; see [`sockets`](crate::sockets).
        Sockets = 3, "sockets";
        /// A link of Ethernet packets; see [`packets`](crate::packets).
        Packets = 4, "packets";
        /// Random bytes. The answer of a read is their number, which may be smaller than requested.
        Random = 5, "random";
        /// A host folder. A write sends the 9P2000.L request at the start of the block, replaced by the reply; a read
        /// returns the folder's name.
        Folder = 6, "folder";
    }
}

numbered! {
    /// Operations of `device_submit`.
    DeviceOperation {
        /// Read into the block.
        Read = 0, "read";
        /// Write from the block.
        Write = 1, "write";
        /// Flush: all completed writes become durable.
        Flush = 2, "flush";
    }
}

numbered! {
    /// Kinds of [`TraceRecord`]s.
    TraceKind {
        /// SIP created; `a` parent.
        Created = 0, "created";
        /// SIP started.
        Started = 1, "started";
        /// Message sent; `a` endpoint handle, `b` tag.
        Sent = 2, "sent";
        /// Message received; `a` endpoint handle, `b` tag.
        Received = 3, "received";
        /// Channel created; `a` importer's handle, `b` exporter's.
        ChannelCreated = 4, "channel created";
        /// Endpoint closed; `a` its handle, `b` the [`HeldEndpoint`] that it was.
        EndpointClosed = 5, "endpoint closed";
        /// Thread created; `a` its handle.
        ThreadCreated = 6, "thread created";
        /// Thread ended; `a` its handle.
        ThreadEnded = 7, "thread ended";
        /// Child created; `a` its process id.
        ChildCreated = 8, "child created";
        /// Child stopped; `a` its process id.
        ChildStopped = 9, "child stopped";
        /// Pages allocated; `a` address, `b` number of pages.
        MemoryAllocated = 10, "memory allocated";
        /// Pages freed; `a` address, `b` number of pages.
        MemoryFreed = 11, "memory freed";
        /// Quota exhausted; `a` its index in the manifest's quota.
        QuotaExceeded = 12, "quota exceeded";
        /// Program-defined event with `a` and `b`.
        Note = 13, "note";
        /// SIP ended; `a` epitaph kind, `b` its value.
        Ended = 14, "ended";
        /// Lent block returned; `a` block handle.
        CameHome = 15, "block came home";
        /// Begins what is kept of a dead SIP beside its events; `a` and `b` are the first 16 bytes of the identity of
        /// its package, little-endian.
        CoreBegins = 16, "core begins";
        /// Instruction at which it faulted; `a` offset in its image.
        FaultedAt = 17, "faulted at";
        /// Code address on its stack, a return address or one that is left from an earlier call; `a` offset in its
        /// image, `b` bytes above the stack pointer. From the innermost to the outermost.
        CalledFrom = 18, "called from";
        /// Endpoint that it held; `a` its handle, `b` a [`HeldEndpoint`].
        HeldEndpoint = 19, "held endpoint";
        /// Owner of the other end of the endpoint before; `a` its process id, or 0, `b` messages queued for the dead SIP.
        HeldPeer = 20, "peer of held endpoint";
        /// Block that it held; `a` its type tag, `b` its bytes.
        HeldBlock = 21, "held block";
        /// Block that was lent to it; `a` its type tag, `b` its bytes.
        HeldLoan = 22, "held loan";
        /// Ends what is kept of a dead SIP; `a` number of all endpoints that it held, `b` of all blocks, those without a
        /// record included.
        CoreEnds = 23, "core ends";
    }
}

/// Contract and state of an endpoint, as one word of a [`TraceRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldEndpoint {
    /// Index of the contract, as `contract_automaton` takes it.
    pub contract: u32,
    /// State of this end.
    pub state: u16,
    /// Whether it is the importing end.
    pub is_importer: bool,
}

impl HeldEndpoint {
    const IMPORTER: u64 = 1 << 16;
    const CONTRACT_SHIFT: u32 = 32;

    /// The word.
    pub const fn word(self) -> u64 {
        let side = if self.is_importer { HeldEndpoint::IMPORTER } else { 0 };
        (self.contract as u64) << HeldEndpoint::CONTRACT_SHIFT | side | self.state as u64
    }

    /// The endpoint of a word.
    pub const fn from_word(word: u64) -> HeldEndpoint {
        HeldEndpoint {
            contract: (word >> HeldEndpoint::CONTRACT_SHIFT) as u32,
            state: word as u16,
            is_importer: word & HeldEndpoint::IMPORTER != 0,
        }
    }
}

/// Maximum length of a name in a record, in bytes; names are truncated, and padded with zero bytes.
pub const NAME_BYTES: usize = 32;

/// A SIP.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessRecord {
    /// Process id, counted up from 1, never reused.
    pub id: u64,
    /// Parent's process id; 0 for the first SIP.
    pub parent: u64,
    /// A [`ProcessState`].
    pub state: u64,
    /// Live threads.
    pub threads: u64,
    /// Bytes of paged memory, without stacks and exchange-heap blocks.
    pub memory_bytes: u64,
    /// Exchange-heap blocks owned.
    pub blocks: u64,
    /// Bytes of these blocks.
    pub block_bytes: u64,
    /// Endpoints owned.
    pub endpoints: u64,
    /// Handles in use.
    pub handles: u64,
    /// Children not released.
    pub children: u64,
    /// Processor cycles used.
    pub cycles: u64,
    /// Messages sent.
    pub messages_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Start time: nanoseconds of `time_monotonic`.
    pub started_ns: u64,
    /// Kernel memory charged to it, in bytes: records, queues, values from its parent.
    pub kernel_bytes: u64,
    /// Number of its hardware domain, from 1; 0 for the kernel's own. Those with one number share it.
    pub domain: u64,
    /// Program name.
    pub name: [u8; NAME_BYTES],
}

/// A thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadRecord {
    /// Process id of its SIP.
    pub process: u64,
    /// Its handle.
    pub thread: u64,
    /// A [`ThreadState`].
    pub state: u64,
    /// Processor cycles used.
    pub cycles: u64,
}

/// A channel.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ChannelRecord {
    /// Channel number, unique among live channels.
    pub channel: u64,
    /// Process id of the importing end's owner; 0 if it is closed or in a message.
    pub importer: u64,
    /// Process id of the exporting end's owner; 0 if it is closed or in a message.
    pub exporter: u64,
    /// State number at the importing end.
    pub importer_state: u64,
    /// State number at the exporting end.
    pub exporter_state: u64,
    /// Messages queued for the importer.
    pub waiting_for_importer: u64,
    /// Messages queued for the exporter.
    pub waiting_for_exporter: u64,
    /// Contract name.
    pub contract: [u8; NAME_BYTES],
    /// State name at the importing end.
    pub importer_state_name: [u8; NAME_BYTES],
    /// State name at the exporting end.
    pub exporter_state_name: [u8; NAME_BYTES],
}

/// A system-wide counter.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CounterRecord {
    /// Current value.
    pub value: u64,
    /// Name.
    pub name: [u8; NAME_BYTES],
}

/// An event of a SIP's trace ring.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceRecord {
    /// Sequence number of the event in its SIP, from 0; gaps are overwritten events.
    pub sequence: u64,
    /// A [`TraceKind`].
    pub kind: u64,
    /// See the kind.
    pub a: u64,
    /// See the kind.
    pub b: u64,
    /// Time in nanoseconds of `time_monotonic`, as of the processor's last tick: at most a quantum early.
    pub time_ns: u64,
}

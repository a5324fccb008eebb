//! Plain records that the diagnostics functions fill a caller's block with, and numbers that name
//! kinds and states in them.

numbered! {
    /// Where a SIP is in its life.
    ProcessState {
        /// Created; not started.
        Created = 0, "created";
        /// Started; has threads.
        Running = 1, "running";
        /// Being taken down.
        Stopping = 2, "stopping";
        /// Gone; its parent has not yet asked how.
        Ended = 3, "ended";
    }
}

numbered! {
    /// What a thread does.
    ThreadState {
        /// On a processor.
        Running = 0, "running";
        /// Could run.
        Runnable = 1, "runnable";
        /// Waits.
        Blocked = 2, "blocked";
        /// Ended; not yet joined.
        Ended = 3, "ended";
    }
}

numbered! {
    /// Who has a block.
    BlockState {
        /// A SIP.
        Owned = 0, "owned";
        /// A channel's queue.
        InFlight = 1, "in flight";
        /// Another block.
        Attached = 2, "attached";
        /// It waits at an endpoint for its lender.
        Home = 3, "home";
    }
}

numbered! {
    /// Kinds of hardware that `device_open` gives.
    DeviceKind {
        /// A terminal or a pair of byte streams.
        Console = 0, "console";
        /// Blocks of 512 bytes by number.
        Disk = 1, "disk";
        /// Registers and interrupts; what they mean is the driver's business.
        Hardware = 2, "hardware";
        /// The host's own sockets; see [`sockets`](crate::sockets).
        Sockets = 3, "sockets";
        /// A link of Ethernet packets; see [`packets`](crate::packets).
        Packets = 4, "packets";
        /// Random bytes. A read gives those that it counts, from the first on; there may be fewer than were asked for.
        Random = 5, "random";
        /// A folder of the host. A write sends the 9P2000.L request at the start of the block, whose answer takes its
        /// place; a read gives the folder's name.
        Folder = 6, "folder";
    }
}

numbered! {
    /// What `device_submit` asks of a device.
    DeviceOperation {
        /// Bytes from the device into the block.
        Read = 0, "read";
        /// Bytes from the block to the device.
        Write = 1, "write";
        /// Everything written is to be on the medium when this completes.
        Flush = 2, "flush";
    }
}

numbered! {
    /// What a [`TraceRecord`] tells.
    TraceKind {
        /// The SIP was created; `a` its parent.
        Created = 0, "created";
        /// It started.
        Started = 1, "started";
        /// A message left; `a` endpoint handle, `b` tag.
        Sent = 2, "sent";
        /// A message came; `a` endpoint handle, `b` tag.
        Received = 3, "received";
        /// A channel was created; `a` importer's handle, `b` exporter's.
        ChannelCreated = 4, "channel created";
        /// An endpoint was closed; `a` its handle.
        EndpointClosed = 5, "endpoint closed";
        /// A thread was created; `a` its handle.
        ThreadCreated = 6, "thread created";
        /// A thread ended; `a` its handle.
        ThreadEnded = 7, "thread ended";
        /// A child was created; `a` its process id.
        ChildCreated = 8, "child created";
        /// A child was stopped; `a` its process id.
        ChildStopped = 9, "child stopped";
        /// Pages were allocated; `a` address, `b` pages.
        MemoryAllocated = 10, "memory allocated";
        /// Pages were freed; `a` address, `b` pages.
        MemoryFreed = 11, "memory freed";
        /// A quota was used up; `a` which (index in the manifest's quota).
        QuotaExceeded = 12, "quota exceeded";
        /// The SIP's own event: `a` and `b` as it gave them.
        Note = 13, "note";
        /// The SIP ended; `a` the epitaph kind, `b` its value.
        Ended = 14, "ended";
        /// A lent block came home; `a` block handle.
        CameHome = 15, "block came home";
    }
}

/// Longest name in a record, in bytes; the rest is cut. Names are padded with zero bytes.
pub const NAME_BYTES: usize = 32;

/// One running SIP.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessRecord {
    /// Process id: unique while the system runs, counted up from 1.
    pub id: u64,
    /// Parent's process id; 0 for the first SIP.
    pub parent: u64,
    /// A [`ProcessState`].
    pub state: u64,
    /// Threads that have not ended.
    pub threads: u64,
    /// Bytes of paged memory; stacks and exchange-heap blocks are not among them.
    pub memory_bytes: u64,
    /// Exchange-heap blocks owned.
    pub blocks: u64,
    /// Bytes in those blocks.
    pub block_bytes: u64,
    /// Endpoints owned.
    pub endpoints: u64,
    /// All handles in use.
    pub handles: u64,
    /// Children that have not been released.
    pub children: u64,
    /// Processor cycles used.
    pub cycles: u64,
    /// Messages sent.
    pub messages_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// When it started: nanoseconds of `time_monotonic`.
    pub started_ns: u64,
    /// Bytes that the kernel keeps for it: records, queues, what its parent gave it.
    pub kernel_bytes: u64,
    /// Name of the program.
    pub name: [u8; NAME_BYTES],
}

/// One thread.
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

/// One channel.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ChannelRecord {
    /// Number of the channel, unique among those alive.
    pub channel: u64,
    /// Process id that owns the importing end; 0 when it is closed or in a message.
    pub importer: u64,
    /// Process id that owns the exporting end; 0 when it is closed or in a message.
    pub exporter: u64,
    /// State number as the importer sees it.
    pub importer_state: u64,
    /// State number as the exporter sees it.
    pub exporter_state: u64,
    /// Messages waiting for the importer.
    pub waiting_for_importer: u64,
    /// Messages waiting for the exporter.
    pub waiting_for_exporter: u64,
    /// Name of the contract.
    pub contract: [u8; NAME_BYTES],
    /// Name of the state as the importer sees it.
    pub importer_state_name: [u8; NAME_BYTES],
    /// Name of the state as the exporter sees it.
    pub exporter_state_name: [u8; NAME_BYTES],
}

/// One counter of the whole system.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CounterRecord {
    /// Its value now.
    pub value: u64,
    /// Its name.
    pub name: [u8; NAME_BYTES],
}

/// One event of a SIP's trace ring.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceRecord {
    /// Number of the event in its SIP, from 0; gaps mean that older ones were overwritten.
    pub sequence: u64,
    /// A [`TraceKind`].
    pub kind: u64,
    /// See the kind.
    pub a: u64,
    /// See the kind.
    pub b: u64,
    /// When, in nanoseconds of `time_monotonic`: the time of the processor's last tick, which is at most a quantum earlier.
    pub time_ns: u64,
}

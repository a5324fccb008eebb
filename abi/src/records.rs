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

/// Value of `device_submit`: the device has the block, until `device_complete` returns it.
pub const SUBMIT_QUEUED: u64 = 0;
/// Value of `device_submit`: all bytes were transferred at once and none was written to the block, which stays the
/// caller's. Every larger value is the handle of a block.
pub const SUBMIT_DONE: u64 = 1;

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
        /// In the stream alone: a thread waits or has ended, and leaves its processor.
        Blocked = 24, "blocked";
        /// In the stream alone: a thread leaves its processor to others, but could run on.
        GaveWay = 25, "gave way";
        /// In the stream alone: a thread is back on a processor.
        Resumed = 26, "resumed";
        /// In the stream alone: a device has a block; `a` block handle, `b` a [`DeviceOperation`] or [`DMA`], `c` bytes.
        RequestBegun = 27, "request begun";
        /// In the stream alone: the driver has the block back; `a` block handle.
        RequestDone = 28, "request done";
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

/// `b` of a [`TraceKind::RequestBegun`] for a block that a device reaches by itself.
pub const DMA: u64 = 3;

/// An event of the trace stream.
///
/// Its `a` and `b` are those of the ring, except for a message: a message sent and the same message received have the
/// handle of the receiving endpoint in `a` and its number there in `b`; `c` is [`message_of`](StreamRecord::message_of).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamRecord {
    /// Time in nanoseconds of `time_monotonic`.
    pub time_ns: u64,
    /// Process id of the SIP that the event is of.
    pub process: u64,
    /// Handle of the thread that ran, perhaps another SIP's; 0 for none.
    pub thread: u64,
    /// Process id of that thread's SIP; 0 for none.
    pub runner: u64,
    /// A [`TraceKind`] in the low 32 bits, the processor in the high.
    pub kind: u64,
    /// See the kind.
    pub a: u64,
    /// See the kind.
    pub b: u64,
    /// See the kind.
    pub c: u64,
}

impl StreamRecord {
    /// Packs the index of a contract (as in `contract_automaton`) and a message's tag.
    pub fn message_of(contract: u32, tag: u16) -> u64 {
        u64::from(contract) << 16 | u64::from(tag)
    }

    /// The index of the contract and the tag of a message sent or received.
    pub fn message(&self) -> (usize, usize) {
        ((self.c >> 16) as usize, (self.c & 0xffff) as usize)
    }

    /// The kind, if it is known.
    pub fn event(&self) -> Option<TraceKind> {
        TraceKind::from_number(self.kind & 0xffff_ffff)
    }

    /// Number of the processor.
    pub fn processor(&self) -> u64 {
        self.kind >> 32
    }
}

/// Buckets of a [`LatencyRecord`].
pub const LATENCY_BUCKETS: usize = 28;
/// Bucket 0 counts latencies below 2 to this power, in nanoseconds; each further bucket doubles its bound.
pub const LATENCY_FIRST_BITS: u32 = 8;

/// Latencies of the sampled messages of one contract in one direction, from send to receive.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyRecord {
    /// Whether the exporter receives; otherwise the importer.
    pub to_exporter: u64,
    /// Sum of all latencies in nanoseconds.
    pub sum_ns: u64,
    /// Number of latencies that are below the bucket's bound and not below that of the bucket before; the last has no
    /// bound.
    pub buckets: [u64; LATENCY_BUCKETS],
    /// Contract name.
    pub contract: [u8; NAME_BYTES],
}

impl LatencyRecord {
    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Bound of a bucket in nanoseconds; `None` for the last.
    pub fn bound_ns(bucket: usize) -> Option<u64> {
        (bucket + 1 < LATENCY_BUCKETS).then(|| 1 << (LATENCY_FIRST_BITS + bucket as u32))
    }

    /// Bound in nanoseconds of the bucket that has the latency at this thousandth of all, which is at most twice that
    /// latency. `None` if there is none, or if the latency has no bound.
    pub fn quantile_ns(&self, permille: u64) -> Option<u64> {
        let wanted = (u128::from(self.count()) * u128::from(permille)).div_ceil(1000).max(1);
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += u128::from(*count);
            seen >= wanted
        })?;
        LatencyRecord::bound_ns(bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_bound_of_its_bucket() {
        let mut record = LatencyRecord::default();
        assert_eq!(record.quantile_ns(500), None);
        record.buckets[0] = 98;
        record.buckets[3] = 1;
        record.buckets[LATENCY_BUCKETS - 1] = 1;
        assert_eq!(record.count(), 100);
        assert_eq!(record.quantile_ns(500), Some(256));
        assert_eq!(record.quantile_ns(990), Some(2048));
        assert_eq!(record.quantile_ns(1000), None);
    }

    #[test]
    fn an_event_keeps_its_kind_processor_and_message() {
        let record = StreamRecord {
            kind: 5 << 32 | TraceKind::Sent as u64,
            c: StreamRecord::message_of(70_000, 65_535),
            ..StreamRecord::default()
        };
        assert_eq!((record.event(), record.processor()), (Some(TraceKind::Sent), 5));
        assert_eq!(record.message(), (70_000, 65_535));
    }
}

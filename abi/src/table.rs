//! The table of functions: the source of numbers, signatures and documentation.
//!
//! [`for_each_function`](crate::for_each_function) passes the whole table to a macro, from which the kernel makes its
//! dispatch and the runtime its stubs. What may never become a function: anything that passes a reference into a SIP or
//! the kernel, changes another SIP's state (except create-child and stop-child), or makes a page executable.

use alloc::string::String;
use core::fmt::Write;

use crate::AbiReturn;

/// Calls `$callback! { ... }` with all groups and functions of ABI v1.
///
/// The shape is `group "Name" { #[doc] fn name(argument, ...) -> "value"; }`. Every argument is a `u64`: a number, or a
/// claim (handle, address, index) that the kernel checks.
#[macro_export]
macro_rules! for_each_function {
    ($callback:ident) => {
        $callback! {
            group "Channels" {
                #[doc = "Creates a channel of the contract with this name_tag, which must be in the caller's manifest. QuotaExceeded if the caller's kernel memory is exhausted: see `limits::KERNEL_BYTES`. The importer's handle is the value, the exporter's is message word 0. Both belong to the caller."]
                fn channel_create(contract) -> "importer's endpoint";
                #[doc = "Sends the message in the buffer: scalars, then three words per block (handle, address, bytes; only the handle counts), then one word per endpoint. `message` is the message_word of its tag and shape, so that a scalar cannot be mistaken for a block. Blocks and endpoints leave the caller. Never blocks, allocates or fails because of the peer. A message or shape that the contract does not allow ends the caller."]
                fn channel_send(endpoint, message) -> "0";
                #[doc = "Waits until `deadline` (ns of time_monotonic) for the next message, which is put in the buffer as it was sent, with addresses and lengths of the blocks filled in. Closed: message word 0 is the number of lent blocks that returned, followed by three words each; call again while it is not 0."]
                fn channel_receive(endpoint, deadline) -> "message_word of its tag and shape";
                #[doc = "Like channel_receive, but non-blocking."]
                fn channel_try_receive(endpoint) -> "message_word of its tag and shape";
                #[doc = "Like channel_try_receive; on WouldBlock the endpoint has been added to the set with the key, as by wait_set_add."]
                fn channel_receive_or_add(endpoint, set, key) -> "message_word of its tag and shape";
                #[doc = "Closes the caller's end. The peer receives what is queued, then Closed. Queued messages for the caller are dropped: their blocks are freed or returned, their endpoints closed."]
                fn channel_close(endpoint) -> "0";
                #[doc = "Describes an endpoint: message word 0 the name_tag of its contract, word 1 whether it is the importer, word 2 its state, word 3 the index of the contract in the caller's manifest or u64::MAX."]
                fn channel_describe(endpoint) -> "0";
                #[doc = "Creates a wait set: it reports endpoints with messages, in O(1) each."]
                fn wait_set_create() -> "wait set";
                #[doc = "Adds an endpoint with a key. One that is ready is reported at once. An endpoint is in at most one set."]
                fn wait_set_add(set, endpoint, key) -> "0";
                #[doc = "Removes an endpoint from its set."]
                fn wait_set_remove(set, endpoint) -> "0";
                #[doc = "Waits until `deadline` for endpoints of the set that have a message or are closed, and removes them from the set, at most `max` (1 to 16) at once. Words from 0: their keys, in order of arrival; then, if `clock` is 1 and not 0, time_monotonic after the wait. The next channel_try_receive on each does not return WouldBlock."]
                fn wait_set_wait(set, deadline, max, clock) -> "number of words";
                #[doc = "Makes one wait_set_wait on the set report the key u64::MAX, after those of endpoints, to report anything but an endpoint. Alerts before that are merged."]
                fn wait_set_alert(set) -> "0";
                #[doc = "Closes a wait set; the endpoints in it stay open."]
                fn wait_set_close(set) -> "0";
            }
            group "Child processes" {
                #[doc = "Creates a SIP from the manifest of the installed program whose name is the first `length` bytes of the buffer. It does not run yet. Its principal is the program's own, or, if the caller was invoked, that of `process_invoke` without a role. Refused: the buffer holds the reason as text, word 63 its length."]
                fn process_create(length) -> "child";
                #[doc = "Sets a created child's principal to that of a program invoked by the caller: the caller's principal, joined by ` + ` to the child's. If `role_length` is not 0, that many bytes of the buffer are the caller's role, `[a-z][a-z0-9-]*`, which is appended with `@` to the caller's last link and needs the `assign-role` permission. WrongState for a second call, or if the child has endpoints already; TooLarge if the principal would have more than 8 links or 512 bytes."]
                fn process_invoke(child, role_length) -> "0";
                #[doc = "Appends the first `length` bytes of the buffer to the value of a created child's parameter, by its index in the manifest. Values of a repeated parameter are terminated by zero bytes. TooLarge if the value would exceed 64 KiB, or all values 256 KiB."]
                fn process_give_parameter(child, index, length) -> "0";
                #[doc = "Moves an endpoint to a created child, for the endpoint slot at this index of its manifest. Contract, side and state must be as the slot declares."]
                fn process_give_endpoint(child, slot, endpoint) -> "0";
                #[doc = "Assigns the machine's device whose name is the first `length` bytes of the buffer to a created child, for the device at this index of its manifest. The default is the device with the manifest's own name. Needs the `system-manifest` permission."]
                fn process_give_device(child, index, length) -> "0";
                #[doc = "Starts a created child."]
                fn process_start(child) -> "0";
                #[doc = "Ends a child and its children as soon as their threads have left the kernel. `reason` is a StopReason. Does not wait."]
                fn process_stop(child, reason) -> "0";
                #[doc = "Waits for a child's end. The value is its EpitaphKind; message word 0 the exit status; word 1 the length of the epitaph's text, which begins at word 2 and is truncated to fit."]
                fn process_wait(child, deadline) -> "epitaph kind";
                #[doc = "Releases the child's handle. A running child keeps running."]
                fn process_release(child) -> "0";
                #[doc = "The child's process id, as in diagnostics."]
                fn process_id_of(child) -> "process id";
                #[doc = "Ends the caller's SIP with an exit status."]
                fn process_exit(code) -> "does not return";
                #[doc = "Ends the caller's SIP with a panic; the first `length` bytes of the buffer are the epitaph's message."]
                fn process_panic(length) -> "does not return";
                #[doc = "The caller's own process id."]
                fn process_id() -> "process id";
                #[doc = "Ends the SIP with this process id. Needs the manifest's `stop-any` permission. `reason` is a StopReason."]
                fn process_stop_any(process_id, reason) -> "0";
            }
            group "Configuration" {
                #[doc = "Length of the value of the parameter at this index, or u64::MAX if the parent gave none."]
                fn parameter_length(index) -> "bytes";
                #[doc = "Copies the value from `offset` on into the buffer, at most 512 bytes."]
                fn parameter_read(index, offset) -> "bytes copied";
                #[doc = "Takes the parent's endpoint for the slot at this index of the manifest; NotFound if there is none, or it was taken."]
                fn endpoint_take(slot) -> "endpoint";
                #[doc = "A new block with the system manifest, as in the boot image. Needs the `system-manifest` permission."]
                fn system_manifest() -> "block; word 0 its address, word 1 its bytes";
                #[doc = "The number of installed programs."]
                fn program_count() -> "count";
                #[doc = "A new block with the manifest of the installed program at this index, in binary form; the 32 bytes of its package's signing key begin at word 2."]
                fn program_manifest(index) -> "block; word 0 its address, word 1 its bytes";
                #[doc = "Installs the program whose package is the first `bytes` bytes of the block, until the machine restarts, after the checks, and with the trust, of the system image. A program of that name is replaced, for processes created later, if the new one is of the same publisher and has a higher version. Refused: the buffer holds the reason as text, word 63 its length. Needs the `install` permission."]
                fn program_install(block, bytes) -> "0 if it is new, 1 if it replaced another, 2 if it was installed already";
                #[doc = "A dry run of program_install, with the same results. Needs the `install` permission."]
                fn program_check(block, bytes) -> "that of program_install";
                #[doc = "Removes the installed program whose name is the first `length` bytes of the buffer: no more processes can be created from it; running ones continue. Not the root program. Needs the `install` permission."]
                fn program_uninstall(length) -> "0";
                #[doc = "The number of installations and removals of programs since boot. It is incremented after each change: a list of programs read after this number is at least as new."]
                fn program_changes() -> "count";
                #[doc = "Writes a SHA-256 to the buffer: of the kernel's own image (`which` is 0), or of the head of the system image (1), which covers all of it. NotFound if the machine has none."]
                fn measurement(which) -> "32";
                #[doc = "A new block with the image file of the installed template of WebAssembly programs at this index, to which modules are added. NotFound for any other program. Needs the `install` permission."]
                fn template_image(index) -> "block; word 0 its address, word 1 its bytes";
            }
            group "Debugging and diagnostics" {
                #[doc = "The processor's cycle counter."]
                fn cycles() -> "cycles";
                #[doc = "Writes the first `length` bytes of the buffer to the SIP's debug sink, or, without one, to the machine's debug output, after the SIP's name. Never blocks: a full sink counts the lost bytes."]
                fn debug_write(length) -> "0";
                #[doc = "Adds a program-defined event with two words to the caller's trace ring."]
                fn trace_note(a, b) -> "0";
                #[doc = "Adds a line with the first `length` bytes of the buffer to the audit ring: what the caller refused, in the format of `abi::audit`, truncated to 256 bytes. Needs the `audit` permission."]
                fn audit_note(length) -> "0";
                #[doc = "Fills the block with a ProcessRecord for each SIP. The value counts all of them, including those that did not fit. Needs the `diagnostics` permission, like all that follow in this group."]
                fn list_processes(block) -> "count";
                #[doc = "Fills the block with a ThreadRecord for each thread."]
                fn list_threads(block) -> "count";
                #[doc = "Fills the block with a ChannelRecord for each channel."]
                fn list_channels(block) -> "count";
                #[doc = "Fills the block with a CounterRecord for each counter."]
                fn list_counters(block) -> "count";
                #[doc = "Fills the block with the TraceRecords of the SIP with this process id, oldest first; those of the last 64 ended SIPs are kept. For a SIP that died otherwise than by exit, records of its core follow, from CoreBegins to CoreEnds, while that is kept."]
                fn list_trace(process_id, block) -> "count";
                #[doc = "Fills the block with a LatencyRecord for each contract and direction that a sampled message has passed."]
                fn list_latencies(block) -> "count";
                #[doc = "Starts the trace stream: events of all SIPs but the caller go into buffers of at least `events` in total (at most `limits::STREAM_EVENTS`), charged to the caller's kernel memory, until it calls this with 0 or ends. Busy while another SIP has the stream. What does not fit is lost and counted; nothing ever waits for the reader."]
                fn stream_start(events) -> "0";
                #[doc = "Moves events of the caller's stream, as many as there are and fit, to the block, as StreamRecords: those of one processor in order. Word 0 is the number of events lost since the call before. WrongState without a stream."]
                fn stream_read(block) -> "count";
                #[doc = "A new block with text: a line for each of the last 256 ended SIPs, oldest first: process id, nanoseconds of time_monotonic, name, epitaph."]
                fn epitaphs() -> "block; word 0 its address, word 1 its bytes";
                #[doc = "A new block with text: the lines of the audit ring from number `from` on, oldest first: milliseconds since boot, the recording program, what was refused. The ring keeps 1,024; when it is full, the principal with the most lines loses its oldest. Word 2 is the number of the next line."]
                fn audit_read(from) -> "block; word 0 its address, word 1 its bytes";
                #[doc = "A new block with the automaton of a contract, by its index among the contracts of all installed programs; NotFound past the end."]
                fn contract_automaton(index) -> "block; word 0 its address, word 1 its bytes";
            }
            group "Exchange heap" {
                #[doc = "Allocates a zeroed block for elements of the type with this tag, aligned to 64 bytes; 0 bytes are allowed. The value is its handle; message word 0 its address."]
                fn heap_allocate(bytes, type_tag) -> "block";
                #[doc = "Frees a block and those attached to it. A block on loan returns to its owner instead."]
                fn heap_free(block) -> "0";
                #[doc = "Splits a block at a byte offset (a multiple of 64) in two: the block keeps the part before; the value is a new block with the rest. The memory is freed with the last of them; each is charged for all of it."]
                fn heap_split(block, offset) -> "block";
                #[doc = "Describes a block: word 0 address, word 1 bytes, word 2 type tag, word 3 whether it is lent to the caller."]
                fn heap_describe(block) -> "0";
                #[doc = "Attaches `child` to `parent`: it moves and is freed with it."]
                fn heap_attach(parent, child) -> "position among the parent's blocks";
                #[doc = "Detaches the block last attached to `parent`: word 0 its address, word 1 its bytes, word 2 its type tag."]
                fn heap_detach(parent) -> "block";
            }
            group "Hardware access" {
                #[doc = "Opens the device at this index of the manifest's device list. A device is open in one SIP at a time."]
                fn device_open(index) -> "device";
                #[doc = "Describes a device: word 0 a DeviceKind, word 1 its size in bytes (disk), word 2 flags: bit 0 read-only, bit 1 interactive terminal, word 3 columns, word 4 rows (of packets, word 1 the hardware address, word 2 the offloads, word 3 the MTU), word 5 the number of register ranges, word 6 the number of interrupts."]
                fn device_describe(device) -> "0";
                #[doc = "Submits an operation (a DeviceOperation) at a byte offset with `bytes` bytes of the block, from byte `first` of it on. Sockets and packets define the offset themselves. 1: all bytes were transferred at once and none was written to the block, which stays the caller's. A block: it is done at once too, with the words of device_complete. 0: the block belongs to the device until device_complete returns it."]
                fn device_submit(device, operation, offset, block, first, bytes) -> "block; 0 if it is queued, 1 if done";
                #[doc = "Waits until `deadline` for a finished operation: the value is the block's handle, word 0 its address, word 1 its length, word 2 the bytes transferred, word 3 a Status, word 4 whether it is on loan (1) or the caller's own (0)."]
                fn device_complete(device, deadline) -> "block";
                #[doc = "Closes a device; operations that have not begun are cancelled."]
                fn device_close(device) -> "0";
                #[doc = "Describes a register range: its bytes; word 0 whether it is memory (1) or I/O ports (0), word 1 the first port or physical address."]
                fn range_describe(device, range) -> "bytes";
                #[doc = "Reads a register: `width` is 1, 2, 4 or 8 bytes (8: memory only), `offset` a multiple of it inside the range."]
                fn register_read(device, range, offset, width) -> "register value";
                #[doc = "Writes a register; offset and width as in register_read."]
                fn register_write(device, range, offset, width, value) -> "0";
                #[doc = "Waits until `deadline` for an interrupt of the device. A wait that blocks acknowledges those before it and unmasks the line; the first wait enables it. DeviceError from then on if the kernel masked the line because of an interrupt storm."]
                fn interrupt_wait(device, interrupt, deadline) -> "how often it fired since the last wait";
                #[doc = "Allows a published device DMA to a block. The block stays the caller's, but is pinned: it cannot be sent, freed, attached, split or submitted until dma_end. Exhausted at 4,096 blocks of the device. If the caller ends, the block stays allocated until the bus has quiesced the device."]
                fn dma_begin(device, block) -> "device address of the block";
                #[doc = "Unpins a block: the device does no more DMA to it."]
                fn dma_end(device, block) -> "0";
                #[doc = "Allocates a message-signalled interrupt (MSI) for a device of a bus: word 0 its address, word 1 its data. Needs the `bus` permission, as do all publication functions."]
                fn interrupt_allocate(device) -> "index of the bus's interrupt";
                #[doc = "Begins to publish a device of a bus, whose name is the first `length` bytes of the buffer. If the bus published one of that name before it was restarted, that one is adopted as it is: word 0 is 1, word 1 the number of its interrupts, followed by address and data of each; its ranges are added again in the same order, its interrupts are not."]
                fn publication_create(device, length) -> "publication";
                #[doc = "Adds `bytes` bytes from `offset` of a range of the bus to the device's ranges. BadArgument if it differs from that of an adopted device."]
                fn publication_add_range(device, publication, range, offset, bytes) -> "its index among the device's ranges";
                #[doc = "Moves an interrupt of the bus to the device."]
                fn publication_add_interrupt(device, publication, interrupt) -> "its index among the device's interrupts";
                #[doc = "Allows the device to be opened by its name."]
                fn publication_open(device, publication) -> "0";
                #[doc = "Waits until `deadline` for a device of the bus to be released: its driver closed it or ended. Until publication_ready it cannot be opened, and its pinned blocks stay allocated."]
                fn publication_released(device, deadline) -> "publication";
                #[doc = "Reports that the bus has quiesced a released device: its pinned blocks are freed or returned, and it can be opened again."]
                fn publication_ready(device, publication) -> "0";
                #[doc = "Sets the clock of time_wall. NotPermitted also if the host keeps the time. Needs the `wall-clock` permission."]
                fn wall_time_set(ns) -> "0";
                #[doc = "Whether the machine has a device whose name is the first `length` bytes of the buffer, or a bus has published one. Needs the `system-manifest` permission."]
                fn device_exists(length) -> "1 if it exists, else 0";
                #[doc = "Powers the machine off, with an exit status. Needs the `power` permission."]
                fn machine_power_off(exit_status) -> "does not return";
                #[doc = "Restarts the machine from its boot image. Needs the `power` permission."]
                fn machine_restart() -> "does not return";
            }
            group "Stacks" {
                #[doc = "The calling thread's stack: word 0 its lowest usable address, word 1 the address past its end."]
                fn stack_bounds() -> "bytes";
                #[doc = "Bytes left on the calling thread's stack before a kernel call ends the SIP."]
                fn stack_left() -> "bytes";
            }
            group "Paged memory" {
                #[doc = "Allocates zeroed, contiguous, writable pages."]
                fn memory_allocate(pages) -> "address";
                #[doc = "Frees a whole allocation, by the address that memory_allocate returned."]
                fn memory_free(address) -> "pages freed";
                #[doc = "Pages used (the value) and allowed (message word 0)."]
                fn memory_usage() -> "pages used";
            }
            group "Principals" {
                #[doc = "Writes the caller's principal as text to the buffer."]
                fn principal_self() -> "bytes";
                #[doc = "Writes the principal of the channel's other end to the buffer: that of its owner, or of its last owner if it was sent or closed; if it was delegated to that SIP, joined by ` + ` to the end's former principal."]
                fn principal_of_peer(endpoint) -> "bytes";
                #[doc = "Delegates the caller's principal with an endpoint: while its next owner has it, its principal is the one so far joined by ` + ` to the owner's. The delegation is for one move. If the principal would be too long, it is the owner's alone."]
                fn principal_delegate(endpoint) -> "0";
            }
            group "Threads and synchronization" {
                #[doc = "Creates a thread that runs the code at `entry` (which must lie in the caller's image) with `argument` in its first register."]
                fn thread_create(entry, argument) -> "thread";
                #[doc = "Ends the calling thread. The SIP exits with status 0 when its last thread ends."]
                fn thread_exit() -> "does not return";
                #[doc = "Waits for a thread's end and releases its handle."]
                fn thread_join(thread, deadline) -> "0";
                #[doc = "Releases a thread's handle; the thread keeps running."]
                fn thread_release(thread) -> "0";
                #[doc = "Yields the processor to other runnable threads."]
                fn thread_yield() -> "0";
                #[doc = "Sleeps until `deadline`."]
                fn thread_sleep(deadline) -> "0";
                #[doc = "The calling thread's handle."]
                fn thread_self() -> "thread";
                #[doc = "Nanoseconds since the machine started."]
                fn time_monotonic() -> "ns";
                #[doc = "Nanoseconds since 1970-01-01 00:00 UTC."]
                fn time_wall() -> "ns";
                #[doc = "The number of processors."]
                fn processor_count() -> "count";
                #[doc = "Creates a mutex, free."]
                fn mutex_create() -> "mutex";
                #[doc = "Acquires the mutex, in order of arrival, waiting until `deadline`."]
                fn mutex_acquire(mutex, deadline) -> "0";
                #[doc = "Acquires the mutex if it is free, else WouldBlock."]
                fn mutex_try_acquire(mutex) -> "0";
                #[doc = "Releases a mutex that the calling thread holds."]
                fn mutex_release(mutex) -> "0";
                #[doc = "Closes an unlocked mutex."]
                fn mutex_close(mutex) -> "0";
                #[doc = "Creates a manual-reset event."]
                fn event_create_manual() -> "event";
                #[doc = "Creates an auto-reset event: setting it releases one waiter."]
                fn event_create_auto() -> "event";
                #[doc = "Sets an event."]
                fn event_set(event) -> "0";
                #[doc = "Resets an event."]
                fn event_reset(event) -> "0";
                #[doc = "Waits until `deadline` for an event to be set."]
                fn event_wait(event, deadline) -> "0";
                #[doc = "Closes an event without waiters."]
                fn event_close(event) -> "0";
                #[doc = "Waits until `deadline` for any of the `count` (at most 32) objects whose handles are in the buffer: endpoints, wait sets, events, threads, children, devices, debug sinks. An auto-reset event that is chosen is reset; nothing else changes."]
                fn wait_any(count, deadline) -> "index of a ready one";
            }
            // New functions are appended, whatever their group, so that numbers are stable.
            group "Debugging and diagnostics" {
                #[doc = "Creates a debug sink, a queue for the debug text of the SIPs that it is given to, up to `limits::DEBUG_SINK_BYTES`, in place of the machine's debug output."]
                fn debug_sink_create() -> "debug sink";
                #[doc = "Sends text of debug_write and messages of process_panic of a created child and its descendants to a debug sink of the caller's. The default is the parent's sink. When the sink is closed, or its owner ends, their text goes to the machine's debug output again."]
                fn debug_sink_give(child, sink) -> "0";
                #[doc = "Takes the oldest text of one SIP out of a debug sink, unfiltered: word 0 the process id of the writer, word 1 the length of its program's name, which begins at word 2; the text begins at word 10. A value of 0: word 0 is the number of bytes lost after the text read before. WouldBlock if the sink is empty; wait_any waits for text."]
                fn debug_sink_read(sink) -> "bytes";
                #[doc = "Closes a debug sink without waiters."]
                fn debug_sink_close(sink) -> "0";
            }
            group "Paged memory" {
                #[doc = "Adds zeroed pages right behind an allocation, by the address that memory_allocate returned: it is one allocation still. QuotaExceeded as for memory_allocate. WouldBlock if the pages behind it are not free: nothing has changed, and the caller may allocate anew and copy. In a window, Exhausted if the machine has no more pages, and BadArgument beyond its end."]
                fn memory_grow(address, pages) -> "address of the first new page";
                #[doc = "Reserves a window: `limits::WINDOW_BYTES` of addresses with this many zeroed pages, or none, at its start, behind which memory_grow adds others, without a copy ever; memory_free gives it up with all of them. An access behind them is a fault. QuotaExceeded if the caller's pages or its kernel memory are exhausted: see `limits::WINDOW_KERNEL_BYTES`. BadArgument if the pages are more than a window has. NotFound on a machine that reserves no addresses; Exhausted if all of its windows are taken, or it has no more pages."]
                fn memory_reserve(pages) -> "address of the window";
            }
        }
    };
}

macro_rules! define_table {
    ($(group $group:literal { $(#[doc = $doc:literal] fn $name:ident($($argument:ident),*) -> $value:literal;)* })*) => {
        /// The function table of a SIP: the kernel passes its address to each thread.
        #[repr(C)]
        pub struct AbiTable {
            /// [`TABLE_ID`](crate::TABLE_ID).
            pub id: u64,
            $($(#[doc = $doc] pub $name: extern "C" fn($($argument: u64),*) -> AbiReturn,)*)*
        }

        /// All functions, in table order.
        pub const FUNCTIONS: &[Function] = &[
            $($(Function {
                group: $group,
                name: stringify!($name),
                arguments: &[$(stringify!($argument)),*],
                value: $value,
                documentation: $doc,
            },)*)*
        ];
    };
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Its group.
    pub group: &'static str,
    /// Function name.
    pub name: &'static str,
    /// Argument names.
    pub arguments: &'static [&'static str],
    /// Value of a successful call.
    pub value: &'static str,
    /// Documentation.
    pub documentation: &'static str,
}

for_each_function!(define_table);

/// Tells this table from those of builds whose functions differ, if only in what their documentation says of words and
/// values. A kernel and an image of different tables would misunderstand each other.
pub const TABLE_ID: u64 = {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ crate::ABI_VERSION as u64;
    let mut number = 0;
    while number < FUNCTIONS.len() {
        let function = &FUNCTIONS[number];
        hash = fold(fold(fold(hash, function.name), function.value), function.documentation);
        let mut argument = 0;
        while argument < function.arguments.len() {
            hash = fold(hash, function.arguments[argument]);
            argument += 1;
        }
        number += 1;
    }
    hash
};

/// FNV-1a of a text and its end.
const fn fold(mut hash: u64, text: &str) -> u64 {
    let (bytes, mut at) = (text.as_bytes(), 0);
    while at <= bytes.len() {
        let byte = if at < bytes.len() { bytes[at] } else { 0xff };
        hash = (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

/// Renders the table as in `abi/v1.txt`.
pub fn render() -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "ABI v{}: {} functions", crate::ABI_VERSION, FUNCTIONS.len());
    let mut group = "";
    for (number, function) in FUNCTIONS.iter().enumerate() {
        if function.group != group {
            group = function.group;
            let count = FUNCTIONS[number..].iter().take_while(|other| other.group == group).count();
            let _ = writeln!(out, "\n{group} ({count})");
        }
        let _ = writeln!(
            out,
            "{number:4}  {}({}) -> {}\n      {}",
            function.name,
            function.arguments.join(", "),
            function.value,
            function.documentation
        );
    }
    out
}

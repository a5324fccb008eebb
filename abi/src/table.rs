//! The one table of functions: numbers, signatures and documentation come from here.
//!
//! [`for_each_function`](crate::for_each_function) hands the whole table to a macro of the caller's,
//! which is how the kernel makes its dispatch and the runtime its stubs. What may never become a
//! function: anything that takes or gives a reference into a SIP or the kernel, changes another
//! SIP's state (create-child and stop-child aside), or makes a page executable.

use alloc::string::String;
use core::fmt::Write;

use crate::AbiReturn;

/// Calls `$callback! { ... }` with every group and function of ABI v1.
///
/// The shape is `group "Name" { #[doc] fn name(argument, ...) -> "what the value is"; }`. Every
/// argument is a `u64`: a number, or a claim (handle, address, index) that the kernel checks.
#[macro_export]
macro_rules! for_each_function {
    ($callback:ident) => {
        $callback! {
            group "Channels" {
                #[doc = "Creates a channel of the contract with this name_tag, which must be in the caller's manifest. QuotaExceeded if the kernel keeps too much for the caller: see `limits::KERNEL_BYTES`. The importer's handle is the value, the exporter's is message word 0. Both belong to the caller."]
                fn channel_create(contract) -> "importer's endpoint";
                #[doc = "Sends the message in the buffer: scalars, then three words a block (handle, address, bytes; only the handle counts), then one word an endpoint. `message` is the message_word of its tag and shape, so that nothing the sender wrote as a scalar is taken for a block. Blocks and endpoints leave the caller. Never blocks, allocates or fails because of the peer. A message that the contract does not allow here, or a shape that is not the contract's, ends the caller."]
                fn channel_send(endpoint, message) -> "0";
                #[doc = "Waits until `deadline` (ns of time_monotonic) for the next message, which is put in the buffer as it was sent, with addresses and lengths of the blocks filled in. Closed: message word 0 counts the lent blocks that came home, followed by three words each; call again while it is not 0."]
                fn channel_receive(endpoint, deadline) -> "message_word of its tag and shape";
                #[doc = "Like channel_receive, but answers WouldBlock where that would wait."]
                fn channel_try_receive(endpoint) -> "message_word of its tag and shape";
                #[doc = "Like channel_try_receive; where that answers WouldBlock, the endpoint has been added to the set with the key, as by wait_set_add."]
                fn channel_receive_or_add(endpoint, set, key) -> "message_word of its tag and shape";
                #[doc = "Closes the caller's end. The peer receives what is queued, then Closed. Queued messages for the caller are dropped: their blocks freed or sent home, their endpoints closed."]
                fn channel_close(endpoint) -> "0";
                #[doc = "Tells of an endpoint: message word 0 the name_tag of its contract, word 1 whether it is the importer, word 2 its state, word 3 the index of the contract in the caller's manifest or u64::MAX."]
                fn channel_describe(endpoint) -> "0";
                #[doc = "Creates a wait set: endpoints added to it announce themselves in O(1) when they have something to receive."]
                fn wait_set_create() -> "wait set";
                #[doc = "Adds an endpoint with a key. One that is ready already is announced at once. An endpoint is in one set at most."]
                fn wait_set_add(set, endpoint, key) -> "0";
                #[doc = "Takes an endpoint out of its set."]
                fn wait_set_remove(set, endpoint) -> "0";
                #[doc = "Waits until `deadline` for an endpoint of the set to have a message or to be closed, takes it out of the set and gives its key. The next channel_try_receive on it does not answer WouldBlock."]
                fn wait_set_wait(set, deadline) -> "key";
                #[doc = "Has one wait_set_wait on the set answer the key u64::MAX: for what is no endpoint. Alerts before that answer are one."]
                fn wait_set_alert(set) -> "0";
                #[doc = "Closes a wait set; the endpoints in it stay open."]
                fn wait_set_close(set) -> "0";
            }
            group "Child processes" {
                #[doc = "Creates a SIP from the manifest of an installed program, whose name is the first `length` bytes of the buffer. It does not run yet. Its principal is the program's alone, or, if the caller was itself invoked, what `process_invoke` without a role would make it. Refused: the buffer holds the reason as text and word 63 its length."]
                fn process_create(length) -> "child";
                #[doc = "Makes a created child's principal that of a program which the caller invoked: the caller's principal, joined by ` + ` to the child's. If `role_length` is not 0, the first so many bytes of the buffer are the role in which the caller does so, `[a-z][a-z0-9-]*`, and `@` with it is put after the caller's last link; that needs the `assign-role` permission. Once, and before the child is given endpoints, else WrongState; TooLarge if the principal would have more than 8 links or 512 bytes."]
                fn process_invoke(child, role_length) -> "0";
                #[doc = "Gives a created child the value of the parameter at this index of its manifest: the first `length` bytes of the buffer are appended to what it was given before. For a repeated parameter each value is ended by a zero byte. TooLarge if it had more than 64 KiB then, or all parameters more than 256 KiB."]
                fn process_give_parameter(child, index, length) -> "0";
                #[doc = "Moves an endpoint to a created child, for the endpoint slot at this index of its manifest. Its contract, side and state must be what the slot declares."]
                fn process_give_endpoint(child, slot, endpoint) -> "0";
                #[doc = "Gives a created child the machine's device whose name is the first `length` bytes of the buffer, for the device at this index of its manifest. Without it the device with the manifest's own name is meant. Needs the `system-manifest` permission."]
                fn process_give_device(child, index, length) -> "0";
                #[doc = "Starts a created child."]
                fn process_start(child) -> "0";
                #[doc = "Ends a child (and its children) as soon as each of its threads is out of the kernel. `reason` is a StopReason. Does not wait."]
                fn process_stop(child, reason) -> "0";
                #[doc = "Waits for a child's end. The value is its EpitaphKind; message word 0 the exit status; word 1 its length and from word 2 the epitaph's text, cut to fit."]
                fn process_wait(child, deadline) -> "epitaph kind";
                #[doc = "Gives the child's handle up. A child that has not ended goes on by itself."]
                fn process_release(child) -> "0";
                #[doc = "The child's process id, as the diagnostics functions and people use it."]
                fn process_id_of(child) -> "process id";
                #[doc = "Ends the caller's SIP with an exit status."]
                fn process_exit(code) -> "does not return";
                #[doc = "Ends the caller's SIP as panicked; the first `length` bytes of the buffer are the message of the epitaph."]
                fn process_panic(length) -> "does not return";
                #[doc = "The caller's own process id."]
                fn process_id() -> "process id";
                #[doc = "Ends the SIP with this process id. Needs the manifest's `stop-any` permission. `reason` is a StopReason."]
                fn process_stop_any(process_id, reason) -> "0";
            }
            group "Configuration" {
                #[doc = "Bytes of the value that the parent gave for the parameter at this index, or u64::MAX if it gave none."]
                fn parameter_length(index) -> "bytes";
                #[doc = "Copies the value from `offset` on into the buffer, at most 512 bytes."]
                fn parameter_read(index, offset) -> "bytes copied";
                #[doc = "Takes the endpoint that the parent gave for the slot at this index of the manifest; NotFound if it gave none or it was taken."]
                fn endpoint_take(slot) -> "endpoint";
                #[doc = "A new block with the system manifest, as the boot image carries it. Needs the `system-manifest` permission."]
                fn system_manifest() -> "block; word 0 its address, word 1 its bytes";
                #[doc = "How many programs are installed."]
                fn program_count() -> "count";
                #[doc = "A new block with the manifest of the installed program at this index, in its binary form; from word 2 on the 32 bytes of the key that its package is signed with."]
                fn program_manifest(index) -> "block; word 0 its address, word 1 its bytes";
                #[doc = "Installs the program whose package is the first `bytes` bytes of the block, until the machine restarts: verified like those of the system image, and with its trust. One of that name is replaced for processes that are created from now on, if the new one is of the same publisher and has a higher version. Refused: the buffer holds the reason as text and word 63 its length. Needs the `install` permission."]
                fn program_install(block, bytes) -> "0 it is new, 1 it replaces another, 2 it was there already";
                #[doc = "Says what program_install would do, and does not do it. Refused: as there. Needs the `install` permission."]
                fn program_check(block, bytes) -> "what program_install would give";
                #[doc = "Takes the installed program whose name is the first `length` bytes of the buffer out: no process is created from it any more; those that run go on. Not the root program's. Needs the `install` permission."]
                fn program_uninstall(length) -> "0";
                #[doc = "How often programs were installed or taken out since the machine started. It is raised after each change: who reads it before the list of programs has the list of that number, or a newer one."]
                fn program_changes() -> "count";
                #[doc = "Writes a SHA-256 to the buffer: of the kernel's own image (`which` is 0), or of the head of the system image (1), which stands for all of it. NotFound if the machine cannot tell."]
                fn measurement(which) -> "32";
            }
            group "Debugging and diagnostics" {
                #[doc = "The processor's cycle counter."]
                fn cycles() -> "cycles";
                #[doc = "Writes the first `length` bytes of the buffer to the SIP's debug sink, or, without one, to the machine's debug output, after the SIP's name. Never waits: a full sink counts what does not fit in."]
                fn debug_write(length) -> "0";
                #[doc = "Adds a note with two words to the caller's trace ring."]
                fn trace_note(a, b) -> "0";
                #[doc = "Adds a line with the first `length` bytes of the buffer to the audit ring: what the caller refused, in the form of `abi::audit`. What is past 256 bytes is cut. Needs the `audit` permission."]
                fn audit_note(length) -> "0";
                #[doc = "Fills the block with a ProcessRecord for each SIP. The value counts all there are, also those that did not fit. Needs the `diagnostics` permission, as do all that follow in this group."]
                fn list_processes(block) -> "count";
                #[doc = "Fills the block with a ThreadRecord for each thread."]
                fn list_threads(block) -> "count";
                #[doc = "Fills the block with a ChannelRecord for each channel."]
                fn list_channels(block) -> "count";
                #[doc = "Fills the block with a CounterRecord for each counter."]
                fn list_counters(block) -> "count";
                #[doc = "Fills the block with the TraceRecords of the SIP with this process id, oldest first; those of the last 64 SIPs that ended are kept."]
                fn list_trace(process_id, block) -> "count";
                #[doc = "A new block with text: one line for each of the last 256 ends of SIPs, oldest first: process id, nanoseconds of time_monotonic, name, epitaph."]
                fn epitaphs() -> "block; word 0 its address, word 1 its bytes";
                #[doc = "A new block with text: the lines of the audit ring from number `from` on, oldest first: milliseconds since the machine started, who noted it, what was refused. The ring keeps 1,024; when it is full, the principal with most lines loses its oldest. Word 2 is the number of the next line."]
                fn audit_read(from) -> "block; word 0 its address, word 1 its bytes";
                #[doc = "A new block with the automaton of a contract, by the index in the list of all contracts that installed programs use; NotFound past the end."]
                fn contract_automaton(index) -> "block; word 0 its address, word 1 its bytes";
            }
            group "Exchange heap" {
                #[doc = "Allocates a zeroed block for elements of the type with this tag, aligned to 64 bytes; it may have 0 bytes. The value is its handle; message word 0 its address."]
                fn heap_allocate(bytes, type_tag) -> "block";
                #[doc = "Frees a block and those attached to it. A lent block goes home instead."]
                fn heap_free(block) -> "0";
                #[doc = "Splits a block at a byte offset (a multiple of 64) in two: the block keeps what is before; the value is a new block with the rest. The memory is free when both are; each counts all of it against the quota."]
                fn heap_split(block, offset) -> "block";
                #[doc = "Tells of a block: word 0 address, word 1 bytes, word 2 type tag, word 3 whether it is lent to the caller."]
                fn heap_describe(block) -> "0";
                #[doc = "Makes `child` part of `parent`: it moves and ends with it."]
                fn heap_attach(parent, child) -> "position among the parent's blocks";
                #[doc = "Takes the last attached block out of `parent`: word 0 its address, word 1 its bytes, word 2 its type tag."]
                fn heap_detach(parent) -> "block";
            }
            group "Hardware access" {
                #[doc = "Opens the device at this index of the manifest's device list. One SIP has a device at a time."]
                fn device_open(index) -> "device";
                #[doc = "Tells of a device: word 0 a DeviceKind, word 1 its size in bytes (disk), word 2 flags: bit 0 read only, bit 1 a person's terminal, word 3 columns, word 4 rows (of packets, word 1 the hardware address, word 2 what the device does for its user, word 3 the MTU), word 5 how many ranges of registers it has, word 6 how many interrupts."]
                fn device_describe(device) -> "0";
                #[doc = "Asks a device for an operation (a DeviceOperation) at a byte offset with `bytes` bytes of the block, from byte `first` of it on. What the offset of sockets and packets means is their own. The block belongs to the device until device_complete gives it back. Completed at once when the machine can: the value is then 1, else 0."]
                fn device_submit(device, operation, offset, block, first, bytes) -> "1 if it is complete already";
                #[doc = "Waits until `deadline` for a finished operation: the value is the block's handle, word 0 its address, word 1 its length, word 2 the bytes done, word 3 a Status."]
                fn device_complete(device, deadline) -> "block";
                #[doc = "Closes a device; operations that have not begun are dropped."]
                fn device_close(device) -> "0";
                #[doc = "Tells of a range of registers: its bytes; word 0 whether they are memory (1) or I/O ports (0), word 1 the first port or physical address."]
                fn range_describe(device, range) -> "bytes";
                #[doc = "Reads a register: `width` is 1, 2, 4 or 8 bytes (8: memory only), `offset` a multiple of it inside the range."]
                fn register_read(device, range, offset, width) -> "what it reads";
                #[doc = "Writes a register; offset and width as in register_read."]
                fn register_write(device, range, offset, width, value) -> "0";
                #[doc = "Waits until `deadline` for an interrupt of the device. A wait that finds none acknowledges those before it: the line may fire again; the first wait enables it. DeviceError from then on if the line fired so often that the kernel silenced it."]
                fn interrupt_wait(device, interrupt, deadline) -> "how often it fired since the last wait";
                #[doc = "Lets a published device reach a block by memory access of its own. The block stays the caller's, but is pinned: it cannot be sent, freed, attached, split or submitted until dma_end. Exhausted if 4,096 of the device are. If the caller ends, the block stays where it is until the device's bus has silenced the device."]
                fn dma_begin(device, block) -> "where the device finds the block";
                #[doc = "The device has done with a block: it is no longer pinned."]
                fn dma_end(device, block) -> "0";
                #[doc = "A new interrupt of a bus, for one of its devices that interrupts by a memory write: word 0 the address to write to, word 1 what to write. Needs the `bus` permission, as do all publication functions."]
                fn interrupt_allocate(device) -> "index of the bus's interrupt";
                #[doc = "Begins to offer a device found on a bus, whose name is the first `length` bytes of the buffer. If the bus offered one of that name before it was restarted, that one is taken over as it is: word 0 is 1, word 1 the number of its interrupts, followed by address and data of each; its ranges are added again in the same order, its interrupts are not."]
                fn publication_create(device, length) -> "publication";
                #[doc = "Adds `bytes` bytes from `offset` of a range of the bus to the device's ranges. Of a device that was taken over, BadArgument if it is not the range that the device has."]
                fn publication_add_range(device, publication, range, offset, bytes) -> "its index among the device's ranges";
                #[doc = "Adds an interrupt of the bus to the device's. It is the device's alone from then on."]
                fn publication_add_interrupt(device, publication, interrupt) -> "its index among the device's interrupts";
                #[doc = "From now on the device can be opened by its name."]
                fn publication_open(device, publication) -> "0";
                #[doc = "Waits until `deadline` for a device of the bus to be given up: its driver closed it or ended. It cannot be opened, and blocks that it may still reach stay where they are, until publication_ready."]
                fn publication_released(device, deadline) -> "publication";
                #[doc = "The bus has silenced a device that was given up: its pinned blocks are freed or go home, and it can be opened again."]
                fn publication_ready(device, publication) -> "0";
                #[doc = "Sets what time_wall tells. NotPermitted where the host keeps the time. Needs the `wall-clock` permission."]
                fn wall_time_set(ns) -> "0";
                #[doc = "Whether the machine has a device whose name is the first `length` bytes of the buffer, or a bus has published one. Needs the `system-manifest` permission."]
                fn device_exists(length) -> "1 if it exists, else 0";
                #[doc = "Ends the machine with an exit status. Needs the `power` permission."]
                fn machine_power_off(exit_status) -> "does not return";
                #[doc = "Starts the machine anew from what it was booted with. Needs the `power` permission."]
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
                #[doc = "Frees an allocation whole: its address, as memory_allocate gave it."]
                fn memory_free(address) -> "pages freed";
                #[doc = "Pages used and allowed: the value and message word 0."]
                fn memory_usage() -> "pages used";
            }
            group "Principals" {
                #[doc = "Writes the caller's principal as text to the buffer."]
                fn principal_self() -> "bytes";
                #[doc = "Writes the principal that the other end of the channel speaks for to the buffer: that of the SIP which owns it, or which did when it was sent or closed; if it was delegated to that SIP, joined by ` + ` to the principal that it spoke for before."]
                fn principal_of_peer(endpoint) -> "bytes";
                #[doc = "Marks an endpoint of the caller's as delegated: when it is next moved to another SIP it speaks, as long as that SIP has it, for the principal that it spoke for joined by ` + ` to the SIP's own. The mark is gone when the endpoint is moved or closed. A principal that would be too long is that SIP's own alone."]
                fn principal_delegate(endpoint) -> "0";
            }
            group "Threads and synchronization" {
                #[doc = "Creates a thread that runs the code at `entry` (which must lie in the caller's image) with `argument` in its first register."]
                fn thread_create(entry, argument) -> "thread";
                #[doc = "Ends the calling thread. The SIP exits with status 0 when its last thread ends."]
                fn thread_exit() -> "does not return";
                #[doc = "Waits for a thread's end and gives its handle up."]
                fn thread_join(thread, deadline) -> "0";
                #[doc = "Gives a thread's handle up; it goes on."]
                fn thread_release(thread) -> "0";
                #[doc = "Lets the other runnable threads go first."]
                fn thread_yield() -> "0";
                #[doc = "Sleeps until `deadline`."]
                fn thread_sleep(deadline) -> "0";
                #[doc = "The calling thread's handle."]
                fn thread_self() -> "thread";
                #[doc = "Nanoseconds since the machine started."]
                fn time_monotonic() -> "ns";
                #[doc = "Nanoseconds since 1970-01-01 00:00 UTC."]
                fn time_wall() -> "ns";
                #[doc = "How many processors the machine has."]
                fn processor_count() -> "count";
                #[doc = "Creates a mutex, free."]
                fn mutex_create() -> "mutex";
                #[doc = "Waits until `deadline` for the mutex. Taken in order of arrival."]
                fn mutex_acquire(mutex, deadline) -> "0";
                #[doc = "Takes the mutex if it is free, else WouldBlock."]
                fn mutex_try_acquire(mutex) -> "0";
                #[doc = "Releases a mutex that the calling thread holds."]
                fn mutex_release(mutex) -> "0";
                #[doc = "Closes a mutex that nobody holds."]
                fn mutex_close(mutex) -> "0";
                #[doc = "Creates an event that stays set until it is reset."]
                fn event_create_manual() -> "event";
                #[doc = "Creates an event that one waiter takes."]
                fn event_create_auto() -> "event";
                #[doc = "Sets an event."]
                fn event_set(event) -> "0";
                #[doc = "Resets an event."]
                fn event_reset(event) -> "0";
                #[doc = "Waits until `deadline` for an event to be set."]
                fn event_wait(event, deadline) -> "0";
                #[doc = "Closes an event that nobody waits for."]
                fn event_close(event) -> "0";
                #[doc = "Waits until `deadline` for any of the `count` (at most 32) objects whose handles are in the buffer: endpoints, wait sets, events, threads, children, devices, debug sinks. An auto event that is chosen is taken; nothing else changes."]
                fn wait_any(count, deadline) -> "index of a ready one";
            }
            // Later functions stand at the end, whatever their group, so that the others keep their numbers.
            group "Debugging and diagnostics" {
                #[doc = "Creates a debug sink: what the SIPs that it is given to write as debug text waits there for the caller, up to `limits::DEBUG_SINK_BYTES`, instead of going to the machine's debug output."]
                fn debug_sink_create() -> "debug sink";
                #[doc = "Gives a created child a debug sink of the caller's: what the child, and those that it or its children create, write with debug_write, and the message of a process_panic, goes there. Without it a child has its parent's. Nothing is owed to the sink: when it is closed, or its owner ends, debug text of those that have it goes to the machine's debug output again."]
                fn debug_sink_give(child, sink) -> "0";
                #[doc = "Takes the oldest text out of a debug sink, that of one SIP, as its bytes are: word 0 the process id of the writer, word 1 the bytes of its program's name, which stands from word 2 on; the text stands from word 10 on. A value of 0: word 0 counts the bytes that did not fit in after what was read before. WouldBlock if there is nothing; a wait_any for the sink tells when there is."]
                fn debug_sink_read(sink) -> "bytes";
                #[doc = "Closes a debug sink that nobody waits for."]
                fn debug_sink_close(sink) -> "0";
            }
        }
    };
}

macro_rules! define_table {
    ($(group $group:literal { $(#[doc = $doc:literal] fn $name:ident($($argument:ident),*) -> $value:literal;)* })*) => {
        /// Where a SIP finds the functions: the kernel gives each thread its address.
        #[repr(C)]
        pub struct AbiTable {
            /// [`ABI_VERSION`](crate::ABI_VERSION).
            pub version: u64,
            $($(#[doc = $doc] pub $name: extern "C" fn($($argument: u64),*) -> AbiReturn,)*)*
        }

        /// Every function, in table order.
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

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// One of the ten groups.
    pub group: &'static str,
    /// Name of the function.
    pub name: &'static str,
    /// Names of the arguments.
    pub arguments: &'static [&'static str],
    /// What the value of a successful call is.
    pub value: &'static str,
    /// What it does.
    pub documentation: &'static str,
}

for_each_function!(define_table);

/// The table as text, as committed in `abi/v1.txt`.
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

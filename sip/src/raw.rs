//! The ABI table as Rust functions: one load of the table's address, one indirect call, the answer in two
//! registers.
//!
//! All of them are unsafe here, because some transfer ownership of memory; those that pass only values
//! are wrapped as safe functions in [`value`], from an explicit list. Neighbours: [`thread_block`]
//! finds the table. Deliberately not here: any meaning of the arguments.

use abi::AbiReturn;

use crate::thread_block;

macro_rules! stubs {
    ($(group $group:literal { $(#[doc = $doc:literal] fn $name:ident($($argument:ident),*) -> $value:literal;)* })*) => {
        $($(
            #[doc = $doc]
            ///
            /// # Safety
            ///
            /// The caller accounts for memory: memory that this call takes from the process (a block, pages) is not
            /// used afterwards, memory that it returns gets one owner, and an address passed for
            /// execution is that of a function with the thread entry signature.
            #[allow(dead_code, reason = "the table has functions that the runtime does without")]
            #[inline(always)]
            pub(crate) unsafe fn $name($($argument: u64),*) -> AbiReturn {
                thread_block::BufferUse::begin();
                (thread_block::table().$name)($($argument),*)
            }
        )*)*
    };
}

abi::for_each_function!(stubs);

macro_rules! value_only {
    ($($name:ident($($argument:ident),*);)*) => {
        /// Functions that neither take memory from the caller nor return any: safe for any arguments.
        pub(crate) mod value {
            use abi::Status;

            $(
                #[inline(always)]
                pub(crate) fn $name($($argument: u64),*) -> Result<u64, Status> {
                    // SAFETY: the function is in the list of those that pass only values; the kernel refuses a wrong
                    // handle, and no owner loses memory by it.
                    unsafe { super::$name($($argument),*) }.into_result()
                }
            )*
        }
    };
}

value_only! {
    channel_create(contract);
    channel_close(endpoint);
    channel_describe(endpoint);
    wait_set_create();
    wait_set_add(set, endpoint, key);
    wait_set_remove(set, endpoint);
    wait_set_wait(set, deadline, max, clock);
    wait_set_alert(set);
    wait_set_close(set);
    process_create(length);
    process_invoke(child, role_length);
    process_give_parameter(child, index, length);
    process_give_endpoint(child, slot, endpoint);
    process_give_device(child, index, length);
    process_start(child);
    process_stop(child, reason);
    process_wait(child, deadline);
    process_release(child);
    process_id_of(child);
    process_exit(code);
    process_panic(length);
    process_id();
    process_stop_any(process_id, reason);
    parameter_length(index);
    parameter_read(index, offset);
    endpoint_take(slot);
    program_count();
    program_install(block, bytes);
    program_check(block, bytes);
    program_uninstall(length);
    program_changes();
    measurement(which);
    cycles();
    debug_write(length);
    debug_sink_create();
    debug_sink_give(child, sink);
    debug_sink_read(sink);
    debug_sink_close(sink);
    trace_note(a, b);
    audit_note(length);
    heap_describe(block);
    device_open(index);
    device_describe(device);
    device_close(device);
    range_describe(device, range);
    register_read(device, range, offset, width);
    register_write(device, range, offset, width, value);
    interrupt_wait(device, interrupt, deadline);
    interrupt_allocate(device);
    publication_create(device, length);
    publication_add_range(device, publication, range, offset, bytes);
    publication_add_interrupt(device, publication, interrupt);
    publication_open(device, publication);
    publication_released(device, deadline);
    publication_ready(device, publication);
    wall_time_set(ns);
    device_exists(length);
    machine_power_off(exit_status);
    machine_restart();
    stream_start(events);
    stack_left();
    memory_usage();
    principal_self();
    principal_of_peer(endpoint);
    principal_delegate(endpoint);
    thread_exit();
    thread_join(thread, deadline);
    thread_release(thread);
    thread_yield();
    thread_sleep(deadline);
    time_monotonic();
    time_wall();
    processor_count();
    event_create_manual();
    event_create_auto();
    event_set(event);
    event_reset(event);
    event_wait(event, deadline);
    event_close(event);
    wait_any(count, deadline);
}

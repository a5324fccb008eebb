//! Which words of the message buffer a call uses: only they are copied from and to a domain, and recorded.
//!
//! Functions that are called often and use few words have a [`Use`]; all others get the whole buffer copied in and out.
//! What is not copied in is what an earlier call of the same thread has left; what is not copied out stays as the SIP
//! left it, as if the kernel had not written to it.

use abi::limits::{BLOCK_WORDS, ENDPOINT_WORDS, MESSAGE_WORDS};
use abi::{AbiReturn, SUBMIT_DONE, Status};

/// The words that a function reads and writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    /// Any.
    All,
    /// None.
    Nothing,
    /// It reads those of a message, whose shape is its second argument.
    Sends,
    /// It writes those of a message, whose shape is its value; or, of a closed channel, the blocks that return.
    Receives,
    /// It writes this many.
    Writes(usize),
    /// It writes this many, if its value is a block's handle.
    WritesWithBlock(usize),
    /// It writes as many as its value says.
    WritesValue,
    /// It writes any, if it succeeds.
    Fills,
}

macro_rules! uses {
    ($(group $group:literal { $(#[doc = $doc:literal] fn $name:ident($($argument:ident),*) -> $value:literal;)* })*) => {
        /// By number of the function.
        static USES: &[Use] = &[$($(use_of(stringify!($name).as_bytes()),)*)*];
    };
}

abi::for_each_function!(uses);

const fn use_of(function: &[u8]) -> Use {
    match function {
        b"channel_send" => Use::Sends,
        b"channel_receive" | b"channel_try_receive" | b"channel_receive_or_add" => Use::Receives,
        b"channel_create" | b"memory_usage" => Use::Writes(1),
        b"heap_allocate" | b"stack_bounds" => Use::Writes(2),
        b"heap_describe" | b"channel_describe" => Use::Writes(4),
        b"device_complete" => Use::Writes(5),
        b"device_submit" => Use::WritesWithBlock(5),
        b"wait_set_wait" => Use::WritesValue,
        b"process_wait" | b"principal_of_peer" => Use::Fills,
        b"channel_close" | b"wait_set_create" | b"wait_set_add" | b"wait_set_remove" | b"wait_set_alert"
        | b"wait_set_close" | b"process_start" | b"process_release" | b"process_id_of" | b"process_id"
        | b"parameter_length" | b"endpoint_take" | b"program_count" | b"program_changes" | b"cycles"
        | b"trace_note" | b"heap_free" | b"register_read" | b"register_write" | b"interrupt_wait" | b"stack_left"
        | b"memory_allocate" | b"memory_grow" | b"memory_reserve" | b"memory_free" | b"thread_exit"
        | b"thread_join" | b"thread_release" | b"thread_yield" | b"thread_sleep" | b"thread_self"
        | b"time_monotonic" | b"time_wall" | b"processor_count" | b"mutex_acquire" | b"mutex_try_acquire"
        | b"mutex_release" | b"event_set" | b"event_reset" | b"event_wait" => Use::Nothing,
        _ => Use::All,
    }
}

#[inline(always)]
fn use_by(number: u64) -> Use {
    usize::try_from(number).ok().and_then(|number| USES.get(number)).copied().unwrap_or(Use::Nothing)
}

/// Words of a message of this shape, in the sense of [`abi::message_word`]; a claim.
fn words_of(message: u64) -> usize {
    let [scalars, blocks, endpoints] = [message >> 16 & 0xffff, message >> 32 & 0xff, message >> 40 & 0xff];
    (scalars as usize + blocks as usize * BLOCK_WORDS + endpoints as usize * ENDPOINT_WORDS).min(MESSAGE_WORDS)
}

/// Words from the start of the buffer that a function may read. The arguments are claims.
#[inline(always)]
pub fn words_in(function: u64, arguments: &[u64]) -> usize {
    match use_by(function) {
        Use::All => MESSAGE_WORDS,
        Use::Sends => arguments.get(1).map_or(0, |message| words_of(*message)),
        Use::Nothing | Use::Receives | Use::Writes(_) | Use::WritesWithBlock(_) | Use::WritesValue | Use::Fills => 0,
    }
}

/// Words from the start of the buffer that a function may have written when it gave this answer.
#[inline(always)]
pub fn words_out(function: u64, answer: &AbiReturn) -> usize {
    match use_by(function) {
        Use::All => MESSAGE_WORDS,
        Use::Receives if answer.status == Status::Ok as u64 => words_of(answer.value),
        Use::Receives if answer.status == Status::Closed as u64 => MESSAGE_WORDS,
        Use::Writes(words) => words,
        Use::WritesWithBlock(words) if answer.status == Status::Ok as u64 && answer.value > SUBMIT_DONE => words,
        Use::WritesValue if answer.status == Status::Ok as u64 => (answer.value as usize).min(MESSAGE_WORDS),
        Use::Fills if answer.status == Status::Ok as u64 => MESSAGE_WORDS,
        Use::Nothing | Use::Sends | Use::Receives | Use::WritesWithBlock(_) | Use::WritesValue | Use::Fills => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::SUBMIT_QUEUED;
    use alloc::format;

    /// The source of all handlers.
    const HANDLERS: [&str; 8] = [
        include_str!("handlers/channels.rs"),
        include_str!("handlers/configuration.rs"),
        include_str!("handlers/debugging.rs"),
        include_str!("handlers/exchange.rs"),
        include_str!("handlers/hardware.rs"),
        include_str!("handlers/memory.rs"),
        include_str!("handlers/processes.rs"),
        include_str!("handlers/threads.rs"),
    ];

    fn source(function: &str) -> &'static str {
        let start = format!("pub fn {function}(");
        let found = HANDLERS.iter().find_map(|text| text.split_once(&start)).expect("a handler").1;
        found.split_once("\n}\n").expect("its end").0
    }

    /// Calls that pass the buffer on under another name.
    const PASSED_ON: [&str; 4] = ["buffer", "text(", "answer(", "(caller,"];

    #[test]
    fn a_handler_uses_no_more_of_the_buffer_than_is_copied() {
        let mut nothing = 0;
        let some = abi::FUNCTIONS.iter().zip(USES).filter(|(_, used)| **used != Use::All);
        for (function, used) in some {
            let body = source(function.name).replace("let (caller, ", "");
            let mentions: usize = PASSED_ON.iter().map(|word| body.matches(word).count()).sum();
            match used {
                Use::Nothing => {
                    nothing += 1;
                    assert_eq!(mentions, 0, "{}: {body}", function.name);
                }
                Use::Writes(1) => {
                    assert!(body.contains("buffer.set(0, ") && mentions == 1, "{}: {body}", function.name)
                }
                Use::Writes(2) => {
                    let writes = body.contains("put_address(caller.buffer, block)")
                        || body.contains("write_words(&[low as u64, end as u64])");
                    assert!(writes && mentions == 1, "{}: {body}", function.name);
                }
                Use::Writes(4) => {
                    let writes = body.contains("write_words(&exheap::describe_of(")
                        || body.contains("write_words(&[contract.tag, importer, u64::from(state), index])");
                    assert!(writes && mentions == 1, "{}: {body}", function.name);
                }
                Use::Writes(5) => {
                    let writes =
                        body.contains("device::wait_complete(caller.process, caller.thread, device, deadline, ");
                    assert!(writes && mentions == 1, "{}: {body}", function.name);
                }
                Use::WritesWithBlock(words) => {
                    let writes = body.contains("device::submit(caller.process, device, ") && *words == 5;
                    assert!(writes && mentions == 1, "{}: {body}", function.name);
                }
                Use::WritesValue => {
                    let writes = body.contains("caller.buffer.write_words(&words[..count]);");
                    assert!(writes && body.ends_with("Ok(count as u64)") && mentions == 1, "{}: {body}", function.name);
                }
                Use::Fills => {
                    let fills = ["Ok(put_epitaph(caller.buffer, ", "peer_principal("];
                    assert!(fills.iter().any(|fill| body.contains(fill)), "{}: {body}", function.name);
                    assert!(!body.contains("bytes(") && !body.contains("read_"), "{}: {body}", function.name);
                }
                Use::Sends | Use::Receives => assert!(body.contains("caller.buffer"), "{}: {body}", function.name),
                Use::Writes(_) => panic!("{}: say where it writes them", function.name),
                Use::All => {}
            }
        }
        assert!(nothing > 30, "{nothing}");
        assert!(HANDLERS[3].contains("fn put_address(buffer: MessageBuffer, block"), "it writes two words");
    }

    #[test]
    fn claims_of_large_messages_are_cut() {
        let number = |name: &str| abi::FUNCTIONS.iter().position(|function| function.name == name).expect("one") as u64;
        let send = |message: u64| words_in(number("channel_send"), &[1, message, 0, 0, 0, 0]);
        assert_eq!(send(abi::message_word(7, 2, 1, 1)), 2 + BLOCK_WORDS + ENDPOINT_WORDS);
        assert_eq!(send(u64::MAX), MESSAGE_WORDS);
        assert_eq!([words_in(u64::MAX, &[0; 6]), words_in(number("stack_left"), &[0; 6])], [0, 0]);
        let received = |status: Status, value: u64| {
            words_out(number("channel_receive"), &AbiReturn { status: status as u64, value })
        };
        assert_eq!(received(Status::Ok, abi::message_word(7, 2, 0, 0)), 2);
        assert_eq!(received(Status::Ok, u64::MAX), MESSAGE_WORDS);
        assert_eq!([received(Status::Closed, 0), received(Status::TimedOut, 0)], [MESSAGE_WORDS, 0]);
        assert_eq!(words_in(number("process_create"), &[0; 6]), MESSAGE_WORDS);
        let waited = |status: Status| words_out(number("process_wait"), &AbiReturn { status: status as u64, value: 0 });
        assert_eq!([waited(Status::Ok), waited(Status::TimedOut)], [MESSAGE_WORDS, 0]);
        let submitted = |status: Status, value: u64| {
            words_out(number("device_submit"), &AbiReturn { status: status as u64, value })
        };
        assert_eq!([submitted(Status::Ok, 9), submitted(Status::Exhausted, 9)], [5, 0]);
        assert_eq!([SUBMIT_QUEUED, SUBMIT_DONE].map(|value| submitted(Status::Ok, value)), [0, 0]);
    }
}

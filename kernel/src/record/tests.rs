use super::*;
use abi::limits::PAGE_BYTES;
use recording::effects::{Named, memory, named};

/// Functions whose documentation speaks of a block that they give or fill.
fn gives_a_block(function: &abi::Function) -> bool {
    let value = function.value;
    value.starts_with("block;") || value == "block" || function.documentation.starts_with("Fills the block")
}

#[test]
fn a_function_that_gives_or_fills_a_block_has_its_contents_recorded() {
    let mut with_blocks = 0;
    for (number, function) in abi::FUNCTIONS.iter().enumerate() {
        let gives = memory(number);
        match function.name {
            _ if gives_a_block(function) => assert_ne!(gives, Memory::Nothing, "{}", function.name),
            "memory_allocate" => assert_eq!(gives, Memory::ZeroPages),
            "memory_grow" => assert_eq!(gives, Memory::MorePages),
            "memory_reserve" => assert_eq!(gives, Memory::Window),
            "stream_read" => assert_eq!(gives, Memory::OfArgument(0)),
            "dma_end" => assert_eq!(gives, Memory::OfArgument(1)),
            name if name.contains("_receive") => assert_eq!(gives, Memory::Message, "{name}"),
            name => assert_eq!(gives, Memory::Nothing, "{name}"),
        }
        with_blocks += usize::from(gives != Memory::Nothing);
        if let Memory::OfArgument(index) = gives {
            assert_eq!(function.arguments.get(index), Some(&"block"), "{}", function.name);
        }
    }
    assert!(with_blocks > 18, "{with_blocks}");
}

/// Each function's answer, with all words of the buffer that its handler may have written, and all memory that it names.
#[test]
fn the_answer_of_every_function_is_recorded() {
    let ok = Status::Ok as u64;
    for (number, function) in abi::FUNCTIONS.iter().enumerate() {
        let gives = memory(number);
        // A message of two scalars and one block.
        let message = abi::message_word(1, 2, 1, 0);
        let value = if gives == Memory::Message { message } else { 0x77 };
        let answer = AbiReturn { status: ok, value };
        let buffer: Vec<u64> = (100..100 + abi::limits::MESSAGE_WORDS as u64).collect();
        let written = &buffer[..call_words::words_out(number as u64, &answer)];
        let expected = match gives {
            Memory::Message => Some(Named { handle: 102, address: 103, bytes: 104 }),
            Memory::NewBlock | Memory::Detached | Memory::Completed | Memory::ZeroBlock | Memory::RestOfBlock => {
                Some(Named { handle: 0x77, address: 100, bytes: 101 })
            }
            Memory::ZeroPages | Memory::Window => {
                Some(Named { handle: 0, address: 0x77, bytes: 3 * PAGE_BYTES as u64 })
            }
            Memory::MorePages => Some(Named { handle: 0, address: 0x77, bytes: 5 * PAGE_BYTES as u64 }),
            Memory::Nothing | Memory::OfArgument(_) => None,
        };
        assert_eq!(named(number, [3, 5], (ok, value), written).next(), expected, "{}", function.name);
        let refused = named(number, [3, 5], (Status::BadHandle as u64, value), written);
        assert_eq!(refused.count(), 0, "{}: a call that failed gives nothing", function.name);
    }
}

#[test]
fn blocks_that_return_with_a_closed_channel_are_recorded() {
    let receive = recording::effects::function("channel_receive").expect("one");
    let answer = AbiReturn { status: Status::Closed as u64, value: 0 };
    let mut buffer = [0; abi::limits::MESSAGE_WORDS];
    buffer[..7].copy_from_slice(&[2, 11, 12, 13, 21, 22, 23]);
    let written = &buffer[..call_words::words_out(receive as u64, &answer)];
    let mut pieces = Pieces::none();
    add_memory(receive, &[5, 6], &answer, written, &mut pieces);
    let places: Vec<(u64, u64)> = pieces.as_slice().iter().map(|piece| (piece.address, piece.bytes)).collect();
    assert_eq!(places, [(12, 13), (22, 23)]);
}

/// Nothing of their return is written, so there must be nothing to write.
#[test]
fn functions_whose_plain_returns_are_counted_give_no_words_and_no_memory() {
    let all = (0..abi::FUNCTIONS.len()).filter_map(|function| Some((function, effects::counted(function)?)));
    let mut found = 0;
    for (function, (status, value)) in all {
        found += 1;
        let answer = AbiReturn { status, value };
        assert_eq!(call_words::words_out(function as u64, &answer), 0, "{}", abi::FUNCTIONS[function].name);
        let gives_memory = match effects::memory(function) {
            Memory::Nothing => false,
            Memory::Completed => effects::named(function, [1, 2], (status, value), &[3; 5]).next().is_some(),
            _ => status == Status::Ok as u64,
        };
        assert!(!gives_memory && !is_device_open(function), "{}", abi::FUNCTIONS[function].name);
    }
    assert_eq!(found, 14);
    let waits = abi::FUNCTIONS.iter().position(|function| function.name == "thread_sleep").expect("one");
    assert_eq!(effects::counted(waits), None);
}

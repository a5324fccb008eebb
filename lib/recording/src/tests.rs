use super::*;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec;

fn event(number: u64, process: u64) -> Event {
    let block = |address, content| Block { address, bytes: 13, content };
    Event {
        number,
        process,
        thread: 7,
        kind: EventKind::Returned,
        function: 3,
        status: 1,
        words: vec![11],
        buffer: vec![1, 2, 3],
        check: None,
        blocks: vec![block(64, Content::Zero), block(128, Content::Bytes([5, 6].into()))],
    }
}

fn file(events: &[&[Event]], count: u64) -> Vec<u8> {
    let chunks = events.iter().map(|some| {
        let mut chunk = Filling::default();
        some.iter().for_each(|event| event.write(&mut chunk, &Known::new()));
        chunk.complete().expect("events").to_vec()
    });
    file_with(&chunks.collect::<Vec<_>>(), count)
}

fn file_with(chunks: &[Vec<u8>], count: u64) -> Vec<u8> {
    let header = Header { functions: abi::TABLE_ID, arenas: [(1, 2), (3, 4), (5, 6), (7, 8)], system_bytes: 9 };
    let mut bytes = chunk_of(Chunk::Header, header.words());
    bytes.extend(chunk_of(Chunk::System, [u64::from_le_bytes(*b"abcdefgh"), u64::from(b'i')]));
    chunks.iter().for_each(|chunk| bytes.extend(chunk));
    bytes.extend(chunk_of(Chunk::End, [count]));
    bytes
}

#[test]
fn events_of_several_processors_are_read_in_order() {
    let file = file(&[&[event(1, 5), event(2, 6)], &[event(0, 5)]], 3);
    let all = Reader::new(&file).expect("a recording");
    assert_eq!(all.system(), b"abcdefghi");
    assert_eq!(all.events(), [event(0, 5), event(1, 5), event(2, 6)]);
}

#[test]
fn a_start_keeps_all_its_words() {
    let started = Started {
        entry: 1,
        argument: 2,
        thread_block: 3,
        image: 4,
        writes_to_machine: true,
        in_domain: false,
        has_own_data: true,
        identity: core::array::from_fn(|at| at as u8),
        program: "shell".into(),
    };
    let buffer = vec![u64::from_le_bytes(*b"shell\0\0\0")];
    let words = started.words().to_vec();
    let event = Event { kind: EventKind::Started, words, buffer, blocks: vec![], ..event(0, 1) };
    assert_eq!(event.started(), Some(started));
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused() {
    let whole = file(&[&[event(0, 5)]], 1);
    for length in 0..whole.len() {
        let error = Reader::new(&whole[..length]).expect_err("a part");
        assert!(matches!(error, RecordingError::Cut { .. } | RecordingError::Foreign), "{length}: {error}");
    }
}

#[test]
fn a_file_with_any_bit_changed_is_refused() {
    let whole = file(&[&[event(0, 5)]], 1);
    for at in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[at / 8] ^= 1 << (at % 8);
        Reader::new(&bytes).expect_err("damage");
    }
}

#[test]
fn a_missing_chunk_of_events_is_damage() {
    assert!(matches!(Reader::new(&file(&[&[event(0, 5)]], 2)), Err(RecordingError::Damaged { .. })));
}

#[test]
fn another_format_and_other_functions_are_named() {
    let mut bytes = file(&[], 0);
    bytes[4] = 9;
    let error = Reader::new(&bytes).expect_err("another").to_string();
    assert!(error.starts_with("has format 9 of recordings"), "{error}");
    let header = Header { functions: 1, arenas: [(0, 0); 4], system_bytes: 0 };
    let bytes = chunk_of(Chunk::Header, header.words());
    assert_eq!(Reader::new(&bytes).err(), Some(RecordingError::Functions));
    assert_eq!(Reader::new(b"#!/bin/sh\n").err(), Some(RecordingError::Foreign));
}

#[test]
fn events_of_any_words_in_a_row_come_back() {
    let mut next = pseudorandom(5);
    let kinds = [EventKind::Started, EventKind::Called, EventKind::Returned, EventKind::Opened, EventKind::Ended];
    let all: Vec<Event> = (0..2_000)
        .map(|number| {
            let words = (0..next(12)).map(|_| 1 << 56 | next(1 << 30)).collect();
            let buffer = (0..next(70)).map(|_| next(300)).collect();
            let block = Block { address: next(1 << 31), bytes: next(9), content: Content::Left };
            let blocks = vec![block; next(3) as usize];
            let kind = kinds[next(5) as usize];
            let (process, thread, status) = (next(3), next(2), next(2));
            let function = ["thread_sleep", "heap_split"][next(2) as usize];
            let function = effects::function(function).expect("one") as u8;
            Event { number, process, thread, kind, function, status, words, buffer, check: None, blocks }
        })
        .collect();
    let (some, others): (Vec<Event>, Vec<Event>) = all.iter().cloned().partition(|event| event.number % 3 == 0);
    let file = file(&[&some[..100], &others, &some[100..]], all.len() as u64);
    assert_eq!(Reader::new(&file).expect("a recording").events(), all);
}

/// The bytes of a file with one chunk of events.
fn file_of(mut chunk: Filling) -> Vec<u8> {
    let mut bytes = file(&[], 0);
    bytes.truncate(bytes.len() - chunk_of(Chunk::End, [0]).len());
    let count = chunk.events();
    bytes.extend(chunk.complete().expect("events"));
    bytes.extend(chunk_of(Chunk::End, [count]));
    bytes
}

fn pseudorandom(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    }
}

#[test]
fn whole_calls_are_read_as_calls_and_returns() {
    let send = effects::function("channel_send").expect("one") as u8;
    let mut next = pseudorandom(7);
    let mut chunk = Filling::default();
    let mut expected: Vec<Event> = Vec::new();
    // Two other calls begin and end in every third one; the first has its number, and is written before it.
    for number in 0..300u64 {
        let (process, thread, since_call) = (number / 50, number / 7 % 3, if number % 3 == 2 { 2 } else { 0 });
        let written = (0..number % 4 * 7).map(|_| next(1 << 20) << next(40)).collect::<Vec<u64>>();
        let (check, status) = (next(256) as u8, number % 2);
        let whole = Whole { number, since_call, process, thread, function: send, check, plain: 0, status };
        Event::write_whole(&mut chunk, &whole, (number % 4, &written), 0);
        let event = |kind, status, words, buffer, check| Event {
            number,
            process,
            thread,
            kind,
            function: send,
            status,
            words,
            buffer,
            check,
            blocks: vec![],
        };
        let at = expected.len() - (2 * since_call as usize).saturating_sub(1);
        expected.insert(at, event(EventKind::Called, 0, vec![], vec![], Some(check)));
        expected.push(event(EventKind::Returned, status, vec![number % 4], written, None));
    }
    expected.iter_mut().zip(0..).for_each(|(event, number)| event.number = number);
    assert_eq!(chunk.events(), 600);
    let all = Reader::new(&file_of(chunk)).expect("a recording").into_events();
    assert_eq!(all.len(), expected.len());
    all.iter().zip(&expected).for_each(|(found, event)| assert_eq!(found, event));
}

#[test]
fn a_call_without_its_words_has_a_check() {
    let mut chunk = Filling::default();
    let call = |thread, check| Unreturned { number: 0, process: 5, thread, call: Some((9, check)), plain: 0 };
    Event::write_unreturned(&mut chunk, &call(6, 0xab));
    Event::write_unreturned(&mut chunk, &call(7, 0xff));
    let all = Reader::new(&file_of(chunk)).expect("a recording").into_events();
    let found: Vec<_> = all.iter().map(|event| (event.number, event.thread, event.kind, event.check)).collect();
    assert_eq!(found, [(0, 6, EventKind::Called, Some(0xab)), (1, 7, EventKind::Called, Some(0xff))]);
    assert_eq!(Reader::new(&file(&[&all], 2)).expect("a recording").events(), all);
}

#[test]
fn plain_calls_come_right_after_the_last_return_of_their_thread() {
    use EventKind::{Called, Ended, Returned};
    let mut chunk = Filling::default();
    let whole = |number, thread, since_call, plain| Whole {
        number,
        since_call,
        process: 1,
        thread,
        function: 7,
        check: 0,
        plain,
        status: 0,
    };
    Event::write_whole(&mut chunk, &whole(0, 20, 0, 0), (1, &[]), 0);
    Event::write_whole(&mut chunk, &whole(1, 30, 0, 0), (1, &[]), 0);
    // This thread made two plain calls before the other's return, or after it: before is what may have been.
    Event::write_whole(&mut chunk, &whole(2, 20, 0, 2), (1, &[]), 0);
    Event::write_unreturned(
        &mut chunk,
        &Unreturned { number: 3, process: 1, thread: 30, call: Some((8, 4)), plain: 1 },
    );
    // And this one another before it was ended.
    Event::write_unreturned(&mut chunk, &Unreturned { number: 3, process: 1, thread: 20, call: None, plain: 1 });
    Event::write_head(&mut chunk, (Ended, 0), [3, 1, 0, 0], (&[0], &[], 0));
    let all = Reader::new(&file_of(chunk)).expect("a recording").into_events();
    let found: Vec<_> = all.iter().map(|event| (event.thread, event.kind, event.function)).collect();
    let plain = |thread| [(thread, Called, ANY_FUNCTION), (thread, Returned, ANY_FUNCTION)];
    let whole = |thread| [(thread, Called, 7), (thread, Returned, 7)];
    let expected: [&[_]; 8] = [
        &whole(20),
        &plain(20),
        &plain(20),
        &whole(30),
        &plain(30),
        &whole(20),
        &plain(20),
        &[(30, Called, 8), (0, Ended, 0)],
    ];
    assert_eq!(found, expected.concat());
    assert!(all.iter().zip(0..).all(|(event, number)| event.number == number));
}

#[test]
fn blocks_of_a_message_are_those_that_its_words_name() {
    let receive = effects::function("channel_receive").expect("one") as u8;
    let value = abi::message_word(7, 1, 2, 0);
    let written = [99, 11, 64, 16, 12, 128, 8];
    let whole =
        Whole { number: 0, since_call: 0, process: 1, thread: 2, function: receive, check: 0, plain: 0, status: 0 };
    let block = |address, bytes, content| Block { address, bytes, content };
    let of = |pieces: &[(u64, u64, &[u64])]| {
        let mut chunk = Filling::default();
        Event::write_whole(&mut chunk, &whole, (value, &written), pieces.len());
        for (address, bytes, words) in pieces {
            let contents: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let head = (*address, *bytes, Content::Bytes(()));
            Event::write_block(&mut chunk, head, &Known::new(), &contents.as_slice());
        }
        Reader::new(&file_of(chunk)).expect("a recording").into_events().remove(1).blocks
    };
    assert_eq!(of(&[]), [block(64, 16, Content::Left), block(128, 8, Content::Left)]);
    let second = [block(64, 16, Content::Left), block(128, 8, Content::Bytes([5].into()))];
    assert_eq!(of(&[(128, 8, &[5])]), second);
    assert_eq!(of(&[(64, 16, &[3, 4])])[1], block(128, 8, Content::Left));

    let allocate = effects::function("heap_allocate").expect("one") as u8;
    let mut chunk = Filling::default();
    Event::write_whole(&mut chunk, &Whole { function: allocate, ..whole }, (13, &[256, 32]), 0);
    Event::write_whole(&mut chunk, &Whole { number: 1, status: 4, function: allocate, ..whole }, (13, &[256, 32]), 0);
    let all = Reader::new(&file_of(chunk)).expect("a recording").into_events();
    assert_eq!(all[1].blocks, [block(256, 32, Content::Zero)]);
    assert_eq!(all[3].blocks, [], "a call that failed gives nothing");
}

#[test]
fn a_digest_is_of_order_and_place() {
    let none = Digest::default();
    let all = [
        none.with(1, &[2, 3], &[]),
        none.with(1, &[3, 2], &[]),
        none.with(2, &[2, 3], &[]),
        none.with(1, &[2], &[]).with(1, &[3], &[]),
        none.with(1, &[3], &[]).with(1, &[2], &[]),
        none.with(1, &[2], &[]),
    ];
    assert_eq!(none.with(1, &[2, 3], &[]), none.with(1, &[2], &[3]));
    let different: alloc::collections::BTreeSet<u64> = all.iter().map(|digest| digest.0).collect();
    assert_eq!(different.len(), all.len());
    // A word that differs in one bit is another check in all but few cases.
    let check = |word| none.with(7, &[word, 1], &[5; 10]).check();
    let same = (0..64).filter(|bit| check(1 << bit) == check(0)).count();
    assert!(same <= 4, "{same}");
}

#[test]
fn a_call_that_never_returned_comes_before_what_has_its_number() {
    let of = |number, process, kind| Event { kind, blocks: vec![], ..event(number, process) };
    let calls = [of(0, 5, EventKind::Returned), of(1, 5, EventKind::Called), of(1, 6, EventKind::Called)];
    let others = [of(1, 7, EventKind::Returned), of(2, 7, EventKind::Ended)];
    let all = Reader::new(&file(&[&others, &calls], 5)).expect("a recording").into_events();
    let order: Vec<(u64, u64)> = all.iter().map(|event| (event.number, event.process)).collect();
    assert_eq!(order, [(0, 5), (1, 5), (2, 6), (3, 7), (4, 7)]);
}

#[test]
fn contents_that_are_in_the_recording_are_only_named() {
    let known = Known::new();
    known.set_key([3, 4]);
    let content = |first: u64| Content::Bytes((first..first + 100).collect());
    let of = |number: u64, first: u64, bytes: u64| Event {
        blocks: vec![Block { address: number << 20, bytes, content: content(first) }],
        ..event(number, 1)
    };
    // The last word of some is filled up.
    let all = [of(0, 1, 800), of(1, 2, 800), of(2, 1, 800), of(3, 1, 800), of(4, 1, 797), of(5, 2, 800)];
    let all = all.map(|mut event| {
        let Block { bytes, content: Content::Bytes(words), .. } = &mut event.blocks[0] else {
            panic!("they have bytes")
        };
        if *bytes == 797 {
            Arc::get_mut(words).expect("nobody shares them")[99] &= u64::MAX >> 24;
        }
        event
    });
    let mut chunks = [Filling::default(), Filling::default()];
    all.iter().for_each(|event| event.write(&mut chunks[event.number as usize % 2], &known));
    let lengths = chunks.each_ref().map(Filling::length);
    // Three of six have bytes, and the second processor's chunk, which names contents of the first, is written before.
    assert!(lengths.iter().sum::<usize>() < 3 * 800 + 400, "{lengths:?}");
    let [mut first, mut second] = chunks;
    let chunks = [second.complete().expect("events").to_vec(), first.complete().expect("events").to_vec()];
    let file = file_with(&chunks, 6);
    let read = Reader::new(&file).expect("a recording");
    assert_eq!(read.events(), all);
    let blocks: Vec<&Content<Words>> = read.events().iter().map(|event| &event.blocks[0].content).collect();
    let (Content::Bytes(one), Content::Bytes(same)) = (blocks[0], blocks[2]) else { panic!("they have bytes") };
    assert!(Arc::ptr_eq(one, same), "they share them");

    // Without the chunk that has them.
    let damaged = Reader::new(&file_with(&chunks[..1], 3)).expect_err("a name of nothing");
    assert!(matches!(damaged, RecordingError::Damaged { .. }), "{damaged}");
}

/// Looked up as one thing, and another when it is copied, as code in a domain could have it.
struct Changing<'a>(&'a [u8], &'a [u8]);

impl Contents for Changing<'_> {
    fn words(&self, first: usize) -> [u64; 8] {
        self.0.words(first)
    }

    fn copy(&self, first: usize, into: &mut [u8]) {
        self.1.copy(first, into);
    }
}

#[test]
fn contents_that_change_while_they_are_looked_up_are_named_by_what_was_copied() {
    static KNOWN: Known = Known::new();
    KNOWN.set_key([7, 8]);
    let (before, after) = ([1_u8; 512], [2_u8; 512]);
    let function = effects::function("device_complete").expect("one") as u8;
    let whole = Whole { number: 0, since_call: 0, process: 1, thread: 2, function, check: 0, plain: 0, status: 0 };
    let mut chunk = Filling::default();
    let head = (64, 512, Content::Bytes(()));
    Event::write_whole(&mut chunk, &whole, (9, &[]), 4);
    Event::write_block(&mut chunk, head, &KNOWN, &Changing(&before, &after));
    // The first of these is not in the recording yet, the others are.
    for contents in [&before, &before, &after] {
        Event::write_block(&mut chunk, head, &KNOWN, &contents.as_slice());
    }
    let blocks = Reader::new(&file_of(chunk)).expect("a recording").into_events().remove(1).blocks;
    let found: Vec<u64> = blocks
        .into_iter()
        .map(|block| match block.content {
            Content::Bytes(words) => words[0] & 0xff,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(found, [2, 1, 1, 2]);
}

use super::*;
use alloc::string::ToString;
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
        blocks: vec![block(64, Content::Zero), block(128, Content::Bytes(vec![5, 6]))],
    }
}

fn file(events: &[&[Event]], count: u64) -> Vec<u8> {
    let header = Header { functions: functions(), arenas: [(1, 2), (3, 4), (5, 6), (7, 8)], system_bytes: 9 };
    let mut bytes = chunk_of(Chunk::Header, header.words());
    bytes.extend(chunk_of(Chunk::System, [u64::from_le_bytes(*b"abcdefgh"), u64::from(b'i')]));
    for some in events {
        let mut chunk = Filling::default();
        some.iter().for_each(|event| event.write(&mut chunk));
        bytes.extend(chunk.complete().expect("events"));
    }
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
    let mut seed = 5u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let kinds = [EventKind::Started, EventKind::Called, EventKind::Returned, EventKind::Opened, EventKind::Ended];
    let all: Vec<Event> = (0..2_000)
        .map(|number| {
            let words = (0..next(12)).map(|_| 1 << 56 | next(1 << 30)).collect();
            let buffer = (0..next(70)).map(|_| next(300)).collect();
            let block = Block { address: next(1 << 31), bytes: next(9), content: Content::Left };
            let blocks = vec![block; next(3) as usize];
            let kind = kinds[next(5) as usize];
            let (process, thread, function, status) = (next(3), next(2), next(4) as u8, next(2));
            Event { number, process, thread, kind, function, status, words, buffer, blocks }
        })
        .collect();
    let (some, others): (Vec<Event>, Vec<Event>) = all.iter().cloned().partition(|event| event.number % 3 == 0);
    let file = file(&[&some[..100], &others, &some[100..]], all.len() as u64);
    assert_eq!(Reader::new(&file).expect("a recording").events(), all);
}

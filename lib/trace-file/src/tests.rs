//! Files of a small system, taken apart again.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use abi::{StreamRecord, TraceKind};

use crate::{Follow, Format, Names, Writer};

const CAT: u64 = 7;
const SERVER: u64 = 3;
const DISK: u64 = 2;
const ENDPOINT: u64 = 0x100;

fn names() -> Names {
    let mut names = Names::default();
    for (id, name) in [(CAT, "cat"), (SERVER, "ext2-fs"), (DISK, "file-disk")] {
        names.add_process(id, name.to_string());
    }
    names.add_contract("File".into(), vec!["Read".into(), "Data \"quoted\"".into()]);
    names
}

fn event(time_ns: u64, runner: u64, kind: TraceKind, [a, b, c]: [u64; 3]) -> StreamRecord {
    let kind = kind as u64 | (runner & 1) << 32;
    StreamRecord { time_ns, process: runner, thread: runner << 8, runner, kind, a, b, c }
}

/// `cat` asks, waits, and receives; the server reads the disk meanwhile.
fn events() -> Vec<StreamRecord> {
    use TraceKind::{Blocked, Received, RequestBegun, RequestDone, Resumed, Sent};
    let answer = StreamRecord::message_of(0, 1);
    vec![
        event(1_000, CAT, Resumed, [0; 3]),
        event(2_000, CAT, Sent, [ENDPOINT + 1, 1, 0]),
        event(3_000, CAT, Blocked, [0; 3]),
        event(3_500, SERVER, Resumed, [0; 3]),
        event(4_000, SERVER, Received, [ENDPOINT + 1, 1, 0]),
        event(4_500, DISK, Resumed, [0; 3]),
        event(5_000, DISK, RequestBegun, [0x55, 0, 4096]),
        event(5_100, DISK, RequestBegun, [0x56, 1, 512]),
        event(6_000, DISK, RequestDone, [0x55, 0, 0]),
        event(6_500, DISK, Blocked, [0; 3]),
        event(7_000, SERVER, Sent, [ENDPOINT, 1, answer]),
        event(8_000, SERVER, Blocked, [0; 3]),
        event(9_000, CAT, Resumed, [0; 3]),
        event(9_100, CAT, Received, [ENDPOINT, 1, answer]),
    ]
}

fn written(format: Format, events: &[StreamRecord]) -> Vec<u8> {
    let mut writer = Writer::new(format);
    for event in events {
        writer.add(event, &names());
    }
    writer.lost(5, 9_200);
    writer.finish();
    writer.take()
}

/// A field of a protobuf message.
#[derive(Debug)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a byte");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return value;
        }
    }
    panic!("a number of more than ten bytes")
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_first_chunk().expect("eight bytes");
                bytes = rest;
                Field::Number(u64::from_le_bytes(*number))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(content)
            }
            other => panic!("wire type {other}"),
        };
        found.push((key >> 3, field));
    }
    found
}

fn number(fields: &[(u64, Field<'_>)], wanted: u64) -> Option<u64> {
    fields.iter().find_map(|(number, field)| match field {
        Field::Number(value) if *number == wanted => Some(*value),
        _ => None,
    })
}

fn part<'a>(fields: &[(u64, Field<'a>)], wanted: u64) -> Option<&'a [u8]> {
    fields.iter().find_map(|(number, field)| match field {
        Field::Bytes(value) if *number == wanted => Some(*value),
        _ => None,
    })
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// What a Perfetto file says: slices and instants by the name of their track, and the flows.
#[derive(Default)]
struct Read {
    tracks: BTreeMap<u64, String>,
    slices: Vec<(String, String, u64, u64)>,
    instants: Vec<(String, String, u64)>,
    begun: Vec<u64>,
    ended: Vec<u64>,
}

fn read(file: &[u8]) -> Read {
    let mut read = Read::default();
    let mut open: BTreeMap<u64, (String, u64)> = BTreeMap::new();
    for (field, packet) in fields(file) {
        let Field::Bytes(packet) = packet else { panic!("a file has packets alone") };
        assert_eq!(field, 1);
        let packet = fields(packet);
        assert_eq!(number(&packet, 10), Some(1));
        if let Some(descriptor) = part(&packet, 60) {
            let descriptor = fields(descriptor);
            let inner = [(2, None), (3, Some(6)), (4, Some(5))].into_iter().find_map(|(field, inner)| {
                let found = part(&descriptor, field)?;
                inner.map_or(Some(found), |inner| part(&fields(found), inner))
            });
            let uuid = number(&descriptor, 1).expect("a track has a number");
            assert!(read.tracks.insert(uuid, text_of(inner.expect("a name"))).is_none(), "declared twice");
            if let Some(parent) = number(&descriptor, 5) {
                assert!(read.tracks.contains_key(&parent));
            }
            continue;
        }
        let at_ns = number(&packet, 8).expect("an event has a time");
        let event = fields(part(&packet, 11).expect("a track event"));
        let track = number(&event, 11).expect("an event has a track");
        let title = read.tracks.get(&track).expect("a track is declared before its events").clone();
        let name = part(&event, 23).map(text_of);
        match number(&event, 9) {
            Some(1) => assert!(open.insert(track, (name.expect("a slice has a name"), at_ns)).is_none()),
            Some(2) => {
                let (name, from_ns) = open.remove(&track).expect("a slice that ends has begun");
                read.slices.push((title, name, from_ns, at_ns));
            }
            Some(3) => read.instants.push((title, name.expect("an instant has a name"), at_ns)),
            other => panic!("event of type {other:?}"),
        }
        read.begun.extend(number(&event, 47));
        read.ended.extend(number(&event, 48));
    }
    assert!(open.is_empty());
    read
}

#[test]
fn perfetto_gets_threads_waits_messages_and_requests() {
    let file = written(Format::Perfetto, &events());
    let read = read(&file);
    let has = |track: &str, name: &str, from_ns, to_ns| {
        let wanted = (track.to_string(), name.to_string(), from_ns, to_ns);
        assert!(read.slices.contains(&wanted), "no {wanted:?} in {:?}", read.slices);
    };
    has("cat thread 1", "run", 1_000, 3_000);
    has("cat thread 1", "wait for File.Data \"quoted\"", 3_000, 9_000);
    has("ext2-fs thread 1", "run", 3_500, 8_000);
    has("processor 1", "cat (7)", 1_000, 3_000);
    has("requests 1", "read 4096 bytes", 5_000, 6_000);
    has("requests 2", "write 512 bytes, not done", 5_100, 9_100);
    let instants: Vec<&str> = read.instants.iter().map(|(_, name, _)| name.as_str()).collect();
    assert!(instants.contains(&"send File.Read") && instants.contains(&"receive File.Read"), "{instants:?}");
    assert!(instants.contains(&"5 events lost"));
    assert_eq!(read.begun.len(), 2);
    assert_eq!(read.begun, read.ended, "each message that is received has been sent");
    assert_ne!(read.begun[0], read.begun[1]);
    for title in ["cat", "ext2-fs", "file-disk", "processors"] {
        assert!(read.tracks.values().any(|name| name == title), "no {title}");
    }
}

#[test]
fn slices_of_a_track_do_not_overlap() {
    let mut slices = read(&written(Format::Perfetto, &events())).slices;
    slices.sort_by(|one, other| (&one.0, one.2).cmp(&(&other.0, other.2)));
    for pair in slices.windows(2) {
        assert!(pair[0].0 != pair[1].0 || pair[0].3 <= pair[1].2, "{pair:?}");
    }
}

#[test]
fn json_says_the_same() {
    let file = written(Format::Json, &events());
    let file: serde_json::Value = serde_json::from_slice(&file).expect("JSON");
    let events = file["traceEvents"].as_array().expect("events");
    let ids = |phase: &str| -> Vec<String> {
        let of_phase = events.iter().filter(|event| event["ph"] == phase);
        of_phase.map(|event| event["id"].as_str().expect("an id").to_string()).collect()
    };
    assert_eq!((ids("s").len(), ids("s")), (2, ids("f")));
    let wait = events.iter().find(|event| event["name"] == "wait for File.Data \"quoted\"").expect("the wait");
    assert_eq!((wait["pid"].as_u64(), wait["ts"].as_f64(), wait["dur"].as_f64()), (Some(7), Some(3.0), Some(6.0)));
    assert!(events.iter().any(|event| event["name"] == "process_name" && event["args"]["name"] == "ext2-fs"));
}

#[test]
fn text_has_a_line_for_each_event() {
    let file = text_of(&written(Format::Text, &events()));
    assert_eq!(file.lines().count(), events().len() + 1, "{file}");
    assert!(file.contains("0.000002000 [1] cat (7) send File.Read as "), "{file}");
    assert!(file.contains("0.000005000 [0] file-disk (2) read 4096 bytes begun, block 55\n"), "{file}");
    assert!(file.ends_with("0.000009200 5 events lost\n"), "{file}");
}

#[test]
fn a_process_is_followed_with_its_children_and_its_messages() {
    let mut follow = Follow::new([CAT]);
    let kept: Vec<u64> = events().iter().filter(|event| follow.keeps(event)).map(|event| event.time_ns).collect();
    assert_eq!(kept, [1_000, 2_000, 3_000, 4_000, 7_000, 9_000, 9_100]);
    let mut follow = Follow::new([CAT]);
    assert!(follow.keeps(&event(1, CAT, TraceKind::ChildCreated, [SERVER, 0, 0])));
    assert!(follow.keeps(&event(2, SERVER, TraceKind::Blocked, [0; 3])));
    assert!(!follow.keeps(&event(2, DISK, TraceKind::Blocked, [0; 3])));
}

#[test]
fn a_file_of_any_events_is_well_formed() {
    // Events as they are after losses: ends without beginnings, kinds that are not known, names that are not.
    let mut seed = 1_u64;
    let mut random = |below: u64| {
        seed = crate::story::mixed(seed);
        seed % below
    };
    let mut events = Vec::new();
    for time_ns in 0..2_000 {
        let runner = random(4);
        let kind = random(32) | random(3) << 32;
        let [a, b, c] = [random(6), random(5), random(1 << 18)];
        events.push(StreamRecord { time_ns, process: random(4), thread: random(3), runner, kind, a, b, c });
    }
    let _ = read(&written(Format::Perfetto, &events));
    let json = written(Format::Json, &events);
    let _: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let text = text_of(&written(Format::Text, &events));
    assert!(text.lines().count() > 1_000, "{}", format!("{text:.200}"));
}

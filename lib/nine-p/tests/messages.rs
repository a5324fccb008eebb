//! Messages round-trip, and malformed bytes are rejected.

use nine_p::{
    Attributes, Changes, Data, ENTRY_BYTES, Entry, HEADER_BYTES, Qid, Reply, Request, Text, entries, message_bytes,
};
use proptest::prelude::*;

const QID: Qid = Qid { kind: Qid::DIRECTORY, version: 7, path: 0x1122_3344_5566_7788 };

fn requests() -> Vec<Request<'static>> {
    let (name, fid, mode, group) = (Text(b"caf\xe9"), 5, 0o644, 0);
    vec![
        Request::Version { max_bytes: 8192, version: Text(nine_p::VERSION) },
        Request::Attach {
            fid,
            authentication: nine_p::NO_FID,
            user: Text(b"u"),
            folder: Text(b""),
            user_number: u32::MAX,
        },
        Request::Walk { fid, new_fid: 6, names: vec![name; nine_p::MAX_NAMES] },
        Request::Walk { fid, new_fid: 6, names: Vec::new() },
        Request::Open { fid, flags: nine_p::open_flags::READ_WRITE },
        Request::Create { fid, name, flags: nine_p::open_flags::EXCLUSIVE, mode, group },
        Request::Read { fid, offset: 1 << 40, count: 10 },
        Request::Write { fid, offset: 3, data: Data(b"content") },
        Request::ReadEntries { fid, offset: 9, count: 100 },
        Request::GetAttributes { fid, wanted: Attributes::BASIC },
        Request::SetAttributes { fid, changes: Changes { valid: Changes::SIZE, size: 77, ..Changes::default() } },
        Request::ReadLink { fid },
        Request::Sync { fid, data_only: 0 },
        Request::MakeDirectory { fid, name, mode, group },
        Request::MakeLink { fid, name, target: Text(b"../x"), group },
        Request::HardLink { directory: 4, fid, name },
        Request::Rename { from: 1, old_name: name, to: 2, new_name: Text(b"n") },
        Request::Unlink { fid, name, flags: nine_p::UNLINK_DIRECTORY },
        Request::Forget { fid },
    ]
}

fn replies() -> Vec<Reply<'static>> {
    vec![
        Reply::Failed { error: nine_p::errno::ENOENT },
        Reply::Version { max_bytes: 8192, version: Text(b"unknown") },
        Reply::Attached { qid: QID },
        Reply::Walked { qids: vec![QID; 3] },
        Reply::Opened { qid: QID, unit: 0 },
        Reply::Created { qid: QID, unit: 0 },
        Reply::ReadDone { data: Data(b"content") },
        Reply::Written { count: 7 },
        Reply::EntriesRead { data: Data(b"") },
        Reply::Attributes { attributes: Attributes { size: 9, modified_s: 8, qid: QID, ..Attributes::default() } },
        Reply::AttributesSet {},
        Reply::Target { target: Text(b"/x") },
        Reply::Synced {},
        Reply::DirectoryMade { qid: QID },
        Reply::LinkMade { qid: QID },
        Reply::Linked {},
        Reply::Renamed {},
        Reply::Unlinked {},
        Reply::Forgotten {},
    ]
}

#[test]
fn the_bytes_are_those_of_the_protocol() {
    let mut out = [0; 64];
    let walk = Request::Walk { fid: 1, new_fid: 2, names: vec![Text(b"ab"), Text(b"c")] };
    let bytes = walk.encode(0x0304, &mut out).expect("room");
    assert_eq!(out[..bytes], [24, 0, 0, 0, 110, 4, 3, 1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 2, 0, b'a', b'b', 1, 0, b'c']);
    let bytes = Reply::Attached { qid: QID }.encode(1, &mut out).expect("room");
    assert_eq!(
        out[..bytes],
        [20, 0, 0, 0, 105, 1, 0, 0x80, 7, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]
    );
    // 160 bytes, as Linux's client expects (net/9p/client.c: "qddd" and 14 numbers of 8 bytes).
    let mut out = [0; 256];
    let bytes = Reply::Attributes { attributes: Attributes::default() }.encode(1, &mut out);
    assert_eq!(bytes, Some(160));
}

#[test]
fn every_message_comes_back_and_no_part_of_one_does() {
    let mut out = [0; 1024];
    for request in requests() {
        let bytes = request.encode(9, &mut out).expect("room");
        assert_eq!(message_bytes(&out), Some(bytes));
        assert_eq!(Request::decode(&out[..bytes]), Some((9, request.clone())));
        for part in 0..bytes {
            assert_eq!(Request::decode(&out[..part]), None, "{request:?} cut to {part} bytes");
        }
        assert_eq!(request.encode(9, &mut [0; 1024][..bytes - 1]), None);
    }
    for reply in replies() {
        let bytes = reply.encode(9, &mut out).expect("room");
        assert_eq!(Reply::decode(&out[..bytes]), Some((9, reply.clone())));
        for part in 0..bytes {
            assert_eq!(Reply::decode(&out[..part]), None, "{reply:?} cut to {part} bytes");
        }
    }
}

#[test]
fn what_is_too_long_is_not_written() {
    let mut out = vec![0; 1 << 18];
    let long = vec![b'x'; usize::from(u16::MAX) + 1];
    assert_eq!(Request::Unlink { fid: 1, name: Text(&long), flags: 0 }.encode(1, &mut out), None);
    let names = vec![Text(b"x"); nine_p::MAX_NAMES + 1];
    assert_eq!(Request::Walk { fid: 1, new_fid: 2, names }.encode(1, &mut out), None);
}

#[test]
fn names_are_read_up_to_one_that_is_cut_off() {
    let entry = |name| Entry { qid: QID, offset: 3, kind: Entry::FILE, name };
    let mut data = [0; 128];
    let first = entry(b"one").encode(&mut data).expect("room");
    let second = entry(b"three").encode(&mut data[first..]).expect("room");
    assert_eq!((first, second), (ENTRY_BYTES + 3, ENTRY_BYTES + 5));
    let names = |bytes| entries(&data[..bytes]).map(|entry| entry.name.to_vec()).collect::<Vec<_>>();
    assert_eq!(names(first + second), [b"one".to_vec(), b"three".to_vec()]);
    assert_eq!(names(first + second - 1), [b"one".to_vec()]);
}

proptest! {
    #[test]
    fn whatever_is_read_is_written_back_as_it_was(kind in 0_u8..130, body in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes.extend(&body);
        let length = (bytes.len() as u32).to_le_bytes();
        bytes[..4].copy_from_slice(&length);
        bytes[4] = kind;
        let mut out = [0; 256];
        if let Some((tag, request)) = Request::decode(&bytes) {
            let length = request.encode(tag, &mut out).unwrap();
            prop_assert_eq!(&out[..length], &bytes);
        }
        if let Some((tag, reply)) = Reply::decode(&bytes) {
            let length = reply.encode(tag, &mut out).unwrap();
            prop_assert_eq!(&out[..length], &bytes);
        }
    }
}

//! Tests of the host's sockets as a device.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use abi::sockets::{Command, FIRST_AT, NAME_AT, RECORD_BYTES, TOKEN_AT};

use super::*;
use crate::arena::test_memory;

/// A device, and memory of a machine for its requests.
struct Fixture {
    device: Arc<Sockets>,
    memory: Memory,
}

impl Fixture {
    fn new() -> Self {
        Self { device: Arc::default(), memory: test_memory(1 << 16) }
    }

    fn submit(&self, operation: DeviceOperation, offset: u64, memory: Memory) -> Option<u64> {
        match self.device.submit(0, operation, offset, memory) {
            Submitted::Complete(answer) => Some(answer.expect("an answer") as u64),
            Submitted::Queued => None,
        }
    }

    /// Performs a command; returns the result and the record.
    fn command(&self, command: Command, token: u64, first: u64, name: Name) -> (u64, Vec<u8>) {
        let mut record = vec![0; RECORD_BYTES];
        record[..8].copy_from_slice(&(command as u64).to_le_bytes());
        record[TOKEN_AT..TOKEN_AT + 8].copy_from_slice(&token.to_le_bytes());
        record[FIRST_AT..FIRST_AT + 8].copy_from_slice(&first.to_le_bytes());
        record[NAME_AT..NAME_AT + 24].copy_from_slice(&name.to_bytes());
        self.memory.fill(&record);
        let answer = self.submit(DeviceOperation::Write, CONTROL, self.memory.first(1 << 12)).expect("at once");
        (answer, self.bytes(1 << 12))
    }

    fn bytes(&self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.memory.copy_out(0, &mut bytes);
        bytes
    }

    /// Creates a listener on loopback; returns its token and port.
    fn listen(&self) -> (u64, u16) {
        let local = Name { address: calls::mapped([127, 0, 0, 1]), port: 0, scope: 0 };
        let (answer, record) = self.command(Command::Listen, 0, 16, local);
        assert_eq!(answer, 0);
        (number_at(&record, TOKEN_AT), u16::from_le_bytes([record[NAME_AT + 16], record[NAME_AT + 17]]))
    }

    /// Creates a connection; returns the host's end, and this device's token.
    fn connection(&self) -> (TcpStream, u64) {
        let (listener, port) = self.listen();
        let other = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        let (answer, record) = self.command(Command::Accept, listener, 4, Name::default());
        assert_eq!((answer, number_at(&record, FIRST_AT)), (0, 1));
        (other, number_at(&record, RECORD_BYTES))
    }
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn failed(failure: Failure) -> u64 {
    FAILURE | failure as u64
}

#[test]
fn what_is_kept_is_sent_in_front_of_what_comes_next() {
    let fixture = Fixture::new();
    let (mut other, token) = fixture.connection();
    fixture.memory.fill(b"head");
    assert_eq!(fixture.submit(DeviceOperation::Write, token | MORE, fixture.memory.first(4)), Some(4));
    fixture.memory.fill(b"body");
    assert_eq!(fixture.submit(DeviceOperation::Write, token, fixture.memory.first(4)), Some(4));
    let mut said = [0; 8];
    other.read_exact(&mut said).expect("both");
    assert_eq!(&said, b"headbody");
}

#[test]
fn what_is_kept_and_has_no_room_is_sent_before_what_comes_next() {
    let fixture = Fixture::new();
    let (mut other, token) = fixture.connection();
    let write = |flags, bytes| fixture.submit(DeviceOperation::Write, token | flags, fixture.memory.first(bytes));
    fixture.memory.fill(&[b'x'; 64]);
    let mut filled = 0;
    while let Some(count) = write(0, 64).filter(|count| *count < FAILURE) {
        filled += count as usize;
    }
    fixture.memory.fill(b"head");
    assert_eq!(write(MORE, 4), Some(4));
    fixture.memory.fill(b"body");
    assert_eq!(write(0, 4), Some(failed(Failure::WouldBlock)));
    let mut all = vec![0; filled + 8];
    let mut read = 0;
    let mut sent = 0;
    while read < all.len() {
        if sent < 4 {
            match write(0, 4 - sent).expect("an answer at once") {
                count if count < FAILURE => sent += count as usize,
                answer => assert_eq!(answer, failed(Failure::WouldBlock)),
            }
        }
        let end = all.len().min(read + 1000);
        read += other.read(&mut all[read..end]).expect("something to read");
    }
    assert_eq!(sent, 4);
    assert!(all.ends_with(b"headbody"));
}

#[test]
fn nothing_waits_and_an_end_is_an_answer() {
    let fixture = Fixture::new();
    let (mut other, token) = fixture.connection();
    let read = || fixture.submit(DeviceOperation::Read, token, fixture.memory.first(64));
    assert_eq!(read(), Some(failed(Failure::WouldBlock)));
    other.write_all(b"hello").expect("room");
    assert_eq!(fixture.submit(DeviceOperation::Read, EVENTS, fixture.memory.first(64)), Some(16));
    let event = fixture.bytes(16);
    assert_eq!((number_at(&event, 0), number_at(&event, 8) & READABLE), (token, READABLE));
    assert_eq!(read(), Some(5));
    other.shutdown(Shutdown::Write).expect("open");
    while read() != Some(0) {
        std::thread::yield_now();
    }
}

#[test]
fn closing_the_device_resets_connections_and_forgets_tokens() {
    let fixture = Fixture::new();
    let (mut other, token) = fixture.connection();
    fixture.device.close();
    let error = other.read(&mut [0; 1]).expect_err("no orderly end");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    let again = fixture.submit(DeviceOperation::Read, token, fixture.memory.first(64));
    assert_eq!(again, Some(failed(Failure::BadToken)));
    let (_, second) = fixture.connection();
    assert_ne!(second, token);
    let stale = fixture.submit(DeviceOperation::Read, token, fixture.memory.first(64));
    assert_eq!(stale, Some(failed(Failure::BadToken)));
}

#[test]
fn a_request_that_waits_is_given_up_with_the_device_and_eats_no_event_of_the_next_owner() {
    let fixture = Fixture::new();
    let read = |token| fixture.submit(DeviceOperation::Read, token, fixture.memory.first(64));
    for _ in 0..20 {
        let (_other, token) = fixture.connection();
        assert_eq!(read(token), Some(failed(Failure::WouldBlock)));
        assert_eq!(read(EVENTS), None);
        fixture.device.close();
        assert!(lock(&fixture.device.state).request.is_none());
        let (mut other, token) = fixture.connection();
        assert_eq!(read(token), Some(failed(Failure::WouldBlock)));
        other.write_all(b"hello").expect("room");
        assert_eq!(read(EVENTS), Some(16));
        assert_eq!(number_at(&fixture.bytes(16), 0), token);
        fixture.device.close();
    }
}

#[test]
fn requests_fail_where_they_are_to_but_a_socket_can_be_given_up() {
    let mut fixture = Fixture::new();
    let (_other, token) = fixture.connection();
    Arc::get_mut(&mut fixture.device).expect("nobody else has it").faults = Some(Faults::every(1));
    let memory = fixture.memory.first(64);
    let mut kinds = std::collections::BTreeSet::new();
    for _ in 0..14 {
        match fixture.device.submit(0, DeviceOperation::Read, token, memory) {
            Submitted::Complete(Ok(answer)) => {
                assert!(answer as u64 >= FAILURE);
                kinds.insert(answer);
            }
            Submitted::Complete(Err(DeviceFailure)) => {
                kinds.insert(0);
            }
            Submitted::Queued => panic!("it did not fail"),
        }
    }
    assert!(kinds.len() > 3, "{kinds:?}");
    assert_eq!(fixture.command(Command::Close, token, 0, Name::default()).0, 0);
}

#[test]
fn what_finds_no_room_is_counted() {
    let fixture = Fixture::new();
    let lost = |command, token| {
        let (answer, record) = fixture.command(command, token, 0, Name::default());
        assert_eq!(answer, 0);
        number_at(&record, NAME_AT)
    };
    let local = Name { address: calls::mapped([127, 0, 0, 1]), port: 0, scope: 0 };
    let (_, record) = fixture.command(Command::Bind, 0, 0, local);
    let (token, port) = (number_at(&record, TOKEN_AT), name_port(&record));
    assert_eq!(lost(Command::Describe, token), 0);
    let other = std::net::UdpSocket::bind(("127.0.0.1", 0)).expect("a port");
    for _ in 0..1000 {
        other.send_to(&[0; 8192], ("127.0.0.1", port)).expect("room to send");
    }
    assert!(lost(Command::Describe, token) > 0);
    assert!(lost(Command::Close, token) > 0);

    let (_, record) = fixture.command(Command::Listen, 0, 1, local);
    let (token, port) = (number_at(&record, TOKEN_AT), name_port(&record));
    assert_eq!(lost(Command::Describe, token), 0);
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let wait = std::time::Duration::from_millis(20);
    let _asking: Vec<_> = (0..6).map(|_| TcpStream::connect_timeout(&address, wait)).collect();
    assert!(lost(Command::Close, token) > 0);
}

#[test]
fn an_echo_has_the_hop_limit_of_its_reply() {
    let fixture = Fixture::new();
    let (answer, record) = fixture.command(Command::OpenEcho, 0, 4, Name::default());
    if answer == failed(Failure::NotSupported) {
        eprintln!("skipped: this host lets no program of this user ask for echoes (net.ipv4.ping_group_range)");
        return;
    }
    let token = number_at(&record, TOKEN_AT);
    let remote = Name { address: calls::mapped([127, 0, 0, 1]), port: 0, scope: 0 };
    assert_eq!(fixture.command(Command::SetRemote, token, 0, remote).0, 0);
    fixture.memory.fill(&[8, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(fixture.submit(DeviceOperation::Write, token, fixture.memory.first(8)), Some(8));
    assert_eq!(fixture.submit(DeviceOperation::Read, token, fixture.memory), Some(failed(Failure::BadToken)));
    let read = || fixture.submit(DeviceOperation::Read, token | SENDER, fixture.memory.first(64));
    let mut answer = read();
    while answer == Some(failed(Failure::WouldBlock)) {
        answer = read();
    }
    assert_eq!(answer, Some(8));
    let sender = fixture.bytes(64)[64 - SENDER_BYTES..].to_vec();
    assert_eq!(u16::from_le_bytes([sender[16], sender[17]]), 64, "{sender:?}");
}

fn name_port(record: &[u8]) -> u16 {
    u16::from_le_bytes([record[NAME_AT + 16], record[NAME_AT + 17]])
}

#[test]
fn nonsense_is_refused() {
    let fixture = Fixture::new();
    let bad = failed(Failure::BadCommand);
    assert_eq!(fixture.submit(DeviceOperation::Write, CONTROL, fixture.memory.first(8)), Some(bad));
    fixture.memory.fill(&[0xff; RECORD_BYTES]);
    assert_eq!(fixture.submit(DeviceOperation::Write, CONTROL, fixture.memory.first(RECORD_BYTES)), Some(bad));
    assert_eq!(fixture.submit(DeviceOperation::Read, EVENTS, fixture.memory.first(8)), Some(bad));
    let unknown = failed(Failure::BadToken);
    for token in [0, 1 << 32, u64::from(u32::MAX), MORE - 1] {
        assert_eq!(fixture.submit(DeviceOperation::Read, token, fixture.memory.first(8)), Some(unknown));
        assert_eq!(fixture.command(Command::Accept, token, 1, Name::default()).0, unknown);
    }
    let (listener, _) = fixture.listen();
    assert_eq!(fixture.submit(DeviceOperation::Write, listener, fixture.memory.first(8)), Some(unknown));
    assert_eq!(fixture.command(Command::Accept, listener, 0, Name::default()).0, bad);
}

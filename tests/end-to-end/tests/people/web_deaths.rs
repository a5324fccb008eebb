//! Client, application and server of a request end in each of its states: the others run on, the client gets an error,
//! and nothing leaks.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::{Format, Image, Live, Machine, ask_on, built_system, connect, free_port, slack};
use rustix::net::sockopt::set_socket_linger;

test_needs::needs!(E2fsprogs);

/// Requests that leave server and application in different states.
const STATES: [(&str, &str); 9] = [
    ("the head is not whole", "GET /fault/wait HTTP/1.1\r\nHost: t"),
    ("the application does not answer", "GET /fault/wait HTTP/1.1\r\nHost: t\r\n\r\n"),
    ("the application answers late", "GET /fault/slow?ms=300 HTTP/1.1\r\nHost: t\r\n\r\n"),
    ("the application answers in pieces", "GET /fault/drip?pieces=50&ms=10 HTTP/1.1\r\nHost: t\r\n\r\n"),
    ("the answer has no end, and nobody reads it", "GET /fault/endless HTTP/1.1\r\nHost: t\r\n\r\n"),
    (
        "the application waits for content",
        "POST /fault/echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\nonly this much",
    ),
    (
        "the application waits for the next chunk",
        "POST /fault/echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nthis\r\n",
    ),
    ("content comes that nobody reads", "POST /fault/wait HTTP/1.1\r\nHost: t\r\nContent-Length: 90000\r\n\r\nmore"),
    (
        "two requests wait in a row",
        "GET /fault/slow?ms=200 HTTP/1.1\r\nHost: t\r\n\r\nGET /fault/wait HTTP/1.1\r\nHost: t\r\n\r\n",
    ),
];

/// Delay until a request has reached its state.
const INTO: [Duration; 3] = [Duration::ZERO, Duration::from_millis(2), Duration::from_millis(40)];
/// Timeout until an end is noticed.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Counters that must return to their baseline.
const STEADY: [&str; 6] = ["processes", "threads", "channels", "blocks", "synchronization objects", "stacks"];
/// Maximum additional cached blocks: as many as were in use simultaneously.
const MAX_KEPT_BLOCKS: u64 = 8;

/// How a client closes its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    /// Orderly.
    Close,
    /// By a reset.
    Reset,
    /// Half-closed: it continues to read for a while.
    Half,
}

struct Trial {
    live: Live,
    port: u16,
    _image: Image,
}

impl Trial {
    #[track_caller]
    fn start() -> Trial {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        std::fs::write(folder.path().join("file"), "a file\n").expect("a file can be written");
        let image = Image::of(folder.path(), Format::default());
        let port = free_port();
        let machine = Machine::new().system(built_system("web-faults")).parameter(&format!("web-port={port}"));
        let trial = Trial { live: Live::start(machine.disk(image.path()).command(None)), port, _image: image };
        trial.serves("at first");
        trial
    }

    /// A request in one of the states.
    #[track_caller]
    fn ask(&self, request: &str, into: Duration) -> TcpStream {
        let mut stream = connect(self.port).expect("the server takes connections");
        stream.write_all(request.as_bytes()).expect("the server reads");
        thread::sleep(into);
        stream
    }

    /// Asserts that files and the application are served.
    #[track_caller]
    fn serves(&self, after: &str) {
        let begin = Instant::now();
        for (path, content) in [("/file", "a file\n"), ("/fault/unread", "")] {
            loop {
                let head = format!("GET {path} HTTP/1.1\r\nHost: t");
                let answer = connect(self.port).and_then(|mut stream| ask_on(&mut stream, &head));
                match answer {
                    Ok(answer) if answer.status == 200 => {
                        assert!(content.is_empty() || answer.content == content.as_bytes(), "{after}: {answer:?}");
                        break;
                    }
                    other => assert!(begin.elapsed() < TIMEOUT, "{after}: {path}: {other:?}\n{}", self.live.errors()),
                }
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Waits until resource usage is back at the baseline; caches expire after some time.
    #[track_caller]
    fn steady(&mut self, before: &BTreeMap<String, u64>, after: &str) {
        let begin = Instant::now();
        loop {
            let now = self.live.counters();
            // A boot-time thread may have ended since.
            let count = |counts: &BTreeMap<String, u64>, name: &str| counts.get(name).copied().unwrap_or(0);
            let is_more = |name: &&&str| count(&now, name) > count(before, name) + slack(name, MAX_KEPT_BLOCKS);
            let told: Vec<String> = STEADY
                .iter()
                .filter(is_more)
                .map(|name| format!("{name}: {:?} -> {:?}", before.get(*name), now.get(*name)))
                .collect();
            if told.is_empty() {
                return;
            }
            assert!(begin.elapsed() < TIMEOUT, "{after}: {}", told.join(", "));
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Idle resource usage, after everything was in use once.
    #[track_caller]
    fn counts(&mut self) -> BTreeMap<String, u64> {
        self.serves("at first");
        thread::sleep(Duration::from_millis(2500));
        self.live.counters()
    }

    #[track_caller]
    fn end(self) {
        let errors = self.live.errors();
        for word in ["panic", "this is a bug", "unwrap"] {
            assert!(!errors.contains(word), "`{word}` on standard error:\n{errors}");
        }
        assert_eq!(self.live.end(), Some(0));
    }
}

fn leave(mut stream: TcpStream, how: Leave) {
    match how {
        Leave::Close => {}
        Leave::Reset => set_socket_linger(&stream, Some(Duration::ZERO)).expect("the host lets one reset"),
        Leave::Half => {
            // The server has closed the connection.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.set_read_timeout(Some(Duration::from_millis(5)));
            let _ = stream.read(&mut [0; 100]);
        }
    }
    drop(stream);
}

#[test]
fn clients_end_in_each_state_of_their_requests() {
    let mut trial = Trial::start();
    for round in 0..2 {
        let before = trial.counts();
        for (state, request) in STATES {
            for into in INTO {
                for how in [Leave::Close, Leave::Reset, Leave::Half] {
                    leave(trial.ask(request, into), how);
                }
            }
            trial.serves(state);
        }
        // The first round sets the baseline.
        if round > 0 {
            trial.steady(&before, "after clients ended");
        }
    }
    trial.end();
}

/// Expected result at a client whose server or application ends: a response with such a status, or a closed connection.
#[track_caller]
fn is_told(mut stream: TcpStream, state: &str) {
    let mut all = Vec::new();
    let mut buffer = [0; 64 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => all.extend_from_slice(&buffer[..count.min(4096)]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{state}: {error} after {} bytes", all.len()),
        }
        let text = String::from_utf8_lossy(&all);
        if text.starts_with("HTTP/1.1 502") || text.starts_with("HTTP/1.1 503") {
            return;
        }
        all.truncate(4096);
    }
    // A started response is truncated.
    let text = String::from_utf8_lossy(&all);
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 200") && !text.ends_with("\r\n0\r\n\r\n"), "{state}: {text}");
}

/// Ends a program while a request is in each state.
#[track_caller]
fn is_killed(program: &str) {
    let mut trial = Trial::start();
    let mut before = BTreeMap::new();
    for round in 0..2 {
        if round == 1 {
            before = trial.counts();
        }
        // Waiting for the rest of a head is not a state of the application. The first round sets the baseline, for
        // which a few states are enough.
        for (state, request) in STATES.into_iter().skip(1).take(if round == 0 { 2 } else { STATES.len() }) {
            let stream = trial.ask(request, INTO[2]);
            trial.live.ask(&format!("kill {program}"));
            is_told(stream, state);
            trial.serves(state);
        }
    }
    trial.steady(&before, &format!("after {program} ended"));
    trial.end();
}

#[test]
fn an_application_ends_in_each_state_of_a_request() {
    is_killed("web-fault");
}

#[test]
fn the_server_ends_in_each_state_of_a_request() {
    is_killed("web-server");
}

#[test]
fn the_network_ends_in_each_state_of_a_request() {
    is_killed("host-sockets");
}

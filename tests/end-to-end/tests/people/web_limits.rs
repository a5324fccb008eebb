//! Clients that try to exhaust the web server's time, memory and connections.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::{Format, Image, WebClient, WebTrial};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketType, connect, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

test_needs::needs!(E2fsprogs);

/// Limits of the strict server, as `systems/web-trial.toml` has them.
const HEADER_TIME: Duration = Duration::from_millis(700);
const KEEP_ALIVE_TIME: Duration = Duration::from_millis(1500);
const WRITE_TIME: Duration = Duration::from_millis(1000);
const CONNECTIONS: usize = 32;
const HEADER_BYTES: usize = 4096;
const BODY_BYTES: usize = 100_000;
/// Tolerance on a busy machine.
const GRACE: Duration = Duration::from_secs(5);
/// Maximum bytes per idle connection in each process involved.
const MAX_BYTES_EACH: u64 = 5120;
/// Bytes of a file whose response is one block, and how many responses no socket buffer holds.
const SHORT_BYTES: usize = 2500;
const MANY_SHORT: usize = 6000;
/// Bytes of a file larger than any socket buffer.
const LARGE_BYTES: u64 = 40 << 20;

fn disk() -> Image {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let root = folder.path();
    fs::create_dir(root.join("strict")).expect("a folder can be made");
    fs::write(root.join("index.html"), "<p>here").expect("a file can be written");
    fs::write(root.join("strict/index.html"), "<p>strict").expect("a file can be written");
    for place in ["short", "strict/short"] {
        fs::write(root.join(place), "short".repeat(SHORT_BYTES / 5)).expect("a file can be written");
    }
    let large = fs::File::create(root.join("strict/large")).expect("a file can be made");
    large.set_len(LARGE_BYTES).expect("a file can be long");
    Image::of(root, Format { mebibytes: 64, ..Format::default() })
}

/// A counter of `/status/web` or `/status/web-strict`.
fn counter(trial: &mut WebTrial, file: &str, name: &str) -> u64 {
    let text = trial.shell(&format!("cat /status/{file}"));
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no counter `{name}` in:\n{text}"))
}

/// Waits until no connection to a server is left.
fn wait_for_rest(trial: &mut WebTrial, file: &str) {
    let begin = Instant::now();
    while counter(trial, file, "connections") > 0 {
        assert!(begin.elapsed() < GRACE + KEEP_ALIVE_TIME, "connections are left");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Time until the server closes a connection on which bytes trickle, and its last response.
fn trickle(port: u16, start: &str, byte: &str) -> (Duration, Option<u16>) {
    let mut client = WebClient::connect(port);
    let begin = Instant::now();
    client.send(start);
    while !client.has_ended_within(Duration::from_millis(100)) && begin.elapsed() < HEADER_TIME * 3 + GRACE {
        client.send(byte);
    }
    let took = begin.elapsed();
    (took, client.answer(false).map(|answer| answer.status))
}

#[test]
fn slow_clients_are_let_go() {
    let disk = disk();
    let mut trial = WebTrial::start(&disk.path());
    let port = trial.strict;
    let post = "POST /fault/echo HTTP/1.1\r\nHost: a\r\n";
    let cases = [
        ("a head", "GET / HTTP/1.1\r\nHost: a\r\nX: ".to_string(), "y", Some(408)),
        ("an empty line in front", "\r\n".into(), "\r\n", Some(408)),
        ("nothing", String::new(), "", None),
        (
            "content that nobody wants",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n".into(),
            "y",
            Some(405),
        ),
    ];
    let trickles: Vec<_> = cases
        .into_iter()
        .map(|(what, start, byte, status)| (what, status, thread::spawn(move || trickle(port, &start, byte))))
        .collect();
    let contents: Vec<_> =
        [("Content-Length: 1000\r\n\r\n", "y"), ("Transfer-Encoding: chunked\r\n\r\n", "1\r\ny\r\n")]
            .map(|(fields, byte)| thread::spawn(move || trickle(port, &format!("{post}{fields}"), byte)))
            .into();
    // Slow clients do not delay others.
    for _ in 0..20 {
        assert_eq!(WebClient::connect(port).get("/", "").text(), "<p>strict");
    }
    for (what, status, trickle) in trickles {
        let (took, answered) = trickle.join().expect("the client ends");
        assert!(took < HEADER_TIME * 3 + GRACE, "{what}: the connection goes on after {took:?}");
        assert!(answered == status, "{what}: answered {answered:?} after {took:?}");
    }
    for trickle in contents {
        let (took, answered) = trickle.join().expect("the client ends");
        assert!(took < HEADER_TIME * 3 + GRACE, "content: the connection goes on after {took:?}");
        // The application has started its response with the first piece, or reports the error.
        assert!(matches!(answered, None | Some(200 | 400..=599)), "{answered:?}");
    }
    // Clients that do not read their response, or send no further request, are disconnected as well.
    let reader = {
        let mut client = WebClient::connect(port);
        client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
        client
    };
    let mut idle = WebClient::connect(port);
    assert_eq!(idle.get("/", "").status, 200);
    assert!(idle.has_ended_within(KEEP_ALIVE_TIME + GRACE), "an idle connection is kept");
    assert!(!idle.was_reset(), "a connection that only was idle is reset");
    thread::sleep(WRITE_TIME);
    wait_for_rest(&mut trial, "web-strict");
    assert!(counter(&mut trial, "web-strict", "answers-cut") >= 1, "the answer that nobody took was cut");
    drop(reader);
    trial.end();
}

#[test]
fn floods_are_refused() {
    let disk = disk();
    let mut trial = WebTrial::start(&disk.path());
    let long = "x".repeat(HEADER_BYTES);
    let many = "X: y\r\n".repeat(150);
    let endless =
        format!("GET / HTTP/1.1\r\nHost: a\r\n{}", "X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n".repeat(100_000));
    for (what, request, status) in [
        ("a long target", format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), 414),
        ("a target without end", format!("GET /{}", long.repeat(100)), 414),
        ("a long field", format!("GET / HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n"), 431),
        ("many fields", format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n"), 431),
        ("fields without end", endless, 431),
        (
            "a long content",
            format!("POST /fault/echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", BODY_BYTES + 1),
            413,
        ),
    ] {
        let mut client = WebClient::connect(trial.strict);
        client.send(request);
        let answer = client.answer(false).unwrap_or_else(|| panic!("{what}: no answer"));
        assert_eq!((answer.status, answer.closes()), (status, true), "{what}");
        client.finish();
        client.ended();
    }
    // Requests at the limits are served.
    let mut client = WebClient::connect(trial.strict);
    let content = vec![b'z'; BODY_BYTES];
    let answer = client.ask("POST", "/fault/echo", &format!("Content-Length: {BODY_BYTES}\r\n"), &content);
    assert!(answer.status == 200 && answer.content == content);
    // A chunked body is refused when it exceeds the limit.
    let chunk = format!("{:x}\r\n{}\r\n", 10_000, "z".repeat(10_000));
    let mut client = WebClient::connect(trial.strict);
    client.send("POST /fault/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(chunk.repeat(20));
    let answer = client.answer(false).expect("an answer");
    assert_eq!((answer.status, answer.closes()), (413, true));
    client.finish();
    client.ended();
    wait_for_rest(&mut trial, "web-strict");
    trial.end();
}

/// Connections beyond the limit wait; existing ones proceed.
#[test]
fn too_many_connections_wait() {
    let disk = disk();
    let mut trial = WebTrial::start(&disk.path());
    let mut established = WebClient::connect(trial.strict);
    established.send("GET /fault/drip?pieces=20&ms=100 HTTP/1.1\r\nHost: a\r\n\r\n");
    let crowd: Vec<WebClient> = (0..CONNECTIONS * 2).map(|_| WebClient::connect(trial.strict)).collect();
    let begin = Instant::now();
    let mut late = WebClient::connect(trial.strict);
    assert_eq!(late.get("/", "").text(), "<p>strict");
    assert!(begin.elapsed() < HEADER_TIME * 3 + GRACE, "it waited for {:?}", begin.elapsed());
    let answer = established.answer(false).expect("an answer");
    assert!(answer.status == 200 && answer.is_whole, "an answer under way was not cut");
    assert!(counter(&mut trial, "web-strict", "connections-at-most") <= CONNECTIONS as u64);
    drop((crowd, late, established));
    wait_for_rest(&mut trial, "web-strict");
    trial.end();
}

/// Raises this process's limit of open files, if permitted.
fn may_open(files: u64) -> bool {
    let limit = getrlimit(Resource::Nofile);
    let is_enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= files);
    is_enough(limit.maximum)
        && (is_enough(limit.current)
            || setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: limit.maximum }).is_ok())
}

/// Memory and blocks in bytes of all processes of a program, from `ps`.
fn memory(trial: &mut WebTrial, program: &str) -> u64 {
    let text = trial.shell("ps --json");
    let number = |line: &str, name: &str| -> u64 {
        let rest = line.split_once(&format!("\"{name}\": ")).map_or("", |(_, rest)| rest);
        rest.split(',').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    };
    let lines = text.lines().filter(|line| line.contains(&format!("\"name\": \"{program}\"")));
    lines.map(|line| number(line, "memory_bytes") + number(line, "block_bytes")).sum()
}

#[test]
fn thousands_of_idle_connections_cost_little() {
    const MANY: usize = 10_000;
    if !may_open(MANY as u64 + 200) {
        println!("skipped: this user may not open {MANY} files at once (`ulimit -n`)");
        return;
    }
    let disk = disk();
    let mut trial = WebTrial::start(&disk.path());
    // Exclude allocations of the first requests.
    for _ in 0..10 {
        assert_eq!(WebClient::connect(trial.ordinary).get("/", "").text(), "<p>here");
    }
    wait_for_rest(&mut trial, "web");
    let programs = ["web-server", "host-sockets"];
    let before = programs.map(|program| memory(&mut trial, program));
    // Memory is reused: the same number again costs nothing more.
    for round in 1..=2 {
        let begin = Instant::now();
        let mut idle = idle_connections(trial.ordinary, MANY);
        let took = begin.elapsed();
        assert_eq!(counter(&mut trial, "web", "connections"), MANY as u64);
        for (program, before) in programs.into_iter().zip(before) {
            let each = memory(&mut trial, program).saturating_sub(before) / MANY as u64;
            println!("round {round}: {MANY} idle connections, made in {took:?}: {each} bytes each in {program}");
            assert!(each > 0 && each <= MAX_BYTES_EACH, "round {round}: {each} bytes each in {program}");
        }
        for _ in 0..100 {
            assert_eq!(WebClient::connect(trial.ordinary).get("/", "").text(), "<p>here");
        }
        // Idle connections are still served.
        let mut client = WebClient::of(idle.swap_remove(MANY / 2));
        assert_eq!(client.get("/", "").text(), "<p>here");
        drop((client, idle));
        wait_for_rest(&mut trial, "web");
    }
    trial.end();
}

/// Sends a request at a time to a server, without reading.
fn ask_without_reading(port: u16) -> TcpStream {
    let mut stream = narrow_connection(port).expect("the server takes connections");
    stream.set_nodelay(true).expect("an option can be set");
    for _ in 0..MANY_SHORT {
        // The strict server may have reset it meanwhile.
        if stream.write_all(b"GET /short HTTP/1.1\r\nHost: a\r\n\r\n").is_err() {
            break;
        }
        thread::sleep(Duration::from_micros(50));
    }
    stream
}

/// The network stack gives back responses for which it has no room, and the server waits with them.
#[test]
fn a_client_that_reads_late_gets_all_responses_and_one_that_does_not_is_reset() {
    let disk = disk();
    let mut trial = WebTrial::start(&disk.path());
    let one = WebClient::connect(trial.ordinary).get("/short", "");
    assert_eq!(one.text().len(), SHORT_BYTES);
    let mut stream = ask_without_reading(trial.ordinary);
    check_served(&trial, "while another does not read");
    stream.set_read_timeout(Some(GRACE * 4)).expect("a timeout can be set");
    let body = one.text();
    let (mut text, mut bytes, mut found) = (String::new(), [0; 1 << 16], 0);
    while found < MANY_SHORT {
        let count = stream.read(&mut bytes).expect("all are answered");
        assert!(count > 0, "the end after {found} of {MANY_SHORT} responses");
        text.push_str(std::str::from_utf8(&bytes[..count]).expect("only text is served"));
        while let Some(end) = text.find(&body) {
            assert!(text[..end].starts_with("HTTP/1.1 200") && text[..end].ends_with("\r\n\r\n"), "{}", &text[..end]);
            text.drain(..end + body.len());
            found += 1;
        }
    }
    assert_eq!(text, "");
    drop(stream);

    let cut = counter(&mut trial, "web-strict", "answers-cut");
    let mut stream = ask_without_reading(trial.strict);
    let begin = Instant::now();
    while counter(&mut trial, "web-strict", "answers-cut") == cut {
        assert!(begin.elapsed() < WRITE_TIME + GRACE, "it waits for ever");
        thread::sleep(Duration::from_millis(50));
    }
    let ended = std::iter::repeat_with(|| stream.read(&mut bytes)).find(|read| !matches!(read, Ok(1..)));
    assert!(matches!(&ended, Some(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionReset), "{ended:?}");
    wait_for_rest(&mut trial, "web");
    wait_for_rest(&mut trial, "web-strict");
    trial.end();
}

/// Persistent connections with one request each.
fn idle_connections(port: u16, count: usize) -> Vec<TcpStream> {
    let mut idle: Vec<TcpStream> = Vec::with_capacity(count);
    for _ in 0..count {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the server takes connections");
        stream.set_read_timeout(Some(GRACE * 4)).expect("a timeout can be set");
        (&stream).write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("the server takes requests");
        idle.push(stream);
    }
    for mut stream in &idle {
        let mut bytes = [0; 512];
        let count = stream.read(&mut bytes).expect("each is answered");
        assert!(bytes[..count].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&bytes[..count]));
    }
    idle
}

/// Thousands of incomplete heads and unread responses: other clients are served by the same process.
#[test]
#[ignore = "takes half a minute"]
fn crowds_do_not_use_up_the_memory() {
    const MANY: usize = 8000;
    if !may_open(MANY as u64 + 200) {
        println!("skipped: this user may not open {MANY} files at once (`ulimit -n`)");
        return;
    }
    let disk = disk();
    let mut trial = WebTrial::start(&disk.path());
    let field = format!("X: {}\r\n", "y".repeat(4000));
    let half_head = format!("GET / HTTP/1.1\r\nHost: a\r\n{field}");
    for (what, first, second) in [
        ("half heads", half_head.as_str(), field.repeat(2)),
        ("answers that nobody takes", "GET /strict/large HTTP/1.1\r\nHost: a\r\n\r\n", String::new()),
    ] {
        let mut crowd = Vec::with_capacity(MANY);
        for number in 0..MANY {
            let stream = narrow_connection(trial.ordinary).expect("the server takes connections");
            // Connections refused immediately do not count.
            let _ = (&stream).write_all(first.as_bytes());
            crowd.push(stream);
            if number % 1000 == 999 {
                check_served(&trial, &format!("among {number} {what}"));
            }
        }
        for mut stream in &crowd {
            let _ = stream.write_all(second.as_bytes());
        }
        for _ in 0..100 {
            check_served(&trial, &format!("after {MANY} {what}"));
        }
        println!("{what}: {:?}", programs_memory(&mut trial));
        drop(crowd);
        wait_for_rest(&mut trial, "web");
    }
    assert!(counter(&mut trial, "web", "connections-taken") >= 2 * MANY as u64, "the process is another one");
    trial.end();
}

/// A connection with small socket buffers, so that thousands do not fill the host's memory.
fn narrow_connection(port: u16) -> rustix::io::Result<TcpStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    set_socket_recv_buffer_size(&socket, 4096)?;
    connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    Ok(TcpStream::from(socket))
}

/// Asserts that another client is served.
#[track_caller]
fn check_served(trial: &WebTrial, when: &str) {
    let mut client = WebClient::connect(trial.ordinary);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let text = client.answer(false).map(|answer| answer.text());
    assert!(text.as_deref() == Some("<p>here"), "{when}: {text:?}\n{}", trial.terminal.screen());
}

fn programs_memory(trial: &mut WebTrial) -> [u64; 2] {
    ["web-server", "host-sockets"].map(|program| memory(trial, program))
}

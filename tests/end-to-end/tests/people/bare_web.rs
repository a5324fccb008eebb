//! A folder served by a bare machine: six processes from network driver to disk driver.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use end_to_end::{BareMachine, KINDS, Supervisor};

test_needs::needs!(Qemu);

/// Startup timeout, on a busy host.
const TIMEOUT: Duration = Duration::from_secs(90);
/// Read timeout of a client.
const SILENCE: Duration = Duration::from_secs(30);
/// File lengths around the sizes of blocks, segments and buffers, and one of many of each.
const LENGTHS: [usize; 8] = [0, 1, 1023, 1460, 4097, 65_537, 262_145, 3_000_001];
/// Concurrent connections.
const CLIENTS: usize = 24;
const REQUESTS: usize = 6;

/// Bytes whose period is not a block size.
fn content(length: usize) -> Vec<u8> {
    (0..length as u32).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 23) as u8).collect()
}

/// A serving machine; closing its shell's input ends it.
struct Serving {
    tool: Child,
    input: Option<ChildStdin>,
    port: u16,
}

impl Serving {
    #[track_caller]
    fn start(kind: &str, folder: &str) -> Serving {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let port = free.expect("a free port").port();
        let machine = BareMachine::new(kind).with(&["--web", folder, "--demo", "--port", &port.to_string()]);
        let mut command = machine.command(None);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut tool = command.spawn().expect("the tool starts");
        let input = tool.stdin.take();
        let mut serving = Serving { tool, input, port };
        // QEMU accepts connections before the guest listens, so only a response counts.
        let begin = Instant::now();
        while serving.ask_once("/").is_none_or(|(status, _)| status != 200) {
            let ended = serving.tool.try_wait().is_ok_and(|ended| ended.is_some());
            assert!(!ended && begin.elapsed() < TIMEOUT, "{kind}: nobody serves at port {port}");
            std::thread::sleep(Duration::from_millis(100));
        }
        serving
    }

    fn connect(&self) -> Option<BufReader<TcpStream>> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok()?;
        stream.set_read_timeout(Some(SILENCE)).ok()?;
        Some(BufReader::new(stream))
    }

    fn ask_once(&self, path: &str) -> Option<(u16, Vec<u8>)> {
        ask(&mut self.connect()?, path, "")
    }

    /// Ends the machine, which must shut down in order.
    #[track_caller]
    fn end(mut self) {
        drop(self.input.take());
        let status = self.tool.wait().expect("the tool ends");
        assert_eq!(status.code(), Some(0), "the machine did not end in order");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.tool.kill();
        let _ = self.tool.wait();
    }
}

/// Status and body of a response with `Content-Length`; `None` if the connection ends early.
fn ask(connection: &mut BufReader<TcpStream>, path: &str, fields: &str) -> Option<(u16, Vec<u8>)> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: bare\r\n{fields}\r\n");
    connection.get_mut().write_all(request.as_bytes()).ok()?;
    let (mut status, mut bytes, mut line) = (0, 0, String::new());
    while connection.read_line(&mut line).ok()? > 2 {
        let text = line.to_ascii_lowercase();
        if let Some(rest) = text.strip_prefix("http/1.1 ") {
            status = rest.get(..3)?.parse().ok()?;
        } else if let Some(length) = text.strip_prefix("content-length:") {
            bytes = length.trim().parse().ok()?;
        }
        line.clear();
    }
    let mut content = vec![0; bytes];
    connection.read_exact(&mut content).ok()?;
    Some((status, content))
}

#[track_caller]
fn files_arrive(serving: &Serving) {
    let mut connection = serving.connect().expect("the server takes connections");
    for length in LENGTHS {
        let answer = ask(&mut connection, &format!("/length-{length}"), "");
        let (status, found) = answer.unwrap_or_else(|| panic!("no answer for {length} bytes"));
        assert_eq!((status, found.len()), (200, length));
        assert!(found == content(length), "{length} bytes came as others");
    }
    let part = ask(&mut connection, "/length-262145", "Range: bytes=1459-200000\r\n");
    assert!(part == Some((206, content(262_145)[1459..=200_000].to_vec())), "the range is another");
    for application in ["/hello/", "/spec/", "/status/"] {
        let (status, page) = ask(&mut connection, application, "").expect("an application answers");
        assert!(status == 200 && !page.is_empty(), "{application}: {status}");
    }
}

fn many_ask_at_once(serving: &Serving) {
    // QEMU's backlog is short, so connections are opened one by one.
    let connect = |client: usize| {
        let mut connection = serving.connect().expect("the server takes connections");
        let answer = ask(&mut connection, "/length-1", "");
        assert_eq!(answer, Some((200, content(1))), "client {client}");
        connection
    };
    let connections: Vec<_> = (0..CLIENTS).map(connect).collect();
    std::thread::scope(|scope| {
        for (client, mut connection) in connections.into_iter().enumerate() {
            scope.spawn(move || {
                for turn in 0..REQUESTS {
                    let length = LENGTHS[(client + turn) % 6];
                    let answer = ask(&mut connection, &format!("/length-{length}"), "");
                    assert!(answer == Some((200, content(length))), "client {client}, {length} bytes");
                }
            });
        }
    });
}

#[test]
fn a_bare_machine_serves_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("index.html"), "<!doctype html>\n").expect("a file can be written");
    for length in LENGTHS {
        fs::write(folder.path().join(format!("length-{length}")), content(length)).expect("a file can be written");
    }
    for kind in KINDS {
        let serving = Serving::start(kind, &folder.path().display().to_string());
        files_arrive(&serving);
        many_ask_at_once(&serving);
        serving.end();
    }
}

/// The tool turns a signal into a press of the power button, on machines with and without its ACPI registers.
#[test]
fn a_service_on_a_bare_machine_ends_in_order_when_it_is_asked_to() {
    for kind in KINDS {
        let supervisor = Supervisor::of_small_site();
        let running = supervisor.start(&["--machine", kind, "--demo"]);
        let mut client = supervisor.client();
        assert_eq!(client.get("/dir00001/class2_3", "").status, 200, "{kind}");
        assert_eq!(client.get("/status/health", "").text(), "ok\n", "{kind}");
        supervisor.stop(running);
        let errors = supervisor.errors();
        assert!(errors.contains(" sing: serving http://localhost:"), "{kind}: {errors}");
    }
}

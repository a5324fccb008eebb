//! Web servers of a system, and a client that sends exactly the bytes it is given.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::terminal::Terminal;
use crate::tool::{repository, sing, target};

/// Timeout of a client for a silent server.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The system under test.
const SYSTEM: &str = "web-trial";

/// Builds the system once for all tests, so that no timeout includes a build. It is a small one; no other is built for
/// it.
fn build() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut command = Command::new(sing());
        command.args(["run", "--system", SYSTEM, "-c", "true"]).current_dir(repository()).stdin(Stdio::null());
        let output = command.output().expect("the tool starts");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`sing run --system {SYSTEM} -c true` ended with {}:\n{words}", output.status);
    });
}

/// The system `web-trial` with an interactive terminal.
pub struct WebTrial {
    /// The machine.
    pub terminal: Terminal,
    /// Port of the server with ordinary limits, which serves all of the first disk.
    pub ordinary: u16,
    /// Port of the server with tight limits, which serves its folder `strict`.
    pub strict: u16,
}

impl WebTrial {
    /// Starts it with a disk.
    #[track_caller]
    pub fn start(disk: &Path) -> WebTrial {
        build();
        let mut command = Command::new(target().join("release/singularity-hosted"));
        command.arg("--system").arg(target().join(format!("sing/systems/{SYSTEM}.system"))).arg("--disk").arg(disk);
        let mut terminal = Terminal::start(command);
        let port = |root: &str| {
            let words = format!("serving {root} at port ");
            let begin = Instant::now();
            loop {
                let screen = terminal.screen();
                let rest = screen.split_once(&words).map(|(_, rest)| rest);
                if let Some((digits, _)) = rest.and_then(|rest| rest.split_once('\n'))
                    && let Ok(port) = digits.trim().parse()
                {
                    return port;
                }
                assert!(begin.elapsed() < TIMEOUT, "`{words}` was not said; but:\n{screen}");
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        let (ordinary, strict) = (port("/fs/disk0"), port("/fs/disk0/strict"));
        // The prompt may come before or after the output of the servers.
        terminal.press("echo beg\"\"in\r");
        terminal.wait_for("begin");
        WebTrial { terminal, ordinary, strict }
    }

    /// Runs a command in the shell and returns its output.
    #[track_caller]
    pub fn shell(&mut self, command: &str) -> String {
        let before = self.terminal.screen().len();
        // The echoed command line must not look like its output.
        self.terminal.press(&format!("{command}; echo en\"\"ded\r"));
        self.terminal.wait_for("ended");
        self.terminal.screen().get(before..).unwrap_or_default().to_string()
    }

    /// Ends the system, which must end cleanly.
    #[track_caller]
    pub fn end(mut self) {
        self.terminal.press("exit\r");
        assert_eq!(self.terminal.end(), Some(0), "the system did not end in order");
    }
}

/// One connection to a server.
#[derive(Debug)]
pub struct WebClient {
    stream: TcpStream,
    waiting: Vec<u8>,
    was_reset: bool,
}

/// An answer of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebAnswer {
    /// The status.
    pub status: u16,
    /// Fields, with lower-case names.
    pub fields: Vec<(String, String)>,
    /// Content, without its framing.
    pub content: Vec<u8>,
    /// Whether the content is complete by its framing.
    pub is_whole: bool,
}

impl WebAnswer {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// Whether the server announces that it closes the connection.
    pub fn closes(&self) -> bool {
        self.field("connection") == Some("close")
    }

    /// The content as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.content).into_owned()
    }
}

impl WebClient {
    /// Connects to a server of this machine.
    #[track_caller]
    pub fn connect(port: u16) -> WebClient {
        WebClient::of(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the server takes connections"))
    }

    /// Uses an existing connection.
    #[track_caller]
    pub fn of(stream: TcpStream) -> WebClient {
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout can be set");
        stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout can be set");
        stream.set_nodelay(true).expect("an option can be set");
        WebClient { stream, waiting: Vec::new(), was_reset: false }
    }

    /// Sends bytes. A failed write is not an error of the client: the response shows it.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Shuts down the sending side.
    pub fn finish(&mut self) {
        // The server may have closed the connection already.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The stream itself.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Requests a path with further fields, each with its line end, and returns the answer.
    #[track_caller]
    pub fn get(&mut self, path: &str, fields: &str) -> WebAnswer {
        self.ask("GET", path, fields, b"")
    }

    /// Sends a request and returns the answer.
    #[track_caller]
    pub fn ask(&mut self, method: &str, path: &str, fields: &str, content: &[u8]) -> WebAnswer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{fields}\r\n").into_bytes();
        request.extend_from_slice(content);
        self.send(request);
        let answer = self.answer(method == "HEAD");
        answer.unwrap_or_else(|| panic!("`{method} {path}` had no answer"))
    }

    /// Returns the next answer; `None` if the connection ended before one began.
    #[track_caller]
    pub fn answer(&mut self, is_of_head: bool) -> Option<WebAnswer> {
        let end = loop {
            if let Some(end) = self.waiting.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            if !self.fill() {
                return None;
            }
        };
        let head: Vec<u8> = self.waiting.drain(..end + 4).collect();
        let head = String::from_utf8(head).expect("the head of an answer is text");
        let mut lines = head.trim_end().split("\r\n");
        let status_line = lines.next().unwrap_or_default();
        let status = status_line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.unwrap_or_else(|| panic!("`{status_line}` is no status line"));
        let fields: Vec<(String, String)> = lines
            .map(|line| {
                let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("`{line}` is no field"));
                (name.to_ascii_lowercase(), value.trim().to_string())
            })
            .collect();
        let mut answer = WebAnswer { status, fields, content: Vec::new(), is_whole: true };
        if !is_of_head && !matches!(status, 100..=199 | 204 | 304) {
            self.read_content(&mut answer);
        }
        Some(answer)
    }

    fn read_content(&mut self, answer: &mut WebAnswer) {
        if answer.field("transfer-encoding") == Some("chunked") {
            answer.is_whole = self.read_chunks(&mut answer.content).is_some();
        } else if let Some(length) = answer.field("content-length") {
            let length = length.parse().expect("the length is a number");
            answer.is_whole = self.take(length, &mut answer.content).is_some();
        } else {
            while self.fill() {}
            answer.content = std::mem::take(&mut self.waiting);
        }
    }

    fn read_chunks(&mut self, content: &mut Vec<u8>) -> Option<()> {
        loop {
            let end = loop {
                if let Some(end) = self.waiting.windows(2).position(|window| window == b"\r\n") {
                    break end;
                }
                if !self.fill() {
                    return None;
                }
            };
            let line: Vec<u8> = self.waiting.drain(..end + 2).collect();
            let text = String::from_utf8_lossy(&line[..end]).into_owned();
            let count = usize::from_str_radix(&text, 16).unwrap_or_else(|_| panic!("`{text}` is no chunk size"));
            self.take(count, content)?;
            let mut line_end = Vec::new();
            self.take(2, &mut line_end)?;
            assert_eq!(line_end, b"\r\n", "a chunk ends as it must");
            if count == 0 {
                return Some(());
            }
        }
    }

    fn take(&mut self, count: usize, into: &mut Vec<u8>) -> Option<()> {
        while self.waiting.len() < count {
            if !self.fill() {
                into.append(&mut self.waiting);
                return None;
            }
        }
        into.extend(self.waiting.drain(..count));
        Some(())
    }

    /// Asserts that the connection ends without further bytes.
    #[track_caller]
    pub fn ended(&mut self) {
        while self.fill() {}
        let rest = String::from_utf8_lossy(&self.waiting);
        assert!(rest.is_empty(), "something more was said: {rest}");
    }

    /// Whether the connection has ended, after a short wait.
    pub fn has_ended_within(&mut self, wait: Duration) -> bool {
        self.stream.set_read_timeout(Some(wait)).expect("a timeout can be set");
        let mut bytes = [0; 1024];
        let read = self.stream.read(&mut bytes);
        self.stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout can be set");
        match read {
            Ok(0) => true,
            Ok(count) => {
                self.waiting.extend_from_slice(&bytes[..count]);
                false
            }
            Err(error) => {
                self.was_reset |= error.kind() == ErrorKind::ConnectionReset;
                !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
            }
        }
    }

    /// Whether the connection ended by a reset.
    pub fn was_reset(&self) -> bool {
        self.was_reset
    }

    /// Reads more bytes; returns false at the end.
    #[track_caller]
    fn fill(&mut self) -> bool {
        let mut bytes = [0; 65536];
        match self.stream.read(&mut bytes) {
            Ok(0) => false,
            Ok(count) => {
                self.waiting.extend_from_slice(&bytes[..count]);
                true
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("nothing came within {TIMEOUT:?}; before: {}", String::from_utf8_lossy(&self.waiting))
            }
            // The connection was cut.
            Err(_) => false,
        }
    }
}

/// Decompresses with the tool `gzip`.
#[track_caller]
pub fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut command = Command::new("gzip");
    let mut child = command.arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("gzip starts");
    child.stdin.take().expect("a pipe").write_all(bytes).expect("gzip reads");
    let output = child.wait_with_output().expect("gzip ends");
    assert!(output.status.success(), "gzip refuses it");
    output.stdout
}

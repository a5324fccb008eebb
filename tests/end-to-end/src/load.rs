//! Load generator: clients of a web server that record the times of correct responses.
//!
//! Each client has one connection and sends the next request as soon as it has the response; a broken connection is
//! replaced. A response with unexpected content is an error, regardless of server failures.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Timeout for a connection and for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Delay of a client after a failed connection.
const PAUSE: Duration = Duration::from_micros(500);
const MAX_HEAD_BYTES: usize = 16 << 10;

/// A request and its expected answer.
pub trait Question: Send + 'static {
    /// Head of the request, without its end.
    fn next(&mut self) -> String;
    /// Checks the content of a successful answer.
    fn is_right(&self, content: &[u8]) -> bool;
}

/// An answer: status and content.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its content.
    pub content: Vec<u8>,
}

/// The server under load.
#[derive(Debug, Clone, Copy)]
pub struct Server {
    /// Its address.
    pub address: SocketAddr,
    /// Timeout for a connection and for an answer. Reaching the default timeout is an error; reaching a shorter one
    /// breaks the connection.
    pub patience: Duration,
}

/// Results of all clients of one kind.
#[derive(Debug, Default)]
struct Seen {
    good: Vec<Instant>,
    statuses: BTreeMap<u16, u64>,
    broken: u64,
    /// First incorrect result.
    wrong: Option<String>,
}

/// Running clients.
pub struct Load {
    over: Arc<AtomicBool>,
    seen: Vec<Arc<Mutex<Seen>>>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts clients of the server at this port of the host, one per question. Clients of the same kind share a
    /// number.
    pub fn start(port: u16, questions: Vec<(usize, Box<dyn Question>)>) -> Load {
        Load::start_at(Server { address: (Ipv4Addr::LOCALHOST, port).into(), patience: TIMEOUT }, questions)
    }

    /// Like [`start`](Self::start), for any server, possibly one that drops connections silently.
    pub fn start_at(server: Server, questions: Vec<(usize, Box<dyn Question>)>) -> Load {
        let kinds = questions.iter().map(|(kind, _)| kind + 1).max().unwrap_or(0);
        let seen: Vec<Arc<Mutex<Seen>>> = (0..kinds).map(|_| Arc::default()).collect();
        let over = Arc::new(AtomicBool::new(false));
        let client = |(kind, question): (usize, Box<dyn Question>)| {
            let (seen, over) = (Arc::clone(&seen[kind]), Arc::clone(&over));
            thread::spawn(move || work(server, question, &seen, &over))
        };
        let clients = questions.into_iter().map(client).collect();
        Load { over, seen, clients }
    }

    /// Resets the record of correct answers.
    pub fn forget(&self) {
        self.seen.iter().for_each(|seen| lock(seen).good.clear());
    }

    /// Number of correct answers of a kind since the reset.
    pub fn good(&self, kind: usize) -> usize {
        lock(&self.seen[kind]).good.len()
    }

    /// Longest interval between two correct answers of a kind.
    pub fn longest_gap(&self, kind: usize) -> Duration {
        let mut good = lock(&self.seen[kind]).good.clone();
        good.sort_unstable();
        good.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(Duration::ZERO)
    }

    /// Stops the clients. Returns the number of responses with other statuses, and of broken connections.
    #[track_caller]
    pub fn end(self) -> (BTreeMap<u16, u64>, u64) {
        self.over.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().expect("a client does not panic");
        }
        let (mut statuses, mut broken) = (BTreeMap::new(), 0);
        for seen in &self.seen {
            let seen = lock(seen);
            assert!(seen.wrong.is_none(), "{}", seen.wrong.as_deref().unwrap_or_default());
            broken += seen.broken;
            for (status, count) in &seen.statuses {
                *statuses.entry(*status).or_insert(0) += count;
            }
        }
        (statuses, broken)
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(server: Server, mut question: Box<dyn Question>, seen: &Mutex<Seen>, over: &AtomicBool) {
    let mut connection = None;
    while !over.load(Ordering::Relaxed) {
        let mut stream = match connection.take().map_or_else(|| connect_to(server), Ok) {
            Ok(stream) => stream,
            Err(error) => {
                note_broken(server, seen, &error);
                thread::sleep(PAUSE);
                continue;
            }
        };
        let head = question.next();
        match ask_on(&mut stream, &head) {
            Ok(Answer { status: 200 | 206, content }) => {
                let mut seen = lock(seen);
                if question.is_right(&content) {
                    seen.good.push(Instant::now());
                } else {
                    seen.wrong = Some(format!("{head}: the content is not what was written"));
                }
                connection = Some(stream);
            }
            Ok(Answer { status, .. }) => *lock(seen).statuses.entry(status).or_insert(0) += 1,
            Err(error) => note_broken(server, seen, &error),
        }
    }
}

fn note_broken(server: Server, seen: &Mutex<Seen>, error: &io::Error) {
    let mut seen = lock(seen);
    seen.broken += 1;
    let is_silence = matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock);
    if is_silence && server.patience >= TIMEOUT {
        seen.wrong = Some(format!("nothing came for {TIMEOUT:?}, nor the connection's end"));
    }
}

/// Connects to a server on this host.
///
/// # Errors
/// The server accepts no connections.
pub fn connect(port: u16) -> io::Result<TcpStream> {
    connect_to(Server { address: (Ipv4Addr::LOCALHOST, port).into(), patience: TIMEOUT })
}

fn connect_to(Server { address, patience }: Server) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends the head of a request on a connection, and reads the response, which must have a length.
///
/// # Errors
///
/// The connection broke.
pub fn ask_on(stream: &mut TcpStream, head: &str) -> io::Result<Answer> {
    stream.write_all(format!("{head}\r\n\r\n").as_bytes())?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 << 10];
    let head_bytes = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
        if bytes.len() > MAX_HEAD_BYTES + buffer.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_bytes]).to_lowercase();
    let mut content = bytes.split_off(head_bytes);
    let status = head.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let length: usize = length.ok_or(io::ErrorKind::InvalidData)?;
    while content.len() < length {
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => content.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(Answer { status, content })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    struct Fixed;

    impl Question for Fixed {
        fn next(&mut self) -> String {
            "GET / HTTP/1.1\r\nHost: here".into()
        }

        fn is_right(&self, content: &[u8]) -> bool {
            content == b"good"
        }
    }

    #[test]
    fn good_answers_and_breaks_are_told_apart() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let server = thread::spawn(move || {
            for answer in
                ["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood", "HTTP/1.1 502 B\r\ncontent-length: 0\r\n\r\n"]
            {
                let (mut stream, _) = listener.accept().expect("a client");
                let mut request = [0; 512];
                assert!(stream.read(&mut request).expect("a request") > 0);
                stream.write_all(answer.as_bytes()).expect("the client reads");
            }
        });
        let load = Load::start(port, vec![(0, Box::new(Fixed))]);
        server.join().expect("the server ends");
        while load.good(0) < 1 {
            thread::yield_now();
        }
        let (statuses, broken) = load.end();
        assert!(broken > 0 && statuses.get(&502).is_none_or(|count| *count == 1), "{statuses:?}, {broken}");
    }
}

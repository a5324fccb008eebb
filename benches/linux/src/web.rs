//! The dynamic backend of nginx: the counterpart of the web application `web-spec`, in a separate process that nginx
//! reaches through a Unix socket with persistent connections. One thread per connection.
//!
//! Pages, cookies and log lines are as in `web-spec`, whose code also chooses the advertisements. `page` builds the
//! responses. As there, a `cgi` request is answered by a separate process.

mod page;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use page::{Answer, Shared};

/// Maximum size of a form in bytes.
const MAX_BODY_BYTES: usize = 4 << 10;

/// A parsed request.
#[derive(Default)]
struct Request {
    method: String,
    target: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    fn path(&self) -> &str {
        self.target.split_once('?').map_or(self.target.as_str(), |(path, _)| path)
    }

    fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }
}

/// Serves on a Unix socket until the process is ended.
pub fn serve(socket: &OsStr, files: &OsStr) -> i32 {
    // Removes the socket of an earlier run.
    let _ = std::fs::remove_file(socket);
    let listener = match UnixListener::bind(socket) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("bench-linux: {}: {error}", Path::new(socket).display());
            return 1;
        }
    };
    let log = Path::new(socket).with_extension("log");
    let shared = match Shared::new(files.into(), &log) {
        Ok(shared) => Arc::new(shared),
        Err(error) => {
            eprintln!("bench-linux: {}: {error}", log.display());
            return 1;
        }
    };
    for connection in listener.incoming().flatten() {
        let shared = Arc::clone(&shared);
        std::thread::spawn(move || {
            // The peer closes the connection when it is done.
            let _ = converse(&shared, &connection);
        });
    }
    0
}

/// Answers one request from standard input on standard output: the process started for `cgi`.
pub fn answer_once(files: &OsStr) -> i32 {
    let shared = Shared::without_visitors(files.into());
    let request = read_request(&mut io::stdin().lock()).ok().flatten().unwrap_or_default();
    i32::from(page::get(&shared, &request).write_to(&mut io::stdout().lock()).is_err())
}

fn converse(shared: &Shared, connection: &UnixStream) -> io::Result<()> {
    let mut reader = BufReader::new(connection);
    while let Some(request) = read_request(&mut reader)? {
        let mut writer = connection;
        answer(shared, &request)?.write_to(&mut writer)?;
    }
    Ok(())
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default().to_string(), words.next().unwrap_or_default().to_string());
    let mut headers = HashMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.trim().to_string()),
            None => break,
        };
    }
    let bytes = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; usize::min(bytes, MAX_BODY_BYTES)];
    reader.read_exact(&mut body)?;
    Ok(Some(Request { method, target, headers, body }))
}

fn answer(shared: &Shared, request: &Request) -> io::Result<Answer> {
    let path = request.path().strip_prefix("/spec").unwrap_or(request.path());
    Ok(match (request.method.as_str(), path) {
        ("POST", "/post") => page::post(shared, request),
        ("GET", "/get") => page::get(shared, request),
        ("GET", "/ad") => page::advertise(shared, request),
        ("GET", "/cgi") => by_a_process(shared, request)?,
        _ => Answer::error(404),
    })
}

/// Has the request answered by a separate process.
fn by_a_process(shared: &Shared, request: &Request) -> io::Result<Answer> {
    let mut command = Command::new("/proc/self/exe");
    command.arg("web-once").arg(&shared.files).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        write!(input, "GET {} HTTP/1.1\r\nx-real-ip: {}\r\n\r\n", request.target, request.header("x-real-ip"))?;
    }
    let mut whole = Vec::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_end(&mut whole)?;
    }
    child.wait()?;
    Ok(Answer::whole(whole))
}

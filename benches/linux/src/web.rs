//! What is dynamic behind nginx: the counterpart of the web application `web-spec`, in a process of its own that nginx
//! reaches through a local socket and keeps its connections to. A thread for each connection.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A form that is longer is refused.
const MOST_BODY_BYTES: usize = 64 << 10;
/// Advertisements.
const ADVERTISEMENTS: u64 = 360;

/// What all connections share.
struct Shared {
    files: PathBuf,
    /// What was posted.
    posted: Mutex<Vec<String>>,
}

struct Request {
    method: String,
    target: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

/// Serves on a local socket until the process is ended.
pub fn serve(socket: &OsStr, files: &OsStr) -> i32 {
    // A socket that an earlier run left behind is nobody's.
    let _ = std::fs::remove_file(socket);
    let listener = match UnixListener::bind(socket) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("bench-linux: {}: {error}", Path::new(socket).display());
            return 1;
        }
    };
    let shared = Arc::new(Shared { files: files.into(), posted: Mutex::new(Vec::new()) });
    for connection in listener.incoming().flatten() {
        let shared = Arc::clone(&shared);
        std::thread::spawn(move || {
            // The other end closes when it wants no more.
            let _ = converse(&shared, &connection);
        });
    }
    0
}

fn converse(shared: &Shared, connection: &UnixStream) -> io::Result<()> {
    let mut reader = BufReader::new(connection);
    while let Some(request) = read_request(&mut reader)? {
        let (head, body) = answer(shared, &request);
        let mut whole = Vec::with_capacity(head.len() + body.len() + 128);
        write!(whole, "HTTP/1.1 200 OK\r\n{head}Content-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len())?;
        whole.extend_from_slice(&body);
        let mut writer = connection;
        writer.write_all(&whole)?;
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
    let mut body = vec![0; usize::min(bytes, MOST_BODY_BYTES)];
    reader.read_exact(&mut body)?;
    Ok(Some(Request { method, target, headers, body }))
}

/// Further header lines, and the body.
fn answer(shared: &Shared, request: &Request) -> (String, Vec<u8>) {
    let target = request.target.strip_prefix("/spec").unwrap_or(&request.target);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if request.method == "POST" {
        return post(shared, &request.body);
    }
    match path {
        "/ad" => advertisement(shared, request, query),
        _ => (String::new(), page(query, &file(shared, query))),
    }
}

/// The file that a query names; nothing where there is none.
fn file(shared: &Shared, query: &str) -> Vec<u8> {
    let is_inside = query.split('/').all(|part| part != "..");
    let path = shared.files.join(query.trim_start_matches('/'));
    if is_inside { std::fs::read(path).unwrap_or_default() } else { Vec::new() }
}

fn page(title: &str, content: &[u8]) -> Vec<u8> {
    let mut page = format!("<!doctype html><title>{title}</title><pre>").into_bytes();
    page.extend_from_slice(content);
    page.extend_from_slice(b"</pre>\n");
    page
}

/// Chooses by who the cookie says asks, and by what was shown last.
fn advertisement(shared: &Shared, request: &Request, query: &str) -> (String, Vec<u8>) {
    let cookie = request.headers.get("cookie").map_or("", String::as_str);
    let number = |name: &str| {
        let value = cookie.split(['&', ';', '=']).skip_while(|word| !word.trim().ends_with(name)).nth(1);
        value.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    let chosen = (number("user_id") * 7 + number("last_ad") + 1) % ADVERTISEMENTS;
    let mut head = String::new();
    let _ = write!(head, "Set-Cookie: my_cookie=user_id={}&last_ad={chosen}\r\n", number("user_id"));
    (head, page(&format!("advertisement {chosen}"), &file(shared, query)))
}

fn post(shared: &Shared, body: &[u8]) -> (String, Vec<u8>) {
    let text = String::from_utf8_lossy(body).into_owned();
    let root = text.split('&').find_map(|field| field.strip_prefix("urlroot=")).unwrap_or_default().to_string();
    let mut posted = shared.posted.lock().unwrap_or_else(PoisonError::into_inner);
    posted.push(text);
    let number = posted.len();
    drop(posted);
    (String::new(), page(&format!("record {number}"), &file(shared, &root)))
}

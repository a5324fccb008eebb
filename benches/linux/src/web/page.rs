//! Responses: pages that embed files, with advertisements, and the log of posted forms.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::Request;
use ads::{Choice, Tables, VISITORS};

/// The code of `web-spec`.
#[path = "../../../web-spec/src/ads.rs"]
#[allow(dead_code, reason = "the application resets its tables, and this does not")]
mod ads;

const AD_BEGINS: &[u8] = b"<!WEB99CAD>";
const AD_ENDS: &[u8] = b"<!/WEB99CAD>";
const BEFORE_FILE: &[u8] = b"<pre>\n";
const AFTER_FILE: &[u8] = b"\n</pre></body></html>\n";

/// State shared by all connections.
pub(super) struct Shared {
    /// Root folder of the files.
    pub(super) files: PathBuf,
    tables: Tables,
    posted: Mutex<Posted>,
}

/// State changed by posted forms.
#[derive(Default)]
struct Posted {
    count: u64,
    /// The log, with one line for each form.
    log: Option<File>,
}

impl Shared {
    /// Posted forms are logged to `log`.
    pub(super) fn new(files: PathBuf, log: &Path) -> io::Result<Shared> {
        let log = Some(File::create(log)?);
        Ok(Shared { files, tables: Tables::new(VISITORS, 0), posted: Mutex::new(Posted { count: 0, log }) })
    }

    pub(super) fn without_visitors(files: PathBuf) -> Shared {
        Shared { files, tables: Tables::new(1, 0), posted: Mutex::default() }
    }

    /// Reads the file at a path below the folder.
    fn file(&self, path: &str) -> Option<Vec<u8>> {
        let path = path.trim_start_matches('/');
        let is_inside = path.split('/').all(|part| !part.is_empty() && !part.starts_with('.'));
        if is_inside { std::fs::read(self.files.join(path)).ok() } else { None }
    }
}

/// A response.
pub(super) struct Answer {
    whole: Vec<u8>,
}

impl Answer {
    /// Wraps a complete response of another process.
    pub(super) fn whole(whole: Vec<u8>) -> Answer {
        Answer { whole }
    }

    /// A response with only a status.
    pub(super) fn error(status: u16) -> Answer {
        let whole = format!("HTTP/1.1 {status} Failed\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n");
        Answer { whole: whole.into_bytes() }
    }

    fn of(head: &str, parts: &[&[u8]]) -> Answer {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let mut whole = Vec::with_capacity(bytes + head.len() + 128);
        // Writing to a vector cannot fail.
        let _ = write!(whole, "HTTP/1.1 200 OK\r\n{head}Content-Type: text/html\r\nContent-Length: {bytes}\r\n\r\n");
        parts.iter().for_each(|part| whole.extend_from_slice(part));
        Answer { whole }
    }

    /// Sends the response.
    pub(super) fn write_to(&self, output: &mut impl Write) -> io::Result<()> {
        output.write_all(&self.whole)?;
        output.flush()
    }
}

/// Responds with the request and a file, embedded in a page.
pub(super) fn get(shared: &Shared, request: &Request) -> Answer {
    wrapped(shared, request, field(request.query(), "file").unwrap_or_default(), "", "")
}

/// Like `get`, with an advertisement for the visitor in the cookie.
pub(super) fn advertise(shared: &Shared, request: &Request) -> Answer {
    let number = |text: &str, name: &str| field(text, name)?.parse::<u32>().ok();
    let cookie = request.header("cookie").split(';').find_map(|one| one.trim().strip_prefix("my_cookie="));
    let visitor = cookie.and_then(|cookie| Some((number(cookie, "user_id")?, number(cookie, "last_ad")?)));
    let choice = visitor.and_then(|(visitor, last)| Some((visitor, shared.tables.choose(visitor, last)?)));
    let Some((visitor, choice)) = choice else { return Answer::error(400) };
    let picture = if choice.expired { String::new() } else { format!("<IMG SRC=\"static/{}\">", choice.picture()) };
    let Choice { ad, points, expired } = choice;
    let head = format!(
        "Set-Cookie: my_cookie=found_cookie&user_id={visitor}&Ad_id={ad}&Ad_weight={points}&Expired={}; Path=/\r\n\
         Cache-Control: no-store\r\n",
        u32::from(expired)
    );
    wrapped(shared, request, field(request.query(), "file").unwrap_or_default(), &picture, &head)
}

/// Adds a line to the log, and responds with the requested file.
pub(super) fn post(shared: &Shared, request: &Request) -> Answer {
    let form = String::from_utf8_lossy(&request.body);
    let number = |name: &str, most: u32| field(&form, name)?.parse::<u32>().ok().filter(|number| *number <= most);
    let meant = || {
        let (folder, class) = (number("dir", 99_999)?, number("class", 3)?);
        Some((field(&form, "urlroot")?, folder, class, number("num", 8)?, number("client", 2_000_000_000)?))
    };
    let Some((root, folder, class, file, client)) = meant() else { return Answer::error(400) };
    let path = format!("dir{folder:05}/class{class}_{file}");
    let second = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let process = std::process::id();
    let name = format!("{root}{path}");
    let mut posted = shared.posted.lock().unwrap_or_else(PoisonError::into_inner);
    posted.count += 1;
    let line = format!(
        "{:10} {second:10} {process:10} {folder:5} {class:2} {file:2} {client:10} {name:<60.60} {process:10} {:10}\n",
        posted.count, 0
    );
    let written = posted.log.as_mut().map_or(Ok(()), |log| log.write_all(line.as_bytes()));
    drop(posted);
    if written.is_err() {
        return Answer::error(507);
    }
    let head = "Set-Cookie: my_cookie=0; Path=/\r\nCache-Control: no-store\r\n";
    wrapped(shared, request, &path, "", head)
}

/// Builds a page that embeds a file, with the picture in the file's slot for it.
fn wrapped(shared: &Shared, request: &Request, path: &str, picture: &str, head: &str) -> Answer {
    let Some(file) = shared.file(path) else { return Answer::error(404) };
    let mut beginning = String::from(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><link rel=\"icon\" href=\"data:,\">",
    );
    // Writing to a `String` cannot fail.
    let _ = write!(
        beginning,
        "<title>Dynamic GET and POST</title></head><body>\n<p>SERVER_SOFTWARE = bench-linux behind nginx\n\
         <p>REMOTE_ADDR = {}\n<p>SCRIPT_NAME = {}\n<p>QUERY_STRING = {}\n",
        escaped(request.header("x-real-ip")),
        escaped(request.path()),
        escaped(request.query())
    );
    let place = if picture.is_empty() { 0..0 } else { place_of_ad(&file).unwrap_or(0..0) };
    let (before, after) = (&file[..place.start], &file[place.end..]);
    Answer::of(head, &[beginning.as_bytes(), BEFORE_FILE, before, picture.as_bytes(), after, AFTER_FILE])
}

fn place_of_ad(file: &[u8]) -> Option<std::ops::Range<usize>> {
    let find = |bytes: &[u8], wanted: &[u8]| bytes.windows(wanted.len()).position(|window| window == wanted);
    let start = find(file, AD_BEGINS)?;
    let inside = start + AD_BEGINS.len();
    Some(start..inside + find(&file[inside..], AD_ENDS)? + AD_ENDS.len())
}

/// Returns the value of a form field. The benchmark's forms contain no encoded characters.
fn field<'a>(form: &'a str, name: &str) -> Option<&'a str> {
    form.split('&').find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared() -> (tempfile::TempDir, Shared) {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("dir00000")).expect("room");
        let text = "ab<!WEB99CAD>picture<!/WEB99CAD>cd";
        std::fs::write(folder.path().join("dir00000/class1_0"), text).expect("room");
        let shared = Shared::new(folder.path().into(), &folder.path().join("post.log")).expect("room");
        (folder, shared)
    }

    fn request(target: &str, cookie: &str, body: &str) -> Request {
        let headers = [("cookie".to_string(), cookie.to_string())].into_iter().collect();
        Request { method: "GET".into(), target: target.into(), headers, body: body.into() }
    }

    fn text(answer: Answer) -> String {
        String::from_utf8(answer.whole).expect("text")
    }

    #[test]
    fn a_file_comes_in_a_page() {
        let (_folder, shared) = shared();
        let page = text(get(&shared, &request("/spec/get?file=dir00000/class1_0", "", "")));
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        assert!(page.contains("<pre>\nab<!WEB99CAD>picture<!/WEB99CAD>cd\n</pre>"), "{page}");
        let missing = text(get(&shared, &request("/spec/get?file=../class1_0", "", "")));
        assert!(missing.starts_with("HTTP/1.1 404"), "{missing}");
    }

    #[test]
    fn an_advertisement_takes_its_place() {
        let (_folder, shared) = shared();
        let cookie = "my_cookie=user_id=17&last_ad=4";
        let page = text(advertise(&shared, &request("/spec/ad?file=dir00000/class1_0", cookie, "")));
        assert!(page.contains("Set-Cookie: my_cookie=found_cookie&user_id=17&Ad_id="), "{page}");
        assert!(page.contains("cd\n</pre>"), "{page}");
        let unknown = text(advertise(&shared, &request("/spec/ad?file=dir00000/class1_0", "", "")));
        assert!(unknown.starts_with("HTTP/1.1 400"), "{unknown}");
    }

    #[test]
    fn what_is_posted_is_a_line() {
        let (folder, shared) = shared();
        let page = text(post(&shared, &request("/spec/post", "", "urlroot=/&dir=0&class=1&num=0&client=5")));
        assert!(page.contains("<pre>\nab"), "{page}");
        let log = std::fs::read_to_string(folder.path().join("post.log")).expect("a log");
        assert_eq!(log.len(), 139, "{log:?}");
        let bad = text(post(&shared, &request("/spec/post", "", "urlroot=/&dir=0&class=1&num=9&client=5")));
        assert!(bad.starts_with("HTTP/1.1 400"), "{bad}");
    }
}

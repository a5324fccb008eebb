//! Files, folders and methods of the web server, with a client that sends raw requests.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::{Format, Image, WebClient, WebTrial};

test_needs::needs!(E2fsprogs);

/// Content of the file for range requests.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";

/// Bytes of a sparse file larger than any socket buffer.
const HUGE_BYTES: u64 = 100 << 20;

/// Timeout until a response is counted.
const COUNTED: Duration = Duration::from_secs(5);

fn fill(root: &Path) -> std::io::Result<()> {
    fs::create_dir_all(root.join("strict"))?;
    fs::create_dir_all(root.join("with index"))?;
    fs::create_dir_all(root.join("names/folder"))?;
    fs::create_dir_all(root.join(".hidden"))?;
    fs::write(root.join("letters.txt"), LETTERS)?;
    fs::write(root.join("empty.txt"), "")?;
    fs::write(root.join("long.txt"), long_text())?;
    fs::write(root.join("large.bin"), large())?;
    fs::write(root.join("noise.txt"), noise())?;
    fs::File::create(root.join("huge.bin"))?.set_len(HUGE_BYTES)?;
    fs::write(root.join("with index/index.html"), "<p>the index")?;
    fs::write(root.join(".hidden/secret"), "secret")?;
    fs::write(root.join("secret"), "outside of what is served")?;
    for name in [
        "<script>alert(1)<",
        "a\"b'c&d",
        "per%41cent",
        "scheme:x",
        "ünïcode",
        "ques?tion#mark",
        "back\\slash",
        "line\nfeed",
        "tab\tstop",
    ] {
        fs::write(root.join("names").join(name), name)?;
    }
    fs::write(root.join("names").join(std::ffi::OsStr::from_bytes(b"not\xffutf-8")), "bytes")?;
    symlink("letters.txt", root.join("link"))?;
    symlink("../secret", root.join("strict/up"))?;
    symlink("../../../../../../status", root.join("strict/far-up"))?;
    symlink("/service/tcp", root.join("strict/absolute"))?;
    symlink("circle", root.join("circle"))
}

fn large() -> Vec<u8> {
    (0..1_000_000u32).flat_map(|number| [number as u8, (number >> 8) as u8, (number >> 16) as u8]).collect()
}

/// Incompressible bytes.
fn noise() -> Vec<u8> {
    let mut state = 1u64;
    let step = |state: &mut u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 56) as u8
    };
    (0..5000).map(|_| step(&mut state)).collect()
}

fn long_text() -> String {
    (0..2000).map(|number| format!("line {number} of a text\n")).collect()
}

fn disk() -> Image {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    fill(folder.path()).expect("files can be written");
    Image::of(folder.path(), Format { mebibytes: 24, ..Format::default() })
}

#[test]
fn methods_are_told_apart() {
    let disk = disk();
    let trial = WebTrial::start(&disk.path());
    let mut client = WebClient::connect(trial.ordinary);
    let whole = client.get("/letters.txt", "");
    assert_eq!((whole.status, whole.text().as_str()), (200, LETTERS));
    let head = client.ask("HEAD", "/letters.txt", "", b"");
    assert_eq!((head.status, head.field("content-length"), head.content.len()), (200, Some("26"), 0));
    for target in ["*", "/letters.txt"] {
        let options = client.ask("OPTIONS", target, "", b"");
        assert_eq!((options.status, options.field("allow")), (200, Some("GET, HEAD, OPTIONS")), "{target}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE"] {
        let refused = client.ask(method, "/letters.txt", "Content-Length: 3\r\n", b"abc");
        assert_eq!((refused.status, refused.field("allow")), (405, Some("GET, HEAD, OPTIONS")), "{method}");
    }
    assert_eq!(client.ask("BREW", "/letters.txt", "", b"").status, 501);
    assert_eq!(client.ask("get", "/letters.txt", "", b"").status, 501);
    // All on one connection, which the refused request closes.
    assert_eq!(client.ask("CONNECT", "test:80", "", b"").status, 501);
    client.ended();
    trial.end();
}

#[test]
fn content_is_asked_for_where_it_is_wanted() {
    let disk = disk();
    let trial = WebTrial::start(&disk.path());
    let mut client = WebClient::connect(trial.ordinary);
    client.send("POST /fault/echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    assert_eq!(client.answer(false).expect("word to go on").status, 100);
    client.send("abc");
    let answer = client.answer(false).expect("an answer");
    assert_eq!((answer.status, answer.text().as_str()), (200, "abc"));
    // The body of these is not awaited, so the connection cannot be reused.
    for path in ["/letters.txt", "/fault/unread"] {
        let mut client = WebClient::connect(trial.ordinary);
        client.send(format!("POST {path} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"));
        let answer = client.answer(false).expect("an answer");
        assert!(answer.status != 100 && answer.closes(), "{path}: {answer:?}");
        client.ended();
    }
    let mut client = WebClient::connect(trial.ordinary);
    assert_eq!(client.get("/letters.txt", "Expect: a-miracle\r\n").status, 417);
    // Without a body there is nothing to wait for.
    let mut client = WebClient::connect(trial.ordinary);
    assert_eq!(client.get("/letters.txt", "Expect: 100-continue\r\n").text(), LETTERS);
    let chunks = b"3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: z\r\n\r\n";
    let mut client = WebClient::connect(trial.ordinary);
    for _ in 0..3 {
        let answer = client.ask("POST", "/fault/echo", "Transfer-Encoding: chunked\r\n", chunks);
        assert_eq!((answer.status, answer.text().as_str()), (200, "abcdefg"));
    }
    trial.end();
}

#[test]
fn ranges_are_served() {
    let disk = disk();
    let trial = WebTrial::start(&disk.path());
    let mut client = WebClient::connect(trial.ordinary);
    for (range, content, told) in [
        ("bytes=0-0", "a", "bytes 0-0/26"),
        ("bytes=23-", "xyz", "bytes 23-25/26"),
        ("bytes=-3", "xyz", "bytes 23-25/26"),
        ("bytes=-100", LETTERS, "bytes 0-25/26"),
        ("bytes=24-99999999999999999999", "yz", "bytes 24-25/26"),
        ("bytes=30-40, 1-2", "bc", "bytes 1-2/26"),
    ] {
        let answer = client.get("/letters.txt", &format!("Range: {range}\r\n"));
        let found = (answer.status, answer.text(), answer.field("content-range"));
        assert_eq!(found, (206, content.to_string(), Some(told)), "{range}");
    }
    for range in ["bytes=26-", "bytes=-0", "bytes=99999999999999999999-"] {
        let answer = client.get("/letters.txt", &format!("Range: {range}\r\n"));
        assert_eq!((answer.status, answer.field("content-range")), (416, Some("bytes */26")), "{range}");
    }
    for range in ["lines=1-2", "bytes=2-1", "bytes=x", "bytes=0-20,1-25", "bytes=0-,0-,0-"] {
        let answer = client.get("/letters.txt", &format!("Range: {range}\r\n"));
        assert_eq!((answer.status, answer.text().as_str()), (200, LETTERS), "{range}");
    }
    let several = client.get("/letters.txt", "Range: bytes=0-1,-2\r\n");
    let kind = several.field("content-type").expect("a type");
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("the type of several parts");
    let part = |at: &str, data: &str| {
        let kind = "text/plain; charset=utf-8";
        format!("\r\n--{boundary}\r\ncontent-type: {kind}\r\ncontent-range: bytes {at}/26\r\n\r\n{data}")
    };
    assert_eq!(several.text(), format!("{}{}\r\n--{boundary}--\r\n", part("0-1", "ab"), part("24-25", "yz")));
    let another = client.get("/letters.txt", "Range: bytes=0-1,-2\r\n");
    assert!(another.status == 206 && another.field("content-type") != Some(kind), "{kind} twice");
    assert_eq!(client.get("/empty.txt", "Range: bytes=0-\r\n").status, 416);
    let head = client.ask("HEAD", "/letters.txt", "Range: bytes=0-1\r\n", b"");
    assert_eq!((head.status, head.field("content-length")), (200, Some("26")));
    let large = large();
    for (start, end) in [(0, 299_999), (65_535, 65_537), (262_143, 262_144), (2_999_990, 2_999_999), (0, 2_999_999)] {
        let answer = client.get("/large.bin", &format!("Range: bytes={start}-{end}\r\n"));
        assert!(answer.status == 206 && answer.content == large[start..=end], "{start} to {end}");
    }
    trial.end();
}

#[test]
fn chunks_out_of_the_grammar_are_refused_whoever_answers() {
    let disk = disk();
    let trial = WebTrial::start(&disk.path());
    let chunked = "Transfer-Encoding: chunked\r\n";
    for (method, path) in
        [("GET", "/letters.txt"), ("GET", "/missing"), ("GET", "/fault/hello"), ("POST", "/fault/echo")]
    {
        for chunks in ["0x3\r\nabc\r\n0\r\n\r\n", "-1\r\n\r\n", "g\r\n", "11111111111111111\r\n", "3\r\nabcd\r\n"] {
            let mut client = WebClient::connect(trial.ordinary);
            let answer = client.ask(method, path, chunked, chunks.as_bytes());
            assert_eq!((answer.status, answer.field("connection")), (400, Some("close")), "{method} {path} {chunks:?}");
        }
    }
    let mut client = WebClient::connect(trial.ordinary);
    for _ in 0..2 {
        let answer = client.ask("GET", "/letters.txt", chunked, b"3\r\nabc\r\n0\r\n\r\n");
        assert_eq!((answer.status, answer.text().as_str()), (200, LETTERS));
    }
    trial.end();
}

#[test]
fn conditions_are_kept() {
    let disk = disk();
    let trial = WebTrial::start(&disk.path());
    let mut client = WebClient::connect(trial.ordinary);
    // A recently written file has a weak tag: its time has a resolution of a second.
    let (tag, date) = loop {
        let answer = client.get("/letters.txt", "");
        let tag = answer.field("etag").expect("a tag").to_string();
        if !tag.starts_with("W/") {
            break (tag, answer.field("last-modified").expect("a date").to_string());
        }
        thread::sleep(Duration::from_millis(100));
    };
    let long_ago = "Sat, 01 Jan 2000 00:00:00 GMT";
    for (fields, status) in [
        (format!("If-None-Match: {tag}\r\n"), 304),
        (format!("If-None-Match: \"x\", W/{tag}\r\n"), 304),
        ("If-None-Match: *\r\n".into(), 304),
        ("If-None-Match: \"x\"\r\n".into(), 200),
        (format!("If-None-Match: \"x\"\r\nIf-Modified-Since: {date}\r\n"), 200),
        (format!("If-Modified-Since: {date}\r\n"), 304),
        (format!("If-Modified-Since: {long_ago}\r\n"), 200),
        ("If-Modified-Since: yesterday\r\n".into(), 200),
        (format!("If-Match: {tag}\r\n"), 200),
        (format!("If-Match: W/{tag}\r\n"), 412),
        ("If-Match: \"x\"\r\n".into(), 412),
        (format!("If-Unmodified-Since: {date}\r\n"), 200),
        (format!("If-Unmodified-Since: {long_ago}\r\n"), 412),
        (format!("Range: bytes=0-1\r\nIf-Range: {tag}\r\n"), 206),
        ("Range: bytes=0-1\r\nIf-Range: \"x\"\r\n".into(), 200),
        (format!("Range: bytes=0-1\r\nIf-Range: {long_ago}\r\n"), 200),
        (format!("Range: bytes=99-\r\nIf-None-Match: {tag}\r\n"), 304),
    ] {
        let answer = client.get("/letters.txt", &fields);
        assert_eq!(answer.status, status, "{fields}");
        if status == 304 {
            assert_eq!(answer.field("etag"), Some(tag.as_str()), "{fields}");
        }
    }
    assert_eq!(client.ask("HEAD", "/letters.txt", &format!("If-None-Match: {tag}\r\n"), b"").status, 304);
    trial.end();
}

#[test]
fn folders_and_names_are_served_as_they_are_and_no_others() {
    let disk = disk();
    let trial = WebTrial::start(&disk.path());
    let mut client = WebClient::connect(trial.ordinary);
    assert_eq!(client.get("/with%20index/", "").text(), "<p>the index");
    let moved = client.get("/with%20index", "");
    assert_eq!((moved.status, moved.field("location")), (301, Some("/with%20index/")));
    let moved = client.get("/with%20index?a=1&b=%20", "");
    assert_eq!((moved.status, moved.field("location")), (301, Some("/with%20index/?a=1&b=%20")));
    // Redirects must not lead to another host.
    assert_ne!(client.get("//names", "").field("location"), Some("//names/"));
    let page = client.get("/names/", "").text();
    assert!(!page.contains("<script"), "a name became a tag:\n{page}");
    let links: Vec<&str> = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(links.len(), 10, "the folder above, a folder and eight names: {links:?}");
    for link in links.iter().filter(|link| !link.ends_with('/')) {
        let path = format!("/names/{}", link.strip_prefix("./").expect("a link within the folder"));
        let answer = client.get(&path, "");
        assert_eq!(answer.status, 200, "{path}");
    }
    for (path, status) in [
        ("/names/%c3%bcn%c3%afcode", 200),
        ("/names/./../letters.txt", 200),
        ("/names//..//letters.txt", 200),
        ("/names/%2e%2e/letters.txt", 200),
        ("/link", 200),
        ("/..", 400),
        ("/../etc/passwd", 400),
        ("/names/../../etc/passwd", 400),
        ("/%2e%2e/%2e%2e/status", 400),
        ("/names%2f..%2f..%2f..%2fstatus", 400),
        ("/%00", 400),
        ("/%0d%0aX:%20y", 400),
        ("/%", 400),
        ("/%4", 400),
        ("/%zz", 400),
        ("/names/not%ffutf-8", 400),
        ("/..\\..\\x", 404),
        ("/.hidden/secret", 404),
        ("/.hidden/", 404),
        ("/names/.hidden", 404),
        ("/%2ehidden/secret", 404),
        ("/circle", 404),
        ("/lost+found", 404),
        ("/lost+found/", 404),
        ("/names/line%0afeed", 400),
        ("/letters.txt/", 404),
        ("/letters.txt/x", 404),
        ("/lost", 404),
    ] {
        assert_eq!(client.get(path, "").status, status, "{path}");
    }
    trial.end();
}

/// The file system resolves links; they lead anywhere below the served folder.
#[test]
fn links_stay_within_what_is_served() {
    let disk = disk();
    let trial = WebTrial::start(&disk.path());
    let mut client = WebClient::connect(trial.strict);
    for path in ["/up", "/far-up", "/far-up/", "/far-up/volumes", "/absolute"] {
        assert_eq!(client.get(path, "").status, 404, "{path}");
    }
    // The other server serves the parent folder, where the link resolves.
    let mut client = WebClient::connect(trial.ordinary);
    assert_eq!(client.get("/strict/up", "").text(), "outside of what is served");
    assert_eq!(client.get("/strict/far-up", "").status, 404);
    trial.end();
}

/// Small texts are compressed for clients that accept it, with a tag of their own.
#[test]
fn texts_are_sent_compressed_to_whom_takes_it() {
    let disk = disk();
    let mut trial = WebTrial::start(&disk.path());
    let mut client = WebClient::connect(trial.ordinary);
    let asks = "Accept-Encoding: br, gzip\r\n";
    // A recently written file may still change, and is not compressed.
    let coded = loop {
        let answer = client.get("/long.txt", asks);
        if answer.field("content-encoding").is_some() {
            break answer;
        }
        assert!(answer.field("etag").is_some_and(|tag| tag.starts_with("W/")), "{:?}", answer.fields);
        thread::sleep(Duration::from_millis(100));
    };
    let plain = client.get("/long.txt", "");
    assert_eq!(plain.text(), long_text());
    assert_eq!(end_to_end::gunzip(&coded.content), plain.content);
    assert!(coded.content.len() * 5 < plain.content.len(), "{} bytes", coded.content.len());
    for answer in [&coded, &plain] {
        assert_eq!(answer.field("vary"), Some("accept-encoding"));
    }
    let tags = [&coded, &plain].map(|answer| answer.field("etag").expect("a tag").to_string());
    assert_ne!(tags[0], tags[1], "two forms with the same strong tag");
    for (tag, fields, status) in
        [(&tags[0], asks, 304), (&tags[1], "", 304), (&tags[0], "", 200), (&tags[1], asks, 200)]
    {
        let answer = client.get("/long.txt", &format!("{fields}If-None-Match: {tag}\r\n"));
        assert_eq!((answer.status, answer.field("vary")), (status, Some("accept-encoding")), "{tag} {fields}");
    }
    let head = client.ask("HEAD", "/long.txt", asks, b"");
    assert_eq!(head.field("content-length"), Some(coded.content.len().to_string().as_str()));
    // Ranges refer to the uncompressed content.
    let part = client.get("/long.txt", &format!("{asks}Range: bytes=0-9\r\n"));
    assert_eq!((part.status, part.field("content-encoding"), part.content.len()), (206, None, 10));
    for fields in ["", "Accept-Encoding: br\r\n", "Accept-Encoding: gzip;q=0\r\n", "Accept-Encoding: identity\r\n"] {
        assert_eq!(client.get("/long.txt", fields).field("content-encoding"), None, "{fields}");
    }
    // Short, large and non-text files are not compressed.
    for path in ["/letters.txt", "/large.bin"] {
        let answer = client.get(path, asks);
        assert_eq!((answer.field("content-encoding"), answer.field("vary")), (None, None), "{path}");
    }
    let text = trial.shell("cat /status/web");
    assert!(text.contains(&format!("kept-gzip-bytes {}", coded.content.len())), "{text}");
    trial.end();
}

/// Incompressible texts are sent uncompressed even to clients that accept compression, and can be revalidated.
#[test]
fn texts_that_cannot_be_compressed_are_not_sent_again() {
    let disk = disk();
    let trial = WebTrial::start(&disk.path());
    let mut client = WebClient::connect(trial.ordinary);
    let asks = "Accept-Encoding: gzip\r\n";
    let tag = loop {
        let answer = client.get("/noise.txt", asks);
        assert_eq!(
            (answer.content, answer.fields.iter().any(|(name, _)| name == "content-encoding")),
            (noise(), false)
        );
        let tag = answer.fields.iter().find(|(name, _)| name == "etag").map(|(_, tag)| tag.clone()).expect("a tag");
        // A recently written file may still change.
        if !tag.starts_with("W/") {
            break tag;
        }
        thread::sleep(Duration::from_millis(100));
    };
    for pause in [Duration::ZERO, Duration::from_millis(1500)] {
        // The file is reopened after a second.
        thread::sleep(pause);
        assert_eq!(client.get("/noise.txt", &format!("{asks}If-None-Match: {tag}\r\n")).status, 304, "after {pause:?}");
        assert_eq!(client.get("/noise.txt", &format!("{asks}If-Match: {tag}\r\n")).status, 200, "after {pause:?}");
    }
    trial.end();
}

/// The server's counters are a read-only file.
#[test]
fn the_server_tells_what_it_did() {
    let disk = disk();
    let mut trial = WebTrial::start(&disk.path());
    let mut client = WebClient::connect(trial.ordinary);
    for (path, status) in
        [("/letters.txt", 200), ("/letters.txt", 200), ("/names", 301), ("/lost", 404), ("/fault/drop", 502)]
    {
        assert_eq!(client.get(path, "").status, status, "{path}");
    }
    // The last request is counted shortly after its response.
    let begin = Instant::now();
    let mut text = trial.shell("cat /status/web");
    while !text.contains("answers-5xx 1") && begin.elapsed() < COUNTED {
        text = trial.shell("cat /status/web");
    }
    for line in [
        "connections 1",
        "connections-at-most 1",
        "connections-taken 1",
        "connections-allowed 12000",
        "requests 5",
        "answers-2xx 2",
        "answers-3xx 1",
        "answers-4xx 1",
        "answers-5xx 1",
        "answers-cut 0",
        "application /fault web-fault running starts 1 failures 0 waiting 0 refused 0",
    ] {
        assert!(text.lines().any(|found| found.trim() == line), "no line `{line}`:\n{text}");
    }
    assert!(trial.shell("cat /status/web-strict").contains("requests 0"));
    assert!(trial.shell("echo x > /status/web").contains("nothing can be made"), "it can be changed");
    trial.end();
}

#[test]
fn a_thousand_requests_can_wait_in_a_row() {
    let disk = disk();
    let trial = WebTrial::start(&disk.path());
    let mut client = WebClient::connect(trial.ordinary);
    let mut requests = String::new();
    for number in 0..1000 {
        let path = ["/letters.txt", "/lost", "/fault/size?bytes=5", "/with%20index/"][number % 4];
        requests += &format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    assert!(client.send(requests));
    for number in 0..1000 {
        let answer = client.answer(false).expect("an answer to each");
        assert_eq!(answer.status, if number % 4 == 1 { 404 } else { 200 }, "request {number}");
    }
    client.finish();
    client.ended();
    trial.end();
}

/// A client that reads a file while it is written gets a consistent version, or a detectable truncation.
#[test]
fn files_that_change_are_served_right_or_cut() {
    let disk = disk();
    let mut trial = WebTrial::start(&disk.path());
    let mut client = WebClient::connect(trial.ordinary);
    for (round, (size, letter)) in [(20_000, "b"), (10, "c"), (30_000, "d"), (1, "e")].into_iter().enumerate() {
        // The cache holds the old version.
        let before = client.get("/letters.txt", "");
        assert_eq!(before.status, 200);
        trial.shell(&format!("echo {} > /fs/disk0/letters.txt", letter.repeat(size.min(60))));
        for _ in 0..3 {
            let answer = client.get("/letters.txt", "");
            let text = answer.text();
            assert_eq!(answer.status, 200, "round {round}: {text}");
            let is_new = text.trim_end().bytes().all(|byte| byte == letter.as_bytes()[0]);
            assert!(is_new || text == before.text(), "round {round}: neither old nor new: {text}");
        }
    }
    // A large response is in progress when the file changes: the rest is not sent.
    let mut reader = WebClient::connect(trial.ordinary);
    reader.send("GET /huge.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    reader.stream().peek(&mut [0]).expect("the answer begins");
    trial.shell("echo short > /fs/disk0/huge.bin");
    let answer = reader.answer(false).expect("the answer began");
    assert!(answer.status == 200 && !answer.is_whole, "{} bytes came as if they were all", answer.content.len());
    assert_eq!(client.get("/huge.bin", "").text().trim_end(), "short");
    trial.shell("rm /fs/disk0/letters.txt");
    // The server reopens files after a second.
    let begin = Instant::now();
    while client.get("/letters.txt", "").status != 404 {
        assert!(begin.elapsed() < Duration::from_secs(10), "a file that is gone is served");
        thread::sleep(Duration::from_millis(100));
    }
    trial.end();
}

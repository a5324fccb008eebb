//! The program `fetch`, with scripted servers on the host, and with the system's own web server.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use end_to_end::{Format, Image, Machine, Run, Site, Terminal};

/// A server that sends each connection the next response after reading a request; returns the requests at its end.
struct Server {
    port: u16,
    thread: JoinHandle<Vec<String>>,
}

impl Server {
    fn new(answers: Vec<Vec<u8>>) -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        Server::at(listener, answers)
    }

    fn at(listener: TcpListener, answers: Vec<Vec<u8>>) -> Server {
        let port = listener.local_addr().expect("it is bound").port();
        let thread = thread::spawn(move || {
            let answer = |answer: Vec<u8>| {
                let (mut stream, _) = listener.accept().expect("a client");
                let request = request(&mut stream);
                // The client may close early.
                let _ = stream.write_all(&answer);
                request
            };
            answers.into_iter().map(answer).collect()
        });
        Server { port, thread }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    #[track_caller]
    fn end(self) -> Vec<String> {
        self.thread.join().expect("the server ends")
    }
}

/// Reads a request with its body.
fn request(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    let mut bytes = Vec::new();
    let mut buffer = [0; 65536];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, content)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok()).unwrap_or(0);
            if content.len() >= length {
                return text;
            }
        }
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
            _ => return text,
        }
    }
}

fn with_length(content: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", content.len());
    [head.as_bytes(), content].concat()
}

#[track_caller]
fn run(commands: &str) -> Run {
    Machine::new().run(commands)
}

fn content(length: u32) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 23) as u8).collect()
}

#[test]
fn content_comes_whole_however_it_is_framed() {
    let large = content(3_000_001);
    let mut chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for (number, chunk) in large.chunks(77_777).enumerate() {
        let extension = if number == 1 { ";name=\"value\"" } else { "" };
        chunked.extend_from_slice(format!("{:X}{extension}\r\n", chunk.len()).as_bytes());
        chunked.extend_from_slice(chunk);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
    let until_end = [b"HTTP/1.0 200 OK\r\n\r\n", &large[..]].concat();
    let interim = [b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", &with_length(&large)[..]].concat();
    let behind = [&with_length(&large)[..], b"what nobody asked for"].concat();
    for answer in [with_length(&large), chunked, until_end, interim, behind] {
        let server = Server::new(vec![answer]);
        let run = run(&format!("fetch '{}'", server.url("/a?b=c#d")));
        assert!(run.status == Some(0) && run.output == large, "{} bytes came:\n{}", run.output.len(), run.errors);
        let requests = server.end();
        assert!(requests[0].starts_with("GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:"), "{requests:?}");
    }
    let server = Server::new(vec![with_length(b"")]);
    assert_eq!(run(&format!("fetch {}", server.url(""))).succeeded(), "");
    server.end();
}

#[test]
fn it_goes_where_the_server_points_to() {
    let moved = |status, to: &str| format!("HTTP/1.1 {status} Moved\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
    let last = Server::new(vec![with_length(b"there\n")]);
    let server = Server::new(vec![
        moved(301, "/second?x").into(),
        moved(302, "third").into(),
        moved(307, &last.url("/last")).into(),
    ]);
    assert_eq!(run(&format!("fetch {}", server.url("/a/first"))).succeeded(), "there\n");
    let (first, last) = (server.end(), last.end());
    let lines: Vec<&str> = first.iter().chain(&last).filter_map(|text| text.lines().next()).collect();
    let expected = ["GET /a/first HTTP/1.1", "GET /second?x HTTP/1.1", "GET /third HTTP/1.1", "GET /last HTTP/1.1"];
    assert_eq!(lines, expected);

    let circle = Server::new(vec![moved(302, "/").into(); 4]);
    run(&format!("fetch {} --redirects 3", circle.url("/"))).refused(&["more than 3 redirects", "--redirects"]);
    circle.end();
    let secure = Server::new(vec![moved(301, "https://localhost/").into()]);
    run(&format!("fetch {}", secure.url("/"))).refused(&["redirect to https://localhost/", "encryption"]);
    secure.end();
    let shy = Server::new(vec![moved(301, "/there").into(), moved(301, "/there").into()]);
    run(&format!("fetch {} --redirects 0", shy.url("/"))).refused(&["moved to /there", "--redirects 1"]);
    let head = run(&format!("fetch {} --redirects 0 --head", shy.url("/"))).succeeded();
    assert!(head.starts_with("HTTP/1.1 301 Moved\nLocation: /there\n"), "{head}");
    assert!(shy.end()[1].starts_with("HEAD / HTTP/1.1\r\n"));
}

#[test]
fn what_is_for_one_host_is_told_to_no_other() {
    let there = Server::new(vec![with_length(b"there")]);
    let same = b"HTTP/1.1 302 Found\r\nLocation: /same\r\nContent-Length: 0\r\n\r\n".to_vec();
    let other = format!("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", there.url("/")).into_bytes();
    let here = Server::new(vec![same, other]);
    let fields = "--header 'Authorization: secret' --header 'cookie: a=b' --header 'Host: here' --header 'X-More: c'";
    assert_eq!(run(&format!("fetch {} {fields}", here.url("/"))).succeeded(), "there");
    for request in here.end() {
        for field in ["Authorization: secret", "cookie: a=b", "Host: here", "X-More: c"] {
            assert!(request.contains(field), "{field} is missing:\n{request}");
        }
    }
    let host = format!("Host: 127.0.0.1:{}\r\n", there.port);
    let request = there.end().concat();
    assert!(request.contains(&host) && request.contains("X-More: c"), "{request}");
    for field in ["secret", "a=b", "Host: here"] {
        assert!(!request.contains(field), "{field} was told to another host:\n{request}");
    }
}

#[test]
fn what_goes_wrong_is_said_in_words() {
    for (arguments, parts) in [
        ("https://localhost/", &["fetch: https://localhost/", "https needs encryption"][..]),
        ("ftp://localhost/", &["only http://"]),
        ("http://", &["no host"]),
        ("http://a:b@localhost/", &["before the `@`"]),
        ("http://localhost:x/", &["the port is not a number"]),
        ("http://127.0.0.1:1/", &["connection refused"]),
        ("http://no-such-name.invalid/", &["no-such-name.invalid", "name"]),
        ("http://localhost/ --redirects -1", &["--redirects -1", "from 0"]),
        ("http://localhost/ --header nonsense", &["--header nonsense", "Name: value"]),
        ("http://localhost/ --head --post a", &["--head", "--post"]),
    ] {
        run(&format!("fetch {arguments}")).refused(parts);
    }
    let answered = |answer: &[u8], arguments: &str, parts: &[&str]| {
        let server = Server::new(vec![answer.to_vec()]);
        run(&format!("fetch {} {arguments}", server.url("/x"))).refused(parts);
        server.end();
    };
    answered(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone", "", &["404 Not Found", "check the path"]);
    answered(b"HTTP/1.1 503 \x1b[2J\r\n\r\n", "", &["does not speak HTTP"]);
    answered(b"HTTP/1.1 503 Busy\r\n\r\n", "", &["503 Busy", "try again later"]);
    answered(b"SSH-2.0-OpenSSH_9\r\n", "", &["does not speak HTTP"]);
    answered(b"", "", &["without a response"]);
    answered(b"HTTP/1.1 200 OK\r\nContent-Length: 2048\r\n\r\nabc", "", &["truncated after 3 B of 2.0 KiB"]);
    answered(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", "", &["truncated after 3 B"]);
    answered(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n", "", &["malformed HTTP body"]);
    answered(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "", &["contradicts itself"]);
    let header = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(70_000));
    answered(header.as_bytes(), "", &["longer than it may be"]);
}

#[test]
fn a_silent_server_is_waited_for_so_long_and_no_longer() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let url = format!("http://127.0.0.1:{}/", listener.local_addr().expect("it is bound").port());
    run(&format!("fetch {url} --wait 300ms")).refused(&["the server timed out", "--wait"]);
    run(&format!("fetch {url} --limit 300ms")).refused(&["--limit exceeded"]);
    // A trickle satisfies --wait, but not --limit.
    let drip = thread::spawn(move || {
        // The two earlier connections are in the backlog.
        let [_, _, (mut stream, _)] = [(); 3].map(|()| listener.accept().expect("a client"));
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(b".").is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
    });
    run(&format!("fetch {url} --wait 2s --limit 500ms")).refused(&["--limit exceeded"]);
    drip.join().expect("the server ends");
}

#[test]
fn both_kinds_of_addresses() {
    let Ok(listener) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else {
        return println!("skipped: this host has no IPv6");
    };
    let server = Server::at(listener, vec![with_length(b"six\n"); 2]);
    assert_eq!(run(&format!("fetch http://[::1]:{}/", server.port)).succeeded(), "six\n");
    assert_eq!(run(&format!("fetch http://[::1]:{}/ --ipv6", server.port)).succeeded(), "six\n");
    let port = server.port;
    assert!(server.end()[0].contains(&format!("Host: [::1]:{port}\r\n")));
    let server = Server::new(vec![with_length(b"four\n")]);
    assert_eq!(run(&format!("fetch http://localhost:{}/ --ipv4", server.port)).succeeded(), "four\n");
    server.end();
    run("fetch http://127.0.0.1:1/ --ipv6").refused(&["no such address"]);
}

#[test]
fn files_are_written_to_and_sent_from_a_disk() {
    test_needs::needs!(E2fsprogs);
    let nothing = tempfile::tempdir().expect("a folder");
    let disk = Image::of(nothing.path(), Format { mebibytes: 16, ..Format::default() });
    let large = content(2_000_000);
    let server = Server::new(vec![
        with_length(&large),
        with_length(b"HTTP"),
        with_length(b"thanks\n"),
        b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n".to_vec(),
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab".to_vec(),
    ]);
    let url = server.url("/");
    let commands = format!(
        "fetch {url} --to /fs/disk0/large; cd /fs/disk0; fetch {url} --to small --quiet; echo -n 'a=b&c' > form;\n\
         fetch {url} --post form --type application/x-www-form-urlencoded --header 'X-Word: is here' --header 'user-agent: me';\n\
         fetch {url} --post form; echo $?; fetch {url} --to cut; echo $?; fetch {url} --post nothing; fetch {url} --to /no/a"
    );
    let run = Machine::new().disk(disk.path()).run(&commands);
    let text = run.text();
    assert!(text.starts_with("/fs/disk0/large: 1.9 MiB in "), "{run}");
    assert!(text.lines().skip(1).eq(["thanks", "1", "1"]), "{run}");
    for part in ["413 Content Too Large; the file is too large", "truncated after 2 B of 9 B", "nothing: not found"] {
        assert!(run.errors.contains(part), "`{part}` is missing:\n{run}");
    }
    let requests = server.end();
    assert!(
        requests[2].starts_with("POST / HTTP/1.1\r\n") && requests[2].ends_with("\r\n\r\na=b&c"),
        "{}",
        requests[2]
    );
    for field in ["Content-Type: application/x-www-form-urlencoded", "X-Word: is here", "user-agent: me"] {
        assert!(requests[2].contains(&format!("\r\n{field}\r\n")), "{}", requests[2]);
    }
    assert!(!requests[2].contains("User-Agent"), "{}", requests[2]);
    disk.check();
    let files = disk.contents();
    assert!(fs::read(files.path().join("large")).unwrap_or_default() == large);
    assert_eq!(fs::read(files.path().join("small")).unwrap_or_default(), b"HTTP");
}

/// A progress line is shown, and erased at the end.
#[test]
fn a_person_sees_how_far_it_is_on_a_disk() {
    test_needs::needs!(E2fsprogs);
    let nothing = tempfile::tempdir().expect("a folder");
    let disk = Image::of(nothing.path(), Format { mebibytes: 16, ..Format::default() });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let (seen, is_seen) = mpsc::channel();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        request(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\n").expect("it reads");
        stream.write_all(&[b'x'; 2048]).expect("it reads");
        let mut left = 2048;
        // Progress is redrawn as data arrives; so few bytes do not change it.
        while is_seen.recv_timeout(Duration::from_millis(500)) == Err(RecvTimeoutError::Timeout) {
            stream.write_all(b"x").expect("it reads");
            left -= 1;
        }
        stream.write_all(&vec![b'x'; left]).expect("it reads");
    });
    let mut terminal = Terminal::start(Machine::new().disk(disk.path()).command(None));
    terminal.wait_for("/> ");
    terminal.press(&format!("fetch http://127.0.0.1:{port}/ --to /fs/disk0/file\r"));
    terminal.wait_for(" 50 %  2.0 KiB of 4.0 KiB");
    seen.send(()).expect("the server waits");
    terminal.wait_for("/fs/disk0/file: 4.0 KiB in ");
    server.join().expect("the server ends");
    terminal.press("exit\r");
    assert_eq!(terminal.end(), Some(0));
}

/// The machine's own web server, as a client on the same machine.
#[test]
fn the_systems_own_web_server_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("page"), "a page\n").expect("a file can be written");
    fs::write(folder.path().join("large"), content(20_000_000)).expect("a file can be written");
    fs::create_dir(folder.path().join("sub")).expect("a folder");
    let mut site = Site::serve_with(folder.path(), &["--demo"]);
    let url = site.url("");
    assert_eq!(site.live.ask(&format!("fetch {url}/page")), "a page\n");
    assert!(site.live.ask(&format!("fetch {url}/sub")).contains("<title>"));
    assert!(site.live.ask(&format!("fetch {url}/page --head")).to_lowercase().contains("\ncontent-length: 7\n"));
    let same = site.live.ask(&format!("fetch {url}/large | hash; cat /fs/site/large | hash"));
    let lines: Vec<&str> = same.lines().collect();
    assert!(lines.len() == 2 && lines[0] == lines[1], "{same}");
    assert!(site.live.ask(&format!("fetch {url}/hello")).contains("world"));
    site.end();
}

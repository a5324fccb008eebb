//! Web applications that fail in every way: each failure costs one response, the next request is served, other clients
//! notice nothing, and nothing leaks.

use std::thread;
use std::time::{Duration, Instant};

use end_to_end::{Load, Machine, Question, Site, WebClient, built_system, free_port};

/// Timeout until an application is back.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Load during the test.
const GREETING: usize = 0;
/// The same, on the failing application.
const FAILING: usize = 1;

/// Requests a page of the healthy application.
struct Greeting;

impl Question for Greeting {
    fn next(&mut self) -> String {
        "GET /hello?name=you HTTP/1.1\r\nHost: test".into()
    }

    fn is_right(&self, content: &[u8]) -> bool {
        String::from_utf8_lossy(content).contains("you")
    }
}

/// Requests a good page of the failing application.
struct Unread;

impl Question for Unread {
    fn next(&mut self) -> String {
        "GET /fault/unread HTTP/1.1\r\nHost: test".into()
    }

    fn is_right(&self, content: &[u8]) -> bool {
        content == b"not read\n"
    }
}

fn site() -> Site {
    let port = free_port();
    let machine = Machine::new().system(built_system("web-faults")).parameter(&format!("web-port={port}"));
    Site::start(machine.command(None), port)
}

/// Retries until the application is back.
#[track_caller]
fn is_back(site: &Site, after: &str) {
    let begin = Instant::now();
    loop {
        let answer = WebClient::connect(site.port).get("/fault/unread", "Connection: close\r\n");
        if answer.status == 200 {
            return assert_eq!(answer.text(), "not read\n", "after {after}");
        }
        // Only repeated failures are delayed.
        assert!(answer.status == 503 && begin.elapsed() < TIMEOUT, "after {after}: {answer:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Failing paths, and the status that the client receives.
const FAILURES: [(&str, u16); 27] = [
    ("/fault/crash", 502),
    ("/fault/exit?status=3", 502),
    ("/fault/overflow", 502),
    ("/fault/overeat", 502),
    ("/fault/overeat-blocks", 502),
    ("/fault/hang", 504),
    ("/fault/wait", 504),
    ("/fault/slow?ms=60000", 504),
    ("/late/", 504),
    ("/fault/drop", 502),
    ("/fault/headers?count=1000&bytes=1000", 502),
    ("/fault/headers?count=1&bytes=200000", 502),
    ("/fault/bad-head?kind=colon", 502),
    ("/fault/bad-head?kind=nul", 502),
    ("/fault/bad-head?kind=cr", 502),
    ("/fault/bad-head?kind=blank", 502),
    ("/fault/bad-head?kind=nameless", 502),
    ("/fault/status?code=0", 502),
    ("/fault/status?code=99", 502),
    ("/fault/status?code=100", 502),
    ("/fault/status?code=199", 502),
    ("/fault/status?code=1000", 502),
    ("/fault/status?code=65535", 502),
    ("/fault/long-count", 502),
    ("/fault/crash?again", 502),
    ("/fault/hang?again", 504),
    ("/fault/overeat?again", 502),
];

#[test]
fn each_failure_costs_one_answer_and_others_do_not_notice() {
    let mut site = site();
    let paths = ["/hello", "/fault/unread"];
    let before = site.in_use(&paths);
    let load = Load::start(site.port, (0..6).map(|_| (GREETING, Box::new(Greeting) as Box<dyn Question>)).collect());
    for (path, status) in FAILURES {
        let seen = load.good(GREETING);
        // The connection survives a failed application.
        let mut client = WebClient::connect(site.port);
        let answer = client.get(path, "");
        assert_eq!((answer.status, answer.is_whole), (status, true), "{path}: {answer:?}");
        if !answer.closes() {
            assert_eq!(client.get("/hello", "").status, 200, "on the same connection after {path}");
        }
        is_back(&site, path);
        let begin = Instant::now();
        while load.good(GREETING) == seen {
            assert!(begin.elapsed() < TIMEOUT, "others were not served after {path}");
        }
    }
    let gap = load.longest_gap(GREETING);
    let (statuses, broken) = load.end();
    assert!(statuses.is_empty() && broken == 0, "others have seen {statuses:?}, and {broken} broken connections");
    println!("the longest time in which nobody had an answer: {gap:.1?}");
    let processes = site.live.processes();
    assert!(processes.iter().filter(|process| process.name == "web-fault").count() <= 1, "{processes:?}");
    site.is_as_before(&before, &paths, 20);
    site.end();
}

#[test]
fn answers_that_are_odd_and_allowed_arrive() {
    let mut site = site();
    let before = site.in_use(&["/hello", "/fault/unread"]);
    let mut client = WebClient::connect(site.port);
    for (path, status, content) in [
        ("/fault/unread", 200, "not read\n"),
        ("/fault/slow?ms=100", 200, "late\n"),
        ("/fault/drip?pieces=3&ms=50", 200, "drip\ndrip\ndrip\n"),
        ("/fault/size?bytes=0", 200, ""),
        ("/fault/headers?count=3&bytes=100", 200, "many headers\n"),
        ("/fault/status?code=404", 404, "a status\n"),
        ("/fault/status?code=599", 599, "a status\n"),
        ("/fault/no-content", 204, ""),
        ("/fault/unread", 200, "not read\n"),
    ] {
        let answer = client.get(path, "");
        assert_eq!((answer.status, answer.text().as_str()), (status, content), "{path}");
        assert!(answer.is_whole, "{path}");
    }
    let large = client.get("/fault/size?bytes=10000001", "");
    assert!(large.is_whole && large.content.len() == 10_000_001, "{} bytes", large.content.len());
    let sent: Vec<u8> = (0..300_000u32).map(|at| (at >> 3) as u8).collect();
    let echo = client.ask("POST", "/fault/echo", &format!("Content-Length: {}\r\n", sent.len()), &sent);
    assert!(echo.is_whole && echo.content == sent, "{} bytes came back", echo.content.len());
    // An unread body is skipped; if it is long, the response announces `Connection: close`.
    for (bytes, closes) in [(1000, false), (100_000, true)] {
        let mut client = WebClient::connect(site.port);
        let fields = format!("Content-Length: {bytes}\r\n");
        let answer = client.ask("POST", "/fault/unread", &fields, &vec![b'x'; bytes]);
        assert_eq!((answer.status, answer.closes()), (200, closes), "{bytes} bytes that nobody reads");
        if !closes {
            assert_eq!(client.get("/fault/unread", "").status, 200);
        }
    }
    // An application's own framing header does not change the framing.
    let servers = WebClient::connect(site.port).get("/fault/bad-head?kind=servers", "");
    assert!(servers.status == 502 || servers.text() == "a bad head\n", "{servers:?}");
    // A truncated response is detectable, and the application runs on.
    let cut = WebClient::connect(site.port).get("/fault/cut?bytes=1000", "");
    assert!(cut.status == 200 && !cut.is_whole, "{cut:?}");
    // A client that leaves an endless response leaks nothing.
    for _ in 0..3 {
        let mut leaver = WebClient::connect(site.port);
        leaver.send("GET /fault/endless HTTP/1.1\r\nHost: test\r\n\r\n");
        thread::sleep(Duration::from_millis(100));
    }
    is_back(&site, "answers without end");
    drop(client);
    site.is_as_before(&before, &["/hello", "/fault/unread"], 20);
    site.end();
}

/// An application that always fails is restarted with back-off.
#[test]
fn an_application_that_only_fails_is_let_rest() {
    let site = site();
    let mut client = WebClient::connect(site.port);
    let mut rests = None;
    for _ in 0..60 {
        let answer = client.get("/fault/crash", "");
        assert!([502, 503].contains(&answer.status), "{answer:?}");
        if answer.status == 503 {
            rests = answer.field("retry-after").and_then(|seconds| seconds.parse::<u32>().ok());
            assert!(rests.is_some(), "{answer:?}");
            break;
        }
        if answer.closes() {
            client = WebClient::connect(site.port);
        }
    }
    assert!(rests.is_some_and(|seconds| (1..=60).contains(&seconds)), "60 crashes in a row were all tried: {rests:?}");
    assert_eq!(WebClient::connect(site.port).get("/hello", "").status, 200);
    is_back(&site, "a rest");
    site.end();
}

/// An overloaded application is left running: requests that wait too long are refused, and those in progress are
/// answered.
#[test]
fn an_application_with_much_to_do_is_not_ended() {
    let site = site();
    is_back(&site, "the start");
    let ends = |site: &Site| site.live.errors().matches("timed out and was stopped").count();
    let before = ends(&site);
    let port = site.port;
    let asked: Vec<_> = (0..300)
        .map(|_| {
            thread::spawn(move || WebClient::connect(port).get("/fault/slow?ms=300", "Connection: close\r\n").status)
        })
        .collect();
    let statuses: Vec<u16> = asked.into_iter().map(|client| client.join().expect("an answer")).collect();
    let answered = statuses.iter().filter(|status| **status == 200).count();
    assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
    assert!(answered >= 128, "only {answered} of 300 were answered");
    assert_eq!(ends(&site), before, "it was ended: {}", site.live.errors());
    is_back(&site, "much to do");
    site.end();
}

/// A full application queue gives 503 with `Retry-After` immediately, and is counted.
#[test]
fn a_full_queue_is_answered_with_503_and_when_to_try_again() {
    let mut site = site();
    is_back(&site, "the start");
    let port = site.port;
    let ask = || thread::spawn(move || WebClient::connect(port).get("/fault/slow?ms=900", "Connection: close\r\n"));
    // 64 in progress, 128 queued.
    let asked: Vec<_> = (0..300).map(|_| ask()).collect();
    let answers: Vec<_> = asked.into_iter().map(|client| client.join().expect("an answer")).collect();
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status == 503).collect();
    assert!(refused.len() >= 100 && refused.len() < 300, "{} of 300 were refused", refused.len());
    let untold = refused.iter().find(|answer| answer.field("retry-after") != Some("1"));
    assert!(untold.is_none(), "{untold:?}");
    let status = site.live.ask("cat /status/web");
    let line = status.lines().find(|line| line.starts_with("application /fault ")).expect("a line");
    let counted = line.rsplit_once(" refused ").and_then(|(_, count)| count.parse::<usize>().ok());
    assert!(counted.is_some_and(|counted| (1..=refused.len()).contains(&counted)), "{line}");
    is_back(&site, "a full queue");
    site.end();
}

/// Requests in an application that fails get one response each; the others proceed.
#[test]
fn requests_under_way_fail_with_the_application() {
    let mut site = site();
    let paths = ["/hello", "/fault/unread"];
    let before = site.in_use(&paths);
    let questions = (0..4).map(|_| (GREETING, Box::new(Greeting) as Box<dyn Question>));
    let failing = (0..4).map(|_| (FAILING, Box::new(Unread) as Box<dyn Question>));
    let load = Load::start(site.port, questions.chain(failing).collect());
    for _ in 0..10 {
        let answer = WebClient::connect(site.port).get("/fault/crash", "Connection: close\r\n");
        assert!([502, 503].contains(&answer.status), "{answer:?}");
        is_back(&site, "a crash among others");
    }
    assert!(load.good(FAILING) > 0);
    let (statuses, broken) = load.end();
    assert!(statuses.keys().all(|status| [502, 503].contains(status)) && broken == 0, "{statuses:?}, {broken}");
    site.is_as_before(&before, &paths, 20);
    site.end();
}

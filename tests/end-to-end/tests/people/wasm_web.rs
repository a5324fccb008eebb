//! A web application that is a WebAssembly module, beside the same one as a native program.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use end_to_end::{Load, Machine, Question, Site, WebClient, built_system, free_port};

/// Requests under load for each client, at least.
const REQUESTS: usize = 200;
/// Timeout for them.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Clients whose bodies never come.
const STALLED: usize = 20;

fn site() -> Site {
    let port = free_port();
    let machine = Machine::new().system(built_system("wasm-web")).parameter(&format!("web-port={port}"));
    Site::start(machine.command(None), port)
}

/// Greets somebody else each time.
struct Greeting(u64);

impl Question for Greeting {
    fn next(&mut self) -> String {
        self.0 += 1;
        format!("GET /?name=number{} HTTP/1.1\r\nHost: test", self.0)
    }

    fn is_right(&self, content: &[u8]) -> bool {
        String::from_utf8_lossy(content).contains(&format!("<h1>Servus, number{}!</h1>", self.0))
    }
}

#[test]
fn a_module_answers_as_the_native_application_does() {
    let site = site();
    let mut client = WebClient::connect(site.port);
    for query in ["", "?name=Ada", "?name=%3Cscript%3E", "?name=%C3%A4&name=b", "?name=%zz"] {
        let [module, native] = ["/", "/native/"].map(|path| client.get(&format!("{path}{query}"), ""));
        assert_eq!((module.status, module.text()), (native.status, native.text()), "{query}");
        assert_eq!(module.field("content-type"), native.field("content-type"), "{query}");
    }
    assert_eq!(client.get("/nothing", "").status, 404);
    site.end();
}

#[test]
fn a_module_serves_many_clients_and_bodies_that_stall_hold_up_nobody() {
    let mut site = site();
    let paths = ["/", "/native/"];
    let before = site.in_use(&paths);
    let length = |bytes: usize| format!("Content-Length: {bytes}\r\n");
    let mut client = WebClient::connect(site.port);
    for bytes in [0, 1, 70_000, 1 << 20] {
        let answer = client.ask("POST", "/", &length(bytes), &vec![b'x'; bytes]);
        assert!(answer.status == 200 && answer.text().contains("Servus, world!"), "{bytes}: {answer:?}");
    }
    let answer = WebClient::connect(site.port).ask("POST", "/", &length((1 << 20) + 1), &vec![b'x'; (1 << 20) + 1]);
    assert_eq!(answer.status, 413);

    let stalled: Vec<TcpStream> = (0..STALLED)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", site.port)).expect("it listens");
            stream.write_all(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nhalf").expect("it reads");
            stream
        })
        .collect();
    let load = Load::start(site.port, (0..6).map(|_| (0, Box::new(Greeting(0)) as Box<dyn Question>)).collect());
    let begin = Instant::now();
    while load.good(0) < 6 * REQUESTS {
        assert!(begin.elapsed() < TIMEOUT, "{} responses in {TIMEOUT:?}", load.good(0));
        std::thread::sleep(Duration::from_millis(5));
    }
    let (statuses, broken) = load.end();
    assert!(statuses.is_empty() && broken == 0, "{statuses:?}, and {broken} broken connections");
    // One is still answered; the others leave in the middle of their bodies.
    let mut stalled = stalled.into_iter();
    let mut last = WebClient::of(stalled.next().expect("it stalls"));
    assert!(last.send(b"other!"));
    assert_eq!(last.answer(false).map(|answer| answer.status), Some(200));
    drop((last, stalled, client));
    site.is_as_before(&before, &paths, 20);
    site.end();
}

//! More concurrent clients than an application can serve.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use end_to_end::Site;

/// As with `h2load -c 1000`.
const CLIENTS: usize = 1000;
const REQUESTS: usize = 3;
const LIMIT: Duration = Duration::from_secs(60);

/// Reads a complete response with a length and returns its status.
fn status(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).expect("an answer");
        answer.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&answer).to_ascii_lowercase();
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, content)| {
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            length.is_some_and(|length: usize| content.len() >= length)
        });
        if whole || count == 0 {
            return text.get(9..12).unwrap_or_default().into();
        }
    }
}

#[test]
fn a_thousand_clients_of_an_application_get_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("index.html"), "here").expect("a file can be written");
    let site = Site::serve_with(folder.path(), &["--demo"]);
    let connect = |_| {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, site.port)).expect("the server takes connections");
        stream.set_read_timeout(Some(LIMIT)).expect("a limit");
        stream
    };
    let mut clients: Vec<TcpStream> = (0..CLIENTS).map(connect).collect();
    for request in 0..REQUESTS {
        for client in &mut clients {
            client.write_all(b"GET /hello HTTP/1.1\r\nHost: test\r\n\r\n").expect("the server reads");
        }
        let others: Vec<String> = clients.iter_mut().map(status).filter(|status| status != "200").collect();
        assert!(others.is_empty(), "request {request}: {} of {CLIENTS} got {:?}", others.len(), others.first());
    }
    drop(clients);
    site.end();
}

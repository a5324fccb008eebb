//! The program `fetch` with Python's web server.

use std::fs;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::{Machine, free_port};

test_needs::needs!(Python);

/// Python's server of a folder.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It runs until killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn pythons_server_is_understood() {
    let folder = tempfile::tempdir().expect("a folder");
    let large: Vec<u8> = (0..9_000_000u32).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 23) as u8).collect();
    fs::write(folder.path().join("large"), &large).expect("a file can be written");
    fs::create_dir(folder.path().join("sub")).expect("a folder");
    fs::write(folder.path().join("sub/index.html"), "below\n").expect("a file can be written");
    let port = free_port();
    let mut command = Command::new("python3");
    command.args(["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()]).current_dir(folder.path());
    let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _server = Server(started.expect("python3 starts"));
    let begin = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(20), "python's server does not listen");
        thread::sleep(Duration::from_millis(10));
    }
    let url = format!("http://localhost:{port}");
    let run = Machine::new().run(&format!("fetch {url}/large"));
    assert!(run.status == Some(0) && run.output == large, "{} bytes:\n{}", run.output.len(), run.errors);
    // It redirects to the folder's name with a slash.
    assert_eq!(Machine::new().run(&format!("fetch {url}/sub")).succeeded(), "below\n");
    Machine::new().run(&format!("fetch {url}/nothing")).refused(&["404", "check the path"]);
}

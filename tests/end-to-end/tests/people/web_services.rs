//! A site as a service of the host: without an input it serves until it is asked to end, and its supervisor is told.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::{WebClient, built_system, free_port, repository, sing, target};
use tempfile::TempDir;

/// How long a start or an end may take on a busy host.
const MOST: Duration = Duration::from_secs(60);
/// A process that is killed gives its port back a moment later.
const MOST_FOR_PORT: Duration = Duration::from_secs(5);
const FORM: &[u8] = b"urlroot=/spec/static&dir=1&class=2&num=3&client=77";

/// A supervisor as systemd is one: it gives no input, listens to what it is told, and sends signals.
struct Supervisor {
    folder: TempDir,
    socket: UnixDatagram,
    port: u16,
}

/// A service that it has started.
struct Running {
    tool: Child,
}

impl Supervisor {
    fn new() -> Supervisor {
        built_system("web");
        let folder = tempfile::tempdir().expect("a folder");
        let site = folder.path().join("site");
        fs::create_dir_all(site.join("dir00001")).expect("a folder");
        fs::write(site.join("dir00001/class2_3"), "a line of the file itself\n").expect("a file can be written");
        let socket = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
        socket.set_read_timeout(Some(MOST)).expect("a limit");
        Supervisor { folder, socket, port: free_port() }
    }

    fn errors(&self) -> String {
        fs::read_to_string(self.folder.path().join("errors")).unwrap_or_default()
    }

    /// Starts the service; it serves when this returns.
    #[track_caller]
    fn start(&self, words: &[&str]) -> Running {
        let errors = fs::File::create(self.folder.path().join("errors")).expect("a file");
        let mut command = Command::new(sing());
        command.args(["run", "--web"]).arg(self.folder.path().join("site")).args(["--port", &self.port.to_string()]);
        command.args(words).current_dir(repository()).env("NOTIFY_SOCKET", self.folder.path().join("notify"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let running = Running { tool: command.spawn().expect("the tool starts") };
        self.is_told("READY=1");
        // No second try: who is told so can connect.
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("the port is open");
        running
    }

    #[track_caller]
    fn is_told(&self, expected: &str) {
        let mut bytes = [0; 64];
        let count = self.socket.recv(&mut bytes);
        let count = count.unwrap_or_else(|error| panic!("`{expected}` is not told ({error}):\n{}", self.errors()));
        assert_eq!(String::from_utf8_lossy(&bytes[..count]), expected, "{}", self.errors());
    }

    /// Asks the service to end, which it must do in order.
    #[track_caller]
    fn stop(&self, mut running: Running) {
        running.signal("TERM");
        self.is_told("STOPPING=1");
        assert_eq!(running.tool.wait().expect("it ends").code(), Some(0), "{}", self.errors());
        self.port_is_free();
    }

    /// Kills the whole machine.
    #[track_caller]
    fn kill(&self, mut running: Running) {
        running.signal("KILL");
        assert_eq!(running.tool.wait().expect("it ends").code(), None);
        self.port_is_free();
    }

    #[track_caller]
    fn port_is_free(&self) {
        let begin = Instant::now();
        while let Err(error) = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)) {
            assert!(begin.elapsed() < MOST_FOR_PORT, "port {} is in use still: {error}", self.port);
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn client(&self) -> WebClient {
        WebClient::connect(self.port)
    }

    /// The numbers of what was posted.
    fn posted(&self) -> BTreeSet<u64> {
        let log = self.client().get("/spec/command/fetch", "").text();
        log.lines().filter_map(|line| line.split_ascii_whitespace().next()?.parse().ok()).collect()
    }

    fn post(&self) {
        let fields = format!("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n", FORM.len());
        let fields = format!("Cookie: my_cookie=42\r\n{fields}");
        let answer = self.client().ask("POST", "/spec/post", &fields, FORM);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // What is left takes room and does no harm.
        let _ = fs::remove_file(target().join(format!("sing/web/log-{}.img", self.port)));
    }
}

impl Running {
    #[track_caller]
    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.tool.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill -{name}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended needs no end.
        let _ = self.tool.kill();
        let _ = self.tool.wait();
    }
}

#[test]
fn without_an_input_a_site_serves_until_it_is_asked_to_end() {
    let supervisor = Supervisor::new();
    let running = supervisor.start(&[]);
    let mut client = supervisor.client();
    assert_eq!(client.get("/dir00001/class2_3", "").status, 200);
    let health = client.get("/status/health", "");
    assert_eq!((health.status, health.text().as_str()), (200, "ok\n"));
    let errors = supervisor.errors();
    let announced = format!("singularity: serving http://localhost:{}/; SIGTERM or Ctrl-C ends it", supervisor.port);
    let line = errors.lines().find(|line| line.contains(&announced)).unwrap_or_else(|| panic!("{errors}"));
    assert!(line.contains(&format!("(process {})", running.tool.id())), "{line}");
    let is_time = |text: &str| text.len() == 24 && text.starts_with("20") && text.ends_with('Z');
    assert!(line.split_once(' ').is_some_and(|(time, _)| is_time(time)), "{line}");
    // A connection that is open holds up nobody.
    supervisor.stop(running);
    assert_eq!(supervisor.errors().lines().count(), 1, "{}", supervisor.errors());
}

#[test]
fn nothing_but_the_folder_and_the_status_is_served_and_nobody_can_write() {
    let supervisor = Supervisor::new();
    fs::create_dir(supervisor.folder.path().join("site/status")).expect("a folder");
    let running = supervisor.start(&["--log", "json"]);
    let mut client = supervisor.client();
    for path in ["/hello", "/spec/", "/spec/command/fetch", "/fault/echo"] {
        assert_eq!(client.get(path, "").status, 404, "{path}");
        assert_eq!(client.ask("POST", path, "Content-Length: 1\r\n", b"x").status, 405, "{path}");
    }
    assert_eq!(client.get("/status/", "").status, 200);
    let errors = supervisor.errors();
    assert!(errors.contains("web-status answers for /status, which hides `/status` of "), "{errors}");
    let json: Vec<&str> = errors.lines().filter(|line| line.starts_with('{')).collect();
    assert!(
        json.iter().any(|line| line.contains("\"program\":\"singularity\",\"text\":\"serving http://")),
        "{errors}"
    );
    supervisor.stop(running);
}

#[test]
fn who_serves_others_shows_them_no_processes_and_an_application_of_ones_own_has_its_path() {
    let supervisor = Supervisor::new();
    let running = supervisor.start(&["--listen", "0.0.0.0", "--app", "/greet=web-hello greeting=Servus"]);
    let mut client = supervisor.client();
    assert_eq!(client.get("/status/health", "").status, 200);
    for path in ["/status/", "/status/status.json", "/status/table", "/hello"] {
        assert_eq!(client.get(path, "").status, 404, "{path}");
    }
    assert!(client.get("/greet/", "").text().contains("Servus, world!"));
    supervisor.stop(running);
}

/// Starts, stops and kills it so often: what was synced is there.
fn again_and_again(turns: u64) {
    let supervisor = Supervisor::new();
    let mut synced = BTreeSet::new();
    for turn in 0..turns {
        let running = supervisor.start(&["--demo"]);
        let there = supervisor.posted();
        assert!(there.is_superset(&synced), "turn {turn}: of {synced:?} there are {there:?}");
        supervisor.post();
        let posted = supervisor.posted();
        assert!(posted.len() > there.len(), "turn {turn}: {posted:?}");
        if turn % 2 == 0 {
            supervisor.stop(running);
            synced = posted;
        } else {
            supervisor.kill(running);
        }
    }
    assert!(synced.len() as u64 >= turns / 2, "{synced:?}");
    is_left_by_all(&supervisor);
}

/// No process has the log's disk open still.
#[track_caller]
fn is_left_by_all(supervisor: &Supervisor) {
    let disk = format!("log-{}.img", supervisor.port);
    let has_it = |process: &Path| {
        let mut words = String::new();
        let read = fs::File::open(process.join("cmdline")).and_then(|mut file| file.read_to_string(&mut words));
        read.is_ok() && words.contains(&disk)
    };
    let begin = Instant::now();
    loop {
        let processes = fs::read_dir("/proc").expect("processes").flatten().map(|entry| entry.path());
        let left: Vec<_> = processes.filter(|process| has_it(process)).collect();
        if left.is_empty() {
            return;
        }
        assert!(begin.elapsed() < MOST_FOR_PORT, "{left:?} still run");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_was_synced_is_there_after_each_start() {
    again_and_again(6);
}

#[test]
#[ignore = "takes minutes"]
fn what_was_synced_is_there_after_a_hundred_starts() {
    again_and_again(100);
}

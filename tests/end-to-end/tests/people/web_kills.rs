//! Each part of a web server is killed under continuous load: service resumes immediately, no other process ends,
//! synced data survives, and nothing leaks. Over the host's sockets, and with the system's own network stack and
//! driver in a network namespace.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::{
    Format, Image, Live, Load, Machine, Process, Question, Server, built_system, finish, free_port, slack,
};

test_needs::needs!(E2fsprogs);

/// Kinds of clients: small cached files, an application, and uncached data on disk.
const FILES: usize = 0;
const APPLICATION: usize = 1;
const DISK: usize = 2;

/// Killed programs, the kind of client affected, and the programs that end with them.
type Part = (&'static str, usize, &'static [&'static str]);

/// The network between clients and server.
struct Between {
    system: &'static str,
    /// Interface of the namespace, if the system has a network stack of its own.
    tap: Option<&'static str>,
    address: Ipv4Addr,
    /// Timeout of clients: a restarted network stack has lost its connections, and Linux retransmits lost packets
    /// after a second.
    patience: Duration,
    /// Programs that hold connections.
    stack: &'static [&'static str],
    parts: &'static [Part],
}

const HOST_SOCKETS: Between = Between {
    system: "web",
    tap: None,
    address: Ipv4Addr::LOCALHOST,
    patience: Duration::from_secs(10),
    stack: &["host-sockets"],
    parts: &[
        ("host-sockets", FILES, &[]),
        ("web-server", FILES, &["web-hello"]),
        ("web-hello", APPLICATION, &[]),
        ("ext2-fs", DISK, &[]),
        ("file-disk", DISK, &[]),
    ],
};

const OWN_STACK: Between = Between {
    system: "web-tap",
    tap: Some("sing0"),
    address: Ipv4Addr::new(192, 168, 77, 2),
    patience: Duration::from_millis(25),
    stack: &["net-stack", "tap"],
    parts: &[
        ("tap", FILES, &[]),
        ("net-stack", FILES, &[]),
        ("web-server", FILES, &["web-hello"]),
        ("web-hello", APPLICATION, &[]),
        ("ext2-fs", DISK, &[]),
        ("file-disk", DISK, &[]),
    ],
};

/// Clients of the application, and of the disk; twice as many request small files.
const CLIENTS: usize = 3;
/// Duration of the load after a kill.
const AFTER: Duration = Duration::from_millis(150);
/// Target on an idle machine.
const WANTED: Duration = Duration::from_millis(50);
/// Limit on a machine busy with other tests.
const MOST: Duration = Duration::from_secs(2);
/// Limit of the median.
const MEDIAN: Duration = Duration::from_millis(250);
/// Timeout for resources to be released: a handshake interrupted by a kill is given up after 15 s, a connection whose
/// FIN was lost slightly later.
const SETTLED: Duration = Duration::from_secs(40);

const SMALL_FILES: usize = 64;
const SMALL_BYTES: usize = 2000;
/// More than the file system's cache.
const LARGE_BYTES: usize = 48 << 20;
const PART_BYTES: usize = 8 << 10;

/// The byte at an offset of the file with this number.
fn byte(file: usize, at: usize) -> u8 {
    let word = (at / 8).wrapping_mul(0x9E37_79B9_7F4A_7C15 ^ file << 1);
    (word >> 24) as u8 ^ at as u8
}

fn content(file: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| byte(file, at)).collect()
}

struct Small(usize);

impl Question for Small {
    fn next(&mut self) -> String {
        self.0 = (self.0 + 7) % SMALL_FILES;
        format!("GET /small-{} HTTP/1.1\r\nHost: test", self.0)
    }

    fn is_right(&self, found: &[u8]) -> bool {
        found == content(self.0, SMALL_BYTES)
    }
}

struct Greeting;

impl Question for Greeting {
    fn next(&mut self) -> String {
        "GET /hello HTTP/1.1\r\nHost: test".into()
    }

    fn is_right(&self, found: &[u8]) -> bool {
        String::from_utf8_lossy(found).contains("<h1>Hello, world!</h1>")
    }
}

/// Parts of a file in random order, so that they come from disk.
struct Piece(usize);

impl Question for Piece {
    fn next(&mut self) -> String {
        let steps = LARGE_BYTES / PART_BYTES;
        self.0 = (self.0 + 2_654_435_761) % steps;
        let first = self.0 * PART_BYTES;
        format!("GET /large HTTP/1.1\r\nHost: test\r\nRange: bytes={first}-{}", first + PART_BYTES - 1)
    }

    fn is_right(&self, found: &[u8]) -> bool {
        let first = self.0 * PART_BYTES;
        found.len() == PART_BYTES && found.iter().enumerate().all(|(at, found)| *found == byte(1000, first + at))
    }
}

fn fill(folder: &Path) -> std::io::Result<()> {
    for file in 0..SMALL_FILES {
        fs::write(folder.join(format!("small-{file}")), content(file, SMALL_BYTES))?;
    }
    fs::write(folder.join("large"), content(1000, LARGE_BYTES))
}

/// The system that `sing run --web` starts, and its disks.
struct Site {
    between: &'static Between,
    live: Live,
    port: u16,
    files: Image,
    log: Image,
    synced: usize,
}

impl Site {
    fn start(between: &'static Between) -> Site {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        fill(folder.path()).expect("the folder takes files");
        let files = Image::of(folder.path(), Format { mebibytes: 96, block_bytes: 4096, ..Format::default() });
        let nothing = tempfile::tempdir().expect("a folder for temporary files");
        let log = Image::of(nothing.path(), Format { mebibytes: 256, block_bytes: 4096, ..Format::default() });
        let port = free_port();
        let machine = Machine::new().system(built_system(between.system)).parameter(&format!("web-port={port}"));
        let machine = machine.parameter("web-application=/hello=web-hello");
        let mut machine = machine.disk(files.path()).disk(log.path());
        if between.tap.is_some() {
            machine = machine.parameter(&format!("address={}/24", between.address)).parameter("dhcp=false");
        }
        let mut command = machine.command(None);
        command.args(between.tap.iter().flat_map(|name| ["--tap", name]));
        let live = Live::start(command);
        let mut site = Site { between, live, port, files, log, synced: 0 };
        site.live.ask("mkdir /fs/disk1/kept");
        site
    }

    fn load(&self) -> Load {
        let mut questions: Vec<(usize, Box<dyn Question>)> = Vec::new();
        for client in 0..CLIENTS {
            questions.push((FILES, Box::new(Small(client))));
            questions.push((FILES, Box::new(Small(client + SMALL_FILES / 2))));
            questions.push((APPLICATION, Box::new(Greeting)));
            questions.push((DISK, Box::new(Piece(client * 1000))));
        }
        let address = (IpAddr::V4(self.between.address), self.port).into();
        let load = Load::start_at(Server { address, patience: self.between.patience }, questions);
        let begin = Instant::now();
        while [FILES, APPLICATION, DISK].iter().any(|kind| load.good(*kind) < 10) {
            assert!(begin.elapsed() < MOST, "the site does not serve:\n{}", self.live.errors());
            thread::sleep(Duration::from_millis(1));
        }
        load
    }

    /// Writes a file that must survive all kills.
    fn write_and_sync(&mut self) {
        let number = self.synced;
        let said = self.live.ask(&format!("echo kept {number} > /fs/disk1/kept/{number}; sync"));
        assert_eq!(said, "", "{}", self.live.errors());
        self.synced += 1;
    }

    /// Kills a part under load; returns the time without a good response of the affected kind.
    fn kill(&mut self, load: &Load, (name, kind, with_it): Part) -> Duration {
        self.write_and_sync();
        let before = self.live.processes();
        assert!(before.iter().any(|process| process.name == name), "{name} does not run: {before:?}");
        load.forget();
        thread::sleep(Duration::from_millis(20));
        self.live.ask(&format!("kill {name}"));
        thread::sleep(AFTER);
        let begin = Instant::now();
        let seen = load.good(kind);
        while load.good(kind) <= seen {
            assert!(
                begin.elapsed() < MOST,
                "{name} was killed, and nothing is served any more:\n{}",
                self.live.errors()
            );
            thread::sleep(Duration::from_millis(1));
        }
        let gap = load.longest_gap(kind);
        let after = self.live.processes();
        let ended = |process: &&Process| !after.contains(process);
        for process in before.iter().filter(ended) {
            let is_meant = process.name == name || with_it.contains(&process.name.as_str());
            assert!(is_meant, "{name} was killed, and {process:?} ended with it:\n{}", self.live.errors());
        }
        let spared: Vec<&Process> =
            before.iter().filter(|process| process.name == name && after.contains(process)).collect();
        assert!(spared.is_empty(), "{name} was killed, but not {spared:?}:\n{}", self.live.errors());
        gap
    }

    /// Idle resource usage, after each part has just restarted.
    fn counts(&mut self) -> (BTreeMap<String, u64>, usize) {
        for name in self.between.stack.iter().chain(&["web-server"]) {
            self.live.ask(&format!("kill {name}"));
            thread::sleep(AFTER);
        }
        self.load().end();
        // Open files are closed a second after their last request.
        thread::sleep(Duration::from_millis(2500));
        (self.live.counters(), self.live.open_files())
    }
}

/// Counters that must return to their baseline.
const STEADY: [&str; 6] = ["processes", "threads", "channels", "blocks", "synchronization objects", "stacks"];
/// Maximum additional blocks cached by server and file system: as many as were in use simultaneously.
const MAX_KEPT_BLOCKS: u64 = 32;

/// Kills each part this many times, round-robin.
#[track_caller]
fn each_part_is_killed(times: usize, between: &'static Between) {
    let mut site = Site::start(between);
    // The usage after the first use of each part is the baseline.
    let load = site.load();
    for part in between.parts {
        site.kill(&load, *part);
    }
    load.end();
    let (before, files_before) = site.counts();
    let load = site.load();
    let mut gaps: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for _ in 0..times {
        for part in between.parts {
            gaps.entry(part.0).or_default().push(site.kill(&load, *part));
        }
    }
    let (statuses, broken) = load.end();
    println!("{broken} connections broke, answers that were none: {statuses:?}");
    for (name, gaps) in &mut gaps {
        gaps.sort_unstable();
        let (median, most) = (gaps[gaps.len() / 2], gaps[gaps.len() - 1]);
        let soon = gaps.iter().filter(|gap| **gap <= WANTED).count();
        let times = gaps.len();
        println!(
            "{name}: killed {times} times, served again after {median:.1?}, {most:.1?} at most; {soon} within {WANTED:?}"
        );
        assert!(most <= MOST && median <= MEDIAN, "{name}: {gaps:.1?}");
    }
    // A missing part must not give 404.
    assert!(statuses.keys().all(|status| *status >= 500), "{statuses:?}");
    steady_again(&mut site, &before, files_before);
    let Site { live, files, log, synced, .. } = site;
    let errors = live.errors();
    for word in ["panic", "this is a bug", "unwrap"] {
        assert!(!errors.contains(word), "`{word}` on standard error:\n{errors}");
    }
    assert_eq!(live.end(), Some(0));
    files.check();
    log.check();
    let kept = log.contents();
    for number in 0..synced {
        let text = fs::read_to_string(kept.path().join(format!("kept/{number}"))).unwrap_or_default();
        assert_eq!(text, format!("kept {number}\n"), "file {number} of {synced} that was synced");
    }
}

/// Waits until resource usage is back at the baseline.
#[track_caller]
fn steady_again(site: &mut Site, before: &BTreeMap<String, u64>, files_before: usize) {
    let (mut after, mut files) = site.counts();
    let begin = Instant::now();
    loop {
        let count = |counts: &BTreeMap<String, u64>, name: &str| counts.get(name).copied().unwrap_or(0);
        let is_more = |name: &&str| count(&after, name) > count(before, name) + slack(name, MAX_KEPT_BLOCKS);
        let differs: Vec<&str> = STEADY.into_iter().filter(is_more).collect();
        if differs.is_empty() && files == files_before {
            return;
        }
        let told: Vec<String> =
            differs.iter().map(|name| format!("{name}: {:?} -> {:?}", before.get(*name), after.get(*name))).collect();
        assert!(begin.elapsed() < SETTLED, "{}; open files: {files_before} -> {files}", told.join(", "));
        thread::sleep(Duration::from_millis(500));
        (after, files) = (site.live.counters(), site.live.open_files());
    }
}

#[test]
fn each_part_of_a_web_server_is_killed_and_it_serves_on() {
    each_part_is_killed(5, &HOST_SOCKETS);
}

#[test]
#[ignore = "takes several minutes"]
fn each_part_of_a_web_server_is_killed_100_times_and_it_serves_on() {
    each_part_is_killed(100, &HOST_SOCKETS);
}

/// Runs a test of this program in a temporary network namespace.
#[track_caller]
fn in_a_namespace(test: &str) {
    // Build outside the namespace, where package registries are reachable.
    built_system(OWN_STACK.system);
    let mut command = Command::new("unshare");
    command.arg("--net").arg(std::env::current_exe().expect("this program has a path"));
    command.args(["--ignored", "--exact", "--nocapture"]).arg(format!("web_kills::{test}"));
    let run = finish(command, test, Duration::from_secs(900));
    println!("{run}");
    assert!(run.status == Some(0) && run.text().contains("1 passed"), "{}\n{run}", run.errors);
}

#[test]
fn each_part_with_a_network_stack_is_killed_and_it_serves_on() {
    test_needs::needs!(Namespaces);
    in_a_namespace("five_times_child");
}

#[test]
#[ignore = "takes several minutes"]
fn each_part_with_a_network_stack_is_killed_100_times_and_it_serves_on() {
    test_needs::needs!(Namespaces);
    in_a_namespace("a_hundred_times_child");
}

/// Bodies of the two tests above, run in a namespace.
#[test]
#[ignore = "wants a network namespace"]
fn five_times_child() {
    each_part_is_killed(5, &OWN_STACK);
}

#[test]
#[ignore = "wants a network namespace"]
fn a_hundred_times_child() {
    each_part_is_killed(100, &OWN_STACK);
}

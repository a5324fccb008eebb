//! Soak test: a live folder under a steady load and random kills of the parts that serve it. Every response is right,
//! every change of the folder becomes visible, and memory, handles and channels do not grow.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use end_to_end::{Load, Question, Site, machine_process, slack};

/// Environment variable with the minutes of the long form, 60 by default.
const MINUTES: &str = "SING_SOAK_MINUTES";
const SHORT: Duration = Duration::from_secs(12);

/// Kinds of requests: static files, one that changes continuously, and an application.
const FIXED: usize = 0;
const CHANGING: usize = 1;
const APPLICATION: usize = 2;
/// One client of each of these kinds, with one request per interval, for a total of 20 requests a second.
const CLIENTS: [usize; 4] = [FIXED, FIXED, CHANGING, APPLICATION];
const PERIOD: Duration = Duration::from_millis(200);

/// Killed programs: everything between client and folder, and the disk of the access log.
const PARTS: [&str; 6] = ["host-folder", "web-server", "host-sockets", "web-status", "ext2-fs", "file-disk"];
/// Time between two kills.
const KILL_MS: std::ops::Range<u64> = 500..5000;
/// Timeout for a killed part to be back; the host may be busy.
const MAX_AWAY: Duration = Duration::from_secs(10);
/// Sampling interval of resources.
const COUNT_PERIOD: Duration = Duration::from_secs(300);
/// Timeout for resources of clients that are gone: a handshake interrupted by a kill is given up after 15 s.
const MAX_SETTLING: Duration = Duration::from_secs(40);

/// Interval between versions of the changing file; no response may be older than `MAX_STALE`.
const CHANGE_PERIOD: Duration = Duration::from_millis(400);
const MAX_STALE: Duration = Duration::from_secs(5);

const FILES: usize = 16;
const FILE_BYTES: usize = 20_000;

/// Counters that must stay at their baseline, within [`slack`].
const COUNTED: [&str; 6] = ["processes", "threads", "channels", "blocks", "synchronization objects", "stacks"];
/// Blocks cached for reuse.
const MAX_KEPT_BLOCKS: u64 = 32;
/// Memory counters and their maximum growth in bytes. The host process's allocator keeps some freed memory.
const MEMORY: [(&str, u64); 4] = [
    ("page bytes", 2 << 20),
    ("exchange bytes", 4 << 20),
    ("kernel heap bytes", 4 << 20),
    ("resident bytes", 48 << 20),
];
const PAGE_BYTES: u64 = 4096;
const OPEN_FILES: &str = "open files";

fn content(file: usize) -> Vec<u8> {
    format!("file {file} of the soak\n").into_bytes().into_iter().cycle().take(FILE_BYTES + file).collect()
}

fn version_text(version: u64) -> String {
    format!("version {version}\n").repeat(200)
}

/// Paces a client.
struct Pace(Instant);

impl Pace {
    fn new(client: usize) -> Pace {
        Pace(Instant::now() + PERIOD / CLIENTS.len() as u32 * client as u32)
    }

    fn wait(&mut self) {
        thread::sleep(self.0.saturating_duration_since(Instant::now()));
        self.0 = Instant::now().max(self.0 + PERIOD);
    }
}

struct Fixed(Pace, usize);

impl Question for Fixed {
    fn next(&mut self) -> String {
        self.0.wait();
        self.1 = (self.1 + 5) % FILES;
        format!("GET /fixed-{} HTTP/1.1\r\nHost: soak", self.1)
    }

    fn is_right(&self, found: &[u8]) -> bool {
        found == content(self.1)
    }
}

struct Changing {
    pace: Pace,
    settled: Arc<AtomicU64>,
    oldest: u64,
}

impl Question for Changing {
    fn next(&mut self) -> String {
        self.pace.wait();
        self.oldest = self.settled.load(Ordering::Acquire);
        "GET /changing HTTP/1.1\r\nHost: soak".into()
    }

    fn is_right(&self, found: &[u8]) -> bool {
        let text = String::from_utf8_lossy(found);
        let version = text.lines().next().and_then(|line| line.strip_prefix("version ")?.parse::<u64>().ok());
        version.is_some_and(|version| version >= self.oldest && text == version_text(version))
    }
}

struct Status(Pace);

impl Question for Status {
    fn next(&mut self) -> String {
        self.0.wait();
        "GET /status/health HTTP/1.1\r\nHost: soak".into()
    }

    fn is_right(&self, found: &[u8]) -> bool {
        found == b"ok\n"
    }
}

/// The host's writer of new versions.
struct Writer {
    over: Arc<AtomicBool>,
    /// Minimum version of a response.
    settled: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    fn start(folder: &Path) -> Writer {
        let (over, settled) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        write_version(folder, 0);
        let (folder, is_over, is_settled) = (PathBuf::from(folder), Arc::clone(&over), Arc::clone(&settled));
        let work = move || {
            let mut recent = VecDeque::new();
            for version in 1.. {
                thread::sleep(CHANGE_PERIOD);
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                write_version(&folder, version);
                recent.push_back((Instant::now(), version));
                while recent.front().is_some_and(|(written, _)| written.elapsed() > MAX_STALE) {
                    let (_, version) = recent.pop_front().expect("there is a first one");
                    is_settled.store(version, Ordering::Release);
                }
            }
        };
        Writer { over, settled, thread: Some(thread::spawn(work)) }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // A panic of the writer shows as a stale response.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Replaces the changing file atomically, as editors do.
fn write_version(folder: &Path, version: u64) {
    let new = folder.join(".new");
    fs::write(&new, version_text(version)).expect("the folder takes a file");
    fs::rename(&new, folder.join("changing")).expect("the file can be replaced");
}

struct Soak {
    site: Site,
    writer: Writer,
    kills: BTreeMap<&'static str, u64>,
    answers: usize,
    random: u64,
    _folder: tempfile::TempDir,
}

impl Soak {
    #[track_caller]
    fn start() -> Soak {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        for file in 0..FILES {
            fs::write(folder.path().join(format!("fixed-{file}")), content(file)).expect("the folder takes a file");
        }
        let writer = Writer::start(folder.path());
        let site = Site::serve(folder.path());
        let random = 0x9E37_79B9_7F4A_7C15;
        Soak { site, writer, kills: BTreeMap::new(), answers: 0, random, _folder: folder }
    }

    fn random(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }

    fn load(&self) -> Load {
        let question = |(client, kind): (usize, &usize)| {
            let pace = Pace::new(client);
            let question: Box<dyn Question> = match *kind {
                FIXED => Box::new(Fixed(pace, client)),
                CHANGING => Box::new(Changing { pace, settled: Arc::clone(&self.writer.settled), oldest: 0 }),
                _ => Box::new(Status(pace)),
            };
            (*kind, question)
        };
        Load::start(self.site.port, CLIENTS.iter().enumerate().map(question).collect())
    }

    /// Waits for a new good response of each kind.
    #[track_caller]
    fn serves(&self, load: &Load, after: &str) {
        let before: Vec<usize> = [FIXED, CHANGING, APPLICATION].map(|kind| load.good(kind)).into();
        let begin = Instant::now();
        for kind in [FIXED, CHANGING, APPLICATION] {
            while load.good(kind) <= before[kind] {
                let errors = self.site.live.errors();
                assert!(begin.elapsed() < MAX_AWAY, "no answer of kind {kind} after {after}:\n{errors}");
                thread::sleep(Duration::from_millis(20));
            }
        }
    }

    #[track_caller]
    fn kill(&mut self, part: &'static str) {
        self.site.live.ask(&format!("kill {part}"));
        *self.kills.entry(part).or_default() += 1;
    }

    /// Runs load and kills for this duration.
    #[track_caller]
    fn go_on(&mut self, time: Duration) {
        let load = self.load();
        let begin = Instant::now();
        while begin.elapsed() < time {
            let pause = KILL_MS.start + self.random(KILL_MS.end - KILL_MS.start);
            thread::sleep(Duration::from_millis(pause).min(time.saturating_sub(begin.elapsed())));
            let part = PARTS[self.random(PARTS.len() as u64) as usize];
            self.kill(part);
            self.serves(&load, part);
        }
        self.end(load);
    }

    #[track_caller]
    fn end(&mut self, load: Load) {
        self.answers += [FIXED, CHANGING, APPLICATION].map(|kind| load.good(kind)).iter().sum::<usize>();
        let (statuses, _) = load.end();
        // A missing part must not give 404.
        assert!(statuses.keys().all(|status| *status >= 500), "{statuses:?}\n{}", self.site.live.errors());
    }

    /// Resource usage when each part has just started and served a little.
    #[track_caller]
    fn in_use(&mut self) -> BTreeMap<String, u64> {
        for part in PARTS {
            self.kill(part);
            thread::sleep(Duration::from_millis(150));
        }
        let load = self.load();
        self.serves(&load, "all were started again");
        self.end(load);
        // The server closes files a second after their last request.
        thread::sleep(Duration::from_millis(2500));
        self.counts()
    }

    #[track_caller]
    fn counts(&mut self) -> BTreeMap<String, u64> {
        let mut counts = self.site.live.counters();
        let pages = counts.get("pages").copied().unwrap_or(0);
        counts.insert("page bytes".into(), pages * PAGE_BYTES);
        counts.insert(OPEN_FILES.into(), self.site.live.open_files() as u64);
        counts.insert("resident bytes".into(), resident_bytes(machine_process(self.site.live.process())));
        counts
    }

    /// Waits until resource usage is back at the baseline.
    #[track_caller]
    fn is_as_before(&mut self, before: &BTreeMap<String, u64>) {
        let mut now = self.in_use();
        let begin = Instant::now();
        loop {
            let more = grown(before, &now);
            if more.is_empty() {
                return;
            }
            let errors = self.site.live.errors();
            assert!(begin.elapsed() < MAX_SETTLING, "after {:?}: {}\n{errors}", self.kills, more.join(", "));
            thread::sleep(Duration::from_secs(1));
            now = self.counts();
        }
    }
}

/// Resources above the baseline.
fn grown(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> Vec<String> {
    let count = |counts: &BTreeMap<String, u64>, name: &str| counts.get(name).copied().unwrap_or(0);
    let counted = COUNTED.iter().map(|name| (*name, slack(name, MAX_KEPT_BLOCKS)));
    let limits = counted.chain(MEMORY).chain([(OPEN_FILES, 0)]);
    let is_more = |(name, slack): &(&str, u64)| count(now, name) > count(before, name) + slack;
    limits.filter(is_more).map(|(name, _)| format!("{name}: {} -> {}", count(before, name), count(now, name))).collect()
}

fn resident_bytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
    line.map_or(0, |kibibytes: u64| kibibytes << 10)
}

#[track_caller]
fn soak(time: Duration) {
    let mut soak = Soak::start();
    // Permanent allocations of the first use of each part do not count.
    soak.in_use();
    let before = soak.in_use();
    let missing: Vec<&&str> =
        COUNTED.iter().chain(MEMORY.iter().map(|(name, _)| name)).filter(|name| !before.contains_key(**name)).collect();
    assert!(missing.is_empty(), "`sysinfo` does not tell {missing:?}");
    let begin = Instant::now();
    while begin.elapsed() < time {
        soak.go_on(COUNT_PERIOD.min(time.saturating_sub(begin.elapsed())));
        soak.is_as_before(&before);
        let now = soak.counts();
        let words = |name: &str| format!("{name} {} -> {}", before[name], now[name]);
        let all: Vec<String> =
            COUNTED.into_iter().chain(MEMORY.map(|(name, _)| name)).chain([OPEN_FILES]).map(words).collect();
        let (minutes, kills) = (begin.elapsed().as_secs() / 60, soak.kills.values().sum::<u64>());
        println!("{minutes} min, {} answers, {kills} kills: {}", soak.answers, all.join(", "));
    }
    let Soak { site, writer, .. } = soak;
    drop(writer);
    site.end();
}

#[test]
fn a_live_folder_is_served_through_random_kills_and_nothing_grows() {
    soak(SHORT);
}

#[test]
#[ignore = "takes an hour"]
fn a_live_folder_is_served_for_an_hour_and_nothing_grows() {
    let minutes = std::env::var(MINUTES).map_or(60, |text| text.parse().expect("SING_SOAK_MINUTES is a number"));
    soak(Duration::from_secs(minutes * 60));
}

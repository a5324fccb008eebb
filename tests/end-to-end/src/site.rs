//! A site served as users do: `sing run --web FOLDER --port N`.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::live::{Live, free_port};
use crate::run::{Run, finish};
use crate::tool::{built_system, repository, sing, target};
use crate::web::WebClient;

/// Timeout for the machine to start serving.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Timeout for the release of resources: caches for the next request are released after a while.
const SETTLED: Duration = Duration::from_secs(40);
/// Counters that must return to their baseline when the server is idle.
const STEADY: [&str; 6] = ["processes", "threads", "channels", "blocks", "synchronization objects", "stacks"];

/// Maximum mutexes that a thread may have blocked on for the first time meanwhile: each then keeps an event.
const WAITED_FOR: u64 = 8;

/// Tolerance over the baseline of a counter, where this many blocks may be cached for reuse.
pub fn slack(name: &str, blocks: u64) -> u64 {
    match name {
        "blocks" => blocks,
        "synchronization objects" => WAITED_FOR,
        _ => 0,
    }
}

/// A site being served.
pub struct Site {
    /// The machine that serves it.
    pub live: Live,
    /// Port of this host.
    pub port: u16,
    /// Removed last.
    _images: Images,
}

/// Images made by the tool for a run and used by nothing else.
struct Images(Vec<PathBuf>);

impl Images {
    /// Those of a running machine.
    fn of(process: u32) -> Images {
        let arguments = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let folder = target().join("sing/web");
        let paths = arguments.split(|byte| *byte == 0).map(|argument| {
            let text = String::from_utf8_lossy(argument).into_owned();
            PathBuf::from(text.strip_suffix(":ro").unwrap_or(&text))
        });
        Images(paths.filter(|path| path.starts_with(&folder)).collect())
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        for path in &self.0 {
            // Leftovers take space and do no harm.
            let _ = fs::remove_file(path);
            let _ = fs::remove_file(path.with_extension("kept"));
        }
    }
}

impl Site {
    /// Serves a folder or an image.
    #[track_caller]
    pub fn serve(what: &Path) -> Site {
        Site::serve_with(what, &[])
    }

    /// Like [`serve`](Self::serve), with further arguments.
    #[track_caller]
    pub fn serve_with(what: &Path, words: &[&str]) -> Site {
        // Builds in advance, so that the tool's build does not count against the timeout.
        built_system("web");
        let port = free_port();
        let mut command = Command::new(sing());
        command.args(["run", "--web"]).arg(what).args(["--port", &port.to_string()]);
        command.args(words).current_dir(repository());
        Site::start(command, port)
    }

    /// Starts a machine by a command that serves a site at this port.
    #[track_caller]
    pub fn start(command: Command, port: u16) -> Site {
        let live = Live::start(command);
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begin.elapsed() < TIMEOUT, "nobody listens at port {port}:\n{}", live.errors());
            thread::sleep(Duration::from_millis(10));
        }
        let images = Images::of(live.process());
        Site { live, port, _images: images }
    }

    /// URL of a path, which begins with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Reads the resource counters; requests each path first, so that everything allocated on first use exists.
    #[track_caller]
    pub fn in_use(&mut self, paths: &[&str]) -> Vec<(String, u64)> {
        for path in paths {
            WebClient::connect(self.port).get(path, "Connection: close\r\n");
        }
        // Open files are closed about a second after their last request.
        thread::sleep(Duration::from_millis(2500));
        let counters = self.live.counters();
        STEADY.iter().map(|name| (name.to_string(), counters.get(*name).copied().unwrap_or(0))).collect()
    }

    /// Waits until usage is back at the baseline, except for this many cached blocks and the events of a few mutexes.
    #[track_caller]
    pub fn is_as_before(&mut self, before: &[(String, u64)], paths: &[&str], kept: u64) {
        let begin = Instant::now();
        loop {
            let now = self.in_use(paths);
            if now.iter().zip(before).all(|((name, now), (_, before))| *now <= before + slack(name, kept)) {
                return;
            }
            assert!(begin.elapsed() < SETTLED, "in use before: {before:?}\nand now: {now:?}\n{}", self.live.errors());
        }
    }

    /// Ends the machine and asserts that it reported no bug.
    #[track_caller]
    pub fn end(self) {
        let Site { live, _images, .. } = self;
        let errors = live.errors();
        assert_eq!(live.end(), Some(0), "{errors}");
        for word in ["this is a bug", "unwrap", "RUST_BACKTRACE"] {
            assert!(!errors.contains(word), "`{word}` on standard error:\n{errors}");
        }
    }
}

/// Runs a program of the host, which must succeed within `limit`, and returns its standard output.
#[track_caller]
pub fn client<S: AsRef<std::ffi::OsStr>>(
    program: &str,
    arguments: impl IntoIterator<Item = S>,
    limit: Duration,
) -> Run {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("http_proxy").env_remove("HTTP_PROXY").env("no_proxy", "*");
    let asked = format!("{command:?}");
    finish(command, &asked, limit)
}

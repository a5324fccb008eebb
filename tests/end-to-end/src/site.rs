//! A site as people serve it: `sing run --web FOLDER --port N`.

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

/// How long the machine may take to serve.
const TIMEOUT: Duration = Duration::from_secs(120);
/// How long what was in use may take to be given back: what is kept for the next request is, after a while.
const SETTLED: Duration = Duration::from_secs(40);
/// What a system must have as much of as before, once nobody asks it anything.
const STEADY: [&str; 6] = ["processes", "threads", "channels", "blocks", "synchronization objects", "stacks"];

/// Mutexes that a thread may have had to wait for meanwhile for the first time, each of which then keeps an event.
const WAITED_FOR: u64 = 8;

/// How much more of a thing there may be than before, where so many blocks may be kept for use again.
pub fn slack(name: &str, blocks: u64) -> u64 {
    match name {
        "blocks" => blocks,
        "synchronization objects" => WAITED_FOR,
        _ => 0,
    }
}

/// A site that is served.
pub struct Site {
    /// The machine that serves it.
    pub live: Live,
    /// The port of this host.
    pub port: u16,
    /// Removed when all else has ended.
    _images: Images,
}

/// Images that the tool made for a run, which nobody else will use.
struct Images(Vec<PathBuf>);

impl Images {
    /// Those of a machine that runs.
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
            // What is left takes room and does no harm.
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

    /// The same with further words on the command line.
    #[track_caller]
    pub fn serve_with(what: &Path, words: &[&str]) -> Site {
        // What the tool would build first is built now, so that it has no part in the limit.
        built_system("web");
        let port = free_port();
        let mut command = Command::new(sing());
        command.args(["run", "--web"]).arg(what).args(["--port", &port.to_string()]);
        command.args(words).current_dir(repository());
        Site::start(command, port)
    }

    /// The site of a machine that a command starts, and that serves at this port.
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

    /// The address of a path, which begins with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// What is in use; each of the paths is asked for first, so that all that is made at first use is there.
    #[track_caller]
    pub fn in_use(&mut self, paths: &[&str]) -> Vec<(String, u64)> {
        for path in paths {
            WebClient::connect(self.port).get(path, "Connection: close\r\n");
        }
        // Open files are closed a second after they were asked for, or a little later.
        thread::sleep(Duration::from_millis(2500));
        let counters = self.live.counters();
        STEADY.iter().map(|name| (name.to_string(), counters.get(*name).copied().unwrap_or(0))).collect()
    }

    /// Waits until no more is in use than before, but for so many blocks that are kept to be used again,
    /// and the events of a few mutexes.
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

    /// Ends the machine, which must have met no bug.
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

/// Runs a program of the host, which must end well within `limit`; gives its standard output.
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

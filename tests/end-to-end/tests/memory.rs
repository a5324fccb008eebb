//! Memory of a running system as seen by the host: page protections, and that it does not grow. The system is that of
//! the conformance suite.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use end_to_end::{machine_process, repository, sing, target};

/// Name of the mapping of a program's image.
const IMAGE: &str = "/memfd:singularity-image";
const LIMIT: Duration = Duration::from_secs(300);

/// The conformance system's image, built once.
fn conformance_system() -> &'static PathBuf {
    static SYSTEM: OnceLock<PathBuf> = OnceLock::new();
    SYSTEM.get_or_init(|| {
        let output = Command::new(sing())
            .args(["build", "--system", "conformance", "--allow-unsafe-tests"])
            .current_dir(repository())
            .stdin(Stdio::null())
            .output()
            .expect("the tool starts");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the conformance system does not build:\n{words}");
        target().join("sing/systems/conformance.system")
    })
}

/// A machine that runs the tests whose names contain `only`; killed on drop.
struct Running {
    machine: Child,
    /// The process whose memory is examined.
    process: u32,
    deadline: Instant,
}

impl Running {
    fn start(only: &str, more: &[&str]) -> Running {
        let system = conformance_system();
        let machine = Command::new(target().join("release/singularity-hosted"))
            .arg("--system")
            .arg(system)
            .args(["--processors", "2", "--parameter", &format!("only={only}")])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the hosted machine starts");
        let process = machine_process(machine.id());
        Running { machine, process, deadline: Instant::now() + LIMIT }
    }

    /// Reads a file about the process while it runs; `None` after it has succeeded.
    fn read(&mut self, name: &str) -> Option<String> {
        let content = std::fs::read_to_string(format!("/proc/{}/{name}", self.process)).unwrap_or_default();
        match self.machine.try_wait().expect("the machine can be waited for") {
            Some(status) => {
                assert!(status.success(), "the tests in the machine ended with {status}");
                None
            }
            None => {
                assert!(Instant::now() < self.deadline, "the machine has not ended in {LIMIT:?}");
                Some(content)
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.machine.kill();
        let _ = self.machine.wait();
    }
}

/// A mapping: range, permissions, and the file behind it.
fn mappings(maps: &str) -> impl Iterator<Item = (u64, u64, &str, &str)> {
    maps.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let permissions = fields.next()?;
        let file = fields.nth(3).unwrap_or("");
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some((number(start)?, number(end)?, permissions, file))
    })
}

/// No page of the process is both writable and executable, and a page of program code never becomes writable again,
/// while programs start, attack and end.
#[test]
fn no_page_is_both_writable_and_executable_and_code_stays_as_it_is() {
    let mut running = Running::start(":", &[]);
    let mut code: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut looks, mut most) = (0, 0);
    while let Some(maps) = running.read("maps") {
        looks += 1;
        for (start, end, permissions, file) in mappings(&maps) {
            let (writable, executable) = (permissions.contains('w'), permissions.contains('x'));
            assert!(!(writable && executable), "{start:x}-{end:x} is {permissions} {file}");
            let is_image = file.starts_with(IMAGE);
            assert!(!(writable && is_image), "the image at {start:x}-{end:x} is {permissions}");
            if executable && is_image {
                code.insert(start, end);
            }
            let was_code = code.range(..end).next_back().is_some_and(|(_, &code_end)| code_end > start);
            assert!(!(writable && was_code), "code at {start:x}-{end:x} became {permissions}");
        }
        most = most.max(code.len());
        sleep(Duration::from_millis(20));
    }
    assert!(looks > 3 && most >= 3, "the system was looked at {looks} times and had {most} images");
}

fn resident_kib(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A million processes and millions of channels in a row leave the host process no larger than the first few did.
#[test]
#[ignore = "takes a minute on a busy machine"]
fn a_million_processes_in_a_row_do_not_make_it_grow() {
    let mut running = Running::start("in a row", &["--parameter", "long=true"]);
    sleep(Duration::from_millis(500));
    let mut sizes = Vec::new();
    while let Some(status) = running.read("status") {
        sizes.extend(resident_kib(&status));
        sleep(Duration::from_millis(100));
    }
    let first = *sizes.first().expect("it ran long enough to be measured");
    let last = *sizes.last().expect("it ran long enough to be measured");
    assert!(last < first + 4096, "it grew from {first} to {last} KiB");
}

//! This system's side: `sing run --web` with one processor.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sing::failure::{Failure, Outcome};
use sing::repository::Repository;

use super::processes::{family_of, processor_seconds};
use super::{Part, Server};

/// Startup timeout, which includes building the system.
const START: Duration = Duration::from_secs(1_200);
/// Shutdown timeout.
const END: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Timeout of a page.
const ANSWER: Duration = Duration::from_secs(10);
/// Refresh interval of that page.
const STALE: Duration = Duration::from_millis(300);

/// The running system, stopped on drop.
pub struct Here {
    machine: Child,
    address: SocketAddr,
    /// Temporary files: the disk of its access log, and its recording.
    temporary: Vec<PathBuf>,
}

impl Here {
    /// Starts it on one host processor, with its output in a file, and waits until it responds.
    ///
    /// # Errors
    /// It cannot be started, or ends before it responds.
    pub fn start(
        repository: &Repository,
        files: &Path,
        address: SocketAddr,
        processor: &str,
        options: &[OsString],
    ) -> Outcome<Here> {
        let log = &repository.output(&format!("bench/web/here-{}.log", address.port()));
        let sing = sing::tool::path().map_err(|error| Failure::new(format!("cannot find sing: {error}")))?;
        let output = std::fs::File::create(log).map_err(|error| Failure::file("write", log, &error))?;
        let errors = output.try_clone().map_err(|error| Failure::file("write", log, &error))?;
        let mut command = Command::new("taskset");
        command.args(["-c", processor]).arg(sing).arg("run").arg("--web").arg(files).arg("--demo");
        // Serve the usage of each part over TAP, too.
        command.args(["--app", "/status=web-status"]);
        command.args(["--port", &address.port().to_string(), "--processors", "1"]).args(options);
        command.stdin(Stdio::piped()).stdout(output).stderr(errors);
        let machine = command.spawn().map_err(|error| Failure::file("start", Path::new("taskset"), &error))?;
        let temporary = vec![log.clone(), repository.output(&format!("web/log-{}.img", address.port()))];
        let mut here = Here { machine, address, temporary };
        let said = |what: &str| {
            let details = std::fs::read_to_string(log).unwrap_or_default();
            Failure::new(what.to_string()).details(details).remedy("try it with `cargo sing run --web FOLDER`")
        };
        let begun = Instant::now();
        // QEMU accepts connections before the guest listens, so only a response counts.
        while !here.page("/").is_ok_and(|page| !page.is_empty()) {
            if here.machine.try_wait().is_ok_and(|ended| ended.is_some()) {
                return Err(said("the system ended before it served"));
            }
            if begun.elapsed() > START {
                return Err(said("the system does not serve"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(here)
    }
}

impl Here {
    /// Has a file removed when the system has stopped.
    pub fn remove_at_end(&mut self, file: Option<&Path>) {
        self.temporary.extend(file.map(Path::to_path_buf));
    }

    /// Fetches the page at a path.
    fn page(&self, path: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&self.address, ANSWER)?;
        stream.set_read_timeout(Some(ANSWER))?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.split_once("\r\n\r\n").map_or_else(String::new, |(_, page)| page.into()))
    }
}

impl Server for Here {
    fn processor_seconds(&self) -> f64 {
        processor_seconds(self.machine.id())
    }

    /// Cycles used by each program's processes; empty if the system does not report them.
    fn parts(&self) -> Vec<Part> {
        std::thread::sleep(STALE);
        self.page("/status/status.json").map_or_else(|_| Vec::new(), |page| programs(&page))
    }

    fn processes(&self) -> Vec<u32> {
        family_of(self.machine.id())
    }
}

/// Processor time by program, from the status page.
fn programs(page: &str) -> Vec<Part> {
    let page: serde_json::Value = serde_json::from_str(page).unwrap_or_default();
    let mut parts: Vec<Part> = Vec::new();
    for process in page["processes"].as_array().into_iter().flatten() {
        let (Some(name), Some(cycles)) = (process["name"].as_str(), process["cycles"].as_u64()) else { continue };
        let used = cycles as f64;
        match parts.iter_mut().find(|part| part.name == name) {
            Some(part) => part.used += used,
            None => parts.push(Part { name: name.into(), used }),
        }
    }
    parts
}

impl Drop for Here {
    fn drop(&mut self) {
        // At end of input the shell ends, and the system with it.
        drop(self.machine.stdin.take());
        let begun = Instant::now();
        while begun.elapsed() < END {
            if self.machine.try_wait().is_ok_and(|ended| ended.is_some()) {
                break;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let _ = self.machine.kill();
        let _ = self.machine.wait();
        for file in &self.temporary {
            let _ = std::fs::remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_a_program_are_one_part() {
        let process = |name: &str, used: u64| format!("{{\"name\": \"{name}\", \"cycles\": {used}}}");
        let page = format!("{{\"processes\": [{}, {}, {}]}}", process("a", 1), process("b", 3), process("a", 1));
        let parts: Vec<(String, f64)> = programs(&page).into_iter().map(|part| (part.name, part.used)).collect();
        assert_eq!(parts, [("a".into(), 2.0), ("b".into(), 3.0)]);
        assert!(programs("no page").is_empty());
    }
}

//! This system's part: what `sing run --web` starts, with one processor.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};

use super::Server;
use super::processes::processor_seconds;

/// The first start may build the system.
const START: Duration = Duration::from_secs(1_200);
/// How long one waits for it to end by itself.
const END: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The system while it serves; it ends when this is dropped.
pub struct Here {
    machine: Child,
}

impl Here {
    /// Starts it on one processor of the host, with its output in a file, and waits until it answers.
    ///
    /// # Errors
    /// It cannot be started, or ends before it serves.
    pub fn start(files: &Path, log: &Path, port: u16, processor: &str, machine: &str) -> Outcome<Here> {
        let sing = std::env::current_exe().map_err(|error| Failure::new(format!("cannot find sing: {error}")))?;
        let output = std::fs::File::create(log).map_err(|error| Failure::file("write", log, &error))?;
        let errors = output.try_clone().map_err(|error| Failure::file("write", log, &error))?;
        let mut command = Command::new("taskset");
        command.args(["-c", processor]).arg(sing).arg("run").arg("--web").arg(files);
        command.args(["--port", &port.to_string(), "--processors", "1", "--machine", machine]);
        command.stdin(Stdio::piped()).stdout(output).stderr(errors);
        let machine = command.spawn().map_err(|error| Failure::file("start", Path::new("taskset"), &error))?;
        let mut here = Here { machine };
        let said = |what: &str| {
            let details = std::fs::read_to_string(log).unwrap_or_default();
            Failure::new(what.to_string()).details(details).remedy("try it with `cargo sing run --web FOLDER`")
        };
        let begun = Instant::now();
        while TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).is_err() {
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

impl Server for Here {
    fn processor_seconds(&self) -> f64 {
        processor_seconds(self.machine.id())
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        // At the end of its input the shell ends, and the system with it.
        drop(self.machine.stdin.take());
        let begun = Instant::now();
        while begun.elapsed() < END {
            if self.machine.try_wait().is_ok_and(|ended| ended.is_some()) {
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let _ = self.machine.kill();
        let _ = self.machine.wait();
    }
}

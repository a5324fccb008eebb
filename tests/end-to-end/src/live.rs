//! A machine whose shell takes commands while something else runs.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::run::counters;
use crate::tool::machine_process;

/// Timeout for an answer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running machine.
pub struct Live {
    child: Child,
    /// Standard input of the shell; closed to end it.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Arc<Mutex<String>>,
    asked: u32,
}

/// A process of the machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Process id.
    pub id: u64,
    /// Name of its program.
    pub name: String,
}

impl Live {
    /// Starts a machine.
    #[track_caller]
    pub fn start(mut command: Command) -> Live {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = started.expect("the machine's program starts");
        let (sender, lines) = mpsc::channel();
        let output = child.stdout.take().expect("it is a pipe");
        thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                // After the test there is no receiver.
                let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
        let errors = Arc::new(Mutex::new(String::new()));
        let (mut stream, sink) = (child.stderr.take().expect("it is a pipe"), Arc::clone(&errors));
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
                sink.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
            }
        });
        let input = child.stdin.take();
        Live { child, input, lines, errors, asked: 0 }
    }

    /// Process id of the machine on the host.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Output on standard error so far.
    pub fn errors(&self) -> String {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs a command and returns its standard output.
    #[track_caller]
    pub fn ask(&mut self, command: &str) -> String {
        self.asked += 1;
        let mark = format!("answer {} is whole", self.asked);
        let input = self.input.as_mut().expect("the machine was not ended");
        input.write_all(format!("{command}; echo {mark}\n").as_bytes()).expect("the machine reads commands");
        let deadline = Instant::now() + TIMEOUT;
        let mut text = String::new();
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.ends_with(&mark) => return text,
                Ok(line) => text.extend([line.as_str(), "\n"]),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("`{command}` has no answer within {TIMEOUT:?}, only:\n{text}\n{}", self.errors())
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the machine ended during `{command}`:\n{text}\n{}", self.errors())
                }
            }
        }
    }

    /// Runs a command that writes to standard error, including `words`, and returns its standard output.
    ///
    /// Standard error arrives on a stream of its own, slightly after the reply.
    #[track_caller]
    pub fn ask_what_says(&mut self, command: &str, words: &str) -> String {
        let before = self.errors().len();
        let answer = self.ask(command);
        let begin = Instant::now();
        loop {
            let said = self.errors().split_off(before);
            if said.contains(words) {
                return answer;
            }
            assert!(begin.elapsed() < TIMEOUT, "`{command}` does not say `{words}`, but:\n{said}");
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// The running processes, except the one that lists them.
    #[track_caller]
    pub fn processes(&mut self) -> Vec<Process> {
        let text = self.ask("ps");
        let process = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (id, name, state) = (words.first()?.parse().ok()?, *words.get(1)?, *words.get(3)?);
            (!matches!(state, "stopping" | "ended") && name != "ps").then(|| Process { id, name: name.into() })
        };
        text.lines().filter_map(process).collect()
    }

    /// Value of a counter of `sysinfo`; 0 if it is not listed.
    #[track_caller]
    pub fn counters(&mut self) -> std::collections::BTreeMap<String, u64> {
        counters(&self.ask("sysinfo")).pop().unwrap_or_default()
    }

    /// Number of files that the machine's process has open on the host.
    pub fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", machine_process(self.process()))).map_or(0, Iterator::count)
    }

    /// Ends the shell, and with it the machine. Returns the exit status.
    #[track_caller]
    pub fn end(mut self) -> Option<i32> {
        self.input = None;
        let begin = Instant::now();
        while begin.elapsed() < TIMEOUT {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return status.code();
            }
            thread::sleep(Duration::from_millis(2));
        }
        panic!("the machine did not end within {TIMEOUT:?}; it said:\n{}", self.errors());
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // After a failed test nothing else ends it; after `end` it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a port of this host that is not in use.
pub fn free_port() -> u16 {
    // Never the same twice: files of a site are named after its port, and outlive it.
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the host has a port");
        let port = listener.local_addr().expect("it is bound").port();
        if GIVEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
            return port;
        }
    }
}

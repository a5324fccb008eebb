//! Runs a process to completion and captures its output: a machine, a test suite, a benchmark.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::failure::{Failure, Outcome};

/// Output of a machine, and the error at its end.
pub struct MachineOutput {
    /// Standard output and debug output.
    pub text: String,
    /// `None` if it ended with status 0 in time.
    pub problem: Option<String>,
}

/// Runs a machine, or another process to measure or test, to completion, or kills it after `limit`.
///
/// # Errors
/// It cannot be started.
pub fn run_machine(command: Command, limit: Duration) -> Outcome<MachineOutput> {
    run_machine_with(command, Stdio::null(), limit)
}

/// The same, with a standard input.
///
/// # Errors
/// It cannot be started.
pub fn run_machine_with(mut command: Command, stdin: Stdio, limit: Duration) -> Outcome<MachineOutput> {
    let program = PathBuf::from(command.get_program());
    let cannot_start = |error: std::io::Error| Failure::file("start", &program, &error);
    // Debug output, to which a suite without a console prints, and standard output are one stream.
    let (output, input) = std::io::pipe().map_err(cannot_start)?;
    let errors = input.try_clone().map_err(cannot_start)?;
    let mut child = command.stdin(stdin).stdout(input).stderr(errors).spawn().map_err(cannot_start)?;
    // The command holds the write ends too, which would keep the stream open.
    drop(command);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut output = output;
        // Output read before a failure still counts.
        let _ = output.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    let bytes = match receiver.recv_timeout(limit) {
        Ok(bytes) => bytes,
        Err(_) => {
            // It may have exited meanwhile.
            let _ = child.kill();
            let _ = child.wait();
            let text = receiver.recv().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
            return Ok(MachineOutput { text, problem: Some(format!("timed out after {} seconds", limit.as_secs())) });
        }
    };
    let status = child.wait().map_err(cannot_start)?;
    let problem = (!status.success()).then(|| format!("{} ended with {status}", program.display()));
    Ok(MachineOutput { text: String::from_utf8_lossy(&bytes).into_owned(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_started_is_named() {
        let failure =
            run_machine(Command::new("/no/such/fuzzer"), Duration::from_secs(5)).err().expect("there is none");
        assert!(failure.to_string().starts_with("cannot start /no/such/fuzzer: "), "{failure}");
        let output = run_machine(Command::new("false"), Duration::from_secs(60)).expect("it can be started");
        assert!(output.problem.is_some_and(|problem| problem.starts_with("false ended with ")));
    }
}

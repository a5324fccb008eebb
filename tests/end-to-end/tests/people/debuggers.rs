//! Debuggers of hosted and simulated machines, and an editor's session by the Debug Adapter Protocol.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use end_to_end::{Run, finish, machine_program, repository, sing, system_image, target};
use serde_json::{Value, json};

/// Timeout that covers building the simulated machine.
const LIMIT: Duration = Duration::from_secs(900);

fn is_missing(program: &str) -> bool {
    let is_missing = Command::new(program).arg("--version").output().is_err();
    if is_missing {
        println!("skipped: there is no {program}");
    }
    is_missing
}

fn debug(words: &[&str]) -> Run {
    // Builds in advance, so that it does not count against the timeout.
    machine_program();
    system_image();
    let mut command = Command::new(sing());
    command.arg("debug").args(words).current_dir(repository());
    finish(command, "debug", LIMIT)
}

const STOPS: &str = "break text_apps::echo::main\nrun\nbacktrace\ncontinue\ncontinue";

#[test]
fn gdb_stops_in_a_program_of_the_hosted_machine() {
    if is_missing("gdb") {
        return;
    }
    let run = debug(&["--machine", "hosted", "-c", "echo first; echo second", "--batch", STOPS]);
    let text = run.text();
    assert_eq!(text.matches("hit Breakpoint 1, ").count(), 2, "{run}");
    assert!(text.contains("in sip::entry::run ()") && text.contains("first\n") && text.contains("second\n"), "{run}");
}

#[test]
fn a_breakpoint_in_one_program_may_stop_that_one_alone() {
    if is_missing("gdb") {
        return;
    }
    let commands = "break text_apps::echo::main\nrun\ninfo threads";
    let run = debug(&["--machine", "hosted", "--stop", "program", "-c", "echo first", "--batch", commands]);
    let text = run.text();
    let processors: Vec<_> =
        text.lines().filter(|line| line.contains("\"processor ") && line.contains("(LWP ")).collect();
    assert_eq!(processors.len(), 2, "{run}");
    assert_eq!(processors.iter().filter(|line| line.contains("(running)")).count(), 1, "{run}");
    assert_eq!(processors.iter().filter(|line| line.contains("text_apps::echo::main")).count(), 1, "{run}");
}

/// The run of a seed is the same under the debugger: the hash of its trace says so.
#[test]
fn gdb_stops_in_the_run_of_a_seed_without_changing_it() {
    if is_missing("gdb") {
        return;
    }
    const COMMANDS: &str = "echo first; echo second";
    let report = tempfile::NamedTempFile::new().expect("a file");
    // gdb shows the machine's arguments between quotation marks.
    let with_report = format!(
        "python given = gdb.execute('show args', to_string=True).split('\"', 1)[1].rsplit('\"', 1)[0]\n\
         python gdb.execute('set args ' + given + ' --report {}')",
        report.path().display()
    );
    let run = debug(&["--seed", "3", "-c", COMMANDS, "--batch", &with_report, "--batch", STOPS]);
    let text = run.text();
    assert_eq!(text.matches("Breakpoint 1, 0x").count(), 2, "{run}");
    assert!(text.contains("in sip::entry::run ()") && text.contains("second\n"), "{run}");
    let report = std::fs::read_to_string(report.path()).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let mut command = Command::new(sing());
    command.args(["simulate", "--seed", "3", "--processors", "1", "--faults", "preempt,switch,delay", "--json"]);
    let undisturbed = finish(
        {
            command.args(["-c", COMMANDS]).current_dir(repository());
            command
        },
        "simulate",
        LIMIT,
    );
    let hash = report["hash"].as_str().expect("a hash");
    assert!(undisturbed.text().contains(hash), "{hash}: {undisturbed}\n{run}");
    let refused = debug(&["--seed", "3", "--faults", "step", "-c", "true", "--batch", "run"]);
    assert!(refused.errors.contains("trap flag"), "{refused}");
}

#[test]
fn lldb_stops_in_a_program_of_the_hosted_machine() {
    if is_missing("lldb") {
        return;
    }
    let commands = "singularity-launch\nbreakpoint set -r text_apps::echo::main\ncontinue\nthread backtrace\ncontinue";
    let run = debug(&["--machine", "hosted", "--debugger", "lldb", "-c", "echo first", "--batch", commands]);
    let text = run.text();
    assert!(text.contains("stop reason = breakpoint") && text.contains("echo`text_apps::echo::main"), "{run}");
    assert!(text.contains("\nfirst") && text.contains("exited with status = 0"), "{run}");
}

/// An adapter, and what it sends.
struct Session {
    adapter: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    sent: u64,
}

impl Session {
    fn start(program: &Path) -> Session {
        let mut command = Command::new(program);
        // Where Debian's adapter does not look for the modules beside it.
        let libraries = program.ancestors().nth(2).expect("a folder").join("lib");
        let folders = std::fs::read_dir(libraries).into_iter().flatten().flatten();
        let modules =
            folders.map(|entry| entry.path().join("dist-packages")).find(|path| path.join("lldb/__init__.py").exists());
        if let Some(modules) = modules {
            command.env("PYTHONPATH", format!("{}:/usr/lib/python3/dist-packages", modules.display()));
        }
        let mut adapter =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let (input, output) = (adapter.stdin.take().expect("a pipe"), adapter.stdout.take().expect("a pipe"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = read_message(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Session { adapter, input, messages, sent: 0 }
    }

    fn send(&mut self, command: &str, arguments: Value) {
        self.sent += 1;
        let text = json!({"seq": self.sent, "type": "request", "command": command, "arguments": arguments}).to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("it reads");
        self.input.flush().expect("it reads");
    }

    #[track_caller]
    fn until(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut seen = Vec::new();
        loop {
            match self.messages.recv_timeout(LIMIT) {
                Ok(message) if is_it(&message) => return message,
                Ok(message) => seen.push(message.to_string()),
                Err(_) => panic!("no {what}, but:\n{}", seen.join("\n")),
            }
        }
    }

    #[track_caller]
    fn ask(&mut self, command: &str, arguments: Value) -> Value {
        self.send(command, arguments);
        let number = self.sent;
        let answer = self.until(command, |message| message["request_seq"] == number);
        assert_eq!(answer["success"], true, "{answer}");
        answer
    }

    #[track_caller]
    fn event(&self, name: &str) -> Value {
        self.until(name, |message| message["event"] == name)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.adapter.kill();
        let _ = self.adapter.wait();
    }
}

fn read_message(from: &mut impl BufRead) -> Option<Value> {
    let mut bytes = None;
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|&read| read > 0)?;
        match line.trim().split_once(':') {
            Some(("Content-Length", count)) => bytes = Some(vec![0; count.trim().parse().ok()?]),
            Some(_) => {}
            None => break,
        }
    }
    let mut bytes = bytes?;
    from.read_exact(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// lldb's adapter, by its names in different versions.
fn adapter() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path());
    let folders =
        versions.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("llvm-")));
    let mut names = folders.flat_map(|folder| ["bin/lldb-dap", "bin/lldb-vscode"].map(|name| folder.join(name)));
    names.find(|path| path.is_file())
}

/// What an editor does with the launch.json of a new workspace.
#[test]
#[ignore = "builds a program again, with line tables"]
fn an_editor_stops_at_a_source_line() {
    let Some(adapter) = adapter() else {
        println!("skipped: there is no adapter of lldb");
        return;
    };
    debug(&["--prepare", "--machine", "hosted", "--lines", "echo", "-c", "echo first"]);
    let (source, module) = (repository().join("apps/text/src/echo.rs"), target().join("sing/debug/launch.py"));
    let mut session = Session::start(&adapter);
    session.ask("initialize", json!({"adapterID": "lldb-dap", "linesStartAt1": true, "pathFormat": "path"}));
    session.send(
        "launch",
        json!({
            "program": machine_program(),
            "cwd": repository(),
            "preRunCommands": [format!("command script import {}", module.display())],
            "launchCommands": ["singularity-launch"],
        }),
    );
    session.event("initialized");
    let lines = json!({"source": {"path": source}, "breakpoints": [{"line": 11}]});
    session.ask("setBreakpoints", lines);
    session.ask("configurationDone", json!({}));
    let stopped = session.until("stop at a breakpoint", |message| message["body"]["reason"] == "breakpoint");
    let thread = stopped["body"]["threadId"].clone();
    let trace = session.ask("stackTrace", json!({"threadId": thread, "levels": 10}));
    let frames = trace["body"]["stackFrames"].as_array().expect("frames").clone();
    assert_eq!((&frames[0]["line"], &frames[0]["source"]["path"]), (&json!(11), &json!(source)), "{trace}");
    let own = |frame: &Value| frame["source"]["path"] == json!(repository().join("sip/src/entry.rs"));
    assert!(frames.iter().any(own), "{trace}");
    session.ask("continue", json!({"threadId": thread}));
    assert_eq!(session.event("exited")["body"]["exitCode"], 0);
}

//! An editor's session by the Debug Adapter Protocol, as the configuration of a new workspace has it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use end_to_end::{finish, machine_program, repository, sing, system_image, target};
use serde_json::{Value, json};

/// Timeout that covers building a program with line tables.
const LIMIT: Duration = Duration::from_secs(900);

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
    let named = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&named).map(|folder| (folder, ""));
    let installed = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let versions =
        installed.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("llvm-")));
    let mut names = folders
        .chain(versions.map(|folder| (folder, "bin")))
        .flat_map(|(folder, inside)| ["lldb-dap", "lldb-vscode"].map(|name| folder.join(inside).join(name)));
    names.find(|path| path.is_file())
}

/// The configuration that a new workspace has for its editor, with what the tool builds in this repository's output.
fn configuration() -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(sing());
    command.args(["new", "app", "tea-cup"]).current_dir(folder.path()).env("CARGO_TARGET_DIR", target());
    let run = finish(command, "sing new app tea-cup", LIMIT);
    assert_eq!(run.status, Some(0), "{run}");
    let text = std::fs::read_to_string(folder.path().join("tea-cup/.vscode/launch.json")).expect("launch.json");
    let text = text.replace("${workspaceFolder}", repository().to_str().expect("a path of text"));
    let file: Value = serde_json::from_str(&text).expect("JSON");
    file["configurations"][0].clone()
}

/// Variables with this reference, by name.
#[track_caller]
fn variables(session: &mut Session, reference: &Value) -> BTreeMap<String, Value> {
    let answer = session.ask("variables", json!({"variablesReference": reference}));
    let list = answer["body"]["variables"].as_array().expect("variables").clone();
    list.into_iter().map(|one| (one["name"].as_str().expect("a name").to_owned(), one)).collect()
}

/// What an editor does with the launch.json of a new workspace.
#[test]
#[ignore = "builds a program again, with line tables"]
fn an_editor_stops_at_a_source_line() {
    let Some(adapter) = adapter() else {
        println!("skipped: there is no adapter of lldb");
        return;
    };
    // Builds in advance, so that it does not count against the timeout.
    system_image();
    let mut command = Command::new(sing());
    command.args(["debug", "--prepare", "--machine", "hosted", "--lines", "echo", "-c", "echo first"]);
    command.current_dir(repository());
    let prepared = finish(command, "debug --prepare", LIMIT);
    assert_eq!(prepared.status, Some(0), "{prepared}");
    let launch = configuration();
    assert_eq!(launch["program"], json!(machine_program()), "{launch}");
    let source = repository().join("apps/text/src/echo.rs");
    let mut session = Session::start(&adapter);
    session.ask("initialize", json!({"adapterID": launch["type"], "linesStartAt1": true, "pathFormat": "path"}));
    session.send("launch", launch);
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
    has_registers(&mut session, &frames[0]["id"]);
    session.ask("continue", json!({"threadId": thread}));
    assert_eq!(session.event("exited")["body"]["exitCode"], 0);
}

/// Images have no variables, but a frame has registers.
#[track_caller]
fn has_registers(session: &mut Session, frame: &Value) {
    let scopes = session.ask("scopes", json!({"frameId": frame}));
    let list = scopes["body"]["scopes"].as_array().expect("scopes").clone();
    let registers = list.iter().find(|scope| scope["name"] == "Registers").expect("registers");
    let sets = variables(session, &registers["variablesReference"]);
    let general = sets.get("General Purpose Registers").expect("general registers");
    let values = variables(session, &general["variablesReference"]);
    let address = values["rip"]["value"].as_str().expect("a value");
    assert!(address.starts_with("0x") && address.len() > 10, "{address}");
}

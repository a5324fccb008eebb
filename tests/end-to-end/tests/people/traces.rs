//! Traces of the whole system: what they contain, what is lost, and that the system never waits for their reader.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use end_to_end::{BUILD_LIMIT, BareMachine, Format, Image, Machine, Run, finish, repository, sing};
use serde_json::Value;
use tempfile::TempDir;

/// Timeout for a run on a busy host.
const LIMIT: Duration = Duration::from_secs(120);
/// Bytes of the large file.
const LARGE_BYTES: usize = 2_000_000;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for temporary files")
}

/// A disk with a file that is too large to have been read with what a mount needs.
fn disk() -> Image {
    let content = folder();
    fs::write(content.path().join("large"), vec![b'x'; LARGE_BYTES]).expect("written");
    Image::of(content.path(), Format::default())
}

#[track_caller]
fn run(folder: &Path, commands: &str) -> Run {
    let folder = format!("work={}", folder.to_str().expect("a path of text"));
    Machine::new().folder(&folder).limit(LIMIT).run(&format!("cd /fs/work; {commands}"))
}

/// A trace in Chrome's format.
struct Trace {
    events: Vec<Value>,
}

impl Trace {
    #[track_caller]
    fn read(path: &Path) -> Trace {
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut file: Value = serde_json::from_slice(&bytes).expect("a trace is JSON");
        let events = std::mem::take(file["traceEvents"].as_array_mut().expect("a trace has events"));
        Trace { events }
    }

    /// Process ids of a program.
    fn processes(&self, program: &str) -> Vec<u64> {
        let named = self.events.iter().filter(|event| event["name"] == "process_name");
        let of_it = named.filter(|event| event["args"]["name"] == program);
        of_it.map(|event| event["pid"].as_u64().expect("a process id")).collect()
    }

    /// The events of a program with a phase and a name that begins with this.
    fn of<'a>(&'a self, program: &str, phase: &'a str, name: &'a str) -> impl Iterator<Item = &'a Value> {
        let processes = self.processes(program);
        self.events.iter().filter(move |event| {
            event["ph"] == phase
                && event["name"].as_str().is_some_and(|text| text.starts_with(name))
                && event["pid"].as_u64().is_some_and(|id| processes.contains(&id))
        })
    }

    /// The arrows from one program to another.
    fn arrows(&self, from: &str, to: &str) -> usize {
        let begun: Vec<&Value> = self.of(from, "s", "message").map(|event| &event["id"]).collect();
        self.of(to, "f", "message").filter(|event| begun.contains(&&event["id"])).count()
    }

    #[track_caller]
    fn shows_a_file_being_read(&self, driver: &str) {
        assert_eq!(self.processes("cat").len(), 1, "one process runs `cat`");
        let asked = self.of("cat", "X", "send File.").count();
        assert!(asked > 0, "`cat` sends no message to a file");
        assert!(self.of("ext2-fs", "X", "receive File.").count() >= asked);
        assert!(self.arrows("cat", "ext2-fs") > 0, "no arrow leads from `cat` to its file system");
        assert!(self.arrows("ext2-fs", "cat") > 0, "no arrow leads from the file system to `cat`");
        assert!(self.arrows("ext2-fs", driver) > 0, "no arrow leads from the file system to the disk's driver");
        assert!(self.of("cat", "X", "wait for File.").count() > 0, "`cat` does not wait for its file");
        let lasted = |event: &Value| event["dur"].as_f64().is_some_and(|micro| micro > 0.0);
        let requests: Vec<&Value> =
            self.events.iter().filter(|event| event["cat"] == "request" && event["ph"] == "X").collect();
        let drivers = self.processes(driver);
        let is_of_driver = |event: &&&Value| event["pid"].as_u64().is_some_and(|id| drivers.contains(&id));
        assert!(
            requests.iter().filter(is_of_driver).any(|event| lasted(event)),
            "no request to the disk: {requests:?}"
        );
    }
}

/// The trace of a program that reads the large file, and prints it.
#[track_caller]
fn trace_of_large(options: &str) -> Trace {
    let (folder, disk) = (folder(), disk());
    let option = format!("work={}", folder.path().to_str().expect("a path of text"));
    let machine = Machine::new().disk(disk.path()).folder(&option).limit(LIMIT);
    let run = machine.run(&format!("trace -o /fs/work/t.json --format json {options} cat /fs/disk0/large | wc -c"));
    assert_eq!(run.text().trim(), LARGE_BYTES.to_string(), "{run}");
    Trace::read(&folder.path().join("t.json"))
}

#[test]
fn a_trace_shows_who_asks_whom_and_what_the_disk_does() {
    test_needs::needs!(E2fsprogs);
    trace_of_large("").shows_a_file_being_read("file-disk");
}

#[test]
fn the_tool_traces_a_system_and_says_how_it_ended() {
    let folder = folder();
    let file = folder.path().join("out.perfetto");
    let mut command = Command::new(sing());
    command.arg("trace").arg("-o").arg(&file).args(["-c", "echo one; ls /no/such/folder"]).current_dir(repository());
    let run = finish(command, "sing trace", BUILD_LIMIT);
    assert_eq!((run.status, run.text().as_str()), (Some(1), "one\n"), "{run}");
    assert!(run.errors.contains("ui.perfetto.dev"), "{run}");
    let bytes = fs::read(&file).expect("a trace");
    // A packet: field 1, with a length.
    assert_eq!(bytes.first(), Some(&0x0a));
    // Which processor runs the commands is the machine's affair.
    for name in ["directory", "shell thread 1", "processor ", "send Directory.Bind"] {
        assert!(bytes.windows(name.len()).any(|part| part == name.as_bytes()), "no {name} in the trace");
    }
}

#[test]
fn a_reader_that_does_not_read_loses_events_and_the_system_goes_on() {
    let folder = folder();
    let commands = "trace -o slow.txt --format text --events 64 --pause 60s seq 20000 | wc -l; \
        trace -o after.txt --format text echo goes on";
    let run = run(folder.path(), commands);
    assert_eq!(run.text(), "20000\ngoes on\n", "{run}");
    let counts = |file: &str| -> Vec<u64> {
        let start = format!("trace: /fs/work/{file}: ");
        let line = run.errors.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_else(|| panic!("{run}"));
        line.split(' ').filter_map(|word| word.parse().ok()).collect()
    };
    let [events, lost] = counts("slow.txt")[..] else { panic!("no counts: {run}") };
    assert!(events > 0 && events <= 64 + 64 && lost > 100, "{events} events, {lost} lost");
    let text = fs::read_to_string(folder.path().join("slow.txt")).expect("a trace");
    assert!(text.contains(&format!(" {lost} events lost\n")), "{text}");
    assert_eq!(counts("after.txt")[1], 0, "{run}");
}

#[test]
fn a_reader_that_dies_leaves_the_stream_to_another() {
    let folder = folder();
    let commands = "trace -o one.txt --format text --time 600s & sleep 0.5; trace -o two.txt echo no || echo refused; \
        kill trace; wait; trace -o three.txt --format text echo yes";
    let run = run(folder.path(), commands);
    assert_eq!(run.text(), "refused\nyes\n", "{run}");
    assert!(run.errors.contains("another process traces the system"), "{run}");
    let text = fs::read_to_string(folder.path().join("three.txt")).expect("a trace");
    assert!(text.contains("echo"), "{text}");
}

#[test]
fn one_process_is_followed() {
    test_needs::needs!(E2fsprogs);
    let trace = trace_of_large("--follow cat");
    assert!(trace.arrows("cat", "ext2-fs") > 0 && trace.arrows("ext2-fs", "cat") > 0);
    // What the file system does for others than `cat` is not in it.
    assert_eq!(trace.arrows("ext2-fs", "file-disk"), 0);
}

#[test]
fn top_shows_how_long_messages_wait() {
    let text = Machine::new().run("ls /dev | wc -l; top --latencies").succeeded();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let directory = rows.iter().find(|row| row.first() == Some(&"Directory") && row.get(1) == Some(&"exporter"));
    let row = directory.unwrap_or_else(|| panic!("no messages to a directory in {text}"));
    assert!(row[2].parse::<u64>().is_ok_and(|samples| samples > 5), "{row:?}");
}

#[test]
fn a_wrong_command_line_is_refused() {
    let folder = folder();
    for (command, message) in [
        ("trace ls", "trace -o FILE"),
        ("trace -o t", "--time 5s"),
        ("trace -o t --format xml ls", "perfetto, json and text"),
        ("trace -o t --events 0 ls", "from 1 to"),
        ("trace -o t --follow nobody --time 1s", "nobody"),
        ("trace -o /no/such/t ls", "/no/such/t"),
    ] {
        let run = run(folder.path(), command);
        assert_ne!(run.status, Some(0), "{command}: {run}");
        assert!(run.errors.contains(message), "{command}: {run}");
    }
}

#[test]
fn a_bare_machine_traces_itself() {
    test_needs::needs!(Qemu, E2fsprogs);
    let (folder, disk) = (folder(), disk());
    let option = format!("work={}", folder.path().to_str().expect("a path of text"));
    let disk = disk.path().to_str().expect("a path of text").to_string();
    let machine = BareMachine::new("microvm").with(&["--folder", &option, "--disk", &disk, "--processors", "2"]);
    let run = machine.run("trace -o /fs/work/t.json --format json cat /fs/disk0/large | wc -c");
    assert_eq!(run.text().trim(), LARGE_BYTES.to_string(), "{run}");
    Trace::read(&folder.path().join("t.json")).shows_a_file_being_read("virtio-blk");
}

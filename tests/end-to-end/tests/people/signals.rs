//! Termination signals: the system shuts down in order, without losing written data.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use end_to_end::{Format, Image, Live, Machine, Terminal, with_signals};
use rustix::process::{Pid, Signal, kill_process};

test_needs::needs!(E2fsprogs);

const COPY: &str = "cp /fs/disk0/source /fs/disk1/copy; echo copied";
/// Shorter than the file systems' write-back interval.
const SOON: Duration = Duration::from_secs(3);

/// A disk with a file `source`, and a disk to copy it to.
struct Disks {
    source: Image,
    target: Image,
    bytes: Vec<u8>,
}

impl Disks {
    fn new() -> Disks {
        let bytes: Vec<u8> =
            (0..300_000_u32).flat_map(|number| number.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let empty = tempfile::tempdir().expect("a folder for temporary files");
        std::fs::write(folder.path().join("source"), &bytes).expect("a file can be written");
        let format = Format { mebibytes: 8, ..Format::default() };
        Disks { source: Image::of(folder.path(), format), target: Image::of(empty.path(), format), bytes }
    }

    fn machine(&self) -> Machine {
        Machine::new().disk(self.source.path()).disk(self.target.path())
    }

    /// Asserts that the copy is complete and the file system was cleanly unmounted.
    #[track_caller]
    fn check(&self) {
        self.target.check();
        let copy = std::fs::read(self.target.contents().path().join("copy")).expect("the copy is there");
        assert!(copy == self.bytes, "the copy has {} bytes, not the {} of its source", copy.len(), self.bytes.len());
    }
}

/// Waits for a signalled machine to end; returns its exit status.
#[track_caller]
fn ends_soon(child: &mut Child) -> Option<i32> {
    let begin = Instant::now();
    while begin.elapsed() < SOON {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    // It may exit at this moment; the test fails anyway.
    let _ = child.kill();
    let _ = child.wait();
    panic!("the machine did not end within {SOON:?}");
}

/// Copies a file, signals the machine immediately after, and checks the disk.
#[track_caller]
fn keeps_the_copy(signal: Signal) {
    let disks = Disks::new();
    let mut command =
        with_signals("--default-signal=HUP", &disks.machine().command(Some(&format!("{COPY}; sleep 100"))));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the machine starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it is a pipe")).read_line(&mut line).expect("the machine says a line");
    assert_eq!(line, "copied\n");
    kill_process(Pid::from_child(&child), signal).expect("the machine runs");
    assert_eq!(ends_soon(&mut child), Some(128 + signal.as_raw()), "{signal:?}");
    disks.check();
}

#[test]
fn what_was_copied_survives_sigterm() {
    keeps_the_copy(Signal::TERM);
}

#[test]
fn what_was_copied_survives_sigint() {
    keeps_the_copy(Signal::INT);
}

#[test]
fn what_was_copied_survives_sighup() {
    keeps_the_copy(Signal::HUP);
}

#[test]
fn a_machine_under_nohup_ignores_sighup() {
    let mut command =
        with_signals("--ignore-signal=HUP", &Machine::new().command(Some("echo begun; sleep 2; echo ended")));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the machine starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "begun");
    kill_process(Pid::from_child(&child), Signal::HUP).expect("the machine runs");
    assert_eq!(lines.next().expect("a line").expect("text"), "ended");
    assert_eq!(ends_soon(&mut child), Some(0));
}

#[test]
fn what_was_copied_survives_sigquit() {
    keeps_the_copy(Signal::QUIT);
}

#[test]
fn a_shutdown_while_a_file_is_being_copied_leaves_a_sound_file_system() {
    let disks = Disks::new();
    let commands = "echo begun; while true; do cp /fs/disk0/source /fs/disk1/copy; rm /fs/disk1/copy; end";
    let mut command = disks.machine().command(Some(commands));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the machine starts");
    let mut word = [0; 6];
    child.stdout.as_mut().expect("it is a pipe").read_exact(&mut word).expect("the machine says a word");
    std::thread::sleep(Duration::from_millis(50));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("the machine runs");
    assert_eq!(ends_soon(&mut child), Some(143));
    disks.target.check();
}

#[test]
fn what_was_copied_survives_the_end_of_standard_input() {
    let disks = Disks::new();
    let mut live = Live::start(disks.machine().command(None));
    assert_eq!(live.ask(COPY), "copied\n");
    assert_eq!(live.end(), Some(0));
    disks.check();
}

#[test]
fn what_was_copied_survives_a_terminal_that_goes_away() {
    let disks = Disks::new();
    let machine = disks.machine().command(None);
    // The terminal must be the controlling one of the machine's session, as after a shell's `exec`.
    let mut leader = Command::new("setsid");
    leader.arg("--ctty").arg(machine.get_program()).args(machine.get_args());
    let mut terminal = Terminal::start(leader);
    terminal.wait_for("> ");
    terminal.press(&format!("{COPY}\r"));
    terminal.wait_for("\ncopied");
    let status = terminal.hang_up();
    assert!(matches!(status, Some(0 | 129)), "{status:?}");
    disks.check();
}

#[test]
fn control_c_at_the_shell_is_no_request_to_end() {
    let mut terminal = Terminal::start(Machine::new().command(None));
    terminal.wait_for("> ");
    terminal.press("sleep 100\r");
    terminal.wait_for("sleep 100\n");
    terminal.press("\x03");
    terminal.wait_for("> ");
    terminal.press("echo $((6 * 7)); exit 5\r");
    assert_eq!(terminal.end(), Some(5));
}

#[test]
fn sighup_that_is_ignored_stays_so() {
    let machine = Machine::new().command(None);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(machine.get_program()).args(machine.get_args());
    let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the machine starts");
    let mut input = child.stdin.take().expect("it is a pipe");
    let mut output = BufReader::new(child.stdout.take().expect("it is a pipe"));
    let mut answer = |command: &str| {
        input.write_all(command.as_bytes()).expect("the machine reads commands");
        let mut line = String::new();
        output.read_line(&mut line).expect("the machine says a line");
        line
    };
    assert_eq!(answer("echo begun\n"), "begun\n");
    kill_process(Pid::from_child(&child), Signal::HUP).expect("the machine runs");
    assert_eq!(answer("sleep 300ms; echo alive\n"), "alive\n");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("the machine runs");
    assert_eq!(ends_soon(&mut child), Some(143));
}

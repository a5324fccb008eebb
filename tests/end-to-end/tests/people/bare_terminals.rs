//! An interactive session at a bare machine's console.

use std::process::Command;
use std::time::{Duration, Instant};

use end_to_end::{BareMachine, KINDS, Machine, Terminal, finish};
use rustix::process::{Pid, Signal, kill_process};

test_needs::needs!(Qemu);

fn person(kind: &str) -> Terminal {
    let mut terminal = Terminal::start(BareMachine::new(kind).command(None));
    terminal.wait_for("/> ");
    terminal
}

#[test]
fn a_prompt_appears_and_commands_run() {
    for kind in KINDS {
        let mut terminal = person(kind);
        println!("prompt on {kind} after {:?}", terminal.age());
        terminal.press("echo hello\r");
        terminal.wait_for("\nhello\n");
        terminal.wait_for("> ");
        terminal.press("exit 5\r");
        assert_eq!(terminal.end(), Some(5));
    }
}

#[test]
fn keys_that_signal_are_the_machines() {
    let mut terminal = person("microvm");
    terminal.press("sleep 100\r");
    terminal.wait_for("sleep 100\n");
    std::thread::sleep(Duration::from_millis(300));
    terminal.press("\x03");
    terminal.wait_for("> ");
    terminal.press("echo status $?\r");
    terminal.wait_for("\nstatus 130\n");
    terminal.press("\x04");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_line_is_edited_before_it_runs() {
    let mut terminal = person("microvm");
    terminal.press("echo axcd\x1b[D\x1b[D\x7fb\x1b[F-end\r");
    terminal.wait_for("\nabcd-end\n");
    terminal.press("sysi\t\r");
    terminal.wait_for("processes created");
}

/// The terminal mode, as `stty` prints it, is restored after the machine has ended.
#[test]
fn the_terminal_is_given_back_however_the_machine_ends() {
    for (what, end) in [("exit", "exit 3\r"), ("kill", "")] {
        let machine = BareMachine::new("microvm").command(None);
        let mut shell = Command::new("sh");
        let script = "stty -g; \"$@\"; echo ended $?; stty -g; echo over";
        shell.args(["-c", script, "sh"]).arg(machine.get_program()).args(machine.get_args());
        shell.current_dir(end_to_end::repository());
        let mut terminal = Terminal::start(shell);
        terminal.wait_for("/> ");
        if end.is_empty() {
            kill_process(qemu_below(terminal.process()), Signal::KILL).expect("QEMU runs");
        } else {
            terminal.press(end);
        }
        terminal.wait_for("ended ");
        terminal.wait_for("over\n");
        let screen = terminal.screen();
        let modes: Vec<&str> = screen.lines().filter(|line| line.matches(':').count() > 20).collect();
        assert!(modes.len() == 2 && modes[0] == modes[1], "after {what}:\n{screen}");
        let status = if end.is_empty() { "ended 1\n" } else { "ended 3\n" };
        assert!(screen.contains(status), "after {what}:\n{screen}");
        assert_eq!(screen.contains("stopped without an exit status"), end.is_empty(), "after {what}:\n{screen}");
    }
}

/// Returns the QEMU process among the descendants of `ancestor`.
fn qemu_below(ancestor: u32) -> Pid {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        let mut open = vec![ancestor];
        while let Some(process) = open.pop() {
            let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
            if name.starts_with("qemu-system") {
                return Pid::from_raw(process as i32).expect("a process has a number");
            }
            let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
            open.extend(children.unwrap_or_default().split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("there is no QEMU below process {ancestor}");
}

fn is_there(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    // A zombie counts as ended.
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim_start().starts_with('Z'))
}

/// Signals end tool and machine in order; QEMU does not survive even a killed tool.
#[test]
fn no_machine_outlives_the_tool() {
    for (signal, status) in [(Signal::INT, Some(130)), (Signal::TERM, Some(143)), (Signal::KILL, None)] {
        let mut command = BareMachine::new("microvm").command(Some("sleep 100"));
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().expect("the tool starts");
        let qemu = qemu_below(child.id());
        std::thread::sleep(Duration::from_millis(500));
        kill_process(Pid::from_child(&child), signal).expect("the tool runs");
        let ended = child.wait().expect("a child can be waited for");
        assert_eq!(ended.code(), status, "after {signal:?}");
        let deadline = Instant::now() + Duration::from_secs(10);
        while is_there(qemu) {
            assert!(Instant::now() < deadline, "QEMU runs on after {signal:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_machine_that_stops_without_a_status_is_a_sentence() {
    // The reset vector holds no valid instruction: the shadow of QEMU's firmware is gone.
    let mut command =
        BareMachine::new("microvm").with(&["--qemu", "-bios", "--qemu", "/dev/null"]).command(Some("true"));
    command.env("NO_COLOR", "1");
    finish(command, "a machine without firmware", Duration::from_secs(60)).refused(&["sing: ", "QEMU"]);
}

/// `shutdown --restart` reboots the same machine at the same terminal.
#[test]
fn a_machine_starts_anew_when_it_is_told_to() {
    let commands = [BareMachine::new("microvm").command(None), Machine::new().command(None)];
    for command in commands {
        let mut terminal = Terminal::start(command);
        for _ in 0..2 {
            terminal.wait_for("/> ");
            terminal.press("shutdown --restart\r");
            terminal.wait_for("shutdown --restart\n");
        }
        terminal.wait_for("/> ");
        terminal.press("exit 3\r");
        assert_eq!(terminal.end(), Some(3));
    }
}

//! Logging in.

use std::io::Write;
use std::process::{Output, Stdio};
use std::sync::OnceLock;

use end_to_end::{Machine, Terminal, built_system};

/// The system with `login`.
pub(crate) fn machine() -> Machine {
    static SYSTEM: OnceLock<std::path::PathBuf> = OnceLock::new();
    Machine::new().system(SYSTEM.get_or_init(|| built_system("login")))
}

/// Runs a machine with all input available at start.
fn feed(commands: Option<&str>, input: &str) -> Output {
    feed_to(&machine(), commands, input)
}

/// The same for this machine.
pub(crate) fn feed_to(machine: &Machine, commands: Option<&str>, input: &str) -> Output {
    let mut command = machine.command(commands);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the machine starts");
    child.stdin.take().expect("it has input").write_all(input.as_bytes()).expect("it takes its input");
    child.wait_with_output().expect("it ends")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn whoever_starts_a_program_is_named() {
    let run = Machine::new().run("whoami; shell -c whoami; whoami --links | cat");
    let expected = "shell.singularity + whoami.singularity\n\
                    shell.singularity + shell.singularity + whoami.singularity\n\
                    shell.singularity\nwhoami.singularity\n";
    assert_eq!(run.succeeded(), expected);
}

#[test]
fn what_a_program_starts_speaks_in_the_role() {
    let output = feed(Some("whoami; whoami --role"), "guest\nsingularity\n");
    let expected = "login.singularity@guest + shell.singularity + whoami.singularity\nguest\n";
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn another_role_is_asked_for_by_its_name() {
    for (name, role) in [("admin", "admin"), ("admin@guest", "guest"), ("admin@admin", "admin")] {
        let output = feed(Some("whoami --role; exit 3"), &format!("{name}\nsingularity\n"));
        assert_eq!(text(&output.stdout), format!("{role}\n"), "{}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(3));
    }
}

#[test]
fn mistakes_let_nobody_in_and_are_noted() {
    let output = feed(None, "guest\nopen sesame\nguest@admin\nsingularity\nadmin\nsingularity\ncat /status/audit\n");
    let shown = text(&output.stdout);
    assert!(shown.contains("login: login.singularity refused login on guest (wrong name or passphrase)\n"), "{shown}");
    assert!(shown.contains("refused login on guest (not one of the person's roles)\n"), "{shown}");
    let output = feed(None, "open sesame\nguest\nnobody\nx\nGuest\nsingularity\nadmin\nsingularity\nwhoami\n");
    assert_eq!(text(&output.stdout), "", "three mistakes end it where no person sits");
    assert_eq!(output.status.code(), Some(1));
    let output = feed(None, "open sesame\nguest\nadmin\nsingularity\ncat /status/audit\n");
    let shown = text(&output.stdout);
    assert!(shown.contains("refused login on unknown name (wrong name or passphrase)\n"), "{shown}");
    assert!(!shown.contains("sesame"), "what was typed as a name may be a passphrase: {shown}");
}

#[test]
fn a_person_logs_in_out_and_in_again() {
    let mut terminal = Terminal::start(machine().command(None));
    terminal.wait_for("Name: ");
    terminal.press("guest\r");
    terminal.wait_for("Passphrase: ");
    terminal.press("singularity\r");
    terminal.wait_for("/> ");
    assert!(!terminal.screen().contains("singularity"), "the passphrase was shown:\n{}", terminal.screen());
    terminal.press("whoami --role\r");
    terminal.wait_for("\nguest\n");
    terminal.press("exit\r");
    terminal.wait_for("Name: ");
    // Cancelled and retried.
    terminal.press("nobody\r");
    terminal.wait_for("Passphrase: ");
    terminal.press("\x03");
    terminal.wait_for("Name: ");
    terminal.press("admin\r");
    terminal.wait_for("Passphrase: ");
    terminal.press("singularity\r");
    terminal.wait_for("/> ");
    terminal.press("whoami --role\r");
    terminal.wait_for("\nadmin\n");
    terminal.press("exit 0\r");
    terminal.wait_for("Name: ");
    terminal.press("\x04");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn only_who_may_control_the_machine_ends_it_and_others_programs() {
    let commands =
        "kill directory; kill 1; kill login ext2-manager; shutdown 9; sleep 100 & kill sleep; wait; echo alive";
    let output = feed(Some(commands), "guest\nsingularity\n");
    let errors = text(&output.stderr);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("alive\n", Some(0)), "{errors}");
    for program in ["directory (", "service-manager (1)", "login (", "volume-manager ("] {
        let refused = errors
            .lines()
            .any(|line| line.contains(program) && line.contains("could not be ended: not started by this shell"));
        assert!(refused, "{program}: {errors}");
    }
    assert!(errors.contains("shutdown: the machine was not ended: this program may not"), "{errors}");
    assert!(errors.contains("sleep") && errors.contains("stopped by kill"), "its own could not be ended: {errors}");
    let output = feed(Some("kill ext2-manager; sleep 0.2; shutdown 9"), "admin\nsingularity\n");
    assert_eq!((text(&output.stderr).as_str(), output.status.code()), ("", Some(9)));
}

#[test]
fn a_new_person_gets_a_line() {
    let mut terminal = Terminal::start(Machine::new().command(None));
    terminal.wait_for("/> ");
    terminal.press("people alice admin user\r");
    terminal.wait_for("Passphrase: ");
    terminal.press("open sesame\r");
    terminal.wait_for("Once more: ");
    terminal.press("open sesame\r");
    terminal.wait_for("\nalice scrypt:14:8:5:");
    terminal.wait_for("admin user\n");
    assert!(!terminal.screen().contains("sesame"), "{}", terminal.screen());
    terminal.press("people alice\r");
    terminal.wait_for("Passphrase: ");
    terminal.press("one passphrase\r");
    terminal.wait_for("Once more: ");
    terminal.press("another one\r");
    terminal.wait_for("the passphrases differ");
    terminal.press("exit 0\r");
    assert_eq!(terminal.end(), Some(0));
}

//! `2>` redirects errors of programs, their children, the shell itself and scripts.

use std::thread;
use std::time::Duration;

use end_to_end::{Machine, Terminal};

/// Creates a volume at /fs/ram0.
const VOLUME: &str = "x=$(format ram0 --yes); mount ram0";

/// Runs commands in a writable folder and returns standard output; standard error must be empty.
#[track_caller]
fn printed(commands: &str) -> String {
    let run = Machine::new().run(&format!("{VOLUME}; cd /fs/ram0; {commands}"));
    assert_eq!(run.errors, "", "{run}");
    let text = run.text();
    let (_, text) = text.split_once('\n').unwrap_or(("", &text));
    text.to_string()
}

/// Standard error of a command without redirection.
#[track_caller]
fn said(command: &str) -> String {
    let errors = Machine::new().run(command).errors;
    assert!(!errors.is_empty(), "`{command}` says nothing");
    errors
}

#[test]
fn errors_go_to_a_file_with_the_name_of_the_program() {
    let no = said("cat /no");
    assert!(no.starts_with("cat: /no: "), "{no}");
    assert_eq!(printed("cat /no 2> e; echo $?; cat e"), format!("1\n{no}"));
    assert_eq!(printed("cat /no 2> e; cat /no 2>> e; cat e"), format!("{no}{no}"));
    assert_eq!(printed("cat /no 2> e; cat /no 2> e; cat e"), no);
    assert_eq!(printed("echo fine 2> e; wc -c e"), "fine\n0  e\n");
    assert_eq!(printed("echo one > f; cat f /no > o 2> e; cat e; cat o"), format!("{no}one\n"));
}

#[test]
fn errors_go_where_the_output_goes() {
    let no = said("cat /no");
    assert_eq!(printed("cat /no 2>&1"), no);
    assert_eq!(printed("cat /no > f 2>&1; cat f"), no);
    assert_eq!(printed("cat /no 1>> f 2>&1; cat /no >> f 2>&1; cat f"), format!("{no}{no}"));
    assert_eq!(printed("cat /no 2>&1 > f; wc -c f"), format!("{no}0  f\n"));
    assert_eq!(printed("x=$(cat /no 2>&1); echo \"<$x>\""), format!("<{}>\n", no.trim_end()));
    assert_eq!(printed("cat /no 2>&1 | grep -c /no"), "1\n");
    assert_eq!(printed("echo one > f; cat f /no 2>&1 | sort"), format!("{no}one\n"));
    assert_eq!(printed("cat /no 2> e | cat 2> o; cat e o"), no);
    assert_eq!(printed("cat /no 2>&1 | cat 2>&1 | wc -l"), "1\n");
}

#[test]
fn blocks_functions_scripts_and_jobs_have_errors_as_programs_do() {
    let (no, twice) = (said("cat /no"), said("cat /no; cat /no"));
    assert_eq!(printed("for i in 1 2; do cat /no; end 2> e; cat e"), twice);
    assert_eq!(printed("function f; cat $1; cat $1 2> inner; end; f /no 2> e; cat e inner"), twice);
    assert_eq!(printed("function f; cat /no; end; f 2>&1 | grep -c no"), "1\n");
    assert_eq!(printed("for i in 1 2; do cat /no; end 2>&1 | wc -l"), "2\n");
    assert_eq!(printed("write s 'cat /no'; run s 2> e; shell s 2>> e; cat e"), twice);
    assert_eq!(printed("cat /no 2> e & wait; cat e"), no);
    assert_eq!(printed("function f; cat /no; end; f 2> e & wait; cat e"), no);
    // A grandchild.
    assert_eq!(printed("echo /no | xargs cat 2> e; grep -c 'cat: /no' e"), "1\n");
}

#[test]
fn the_shell_says_its_own_errors_there_too() {
    let errors = said("no-such");
    assert_eq!(printed("no-such 2> e; echo $?; cat e"), format!("127\n{errors}"));
    assert_eq!(printed("no-such 2> e | cat; echo a | no-such 2>> e; cat e"), format!("{errors}{errors}"));
    assert_eq!(printed("cd /no 2> e; cat e"), said("cd /no"));
    assert_eq!(printed("which no-such 2>&1 | grep -c no-such"), "1\n");
    let mistake = printed("write s 'echo $nope'; run s 2> e; cat e");
    let is_named = |line: &str| line.starts_with("shell: ");
    assert!(mistake.starts_with("shell: s:1:6: ") && mistake.lines().all(is_named), "{mistake}");
    // From a program started by another.
    let panicked = printed("extensible-parent 2> e > f; cat e");
    assert!(panicked.starts_with("crashing-extension: panicked at "), "{panicked}");
}

#[test]
fn a_file_that_cannot_be_opened_is_one_sentence_and_nothing_runs() {
    for command in ["echo never 2> /no/e", "echo never 2>> /no/e", "echo never | cat 2> /no/e", "cat /no 2> /no/e"] {
        let run = Machine::new().run(command);
        run.refused(&["shell: /no/e: "]);
        assert_eq!((run.text().as_str(), run.errors.lines().count()), ("", 1), "{run}");
    }
    Machine::new().run("cat 2>").refused(&["add the path of a file"]);
    Machine::new().run("cat 3> f").refused(&["only `1>` (output) and `2>` (errors)"]);
    Machine::new().run("echo a >&2").refused(&["`2>&1`"]);
}

#[test]
fn many_errors_come_whole_and_in_order() {
    let commands = "for i in $(seq 300); do echo /no/$i; end > names; \
                    cat $(cat names) 2> e; grep -c 'cat: /no/' e; head -n 1 e | cut -c 1-10; tail -n 1 e | cut -c 1-12";
    assert_eq!(printed(commands), "300\ncat: /no/1\ncat: /no/300\n");
    // A reader that closes early stops no writer.
    assert_eq!(
        printed("for i in $(seq 100); do cat /no; end 2>&1 | head -n 1; echo $?"),
        format!("{}0\n", said("cat /no"))
    );
}

#[test]
fn everything_is_given_back() {
    let one = "cat /no 2> e; cat /no 2>&1 | cat > f; for i in 1 2; do cat /no; end 2> e; cat /no 2> e & wait";
    let warm_up = format!("{VOLUME}; cd /fs/ram0; for n in 1 2 3; do {one}; end");
    let run = Machine::new().run(&format!("{warm_up}; sysinfo; for n in $(seq 20); do {one}; end; sysinfo"));
    let counters = run.counters();
    let [before, after] = &counters[..] else { panic!("two listings were to be expected:\n{run}") };
    for name in ["processes", "threads", "channels", "synchronization objects"] {
        assert_eq!(before.get(name), after.get(name), "{name}:\n{run}");
    }
}

fn person() -> Terminal {
    let mut terminal = Terminal::start(Machine::new().command(None));
    terminal.wait_for("/> ");
    terminal
}

#[test]
fn jobs_with_redirected_errors_are_stopped_and_ended_as_others_are() {
    let mut terminal = person();
    let enter = |terminal: &mut Terminal, line: &str, wanted: &[&str]| {
        // Signal keys need no line end.
        let end = if line.starts_with(char::is_control) { "" } else { "\r" };
        terminal.press(&format!("{line}{end}"));
        wanted.iter().for_each(|text| terminal.wait_for(text));
    };
    enter(&mut terminal, &format!("{VOLUME}; cd /fs/ram0"), &["/fs/ram0> "]);
    enter(&mut terminal, "cat /no 2>&1", &["cat: /no: ", "[1] /fs/ram0> "]);
    enter(&mut terminal, "while true; do cat /no; sleep 0.05; end 2>&1 | cat", &["cat: /no: "]);
    enter(&mut terminal, "\x1a", &["[1] stopped: while true"]);
    let shown = terminal.screen().matches("cat: /no: ").count();
    thread::sleep(Duration::from_millis(500));
    assert_eq!(terminal.screen().matches("cat: /no: ").count(), shown, "it wrote while it was stopped");
    enter(&mut terminal, "bg", &["[1] running: while true", "cat: /no: "]);
    enter(&mut terminal, "fg", &["fg\n", "while true; do cat /no; sleep 0.05; end | cat\n", "cat: /no: "]);
    enter(&mut terminal, "\x03", &["[130] /fs/ram0> "]);
    enter(&mut terminal, "sleep 100 2> e", &["sleep 100 2> e\n"]);
    thread::sleep(Duration::from_millis(200));
    enter(&mut terminal, "\x1a", &["[1] stopped: sleep 100"]);
    enter(&mut terminal, "fg", &["fg\n", "sleep 100\n"]);
    thread::sleep(Duration::from_millis(200));
    enter(&mut terminal, "\x03", &["[130] /fs/ram0> "]);
    enter(&mut terminal, "cat /no 2> e &", &["[1] "]);
    enter(&mut terminal, "wait; wc -l e; jobs; echo none", &["1  e\n", "none\n"]);
}

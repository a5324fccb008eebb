//! The interactive shell: jobs, Ctrl-Z, history, and descriptions of commands.

use std::thread;
use std::time::Duration;

use end_to_end::{Machine, Terminal};

fn person() -> Terminal {
    let mut terminal = Terminal::start(Machine::new().command(None));
    terminal.wait_for("/> ");
    terminal
}

/// Enters a command line, and waits until it is shown.
fn enter(terminal: &mut Terminal, line: &str) {
    terminal.press(&format!("{line}\r"));
    terminal.wait_for(&format!("{line}\n"));
}

#[test]
fn ctrl_z_takes_the_console_from_a_reader_and_fg_gives_it_back() {
    let mut terminal = person();
    enter(&mut terminal, "cat");
    enter(&mut terminal, "one");
    terminal.wait_for("one\n");
    // Not in type-ahead of a line that `cat` reads.
    thread::sleep(Duration::from_millis(200));
    terminal.press("half\x1a");
    terminal.wait_for("[1] stopped: cat");
    terminal.wait_for("[148] /> ");
    enter(&mut terminal, "jobs");
    terminal.wait_for("[1] stopped: cat");
    enter(&mut terminal, "echo mine");
    terminal.wait_for("mine\n");
    enter(&mut terminal, "fg");
    terminal.wait_for("cat\n");
    enter(&mut terminal, "two");
    terminal.wait_for("two\n");
    terminal.press("\x04");
    terminal.wait_for("/> ");
    enter(&mut terminal, "echo status $?");
    terminal.wait_for("status 0\n");
    enter(&mut terminal, "fg");
    terminal.wait_for("fg: no jobs");
}

#[test]
fn what_a_stopped_job_writes_waits_until_bg() {
    let mut terminal = person();
    enter(&mut terminal, "while true; do echo tick; sleep 0.05; end | cat");
    terminal.wait_for("tick\n");
    terminal.press("\x1a");
    terminal.wait_for("[1] stopped: while true; do echo tick; sleep 0.05; end | cat");
    terminal.wait_for("/> ");
    let shown = terminal.screen();
    thread::sleep(Duration::from_millis(600));
    let later = terminal.screen();
    assert_eq!(later.matches("tick").count(), shown.matches("tick").count(), "it wrote while it was stopped:\n{later}");
    enter(&mut terminal, "bg");
    terminal.wait_for("[1] running: while");
    terminal.wait_for("tick\n");
    terminal.wait_for("tick\n");
    terminal.press("bg 1\r");
    terminal.wait_for("job 1 is already running");
    terminal.press("fg %1\r");
    terminal.wait_for("tick\n");
    terminal.press("\x03");
    terminal.wait_for("[130] /> ");
    let shown = terminal.screen();
    enter(&mut terminal, "jobs; echo no jobs");
    terminal.wait_for("no jobs\n");
    assert_eq!(terminal.screen().matches("tick").count(), shown.matches("tick").count());
}

#[test]
fn a_stopped_line_is_given_up_and_its_job_can_be_waited_for() {
    let mut terminal = person();
    enter(&mut terminal, "sleep 1; echo never; echo shown");
    thread::sleep(Duration::from_millis(100));
    terminal.press("\x1a");
    terminal.wait_for("[1] stopped: sleep 1");
    terminal.wait_for("[148] /> ");
    // Another program's threads cannot be stopped: one that does not use the console keeps running.
    enter(&mut terminal, "wait 1; echo waited");
    terminal.wait_for("waited\n");
    assert!(!terminal.screen().contains("\nnever"), "{}", terminal.screen());
}

#[test]
fn ctrl_c_in_wait_ends_the_wait_and_no_job() {
    let mut terminal = person();
    enter(&mut terminal, "sleep 100 &");
    terminal.wait_for("[1] ");
    for command in ["wait", "wait 1", "wait; echo never"] {
        enter(&mut terminal, command);
        thread::sleep(Duration::from_millis(100));
        terminal.press("\x03");
        terminal.wait_for("[130] /> ");
        enter(&mut terminal, "jobs");
        terminal.wait_for("[1] running: sleep 100");
        terminal.wait_for("/> ");
    }
    assert!(!terminal.screen().contains("\nnever"), "{}", terminal.screen());
    enter(&mut terminal, "fg");
    terminal.wait_for("sleep 100\n");
    thread::sleep(Duration::from_millis(100));
    terminal.press("\x03");
    terminal.wait_for("[130] /> ");
    enter(&mut terminal, "jobs; echo none left");
    terminal.wait_for("none left\n");
}

#[test]
fn a_shell_in_a_shell_has_the_signals_alone() {
    let mut terminal = person();
    enter(&mut terminal, "shell");
    terminal.wait_for("`help` lists the commands");
    terminal.wait_for("/> ");
    enter(&mut terminal, "sleep 100");
    thread::sleep(Duration::from_millis(100));
    terminal.press("\x1a");
    terminal.wait_for("[1] stopped: sleep 100");
    terminal.wait_for("[148] /> ");
    enter(&mut terminal, "fg");
    thread::sleep(Duration::from_millis(100));
    terminal.press("\x03");
    terminal.wait_for("[130] /> ");
    enter(&mut terminal, "whoami");
    terminal.wait_for("shell.singularity + shell.singularity + whoami.singularity\n");
    enter(&mut terminal, "exit 0");
    enter(&mut terminal, "whoami");
    terminal.wait_for("\nshell.singularity + whoami.singularity\n");
}

#[test]
fn a_shell_with_stopped_jobs_ends_when_it_is_told_twice() {
    for end in ["exit 3\r", "\x04"] {
        let mut terminal = person();
        enter(&mut terminal, "sleep 100");
        thread::sleep(Duration::from_millis(100));
        terminal.press("\x1a");
        terminal.wait_for("[148] /> ");
        terminal.press(end);
        terminal.wait_for("jobs are stopped, which would end with the shell");
        enter(&mut terminal, "echo still here");
        terminal.wait_for("still here\n");
        // The previous command was no `exit`.
        terminal.press(end);
        terminal.wait_for("jobs are stopped, which would end with the shell");
        terminal.wait_for("/> ");
        terminal.press(end);
        assert_eq!(terminal.end(), Some(if end.starts_with("exit") { 3 } else { 0 }));
    }
}

#[test]
fn a_shell_with_jobs_in_the_background_alone_ends_at_once() {
    let mut terminal = person();
    enter(&mut terminal, "sleep 100 &");
    terminal.wait_for("[1] ");
    terminal.press("exit 3\r");
    assert_eq!(terminal.end(), Some(3));
}

#[test]
fn a_function_that_hides_a_command_is_told_of_once_and_can_be_forgotten() {
    let mut terminal = person();
    enter(&mut terminal, "function echo; pwd; end");
    terminal.wait_for("the function echo hides the program of that name; `unset echo` removes it\n");
    enter(&mut terminal, "function cd; pwd; end");
    terminal.wait_for("the function cd hides the command of the shell of that name");
    enter(&mut terminal, "function own; pwd; end; function echo; pwd; end; unset echo; echo mine");
    terminal.wait_for("mine\n");
    assert_eq!(terminal.screen().matches("hides").count(), 2, "{}", terminal.screen());
    // No warning in scripts.
    assert_eq!(Machine::new().run("function echo; pwd; end; echo a").succeeded(), "/\n");
}

#[test]
fn lines_are_recalled_by_number_and_beginning() {
    let mut terminal = person();
    enter(&mut terminal, "echo first");
    terminal.wait_for("first\n");
    enter(&mut terminal, "pwd");
    terminal.wait_for("/\n");
    enter(&mut terminal, "!ec again");
    terminal.wait_for("echo first again\n");
    terminal.wait_for("first again\n");
    enter(&mut terminal, "!!");
    terminal.wait_for("first again\n");
    terminal.wait_for("first again\n");
    enter(&mut terminal, "history");
    terminal.wait_for("    1  echo first\n    2  pwd\n    3  echo first again\n    4  history\n");
    enter(&mut terminal, "!9");
    terminal.wait_for("no earlier line matches `!9`; `history` lists them");
    terminal.wait_for("[1] /> ");
}

#[test]
fn blocks_and_functions_stand_in_pipes() {
    let cases = [
        ("for i in 1 2 3; do echo $i; end | while read l; do echo \"<$l>\"; end", "<1>\n<2>\n<3>\n"),
        ("function twice; while read l; do echo $l $l; end; end; echo x | twice | cat", "x x\n"),
        ("v='a b'; echo q | if read l; then echo $l $v; end", "q a b\n"),
        ("function f; echo $1; end; f beside & wait", "beside\n"),
        ("for i in 1 2; do echo $i; end | for j in a; do read l; echo $l; end", "1\n"),
        ("function n; echo $(echo deep | while read l; do echo [$l]; end); end; n", "[deep]\n"),
        ("echo a | while read l; do exit 5; end; echo $?", "5\n"),
        ("echo typed | shell -c 'read l; echo got $l'", "got typed\n"),
    ];
    for (commands, expected) in cases {
        assert_eq!(Machine::new().run(commands).succeeded(), expected, "{commands}");
    }
}

#[test]
fn blocks_read_and_write_files() {
    let commands = "for i in 1 2; do echo line $i; end > /fs/ram0/f; \
                    while read l; do last=$l; echo - $l; end < /fs/ram0/f; echo $last";
    let run = Machine::new().run(&format!("x=$(format ram0 --yes); mount ram0; {commands}"));
    assert!(run.text().ends_with("- line 1\n- line 2\nline 2\n"), "{run}");
}

#[test]
fn which_and_cd_and_time_tell_what_they_should() {
    assert_eq!(Machine::new().run("cd /dev; cd /fs; cd -; pwd; cd -; cd; cd -").succeeded(), "/dev\n/dev\n/fs\n/fs\n");
    Machine::new().run("cd -").refused(&["cd: no previous folder"]);
    let run = Machine::new().run("function f; echo a; end; which f cd cat");
    assert_eq!(
        run.succeeded(),
        "f: a function\nfunction f; echo a; end\ncd: a command of the shell\n\
         cat: the program cat.singularity, version 0.1.0\n"
    );
    Machine::new().run("which nothing").refused(&["which: no command `nothing`", "`help`"]);
    let run = Machine::new().run("time sleep 0.3");
    let line = run.errors.trim();
    let seconds: f64 = line.trim_start_matches("shell: ").split(' ').next().unwrap_or("").parse().unwrap_or(0.0);
    assert!((0.3..30.0).contains(&seconds) && line.ends_with(" s of processor time"), "{run}");
    let run = Machine::new().run("time for i in 1 2; do hash /status/measurement; end");
    let used = run.errors.split(", ").nth(1).and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    assert!(used.is_some_and(|used| used < 30.0), "{run}");
}

#[test]
fn a_comparison_without_quotes_says_what_it_would_be() {
    Machine::new().run("i=1; test $i < 3").refused(&["unquoted `<` is a redirection", "`-lt`", "`'<'`"]);
    Machine::new().run("while test 3 > 1; do echo; end").refused(&["unquoted `>` is a redirection", "`-gt`"]);
    assert_eq!(
        Machine::new().run("test 9 -lt 10 && test 2 -ge 2 && not test 1 -eq 2 && echo yes").succeeded(),
        "yes\n"
    );
}

#[test]
fn what_is_too_large_is_told_with_its_limit() {
    let run = Machine::new().run("x=0123456789abcdef; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do x=$x$x; end; echo $x");
    run.refused(&["echo: cannot start: its argument", "131073 bytes, and may be 65536", "for f in"]);
}

#[test]
fn memory_is_among_what_sysinfo_tells() {
    let text = Machine::new().run("sysinfo").succeeded();
    let line = text.lines().find(|line| line.starts_with("memory  "));
    assert!(line.is_some_and(|line| line.contains("iB in use, ") && line.ends_with(" at most")), "{text}");
}

#[test]
fn one_instance_is_seen_and_ended_alone() {
    let run = Machine::new().run("x=$(format ram0 --yes); mount ram0; kill /fs/ram0; sleep 0.3; ps; log /fs/ram0");
    let text = run.text();
    let file_system = text.lines().any(|line| line.contains("  ext2-fs  ") && line.contains("  /fs/ram0  "));
    assert!(text.contains("  INSTANCE  ") && file_system, "it was not started again: {run}");
    assert!(text.contains("instance /fs/ram0: running since "), "{run}");
    let run = Machine::new().run("kill ram0; sleep 0.3; services; log ram0");
    let text = run.succeeded();
    let restarted = text.lines().find(|line| line.starts_with("ram0")).unwrap_or_default();
    assert!(restarted.contains("running") && restarted.contains(" 1 "), "{text}");
    assert!(text.contains("ram0: a service, the program ram-disk; running, started again 1 times\n"), "{text}");
    assert!(text.contains("stopped by kill") && text.contains(" s  started\n"), "{text}");
    assert!(text.contains("was created by service-manager"), "{text}");
    Machine::new().run("kill no-such").refused(&["no process has the id or name `no-such`", "`ps`"]);
    Machine::new().run("log no-such").refused(&["no process has the id or name `no-such`"]);
}

#[test]
fn the_log_tells_when_and_how() {
    let run = Machine::new().run("false; cat /no 2; log; log cat");
    let text = run.text();
    let line = text.lines().find(|line| line.contains("cat")).unwrap_or_default();
    assert!(line.contains(" s  ") && line.contains("exited with status 1"), "{run}");
    assert!(text.contains("exited with status 1 at ") && text.contains("was created by shell (process "), "{run}");
}

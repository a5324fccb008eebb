//! An interactive terminal session.

use end_to_end::{Machine, Terminal};

fn person() -> Terminal {
    let mut terminal = Terminal::start(Machine::new().command(None));
    terminal.wait_for("/> ");
    terminal
}

#[test]
fn a_prompt_appears_and_commands_run() {
    let mut terminal = person();
    println!("prompt after {:?}", terminal.age());
    terminal.press("echo hello\r");
    terminal.wait_for("\nhello\n");
    terminal.wait_for("> ");
    terminal.press("exit 5\r");
    assert_eq!(terminal.end(), Some(5));
}

#[test]
fn ctrl_d_on_an_empty_line_ends() {
    let mut terminal = person();
    terminal.press("\x04");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn shutdown_ends() {
    let mut terminal = person();
    terminal.press("shutdown\r");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_line_is_edited_before_it_runs() {
    let mut terminal = person();
    // Left twice, Backspace, a letter, End, more text.
    terminal.press("echo axcd\x1b[D\x1b[D\x7fb\x1b[F-end\r");
    terminal.wait_for("\nabcd-end\n");
    // Ctrl-A and Ctrl-K: to the start of the line, and delete it.
    terminal.press("nonsense\x01\x0becho clean\r");
    terminal.wait_for("\nclean\n");
}

#[test]
fn the_history_brings_lines_back() {
    let mut terminal = person();
    terminal.press("echo first\r");
    terminal.wait_for("\nfirst\n");
    terminal.press("echo second\r");
    terminal.wait_for("\nsecond\n");
    terminal.press("\x1b[A\x1b[A\r");
    terminal.wait_for("\nfirst\n");
}

#[test]
fn tab_completes_programs_and_paths() {
    let mut terminal = person();
    terminal.press("sysi\t\r");
    terminal.wait_for("processes created");
    terminal.press("ls /de\t\r");
    terminal.wait_for("\nconsole\n");
}

#[test]
fn ctrl_c_ends_what_runs_and_only_that() {
    let mut terminal = person();
    // However early it arrives.
    for pause_ms in [0, 0, 1, 2, 5, 200] {
        terminal.press("sleep 100\r");
        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
        terminal.press("\x03");
        terminal.wait_for("> ");
        terminal.press("echo status $?\r");
        terminal.wait_for("\nstatus 130\n");
        terminal.wait_for("> ");
    }
}

#[test]
fn ctrl_c_ends_a_loop_of_the_shell() {
    let mut terminal = person();
    terminal.press("while true; do x=1; end\r");
    terminal.wait_for("end\n");
    std::thread::sleep(std::time::Duration::from_millis(200));
    terminal.press("\x03");
    terminal.wait_for("> ");
    terminal.press("echo alive\r");
    terminal.wait_for("\nalive\n");
}

#[test]
fn ctrl_c_throws_a_half_typed_line_away() {
    let mut terminal = person();
    terminal.press("echo half\x03");
    terminal.wait_for("> ");
    terminal.press("echo whole\r");
    terminal.wait_for("\nwhole\n");
    assert!(!terminal.screen().contains("\nhalf"), "{}", terminal.screen());
}

#[test]
fn colours_are_for_terminals_only() {
    let mut terminal = person();
    terminal.press("echo coloured\r");
    terminal.wait_for("\ncoloured\n");
    assert!(terminal.bytes().contains(&0x1b), "a terminal gets control sequences");
    let run = Machine::new().run("help; ps; ls /; tree /");
    assert!(!run.output.contains(&0x1b) && !run.errors.contains('\x1b'), "a file gets none:\n{run}");
}

#[test]
fn a_console_that_is_killed_comes_back_to_the_person() {
    let mut terminal = person();
    terminal.press("kill console\r");
    terminal.wait_for("> ");
    std::thread::sleep(std::time::Duration::from_millis(500));
    terminal.press("\recho back\r");
    terminal.wait_for("\nback\n");
}

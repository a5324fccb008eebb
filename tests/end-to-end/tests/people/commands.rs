//! Commands given with `-c`: output and exit status.

use end_to_end::{Machine, Run};

#[track_caller]
fn run(commands: &str) -> Run {
    Machine::new().run(commands)
}

#[test]
fn output_is_only_what_the_commands_print() {
    assert_eq!(run("echo hi").succeeded(), "hi\n");
    assert_eq!(run("true").succeeded(), "");
    assert_eq!(run("echo -n no line end").succeeded(), "no line end");
    assert_eq!(run("echo one; echo two; echo three").succeeded(), "one\ntwo\nthree\n");
}

#[test]
fn the_tool_adds_nothing_and_gives_the_status_on() {
    assert_eq!(Machine::new().run_by_tool("echo by the tool").succeeded(), "by the tool\n");
    let run = Machine::new().run_by_tool("echo before; exit 42");
    assert_eq!((run.status, run.text().as_str(), run.errors.as_str()), (Some(42), "before\n", ""), "{run}");
}

#[test]
fn the_tool_brings_a_demo_disk() {
    let tree = Machine::new().run_by_tool("tree /fs/disk0").succeeded();
    assert!(tree.starts_with("/fs/disk0\n") && tree.contains("README"), "{tree}");
}

#[test]
fn the_exit_status_is_the_last_commands() {
    for (commands, status) in [
        ("true", 0),
        ("false", 1),
        ("false; true", 0),
        ("true; false", 1),
        ("exit 42", 42),
        ("shutdown 3; echo late", 3),
    ] {
        let run = run(commands);
        assert_eq!(run.status, Some(status), "{run}");
        assert!(run.output.is_empty() && run.errors.is_empty(), "nothing is to be said:\n{run}");
    }
}

#[test]
fn an_unknown_program_is_named_with_what_to_do() {
    let run = run("no-such-program");
    run.refused(&["no-such-program", "no such program", "help"]);
    assert_eq!(run.status, Some(127), "{run}");
}

#[test]
fn commands_of_unix_are_answered_with_what_does_that_here() {
    for (command, here) in [("vi x", "`edit`"), ("curl http://localhost", "`fetch`"), ("man ls", "`help`")] {
        run(command).refused(&["no such program; here it is ", here]);
    }
    // Suggested replacements exist.
    let source = include_str!("../../../../apps/system/shell/src/familiar.rs");
    let table = source.split("= &[").nth(1).and_then(|rest| rest.split("];").next()).expect("the table");
    let help = run("help").succeeded();
    let known: Vec<&str> = help.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for line in table.lines().filter(|line| line.contains('`')) {
        let offered = line.split('`').nth(1).and_then(|words| words.split_whitespace().next()).expect("a command");
        assert!(
            known.contains(&offered) || offered == "function" || offered == "while" || offered == "login",
            "{line}"
        );
    }
}

/// A RAM disk with a file of twelve lines.
const VOLUME: &str = "format ram0 --type ext2 --yes; mount ram0 /fs/ram; seq 12 > /fs/ram/f";

#[test]
fn heads_and_tails_take_a_number_as_their_first_operand() {
    assert_eq!(run("seq 12 | head -2; seq 12 | tail -2").succeeded(), "1\n2\n11\n12\n");
    let text = run(&format!("{VOLUME}; head -1 /fs/ram/f; tail -1 /fs/ram/f")).succeeded();
    assert!(text.ends_with("\n1\n12\n"), "{text}");
}

#[test]
fn long_listings_show_sizes_in_units_where_that_is_asked_for() {
    let text = run(&format!("{VOLUME}; ls -lh /fs/ram; ls -l /fs/ram")).succeeded();
    let sizes: Vec<&str> = text.lines().filter(|line| line.ends_with("  f")).collect();
    assert!(sizes[0].contains("  27 B  ") && sizes[1].contains("  27  "), "{text}");
}

#[test]
fn pipes_join_programs() {
    assert_eq!(run("echo through pipes | cat | cat | cat").succeeded(), "through pipes\n");
    assert_eq!(run("echo -n 123456789 | hash -a crc32").succeeded(), "cbf43926  -\n");
    let broken = run("cat /no/file | cat; echo $?");
    assert_eq!(broken.text(), "0\n", "the status of a pipeline is its last program's:\n{broken}");
}

#[test]
fn variables_loops_and_functions_work() {
    let script = "x=6; y=$((x * 7)); echo \"y is $y\"\n\
        for n in 1 2 3; do if test $n = 2; then continue; end; echo $n; end\n\
        function greet; echo hello $1; return 3; end\n\
        greet you; echo $?\n\
        echo ${unset:-default} $(echo inner)";
    assert_eq!(run(script).succeeded(), "y is 42\n1\n3\nhello you\n3\ndefault inner\n");
}

#[test]
fn a_mistake_in_a_script_is_shown_with_its_place() {
    let unset = run("echo before; echo $nope");
    assert_eq!((unset.status, unset.text().as_str()), (Some(2), "before\n"), "{unset}");
    unset.refused(&["commands:1:19", "nope", "set it"]);
    assert!(unset.errors.contains("^^^^^"), "{unset}");
    run("if").refused(&["commands:1:3", "unexpected end"]);
    run("echo 'open").refused(&["commands:1:"]);
}

#[test]
fn a_file_that_is_not_there() {
    let run = run("cat /no/file");
    run.refused(&["cat: /no/file", "not found", "ls"]);
    assert_eq!((run.status, run.errors.lines().count()), (Some(1), 1), "{run}");
}

#[test]
fn output_goes_nowhere_without_a_file_system() {
    for (commands, parts) in [
        ("echo a > /no/file", ["/no/file", "not found"]),
        ("echo a > /dev/file", ["/dev/file", "lies in no file system"]),
        ("echo a > /service", ["/service", ""]),
        ("pwd >> /no/file", ["/no/file", "not found"]),
        ("echo a > x > y", ["unexpected `>`", "remove one"]),
        ("echo a > x | cat", ["conflicting output", "last command"]),
        ("cat < /no/file", ["/no/file", "not found"]),
        ("echo < /no/file", ["echo", "reads no standard input"]),
        ("pwd < /no/file", ["pwd", "reads no input"]),
    ] {
        run(commands).refused(&parts);
    }
}

#[test]
fn programs_for_files_say_what_is_wrong_and_go_on() {
    for (commands, parts) in [
        ("cp a", ["cp", "at least two paths"]),
        ("cp /no/a /no/b /no/c", ["/no/c", "an existing folder"]),
        ("mv /no/a /no/b", ["/no/a", "not found"]),
        ("rm /no/a", ["/no/a", "not found"]),
        ("rm -r /", ["rm: /", "not a file or folder of a volume"]),
        ("rm -r /dev/console", ["/dev/console", "stop"]),
        ("mkdir /dev", ["mkdir: /dev", ""]),
        ("mkdir /foo", ["mkdir: /foo", "lies in no file system"]),
        ("mkdir /fs/foo", ["mkdir: /fs/foo", "lies in no file system"]),
        ("rmdir /no/a", ["/no/a", "not found"]),
        ("ln /no/a /no/b", ["/no/b", ""]),
        ("ln /status/measurement /b", ["/b", "lies in no file system"]),
        ("ln -s measurement /b", ["/b", "lies in no file system"]),
        ("touch --time yesterday a", ["`yesterday` is not a time", "2026-11-21 03:06:38"]),
        ("touch /no/a", ["/no/a", "not found"]),
        ("tail -n x a", ["`x` is not a number of lines", "`+5`"]),
        ("grep '[' a", ["unmatched `[`", "bracket"]),
        ("grep -E '(' a", ["invalid pattern `(`", "-F"]),
        ("sort -k 0 a", ["invalid key `0`", "from 1 on"]),
        ("sort -t ab a", ["`ab` is not one byte", "-t :"]),
        ("cut -f 3-1 a", ["`3-1` is not a list", "from 1"]),
        ("cut a", ["-f, -c and -b", "cut -d , -f 2"]),
        ("seq 1 0 5", ["must not be 0", ""]),
        ("seq x", ["`x` is not a number", "0.25"]),
        ("echo a | xargs -n 0", ["`-n 0`", "1 or more"]),
        ("echo \"'\" | xargs", ["unterminated quote", "-d"]),
        ("echo a | xargs no-such-program", ["cannot run `no-such-program`", ""]),
        ("diff /no/a /no/b", ["/no/a", "not found"]),
        ("edit /dev", ["edit: /dev", "folder"]),
        ("edit a", ["no terminal", "write"]),
        ("less /no/a", ["less: /no/a", "not found"]),
        ("find / --exec no-such-program --name dev", ["no-such-program", "no such program"]),
        ("echo x | tee /no/x", ["tee: /no/x", "not found"]),
        ("head -n -1 a", ["`-1` is not a number of lines", "0 or more"]),
        ("tail -c x a", ["`x` is no amount", "64k"]),
        ("hash -a md5", ["unknown algorithm `md5`", "blake3"]),
        ("find --type x", ["unknown kind `x`", "f for files"]),
        ("find --size x", ["`x` is no amount", ""]),
        ("find --newer /no/a", ["/no/a", "not found"]),
        ("dd --block-bytes 0", ["16 MiB", ""]),
        ("dd --from /no/a", ["/no/a", "not found"]),
        ("sync /no/a", ["/no/a", "not found"]),
        ("du /no/a", ["/no/a", "not found"]),
    ] {
        run(commands).refused(&parts);
    }
    let run = run("rm -f /no/a; echo $?; wc /no/a /no/b; echo $?");
    assert_eq!((run.text().as_str(), run.errors.lines().count()), ("0\n0  0  0  total\n1\n", 2), "{run}");
}

#[test]
fn streams_are_cut_and_counted() {
    assert_eq!(run("echo one two; echo three").text(), "one two\nthree\n");
    assert_eq!(
        run("function lines; for n in 1 2 3 4 5; do echo $n; end; end; x=$(lines); echo \"$x\" | tail -n 2")
            .succeeded(),
        "4\n5\n"
    );
    assert_eq!(run("help | head -n 1").succeeded(), "Commands of the shell:\n");
    assert_eq!(run("echo one two | wc -w").succeeded(), "2\n");
    assert_eq!(run("echo abcdef | head -c 3 | tail -c 2").succeeded(), "bc");
    assert_eq!(run("contract Directory | head -c 1k | wc -c").succeeded(), "1024\n");
    let blake3 = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85  -\n";
    assert_eq!(run("echo -n abc | hash -a blake3").succeeded(), blake3);
    let copied = run("echo -n 0123456789 | dd --block-bytes 2 --skip 1 --count 3 | cat");
    assert_eq!(copied.text(), "234567", "{copied}");
    assert!(copied.errors.contains("6 bytes (6 B) copied") && copied.errors.contains("in 3 blocks"), "{copied}");
}

#[test]
fn ps_top_and_sysinfo_agree_on_who_runs() {
    let text = run("ps").succeeded();
    for program in ["service-manager", "directory", "console", "shell", "ps"] {
        assert_eq!(text.lines().filter(|line| line.split_whitespace().nth(1) == Some(program)).count(), 1, "{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let long = run("ps -l").succeeded();
    assert!(long.contains("PARENT") && long.contains("ENDPOINTS"), "{long}");
    let json = run("ps --json").succeeded();
    assert!(json.starts_with('[') && json.contains("\"name\": \"shell\""), "{json}");
    let top = run("top").succeeded();
    assert!(top.contains("CPU %") && top.contains("service-manager"), "{top}");
    let twice = run("top -n 2 --interval 10ms").succeeded();
    assert_eq!(twice.matches("CPU %").count(), 2, "{twice}");
    let sysinfo = run("sysinfo").succeeded();
    let processes = sysinfo.lines().find(|line| line.starts_with("processes  ")).unwrap_or_default();
    assert_eq!(processes.split_whitespace().nth(1), Some((text.lines().count() - 1).to_string().as_str()), "{sysinfo}");
}

#[test]
fn channels_shows_who_talks_to_whom() {
    let text = run("channels").succeeded();
    let row = |words: &[&str]| text.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(row(&["Console", "shell", "console", "READY"]), "{text}");
    assert!(row(&["Pipe", "channels", "console"]), "{text}");
    assert!(row(&["Directory", "shell", "directory"]), "{text}");
}

#[test]
fn a_contract_is_shown_as_a_diagram() {
    let names = run("contract").succeeded();
    for name in ["Disk", "File", "Directory", "Pipe"] {
        assert!(names.lines().any(|line| line == name), "{names}");
    }
    let disk = run("contract Disk").succeeded();
    assert!(disk.contains("READY") && disk.contains("ReadDone!") && disk.contains('►'), "{disk}");
    run("contract Nothing").refused(&["Nothing"]);
}

#[test]
fn services_are_stopped_and_started() {
    let text = run("stop answer; services; start answer; services").succeeded();
    let states: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("answer "))
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    assert_eq!(states, ["stopped", "running"], "{text}");
    run("stop nothing").refused(&["stop", "nothing"]);
    run("start nothing").refused(&["start", "nothing"]);
}

#[test]
fn a_process_is_killed_and_its_end_is_logged() {
    let run = run("sleep 100 &; kill sleep; wait; echo $?; log");
    let text = run.text();
    let status: i32 = text.lines().next().and_then(|line| line.parse().ok()).unwrap_or(0);
    assert!(status != 0, "the end by force is a failure:\n{run}");
    let is_told = text.lines().any(|line| line.contains(" sleep ") && line.ends_with(" stopped by kill"));
    assert!(is_told, "{run}");
    Machine::new().run("kill nobody").refused(&["kill", "nobody", "ps"]);
}

#[test]
fn a_killed_service_is_back_at_once_and_counts_its_restarts() {
    let text = run("knock; kill answer; sleep 200ms; knock; services").succeeded();
    let answer = text.lines().find(|line| line.starts_with("answer ")).unwrap_or_default();
    let words: Vec<&str> = answer.split_whitespace().collect();
    assert!(words.len() > 4 && words[2] == "running" && words[4] == "1", "{text}");
}

#[test]
fn killing_the_console_loses_nothing_that_comes_after() {
    let run = run("kill console; sleep 200ms; echo still here");
    run.orderly();
    assert_eq!(run.text(), "still here\n", "{run}");
}

#[test]
fn what_cannot_go_on_ends_in_order() {
    for commands in ["kill service-manager; sleep 10", "kill directory; sleep 10"] {
        let run = run(commands);
        run.orderly();
        assert!(run.status != Some(0) && run.errors.contains("stopped by kill"), "{run}");
    }
}

#[test]
fn examples_run() {
    assert!(!run("hello").succeeded().is_empty());
    let parent = run("extensible-parent");
    parent.orderly();
    assert_eq!(parent.status, Some(0), "{parent}");
}

#[test]
fn help_is_there_for_every_program() {
    let text = run("help").succeeded();
    let programs = text.lines().skip_while(|line| *line != "Programs:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = programs.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 15, "{text}");
    let commands: Vec<String> = names.iter().map(|name| format!("help {name}")).collect();
    let all = run(&commands.join("; ")).succeeded();
    for name in names {
        assert!(all.contains(name), "no help on {name}:\n{all}");
    }
}

#[test]
fn the_same_on_one_processor_and_on_four() {
    for count in [1, 4] {
        let run = Machine::new().processors(count).run("echo a | cat | cat; sleep 20ms; sysinfo");
        let text = run.succeeded();
        let found = text.lines().any(|line| line.split_whitespace().eq(["processors", &count.to_string()]));
        assert!(text.starts_with("a\n") && found, "{run}");
    }
}

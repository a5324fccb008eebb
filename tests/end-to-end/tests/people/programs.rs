//! Programs as described by their manifests: help, and scripts.

use end_to_end::{Machine, Run, repository};

#[track_caller]
fn run(commands: &str) -> Run {
    Machine::new().run(commands)
}

/// Programs of every system, from its manifest.
fn installed() -> Vec<String> {
    let text = std::fs::read_to_string(repository().join("systems/common.toml")).expect("a file of the repository");
    let list = text.split_once("installed = [").and_then(|(_, rest)| rest.split_once(']')).expect("a list").0;
    list.split(',')
        .map(|name| name.trim().trim_matches('"'))
        .filter(|name| !name.is_empty())
        .map(String::from)
        .collect()
}

#[test]
fn every_program_tells_how_it_is_used() {
    let programs = installed();
    assert!(programs.len() > 50, "{programs:?}");
    let commands: Vec<String> = programs.iter().map(|name| format!("{name} -?")).collect();
    let text = run(&commands.join("; ")).succeeded();
    for name in &programs {
        assert!(text.contains(&format!("\n\nusage: {name}")), "nothing on {name}:\n{text}");
        assert!(text.contains(&format!("principal: {name}.singularity")), "nothing on {name}:\n{text}");
    }
}

#[test]
fn help_can_be_asked_for_in_several_ways_and_piped() {
    let by_name = run("help cat").succeeded();
    assert!(by_name.starts_with("cat: ") && by_name.contains("\n\nusage: cat [PATHS...]"), "{by_name}");
    for words in ["cat -?", "cat --help", "cat -h", "cat -? | cat", "directory --help | cat | cat; help cat"] {
        let text = run(words).succeeded();
        assert!(text.ends_with(&by_name), "{words}:\n{text}");
    }
    assert!(run("cd -h; pwd --help").succeeded().contains("usage: cd [FOLDER|-]"));
    // With other arguments it is an unknown option.
    run("cat /fs --help").refused(&["cat", "there is no option `--help`", "usage: cat"]);
}

#[test]
fn a_program_that_is_a_script_is_called_like_any_other() {
    assert_eq!(run("greet Ada 'the world'").succeeded(), "Hello, Ada.\nHello, the world.\n");
    assert_eq!(run("greet -l Ada").succeeded(), "HELLO, Ada!\n");
    assert_eq!(run("greet Ada | cat | cat").succeeded(), "Hello, Ada.\n");
    assert_eq!(run("x=$(greet Ada); echo got $x").succeeded(), "got Hello, Ada.\n");
    let help = run("greet -?").succeeded();
    assert!(help.contains("usage: greet [-l] [NAMES...]"), "{help}");
    run("greet --softly Ada").refused(&["greet", "there is no option `--softly`", "usage: greet [-l] [NAMES...]"]);
    let nobody = run("greet");
    assert_eq!((nobody.status, nobody.text().as_str()), (Some(1), "nobody is there to be greeted\n"), "{nobody}");
}

#[test]
fn a_script_leaves_nothing_behind_in_the_shell_that_runs_it() {
    let after = run("greet Ada; echo $names");
    assert_eq!(after.text(), "Hello, Ada.\n", "{after}");
    after.refused(&["names", "set it"]);
    assert_eq!(run("greet Ada & wait; echo done").succeeded(), "Hello, Ada.\ndone\n");
}

#[test]
fn random_bytes_are_those_of_the_host() {
    let run = Machine::new().run("random 32; random 32; random 0; random 65536 | wc -c; random 65537");
    let text = run.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{run}");
    assert_ne!(lines[0], lines[1], "{run}");
    let is_hexadecimal = |line: &str| line.len() == 64 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(lines[..2].iter().all(|line| is_hexadecimal(line)), "{run}");
    // 32 bytes per line, as two digits each.
    assert_eq!(lines[2].trim(), (65_536 * 2 + 65_536 / 32).to_string(), "{run}");
    assert!(run.errors.starts_with("random: 65537: ") && run.status == Some(2), "{run}");
}

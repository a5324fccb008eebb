//! Upgrading and uninstalling programs while instances run.

use manifest_model::Version;

use super::{Trial, greeter, packed, program};
use crate::bad_input::hosted;
use end_to_end::{Run, key};
use manifest_model::{Code, Manifest};

test_needs::needs!(E2fsprogs);

/// Markers that distinguish instances of the old version, `cat`, from the new one, `head`.
const LINES: usize = 12;
/// Lines that `head` prints.
const HEAD: usize = 10;
/// Pairs of rounds.
const PAIRS: usize = 3;

/// A package `worker` with the image of another program of the system.
fn worker(of: &str, minor: u32) -> Vec<u8> {
    program(of, |manifest, _| {
        manifest.name = "worker".into();
        manifest.version = Version { major: 1, minor, patch: 0 };
    })
}

fn trial() -> Trial {
    // A script that prints its lines after everything else has been done.
    let lines: String = (1..=LINES).map(|line| format!("echo line {line}\n")).collect();
    let code = Code::Script { text: format!("while test not exists $1; do sleep 10ms; end\n{lines}") };
    let (given, _) = super::of_system("greet");
    let mut parameter = given.parameters[0].clone();
    (parameter.name, parameter.repeated, parameter.required) = ("when".into(), false, true);
    let feeder = Manifest { name: "feeder".into(), code, parameters: vec![parameter], ..greeter("1.0.0") };
    let text: String = (1..=LINES).map(|line| format!("line {line}\n")).collect();
    let files = [
        ("old.package", worker("cat", 0)),
        ("new.package", worker("head", 1)),
        ("feeder.package", packed(feeder, key())),
        ("lines", text.into_bytes()),
    ];
    Trial::with(&hosted(), &files)
}

/// Number of lines after a mark.
fn lines_behind(text: &str, mark: &str) -> usize {
    let part = text.split(&format!("== {mark}\n")).nth(1).unwrap_or_else(|| panic!("no `{mark}` in:\n{text}"));
    part.split("== ").next().unwrap_or_default().lines().filter(|line| line.starts_with("line ")).count()
}

#[test]
fn what_runs_goes_on_while_its_program_is_replaced_and_taken_out() {
    let trial = trial();
    trial.run("install feeder.package").succeeded();
    let round = "function round\n\
        install old.package\n\
        feeder later | worker > old-out &\n\
        upgrade new.package\n\
        echo == new while the old runs\n\
        worker lines\n\
        feeder later | worker > new-out &\n\
        uninstall worker\n\
        echo == neither\n\
        worker lines\n\
        echo == answers\n\
        touch later\n\
        wait\n\
        echo == old\n\
        cat old-out\n\
        echo == new\n\
        cat new-out\n\
        rm later old-out new-out\n\
        end\n";
    let pairs = format!("round; round\n{}\n", Run::LOOKS).repeat(PAIRS);
    let commands = format!("{round}{pairs}echo == end\nps");
    let run = trial.run(&commands);
    run.orderly();
    let text = run.text();
    assert_eq!(text.matches("== new while the old runs").count(), 2 * PAIRS, "{run}");
    for part in text.split("== new while the old runs").skip(1) {
        let part = format!("== new while the old runs{part}");
        for (mark, lines) in [("new while the old runs", HEAD), ("neither", 0), ("old", LINES), ("new", HEAD)] {
            assert_eq!(lines_behind(&part, mark), lines, "{mark}:\n{run}");
        }
    }
    let missing = run.errors.lines().filter(|line| line.contains("worker") && line.contains("no such program")).count();
    assert_eq!((missing, run.errors.lines().count()), (2 * PAIRS, 2 * PAIRS), "{run}");
    let processes = text.split("== end").nth(1).unwrap_or_default();
    assert!(!processes.contains("worker"), "{run}");
    let counters = run.steady_counters();
    assert_eq!(counters.len(), PAIRS, "{run}");
    let steady = ["processes", "threads", "channels", "blocks", "synchronization objects", "exchange bytes", "stacks"];
    for name in steady {
        let counts: Vec<u64> = counters.iter().filter_map(|counters| counters.get(name).copied()).collect();
        // A leak grows with each pair of rounds; the file system's cache fills up once.
        let is_steady = counts.len() == PAIRS && counts.windows(2).any(|pair| pair[0] >= pair[1]);
        assert!(is_steady, "{name}: {counts:?}");
    }
    trial.image.check();
}

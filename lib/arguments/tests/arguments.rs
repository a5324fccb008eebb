//! A command's words become its program's parameters.

use arguments::{asks_for_help, assign, expected, usage};
use manifest_model::{Category, Code, Manifest, Parameter, ParameterKind};

/// A program with these parameters.
fn program(name: &str, parameters: Vec<Parameter>) -> Manifest {
    let code = Code::Script { text: String::new() };
    Manifest { parameters, ..Manifest::plain(name, "singularity", Category::Console, code) }
}

/// `list [-l] [--depth N] PATTERN [PATHS...]`
fn list() -> Manifest {
    let long = Parameter { flag: Some("-l".into()), ..Parameter::plain("long", ParameterKind::Boolean) };
    let depth = Parameter { flag: Some("--depth".into()), ..Parameter::plain("depth", ParameterKind::Integer) };
    let pattern = Parameter { position: Some(0), required: true, ..Parameter::plain("pattern", ParameterKind::Text) };
    let paths = Parameter { position: Some(1), repeated: true, ..Parameter::plain("paths", ParameterKind::Text) };
    program("list", vec![long, depth, pattern, paths])
}

fn given(words: &[&str]) -> Vec<(usize, String)> {
    let assigned = assign(&list(), words).expect("the words fit");
    assigned.into_iter().map(|(index, bytes)| (index, String::from_utf8(bytes).expect("text"))).collect()
}

fn problem(words: &[&str]) -> String {
    assign(&list(), words).expect_err("the words do not fit").to_string()
}

#[test]
fn words_find_their_parameters() {
    assert_eq!(given(&["x"]), [(2, "x".into())]);
    assert_eq!(given(&["-l", "x", "a", "b"]), [(0, "true".into()), (2, "x".into()), (3, "a\0b\0".into())]);
    assert_eq!(given(&["x", "--depth", "0x10"]), [(2, "x".into()), (1, "16".into())]);
    assert_eq!(given(&["--depth=-3", "x"]), [(1, "-3".into()), (2, "x".into())]);
    assert_eq!(given(&["-l=no", "--", "-x"]), [(0, "false".into()), (2, "-x".into())]);
    assert_eq!(given(&["-", "-5"]), [(2, "-".into()), (3, "-5\0".into())]);
    assert_eq!(given(&["", "é"]), [(2, "".into()), (3, "é\0".into())]);
}

/// `each [-r] [-0] [-n MOST] [-d SEPARATOR] COMMAND...`
fn each() -> Manifest {
    let flag = |flag: &str, name: &str, kind| Parameter { flag: Some(flag.into()), ..Parameter::plain(name, kind) };
    let command = Parameter { position: Some(0), repeated: true, ..Parameter::plain("command", ParameterKind::Text) };
    let parameters = vec![
        flag("-r", "run", ParameterKind::Boolean),
        flag("-0", "zero", ParameterKind::Boolean),
        flag("-n", "most", ParameterKind::Integer),
        flag("-d", "separator", ParameterKind::Text),
        command,
    ];
    program("each", parameters)
}

#[test]
fn flags_of_one_letter_are_joined() {
    let given = |words: &[&str]| {
        let assigned = assign(&each(), words).unwrap_or_else(|error| panic!("{error}"));
        assigned.into_iter().map(|(index, bytes)| (index, String::from_utf8(bytes).expect("text"))).collect::<Vec<_>>()
    };
    let both = [(0, String::from("true")), (1, String::from("true"))];
    assert_eq!(given(&["-r", "-0"]), both);
    assert_eq!(given(&["-r0"]), both);
    assert_eq!(given(&["-n5"]), [(2, "5".into())]);
    assert_eq!(given(&["-rn5"]), [(0, "true".into()), (2, "5".into())]);
    assert_eq!(given(&["-rn", "5"]), [(0, "true".into()), (2, "5".into())]);
    assert_eq!(given(&["-n-5"]), [(2, "-5".into())]);
    assert_eq!(given(&["-d,"]), [(3, ",".into())]);
    assert_eq!(given(&["-d="]), [(3, "=".into())]);
    assert_eq!(given(&["-d=,"]), [(3, ",".into())]);
    for (words, phrase) in [
        (&["-rx"][..], "there is no option `-rx`"),
        (&["-rn"], "`-rn` needs a value"),
        (&["-nr5"], "`r5` is not of the type"),
        (&["--r0"], "there is no option `--r0`"),
    ] {
        let problem = assign(&each(), words).expect_err("the words do not fit").problem;
        assert!(problem.contains(phrase), "{problem}");
    }
}

#[test]
fn negative_numbers_are_no_flags() {
    for word in ["-0.5", "-5", "-.5", "-99999999999999999999"] {
        assert_eq!(given(&["x", word]), [(2, "x".into()), (3, format!("{word}\0"))]);
    }
    for word in ["-5x", "-1.2.3", "-5.", "-.", "--5", "-inf", "-1e5"] {
        assert!(problem(&["x", word]).contains(&format!("there is no option `{word}`")), "{word}");
    }
}

#[test]
fn flags_behind_a_command_are_its_own() {
    let assigned = assign(&each(), &["-r", "rm", "-rf", "-n"]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(assigned, [(0, b"true".to_vec()), (4, b"rm\0-rf\0-n\0".to_vec())]);
    assert!(arguments::expected(&each(), &["rm"]).flags.is_empty());
    assert_eq!(arguments::expected(&each(), &["-r0"]).flags, ["-n", "-d"]);
}

#[test]
fn words_that_do_not_fit_say_why() {
    let usage = "usage: list [-l] [--depth DEPTH] PATTERN [PATHS...]";
    for (words, phrase) in [
        (&[][..], "`pattern` is missing"),
        (&["--depth", "x"], "`x` is not of the type of `depth`: integer"),
        (&["x", "--depth"], "`--depth` needs a value (integer)"),
        (&["-q", "x"], "there is no option `-q`"),
        (&["-l", "-l", "x"], "`long` is given twice"),
        (&["-l=maybe", "x"], "`maybe` is not of the type of `long`"),
        (&["x\0y"], "is not of the type of `pattern`"),
    ] {
        let text = problem(words);
        assert!(text.contains(phrase) && text.ends_with(usage), "{text}");
    }
    let none = Manifest { parameters: Vec::new(), ..list() };
    assert!(assign(&none, &["x"]).is_err_and(|error| error.problem.contains("one word too many")));
}

#[test]
fn usage_names_what_is_wanted() {
    assert_eq!(usage(&list()), "list [-l] [--depth DEPTH] PATTERN [PATHS...]");
    assert_eq!(usage(&Manifest { parameters: Vec::new(), ..list() }), "list");
}

#[test]
fn a_duration_is_written_with_its_unit_or_in_milliseconds() {
    let parse = |text| manifest_model::ParameterKind::DurationMs.parse(text);
    for (text, milliseconds) in [("250", 250), ("250ms", 250), ("2s", 2_000), ("5m", 300_000)] {
        assert_eq!(parse(text), Some(manifest_model::Value::DurationMs(milliseconds)), "{text}");
    }
    for text in ["", "ms", "-1", "+5", "1.5s", "2 s", "5h", "18446744073709551615s"] {
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn every_program_can_be_asked_for_help() {
    for word in ["-?", "--help", "-h"] {
        assert!(asks_for_help(&list(), word), "{word}");
    }
    assert!(!asks_for_help(&list(), "-l") && !asks_for_help(&list(), "--helper"));
    let human = Parameter { flag: Some("-h".into()), ..Parameter::plain("human", ParameterKind::Boolean) };
    let with_own = Manifest { parameters: vec![human], ..list() };
    assert!(!asks_for_help(&with_own, "-h") && asks_for_help(&with_own, "-?"));
}

/// `port [--dir PATH]... [-v] ARGV...`, which documents its own `-i` and `--glob TEXT`.
fn port() -> Manifest {
    let flag = |flag: &str, name: &str, kind| Parameter { flag: Some(flag.into()), ..Parameter::plain(name, kind) };
    let argv = Parameter { position: Some(0), repeated: true, ..Parameter::plain("argv", ParameterKind::Text) };
    let parameters = vec![
        Parameter { repeated: true, ..flag("--dir", "dir", ParameterKind::Text) },
        flag("-v", "verbose", ParameterKind::Boolean),
        argv,
        flag("-i", "ignore-case", ParameterKind::Boolean),
        Parameter { required: true, ..flag("--glob", "glob", ParameterKind::Text) },
    ];
    program("port", parameters)
}

#[test]
fn a_program_that_reads_its_words_gets_them_as_they_are() {
    let given = |words: &[&str]| {
        let assigned = assign(&port(), words).unwrap_or_else(|error| panic!("{error}"));
        assigned.into_iter().map(|(index, bytes)| (index, String::from_utf8(bytes).expect("text"))).collect::<Vec<_>>()
    };
    assert_eq!(given(&[]), []);
    assert_eq!(given(&["x", "-v", "--dir", "--"]), [(2, "x\0-v\0--dir\0--\0".into())]);
    assert_eq!(given(&["-i", "-v"]), [(2, "-i\0-v\0".into())]);
    assert_eq!(given(&["--unknown=3", "-xyz"]), [(2, "--unknown=3\0-xyz\0".into())]);
    assert_eq!(
        given(&["-v", "--dir", "/a", "--dir=/b", "-i"]),
        [(1, "true".into()), (0, "/a\0/b\0".into()), (2, "-i\0".into())]
    );
    assert_eq!(given(&["--", "--dir", "--", ""]), [(2, "--dir\0--\0\0".into())]);
    assert_eq!(usage(&port()), "port [--dir DIR] [-v] [-i] --glob GLOB [ARGV...]");
    assert!(asks_for_help(&port(), "-h"));
}

#[test]
fn flags_of_argv_are_offered_and_not_taken() {
    let flags = |words: &[&str]| expected(&port(), words).flags.into_iter().map(String::from).collect::<Vec<_>>();
    assert_eq!(flags(&["-v"]), ["--dir", "-i", "--glob"]);
    assert_eq!(flags(&["x"]), ["-i", "--glob"]);
    assert_eq!(flags(&["-i", "--glob"]), ["-i", "--glob"]);
    assert_eq!(
        expected(&port(), &["-i", "x"]).value.map(|parameter| parameter.name.as_str()).map(String::from),
        Some("argv".into())
    );
}

//! Scripts against a recording host.

use command_language::{
    Command, Ends, Errors, Flow, HighlightKind, Host, Interpreter, OutputMode, PathKind, Pattern, Scope, WordKind,
    completion_context, highlight, holds, parse, quote,
};
use proptest::prelude::*;

/// Records everything. `echo` writes to the output, `status N` returns N, `script` runs a script.
#[derive(Default)]
struct Notes {
    output: Vec<String>,
    runs: Vec<String>,
    reports: String,
    files: Vec<&'static str>,
    /// Output written to files: a line for each time, with mode and path.
    written: Vec<String>,
    /// Modes and paths of the current output redirections.
    redirected: Vec<String>,
    /// Current error redirections, and where they began and ended.
    errors: Vec<String>,
    error_places: Vec<String>,
    /// Paths of the current input redirections.
    inputs: Vec<String>,
    /// Current time measurements, and their number.
    timed: (usize, usize),
    patience: Option<usize>,
}

impl Host for Notes {
    fn run(&mut self, scope: &mut Scope<'_>, commands: &[Command], ends: Ends) -> Flow {
        let input = |command: &Command| command.input.as_ref().map(|path| format!(" < {path}")).unwrap_or_default();
        let errors = |command: &Command| command.errors.as_ref().map(|to| format!(" 2> {to:?}")).unwrap_or_default();
        let text = commands.iter().map(|command| match &command.subshell {
            Some(own) => format!("({:?} {:?}){}{}", own.script, own.positionals, input(command), errors(command)),
            None => format!("{:?}{}{}", command.words, input(command), errors(command)),
        });
        let text: Vec<String> = text.collect();
        self.runs.push(format!("{}{}", text.join(" | "), if ends == Ends::Background { " &" } else { "" }));
        let words = &commands[0].words;
        match words[0].as_str() {
            "echo" => {
                if let Some(output) = self.output.last_mut() {
                    output.push_str(&words[1..].join(" "));
                    output.push('\n');
                }
                Flow::Status(0)
            }
            "status" => Flow::Status(words[1].parse().unwrap()),
            "exit" => Flow::Exit(words[1].parse().unwrap()),
            "set" => {
                scope.variables.insert(words[1].clone(), words[2].clone());
                Flow::Status(0)
            }
            "which" => {
                let text = scope.function(&words[1]).unwrap_or("none").to_string();
                self.output.last_mut().unwrap().push_str(&(text + "\n"));
                Flow::Status(0)
            }
            "read" => match self.inputs.last() {
                Some(path) => {
                    scope.variables.insert(words[1].clone(), format!("from {path}"));
                    Flow::Status(0)
                }
                None => Flow::Status(1),
            },
            "stop" => Flow::GivenUp(148),
            "test" => Flow::Status(i32::from(!holds(&words[1..], &mut |_| PathKind::Missing).unwrap())),
            "script" => Flow::Run {
                name: "inner".into(),
                source: words[1].clone(),
                arguments: words[2..].to_vec(),
                variables: vec![("named".into(), "set".into())],
            },
            _ => Flow::Status(0),
        }
    }

    fn expand(&mut self, pattern: &Pattern) -> Result<Vec<String>, String> {
        Ok(self.files.iter().filter(|file| pattern.matches(file)).map(|file| file.to_string()).collect())
    }

    fn begin_capture(&mut self) -> Result<(), String> {
        self.output.push(String::new());
        Ok(())
    }

    fn end_capture(&mut self) -> Result<String, String> {
        self.output.pop().ok_or_else(|| "nothing is collected".to_string())
    }

    fn begin_output(&mut self, mode: OutputMode, path: &str) -> Result<(), String> {
        if path == "refused" {
            return Err("it is refused".to_string());
        }
        self.redirected.push(format!("{mode:?} {path}"));
        self.begin_capture()
    }

    fn end_output(&mut self) -> bool {
        let path = self.redirected.pop().expect("output goes to a file");
        let text = self.output.pop().expect("something is collected");
        self.written.push(format!("{path}: {text}"));
        !path.ends_with("full")
    }

    fn begin_errors(&mut self, errors: &Errors) -> Result<(), String> {
        if matches!(errors, Errors::File(_, path) if path == "refused") {
            return Err("it is refused".to_string());
        }
        self.errors.push(format!("{errors:?} with {:?}", self.redirected));
        Ok(())
    }

    fn end_errors(&mut self) -> bool {
        let ended = self.errors.pop().expect("errors are redirected");
        let is_whole = !ended.contains("full");
        self.error_places.push(ended);
        is_whole
    }

    fn begin_input(&mut self, path: &str) -> Result<(), String> {
        if path == "refused" {
            return Err("it is refused".to_string());
        }
        self.inputs.push(path.to_string());
        Ok(())
    }

    fn end_input(&mut self) {
        self.inputs.pop().expect("input comes from a file");
    }

    fn begin_time(&mut self) {
        self.timed.0 += 1;
    }

    fn end_time(&mut self) {
        self.timed.0 = self.timed.0.checked_sub(1).expect("something is measured");
        self.timed.1 += 1;
    }

    fn interrupted(&mut self) -> bool {
        match &mut self.patience {
            None => false,
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
        }
    }

    fn report(&mut self, text: &str) {
        self.reports.push_str(text);
    }
}

/// Returns output, runs, reports and the final flow.
fn run(source: &str) -> (String, Notes, Flow) {
    let mut host = Notes { output: vec![String::new()], files: vec!["a.txt", "b.txt", "c"], ..Notes::default() };
    let mut interpreter = Interpreter::new(vec!["shell".into(), "one".into(), "two words".into()]);
    let flow = interpreter.run(&mut host, "script", source);
    (host.output[0].clone(), host, flow)
}

#[test]
fn scripts_print_what_they_mean() {
    let cases: &[(&str, &str)] = &[
        ("echo a  b # comment", "a b\n"),
        ("echo 'a  b' \"c\\td\" e\\ f ''", "a  b c\td e f \n"),
        ("x=1; y=\"$x 2\"; echo $y ${x}3 '$x'", "1 2 13 $x\n"),
        ("echo ${no:-some thing} $1 $# $0", "some thing one 2 shell\n"),
        ("for p in $@; do echo [$p]; end", "[one]\n[two words]\n"),
        ("for p in $1$@; do echo $p; end", "oneone\ntwo words\n"),
        ("echo *.txt \"*.txt\" ?", "a.txt b.txt *.txt c\n"),
        ("echo -? --*", "-? --*\n"),
        ("for f in *.none; do echo $f; end; echo done", "done\n"),
        ("status 3; echo $?", "3\n"),
        ("status 0 && echo yes || echo no", "yes\n"),
        ("status 1 && echo yes || echo no", "no\n"),
        ("not status 1 && echo yes", "yes\n"),
        ("if status 1; then echo a; elif status 0; then echo b; else echo c; end", "b\n"),
        ("if status 1\nthen echo a\nelse echo c\nend", "c\n"),
        ("i=0; while test $i '<' 3; do echo $i; i=$((i + 1)); end", "0\n1\n2\n"),
        (
            "for i in 1 2 3 4; do if test $i = 2; then continue; end; if test $i = 4; then break; end; echo $i; end",
            "1\n3\n",
        ),
        ("function f; echo $1-$#; return 4; echo never; end; f x y; echo $?", "x-2\n4\n"),
        ("for l in $(echo one two; echo three); do echo \"<$l>\"; end", "<one two>\n<three>\n"),
        ("x=$(echo $(echo deep)); echo \"$x\"", "deep\n"),
        ("echo $((2 * (3 + 4))) $(( $# - 1 ))", "14 1\n"),
        ("set v 7; echo $v", "7\n"),
        ("script 'echo $1 $# $named; x=9; exit 5' a b; echo $? ${x:-none}", "a 2 set\n5 none\n"),
        ("echo a \\\n b", "a b\n"),
        ("echo $ a$ $%", "$ a$ $%\n"),
        ("echo a &\n echo b", "a\nb\n"),
        ("exit 3; echo never", ""),
    ];
    for (source, expected) in cases {
        let (output, host, _) = run(source);
        assert_eq!(output, *expected, "{source}\n{}", host.reports);
        assert_eq!(host.reports, "", "{source}");
    }
}

#[test]
fn pipes_and_background_reach_the_host_whole() {
    let (_, host, _) = run("cat 'a b' | sort -r |\n count & ls");
    assert_eq!(host.runs, [r#"["cat", "a b"] | ["sort", "-r"] | ["count"] &"#, r#"["ls"]"#]);
}

#[test]
fn blocks_and_functions_in_pipes_have_shells_of_their_own() {
    let cases: &[(&str, &str)] = &[
        (
            "v='a b'; ls | while read l; do echo $l; end | count",
            r#"["ls"] | ("v='a b'\nwhile read l; do echo $l; end" ["shell", "one", "two words"]) | ["count"]"#,
        ),
        ("function f; echo $1 # one\nend # two\nfor i in 1 2; do f $i; end > out < in | b", ""),
        (
            "function f; echo $1 # one\nend # two\nfor i in 1 2; do f $i; end < in | b",
            r#"("function f; echo $1 # one\nend # two\nfor i in 1 2; do f $i; end" ["shell", "one", "two words"]) < in | ["b"]"#,
        ),
        (
            "function f; echo; end; f 'x y' *.txt &",
            r#"("function f; echo; end\nf 'x y' a.txt b.txt" ["shell", "one", "two words"]) &"#,
        ),
        ("if a; then b; end &", r#"("if a; then b; end" ["shell", "one", "two words"]) &"#),
    ];
    for (source, expected) in cases {
        let (_, host, _) = run(source);
        match *expected {
            "" => {
                assert!(host.reports.contains("conflicting output: `|` already takes it"), "{source}\n{}", host.reports)
            }
            expected => assert_eq!(host.runs, [expected], "{source}\n{}", host.reports),
        }
    }
}

#[test]
fn blocks_and_functions_alone_run_here_with_their_files() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("if status 0; then read l; x=1; end < f; echo $l $x", "from f 1\n", &[]),
        ("function f; read l; end; f < g; echo $l", "from g\n", &[]),
        ("for i in 1 2; do echo $i; end > f; echo $i", "2\n", &["Replace f: 1\n2\n"]),
        ("while read l; do echo $l; break; end < f >> g", "", &["Append g: from f\n"]),
        ("function f; if read l; then return 3; end; end; f < g; echo $?", "3\n", &[]),
    ];
    for (source, output, written) in cases {
        let (found, host, _) = run(source);
        assert_eq!((found.as_str(), host.reports.as_str()), (*output, ""), "{source}");
        assert_eq!(host.written, *written, "{source}");
        assert!(settled(&host), "{source}");
    }
    let (output, host, _) = run("while read l; do echo never; end < refused; echo $?");
    assert_eq!((output.as_str(), host.reports.as_str()), ("1\n", "refused: it is refused\n"));
}

#[test]
fn time_measures_a_statement_whatever_it_is() {
    for (source, times, output) in [
        ("time echo a", 1, "a\n"),
        ("time not status 1; echo $?", 1, "0\n"),
        ("not time status 1 && time echo b", 2, "b\n"),
        ("time for i in 1 2; do time echo $i; end", 3, "1\n2\n"),
        ("function f; time return 3; end; f; echo $?", 1, "3\n"),
        ("time exit 3", 1, ""),
        ("echo time; time=1; echo $time", 0, "time\n1\n"),
    ] {
        let (found, host, _) = run(source);
        assert_eq!((found.as_str(), host.timed, host.reports.as_str()), (output, (0, times), ""), "{source}");
    }
}

#[test]
fn what_a_person_stops_gives_the_script_up_with_its_status() {
    let (output, host, flow) = run("time while true; do stop; end > f; echo never");
    assert_eq!((output.as_str(), flow), ("", Flow::GivenUp(148)));
    assert!(settled(&host));
}

#[test]
fn a_function_is_told_as_it_was_written() {
    let (output, ..) = run("function f; echo a; end; which f; which g");
    assert_eq!(output, "function f; echo a; end\nnone\n");
}

#[test]
fn output_goes_to_files() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("echo a > f; echo b", "b\n", &["Replace f: a\n"]),
        ("p='a b'; echo 1 >> \"$p\"; echo > $p 2", "", &["Append a b: 1\n", "Replace a b: 2\n"]),
        ("x | echo a > f", "", &["Replace f: "]),
        (
            "function f; echo in; echo > g deep; end; f > h; echo out",
            "out\n",
            &["Replace g: deep\n", "Replace h: in\n"],
        ),
        ("script 'echo a; echo b > c' > d", "", &["Replace c: b\n", "Replace d: a\n"]),
        ("x=$(echo a > f; echo b); echo $x", "b\n", &["Replace f: a\n"]),
        ("echo a >f<g", "", &["Replace f: a\n"]),
        ("echo a > full; echo $?; status 7 > full; echo $?", "1\n7\n", &["Replace full: a\n", "Replace full: "]),
    ];
    for (source, output, written) in cases {
        let (found, host, _) = run(source);
        assert_eq!((found.as_str(), host.reports.as_str()), (*output, ""), "{source}");
        assert_eq!(host.written, *written, "{source}");
    }
    let (output, host, _) = run("echo a > refused; echo $?");
    assert_eq!((output.as_str(), host.reports.as_str()), ("1\n", "refused: it is refused\n"));
    let (_, host, flow) = run("exit 3 > f");
    assert_eq!((host.written.len(), flow), (1, Flow::Exit(3)), "what ends a script closes its files");
}

/// Returns the host's runs, error redirections with their output, and reports.
fn redirected(source: &str) -> (Vec<String>, Vec<String>, String) {
    let (_, host, _) = run(source);
    assert!(settled(&host), "{source}: {:?} {:?}", host.redirected, host.errors);
    (host.runs, host.error_places, host.reports)
}

#[test]
fn errors_go_where_the_line_says() {
    let place = |source: &str| redirected(source).1.join("; ");
    assert_eq!(place("a 2> f"), "File(Replace, \"f\") with []");
    assert_eq!(place("a 2>>f b"), "File(Append, \"f\") with []");
    assert_eq!(redirected("echo 2>f x").0, ["[\"echo\", \"x\"]"]);
    assert_eq!(redirected("echo 2 >f").0, ["[\"echo\", \"2\"]"]);
    assert_eq!(redirected("echo a2>f").0, ["[\"echo\", \"a2\"]"]);
    assert_eq!(place("a 2>&1"), "Output with []");
    assert_eq!(place("a > f 2>&1"), "Output with [\"Replace f\"]");
    assert_eq!(place("a 1>> f 2>&1"), "Output with [\"Append f\"]");
    assert_eq!(place("a 2>&1 > f"), "OutputBefore with [\"Replace f\"]");
    assert_eq!(place("a 2> e > f"), "File(Replace, \"e\") with [\"Replace f\"]");
    assert_eq!(place("e=x; a 2> $e.txt"), "File(Replace, \"x.txt\") with []");
    // A block and a function that run in this shell, and nested statements.
    assert_eq!(place("for i in 1; do a 2>&1; end 2> f"), "Output with []; File(Replace, \"f\") with []");
    assert_eq!(place("function g; a; end; g 2> f"), "File(Replace, \"f\") with []");
    assert_eq!(place("a 2> f &"), "File(Replace, \"f\") with []");
}

#[test]
fn each_command_of_a_pipe_has_errors_of_its_own() {
    let (runs, places, _) = redirected("a 2>&1 | b 2> f | c");
    assert_eq!(runs, ["[\"a\"] 2> Output | [\"b\"] 2> File(Replace, \"f\") | [\"c\"]"]);
    assert!(places.is_empty());
    assert_eq!(redirected("a | b 2>&1 > f").0, ["[\"a\"] | [\"b\"] 2> OutputBefore"]);
    let (runs, ..) = redirected("function g; a; end; g 2>&1 | b");
    assert!(runs[0].contains(") 2> Output | [\"b\"]"), "{runs:?}");
}

#[test]
fn errors_that_can_go_nowhere_are_one_sentence() {
    let (runs, places, reports) = redirected("a > f 2> refused; echo $?");
    assert_eq!((runs.len(), reports.as_str()), (1, "refused: it is refused\n"));
    assert!(places.is_empty());
    assert_eq!(run("a 2> refused; echo $?").0, "1\n");
    assert_eq!(run("a 2> full; echo $?").0, "1\n");
    // The redirection ends with the command, however it continues.
    for source in
        ["exit 3 2> f", "stop 2> f", "while status 0; do break; end 2> f", "function g; return 2; end; g 2> f"]
    {
        assert_eq!(redirected(source).1.len(), 1, "{source}");
    }
}

#[test]
fn mistakes_say_what_where_and_what_to_do() {
    let cases: &[(&str, &str)] = &[
        ("echo 'a", "script:1:6: unterminated `'`; close it with another `'`\n    echo 'a\n         ^\n"),
        ("ls\nif a; echo", "script:2:11: unexpected end of script; add `then` after the condition of `if`\n"),
        (
            "echo $nothing",
            "script:1:6: `nothing` is not set; set it with nothing=value, \
             or write ${nothing:-text}\n    echo $nothing\n         ^^^^^^^^\n",
        ),
        ("a | | b", "script:1:5: unexpected `|`; add a command\n"),
        ("x=1 | d", "script:1:5: unexpected `|`; move the left side into a function"),
        ("a | then", "script:1:5: unexpected `then`; no open `if`"),
        ("a | while b", "script:1:12: unexpected end of script; add `do` after the condition"),
        (
            "test 1 < 3",
            "script:1:8: unquoted `<` is a redirection, not a comparison; use `-lt` to compare numbers, \
             or quote the operator: `'<'`\n    test 1 < 3\n           ^\n",
        ),
        ("while test $x > 3; do a; end", "script:1:15: unquoted `>` is a redirection"),
        ("a && ", "script:1:6: unexpected end of script; add a command\n"),
        ("if a; then b; fi", "script:1:15: unexpected `fi`; write `end`\n"),
        ("x=1 y", "script:1:5: unexpected `y`; programs have no environment"),
        ("echo *.none", "script:1:6: no match; quote the word"),
        ("echo \"\\q\"", "script:1:7: `\\q` is not an escape sequence; write `\\\\q`"),
        ("echo (a)", "script:1:6: unexpected `(`; quote it to use it literally\n"),
        ("a >", "script:1:4: unexpected end of script; add the path of a file\n"),
        ("a > | b", "script:1:5: unexpected `|`; add the path of a file\n"),
        ("> f", "script:1:1: unexpected `>`; add a command\n"),
        (
            "a 3> f",
            "script:1:3: unexpected `3`; only `1>` (output) and `2>` (errors) are supported; if the number is an \
             argument, put a space after it\n",
        ),
        ("a 2>", "script:1:5: unexpected end of script; add the path of a file\n"),
        (
            "a >&2",
            "script:1:4: unexpected `&`; add the path of a file, or write `2>&1` to redirect errors to the output\n",
        ),
        ("a 2> f 2>&1", "script:1:8: unexpected `2>&1`; that stream is already redirected; remove one redirection\n"),
        ("a 2> f 2>> g", "script:1:8: unexpected `2>>`; that stream is already redirected; remove one redirection\n"),
        ("a > f 1> g", "script:1:7: unexpected `1>`; that stream is already redirected; remove one redirection\n"),
        ("test 2>1", "script:1:6: unquoted `>` is a redirection"),
        ("a > f >> g", "script:1:7: unexpected `>>`; that stream is already redirected; remove one redirection\n"),
        ("a > f | b", "script:1:5: conflicting output: `|` already takes it; put `>` after the last command"),
        ("a | b < f", "script:1:9: conflicting input: `|` already provides it; put `<` after the first command"),
        (
            "a && b &",
            "script:1:8: only a command, block or pipeline can run in the background; move it into a function",
        ),
        ("function f; f; end; f", "recursion is deeper than 32 calls; use a loop"),
        ("echo $((1 / 0))", "script:1:6: invalid arithmetic: division by zero"),
        ("end", "script:1:1: unexpected `end`; no open `if`"),
        ("return x", "script:1:8: `x` is not an exit status; write a number from 0 to 255\n"),
    ];
    for (source, expected) in cases {
        let (_, host, flow) = run(source);
        assert!(host.reports.contains(expected), "{source}\n{}", host.reports);
        assert_eq!(flow, Flow::Status(2), "{source}");
    }
}

#[test]
fn a_long_line_is_shown_around_the_mistake() {
    let source = format!("echo {} | | {}", "a".repeat(500), "b".repeat(500));
    let text = parse(&source).unwrap_err().render("script", &source);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].starts_with("    ...aaa") && lines[1].ends_with("bbb..."), "{text}");
    assert_eq!(lines[1].find("| |").map(|at| at + 2), lines[2].find('^'), "{text}");
    assert!(lines.iter().all(|line| line.len() < 140), "{text}");
}

#[test]
fn an_unfinished_script_can_be_told_from_a_wrong_one() {
    for source in ["if a", "for x in 1 2", "echo 'a", "echo \"$(a", "a |", "while a; do", "${x", "a &&"] {
        assert!(parse(source).unwrap_err().incomplete, "{source}");
    }
    for source in ["fi", "a | | b", "echo (", "a )"] {
        assert!(!parse(source).unwrap_err().incomplete, "{source}");
    }
}

#[test]
fn a_person_can_stop_an_endless_loop() {
    let mut host = Notes { output: vec![String::new()], patience: Some(100), ..Notes::default() };
    let mut interpreter = Interpreter::new(Vec::new());
    assert_eq!(interpreter.run(&mut host, "script", "while true; do end; echo never"), Flow::GivenUp(130));
    assert_eq!(interpreter.status(), 130);
    assert_eq!(host.output[0], "");
}

#[test]
fn depth_is_bounded() {
    for open in ["$(", "${a:-", "if ", "echo $(("] {
        let _ = parse(&open.repeat(20_000));
    }
    let _ = parse(&"a && ".repeat(100_000));
    let (_, host, _) = run(&format!("{}a{}", "if true; then ".repeat(40), "; end".repeat(40)));
    assert!(host.reports.contains("nested too deeply"));
}

#[test]
fn conditions() {
    let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
    let mut look = |path: &str| if path == "/fs" { PathKind::Folder } else { PathKind::Missing };
    assert_eq!(holds(&words("a = a"), &mut look), Ok(true));
    assert_eq!(holds(&words("not a = a"), &mut look), Ok(false));
    assert_eq!(holds(&words("9 < 10"), &mut look), Ok(true));
    for (text, expected) in [
        ("9 -lt 10", true),
        ("9 -gt 10", false),
        ("9 -le 9", true),
        ("9 -ge 10", false),
        ("09 -eq 9", true),
        ("1 -ne 1", false),
    ] {
        assert_eq!(holds(&words(text), &mut look), Ok(expected), "{text}");
    }
    assert_eq!(holds(&words("folder /fs"), &mut look), Ok(true));
    assert_eq!(holds(&words("exists /no"), &mut look), Ok(false));
    assert!(holds(&words("x < 10"), &mut look).is_err());
    assert!(holds(&[], &mut look).is_err());
}

#[test]
fn completion_knows_what_the_cursor_is_in() {
    use WordKind::*;
    let check = |text: &str, start: usize, word: &str, before: &[&str], kind: WordKind| {
        let context = completion_context(text);
        assert_eq!((context.start, context.word.as_str(), context.kind), (start, word, kind), "{text}");
        assert_eq!(context.before, before, "{text}");
    };
    check("", 0, "", &[], Plain);
    check("ec", 0, "ec", &[], Plain);
    check("cat /fs/di", 4, "/fs/di", &["cat"], Plain);
    check("cat -n ", 7, "", &["cat", "-n"], Plain);
    check("a; if tr", 6, "tr", &[], Plain);
    check("ls | so", 5, "so", &[], Plain);
    check("cat 'a b", 4, "a b", &["cat"], Plain);
    check("cat a > fi", 8, "fi", &["cat", "a"], File);
    check("cat a >> /fs/d", 9, "/fs/d", &["cat", "a"], File);
    check("cat < ", 6, "", &["cat"], File);
    check("cat < 'a b", 6, "a b", &["cat"], File);
    check("cat < f -", 8, "-", &["cat"], Plain);
    check("cat a < f ", 10, "", &["cat", "a"], Plain);
    check("cat a < f 'b", 10, "b", &["cat", "a"], Plain);
    check("cat a > f; l", 11, "l", &[], Plain);
    check("cat \"a b\"c", 4, "a bc", &["cat"], Plain);
    check("cat a 2> fi", 9, "fi", &["cat", "a"], File);
    check("cat a 2>&1 b", 11, "b", &["cat", "a"], Plain);
    check("cat a 2>&1 | le", 13, "le", &[], Plain);
    check("echo $na", 6, "na", &["echo"], Variable);
    check("echo \"x ${na", 10, "na", &["echo"], Variable);
}

#[test]
fn highlighting_names_the_parts() {
    let parts = |line: &str| -> Vec<(String, HighlightKind)> {
        highlight(line).into_iter().map(|part| (line[part.start..part.end].to_string(), part.kind)).collect()
    };
    use HighlightKind::*;
    let expected = [
        ("if", Keyword),
        ("cat", Command),
        ("$x", Variable),
        ("|", Sign),
        ("b", Command),
        ("'c'", Quoted),
        ("# d", Comment),
    ];
    assert_eq!(parts("if cat $x | b 'c' e # d"), expected.map(|(text, kind)| (text.to_string(), kind)));
    assert_eq!(parts("a 2>&1 b 2> f").len(), 3);
    assert_eq!(parts("a 'b"), [("a".to_string(), Command), (" 'b".to_string(), Wrong)]);
}

proptest! {
    #[test]
    fn nothing_panics(source in "[ -~\n\té$'\"(){};|&<>*?#=\\\\]{0,60}") {
        let _ = parse(&source).map_err(|error| error.render("script", &source));
        let _ = completion_context(&source);
        let mut end = 0;
        for part in highlight(&source) {
            prop_assert!(part.start >= end && part.end <= source.len());
            prop_assert!(source.get(part.start..part.end).is_some());
            end = part.end;
        }
        let mut host = Notes { output: vec![String::new()], patience: Some(50), ..Notes::default() };
        let _ = run_with(&mut host, &source);
        prop_assert!(settled(&host));
    }

    #[test]
    fn pieces_of_the_language_in_any_order_do_not_panic(pieces in prop::collection::vec(prop::sample::select(vec![
        "if", "then", "elif", "else", "end", "while", "do", "for", "in", "x", "function", "break", "continue", "return",
        "not", "true", "time", "f", "read", ";", "\n", "|", "&", "&&", "||", "<", ">", ">>", "2>", "2>&1", "$(", ")", "$((", "))", "${", "}", ":-", "'", "\"", "x=1", "$x", "*", "a",
    ]), 0..25)) {
        let source = pieces.join(" ");
        let _ = completion_context(&source);
        let _ = highlight(&source);
        let mut host = Notes { output: vec![String::new()], patience: Some(50), ..Notes::default() };
        let _ = run_with(&mut host, &source);
        prop_assert!(settled(&host));
    }

    #[test]
    fn a_quoted_text_is_one_word_that_means_it(texts in prop::collection::vec(any::<String>(), 1..5)) {
        let words: Vec<String> = texts.iter().map(|text| quote(text)).collect();
        let mut host = Notes { output: vec![String::new()], ..Notes::default() };
        run_with(&mut host, &format!("note {}", words.join(" ")));
        let mut expected = vec!["note".to_string()];
        expected.extend(texts);
        prop_assert_eq!(&host.reports, "");
        prop_assert_eq!(host.runs, [format!("{expected:?}")]);
    }
}

/// Regardless of how scripts end, all redirections have ended.
fn settled(host: &Notes) -> bool {
    host.redirected.is_empty()
        && host.errors.is_empty()
        && host.inputs.is_empty()
        && host.timed.0 == 0
        && host.output.len() == 1
}

fn run_with(host: &mut Notes, source: &str) -> Flow {
    struct Lenient<'a>(&'a mut Notes);
    impl Host for Lenient<'_> {
        fn run(&mut self, _: &mut Scope<'_>, commands: &[Command], _: Ends) -> Flow {
            self.0.runs.push(format!("{:?}", commands[0].words));
            // A subshell's script must parse.
            let scripts = commands.iter().filter_map(|command| command.subshell.as_ref());
            scripts.for_each(|own| assert!(parse(&own.script).is_ok(), "{}", own.script));
            Flow::Status(0)
        }
        fn expand(&mut self, pattern: &Pattern) -> Result<Vec<String>, String> {
            self.0.expand(pattern)
        }
        fn begin_capture(&mut self) -> Result<(), String> {
            self.0.begin_capture()
        }
        fn end_capture(&mut self) -> Result<String, String> {
            self.0.end_capture()
        }
        fn begin_output(&mut self, mode: OutputMode, path: &str) -> Result<(), String> {
            self.0.begin_output(mode, path)
        }
        fn end_output(&mut self) -> bool {
            self.0.end_output()
        }
        fn begin_errors(&mut self, errors: &Errors) -> Result<(), String> {
            self.0.begin_errors(errors)
        }
        fn end_errors(&mut self) -> bool {
            self.0.end_errors()
        }
        fn begin_input(&mut self, path: &str) -> Result<(), String> {
            self.0.begin_input(path)
        }
        fn end_input(&mut self) {
            self.0.end_input();
        }
        fn begin_time(&mut self) {
            self.0.begin_time();
        }
        fn end_time(&mut self) {
            self.0.end_time();
        }
        fn interrupted(&mut self) -> bool {
            self.0.interrupted()
        }
        fn report(&mut self, text: &str) {
            self.0.report(text);
        }
    }
    Interpreter::new(vec!["shell".into()]).run(&mut Lenient(host), "script", source)
}

//! Scripts against a host that only notes what it is asked.

use std::collections::BTreeMap;

use command_language::{
    Command, Ends, Flow, HighlightKind, Host, Interpreter, OutputMode, PathKind, Pattern, WordKind, completion_context,
    highlight, holds, parse, quote,
};
use proptest::prelude::*;

/// Prints nothing, notes everything. `echo` goes to the output, `status N` has status N, `script` runs one.
#[derive(Default)]
struct Notes {
    output: Vec<String>,
    runs: Vec<String>,
    reports: String,
    files: Vec<&'static str>,
    /// What went to files: a line for each time, with mode and path.
    written: Vec<String>,
    /// Modes and paths of the files that output goes to now.
    redirected: Vec<String>,
    patience: Option<usize>,
}

impl Host for Notes {
    fn run(&mut self, variables: &mut BTreeMap<String, String>, commands: &[Command], ends: Ends) -> Flow {
        let input = |command: &Command| command.input.as_ref().map(|path| format!(" < {path}")).unwrap_or_default();
        let text = commands.iter().map(|command| format!("{:?}{}", command.words, input(command)));
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
                variables.insert(words[1].clone(), words[2].clone());
                Flow::Status(0)
            }
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

/// Output, runs, reports and how it ended.
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

#[test]
fn mistakes_say_what_where_and_what_to_do() {
    let cases: &[(&str, &str)] = &[
        ("echo 'a", "script:1:6: a `'` is not closed; close it with another `'`\n    echo 'a\n         ^\n"),
        ("ls\nif a; echo", "script:2:11: the script ends too early; write `then` after the condition of `if`\n"),
        (
            "echo $nothing",
            "script:1:6: `nothing` is not set; set it with nothing=value, or write ${nothing:-text}\n    echo $nothing\n         ^^^^^^^^\n",
        ),
        ("a | | b", "script:1:5: `|` cannot stand there; write a command there\n"),
        ("for a in b; do c; end | d", "script:1:23: `|` cannot stand there; only programs can be joined by `|`"),
        ("a && ", "script:1:6: the script ends too early; write a command there\n"),
        ("if a; then b; fi", "script:1:15: `fi` cannot stand there; write `end`\n"),
        ("x=1 y", "script:1:5: `y` cannot stand there; programs have no environment"),
        ("echo *.none", "script:1:6: no name matches; quote it"),
        ("echo \"\\q\"", "script:1:7: `\\q` means nothing in quotes; write `\\\\q`"),
        ("echo (a)", "script:1:6: `(` cannot stand there; put it in quotes to mean the sign\n"),
        ("a >", "script:1:4: the script ends too early; write the path of a file there\n"),
        ("a > | b", "script:1:5: `|` cannot stand there; write the path of a file there\n"),
        ("> f", "script:1:1: `>` cannot stand there; write a command there\n"),
        (
            "a 2>&1",
            "script:1:3: `2` cannot stand there; only what a program writes to its output can go to a file; what it says of errors goes to the console. If it is a word, put a blank behind it\n",
        ),
        ("a > f >> g", "script:1:7: `>>` cannot stand there; one of them is there already; leave one out\n"),
        ("a > f | b", "script:1:5: its output goes to the `|` behind it; put `>` behind the last command"),
        ("a | b < f", "script:1:9: its input comes from the `|` before it; put `<` behind the first command"),
        ("function f; a; end; f < g", "script:1:21: the function `f` cannot run in a pipe, with `<`"),
        ("while true; do a; end &", "script:1:23: only a command or a pipe can run in the background"),
        ("function f; a; end; f | b", "script:1:21: the function `f` cannot run in a pipe"),
        ("function f; f; end; f", "more than 32 functions and scripts call each other; use a loop"),
        ("echo $((1 / 0))", "script:1:6: this cannot be worked out: it divides by zero"),
        ("end", "script:1:1: `end` cannot stand there; it belongs to"),
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
    assert_eq!(interpreter.run(&mut host, "script", "while true; do end; echo never"), Flow::Interrupted);
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
        "not", "true", ";", "\n", "|", "&", "&&", "||", "<", ">", ">>", "$(", ")", "$((", "))", "${", "}", ":-", "'", "\"", "x=1", "$x", "*", "a",
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

/// However scripts end, what they began has ended.
fn settled(host: &Notes) -> bool {
    host.redirected.is_empty() && host.output.len() == 1
}

fn run_with(host: &mut Notes, source: &str) -> Flow {
    struct Lenient<'a>(&'a mut Notes);
    impl Host for Lenient<'_> {
        fn run(&mut self, _: &mut BTreeMap<String, String>, commands: &[Command], _: Ends) -> Flow {
            self.0.runs.push(format!("{:?}", commands[0].words));
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
        fn interrupted(&mut self) -> bool {
            self.0.interrupted()
        }
        fn report(&mut self, text: &str) {
            self.0.report(text);
        }
    }
    Interpreter::new(vec!["shell".into()]).run(&mut Lenient(host), "script", source)
}

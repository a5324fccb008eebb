//! Daily tools, compared with GNU's on the same files, and the full-screen ones.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use end_to_end::{Format, Image, Machine, Terminal, finish};

test_needs::needs!(E2fsprogs);

fn fill(root: &Path) -> std::io::Result<()> {
    let numbers: String = (1..=3000).map(|number| format!("{number}\n")).collect();
    let table = "pear:10:b\napple:9:a\nfig:10:a\nApple:-1.5:c\nplum::z\nfig:2:a\n";
    for (name, content) in [
        ("a", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"),
        ("b", "one\ntwo\n3\nfour\nfive\n6\nseven\neight"),
        ("words", "cat\nconcat\nthe cat sat\nCat\n\ncats\ncat.\n"),
        ("dots", "a.b\naxb\na\\b\n[x]\nx*y\n"),
        ("mixed", "abc 123 def 45\nnothing\n6:7\n"),
        ("runs", "x\nx\nX\ny\nz\nz\nz\n"),
        ("spaces", "b  2 x\na 10 y\na  2 z\nc\n\td e\n"),
        ("closer", "b 2 x\na 10 y\na 2 z\nc\nd e\n"),
        ("tabs", "one\ttwo\tthree\nfour\nfive\tsix\n"),
        ("table", table),
        ("letters", "Ärger\närger\nstraße\n"),
        ("binary", "text\0more text\n"),
        ("empty", ""),
        ("numbers", &numbers),
    ] {
        fs::write(root.join(name), content)?;
    }
    for (folder, content) in [("left", "same\nold\n"), ("right", "same\nnew\n")] {
        fs::create_dir_all(root.join(folder).join("below"))?;
        fs::write(root.join(folder).join("below/x"), content)?;
        fs::write(root.join(folder).join("same"), "same\n")?;
    }
    fs::write(root.join("left/alone"), "here\n")
}

fn disk() -> (tempfile::TempDir, Image) {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    fill(folder.path()).expect("the folder can be filled");
    let image = Image::of(folder.path(), Format { mebibytes: 16, ..Format::default() });
    (folder, image)
}

/// Output and exit status of each command line, in the system and with GNU's programs on Linux.
#[track_caller]
fn same_as_gnu(commands: &[&str]) {
    let (folder, image) = disk();
    let script: String = commands.iter().map(|command| format!("{command}; echo \"=> $?\"\n")).collect();
    let ours = Machine::new().disk(image.path()).limit(Duration::from_secs(180));
    let ours = ours.run(&format!("cd /fs/disk0\n{script}")).succeeded();
    let mut theirs = Command::new("bash");
    theirs.args(["-c", &script]).current_dir(folder.path()).env("LC_ALL", "C.UTF-8");
    let theirs = finish(theirs, "GNU's programs", Duration::from_secs(60)).succeeded();
    let parts = |text: &str| text.split_inclusive("=> ").map(String::from).collect::<Vec<_>>();
    for (index, (ours, theirs)) in parts(&ours).into_iter().zip(parts(&theirs)).enumerate() {
        // Each part begins with the status of the previous command.
        let before = index.checked_sub(1).and_then(|before| commands.get(before));
        assert_eq!(ours, theirs, "`{:?}` (the first line: the status of `{before:?}`)", commands.get(index));
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn grep_prints_what_gnu_grep_prints() {
    same_as_gnu(&[
        "grep o a",
        "grep -n o a",
        "grep -v o a",
        "grep -c e a b empty",
        "grep -l two a b words",
        "grep -i ÄRGER letters",
        "grep -F a.b dots",
        "grep a.b dots",
        "grep 'a\\.b' dots",
        "grep 'x*y' dots",
        "grep '[[]x[]]' dots",
        "grep -E '(one|t.o)$' a",
        "grep 'one\\|t.o$' a",
        "grep '^t.*e$' a",
        "grep -E 'e{2}' a",
        "grep -w cat words",
        "grep -x cat words",
        "grep -o '[0-9][0-9]*' mixed",
        "grep -on '[a-z]\\+' mixed",
        "grep -A1 -B1 four a",
        "grep -C 1 -n 77 numbers",
        "grep -c '' a",
        "grep -h e a b",
        "grep -H one a",
        "grep -m 2 e a b",
        "grep -q one a",
        "grep -qv one empty",
        "grep nothing a",
        "grep -e one -e five a",
        "cat a | grep t",
        "cat a | grep -c t - b",
        "grep -r o left | sort",
        "grep -rl e left right | sort",
        "grep -vn o a b",
        "grep '[[:upper:]]' words",
        "grep -i CAT words",
        "grep '\\<cats*\\>' words",
    ]);
}

#[test]
fn grep_says_that_a_binary_file_matches_and_prints_nothing_of_it() {
    let (_folder, image) = disk();
    let run = Machine::new().disk(image.path()).run("cd /fs/disk0; grep -r text binary");
    assert!(run.errors.contains("grep: binary: binary file matches"), "{run}");
    assert_eq!((run.status, run.text().as_str()), (Some(0), ""), "{run}");
}

#[test]
fn sort_and_uniq_print_what_those_of_gnu_print() {
    same_as_gnu(&[
        "sort words",
        "sort -r words",
        "sort -f words",
        "sort -u words runs",
        "sort -fu runs",
        "sort -n mixed table",
        "sort -t : -k 2 table",
        "sort -t: -k2,2n -k1,1r table",
        "sort -t: -k2nr table",
        "sort -t: -k3,3 -s table",
        "sort -k2 spaces",
        "sort -bk 2,2 spaces",
        "sort -k2,2n spaces",
        "sort -k1.2,1.3 a",
        "sort -r -k1,1 spaces",
        "sort numbers | head -n 20",
        "sort -rn numbers | head -n 3",
        "sort -t: -uk1,1f table",
        "cat a b | sort -u",
        "sort -o runs runs words; cat runs",
        "uniq runs",
        "uniq -c runs",
        "uniq -d runs",
        "uniq -u runs",
        "uniq -ci runs",
        "uniq -f 1 spaces",
        "cat a b | sort | uniq -c | sort -rn | head -n 3",
        "uniq empty",
    ]);
}

#[test]
fn cut_seq_tee_and_tail_print_what_those_of_gnu_print() {
    same_as_gnu(&[
        "cut -d: -f2 table",
        "cut -d : -f 1,3 table",
        "cut -f2- tabs",
        "cut -sf2 tabs",
        "cut -c 2-3 a",
        "cut -b1,3- a",
        "cut -d: -f-2 --output-delimiter=/ table",
        "cat table | cut -d : -f 1",
        "seq 5",
        "seq 2 4",
        "seq 1 2 10",
        "seq 5 -2 0",
        "seq 1 -0.5 0",
        "seq -3 -1",
        "seq -0.5 0.25 -0.25",
        "seq -w 8 11",
        "seq -s , 3",
        "seq 0 0.5 2",
        "seq 3 1",
        "seq -w -1 1",
        "seq 100000 | tail -n 1",
        "echo x | tee t1 t2; cat t1 t2",
        "echo y | tee -a t1; cat t1 t2",
        "tail -n3 numbers",
        "tail -n +2998 numbers",
        "cat numbers | tail -n +2998",
        "tail -n +1 b",
        "tail -c 5 b",
        "head -n2 a",
    ]);
}

#[test]
fn diff_prints_what_gnu_diff_prints() {
    same_as_gnu(&[
        "diff a b",
        "diff a a",
        "diff -q a b",
        "diff -u a b | tail -n +3",
        "diff -U1 a b | tail -n +3",
        "diff -U 0 a b | tail -n +3",
        "diff b a",
        "diff empty a",
        "diff -u a empty | tail -n +3",
        "diff -w spaces closer",
        "diff -i runs runs",
        "diff words binary",
        "cat a | diff - b",
        "diff a left/same",
        "diff left/same right",
        "diff -r left right",
        "diff left right",
        "diff -qr left right",
    ]);
}

#[test]
fn xargs_runs_what_gnu_xargs_runs() {
    same_as_gnu(&[
        "seq 5 | xargs echo",
        "seq 5 | xargs -n 2 echo",
        "seq 3 | xargs -I N echo aNb N",
        "seq 3 | xargs",
        "echo \"'a b' c\" | xargs -n1 echo",
        "cat spaces | xargs -d '\\n' -n1 echo",
        "cat empty | xargs -r echo none",
        "cat empty | xargs echo one",
        "echo a b | xargs cat",
        "echo a | xargs grep -c e",
        "echo a words | xargs -n1 grep -q one",
    ]);
}

#[test]
fn find_runs_a_command_for_each_path() {
    let (_folder, image) = disk();
    let run = Machine::new().disk(image.path()).run(
        "cd /fs/disk0; find left --type f --exec 'wc -l'; find right --name x --exec 'cp {} {}.old'; ls right/below; \
         find left --name same --exec false; echo $?",
    );
    let text = run.succeeded();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert_eq!(lines, ["1  left/alone", "2  left/below/x", "1  left/same", "x", "x.old", "1"], "{run}");
}

#[test]
fn too_many_words_say_what_the_limit_is_and_what_to_do() {
    let run = Machine::new().run("words=$(seq 20000); cat $words");
    run.refused(&["cat: cannot start", "PATHS would be 108894 bytes", "may be 65536", "by a pipe"]);
}

#[test]
fn folders_go_with_joined_flags() {
    let (_folder, image) = disk();
    let machine = Machine::new().disk(image.path());
    let text = machine.run("cd /fs/disk0; rm -rf left right none; ls -la | tail -n2 | cut -c1-10; ls").succeeded();
    assert!(text.starts_with("-rw-r--r--\n-rw-r--r--\n") && !text.contains("left"), "{text}");
    image.check();
}

#[test]
fn tail_follows_a_file_that_grows() {
    let (_folder, image) = disk();
    let run = Machine::new().disk(image.path()).run(
        "cd /fs/disk0; echo first > log; tail -f log | head -n 3 > seen &\n sleep 1s; echo second >> log; sleep 1s; \
         echo third >> log; sleep 1s; echo fourth >> log; wait; cat seen",
    );
    assert_eq!(run.succeeded(), "first\nsecond\nthird\n");
}

#[test]
fn sort_says_when_there_is_too_much() {
    let run = Machine::new().limit(Duration::from_secs(180)).run("seq 9000000 | sort | tail -n 1");
    assert!(run.errors.contains("the input exceeds 128 MiB"), "{run}");
    run.orderly();
}

/// A terminal session in the disk's folder.
fn person(image: &Image) -> Terminal {
    let mut terminal = Terminal::start(Machine::new().disk(image.path()).command(None));
    terminal.wait_for("/> ");
    terminal.press("cd /fs/disk0\r");
    terminal.wait_for("disk0> ");
    terminal
}

#[test]
fn less_shows_pages_and_finds_text() {
    let (_folder, image) = disk();
    let mut terminal = person(&image);
    terminal.press("less numbers\r");
    terminal.wait_for("numbers line 1 of 3000");
    terminal.press(" ");
    terminal.wait_for("line 40 of 3000");
    terminal.press("b");
    terminal.wait_for("line 1 of 3000");
    terminal.press("G");
    terminal.wait_for("3000");
    terminal.wait_for("(END)");
    terminal.press("g/77\r");
    terminal.wait_for("line 77 of 3000");
    terminal.press("n");
    terminal.wait_for("line 177 of 3000");
    terminal.press("N");
    terminal.wait_for("line 77 of 3000");
    terminal.press("500g");
    terminal.wait_for("line 500 of 3000");
    terminal.press("/nowhere\r");
    terminal.wait_for("not found");
    terminal.press("q");
    terminal.wait_for("disk0> ");
    terminal.press("seq 200 | less\r");
    terminal.wait_for("line 1 of 200");
    terminal.press("j");
    terminal.wait_for("line 2 of 200");
    // Ctrl-C is an ordinary key there.
    terminal.press("\x03");
    terminal.wait_for("disk0> ");
    terminal.press("echo alive; exit 3\r");
    terminal.wait_for("\nalive\n");
    assert_eq!(terminal.end(), Some(3));
}

#[test]
fn a_page_follows_the_size_of_the_window() {
    let (_folder, image) = disk();
    let mut terminal = person(&image);
    terminal.press("less numbers\r");
    terminal.wait_for("line 1 of 3000");
    terminal.resize(60, 11);
    // The rows above the last are shown again.
    terminal.wait_for("line 1 of 3000");
    terminal.press(" ");
    terminal.wait_for("line 11 of 3000");
    terminal.press("q");
    terminal.wait_for("disk0> ");
}

#[test]
fn a_text_is_edited_and_saved() {
    let (_folder, image) = disk();
    let mut terminal = person(&image);
    terminal.press("edit new\r");
    terminal.wait_for("a new file");
    terminal.press("Zeile eins äöü\rzwei\rdrei");
    terminal.wait_for("line 3 of 3");
    // Up, start of line, cut line, end, paste.
    terminal.press("\x1b[A\x01\x0b\x1b>\r\x19");
    terminal.wait_for("line 4 of 4");
    // Undo step by step, and redo.
    terminal.press("\x15");
    terminal.wait_for("line 3 of 3");
    terminal.press("\x12");
    terminal.wait_for("line 4 of 4");
    terminal.press("\x13");
    terminal.wait_for("saved, 28 bytes");
    terminal.press("\x06eins\r");
    terminal.wait_for("line 1 of 4, column 7");
    terminal.press("X\x11");
    terminal.wait_for("save changes?");
    terminal.press("\x03");
    terminal.wait_for("^S save");
    terminal.press("\x11n");
    terminal.wait_for("disk0> ");
    terminal.press("wc -l new; cat new; echo done\r");
    terminal.wait_for("Zeile eins äöü\ndrei\nzwei\ndone\n");
}

#[test]
fn an_editor_that_is_killed_gives_the_screen_back() {
    let (_folder, image) = disk();
    let mut terminal = person(&image);
    terminal.press("shell -c 'sleep 3s; kill edit' &\rsleep 1s; edit a\r");
    terminal.wait_for("line 1 of 8");
    terminal.wait_for("disk0> ");
    assert!(String::from_utf8_lossy(&terminal.bytes()).contains("\x1b[?1049l"), "{}", terminal.screen());
    terminal.press("echo alive\r");
    terminal.wait_for("\nalive\n");
}

#[test]
fn what_is_no_text_is_not_edited() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    fs::write(folder.path().join("latin"), b"caf\xe9\n").expect("a file");
    let image = Image::of(folder.path(), Format { mebibytes: 16, ..Format::default() });
    let mut terminal = person(&image);
    terminal.press("edit latin\r");
    terminal.wait_for("latin: not text: byte 3 is not UTF-8");
    terminal.wait_for("disk0> ");
}

#[test]
fn q_ends_top() {
    let mut terminal = Terminal::start(Machine::new().command(None));
    terminal.wait_for("/> ");
    terminal.press("top --interval 100ms\r");
    terminal.wait_for("CPU %");
    terminal.press("q");
    terminal.wait_for("/> ");
    terminal.press("clear\r");
    terminal.wait_for("/> ");
    terminal.press("echo status $?\r");
    terminal.wait_for("\nstatus 0\n");
}

//! Host folders: programs behave as on ext2, with the tests of `files`, and changes are visible in both directions.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use end_to_end::{Live, Machine, Run, Site, finish};
use tempfile::TempDir;

/// A folder with `a` (three lines), `numbers` (20,000 lines), a folder, a second name and a link.
fn small() -> TempDir {
    let root = tempfile::tempdir().expect("a folder for temporary files");
    let at = |name: &str| root.path().join(name);
    let made = || -> std::io::Result<()> {
        fs::write(at("a"), "one\ntwo\nthree\n")?;
        fs::write(at("numbers"), numbers())?;
        fs::create_dir_all(at("folder/below"))?;
        fs::write(at("folder/below/x.txt"), "x\n")?;
        fs::hard_link(at("a"), at("folder/hard"))?;
        symlink("a", at("link"))
    };
    made().expect("the folder can be filled");
    root
}

fn numbers() -> String {
    (1..=20_000).map(|number| format!("{number}\n")).collect()
}

fn machine(folder: &Path, options: &str) -> Machine {
    let folder = folder.to_str().expect("a path of text");
    Machine::new().folder(&format!("work={folder}{options}")).limit(Duration::from_secs(120))
}

/// Runs commands in the folder.
fn run(folder: &Path, commands: &str) -> Run {
    machine(folder, "").run(&format!("cd /fs/work; {commands}"))
}

#[track_caller]
fn on(folder: &TempDir, commands: &str) -> String {
    run(folder.path(), commands).succeeded()
}

#[track_caller]
fn read(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn copies_replace_files_and_nothing_is_copied_onto_itself() {
    let folder = small();
    let text = on(
        &folder,
        "cp numbers copy; cp a copy; cat copy; cp link linked; stat linked | head -n 2; cp a folder; ls folder",
    );
    assert_eq!(text, "one\ntwo\nthree\n     name  /fs/work/linked\n     kind  file\na\nbelow/\nhard\n");
    for (commands, parts) in [
        ("cp a a", ["cp: a", "onto itself"]),
        ("cp a folder/hard", ["cp: a", "onto itself"]),
        ("cp folder b", ["cp: folder", "-r"]),
        ("cp -r folder folder/below", ["cp: folder", "into itself"]),
        ("cp -r folder a", ["cp: a", "not a folder"]),
    ] {
        run(folder.path(), commands).refused(&parts);
    }
    assert_eq!(on(&folder, "cp -r folder again; find again --type f | wc -l"), "3\n");
    assert_eq!(read(&folder, "again/below/x.txt"), "x\n");
}

#[test]
fn folders_and_files_are_made_moved_and_removed() {
    let folder = small();
    let text = on(
        &folder,
        "mkdir -p m/n/o; mkdir -p m/n; rmdir m/n/o; rm link; mv a b; mv folder moved; rm -r moved/below; rm -f none; \
         touch new; touch --time '2020-02-03 04:05:06' numbers; ls; ls moved",
    );
    assert_eq!(text, "b\nm/\nmoved/\nnew\nnumbers\nhard\n");
    assert_eq!(fs::metadata(folder.path().join("numbers")).expect("there").mtime(), 1_580_702_706);
    for (commands, parts) in [
        ("mkdir m", ["mkdir: m", "taken"]),
        ("mkdir -p b/c", ["mkdir: b/c", "not a folder"]),
        ("rmdir m", ["rmdir: m", "not empty"]),
        ("rmdir b", ["rmdir: b", "not a folder"]),
        ("rm m", ["rm: m", "rm -r"]),
        ("rm none", ["rm: none", "not found"]),
        ("mv m m/n", ["mv: m", "into itself"]),
    ] {
        run(folder.path(), commands).refused(&parts);
    }
    let names: BTreeSet<String> = fs::read_dir(folder.path())
        .expect("there")
        .map(|entry| entry.expect("a name").file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["b", "m", "moved", "new", "numbers"]);
}

#[test]
fn text_and_output_go_into_files() {
    let folder = small();
    let text = on(
        &folder,
        "write w hello world; write --append w again; echo piped | write p; write -n w2 x; cat w p w2; echo; \
         echo one > r; echo two >> r; cat r; for n in 1 2 3; do echo $n >> loop; end; cat loop; \
         cat numbers > big; wc -c big; tail -n 2 big; head -n 1 big; sync; sync big",
    );
    assert_eq!(text, "hello world\nagain\npiped\nx\none\ntwo\n1\n2\n3\n108894  big\n19999\n20000\n1\n");
    assert_eq!((read(&folder, "w"), read(&folder, "big")), ("hello world\nagain\n".into(), numbers()));
    run(folder.path(), "echo a > folder").refused(&["folder: it is a folder"]);
    run(folder.path(), "echo a > a/b").refused(&["a/b", "not a folder"]);
}

#[test]
fn names_are_made_for_files_and_none_that_leads_out() {
    let folder = small();
    let text =
        on(&folder, "ln a b; ln -s folder/below way; cat b way/x.txt; write b changed; cat a; stat a | grep links");
    assert!(text.starts_with("one\ntwo\nthree\nx\nchanged\n"), "{text}");
    assert_eq!(fs::read_link(folder.path().join("way")).expect("a link").to_str(), Some("folder/below"));
    for target in ["/etc/passwd", "../x", "folder/../../x"] {
        run(folder.path(), &format!("ln -s {target} bad")).refused(&["ln: bad", "may not"]);
    }
    run(folder.path(), "ln folder f").refused(&["ln: f"]);
    assert!(!folder.path().join("bad").is_symlink());
}

#[test]
fn links_are_followed_inside_and_refused_where_they_lead_out() {
    let folder = small();
    let outside = tempfile::tempdir().expect("a folder for temporary files");
    fs::write(outside.path().join("secret"), "secret\n").expect("a file");
    fs::create_dir(folder.path().join("deep")).expect("a folder");
    for (target, name) in [
        (Path::new("../folder/../a"), "deep/inside"),
        (outside.path(), "absolute"),
        (Path::new("../../../../../../etc"), "deep/up"),
        (Path::new("around"), "around"),
        (Path::new("../folder/below"), "deep/way"),
    ] {
        symlink(target, folder.path().join(name)).expect("a link");
    }
    assert_eq!(on(&folder, "cat deep/inside"), "one\ntwo\nthree\n");
    // The second time, the host has all of the path in its cache of names.
    assert_eq!(on(&folder, "cat deep/way/x.txt deep/way/x.txt"), "x\nx\n");
    run(folder.path(), "cat absolute/secret").refused(&["absolute/secret", "may not"]);
    run(folder.path(), "cat deep/up/passwd").refused(&["deep/up/passwd", "may not"]);
    run(folder.path(), "echo x > absolute/new").refused(&["absolute/new", "may not"]);
    run(folder.path(), "cat around").refused(&["around", "links"]);
    let followed =
        machine(folder.path(), ":follow").run("cat /fs/work/absolute/secret; echo x > /fs/work/absolute/new");
    assert_eq!(followed.text(), "secret\n");
    followed.refused(&["absolute/new", "read only"]);
    assert!(!outside.path().join("new").exists());
}

#[test]
fn what_is_no_file_is_listed_and_refused_without_waiting() {
    let folder = small();
    let made = Command::new("mkfifo").arg(folder.path().join("pipe")).status().expect("mkfifo of coreutils");
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).expect("a socket");
    assert_eq!(on(&folder, "ls -l | grep -c '^[?]'"), "2\n");
    for name in ["pipe", "socket"] {
        run(folder.path(), &format!("cat {name}")).refused(&[name, "neither a file nor a folder"]);
        run(folder.path(), &format!("echo x > {name}")).refused(&[name, "does not support this"]);
        assert_eq!(on(&folder, &format!("rm {name}")), "");
        assert!(!folder.path().join(name).exists());
    }
}

#[test]
fn names_that_are_no_text_are_shown_escaped_and_keep_their_bytes() {
    let folder = small();
    let name = |bytes: &[u8]| folder.path().join(std::ffi::OsStr::from_bytes(bytes));
    fs::write(name(b"caf\xe9"), "latin\n").expect("a file");
    fs::write(name(b"caf\xc3\xa9"), "text\n").expect("a file");
    fs::write(name(b"new\nline"), "").expect("a file");
    let text = on(
        &folder,
        "cat 'caf\\xe9' 'caf\u{e9}'; mv 'caf\\xe9' 'na\\xefve'; mkdir 'd\\xff'; rm 'caf\u{e9}'; ls | wc -l",
    );
    assert_eq!(text, "latin\ntext\n7\n");
    assert_eq!(fs::read(name(b"na\xefve")).expect("renamed"), b"latin\n");
    assert!(name(b"d\xff").is_dir() && !name(b"caf\xc3\xa9").exists());
    run(folder.path(), "cat 'a\\x5c'").refused(&["invalid path", "UTF-8"]);
}

#[test]
fn a_folder_that_is_read_only_is_read_and_not_changed() {
    let folder = small();
    let machine = machine(folder.path(), ":ro");
    assert_eq!(
        machine.run("cat /fs/work/a; cp /fs/work/numbers /dev/null || echo; ls /fs/work | wc -l").text().lines().next(),
        Some("one")
    );
    for (commands, name) in [
        ("echo x > /fs/work/a", "a"),
        ("echo x > /fs/work/new", "new"),
        ("rm /fs/work/a", "a"),
        ("mkdir /fs/work/m", "m"),
        ("mv /fs/work/a /fs/work/b", "a"),
        ("ln /fs/work/a /fs/work/b", "b"),
        ("touch /fs/work/a", "a"),
    ] {
        machine.run(commands).refused(&[name, "read only"]);
    }
    assert_eq!(
        (read(&folder, "a"), fs::read_dir(folder.path()).expect("there").count()),
        ("one\ntwo\nthree\n".into(), 4)
    );
}

#[test]
fn permissions_are_those_asked_for_but_for_what_runs_as_its_owner() {
    let folder = small();
    fs::set_permissions(folder.path().join("a"), fs::Permissions::from_mode(0o4755)).expect("set");
    on(&folder, "cp --keep numbers kept; echo x > made; mkdir dir");
    let mode = |name: &str| fs::metadata(folder.path().join(name)).expect("there").permissions().mode() & 0o7777;
    assert_eq!((mode("kept"), mode("dir")), (mode("numbers"), 0o755));
    run(folder.path(), "cp --keep a copy").text();
    assert_eq!(mode("copy") & 0o7000, 0, "no program that runs as its owner is made");
}

#[test]
fn what_the_host_changes_is_seen_at_the_next_look() {
    let folder = small();
    let mut live = Live::start(machine(folder.path(), "").command(None));
    assert_eq!(live.ask("cat /fs/work/a"), "one\ntwo\nthree\n");
    fs::write(folder.path().join("a"), "changed by the host\n").expect("written");
    assert_eq!(live.ask("cat /fs/work/a"), "changed by the host\n");
    fs::rename(folder.path().join("a"), folder.path().join("b")).expect("renamed");
    fs::write(folder.path().join("new"), "new\n").expect("written");
    assert_eq!(live.ask("cat /fs/work/b /fs/work/new"), "changed by the host\nnew\n");
    assert_eq!(live.ask("wc -c /fs/work/new").split_whitespace().next(), Some("4"));
    fs::remove_file(folder.path().join("new")).expect("removed");
    assert_eq!(live.ask("ls /fs/work"), "b\nfolder/\nlink@\nnumbers\n");
    assert_eq!(live.end(), Some(0));
}

#[test]
fn what_the_host_changes_is_announced_to_who_asked_for_it() {
    let folder = small();
    let at = |name: &str| folder.path().join(name);
    let out = tempfile::tempdir().expect("a folder");
    let machine = machine(folder.path(), "").folder(&format!("out={}", out.path().display()));
    let mut live = Live::start(machine.command(None));
    live.ask("changes /fs/work > /fs/out/all &");
    live.ask("changes /fs/work/a > /fs/out/one &");
    // Both are subscribed and wait for the first change.
    thread::sleep(Duration::from_secs(1));
    let told = |file: &str, wanted: &[&str]| {
        let begin = std::time::Instant::now();
        loop {
            let text = fs::read_to_string(out.path().join(file)).unwrap_or_default();
            let lines: BTreeSet<String> =
                text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
            if wanted.iter().all(|line| lines.contains(*line)) {
                return lines.len();
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "{wanted:?} are not all among:\n{text}");
            thread::sleep(Duration::from_millis(100));
        }
    };
    fs::write(at("a"), "other\n").expect("written");
    assert_eq!(told("one", &["changed a"]), 1);
    // The file has a second name in the folder.
    assert_eq!(told("all", &["changed a", "changed folder/hard"]), 2);
    fs::create_dir(at("made")).expect("a folder");
    fs::write(at("made/new"), "new\n").expect("written");
    symlink("a", at("way")).expect("a link");
    fs::remove_file(at("folder/below/x.txt")).expect("removed");
    let wanted = ["folder made", "changed made/new", "link way", "removed folder/below/x.txt"];
    assert_eq!(told("all", &wanted), 6);
    // More changes than are reported individually.
    for number in 0..100 {
        fs::write(at(&format!("made/{number}")), "").expect("written");
    }
    assert!(told("all", &["changed ."]) >= 7);
    fs::remove_file(at("a")).expect("removed");
    told("one", &["changed a", "removed a"]);
    live.ask("kill changes");
    let large = at("large");
    fs::create_dir(&large).expect("a folder");
    for number in 0..1100 {
        fs::write(large.join(number.to_string()), "").expect("written");
    }
    live.ask_what_says("changes /fs/work/large", "too many names below it");
    assert_eq!(live.end(), Some(0));
}

#[test]
fn a_name_that_begins_with_a_space_is_watched() {
    let folder = small();
    fs::write(folder.path().join(" spaced"), "").expect("written");
    let mut live = Live::start(machine(folder.path(), "").command(None));
    live.ask("changes '/fs/work/ spaced' > /fs/work/announced &");
    // It is subscribed and waits for the first change.
    thread::sleep(Duration::from_secs(1));
    fs::write(folder.path().join(" spaced"), "changed\n").expect("written");
    let begin = std::time::Instant::now();
    let announced = || fs::read_to_string(folder.path().join("announced")).unwrap_or_default();
    while announced().is_empty() && begin.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(100));
    }
    assert!(announced().starts_with("changed      spaced\n"), "{:?}", announced());
    live.ask("kill changes");
    assert_eq!(live.end(), Some(0));
}

#[test]
fn a_driver_that_is_killed_comes_back_and_files_are_read_on() {
    let folder = small();
    let round = "kill host-folder; cat a > last || echo lost; i=$((i + 1))";
    let commands = format!("i=0; while test $i '<' 10; do {round}; end; cat last; hash numbers");
    let text = on(&folder, &commands);
    let mut sum = Command::new("sha256sum");
    sum.arg("numbers").current_dir(folder.path());
    let sum = finish(sum, "sha256sum", Duration::from_secs(60)).succeeded();
    assert_eq!(text, format!("one\ntwo\nthree\n{sum}"));
}

#[test]
fn several_folders_are_there_at_once_and_what_cannot_be_one_is_one_sentence() {
    let (one, two) = (small(), small());
    fs::write(two.path().join("a"), "second\n").expect("written");
    let path = |folder: &TempDir| folder.path().to_str().expect("a path of text").to_owned();
    let machine = Machine::new().folder(&format!("one={}", path(&one))).folder(&format!("two={}:ro", path(&two)));
    assert_eq!(
        machine.run("cat /fs/one/a /fs/two/a; mv /fs/one/numbers /fs/one/n; ls /fs").succeeded(),
        "one\ntwo\nthree\nsecond\none/\ntwo/\n"
    );
    Machine::new().folder("x=/no/such").run("true").refused(&["folder /no/such", "there is no such folder"]);
    Machine::new().folder("x=/etc/passwd").run("true").refused(&["folder /etc/passwd", "no folder"]);
    assert!(fs::symlink_metadata("/dev/null").expect("there").file_type().is_char_device());
}

#[test]
fn sixty_four_folders_are_served_and_cost_little_before_they_are_used() {
    let root = tempfile::tempdir().expect("a folder for temporary files");
    let mut machine = Machine::new().limit(Duration::from_secs(120));
    let mut expected = String::new();
    for number in 0..64 {
        let folder = root.path().join(format!("d{number}"));
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("name"), format!("folder {number}\n")).expect("written");
        machine = machine.folder(&format!("d{number}={}", folder.to_str().expect("a path of text")));
        expected += &format!("folder {number}\n");
    }
    let run =
        machine.run("for n in $(seq 0 63); do cat /fs/d$n/name; end; echo changed > /fs/d63/name; sysinfo --json");
    let text = run.succeeded();
    assert!(text.starts_with(&expected), "{run}");
    assert_eq!(fs::read_to_string(root.path().join("d63/name")).expect("it is there"), "changed\n");
    let exchange = text.lines().find_map(|line| line.trim().strip_prefix("\"exchange bytes\": ")).expect("a counter");
    let exchange: u64 = exchange.trim_end_matches(',').parse().expect("a number");
    // Each used one or two blocks of 136 KiB.
    assert!(exchange < 64 * 400_000, "{exchange}");
}

#[test]
fn web_serves_the_folder_as_it_is_now() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let page = folder.path().join("page.txt");
    fs::write(&page, "first\n").expect("written");
    symlink("/etc/passwd", folder.path().join("out")).expect("a link");
    let site = Site::serve(folder.path());
    let get = |path: &str| {
        let mut curl = Command::new("curl");
        curl.args(["-s", "-w", " %{http_code}", &site.url(path)]);
        finish(curl, path, Duration::from_secs(60)).text()
    };
    assert_eq!(get("/page.txt"), "first\n 200");
    fs::write(&page, "second, and longer\n").expect("written");
    fs::write(folder.path().join("new.txt"), "new\n").expect("written");
    thread::sleep(Duration::from_secs(2));
    assert_eq!((get("/page.txt"), get("/new.txt")), ("second, and longer\n 200".into(), "new\n 200".into()));
    fs::remove_file(&page).expect("removed");
    thread::sleep(Duration::from_secs(2));
    assert!(get("/page.txt").ends_with(" 404"));
    assert!(get("/out").ends_with(" 403") && !get("/out").contains("root:"));
    site.end();
}

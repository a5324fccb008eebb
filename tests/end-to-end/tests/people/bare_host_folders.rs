//! Host folders on bare machines, over virtio-9p, with QEMU's server.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::{BareMachine, KINDS, Supervisor};

test_needs::needs!(Qemu);

/// Maximum delay until a change on the host is visible, on a busy host.
const MAX_STALE: Duration = Duration::from_secs(15);

#[test]
fn a_folder_is_read_and_changed_on_both_machines() {
    for kind in KINDS {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a"), "one\ntwo\n").expect("written");
        fs::write(at("large"), vec![b'x'; 300_000]).expect("written");
        fs::create_dir(at("sub")).expect("a folder");
        symlink("../a", at("sub/inside")).expect("a link");
        symlink("/etc/passwd", at("out")).expect("a link");
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().expect("mkfifo").success());
        let option = format!("work={}", folder.path().to_str().expect("a path of text"));
        let commands = "cd /fs/work; cat a sub/inside; wc -c large; cp large copy; echo more >> a; mkdir -p x/y; mv a x/y/b; \
            ls; rmdir x || echo full; cat out || echo refused; cat pipe || echo refused; ln -s sub/inside way; cat way || echo gone; \
            sync; rm large; exit 0";
        let run = BareMachine::new(kind).with(&["--folder", &option]).run(commands);
        let text = run.text();
        let expected =
            "one\ntwo\none\ntwo\n300000  large\ncopy\nlarge\nout@\npipe\nsub/\nx/\nfull\nrefused\nrefused\ngone\n";
        assert_eq!(text, expected, "{run}");
        assert_eq!(fs::read_to_string(at("x/y/b")).expect("moved"), "one\ntwo\nmore\n");
        assert_eq!((fs::read(at("copy")).expect("copied").len(), at("large").exists()), (300_000, false));
        let reading = format!("{option}:ro");
        let run =
            BareMachine::new(kind).with(&["--folder", &reading]).run("cat /fs/work/x/y/b; echo x > /fs/work/x/y/b");
        assert_eq!(run.text(), "one\ntwo\nmore\n", "{run}");
        run.refused(&["/fs/work/x/y/b", "read only"]);
    }
}

#[test]
fn a_bare_machine_serves_the_folder_as_it_is_now_and_logs_to_a_file_of_the_host() {
    for kind in KINDS {
        let supervisor = Supervisor::of_small_site();
        let logs = supervisor.folder().join("logs");
        fs::create_dir(&logs).expect("a folder");
        let log = logs.join("access.log");
        let running =
            supervisor.start(&["--machine", kind, "--access-log", log.to_str().expect("a path of this test's")]);
        let mut client = supervisor.client();
        assert_eq!(client.get("/dir00001/class2_3", "").text(), "a line of the file itself\n", "{kind}");
        fs::write(supervisor.site().join("dir00001/class2_3"), "changed on the host\n").expect("written");
        fs::write(supervisor.site().join("new"), "new\n").expect("written");
        let begin = Instant::now();
        while client.get("/dir00001/class2_3", "").text() != "changed on the host\n" {
            assert!(begin.elapsed() < MAX_STALE, "{kind}: the change is not served");
            thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(client.get("/new", "").text(), "new\n", "{kind}");
        assert_eq!(client.get("/last", "").status, 404, "{kind}");
        supervisor.stop(running);
        let text = fs::read_to_string(&log).unwrap_or_default();
        assert!(text.contains("\"GET /last HTTP/1.1\" 404 "), "{kind}: what was asked last is missing:\n{text}");
    }
}

#[test]
fn links_that_lead_out_are_not_followed_in_qemu_and_that_is_said_before_the_start() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let option = format!("work={}:follow", folder.path().to_str().expect("a path of text"));
    for kind in KINDS {
        let run = BareMachine::new(kind).with(&["--folder", &option]).run("true");
        run.refused(&["QEMU does not follow links that lead out of", "remove `:follow`"]);
        assert_eq!(run.errors.lines().count(), 1, "{run}");
    }
}

#[test]
fn a_pc_serves_sixty_four_folders_and_a_microvm_says_how_many_it_can() {
    let root = tempfile::tempdir().expect("a folder for temporary files");
    let options: Vec<String> = (0..64)
        .map(|number| {
            let folder = root.path().join(format!("d{number}"));
            fs::create_dir(&folder).expect("a folder");
            fs::write(folder.join("name"), format!("folder {number}\n")).expect("written");
            format!("d{number}={}", folder.to_str().expect("a path of text"))
        })
        .collect();
    let words = |count: usize| options[..count].iter().flat_map(|option| ["--folder", option]).collect::<Vec<_>>();
    let commands = |count: usize| format!("for n in $(seq 0 {}); do cat /fs/d$n/name; end", count - 1);
    let expected = |count: usize| (0..count).map(|number| format!("folder {number}\n")).collect::<String>();
    let run = BareMachine::new("qemu").with(&words(64)).run(&commands(64));
    assert_eq!(run.text(), expected(64), "{run}");
    let run = BareMachine::new("microvm").with(&words(20)).run(&commands(20));
    assert_eq!(run.text(), expected(20), "{run}");
    let run = BareMachine::new("microvm").with(&words(24)).run("true");
    run.refused(&["too many microvm devices", "use at most", "--machine qemu"]);
}

#[test]
fn changes_of_a_folder_are_announced_in_qemu_too() {
    for kind in KINDS {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        fs::write(folder.path().join("a"), "one\n").expect("written");
        let option = format!("work={}", folder.path().to_str().expect("a path of text"));
        let results = tempfile::tempdir().expect("a folder for temporary files");
        let out = format!("out={}", results.path().to_str().expect("a path of text"));
        let commands = "changes -n 3 /fs/work > /fs/out/told & sleep 5; write /fs/work/a other; mkdir /fs/work/d; \
            write /fs/work/d/new x; wait; cat /fs/out/told; exit 0";
        let run = BareMachine::new(kind).with(&["--folder", &option, "--folder", &out]).run(commands);
        let mut told: Vec<String> =
            run.text().lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        told.sort_unstable();
        assert_eq!(told, ["changed a", "changed d/new", "folder d"], "{kind}: {run}");
    }
}

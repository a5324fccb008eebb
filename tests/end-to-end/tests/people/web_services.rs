//! A site as a service of the host: without standard input it serves until SIGTERM, and notifies its supervisor.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::{Supervisor, repository, sing};

const FORM: &[u8] = b"urlroot=/spec/static&dir=1&class=2&num=3&client=77";
/// Timeout for a killed process to be gone.
const MAX_FOR_END: Duration = Duration::from_secs(5);

/// Timeout for a log line to be written; the server flushes several times a second.
const MAX_FOR_LOG: Duration = Duration::from_secs(20);

/// Numbers of the posts.
fn posted(supervisor: &Supervisor) -> BTreeSet<u64> {
    let log = supervisor.client().get("/spec/command/fetch", "").text();
    log.lines().filter_map(|line| line.split_ascii_whitespace().next()?.parse().ok()).collect()
}

fn post(supervisor: &Supervisor) {
    let fields = format!("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n", FORM.len());
    let fields = format!("Cookie: my_cookie=42\r\n{fields}");
    let answer = supervisor.client().ask("POST", "/spec/post", &fields, FORM);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn without_an_input_a_site_serves_until_it_is_asked_to_end() {
    let supervisor = Supervisor::of_small_site();
    let running = supervisor.start(&[]);
    let mut client = supervisor.client();
    assert_eq!(client.get("/dir00001/class2_3", "").status, 200);
    let health = client.get("/status/health", "");
    assert_eq!((health.status, health.text().as_str()), (200, "ok\n"));
    let errors = supervisor.errors();
    let announced = format!("singularity: serving http://localhost:{}/; SIGTERM or Ctrl-C ends it", supervisor.port());
    let line = errors.lines().find(|line| line.contains(&announced)).unwrap_or_else(|| panic!("{errors}"));
    assert!(line.contains(&format!("(process {})", running.process())), "{line}");
    let is_time = |text: &str| text.len() == 24 && text.starts_with("20") && text.ends_with('Z');
    assert!(line.split_once(' ').is_some_and(|(time, _)| is_time(time)), "{line}");
    // An open connection does not delay the end.
    supervisor.stop(running);
    assert_eq!(supervisor.errors().lines().count(), 1, "{}", supervisor.errors());
}

#[test]
fn nothing_but_the_folder_and_the_status_is_served_and_nobody_can_write() {
    let supervisor = Supervisor::of_small_site();
    fs::create_dir(supervisor.site().join("status")).expect("a folder");
    let running = supervisor.start(&["--log", "json"]);
    let mut client = supervisor.client();
    for path in ["/hello", "/spec/", "/spec/command/fetch", "/fault/echo"] {
        assert_eq!(client.get(path, "").status, 404, "{path}");
        assert_eq!(client.ask("POST", path, "Content-Length: 1\r\n", b"x").status, 405, "{path}");
    }
    assert_eq!(client.get("/status/", "").status, 200);
    let errors = supervisor.errors();
    assert!(errors.contains("web-status serves /status, which hides `/status` of "), "{errors}");
    let json: Vec<&str> = errors.lines().filter(|line| line.starts_with('{')).collect();
    assert!(
        json.iter().any(|line| line.contains("\"program\":\"singularity\",\"text\":\"serving http://")),
        "{errors}"
    );
    supervisor.stop(running);
}

#[test]
fn who_serves_others_shows_them_no_processes_and_an_application_of_ones_own_has_its_path() {
    let supervisor = Supervisor::of_small_site();
    let running = supervisor.start(&["--listen", "0.0.0.0", "--app", "/greet=web-hello greeting=Servus"]);
    let mut client = supervisor.client();
    assert_eq!(client.get("/status/health", "").status, 200);
    for path in ["/status/", "/status/status.json", "/status/table", "/hello"] {
        assert_eq!(client.get(path, "").status, 404, "{path}");
    }
    assert!(client.get("/greet/", "").text().contains("Servus, world!"));
    supervisor.stop(running);
}

/// A custom system whose primary program is a server needs no option to be a service.
#[test]
fn a_system_whose_primary_program_serves_is_a_service() {
    let supervisor = Supervisor::of_small_site();
    let trial = fs::read_to_string(repository().join("systems/web-trial.toml")).expect("the system for tests");
    let (before, shell) = trial.split_once("[[program]]\nname = \"shell\"").expect("it has a shell");
    let (_, rules) = shell.split_once("[[bind]]").expect("it has rules");
    let own = format!("{before}[[bind]]{rules}").replace("primary = \"shell\"", "primary = \"web-ordinary\"");
    let own = own.replacen("port = 0", &format!("port = {}", supervisor.port()), 1);
    let manifest = supervisor.folder().join("mine.toml");
    fs::write(&manifest, own).expect("a file can be written");
    let mut build = Command::new(sing());
    build.args(["build", "--system"]).arg(&manifest).current_dir(repository());
    assert!(build.output().is_ok_and(|built| built.status.success()), "it does not build");
    let mut command = Command::new(sing());
    command.args(["run", "--system"]).arg(&manifest);
    let running = supervisor.start_command(command);
    // Its disk is the demo disk.
    assert_eq!(supervisor.client().get("/", "").status, 200);
    let errors = supervisor.errors();
    assert!(errors.contains("Z singularity: the system serves; SIGTERM or Ctrl-C ends it"), "{errors}");
    supervisor.stop(running);
}

/// Starts, reloads, stops and kills it repeatedly: synced data survives.
fn again_and_again(turns: u64) {
    let supervisor = Supervisor::of_small_site();
    let mut synced = BTreeSet::new();
    for turn in 0..turns {
        let running = supervisor.start(&["--demo"]);
        let there = posted(&supervisor);
        assert!(there.is_superset(&synced), "turn {turn}: of {synced:?} there are {there:?}");
        post(&supervisor);
        let posted = posted(&supervisor);
        assert!(posted.len() > there.len(), "turn {turn}: {posted:?}");
        if turn % 2 == 0 {
            supervisor.reload(&running);
            assert_eq!(supervisor.client().get("/dir00001/class2_3", "").status, 200, "turn {turn}");
            supervisor.stop(running);
            synced = posted;
        } else {
            supervisor.kill(running);
        }
    }
    assert!(synced.len() as u64 >= turns / 2, "{synced:?}");
    is_left_by_all(&supervisor);
}

/// Asserts that no process has the log's disk open.
#[track_caller]
fn is_left_by_all(supervisor: &Supervisor) {
    let disk = supervisor.log().into_os_string().into_string().expect("a path of this test's");
    let has_it = |process: &PathBuf| {
        let words = fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(&disk)
    };
    let begin = Instant::now();
    loop {
        let processes = fs::read_dir("/proc").expect("processes").flatten().map(|entry| entry.path());
        let left: Vec<_> = processes.filter(has_it).collect();
        if left.is_empty() {
            return;
        }
        assert!(begin.elapsed() < MAX_FOR_END, "{left:?} still run");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_was_synced_is_there_after_each_start() {
    again_and_again(6);
}

#[test]
#[ignore = "takes minutes"]
fn what_was_synced_is_there_after_a_hundred_starts() {
    again_and_again(100);
}

#[test]
fn the_log_may_be_a_file_of_the_host() {
    let supervisor = Supervisor::of_small_site();
    let log = supervisor.folder().join("logs/access.log");
    fs::create_dir(supervisor.folder().join("logs")).expect("a folder");
    let running = supervisor.start(&["--access-log", log.to_str().expect("a path of this test's")]);
    assert_eq!(supervisor.client().get("/dir00001/class2_3", "").status, 200);
    let begin = Instant::now();
    loop {
        let text = fs::read_to_string(&log).unwrap_or_default();
        if text.contains("\"GET /dir00001/class2_3 HTTP/1.1\" 200 ") {
            break;
        }
        assert!(begin.elapsed() < MAX_FOR_LOG, "{text}\n{}", supervisor.errors());
        thread::sleep(Duration::from_millis(50));
    }
    supervisor.stop(running);
}

/// After a reload, a log renamed by logrotate(8) gets no more lines; the new one has even the last line.
#[track_caller]
fn a_log_is_rotated(words: &[&str]) {
    let supervisor = Supervisor::of_small_site();
    let log = supervisor.folder().join("logs/access.log");
    fs::create_dir(supervisor.folder().join("logs")).expect("a folder");
    let own = ["--access-log", log.to_str().expect("a path of this test's")];
    let running = supervisor.start(&[words, &own].concat());
    assert_eq!(supervisor.client().get("/before", "").status, 404);
    let begin = Instant::now();
    while !fs::read_to_string(&log).unwrap_or_default().contains("/before") {
        assert!(begin.elapsed() < MAX_FOR_LOG, "{}", supervisor.errors());
        thread::sleep(Duration::from_millis(50));
    }
    let rotated = log.with_extension("rotated");
    fs::rename(&log, &rotated).expect("the log can be renamed");
    fs::write(supervisor.site().join("page"), "as it was\n").expect("a file can be written");
    supervisor.reload(&running);
    let mut client = supervisor.client();
    assert_eq!(client.get("/page", "").text(), "as it was\n");
    fs::write(supervisor.site().join("page"), "as it is\n").expect("a file can be written");
    supervisor.reload(&running);
    assert_eq!(client.get("/page", "").text(), "as it is\n", "a connection outlives a reload");
    assert_eq!(client.get("/last", "").status, 404);
    supervisor.stop(running);
    let (old, new) = (fs::read_to_string(&rotated).expect("there"), fs::read_to_string(&log).expect("there"));
    assert!(!old.contains("/page") && new.matches("\"GET /page ").count() == 2, "{old}\nand\n{new}");
    assert!(new.contains("\"GET /last HTTP/1.1\" 404 "), "the last line is missing: {new}");
}

#[test]
fn a_service_reloads_and_loses_no_line_of_its_log() {
    a_log_is_rotated(&[]);
}

#[test]
fn a_service_on_a_bare_machine_reloads_and_loses_no_line_of_its_log() {
    test_needs::needs!(Qemu);
    a_log_is_rotated(&["--machine", "microvm"]);
}

#[test]
fn a_service_reloads_though_it_was_started_with_sighup_ignored() {
    let supervisor = Supervisor::of_small_site();
    let running = supervisor.start_command(end_to_end::with_signals("--ignore-signal=HUP", &supervisor.command(&[])));
    supervisor.reload(&running);
    supervisor.stop(running);
}

#[test]
fn the_last_lines_of_the_log_are_on_its_disk() {
    let supervisor = Supervisor::of_small_site();
    let running = supervisor.start(&[]);
    assert_eq!(supervisor.client().get("/last", "").status, 404);
    supervisor.stop(running);
    let run =
        end_to_end::Machine::new().disk(format!("{}:ro", supervisor.log().display())).run("cat /fs/disk0/access.log");
    assert!(run.text().contains("\"GET /last HTTP/1.1\" 404 "), "{run}");
}

#[test]
fn a_response_under_way_is_finished_and_logged_before_the_service_ends() {
    const BYTES: usize = 48 << 20;
    let supervisor = Supervisor::of_small_site();
    let content: Vec<u8> = (0..BYTES).map(|at| (at / 7 % 251) as u8).collect();
    fs::write(supervisor.site().join("large"), &content).expect("a file can be written");
    let running = supervisor.start(&[]);
    let mut idle = supervisor.client();
    assert_eq!(idle.get("/dir00001/class2_3", "").status, 200);
    let mut client = supervisor.client();
    // More than the host's sockets can buffer is left when the service is told to end.
    assert!(client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    let mut first = [0; 1];
    client.stream().read_exact(&mut first).expect("the response begins");
    let reader = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        let mut rest = Vec::new();
        client.stream().read_to_end(&mut rest).map(|_| rest)
    });
    supervisor.stop(running);
    let rest = reader.join().expect("it reads").expect("no reset");
    assert!(rest.ends_with(&content), "{} of {BYTES} bytes arrived", rest.len());
    let run =
        end_to_end::Machine::new().disk(format!("{}:ro", supervisor.log().display())).run("cat /fs/disk0/access.log");
    assert!(run.text().contains(&format!("\"GET /large HTTP/1.1\" 200 {BYTES} ")), "{run}");
}

/// The unit of docs/service.md.
fn unit() -> String {
    let page = fs::read_to_string(repository().join("docs/service.md")).expect("the page");
    let unit = page.split_once("```ini\n").and_then(|(_, rest)| rest.split_once("```")).expect("a unit");
    unit.0.to_string()
}

#[test]
fn systemd_takes_the_unit_of_the_documentation() {
    let unit = unit();
    for line in ["Type=notify", "ExecReload=/bin/kill -HUP $MAINPID", "KillMode=mixed", "Restart=on-failure"] {
        assert!(unit.lines().any(|one| one == line), "{line}:\n{unit}");
    }
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a command");
    assert!(start.contains("cargo sing run --web ") && start.ends_with("--service"), "{start}");
    // The program it starts must exist for the check.
    let cargo = "/home/singularity/.cargo/bin/cargo";
    assert!(start.starts_with(cargo), "{start}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("singularity-site.service");
    fs::write(&file, unit.replace(&format!("ExecStart={cargo}"), "ExecStart=/bin/true")).expect("a file");
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]).arg(&file).stdin(Stdio::null());
    // Skipped without systemd.
    let Ok(verified) = verify.output() else { return };
    let said = String::from_utf8_lossy(&verified.stderr);
    let own: Vec<&str> = said.lines().filter(|line| line.contains("singularity-site")).collect();
    assert!(own.is_empty(), "{said}");
}

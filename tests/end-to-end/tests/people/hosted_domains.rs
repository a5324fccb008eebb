//! Hardware domains of the hosted machine: processes of the host.

use std::process::Command;
use std::time::{Duration, Instant};

use end_to_end::{BUILD_LIMIT, Live, Machine, Run, finish, repository, reseal_system, sing, system_image};
use manifest_model::{Apart, Domain};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

const WORK: &str = "echo hello | cat | hash -a crc32; tree /fs/disk0; cat /fs/disk0/poems/tyger.txt; hello; greet you";

fn by_tool(words: &[&str], commands: &str) -> Run {
    let mut command = Command::new(sing());
    command.arg("run").args(words).args(["-c", commands]).current_dir(repository());
    finish(command, commands, BUILD_LIMIT)
}

#[test]
fn programs_do_the_same_in_every_configuration() {
    let plain = by_tool(&[], WORK);
    plain.orderly();
    for (configuration, least) in [("sip-phys", 0), ("hip-r3", 1), ("hip-r3-s", 10)] {
        for processors in ["1", "2"] {
            let words = ["--domains", configuration, "--processors", processors];
            let run = by_tool(&words, WORK);
            run.orderly();
            assert_eq!((&run.output, run.status), (&plain.output, plain.status), "with {configuration}:\n{run}");
            let count = by_tool(&words, "sysinfo").counters()[0].get("hardware domains").copied().unwrap_or(0);
            assert!(count >= least && (least > 0 || count == 0), "{count} domains with {configuration}");
        }
    }
}

fn for_each_process(kind: Domain) -> Apart {
    Apart { name: "all".into(), kind, who: Vec::new(), categories: Vec::new(), each: true }
}

/// The default system, with each process in a domain of its own.
fn apart() -> tempfile::NamedTempFile {
    let system = std::fs::read(system_image()).expect("the system image");
    let image = reseal_system(&system, &|system| system.domains.push(for_each_process(Domain::Ring3)));
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), image).expect("it can be written");
    file
}

/// Numbers of the processes that a process of this host has started, and those that they have.
fn descendants(process: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let children: Vec<u32> = children.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    children.iter().copied().chain(children.iter().flat_map(|&child| descendants(child))).collect()
}

fn is_there(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn a_domain_is_a_process_with_two_threads_and_nothing_of_the_host_and_ends_with_the_machine() {
    let system = apart();
    let mut live = Live::start(Machine::new().system(system.path()).command(None));
    assert!(live.ask("hello").contains("Hello, world!"));
    let count = live.counters()["hardware domains"];
    // Until the process of `sysinfo` has ended.
    std::thread::sleep(Duration::from_secs(1));
    let all = descendants(live.process());
    let threads = |process: &u32| std::fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count);
    let confined = all.iter().filter(|process| {
        // Runners have a filter; the mapper has the files of memory, and is nobody's to reach.
        let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
        let texts = tasks
            .into_iter()
            .flatten()
            .flatten()
            .map(|task| std::fs::read_to_string(task.path().join("status")).unwrap_or_default());
        let filters: Vec<bool> = texts.map(|text| text.contains("Seccomp:\t2")).collect();
        filters.len() > 1 && filters.iter().filter(|filtered| !**filtered).count() == 1
    });
    let confined: Vec<&u32> = confined.collect();
    // `sysinfo` had one too.
    assert!(count > 10 && confined.len() as u64 + 1 >= count, "{count} domains, {} processes", confined.len());
    for process in &confined {
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).expect("its mappings");
        let others = |line: &&str| !line.contains("/memfd:singularity-") && !line.contains("[vsyscall]");
        assert_eq!(maps.lines().find(others), None, "process {process}:\n{maps}");
        let writable = |line: &&str| line.contains("wx") || line.contains("rwx");
        assert_eq!(maps.lines().find(writable), None, "process {process}:\n{maps}");
        assert!(threads(process) <= 3, "process {process} has {} threads", threads(process));
    }
    assert_eq!(live.end(), Some(0));
    all_end(&all);
}

/// Waits until none of these processes is there.
fn all_end(processes: &[u32]) {
    let begin = Instant::now();
    while processes.iter().any(|&process| is_there(process)) {
        assert!(begin.elapsed() < Duration::from_secs(10), "processes are left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_machine_that_is_killed_leaves_no_process_of_a_domain() {
    let system = apart();
    let mut live = Live::start(Machine::new().system(system.path()).command(None));
    assert!(live.ask("hello").contains("Hello, world!"));
    let all = descendants(live.process());
    assert!(all.len() > 10, "{all:?}");
    kill(live.process());
    all_end(&all);
}

fn kill(process: u32) {
    let process = rustix::process::Pid::from_raw(process as i32).expect("a number");
    rustix::process::kill_process(process, rustix::process::Signal::KILL).expect("it is ours");
}

/// The newest process of a domain that is used, once none is coming or going.
fn newest_that_stays(machine: u32) -> u32 {
    let newest = || descendants(machine).into_iter().filter(|&process| is_used(process)).max();
    let begin = Instant::now();
    loop {
        let process = newest();
        std::thread::sleep(Duration::from_millis(200));
        if let (true, Some(process)) = (newest() == process, process) {
            return process;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "processes come and go");
    }
}

/// Whether a domain's process has more than the window in it: neither the template nor the one it makes ahead has.
fn is_used(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/maps")).is_ok_and(|maps| maps.contains("singularity-stacks"))
}

#[test]
fn an_end_of_a_domains_process_ends_its_programs_and_nobody_else() {
    let system = apart();
    let mut live = Live::start(Machine::new().system(system.path()).command(None));
    live.ask("sleep 4s &");
    let programs = live.processes();
    let victim = newest_that_stays(live.process());
    kill(victim);
    // It ends when it is to go on.
    live.ask_what_says("wait", "its hardware domain ended");
    let now = live.processes();
    let gone: Vec<&str> = programs.iter().filter(|program| !now.contains(program)).map(|gone| &*gone.name).collect();
    assert_eq!(gone, ["sleep"]);
    assert!(live.ask("hello").contains("Hello, world!"));
    assert_eq!(live.end(), Some(0));
}

/// Runs a machine with domains under a filter that refuses a system call.
fn without(call: i64) -> Run {
    let system = apart();
    let filter = SeccompFilter::new(
        [(call, Vec::new())].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(1),
        TargetArch::x86_64,
    );
    let program: BpfProgram = filter.expect("a filter").try_into().expect("a program");
    let command = Machine::new().system(system.path()).command(Some("hello"));
    // The filter is of this thread, and of what it starts.
    let run = std::thread::spawn(move || {
        apply_filter(&program).expect("a filter may be set here");
        finish(command, "hello", BUILD_LIMIT)
    });
    run.join().expect("it has run")
}

#[test]
fn a_host_that_forbids_what_domains_need_is_told_in_one_sentence_before_anything_starts() {
    const SECCOMP: i64 = 317;
    const MEMFD_CREATE: i64 = 319;
    for call in [SECCOMP, MEMFD_CREATE] {
        let run = without(call);
        assert_ne!(run.status, Some(0), "{run}");
        assert!(run.errors.contains("the host does not give this user hardware domains"), "{run}");
        assert!(!run.text().contains("Hello"), "{run}");
    }
}

#[test]
fn what_is_no_domain_of_the_hosted_machine_is_refused_in_one_sentence() {
    for configuration in ["hip-r0", "hip-r0-s", "sip-page"] {
        by_tool(&["--domains", configuration], "true").refused(&["applies to bare machines only", configuration]);
    }
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("mine.toml");
    let text = "[system]\nname = \"mine\"\nbase = \"hosted\"\n\n[[domain]]\nname = \"apart\"\nkind = \"ring-0\"\n";
    std::fs::write(&path, text).expect("a file can be written");
    let path = path.to_str().expect("its name is UTF-8");
    by_tool(&["--system", path], "true").refused(&["`mine` has the hardware domain `apart` in ring 0"]);
    let system = std::fs::read(system_image()).expect("the system image");
    let image = reseal_system(&system, &|system| system.domains.push(for_each_process(Domain::Ring0)));
    let path = folder.path().join("mine.system");
    std::fs::write(&path, image).expect("it can be written");
    let run = Machine::new().system(&path).run("true");
    assert!(run.status == Some(1) && run.errors.contains("`all` is in ring 0"), "{run}");
}

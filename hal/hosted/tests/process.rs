//! The machine as a process of its host: console, terminal, signals, termination.
//!
//! The end of a process cannot be tested from inside. Each child below is an ignored test which a real test
//! runs by name in a separate process.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use hal_api::{DeviceOperation, DeviceRequest, Fault, KernelEntries, Machine, Submitted, Width};
use hal_hosted::{Configuration, Confinement, Hosted, LogFormat, Service};

// ---- The children ----

static COMPLETIONS: OnceLock<Mutex<Sender<(u64, bool)>>> = OnceLock::new();
type Program = fn(&Console) -> u8;

static PROGRAM: Mutex<Option<Program>> = Mutex::new(None);

/// Environment variable of a child, so that running ignored tests elsewhere does not end the process.
const CHILD: &str = "HAL_HOSTED_TEST_CHILD";

/// The console of the machine under test, with blocking requests.
struct Console {
    machine: &'static Hosted,
    completions: Receiver<(u64, bool)>,
}

impl Console {
    fn run(&self, operation: DeviceOperation, address: usize, bytes: usize) -> Option<usize> {
        match self.submit(operation, address, bytes) {
            Submitted::Complete(result) => result.ok(),
            Submitted::Queued => {
                let (done, failed) = self.completions.recv().expect("a completion");
                (!failed).then_some(done as usize)
            }
        }
    }

    fn submit(&self, operation: DeviceOperation, address: usize, bytes: usize) -> Submitted {
        self.machine.device_submit(DeviceRequest { device: 0, token: 1, operation, offset: 0, address, bytes })
    }

    fn memory(&self) -> usize {
        self.machine.layout().memory.base + self.machine.layout().memory.bytes / 2
    }

    fn say(&self, text: &[u8]) -> Option<usize> {
        // SAFETY: the exchange arena is mapped and writable, and nothing else uses it here.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), self.memory() as *mut u8, text.len()) };
        self.run(DeviceOperation::Write, self.memory(), text.len())
    }

    fn hear(&self, bytes: usize) -> Option<Vec<u8>> {
        let address = self.memory() + 65_536;
        let done = self.run(DeviceOperation::Read, address, bytes)?;
        // SAFETY: as in `say`; the request is done.
        Some(unsafe { std::slice::from_raw_parts(address as *const u8, done) }.to_vec())
    }
}

extern "C" fn device_complete(_token: u64, done: u64, failed: bool) {
    let sender = COMPLETIONS.get().expect("set before the processors run").lock().expect("never poisoned");
    // While the machine ends, the receiver of the last one may be gone.
    let _ = sender.send((done, failed));
}

extern "C" fn no_sip_code(_instruction: usize) -> bool {
    false
}

extern "C" fn no_overflow(_instruction: usize, _address: usize) -> bool {
    false
}

extern "C" fn no_tick(_timer: bool) -> bool {
    false
}

extern "C" fn no_interrupt() {}

extern "C" fn no_fault(_fault: &Fault) -> ! {
    std::process::abort()
}

/// Number of interrupts fired.
static FIRED: AtomicU32 = AtomicU32::new(0);

extern "C" fn fired(_line: u32) {
    FIRED.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn no_stack() -> usize {
    0
}

extern "C" fn processor_main(_number: usize) {
    let (sender, completions) = channel();
    assert!(COMPLETIONS.set(Mutex::new(sender)).is_ok());
    let machine = MACHINE.get().expect("set before the processors run");
    let program = PROGRAM.lock().expect("never poisoned").take().expect("a program");
    let status = program(&Console { machine, completions });
    machine.power_off(status)
}

static MACHINE: OnceLock<&'static Hosted> = OnceLock::new();

fn be_a_machine(program: Program) {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    hal_hosted::own_process(Confinement::Unconfined);
    let configuration = Configuration { processors: Some(1), disks: Vec::new(), ..Configuration::default() };
    let machine = Hosted::start(&configuration).expect("a machine").machine;
    assert!(MACHINE.set(machine).is_ok());
    *PROGRAM.lock().expect("never poisoned") = Some(program);
    let entries = KernelEntries {
        is_sip_code: no_sip_code,
        overflowed_at_entry: no_overflow,
        tick: no_tick,
        interrupt: no_interrupt,
        fault: no_fault,
        stack_top: no_stack,
        fired,
        running: || None,
        device_complete,
    };
    machine.run_processors(&[&raw const MACHINE as usize], processor_main, entries);
}

#[test]
#[ignore = "ends its process"]
fn child_panics() {
    be_a_machine(|console| {
        console.say(b"ready");
        panic!("a broken invariant")
    });
}

#[test]
#[ignore = "ends its process"]
fn child_echoes_until_control_c() {
    be_a_machine(|console| {
        console.say(b"ready");
        loop {
            let Some(heard) = console.hear(100) else { return 1 };
            if heard.is_empty() || heard.contains(&3) {
                console.say(b"<end>");
                return 7;
            }
            console.say(b"[");
            console.say(&heard);
            console.say(b"]");
        }
    });
}

#[test]
#[ignore = "ends its process"]
fn child_reads_five_bytes() {
    be_a_machine(|console| {
        let heard = console.hear(5);
        console.say(&heard.unwrap_or_default());
        0
    });
}

#[test]
#[ignore = "ends its process"]
fn child_writes_a_megabyte() {
    be_a_machine(|console| {
        for block in 0..=u8::MAX {
            let written = console.say(&[b'A' + block % 26; 4096]);
            if written != Some(4096) {
                return 3;
            }
        }
        // The machine has to finish the last one.
        // SAFETY: the exchange arena is mapped and writable, and the request before is done.
        unsafe { std::ptr::write_bytes(console.memory() as *mut u8, b'!', 300_000) };
        console.submit(DeviceOperation::Write, console.memory(), 300_000);
        7
    });
}

#[test]
#[ignore = "ends its process"]
fn child_replaces_a_read() {
    be_a_machine(|console| {
        let first = console.submit(DeviceOperation::Read, console.memory() + 65_536, 100);
        assert!(matches!(first, Submitted::Queued));
        let second = console.submit(DeviceOperation::Read, console.memory() + 131_072, 100);
        assert!(matches!(second, Submitted::Queued));
        let (_, failed) = console.completions.recv().expect("the first ends");
        console.say(if failed { b"replaced" } else { b"no" });
        match console.completions.recv() {
            Ok((4, false)) => 0,
            _ => 1,
        }
    });
}

/// Unmasks the power button's interrupt.
fn listen_to_the_button(console: &Console) {
    let hardware = console.machine.hardware();
    let button = hardware.iter().find(|hardware| hardware.name == "power-button").expect("the machine has a button");
    console.machine.interrupt_mask(button.interrupts[0], false);
}

#[test]
#[ignore = "ends its process"]
fn child_gets_the_power_button() {
    be_a_machine(|console| {
        listen_to_the_button(console);
        console.say(b"ready");
        while FIRED.load(Ordering::SeqCst) == 0 {
            console.machine.idle(0, u64::MAX);
        }
        console.say(b"<shut down>");
        7
    });
}

#[test]
#[ignore = "ends its process"]
fn child_serves_until_it_is_asked_to_end() {
    let announcement = "serving".to_owned();
    hal_hosted::run_as_service(Service { log: LogFormat::Json, announcement });
    be_a_machine(|console| {
        listen_to_the_button(console);
        let hardware = console.machine.hardware();
        let state = hardware.iter().find(|hardware| hardware.name == "system-state").expect("it takes the state");
        assert!(console.machine.may_claim(state.ranges[0]));
        console.machine.debug_write(b"cat: \"mew\"\n");
        console.machine.register_write(state.ranges[0].kind, state.ranges[0].base, Width::Byte, 1);
        while FIRED.load(Ordering::SeqCst) == 0 {
            console.machine.idle(0, u64::MAX);
        }
        0
    });
}

#[test]
#[ignore = "ends its process"]
fn child_does_not_care_for_the_power_button() {
    be_a_machine(|console| {
        listen_to_the_button(console);
        console.say(b"ready");
        loop {
            console.machine.idle(0, u64::MAX);
        }
    });
}

#[test]
#[ignore = "ends its process"]
fn child_powers_off_with_output_that_nobody_reads() {
    be_a_machine(|console| {
        console.say(b"ready");
        console.submit(DeviceOperation::Write, console.memory(), 1 << 20);
        7
    });
}

/// More lines than fit any pipe or queue.
const FLOOD: u32 = 100_000;

#[test]
#[ignore = "ends its process"]
fn child_floods_its_debug_output() {
    be_a_machine(|console| {
        for number in 0..FLOOD {
            console.machine.debug_write(format!("line {number}\n").as_bytes());
        }
        console.say(b"ready");
        console.hear(1);
        // The count of dropped lines is reported as soon as there is room.
        console.hear(1);
        console.machine.debug_write(b"the last line\n");
        7
    });
}

#[test]
#[ignore = "ends its process"]
fn child_panics_with_full_debug_output() {
    be_a_machine(|console| {
        for number in 0..FLOOD {
            console.machine.debug_write(format!("line {number}\n").as_bytes());
        }
        console.say(b"ready");
        panic!("a broken invariant")
    });
}

// ---- The tests ----

fn command(child: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the test's own program"));
    command.args(["--exact", child, "--ignored", "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    // The child's test harness has a thread started before `own_process`.
    // SAFETY: the closure makes async-signal-safe calls only.
    unsafe { command.pre_exec(block_termination) };
    command
}

fn block_termination() -> std::io::Result<()> {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: the set is writable memory that sigemptyset initialises before it is used.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
    Ok(())
}

fn with_pipes(child: &str) -> Child {
    let mut command = command(child);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the child starts")
}

/// Starts a child on a terminal of its own; returns it with the terminal's other end, and its original local mode.
fn with_terminal(child: &str) -> (Child, File, libc::tcflag_t) {
    let (ours, theirs) = open_terminal();
    let ours = File::from(ours);
    // Before there is a child, which may set raw mode at any time.
    let found = local_mode(&ours);
    let copy = || Stdio::from(theirs.try_clone().expect("a copy of a descriptor"));
    let child = command(child).stdin(copy()).stdout(copy()).stderr(copy()).spawn().expect("the child starts");
    (child, ours, found)
}

fn open_terminal() -> (OwnedFd, OwnedFd) {
    let (mut ours, mut theirs) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: both are live; no name, mode or size is passed.
    let answer = unsafe { libc::openpty(&mut ours, &mut theirs, null, null.cast(), null.cast()) };
    assert_eq!(answer, 0, "the host gives no terminal");
    // SAFETY: both descriptors are new and have no other owner.
    unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}

fn read_until(stream: &mut impl Read, end: &str) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(end.as_bytes()) {
        let bytes = stream.read(&mut byte).expect("the child talks");
        assert_eq!(bytes, 1, "{end:?} never came; {:?} did", String::from_utf8_lossy(&text));
        text.push(byte[0]);
    }
    String::from_utf8(text).expect("text")
}

fn local_mode(terminal: &File) -> libc::tcflag_t {
    use std::os::fd::AsRawFd;
    let mut mode = std::mem::MaybeUninit::uninit();
    // SAFETY: `mode` is writable memory for one termios, which is filled if the result is 0.
    unsafe {
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), mode.as_mut_ptr()), 0);
        mode.assume_init().c_lflag
    }
}

fn terminate(child: &Child) {
    let process = libc::pid_t::try_from(child.id()).expect("a process number");
    // SAFETY: kill touches no memory; the process is an own child that has not been waited for.
    assert_eq!(unsafe { libc::kill(process, libc::SIGTERM) }, 0);
}

#[test]
fn a_panic_is_told_and_ends_with_101() {
    let output = with_pipes("child_panics").wait_with_output().expect("the child ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("a broken invariant") && said.contains("report it"), "{said}");
    assert_eq!(output.status.code(), Some(101));
}

#[test]
fn a_terminal_is_raw_while_the_machine_reads_and_as_found_afterwards() {
    let (mut child, mut terminal, found) = with_terminal("child_echoes_until_control_c");
    read_until(&mut terminal, "ready");
    while local_mode(&terminal) & libc::ICANON != 0 {
        thread::sleep(Duration::from_millis(1));
    }
    terminal.write_all(b"a").expect("the terminal takes it");
    assert_eq!(read_until(&mut terminal, "]"), "[a]", "one byte at a time, and no echo");
    terminal.write_all(&[3]).expect("the terminal takes it");
    read_until(&mut terminal, "<end>");
    assert_eq!(child.wait().expect("the child ends").code(), Some(7));
    assert_eq!(local_mode(&terminal), found);
}

#[test]
fn a_request_to_end_restores_the_terminal() {
    let (mut child, mut terminal, found) = with_terminal("child_echoes_until_control_c");
    read_until(&mut terminal, "ready");
    while local_mode(&terminal) & libc::ICANON != 0 {
        thread::sleep(Duration::from_millis(1));
    }
    terminate(&child);
    assert_eq!(child.wait().expect("the child ends").code(), Some(143));
    assert_eq!(local_mode(&terminal), found);
}

#[test]
fn the_end_of_input_is_told() {
    let mut child = with_pipes("child_echoes_until_control_c");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"xyz").expect("the pipe takes it");
    read_until(child.stdout.as_mut().expect("a pipe"), "[xyz]");
    drop(input);
    assert_eq!(child.wait().expect("the child ends").code(), Some(7));
}

#[test]
fn no_more_is_read_than_asked_for() {
    let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(b"helloworld").expect("the pipe takes it");
    drop(writer);
    let stdin = Stdio::from(reader.try_clone().expect("a copy of a descriptor"));
    let output = command("child_reads_five_bytes").stdin(stdin).output().expect("the child runs");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("hello"));
    let mut rest = String::new();
    reader.read_to_string(&mut rest).expect("text");
    assert_eq!(rest, "world");
}

#[test]
fn a_slow_reader_gets_everything_before_the_machine_ends() {
    let mut child = with_pipes("child_writes_a_megabyte");
    thread::sleep(Duration::from_millis(100));
    let mut text = Vec::new();
    child.stdout.take().expect("a pipe").read_to_end(&mut text).expect("the child talks");
    assert_eq!(child.wait().expect("the child ends").code(), Some(7));
    assert!(text.ends_with(&[b'!'; 300_000]));
    assert!(text.len() >= (1 << 20) + 300_000);
}

#[test]
fn a_closed_reader_is_a_failure_not_a_death() {
    let mut child = with_pipes("child_writes_a_megabyte");
    drop(child.stdout.take());
    let status = child.wait().expect("the child ends");
    // The child's test harness may write to the closed pipe before the machine does.
    assert!(matches!(status.code(), Some(3 | 101)), "{status}");
    assert_eq!(status.signal(), None);
}

#[test]
fn a_later_read_takes_the_place_of_an_earlier_one() {
    let mut child = with_pipes("child_replaces_a_read");
    read_until(child.stdout.as_mut().expect("a pipe"), "replaced");
    child.stdin.as_mut().expect("a pipe").write_all(b"late").expect("the pipe takes it");
    assert_eq!(child.wait().expect("the child ends").code(), Some(0));
}

/// Waits for the child's end, at most for the limit; returns its exit status.
fn ends_within(child: &mut Child, limit: Duration) -> Option<i32> {
    let begin = Instant::now();
    while begin.elapsed() < limit {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status.code();
        }
        thread::sleep(Duration::from_millis(2));
    }
    None
}

#[test]
fn a_request_to_end_is_an_interrupt_of_the_power_button() {
    let mut child = with_pipes("child_gets_the_power_button");
    read_until(child.stdout.as_mut().expect("a pipe"), "ready");
    terminate(&child);
    read_until(child.stdout.as_mut().expect("a pipe"), "<shut down>");
    assert_eq!(child.wait().expect("the child ends").code(), Some(143), "the status is the signal's");
}

#[test]
fn a_service_tells_its_supervisor_and_ends_with_the_status_of_its_system() {
    let path = std::env::temp_dir().join(format!("hal-hosted-{}.socket", std::process::id()));
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
    let told = || {
        let mut bytes = [0; 64];
        let count = socket.recv(&mut bytes).expect("the supervisor is told");
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    let mut command = command("child_serves_until_it_is_asked_to_end");
    command.env("NOTIFY_SOCKET", &path).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the child starts");
    assert_eq!(told(), "READY=1");
    terminate(&child);
    assert_eq!(told(), "STOPPING=1");
    assert_eq!(child.wait().expect("the child ends").code(), Some(0), "it was asked for");
    std::fs::remove_file(&path).expect("the socket's file");
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].ends_with("Z\",\"program\":\"cat\",\"text\":\"\\\"mew\\\"\"}"), "{said}");
    let announced = format!("serving; SIGTERM or Ctrl-C ends it in order (process {})", child.id());
    assert!(lines.len() == 2 && lines[1].contains(&announced), "{said}");
}

#[test]
fn a_second_request_ends_a_machine_that_does_not_shut_down() {
    let (mut child, mut terminal, found) = with_terminal("child_does_not_care_for_the_power_button");
    read_until(&mut terminal, "ready");
    terminate(&child);
    // As timeout(1) does: the process first, and then its group.
    terminate(&child);
    assert_eq!(ends_within(&mut child, Duration::from_millis(800)), None, "the same request twice is one");
    let said = read_until(&mut terminal, "ends it at once");
    assert!(said.contains("singularity: the system is shutting down"), "{said}");
    terminate(&child);
    assert_eq!(ends_within(&mut child, Duration::from_secs(10)), Some(143));
    assert_eq!(local_mode(&terminal), found);
}

#[test]
#[ignore = "takes half a minute"]
fn a_machine_that_does_not_shut_down_ends_at_the_deadline() {
    let mut child = with_pipes("child_does_not_care_for_the_power_button");
    read_until(child.stdout.as_mut().expect("a pipe"), "ready");
    terminate(&child);
    assert_eq!(ends_within(&mut child, Duration::from_secs(20)), None, "a volume manager may write for 20 s");
    assert_eq!(ends_within(&mut child, Duration::from_secs(20)), Some(143));
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(said.contains("did not shut down within 25s"), "{said}");
}

#[test]
fn a_request_to_end_does_not_wait_for_a_reader() {
    let mut child = with_pipes("child_powers_off_with_output_that_nobody_reads");
    read_until(child.stdout.as_mut().expect("a pipe"), "ready");
    assert_eq!(ends_within(&mut child, Duration::from_millis(300)), None, "without a request the reader is waited for");
    terminate(&child);
    assert_eq!(ends_within(&mut child, Duration::from_secs(10)), Some(143));
}

/// Parses numbered lines, in order, the number reported as dropped, and other lines.
fn take_apart(text: &str) -> (Vec<u32>, u32, Vec<&str>) {
    let (mut numbers, mut dropped, mut others) = (Vec::new(), 0, Vec::new());
    for line in text.lines() {
        let count = line.strip_prefix("singularity: ").and_then(|rest| rest.split_once(" line"));
        if let Some(number) = line.strip_prefix("line ").and_then(|number| number.parse().ok()) {
            numbers.push(number);
        } else if let Some(count) = count.filter(|(_, rest)| rest.ends_with("of debug output dropped")) {
            dropped += count.0.parse::<u32>().expect("a count");
        } else {
            others.push(line);
        }
    }
    (numbers, dropped, others)
}

#[test]
fn debug_output_that_nobody_reads_stops_nothing_and_what_is_dropped_is_counted() {
    let mut child = with_pipes("child_floods_its_debug_output");
    let mut input = child.stdin.take().expect("a pipe");
    read_until(child.stdout.as_mut().expect("a pipe"), "ready");
    let mut errors = child.stderr.take().expect("a pipe");
    input.write_all(b"x").expect("the pipe takes it");
    let mut text = read_until(&mut errors, "of debug output dropped\n");
    input.write_all(b"x").expect("the pipe takes it");
    errors.read_to_string(&mut text).expect("text");
    assert_eq!(child.wait().expect("the child ends").code(), Some(7));
    let (numbers, dropped, others) = take_apart(&text);
    assert_eq!(others, ["the last line"], "no line is broken");
    assert!(numbers.is_sorted_by(|one, next| one < next) && numbers.len() > 1000, "{} lines", numbers.len());
    assert_eq!(numbers.len() as u32 + dropped, FLOOD);
}

#[test]
fn a_machine_ends_although_nobody_reads_its_debug_output() {
    let mut child = with_pipes("child_floods_its_debug_output");
    read_until(child.stdout.as_mut().expect("a pipe"), "ready");
    child.stdin.take().expect("a pipe").write_all(b"xx").expect("the pipe takes it");
    assert_eq!(ends_within(&mut child, Duration::from_secs(10)), Some(7));
}

#[test]
fn a_panic_ends_the_machine_although_nobody_reads() {
    let mut child = with_pipes("child_panics_with_full_debug_output");
    assert_eq!(ends_within(&mut child, Duration::from_secs(20)), Some(101));
}

#[test]
fn debug_output_to_a_socket_waits_for_nobody() {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let mut command = command("child_floods_its_debug_output");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(OwnedFd::from(theirs));
    let mut child = command.spawn().expect("the child starts");
    drop(command);
    read_until(child.stdout.as_mut().expect("a pipe"), "ready");
    child.stdin.take().expect("a pipe").write_all(b"xx").expect("the pipe takes it");
    assert_eq!(ends_within(&mut child, Duration::from_secs(10)), Some(7));
    drop(ours);
}

//! System calls still possible in a confined machine's process: attempted by libraries of the process,
//! like an attacker after a break-out.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;

use hal_api::{Fault, KernelEntries, Machine};
use hal_hosted::{Configuration, Confinement, FolderAccess, FolderSpecification, Hosted, LinkPolicy};

/// Environment variable of a child: how it is confined.
const CHILD: &str = "HAL_HOSTED_TEST_CHILD";

type Attempt = fn() -> io::Result<()>;

/// An attacker's attempts.
const ATTEMPTS: [(&str, Attempt); 16] = [
    ("open a file", || File::open("/etc/passwd").map(drop)),
    ("write a file", || File::create(std::env::temp_dir().join("hal-hosted-written")).map(drop)),
    ("look at a file", || std::fs::metadata("/etc/passwd").map(drop)),
    ("list a folder", || std::fs::read_dir("/").map(drop)),
    ("remove a file", || match std::fs::remove_file("/no/such/file") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }),
    ("start a program", || Command::new("/bin/true").stdin(Stdio::null()).status().map(drop)),
    ("execute a program", || {
        // SAFETY: the arguments are C strings and lists that live across the call. It fails in any case: no such file.
        unsafe { libc::execve(c"/no/such/file".as_ptr(), [std::ptr::null()].as_ptr(), [std::ptr::null()].as_ptr()) };
        Some(io::Error::last_os_error()).filter(|error| error.kind() != io::ErrorKind::NotFound).map_or(Ok(()), Err)
    }),
    ("fork", || {
        // SAFETY: the child only exits.
        match unsafe { libc::fork() } {
            // SAFETY: ends the child.
            0 => unsafe { libc::_exit(0) },
            child => answer(child),
        }
    }),
    // SAFETY: signal 0 only checks; the call touches no memory.
    ("signal another process", || answer(unsafe { libc::kill(libc::getppid(), 0) })),
    ("trace", || {
        // SAFETY: there is no process 0 to attach to.
        let attached = unsafe { libc::syscall(libc::SYS_ptrace, libc::PTRACE_ATTACH, 0, 0, 0) };
        answer(attached as i32).or_else(no_such)
    }),
    ("read another process", || {
        // SAFETY: nothing is read: there are no vectors.
        answer(unsafe { libc::process_vm_readv(libc::getppid(), std::ptr::null(), 0, std::ptr::null(), 0, 0) } as i32)
    }),
    ("talk to services of the host", || socket(libc::AF_UNIX, libc::SOCK_STREAM)),
    ("talk to the host's kernel", || socket(libc::AF_NETLINK, libc::SOCK_RAW)),
    ("write code", || map(libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC)),
    ("execute what was written", || {
        let memory = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping without another user; its protection is changed and it is leaked.
        unsafe {
            let page = libc::mmap(std::ptr::null_mut(), 4096, memory, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
            answer(libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_EXEC))
        }
    }),
    // SAFETY: touches no memory.
    ("ask who else is there", || answer(unsafe { libc::getsid(0) })),
];

/// Environment variable of a child: a folder with the offered folders `read` and `write`, and files beside them.
const FOLDERS: &str = "HAL_HOSTED_TEST_FOLDERS";

type FolderAttempt = fn(&Path) -> io::Result<()>;

/// Operations that must still work in offered folders.
const IN_FOLDERS: [(&str, FolderAttempt); 6] = [
    ("read where nothing may change", |at| open(&at.join("read/file"), libc::O_RDONLY)),
    ("read where all may change", |at| open(&at.join("write/file"), libc::O_RDONLY)),
    ("write where all may change", |at| open(&at.join("write/file"), libc::O_RDWR)),
    ("make a file where all may change", |at| open(&at.join("write/new"), libc::O_CREAT | libc::O_EXCL | libc::O_RDWR)),
    ("rename where all may change", |at| rename(&at.join("write/new"), &at.join("write/newer"))),
    ("remove where all may change", |at| unlink(&at.join("write/newer"))),
];

/// An attacker's attempts beside or in them. Landlock denies these.
const BESIDE_FOLDERS: [(&str, FolderAttempt); 9] = [
    ("read another file", |_| open(Path::new("/etc/passwd"), libc::O_RDONLY)),
    ("read beside the folders", |at| open(&at.join("outside"), libc::O_RDONLY)),
    ("read by way of a folder", |at| open(&at.join("write/../outside"), libc::O_RDONLY)),
    ("write where nothing may change", |at| open(&at.join("read/file"), libc::O_RDWR)),
    ("make a file where nothing may change", |at| open(&at.join("read/new"), libc::O_CREAT | libc::O_RDWR)),
    ("remove where nothing may change", |at| unlink(&at.join("read/file"))),
    ("take a file in", |at| rename(&at.join("outside"), &at.join("write/taken"))),
    ("put a file out", |at| rename(&at.join("write/file"), &at.join("put"))),
    ("remove beside the folders", |at| unlink(&at.join("beside"))),
];

/// Operations that the remaining calls must not do, even in them.
const NEVER: [(&str, FolderAttempt); 4] = [
    ("make a pipe", |at| {
        // SAFETY: the path is a C string that lives across the call.
        answer(unsafe {
            libc::mknodat(libc::AT_FDCWD, text(&at.join("write/pipe")).as_ptr(), libc::S_IFIFO | 0o600, 0)
        })
    }),
    ("set times by a name", |at| {
        let path = text(&at.join("write/kept"));
        // SAFETY: as above; no times means now.
        answer(unsafe { libc::utimensat(libc::AT_FDCWD, path.as_ptr(), std::ptr::null(), 0) })
    }),
    ("set permissions by a name", |at| {
        // SAFETY: as above.
        answer(unsafe { libc::fchmodat(libc::AT_FDCWD, text(&at.join("write/kept")).as_ptr(), 0o600, 0) })
    }),
    ("set an owner by a name", |at| {
        let path = text(&at.join("write/kept"));
        // SAFETY: as above; nothing is changed.
        answer(unsafe { libc::fchownat(libc::AT_FDCWD, path.as_ptr(), u32::MAX, u32::MAX, 0) })
    }),
];

fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("a path")
}

fn open(path: &Path, flags: libc::c_int) -> io::Result<()> {
    let how: [u64; 3] = [flags as u64, if flags & libc::O_CREAT != 0 { 0o600 } else { 0 }, 0];
    let path = text(path);
    // SAFETY: the path is a C string and `how` the three numbers of `struct open_how`; both live across the call. The file
    // that it opens is left open.
    let opened =
        unsafe { libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, path.as_ptr(), how.as_ptr(), size_of_val(&how)) };
    answer(opened as i32)
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (text(from), text(to));
    // SAFETY: both are C strings that live across the call.
    answer(
        unsafe { libc::syscall(libc::SYS_renameat, libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr()) } as i32
    )
}

fn unlink(path: &Path) -> io::Result<()> {
    // SAFETY: the path is a C string that lives across the call.
    answer(unsafe { libc::unlinkat(libc::AT_FDCWD, text(path).as_ptr(), 0) })
}

extern "C" fn attempt_in_folders(_number: usize) {
    let at = PathBuf::from(std::env::var_os(FOLDERS).expect("set by the parent"));
    for (name, attempt) in IN_FOLDERS.iter().chain(&BESIDE_FOLDERS).chain(&NEVER) {
        let outcome = attempt(&at);
        let refused = outcome
            .as_ref()
            .is_err_and(|error| matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::EXDEV)));
        println!("{name}: {}", if refused { "refused".to_owned() } else { format!("{outcome:?}") });
    }
    let machine = MACHINE.get().expect("set before the processors run");
    println!("{:?}", machine.counters());
    machine.power_off(9)
}

fn answer(answer: i32) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Counts an attempt that fails only for lack of a target as a success.
fn no_such(error: io::Error) -> io::Result<()> {
    if error.raw_os_error() == Some(libc::ESRCH) { Ok(()) } else { Err(error) }
}

fn socket(family: libc::c_int, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: touches no memory.
    answer(unsafe { libc::socket(family, kind, 0) })
}

fn map(protection: libc::c_int) -> io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping without another user.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) };
    if page == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

static MACHINE: OnceLock<&'static Hosted> = OnceLock::new();

extern "C" fn attempt_all(_number: usize) {
    for (name, attempt) in ATTEMPTS {
        let outcome = attempt();
        let refused = outcome.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EPERM));
        println!("{name}: {}", if refused { "refused".to_owned() } else { format!("{outcome:?}") });
    }
    // The machine's own needs still work: threads, internet sockets, memory.
    let listener = TcpListener::bind("127.0.0.1:0").expect("the host has a port");
    let address = listener.local_addr().expect("it is bound");
    let caller = thread::spawn(move || TcpStream::connect(address).map(drop));
    listener.accept().expect("somebody calls");
    caller.join().expect("the thread ends").expect("it was heard");
    let machine = MACHINE.get().expect("set before the processors run");
    println!("the kernel has {} bytes", machine.kernel_image().iter().map(|piece| piece.len()).sum::<usize>());
    println!("{:?}", machine.counters());
    machine.power_off(9)
}

extern "C" fn no(_: usize) -> bool {
    false
}

extern "C" fn no_overflow(_instruction: usize, _address: usize) -> bool {
    false
}

extern "C" fn no_tick(_: bool) -> bool {
    false
}

extern "C" fn nothing() {}

extern "C" fn no_fault(_: &Fault) -> ! {
    std::process::abort()
}

extern "C" fn no_stack() -> usize {
    0
}

extern "C" fn nothing_fires(_: u32) {}

extern "C" fn nothing_completes(_: u64, _: u64, _: bool) {}

/// Not a test of its own: the other tests run it in a separate process.
#[test]
#[ignore = "confines its process"]
fn child() {
    let Some(how) = std::env::var_os(CHILD) else { return };
    let confinement = if how == "confined" { Confinement::Confined } else { Confinement::Unconfined };
    let folder = |at: &OsStr, name: &str, access| FolderSpecification {
        name: name.to_owned(),
        path: Path::new(at).join(name),
        access,
        links: LinkPolicy::StayInside,
    };
    let folders = std::env::var_os(FOLDERS).map_or_else(Vec::new, |at| {
        vec![folder(&at, "read", FolderAccess::ReadOnly), folder(&at, "write", FolderAccess::Write)]
    });
    let attempts = if folders.is_empty() { attempt_all } else { attempt_in_folders };
    let configuration = Configuration { processors: Some(1), confinement, folders, ..Configuration::default() };
    let machine = Hosted::start(&configuration).expect("a machine").machine;
    assert!(MACHINE.set(machine).is_ok());
    let entries = KernelEntries {
        is_sip_code: no,
        overflowed_at_entry: no_overflow,
        tick: no_tick,
        interrupt: nothing,
        fault: no_fault,
        stack_top: no_stack,
        fired: nothing_fires,
        running: || None,
        device_complete: nothing_completes,
    };
    machine.run_processors(&[&raw const MACHINE as usize], attempts, entries);
}

/// Runs a child and returns its standard output and error.
fn child_says(how: &str) -> (String, String) {
    child_with(how, None)
}

/// Like `child_says`, for a child that is offered folders.
fn child_with(how: &str, folders: Option<&Path>) -> (String, String) {
    let program = std::env::current_exe().expect("the test's own program");
    let mut command = Command::new(program);
    command.args(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"]).env(CHILD, how);
    if let Some(folders) = folders {
        command.env(FOLDERS, folders);
    }
    let output = command.output().expect("the child runs");
    let [said, errors] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert_eq!(output.status.code(), Some(9), "{said}\n{errors}");
    (said, errors)
}

#[test]
fn a_confined_machine_can_open_no_file_and_start_no_program() {
    let (said, errors) = child_says("confined");
    for (name, _) in ATTEMPTS {
        assert!(said.contains(&format!("{name}: refused\n")), "`{name}`:\n{said}\n{errors}");
    }
    assert!(!said.contains("the kernel has 0 bytes") && !said.contains("(\"host calls allowed\", 0)"), "{said}");
    println!("on this host: {}", said.lines().last().unwrap_or_default());
    // Each system call number is reported once.
    let told = errors.lines().filter(|line| line.contains("is none that this machine needs")).count();
    assert!((5..=ATTEMPTS.len() + 6).contains(&told), "{told} lines:\n{errors}");
}

/// Proves that the test above can fail.
#[test]
fn an_unconfined_machine_could_do_all_of_it() {
    let (said, errors) = child_says("unconfined");
    for (name, _) in ATTEMPTS {
        assert!(said.contains(&format!("{name}: Ok(())\n")), "`{name}`:\n{said}\n{errors}");
    }
    assert!(said.contains("(\"host calls allowed\", 0), (\"host Landlock version\", 0)"), "{said}");
}

/// Creates folders for a child, and returns its output.
fn in_folders(how: &str) -> (String, String) {
    let at = std::env::temp_dir().join(format!("hal-hosted-folders-{how}-{}", std::process::id()));
    for name in ["read", "write"] {
        std::fs::create_dir_all(at.join(name)).expect("a folder");
        std::fs::write(at.join(name).join("file"), "text").expect("a file");
    }
    for name in ["outside", "beside", "write/kept"] {
        std::fs::write(at.join(name), "text").expect("a file");
    }
    let said = child_with(how, Some(&at));
    std::fs::remove_dir_all(&at).expect("removed");
    said
}

#[test]
fn a_machine_with_folders_reaches_these_as_they_were_offered_and_nothing_else() {
    let (said, errors) = in_folders("confined");
    for (name, _) in IN_FOLDERS {
        assert!(said.contains(&format!("{name}: Ok(())\n")), "`{name}`:\n{said}\n{errors}");
    }
    for (name, _) in NEVER {
        assert!(said.contains(&format!("{name}: refused\n")), "`{name}`:\n{said}\n{errors}");
    }
    println!("on this host: {}", said.lines().rfind(|line| line.contains("Landlock")).unwrap_or_default());
    let has_landlock = !said.contains("(\"host Landlock version\", 0)");
    for (name, _) in BESIDE_FOLDERS.iter().filter(|_| has_landlock) {
        assert!(said.contains(&format!("{name}: refused\n")), "`{name}`:\n{said}\n{errors}");
    }
}

/// Proves that the test above can fail.
#[test]
fn an_unconfined_machine_with_folders_could_do_more() {
    let (said, errors) = in_folders("unconfined");
    for (name, _) in IN_FOLDERS.iter().chain(&BESIDE_FOLDERS).chain(&NEVER) {
        assert!(said.contains(&format!("{name}: Ok(())\n")), "`{name}`:\n{said}\n{errors}");
    }
}

//! Confinement of the machine's process once it runs: only the system calls of [`allowed`], no files by name, and no
//! signals to other processes.
//!
//! Defence in depth against a SIP that escapes the language's rules. Three kinds of seccomp filters: one of system
//! calls and their arguments; some that return an error for calls that the C library makes but can do without; one that
//! traps every call from an instruction in a SIP's image, which ends that SIP (`signal`). Landlock also restricts
//! files, and signals. Neighbours: `keeper` performs operations denied here, `signal` has the handler. Deliberately not
//! here: capabilities and namespaces, which are for the parent of the process.

use std::collections::BTreeMap;
use std::error::Error;
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use hal_api::Arena;
use landlock::{
    ABI, Access, AccessFs, BitFlags, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope, make_bitflags,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter_all_threads, sock_filter,
};

use crate::folder::FolderNeeds;
use crate::folder_node::LinkPolicy;
use crate::folder_server::FolderAccess;

/// Whether the process drops the privileges it does not need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confinement {
    /// As far as the host supports it.
    Confined,
    /// Not at all, for tests and debuggers.
    #[default]
    Unconfined,
}

/// The confinement in force.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InForce {
    /// Number of allowed system calls, some with certain arguments only; `None`: all are.
    pub(crate) system_calls: Option<u64>,
    /// Landlock ABI version in force; 0: none.
    pub(crate) landlock: u64,
}

static IN_FORCE: OnceLock<InForce> = OnceLock::new();

/// The newest Landlock ABI version requested.
const LANDLOCK: ABI = ABI::V7;
/// ioctl(2) commands: terminal modes (also in the newer form), terminal size, bytes queued in a socket, blocking.
const IOCTLS: [u64; 10] = [
    libc::TCGETS,
    libc::TCSETS,
    libc::TCSETSW,
    libc::TCSETSF,
    libc::TCGETS2,
    libc::TCSETS2,
    libc::TIOCGWINSZ,
    libc::FIONREAD,
    libc::TIOCOUTQ,
    libc::FIONBIO,
];
const FCNTLS: [libc::c_int; 6] =
    [libc::F_ADD_SEALS, libc::F_GETFD, libc::F_SETFD, libc::F_GETFL, libc::F_SETFL, libc::F_DUPFD_CLOEXEC];
const NEW_NAMESPACES: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;
const OF_A_THREAD: libc::c_int = libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
const SET_GS: u64 = 0x1001;
/// PR_SET_VMA, with which the C library names its mappings.
const NAME_MEMORY: u64 = 0x5356_4d41;

/// Calls allowed with any arguments. None takes a file name, a process or a program.
const PLAIN: &[libc::c_long] = &[
    // Data of open files and sockets.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_lseek,
    libc::SYS_fdatasync,
    libc::SYS_fsync,
    libc::SYS_close,
    // Polling.
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    // Sockets.
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_listen,
    libc::SYS_accept4,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
    // Memory; `memfd_create` makes the files of images.
    libc::SYS_munmap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_memfd_create,
    // Threads and time.
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_delete,
    // Signals of this process.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
];

/// Calls that the C library makes but can do without, with the errno that they return. The arguments of `clone3` and
/// `statx` lie in memory, which no filter can read; the library falls back to older calls. It opens files to read the
/// host's overcommit policy when it releases memory.
const TURNED_AWAY: [(libc::c_long, libc::c_int); 3] =
    [(libc::SYS_clone3, libc::ENOSYS), (libc::SYS_statx, libc::ENOSYS), (libc::SYS_openat, libc::EPERM)];

/// Calls needed for host folders. Landlock restricts where.
const OF_FOLDERS: [libc::c_long; 4] = [libc::SYS_openat2, libc::SYS_fstat, libc::SYS_getdents64, libc::SYS_readlinkat];
/// Calls needed for writable folders. Those that change only metadata, which Landlock does not restrict, take an open
/// file instead of a name.
const OF_WRITABLE_FOLDERS: [libc::c_long; 9] = [
    libc::SYS_ftruncate,
    libc::SYS_fchmod,
    libc::SYS_fchown,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_symlinkat,
    libc::SYS_linkat,
    libc::SYS_renameat,
    libc::SYS_syncfs,
];

/// Confines the process, all its current and future threads, to the machine's needs and those of the folders. Irreversible.
///
/// Returns one human-readable sentence for each restriction that the host does not support.
pub(crate) fn confine(images: Arena, folders: &[FolderNeeds<'_>]) -> Vec<String> {
    if IN_FORCE.get().is_some() {
        return Vec::new();
    }
    let mut notices = Vec::new();
    let landlock = restrict_files(folders).unwrap_or_else(|reason| {
        notices.push(format!("the host does not keep this process from files by Landlock ({reason}); it goes on"));
        0
    });
    let system_calls = match restrict_calls(images, folders) {
        Ok(count) => Some(count),
        Err(reason) => {
            notices.push(format!("the host does not restrict this process's system calls ({reason}); it goes on"));
            None
        }
    };
    IN_FORCE.get_or_init(|| InForce { system_calls, landlock });
    notices
}

/// Returns the confinement in force: none before [`confine`].
pub(crate) fn in_force() -> InForce {
    IN_FORCE.get().copied().unwrap_or_default()
}

/// Applies Landlock and returns the ABI version in force.
fn restrict_files(folders: &[FolderNeeds<'_>]) -> Result<u64, String> {
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|rules| rules.scope(Scope::AbstractUnixSocket | Scope::Signal))
        .and_then(Ruleset::create)
        .and_then(|rules| rules.add_rules(folders.iter().map(rule_of_folder)))
        .map_err(|error| error.to_string())?;
    let rules = match folders.iter().any(|folder| folder.links == LinkPolicy::Follow) {
        // Links may lead anywhere.
        true => {
            let root = PathFd::new("/").map_err(|error| error.to_string())?;
            status.add_rule(PathBeneath::new(root, READING)).map_err(|error| error.to_string())?
        }
        false => status,
    };
    let status = rules.restrict_self().map_err(|error| error.to_string())?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => Err("it is not enabled".to_owned()),
        (RulesetStatus::NotEnforced, _) => Err("its kernel has none".to_owned()),
        (_, landlock) => Ok(ABI::from(landlock) as u64),
    }
}

/// Access rights in a folder.
const READING: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});
/// Additional rights in a writable folder: everything but creating devices, sockets and pipes.
const WRITING: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    WriteFile | Truncate | MakeReg | MakeDir | MakeSym | RemoveFile | RemoveDir | Refer
});

fn rule_of_folder<'a>(needs: &FolderNeeds<'a>) -> Result<PathBeneath<BorrowedFd<'a>>, RulesetError> {
    let access = match needs.access {
        FolderAccess::ReadOnly => READING,
        FolderAccess::Write => READING | WRITING,
    };
    Ok(PathBeneath::new(needs.folder, access))
}

/// Applies the filters and returns the number of allowed calls.
fn restrict_calls(images: Arena, folders: &[FolderNeeds<'_>]) -> Result<u64, Box<dyn Error>> {
    let mut rules = allowed(u64::from(std::process::id()))?;
    rules.extend(of_folders(folders)?);
    let count = rules.len() - TURNED_AWAY.len();
    apply_filter_all_threads(&of_images(images))?;
    for (call, error) in TURNED_AWAY {
        let answer = SeccompAction::Errno(error as u32);
        apply_filter_all_threads(&filter([(call, Vec::new())].into(), SeccompAction::Allow, answer)?)?;
    }
    apply_filter_all_threads(&filter(rules, SeccompAction::Trap, SeccompAction::Allow)?)?;
    Ok(count as u64)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn filter(rules: Rules, otherwise: SeccompAction, listed: SeccompAction) -> Result<BpfProgram, Box<dyn Error>> {
    Ok(SeccompFilter::new(rules, otherwise, listed, TargetArch::x86_64)?.try_into()?)
}

/// Returns the calls that the machine makes, with alternative rules for their arguments. Those in [`TURNED_AWAY`] are
/// included: of several filters the strictest result counts.
fn allowed(process: u64) -> Result<Rules, seccompiler::BackendError> {
    let turned_away = TURNED_AWAY.iter().map(|(call, _)| call);
    let mut rules: Rules = PLAIN.iter().chain(turned_away).map(|&call| (call, Vec::new())).collect();
    let bits = |mask: libc::c_int| SeccompCmpOp::MaskedEq(mask as u64);
    let one_of = |at: u8, values: &[u64]| -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
        values.iter().map(|&value| rule(&[(at, SeccompCmpOp::Eq, value)])).collect()
    };
    // W^X: writable mappings are not executable, and executable ones come from a file.
    rules.insert(
        libc::SYS_mmap,
        vec![
            rule(&[(2, bits(libc::PROT_EXEC), 0)])?,
            rule(&[(2, bits(libc::PROT_WRITE), 0), (3, bits(libc::MAP_ANONYMOUS), 0)])?,
        ],
    );
    rules.insert(libc::SYS_mprotect, vec![rule(&[(2, bits(libc::PROT_EXEC), 0)])?]);
    rules.insert(libc::SYS_mremap, vec![rule(&[(3, bits(libc::MREMAP_FIXED), 0)])?]);
    // Threads, but no processes.
    let thread = rule(&[(0, bits(OF_A_THREAD), OF_A_THREAD as u64), (0, bits(NEW_NAMESPACES), 0)])?;
    rules.insert(libc::SYS_clone, vec![thread]);
    rules.insert(libc::SYS_tgkill, vec![rule(&[(0, SeccompCmpOp::Eq, process)])?]);
    rules.insert(libc::SYS_arch_prctl, one_of(0, &[SET_GS])?);
    rules.insert(libc::SYS_prctl, one_of(0, &[libc::PR_SET_NAME as u64, NAME_MEMORY])?);
    // Limits are read, not set.
    rules.insert(libc::SYS_prlimit64, vec![rule_wide(&[(0, 0), (2, 0)])?]);
    let internet = [libc::AF_INET, libc::AF_INET6];
    let kinds = [libc::SOCK_STREAM, libc::SOCK_DGRAM];
    let sockets: Result<Vec<SeccompRule>, _> = internet
        .iter()
        .flat_map(|&family| kinds.map(|kind| (family, kind)))
        .map(|(family, kind)| rule(&[(0, SeccompCmpOp::Eq, family as u64), (1, bits(0xff), kind as u64)]))
        .collect();
    rules.insert(libc::SYS_socket, sockets?);
    rules.insert(libc::SYS_ioctl, one_of(1, &IOCTLS)?);
    rules.insert(libc::SYS_fcntl, one_of(1, &FCNTLS.map(|command| command as u64))?);
    Ok(rules)
}

/// Returns the additional calls for the folders.
fn of_folders(folders: &[FolderNeeds<'_>]) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::new();
    if !folders.is_empty() {
        rules.extend(OF_FOLDERS.map(|call| (call, Vec::new())));
    }
    if folders.iter().any(|folder| folder.access == FolderAccess::Write) {
        rules.extend(OF_WRITABLE_FOLDERS.map(|call| (call, Vec::new())));
        // Times of an open file, not of a named one.
        rules.insert(libc::SYS_utimensat, vec![rule_wide(&[(1, 0)])?]);
    }
    Ok(rules)
}

/// A rule on the lower 32 bits of arguments: the kernel ignores the upper half of these.
fn rule(arguments: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let condition = |(at, operator, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*at, SeccompCmpArgLen::Dword, operator.clone(), *value)
    };
    SeccompRule::new(arguments.iter().map(condition).collect::<Result<_, _>>()?)
}

/// A rule that compares all 64 bits of arguments.
fn rule_wide(arguments: &[(u8, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let condition =
        |&(at, value): &(u8, u64)| SeccompCondition::new(at, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, value);
    SeccompRule::new(arguments.iter().map(condition).collect::<Result<_, _>>()?)
}

/// Offsets of the halves of `instruction_pointer` in `struct seccomp_data`.
const POINTER_LOW: u32 = 8;
const POINTER_HIGH: u32 = 12;
const LOAD: u16 = 0x20;
const JUMP_IF_GREATER: u16 = 0x25;
const JUMP_IF_NOT_LESS: u16 = 0x35;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Traps each call from an instruction in the arena. The instruction pointer is after the syscall instruction, which
/// is two bytes long.
fn of_images(images: Arena) -> BpfProgram {
    let (first, end) = (images.base as u64, (images.base + images.bytes) as u64);
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let halves = |address: u64| ((address >> 32) as u32, address as u32);
    let ((first_high, first_low), (end_high, end_low)) = (halves(first), halves(end));
    let (allow, trap) = (u32::from(SeccompAction::Allow), u32::from(SeccompAction::Trap));
    vec![
        // Below the first address: allowed.
        step(LOAD, 0, 0, POINTER_HIGH),
        step(JUMP_IF_GREATER, 3, 0, first_high),
        step(JUMP_IF_EQUAL, 0, 7, first_high),
        step(LOAD, 0, 0, POINTER_LOW),
        step(JUMP_IF_NOT_LESS, 0, 5, first_low),
        // Above the last one: allowed.
        step(LOAD, 0, 0, POINTER_HIGH),
        step(JUMP_IF_GREATER, 3, 0, end_high),
        step(JUMP_IF_EQUAL, 0, 3, end_high),
        step(LOAD, 0, 0, POINTER_LOW),
        step(JUMP_IF_GREATER, 0, 1, end_low),
        step(RETURN, 0, 0, allow),
        step(RETURN, 0, 0, trap),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the program's result for a call at this address.
    fn run(program: &[sock_filter], pointer: u64) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let holds = match code {
                LOAD if k == POINTER_HIGH => {
                    loaded = (pointer >> 32) as u32;
                    continue;
                }
                LOAD => {
                    loaded = pointer as u32;
                    continue;
                }
                RETURN => return k,
                JUMP_IF_GREATER => loaded > k,
                JUMP_IF_NOT_LESS => loaded >= k,
                _ => loaded == k,
            };
            at += usize::from(if holds { jt } else { jf });
        }
    }

    #[test]
    fn calls_are_refused_in_all_of_the_arena_and_nowhere_else() {
        let (allow, trap) = (u32::from(SeccompAction::Allow), u32::from(SeccompAction::Trap));
        for (base, bytes) in [(0x7f12_3456_7000, 0x1000), (0x7f12_fff0_0000, 0x30_0000_0000), (0x1_0000_0000, 1 << 32)]
        {
            let program = of_images(Arena { base, bytes });
            let (first, end) = (base as u64, (base + bytes) as u64);
            for inside in [first, first + 2, first + bytes as u64 / 2, end - 1, end] {
                assert_eq!(run(&program, inside), trap, "{inside:#x} of {base:#x}+{bytes:#x}");
            }
            for outside in [0, 0x1000, first - 1, first.saturating_sub(1 << 33), end + 1, end + (1 << 32), u64::MAX] {
                assert_eq!(run(&program, outside), allow, "{outside:#x} of {base:#x}+{bytes:#x}");
            }
        }
    }

    #[test]
    fn the_filters_compile_and_name_nothing_that_opens_or_starts() {
        let rules = allowed(1).expect("rules");
        for call in [
            libc::SYS_open,
            libc::SYS_openat2,
            libc::SYS_creat,
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_fork,
            libc::SYS_vfork,
            libc::SYS_ptrace,
            libc::SYS_process_vm_writev,
            libc::SYS_kill,
            libc::SYS_tkill,
            libc::SYS_io_uring_setup,
            libc::SYS_bpf,
            libc::SYS_userfaultfd,
            libc::SYS_seccomp,
        ] {
            assert!(!rules.contains_key(&call), "{call}");
        }
        assert!(TURNED_AWAY.iter().all(|(call, _)| rules.contains_key(call) && !PLAIN.contains(call)));
        filter(rules, SeccompAction::Trap, SeccompAction::Allow).expect("a filter");
    }
}

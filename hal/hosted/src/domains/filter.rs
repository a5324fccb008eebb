//! The filter of a runner: which system calls of the host the code in a domain can make, and from where.
//!
//! Deliberately not here: who installs it, and the mapper, which has none; see `stub`.

use super::window;

/// Number of no system call, at which the filter ends the process.
pub(super) const ENDING: u32 = 0x7fff_0000;
/// `audit.h`: AUDIT_ARCH_X86_64.
const ARCHITECTURE: u32 = 0xc000_003e;

/// Returns the filter of a runner: sigreturn, sigprocmask, sigaltstack, sched_yield, and futex to wait and to wake; anything
/// else is trapped. [`ENDING`] ends the process. Only the instruction before `asleep` waits for the first
/// runner's turn.
pub(super) fn program(window: usize, asleep: usize) -> Vec<u8> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let halves = |value: usize| (value as u32, (value as u64 >> 32) as u32);
    let turn = halves(window + window::RUNNERS + window::TURN);
    let asleep = halves(asleep);
    // Offsets in `struct seccomp_data`: number, architecture, address of the next instruction; then the arguments.
    let program: [(u16, u8, u8, u32); 23] = [
        (LOAD, 0, 0, 4),
        (EQUAL, 0, 18, ARCHITECTURE),
        (LOAD, 0, 0, 0),
        (EQUAL, 17, 0, libc::SYS_rt_sigreturn as u32),
        (EQUAL, 16, 0, libc::SYS_rt_sigprocmask as u32),
        (EQUAL, 15, 0, libc::SYS_sched_yield as u32),
        (EQUAL, 14, 0, libc::SYS_sigaltstack as u32),
        (EQUAL, 14, 0, ENDING),
        (EQUAL, 0, 11, libc::SYS_futex as u32),
        (LOAD, 0, 0, 24),
        (EQUAL, 10, 0, libc::FUTEX_WAKE as u32),
        (EQUAL, 0, 8, libc::FUTEX_WAIT as u32),
        (LOAD, 0, 0, 16),
        (EQUAL, 0, 7, turn.0),
        (LOAD, 0, 0, 20),
        (EQUAL, 0, 5, turn.1),
        (LOAD, 0, 0, 8),
        (EQUAL, 0, 2, asleep.0),
        (LOAD, 0, 0, 12),
        (EQUAL, 1, 0, asleep.1),
        (RETURN, 0, 0, libc::SECCOMP_RET_TRAP),
        (RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
        (RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
    ];
    let encode = |(code, yes, no, value): (u16, u8, u8, u32)| {
        [&code.to_le_bytes()[..], &[yes, no], &value.to_le_bytes()].concat()
    };
    program.into_iter().flat_map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a runner's filter answers to a system call of this number, with these first two arguments, made there.
    fn answer(architecture: u32, call: u32, arguments: [u64; 2], next_instruction: u64) -> u32 {
        let [first, second] = arguments;
        let data: Vec<u8> = [u64::from(call) | u64::from(architecture) << 32, next_instruction, first, second]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let program = program(WINDOW, ASLEEP);
        let (mut at, mut value) = (0, 0);
        loop {
            let (code, yes, no) = (program[at], program[at + 2], program[at + 3]);
            let k = word(&program, at + 4);
            at += 8;
            match code {
                0x20 => value = word(&data, k as usize),
                0x15 => at += 8 * usize::from(if value == k { yes } else { no }),
                0x06 => return k,
                _ => panic!("{code:#x}"),
            }
        }
    }

    const WINDOW: usize = 0x7012_3456_7000;
    const ASLEEP: usize = WINDOW + window::STUB + 0x345;

    fn is_allowed(architecture: u32, call: u32, second: u32) -> bool {
        answer(architecture, call, [0, second.into()], 0) == libc::SECCOMP_RET_ALLOW
    }

    #[test]
    fn the_filter_leaves_five_calls() {
        assert!(is_allowed(ARCHITECTURE, libc::SYS_rt_sigreturn as u32, 9));
        assert!([0, 1].into_iter().all(|operation| is_allowed(ARCHITECTURE, libc::SYS_futex as u32, operation)));
        for operation in (2..16).chain([128, 129, 256]) {
            assert!(!is_allowed(ARCHITECTURE, libc::SYS_futex as u32, operation));
        }
        for call in (0..600).chain([0x4000_000f, 0x4000_00ca]) {
            let left = [
                libc::SYS_rt_sigreturn,
                libc::SYS_rt_sigprocmask,
                libc::SYS_sigaltstack,
                libc::SYS_sched_yield,
                libc::SYS_futex,
            ];
            assert_eq!(left.contains(&call.into()), is_allowed(ARCHITECTURE, call, 0), "{call}");
            assert!(!is_allowed(0x4000_0003, call, 0), "{call}");
        }
    }

    #[test]
    fn only_the_stub_waits_for_the_first_runners_turn() {
        let turn = (WINDOW + window::RUNNERS + window::TURN) as u64;
        let there = ASLEEP as u64;
        let waits = |word, next| answer(ARCHITECTURE, libc::SYS_futex as u32, [word, 0], next);
        assert_eq!(waits(turn, there), libc::SECCOMP_RET_ALLOW);
        for next in [0, 1, 2, 16, 1 << 32].map(|other| there ^ other).into_iter().skip(1) {
            assert_eq!(waits(turn, next), libc::SECCOMP_RET_TRAP, "{next:#x}");
        }
        for word in [turn + 4, turn ^ 1 << 32, turn + window::RUNNER_BYTES as u64] {
            assert_eq!(waits(word, 0), libc::SECCOMP_RET_ALLOW, "{word:#x}");
        }
    }
}

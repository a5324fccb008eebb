//! Tests of threads in domains, whose code is scripted.

extern crate std;

use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicUsize, Ordering};

use abi::ProcessState;
use abi::limits::STACK_GUARD_BYTES;

use super::*;
use crate::process::ProcessRef;
use crate::test_machine::{alone, domains, put_apart, run, with_quota};
use crate::thread::{self, Argument};
use crate::{lifecycle, sched};

const ENTRY: usize = 0x1234_5000;

fn number(name: &str) -> u64 {
    abi::FUNCTIONS.iter().position(|function| function.name == name).expect("a function") as u64
}

fn call(name: &str, arguments: &[u64]) -> DomainExit {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    DomainExit::Call { gate: number(name), arguments: all }
}

/// A SIP in a domain of its own, with one thread that has not run yet.
fn started() -> (ProcessRef, u32, ThreadRef) {
    let process = with_quota(|quota| (quota.threads, quota.handles, quota.memory_kib) = (4, 20, 64));
    let (_, domain) = put_apart(process);
    process.state.store(ProcessState::Running as u64, Ordering::Release);
    let thread = thread::create(process, ENTRY, Argument::ThreadBlock).expect("a thread");
    sched::make_runnable(thread);
    (process, domain, thread)
}

/// Why a SIP ended.
fn why(process: ProcessRef) -> String {
    assert_eq!(process.state(), ProcessState::Ended);
    process.life.lock().epitaph.as_ref().expect("an epitaph").text.to_string()
}

fn counts() -> [usize; 4] {
    let (pages, exchange, stacks) = memory::usage();
    [pages, exchange, stacks, domains::count()]
}

#[test]
fn a_call_reaches_the_handler_with_the_message_buffer_and_its_answer_comes_back() {
    let _alone = alone();
    let before = counts();
    let (process, domain, thread) = started();
    let block = thread.sip_block_address();
    assert_ne!(block, thread.block_address());
    assert!(domains::reached_from(thread.block_address()).is_empty());
    domains::script(domain, move |context| {
        assert_eq!(context.instruction, ENTRY as u64);
        assert_eq!(context.registers[DomainContext::RDI], block as u64);
        assert_eq!(context.stack() % 16, 8);
        call("stack_bounds", &[])
    });
    domains::script(domain, move |context| {
        let [status, low] = [DomainContext::RAX, DomainContext::RDX].map(|register| context.registers[register]);
        assert_eq!(status, 0);
        // SAFETY: the thread's own block, which only its thread writes to.
        let [first, second] = [0, 1].map(|word| unsafe { (block as *const u64).add(word).read() });
        assert_eq!((second, second - first), (block as u64, low));
        context.registers[DomainContext::RSP] = (block - 4096) as u64;
        call("stack_left", &[])
    });
    domains::script(domain, move |context| {
        let left = abi::stack::USUAL_BYTES - 1024 - 4096 - STACK_RESERVE_BYTES;
        assert_eq!(context.registers[DomainContext::RDX], left as u64);
        call("thread_exit", &[])
    });
    run();
    assert_eq!(why(process), "exited");
    assert_eq!(counts(), before);
}

#[test]
fn pages_are_mapped_in_the_domain_while_they_are_allocated() {
    static ADDRESS: AtomicUsize = AtomicUsize::new(0);
    let _alone = alone();
    let (process, domain, _) = started();
    domains::script(domain, |_| call("memory_allocate", &[3]));
    domains::script(domain, move |context| {
        let address = context.registers[DomainContext::RDX] as usize;
        ADDRESS.store(address, Ordering::Relaxed);
        assert!(domains::reached_from(address + 2 * PAGE_BYTES).contains(&domain));
        call("memory_free", &[address as u64])
    });
    domains::script(domain, move |context| {
        assert_eq!(context.registers[DomainContext::RAX], 0);
        assert!(domains::reached_from(ADDRESS.load(Ordering::Relaxed)).is_empty());
        domains::HAS_FRAMES.store(false, Ordering::Relaxed);
        call("memory_allocate", &[3])
    });
    domains::script(domain, |context| {
        domains::HAS_FRAMES.store(true, Ordering::Relaxed);
        assert_ne!(context.registers[DomainContext::RAX], 0);
        call("thread_exit", &[])
    });
    run();
    assert_eq!(process.state(), ProcessState::Ended);
}

#[test]
fn a_number_that_no_function_has_ends_the_sip() {
    let _alone = alone();
    for bad in [abi::FUNCTIONS.len() as u64, u64::MAX, 1 << 32] {
        let (process, domain, _) = started();
        domains::script(domain, move |_| DomainExit::Call { gate: bad, arguments: [u64::MAX; 6] });
        run();
        assert_eq!(why(process), format!("called function {bad} of the kernel, which does not exist"));
    }
}

#[test]
fn a_call_with_the_stack_used_up_ends_the_sip_as_it_does_outside() {
    let _alone = alone();
    let (process, domain, thread) = started();
    let stack = thread.inside.low.load(Ordering::Relaxed);
    domains::script(domain, move |context| {
        context.registers[DomainContext::RSP] = (stack + STACK_RESERVE_BYTES - 8) as u64;
        call("thread_yield", &[])
    });
    run();
    assert_eq!(why(process), "called the kernel with its stack used up");
}

#[test]
fn a_wild_stack_pointer_at_a_call_harms_nobody() {
    let _alone = alone();
    for pointer in [0, 1, usize::MAX, 1 << 63] {
        let (process, domain, _) = started();
        domains::script(domain, move |context| {
            context.registers[DomainContext::RSP] = pointer as u64;
            call("stack_left", &[])
        });
        domains::script(domain, |context| {
            assert_eq!(context.registers[DomainContext::RAX], 0);
            call("thread_exit", &[])
        });
        run();
        assert_eq!(why(process), "exited");
    }
}

fn missing(address: usize) -> DomainExit {
    DomainExit::Missing(Fault { kind: FaultKind::Memory, instruction: ENTRY, address, stack: 0 })
}

fn fault(kind: FaultKind, address: usize) -> DomainExit {
    DomainExit::Fault(Fault { kind, instruction: ENTRY, address, stack: 0 })
}

#[test]
fn stacks_grow_and_other_faults_end_the_sip() {
    let _alone = alone();
    let (process, domain, thread) = started();
    let stack = thread.inside.stack.load(Ordering::Relaxed);
    let page = stack::start(stack) + STACK_GUARD_BYTES;
    assert!(domains::reached_from(page).is_empty());
    domains::script(domain, move |_| missing(page + 8));
    domains::script(domain, move |_| {
        assert!(domains::reached_from(page).contains(&domain));
        // The guard is no part of the stack.
        missing(page - 8)
    });
    run();
    assert!(why(process).starts_with("used up its stack"), "{}", why(process));
    for (kind, address) in [(FaultKind::Memory, page), (FaultKind::Trap, 0), (FaultKind::Instruction, 0)] {
        let (process, domain, _) = started();
        domains::script(domain, move |_| fault(kind, address));
        run();
        assert_eq!(process.state(), ProcessState::Ended);
    }
    for address in [0, usize::MAX, stack::start(stack + STACK_SLOT_BYTES) + STACK_GUARD_BYTES] {
        let (process, domain, _) = started();
        domains::script(domain, move |_| missing(address));
        run();
        assert_eq!(process.state(), ProcessState::Ended);
    }
}

#[test]
fn a_stack_of_another_domain_is_not_mapped() {
    let _alone = alone();
    let ((victim, _, thread), (process, domain, _)) = (started(), started());
    let page = stack::start(thread.inside.stack.load(Ordering::Relaxed)) + STACK_GUARD_BYTES;
    let other = victim.space.get().expect("a space").domain().0;
    domains::script(other, |_| call("thread_exit", &[]));
    domains::script(domain, move |_| missing(page));
    run();
    assert!(why(process).contains("accessed address"), "{}", why(process));
}

#[test]
fn a_killed_thread_does_not_enter_its_domain_again() {
    static ENTERED: AtomicUsize = AtomicUsize::new(0);
    let _alone = alone();
    let before = counts();
    let (process, domain, _) = started();
    domains::script(domain, move |_| {
        ENTERED.fetch_add(1, Ordering::Relaxed);
        lifecycle::end(process, Epitaph::new(EpitaphKind::Stopped, "killed"));
        DomainExit::Interrupt
    });
    run();
    assert_eq!((why(process).as_str(), ENTERED.load(Ordering::Relaxed)), ("killed", 1));
    assert_eq!(counts(), before);
}

/// Its own stack is the large one, the kernel's for it is not. What it has beyond the usual size is charged while the
/// thread lives, and a thread for which there is no quota is refused.
#[test]
fn a_large_stack_is_in_the_domain_and_is_charged() {
    let _alone = alone();
    let before = counts();
    let process = with_quota(|quota| (quota.threads, quota.memory_kib, quota.stack_kib) = (4, 1600, 1024));
    let (_, domain) = put_apart(process);
    process.state.store(ProcessState::Running as u64, Ordering::Release);
    let make = || thread::create(process, ENTRY, Argument::ThreadBlock);
    let [first, second] = [make(), make()].map(|thread| thread.expect("a thread"));
    let (own, kernels) = (first.sip_block_address(), first.block_address());
    assert_eq!((stack::bytes_at(own), stack::bytes_at(kernels)), (1024 * 1024, stack::USUAL_BYTES));
    assert_eq!(first.limit.load(Ordering::Relaxed), stack::start(kernels) + STACK_RESERVE_BYTES);
    assert_eq!(process.page_usage(), (2 * 192, 400));
    assert_eq!((make().err(), process.page_usage().0), (Some(abi::Status::QuotaExceeded), 2 * 192));
    let lowest = stack::start(own) + STACK_GUARD_BYTES;
    domains::script(domain, move |_| missing(lowest));
    domains::script(domain, move |_| {
        assert!(domains::reached_from(lowest).contains(&domain));
        call("thread_exit", &[])
    });
    domains::script(domain, |_| call("thread_exit", &[]));
    sched::make_runnable(first);
    run();
    assert_eq!(process.page_usage().0, 192);
    sched::make_runnable(second);
    run();
    assert_eq!((process.state(), counts()), (ProcessState::Ended, before));
}

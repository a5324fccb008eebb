//! Deferred work of interrupts, timers and other processors for one processor, like Linux's softirqs.
//!
//! It is done at the end of an ABI call or after an interrupt ([`service_pending`]), at the kernel's preemption points
//! ([`preempt::pause`]), and by the idle loop. Neighbours: `entry` above; everything that defers work below.

use core::sync::atomic::Ordering;

use abi::{AbiReturn, EpitaphKind};
use hal_api::{AfterCall, ObservedCall};

use crate::machine::machine;
use crate::preempt::{
    self, PENDING_INTERRUPT, PENDING_KILL, PENDING_OBSERVER, PENDING_RECLAIM, PENDING_TIMER, PENDING_WAKE,
};
use crate::process::{Epitaph, ProcessRef, stream};
use crate::{arch, cpu, device, hardware, latency, lifecycle, recorder, sched, timers, wait};

/// Makes preemption points do deferred work. Called before any thread runs.
pub fn start() {
    preempt::start(preempt::Hooks { service: service_at_preemption_point, yield_now: sched::yield_now });
}

/// Does pending work of this processor at the end of an ABI call, of which a machine that observes calls is told first;
/// returns the call's answer.
#[cold]
#[inline(never)]
pub fn service_after_call(function: u32, answer: AbiReturn) -> AbiReturn {
    if arch::cpu_pending() & PENDING_OBSERVER != 0 {
        report_call(function, answer);
    }
    service_pending();
    answer
}

fn report_call(function: u32, answer: AbiReturn) {
    let Some(process) = cpu::current().owner() else { return };
    let Some(program) = process.program.get() else { return };
    let id = process.id.load(Ordering::Relaxed);
    let (program, status, value) = (program.manifest.name.as_str(), answer.status, answer.value);
    let call = ObservedCall { process: id, program, function, status, value };
    if machine().call_ended(&call) == AfterCall::End {
        lifecycle::end(process, Epitaph::new(EpitaphKind::Stopped, "ended by the machine, as a fault"));
    }
}

/// Does pending work of this processor, after an interrupt, for instance.
#[cold]
#[inline(never)]
pub fn service_pending() {
    loop {
        let pending = cpu::this().pending.fetch_and(PENDING_OBSERVER, Ordering::AcqRel) & !PENDING_OBSERVER;
        if pending == 0 {
            return;
        }
        if pending & PENDING_INTERRUPT != 0 {
            hardware::deliver();
        }
        if pending & PENDING_WAKE != 0 {
            timers::expire();
            wait::wake_later();
        }
        if pending & PENDING_RECLAIM != 0 {
            lifecycle::reclaim();
        }
        let current = cpu::current();
        if current.owner().is_none_or(|process| process.is_dying()) {
            lifecycle::end_current_thread();
        }
        if pending & PENDING_TIMER != 0 {
            timers::expire();
            device::dispose_orphans();
        }
        sched::let_others_run(current, pending);
    }
}

/// Does pending work in the middle of kernel work: all but reclaiming memory and ending the thread.
fn service_at_preemption_point() {
    if arch::cpu_pending() & PENDING_OBSERVER != 0 {
        machine().preemption_point();
    }
    // The idle context polls by itself, and nothing else can run in its place.
    let Some(current) = cpu::this().current() else { return };
    if latency::is_on() {
        latency::between(&current.stretch, || service_some(current));
    } else {
        service_some(current);
    }
}

fn service_some(current: crate::thread::ThreadRef) {
    let pending = cpu::this().pending.fetch_and(PENDING_KILL | PENDING_RECLAIM | PENDING_OBSERVER, Ordering::AcqRel);
    if pending & PENDING_INTERRUPT != 0 {
        hardware::deliver();
    }
    if pending & PENDING_WAKE != 0 {
        wait::wake_later();
    }
    if pending & (PENDING_TIMER | PENDING_WAKE) != 0 {
        timers::expire();
    }
    sched::let_others_run(current, pending);
}

/// Entry of a new thread.
pub extern "C" fn arrive_new_thread() {
    sched::finish_switch();
    stream::arrived(cpu::current());
    if arch::cpu_pending() != 0 {
        service_pending();
    }
    if recorder::is_on()
        && let Some(process) = cpu::current().owner()
    {
        take_turn(process);
        recorder::thread_started(process, cpu::current());
    }
}

/// Waits for the calling thread's turn, in a run that is recorded, and does what has come up meanwhile.
pub fn take_turn(process: ProcessRef) {
    if !process.turn.take() || process.is_dying() {
        lifecycle::end_current_thread();
    }
    if arch::cpu_pending() != 0 {
        service_pending();
    }
}

/// Main loop of each processor from boot to shutdown, in its idle context.
pub fn processor_main() {
    let cpu = cpu::this();
    if machine().observes_calls() {
        preempt::begin_observed();
        cpu.pending.fetch_or(PENDING_OBSERVER, Ordering::Relaxed);
    }
    loop {
        hardware::deliver();
        timers::expire();
        wait::wake_later();
        device::dispose_orphans();
        if !sched::run_next(cpu) {
            let has_work = || hardware::has_fired() || wait::has_later() || device::has_orphans();
            sched::sleep(cpu, || (!has_work()).then(timers::next));
        }
    }
}

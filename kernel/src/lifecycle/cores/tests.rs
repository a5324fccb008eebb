//! Tests of cores, on the test machine.

extern crate std;

use abi::HeldEndpoint;

use super::*;
use crate::channel::create;
use crate::channel::test_contract::contract;
use crate::exheap;
use crate::lifecycle::{end, trace_of};
use crate::process::Epitaph;
use crate::test_machine::{alone, with_quota};

fn user() -> ProcessRef {
    with_quota(|quota| (quota.block_kib, quota.handles) = (1 << 16, 10_000))
}

/// The records from `CoreBegins` to `CoreEnds` of a process that died.
fn core_of(process: ProcessRef) -> Vec<TraceRecord> {
    let id = process.id.load(Ordering::Relaxed);
    end(process, Epitaph::new(EpitaphKind::Panicked, "died"));
    let mut trace = trace_of(id).expect("it ended just now");
    let begin = trace.iter().position(|record| record.kind == TraceKind::CoreBegins as u64).expect("a core");
    trace.split_off(begin)
}

fn of_kind(records: &[TraceRecord], kind: TraceKind) -> Vec<(u64, u64)> {
    let of_kind = records.iter().filter(|record| record.kind == kind as u64);
    of_kind.map(|record| (record.a, record.b)).collect()
}

#[test]
fn a_core_has_the_endpoints_and_blocks_that_were_held() {
    let _alone = alone();
    let process = user();
    let (importer, _) = create(process, contract()).expect("a channel");
    let block = exheap::allocate(process, 300, 5).expect("a block");
    let lent = exheap::allocate(process, 40, 6).expect("a block");
    assert!(lent.push_loan(importer.handle()));
    let expected_block = (5, block.size() as u64);
    let expected_loan = (6, lent.size() as u64);
    let id = process.id.load(Ordering::Relaxed);
    let records = core_of(process);
    assert_eq!(of_kind(&records, TraceKind::HeldBlock), [expected_block]);
    assert_eq!(of_kind(&records, TraceKind::HeldLoan), [expected_loan]);
    let held = of_kind(&records, TraceKind::HeldEndpoint);
    let states: Vec<_> = held.iter().map(|(_, word)| HeldEndpoint::from_word(*word)).collect();
    assert!(held.iter().any(|(handle, _)| *handle == importer.handle()));
    for is_importer in [true, false] {
        assert!(states.contains(&HeldEndpoint { contract: contract().index, state: 0, is_importer }), "{states:?}");
    }
    // Both ends were its own.
    assert_eq!(of_kind(&records, TraceKind::HeldPeer), [(id, 0), (id, 0)]);
    assert_eq!(of_kind(&records, TraceKind::CoreEnds), [(2, 2)]);
}

#[test]
fn what_does_not_fit_is_counted() {
    let _alone = alone();
    let process = user();
    for _ in 0..HOLDINGS + 9 {
        create(process, contract()).expect("a channel");
        exheap::allocate(process, 64, 0).expect("a block");
    }
    let records = core_of(process);
    assert_eq!(of_kind(&records, TraceKind::HeldEndpoint).len(), HOLDINGS);
    assert_eq!(of_kind(&records, TraceKind::HeldBlock).len(), HOLDINGS);
    let all = HOLDINGS as u64 + 9;
    assert_eq!(of_kind(&records, TraceKind::CoreEnds), [(2 * all, all)]);
}

#[test]
fn who_exits_leaves_no_core() {
    let _alone = alone();
    let process = user();
    let id = process.id.load(Ordering::Relaxed);
    end(process, Epitaph::exited(1));
    let trace = trace_of(id).expect("it ended just now");
    assert!(trace.iter().all(|record| record.kind != TraceKind::CoreBegins as u64));
    assert!(trace_of(0).is_none() && trace_of(u64::MAX).is_none(), "of no process");
}

fn core(id: u64, name: &'static str, order: u64) -> Core {
    Core { id, name: Some(name), order, ..FREE }
}

#[test]
fn a_program_that_dies_often_displaces_its_own_cores() {
    let mut cores = Cores { kept: [FREE; CORES], next: 1 };
    cores.kept[0] = core(1, "rare", 1);
    assert_ne!(cores.displaced(), 0, "there are free ones");
    for (index, place) in cores.kept.iter_mut().enumerate().skip(1) {
        *place = core(100 + index as u64, "often", 100 - index as u64);
    }
    assert_eq!(cores.displaced(), CORES - 1, "the oldest of the program with the most");
    cores.kept.fill(core(1, "same", 9));
    cores.kept[7].order = 3;
    assert_eq!(cores.displaced(), 7);
}

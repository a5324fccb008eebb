//! Runs pairs of fuzzers for a range of seeds, and judges their exits.
//!
//! The two of a pair communicate with each other and with the victim. Deliberately not here: their actions; see
//! `tests/hostile/fuzzer`.

use alloc::format;
use alloc::string::{String, ToString};

use hostile_contract::talk;
use sip::process::{Child, Epitaph, EpitaphKind, create};
use sip::{Deadline, log};

use crate::ground::Ground;
use crate::{Outcome, check, leftovers};

const FUZZER: &str = "hostile-fuzzer";
const VICTIM_SLOT: usize = 0;
const CLIENT_SLOT: usize = 1;
const SERVER_SLOT: usize = 2;
const SEED_PARAMETER: usize = 0;
const STEPS_PARAMETER: usize = 1;
/// Timeout of a pair.
const LIMIT_MS: u64 = 60_000;
/// Number of seeds between counts of resources.
const COUNTED_TOGETHER: u64 = 50;
const USUAL_STEPS: u64 = 400;

/// Parsed request: `FIRST COUNT`, `FIRST COUNT STEPS`, or `FIRST for SECONDS`.
struct Request {
    first: u64,
    /// End, exclusive.
    end: u64,
    steps: u64,
    deadline: Deadline,
}

impl Request {
    fn read(text: &str) -> Option<Request> {
        let mut words = text.split_whitespace();
        let first = words.next()?.parse().ok()?;
        let request = |end, steps, deadline| Request { first, end, steps, deadline };
        Some(match (words.next()?, words.next()) {
            ("for", Some(seconds)) => {
                request(u64::MAX, USUAL_STEPS, Deadline::after_ms(seconds.parse::<u64>().ok()?.checked_mul(1000)?))
            }
            (count, steps) => {
                let steps = steps.map_or(Some(USUAL_STEPS), |steps| steps.parse().ok())?;
                request(u64::checked_add(first, count.parse().ok()?)?, steps, Deadline::NEVER)
            }
        })
    }
}

/// Runs the request in `text`; the exit status is 1 if something was found.
pub(crate) fn run(text: &str, ground: &mut Ground) -> i32 {
    let Some(request) = Request::read(text) else {
        log!(
            "test {FUZZER}: write `fuzz FIRST COUNT`, `fuzz FIRST COUNT STEPS` or `fuzz FIRST for SECONDS` ... FAILED"
        );
        return 1;
    };
    let mut seed = request.first;
    let mut pairs_ended_early = 0;
    while seed < request.end && !request.deadline.has_passed() {
        let end = request.end.min(seed.saturating_add(COUNTED_TOGETHER));
        match seeds(seed, end, request.steps, ground) {
            Ok(early) => pairs_ended_early += early,
            Err((found, why)) => {
                let count = if found.is_some() { 1 } else { end - seed };
                let first = found.unwrap_or(seed);
                log!(
                    "test {FUZZER}: seed {first} ... FAILED: {why}; it is repeated by \
                     `cargo sing run --system hostile -c 'fuzz {first} {count} {}'`",
                    request.steps
                );
                return 1;
            }
        }
        seed = end;
    }
    log!(
        "test {FUZZER}: seeds {} to {} ... ok ({} of {} programs ended early)",
        request.first,
        seed - 1,
        pairs_ended_early,
        2 * (seed - request.first)
    );
    0
}

/// Runs these seeds. Returns the number of programs that ended before their last step; the error is a finding with its
/// seed.
fn seeds(first: u64, end: u64, steps: u64, ground: &mut Ground) -> Result<u64, (Option<u64>, String)> {
    let before = leftovers::Count::settled().map_err(|why| (None, why))?;
    let mut early = 0;
    for seed in first..end {
        early += pair(seed, steps, ground).map_err(|why| (Some(seed), why))?;
    }
    let whole = ground.serves().and_then(|()| before.wait_until_back()).and_then(|()| ground.nobody_else_ended());
    whole.map_err(|why| (None, why))?;
    Ok(early)
}

/// Runs two fuzzers to completion; returns how many ended early.
fn pair(seed: u64, steps: u64, ground: &mut Ground) -> Result<u64, String> {
    let channel = || talk::new_channel().map_err(|status| format!("a channel: {}", status.text()));
    let ((client, server), (other_client, other_server)) = (channel()?, channel()?);
    let mut ends = [(client, other_server), (other_client, server)].into_iter();
    let mut start = |number: u64| -> Result<Child, String> {
        let (client, server) = ends.next().ok_or_else(|| String::from("two programs are a pair"))?;
        let victim = ground.new_client()?;
        let child = create(FUZZER).map_err(|error| error.to_string())?;
        child
            .parameter(SEED_PARAMETER, &(2 * seed + number).to_string())
            .and_then(|child| child.parameter(STEPS_PARAMETER, &steps.to_string()))
            .and_then(|child| child.endpoint(VICTIM_SLOT, victim))
            .and_then(|child| child.endpoint(CLIENT_SLOT, client))
            .and_then(|child| child.endpoint(SERVER_SLOT, server))
            .and_then(Child::start)
            .map_err(|status| format!("{FUZZER}: {}", status.text()))
    };
    let children = [start(0)?, start(1)?];
    let mut early = 0;
    for child in &children {
        let epitaph = child
            .wait_until(Deadline::after_ms(LIMIT_MS))
            .map_err(|status| format!("a fuzzer does not end: {}", status.text()))?;
        judge(&epitaph)?;
        early += u64::from(epitaph.kind != EpitaphKind::Exited);
    }
    ground.is_unharmed()?;
    Ok(early)
}

/// A fuzzer may be refused a request, and be ended for it; it must not fault.
fn judge(epitaph: &Epitaph) -> Outcome {
    match epitaph.kind {
        EpitaphKind::Exited => check!(epitaph.status == 0, "a fuzzer found something; it says what above"),
        EpitaphKind::ContractViolation => {}
        EpitaphKind::Panicked => {
            let is_own = epitaph.text.contains("tests/hostile/fuzzer");
            check!(!is_own, "the fuzzer itself is wrong: {epitaph}");
            // The kernel never sends one: the words of the reply were forged.
            check!(!epitaph.text.contains("a block without an address"), "a fuzzer made a block up: {epitaph}");
        }
        _ => return Err(format!("a fuzzer ended by {:?}: {epitaph}", epitaph.kind)),
    }
    Ok(())
}

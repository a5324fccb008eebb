//! Principals: invocation, roles and delegation, and the audit ring.
//!
//! Deliberately not here: foreign handles of children and endpoints, which the attacker tries with every function.

use alloc::format;
use alloc::string::{String, ToString};

use conformance_contract::errand;
use errand::{ExpReady, ImpReadyAfterCall, states};
use sip::abi::limits::{AUDIT_LINES, AUDIT_TEXT_BYTES, PRINCIPAL_LINKS, ROLE_BYTES};
use sip::channel::TypedEndpoint;
use sip::process::{Child, EpitaphKind};
use sip::{Status, audit, principal};

use crate::job::{Job, channel, citizen, end_of, stop};
use crate::messages::{ENDINGS, finish};
use crate::{Outcome, Settings, Test, check, function};

/// The suite's own principal, without an invoker.
const SUITE: &str = "conformance.singularity";
/// The safe program's, alone.
const CITIZEN: &str = "conformance-citizen.singularity";

/// The tests of this module.
pub(crate) fn tests() -> alloc::vec::Vec<Test> {
    alloc::vec![
        function("principal: one that is only created is its program's", plain),
        function("principal: an invoked child names who invoked it", invoked),
        function("principal: a role is the invoker's", in_role),
        function("principal: a role needs its permission", role_without_permission),
        function("principal: what no role can be is refused", bad_roles),
        function("principal: is made once, before endpoints and start", made_once),
        function("principal: a chain has at most so many links", longest_chain),
        function("principal: of a peer that ended", of_the_dead),
        function("principal: invoked, then ended at every point", ended_at_every_point),
        function("delegation: the next owner speaks for both", delegated),
        function("delegation: at start", delegated_at_start),
        function("delegation: not yet in the message", delegated_in_flight),
        function("delegation: ends with the next move", not_replayed),
        function("delegation: again, and it grows", delegated_again),
        function("delegation: back to who delegated", delegated_to_oneself),
        function("delegation: too long a chain is the owner's alone", delegated_too_long),
        function("delegation: who delegated ended at every point", delegator_ends),
        function("audit: notes are kept in order, whole", notes),
        function("audit: a note cannot look like two, nor be too long", note_forms),
        function("audit: what is repeated takes one line", repeated),
        function("audit: keeps so many lines and says what is lost", ring),
        function("audit: needs its permissions", without_permission),
    ]
}

fn text(status: Status) -> String {
    status.text().to_string()
}

/// Starts a citizen, created by `make`, that sends its principal; both the sent one and the peer's view must be
/// `expected`.
fn says(expected: &str, make: impl FnOnce(Child) -> Result<Child, Status>) -> Outcome {
    let (importer, exporter) = channel()?;
    let created = citizen("say-principal").create()?;
    let child = make(created).map_err(text)?;
    let child = child.endpoint(0, importer).and_then(Child::start).map_err(text)?;
    said(expected, exporter)?;
    end_of(&child).map(drop)
}

/// Receives a citizen's principal, and compares it with the kernel's for the endpoint.
fn said(expected: &str, exporter: errand::Exp<states::Ready>) -> Outcome {
    let ExpReady::Give { data, next } = exporter.receive() else { return Err("it said nothing".into()) };
    check!(&*data == expected.as_bytes(), "it is `{}`, not `{expected}`", String::from_utf8_lossy(&data));
    peer_is(&next, expected)?;
    drop(next.given_back(data));
    Ok(())
}

fn peer_is<E: TypedEndpoint>(endpoint: &E, expected: &str) -> Outcome {
    let peer = principal::of_peer(endpoint).map_err(text)?;
    check!(peer == expected, "the peer is `{peer}`, not `{expected}`");
    Ok(())
}

fn plain(_: &Settings) -> Outcome {
    check!(principal::own() == SUITE, "the suite is `{}`", principal::own());
    says(CITIZEN, Ok)
}

fn invoked(_: &Settings) -> Outcome {
    says(&format!("{SUITE} + {CITIZEN}"), Child::invoke)
}

fn in_role(_: &Settings) -> Outcome {
    let longest = "r".repeat(ROLE_BYTES);
    for role in ["tester", "a", "web-admin-2", &longest] {
        says(&format!("{SUITE}@{role} + {CITIZEN}"), |child| child.invoke_in_role(role))?;
    }
    // Only that child's principal got the role.
    check!(principal::own() == SUITE, "the suite is `{}`", principal::own());
    says(&format!("{SUITE} + {CITIZEN}"), Child::invoke)
}

fn role_without_permission(_: &Settings) -> Outcome {
    let from = next_line()?;
    citizen("speak-in-role").succeed()?;
    audited(from, &format!("kernel: {CITIZEN} refused assign-role on the kernel (its manifest has no such permission)"))
}

fn bad_roles(_: &Settings) -> Outcome {
    let too_long = "r".repeat(ROLE_BYTES + 1);
    for role in ["", "Admin", "2", "-", "a b", "a + b.c", "a@b", "a.b", "ä", "a\n", &too_long] {
        let child = citizen("exit").create()?;
        let answer = child.invoke_in_role(role).err();
        check!(answer == Some(Status::BadArgument), "the role `{role}`: {answer:?}");
    }
    Ok(())
}

fn made_once(_: &Settings) -> Outcome {
    let twice = citizen("exit").create()?.invoke().and_then(Child::invoke);
    check!(twice.err() == Some(Status::WrongState), "it was invoked twice");
    let (importer, _exporter) = channel()?;
    let with_endpoint = citizen("exit").create()?.endpoint(0, importer).map_err(text)?.invoke();
    check!(with_endpoint.err() == Some(Status::WrongState), "one with an endpoint was invoked");
    let started = citizen("exit").start()?.invoke();
    check!(started.err() == Some(Status::WrongState), "one that was started was invoked");
    Ok(())
}

fn longest_chain(_: &Settings) -> Outcome {
    // The suite is the first link, the first citizen the second.
    let generations = PRINCIPAL_LINKS as u64 - 2;
    let (importer, exporter) = channel()?;
    let child = start_invoked(citizen("invoke-chain").number(generations), importer)?;
    said(&format!("{SUITE}{}", format!(" + {CITIZEN}").repeat(PRINCIPAL_LINKS - 1)), exporter)?;
    let epitaph = end_of(&child)?;
    check!(epitaph.is_success(), "{epitaph}");
    let from = next_line()?;
    let (importer, exporter) = channel()?;
    let child = start_invoked(citizen("invoke-chain").number(generations + 1), importer)?;
    let epitaph = end_of(&child)?;
    check!(epitaph.kind == EpitaphKind::Exited && epitaph.status == 1, "{epitaph}");
    let ExpReady::ChannelClosed(_) = exporter.receive() else { return Err("a link too many speaks".into()) };
    audited(from, "refused start on conformance-citizen (too many programs have invoked")
}

fn start_invoked(job: Job, client: errand::Imp<states::Ready>) -> Result<Child, String> {
    let child = job.create()?.invoke().map_err(text)?;
    child.endpoint(0, client).and_then(Child::start).map_err(text)
}

fn of_the_dead(_: &Settings) -> Outcome {
    for ending in ENDINGS {
        let (importer, exporter) = channel()?;
        let child = start_invoked(citizen("send-block").ending(ending).number(10), importer)?;
        finish(&child, ending)?;
        peer_is(&exporter, &format!("{SUITE} + {CITIZEN}"))?;
    }
    Ok(())
}

fn ended_at_every_point(_: &Settings) -> Outcome {
    // Released before it starts.
    drop(citizen("exit").create()?.invoke().map_err(text)?);
    // Stopped before it starts.
    let child = citizen("exit").create()?.invoke().map_err(text)?;
    stop(&child)?;
    check!(child.invoke().err() == Some(Status::WrongState), "one that ended was invoked");
    // Stopped shortly after.
    for delay_us in [0, 20, 100, 1000] {
        let (importer, exporter) = channel()?;
        let child = start_invoked(citizen("ask-often"), importer)?;
        sip::thread::sleep(sip::Deadline::after_ns(delay_us * 1000));
        stop(&child)?;
        peer_is(&exporter, &format!("{SUITE} + {CITIZEN}"))?;
    }
    Ok(())
}

/// Sends an endpoint to a citizen that calls over it; returns the principal of that call.
fn called_by(end: errand::Imp<states::Ready>, stays: errand::Exp<states::Ready>, expected: &str) -> Outcome {
    let (carrier, its_server) = channel()?;
    let carrier = carrier.pass(end);
    let child = citizen("keep-passed").server(its_server).start()?;
    let ExpReady::Call { value: 41, next } = stays.receive() else { return Err("it did not call".into()) };
    peer_is(&next, expected)?;
    end_of(&child)?;
    // Also when it has ended.
    peer_is(&next, expected)?;
    drop((next, carrier));
    Ok(())
}

fn delegated(_: &Settings) -> Outcome {
    let (end, stays) = channel()?;
    called_by(end, stays, CITIZEN)?;
    let (end, stays) = channel()?;
    principal::delegate(&end).map_err(text)?;
    // Marking is idempotent.
    principal::delegate(&end).map_err(text)?;
    called_by(end, stays, &format!("{SUITE} + {CITIZEN}"))
}

fn delegated_at_start(_: &Settings) -> Outcome {
    let (importer, exporter) = channel()?;
    principal::delegate(&importer).map_err(text)?;
    let child = citizen("send-block").number(1).client(importer).start()?;
    let ExpReady::Give { next, .. } = exporter.receive() else { return Err("it did not speak".into()) };
    peer_is(&next, &format!("{SUITE} + {CITIZEN}"))?;
    end_of(&child).map(drop)
}

fn delegated_in_flight(_: &Settings) -> Outcome {
    let (end, stays) = channel()?;
    principal::delegate(&end).map_err(text)?;
    let (carrier, arrival) = channel()?;
    let carrier = carrier.pass(end);
    peer_is(&stays, SUITE)?;
    // Never received.
    drop((carrier, arrival));
    peer_is(&stays, SUITE)
}

/// The ends of a channel over which a citizen passes endpoints from one to the other.
struct Relay {
    child: Child,
    into: errand::Imp<states::Ready>,
    out: errand::Exp<states::Ready>,
}

fn relay(act: &str, ending: &'static str) -> Result<Relay, String> {
    let (into, its_server) = channel()?;
    let (its_client, out) = channel()?;
    let child = citizen(act).ending(ending).server(its_server).client(its_client).start()?;
    Ok(Relay { child, into, out })
}

/// Sends an endpoint through a citizen and receives it back.
fn through(
    act: &str,
    ending: &'static str,
    end: errand::Imp<states::Ready>,
) -> Result<errand::Imp<states::Ready>, String> {
    let Relay { child, into, out } = relay(act, ending)?;
    let waiting = into.pass(end);
    if ending != "wait" {
        end_of(&child)?;
    }
    let ExpReady::Pass { end, next } = out.receive() else { return Err("it did not pass the endpoint on".into()) };
    finish(&child, ending)?;
    drop((next, waiting));
    Ok(end)
}

fn not_replayed(_: &Settings) -> Outcome {
    // Delegated to a citizen, which sends it on without delegating.
    let (end, stays) = channel()?;
    principal::delegate(&end).map_err(text)?;
    let Relay { child, into, out } = relay("pass-on", "wait")?;
    let waiting = into.pass(end);
    let ExpReady::Pass { end, next } = out.receive() else { return Err("it did not pass the endpoint on".into()) };
    peer_is(&stays, SUITE)?;
    // The next owner acts for itself alone, regardless of previous owners.
    called_by(end, stays, CITIZEN)?;
    drop((waiting, next));
    finish(&child, "wait")
}

fn delegated_again(_: &Settings) -> Outcome {
    let (end, stays) = channel()?;
    principal::delegate(&end).map_err(text)?;
    let end = through("delegate-on", "exit", end)?;
    let both = format!("{SUITE} + {CITIZEN}");
    peer_is(&stays, &format!("{both} + {SUITE}"))?;
    principal::delegate(&end).map_err(text)?;
    called_by(end, stays, &format!("{both} + {SUITE} + {CITIZEN}"))
}

fn delegated_to_oneself(_: &Settings) -> Outcome {
    let (end, stays) = channel()?;
    principal::delegate(&end).map_err(text)?;
    let (carrier, arrival) = channel()?;
    let carrier = carrier.pass(end);
    let ExpReady::Pass { end, next } = arrival.receive() else { return Err("the endpoint is lost".into()) };
    peer_is(&stays, SUITE)?;
    drop((carrier, next));
    // The move cleared the mark.
    called_by(end, stays, CITIZEN)
}

fn delegated_too_long(_: &Settings) -> Outcome {
    let (mut end, stays) = channel()?;
    // The suite, then alternately a citizen and the suite again.
    for turn in 1..PRINCIPAL_LINKS / 2 {
        principal::delegate(&end).map_err(text)?;
        end = through("delegate-on", "exit", end)?;
        let peer = principal::of_peer(&stays).map_err(text)?;
        let links = peer.split(principal::JOINT).count();
        check!(links == 1 + 2 * turn, "after turn {turn} the peer is `{peer}`");
    }
    principal::delegate(&end).map_err(text)?;
    let from = next_line()?;
    end = through("delegate-on", "exit", end)?;
    peer_is(&stays, SUITE)?;
    drop(end);
    audited(from, &format!("{SUITE} refused delegation on an endpoint (its principal would be too long)"))
}

fn delegator_ends(_: &Settings) -> Outcome {
    for ending in ENDINGS {
        let (end, stays) = channel()?;
        let end = through("delegate-on", ending, end)?;
        // It had delegated before it ended.
        peer_is(&stays, &format!("{CITIZEN} + {SUITE}"))?;
        let waiting = end.call(1);
        let ExpReady::Call { next, .. } = stays.receive() else { return Err("the call is lost".into()) };
        let ImpReadyAfterCall::Answer { .. } = next_answer(next, waiting) else {
            return Err("the answer is lost".into());
        };
    }
    // It exits while holding the endpoint.
    let (end, stays) = channel()?;
    principal::delegate(&end).map_err(text)?;
    called_by(end, stays, &format!("{SUITE} + {CITIZEN}"))
}

fn next_answer(
    next: errand::Exp<states::ReadyAfterCall>,
    waiting: errand::Imp<states::ReadyAfterCall>,
) -> ImpReadyAfterCall {
    let _server = next.answer(2);
    waiting.receive()
}

/// Number of the next line of the ring.
pub(crate) fn next_line() -> Result<u64, String> {
    audit::read(u64::MAX).map(|(_, next)| next).map_err(text)
}

/// Checks that a line since number `from` contains the expected text.
pub(crate) fn audited(from: u64, expected: &str) -> Outcome {
    let (lines, _) = audit::read(from).map_err(text)?;
    check!(lines.contains(expected), "no line has `{expected}`: {lines}");
    Ok(())
}

fn notes(_: &Settings) -> Outcome {
    let from = next_line()?;
    audit::refused("a.b + c.d@e", "read", "/secret", "the test");
    audit::note("something else").map_err(text)?;
    let (lines, next) = audit::read(from).map_err(text)?;
    check!(next == from + 2, "two lines took the ring from {from} to {next}");
    let now = sip::time::monotonic() / 1_000_000;
    for (line, expected) in lines.lines().zip(["a.b + c.d@e refused read on /secret (the test)", "something else"]) {
        let (time, rest) = line.split_once(' ').unwrap_or_default();
        let time: u64 = time.parse().map_err(|_| format!("no time: {line}"))?;
        check!(time <= now && now - time < 60_000, "noted at {time} ms, and now it is {now} ms");
        check!(rest == format!("conformance: {expected}"), "{line}");
    }
    check!(lines.lines().count() == 2, "{lines}");
    let (later, same) = audit::read(next).map_err(text)?;
    check!(later.is_empty() && same == next, "nothing was noted, and yet: {later}");
    Ok(())
}

fn note_forms(_: &Settings) -> Outcome {
    let from = next_line()?;
    audit::note("one\n1 kernel: two\r\u{1b}[2J").map_err(text)?;
    audit::note(&"ö".repeat(AUDIT_TEXT_BYTES)).map_err(text)?;
    audit::note("").map_err(text)?;
    let (lines, next) = audit::read(from).map_err(text)?;
    check!(next == from + 3 && lines.lines().count() == 3, "{lines}");
    check!(lines.contains("conformance: one\\n1 kernel: two\\r\\x1b[2J\n"), "{lines}");
    let longest = lines.lines().map(str::len).max().unwrap_or(0);
    check!(longest < AUDIT_TEXT_BYTES + 64, "a line of {longest} bytes");
    Ok(())
}

fn repeated(_: &Settings) -> Outcome {
    let from = next_line()?;
    for _ in 0..5 {
        audit::refused("a.b", "write", "/again", "the test");
    }
    audit::refused("a.b", "write", "/other", "the test");
    let (lines, next) = audit::read(from).map_err(text)?;
    check!(next == from + 2, "{lines}");
    check!(lines.contains("/again (the test), 5 times\n"), "{lines}");
    Ok(())
}

/// Two alternating refusals, then ever new ones: neither evicts another program's entries.
fn ring(_: &Settings) -> Outcome {
    let from = next_line()?;
    audit::refused("victim.a", "read", "/secret", "the test");
    for _ in 0..AUDIT_LINES {
        audit::refused("flood.b", "read", "/one", "the test");
        audit::refused("flood.b", "read", "/two", "the test");
    }
    let (lines, next) = audit::read(from).map_err(text)?;
    check!(next == from + 3 && lines.lines().count() == 3, "{lines}");
    check!(lines.contains("flood.b refused read on /two (the test), 1024 times\n"), "{lines}");
    for number in 0..2 * AUDIT_LINES {
        audit::refused("flood.b", "read", &format!("/{number}"), "the test");
    }
    let (lines, later) = audit::read(from).map_err(text)?;
    check!(later == next + 2 * AUDIT_LINES as u64, "the ring went from {next} to {later}");
    check!(lines.contains("victim.a refused read on /secret (the test)\n"), "the line of another is gone");
    check!(!lines.contains("flood.b refused read on /0 "), "the oldest is not gone");
    check!(lines.trim_end().ends_with("flood.b refused read on /2047 (the test)"), "the newest is another");
    let kept = lines.lines().count() - 1;
    let lost = format!("{} refusals are no longer kept", (later - from) as usize - kept);
    check!(lines.lines().next() == Some(lost.as_str()), "it does not say `{lost}`");
    let (all, _) = audit::read(0).map_err(text)?;
    check!(all.lines().count() == AUDIT_LINES + 1, "it keeps {} lines", all.lines().count() - 1);
    Ok(())
}

fn without_permission(_: &Settings) -> Outcome {
    let from = next_line()?;
    citizen("note-and-read").succeed()?;
    audited(from, &format!("{CITIZEN} refused audit on the kernel (its manifest has no such permission)"))?;
    audited(from, &format!("{CITIZEN} refused diagnostics on the kernel (its manifest has no such permission)"))?;
    let (lines, _) = audit::read(from).map_err(text)?;
    check!(!lines.contains("forged"), "{lines}");
    Ok(())
}

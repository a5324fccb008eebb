//! `poll_oneoff`: waits for the first of several events.

use alloc::vec::Vec;

use sip::Deadline;
use sip::select::{Waitable, wait_any};
use sip_wasm::Caller;

use crate::abi::{Errno, clock, rights};
use crate::calls::guest;
use crate::descriptors::Object;
use crate::guest::Guest;
use crate::host::Wasi;

const SUBSCRIPTION_BYTES: u32 = 48;
const EVENT_BYTES: u32 = 32;
/// Maximum number of subscriptions of a call.
const MAX_SUBSCRIPTIONS: u32 = 4096;
/// Maximum number of things that the kernel waits for at once.
const MAX_WAITS: usize = 32;
/// How long each part of more things is waited for, in milliseconds.
const TURN_MS: u64 = 2;
/// Flag of a clock subscription: the time is absolute.
const IS_ABSOLUTE: u16 = 1;

/// What a subscription waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// A time of the monotonic clock.
    Time(u64),
    /// A descriptor can be read.
    Read(u32),
    /// A descriptor can be written.
    Write(u32),
}

/// A subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subscription {
    user_data: u64,
    /// Its type, as in the event.
    kind: u8,
    wanted: Result<Wanted, Errno>,
}

/// Whether a subscription's event has come.
enum State {
    /// It has: the error, and how many bytes can be read.
    Ready(Result<u64, Errno>),
    /// It comes with standard input.
    Input,
    /// It comes with standard output.
    Output,
    /// It comes with this listener, or with what this connection receives.
    Receives(u32),
    /// It comes when this connection takes more.
    Sends(u32),
    /// It comes at a time.
    At(u64),
}

pub fn poll_oneoff(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (subscriptions, events, count, place) = (caller.u32(0), caller.u32(1), caller.u32(2), caller.u32(3));
    if count == 0 || count > MAX_SUBSCRIPTIONS {
        return Err(Errno::INVAL);
    }
    let mut memory = guest(caller);
    // Before the wait, so that no event is lost in a fault.
    memory.bytes(events, count * EVENT_BYTES)?;
    memory.bytes(place, 4)?;
    let wanted = read(&memory, subscriptions, count)?;
    host.streams.show_line();
    host.descriptors.end_closed();
    let mut written = 0;
    while written == 0 {
        let states: Vec<State> = wanted.iter().map(|subscription| state(host, subscription)).collect();
        for (subscription, state) in wanted.iter().zip(&states) {
            if let State::Ready(outcome) = state {
                put(&mut memory, events + written * EVENT_BYTES, subscription, *outcome)?;
                written += 1;
            }
        }
        if written == 0 {
            wait(host, &states);
        }
    }
    memory.put_u32(place, written)
}

/// Reads subscriptions.
fn read(memory: &Guest<'_>, at: u32, count: u32) -> Result<Vec<Subscription>, Errno> {
    let bytes = memory.bytes(at, count * SUBSCRIPTION_BYTES)?;
    let (now, wall) = (sip::time::monotonic(), sip::time::wall());
    Ok(bytes.chunks_exact(SUBSCRIPTION_BYTES as usize).map(|bytes| parse(bytes, now, wall)).collect())
}

fn parse(bytes: &[u8], now: u64, wall: u64) -> Subscription {
    let part = |at: usize| {
        bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()).map_or(0, |word| u64::from_le_bytes(*word))
    };
    let kind = bytes[8];
    let wanted = match kind {
        0 => {
            let (clock, timeout, flags) = (part(16) as u32, part(24), part(40) as u16);
            let base = match clock {
                clock::REALTIME => wall,
                clock::MONOTONIC => now,
                _ => 0,
            };
            match clock {
                clock::REALTIME | clock::MONOTONIC if flags & IS_ABSOLUTE != 0 => {
                    Ok(Wanted::Time(now.saturating_add(timeout.saturating_sub(base))))
                }
                clock::REALTIME | clock::MONOTONIC => Ok(Wanted::Time(now.saturating_add(timeout))),
                clock::PROCESS_CPU | clock::THREAD_CPU => Err(Errno::NOTSUP),
                _ => Err(Errno::INVAL),
            }
        }
        1 => Ok(Wanted::Read(part(16) as u32)),
        2 => Ok(Wanted::Write(part(16) as u32)),
        _ => Err(Errno::INVAL),
    };
    Subscription { user_data: part(0), kind, wanted }
}

fn state(host: &mut Wasi, subscription: &Subscription) -> State {
    match subscription.wanted {
        Err(error) => State::Ready(Err(error)),
        Ok(Wanted::Time(time)) if sip::time::monotonic() >= time => State::Ready(Ok(0)),
        Ok(Wanted::Time(time)) => State::At(time),
        Ok(Wanted::Read(number)) => readable(host, number),
        Ok(Wanted::Write(number)) => writable(host, number),
    }
}

fn readable(host: &mut Wasi, number: u32) -> State {
    match host.descriptors.get(number, rights::POLL_FD_READWRITE) {
        Err(error) => State::Ready(Err(error)),
        Ok(descriptor) => match &mut descriptor.object {
            Object::Input if is_pending(host.streams.input_pending()) => State::Input,
            Object::Input => State::Ready(Ok(host.streams.received_bytes() as u64)),
            Object::File(file) => State::Ready(file.size().map(|size| size.saturating_sub(file.offset))),
            Object::Listener(listener) => match listener.is_pending(&mut host.namespace) {
                true => State::Receives(number),
                false => State::Ready(Ok(1)),
            },
            Object::Connection(connection) => match connection.is_input_pending() {
                true => State::Receives(number),
                false => State::Ready(Ok(connection.received_bytes() as u64)),
            },
            Object::Output | Object::Error | Object::Folder(..) => State::Ready(Err(Errno::BADF)),
        },
    }
}

fn writable(host: &mut Wasi, number: u32) -> State {
    match host.descriptors.get(number, rights::POLL_FD_READWRITE) {
        Err(error) => State::Ready(Err(error)),
        Ok(descriptor) => match &descriptor.object {
            Object::Output if is_pending(host.streams.output_pending()) => State::Output,
            Object::Output | Object::Error | Object::File(_) => State::Ready(Ok(0)),
            Object::Connection(connection) if connection.output_pending().is_some() => State::Sends(number),
            Object::Connection(_) => State::Ready(Ok(0)),
            Object::Input | Object::Folder(..) | Object::Listener(_) => State::Ready(Err(Errno::BADF)),
        },
    }
}

fn is_pending(waitable: Option<&dyn Waitable>) -> bool {
    waitable.is_some_and(|waitable| wait_any(&[waitable], Deadline::PASSED).is_none())
}

/// Waits until one of the events may have come.
fn wait(host: &Wasi, states: &[State]) {
    let mut deadline = Deadline::NEVER;
    let mut waitables: Vec<&dyn Waitable> = Vec::new();
    let is_input = states.iter().any(|state| matches!(state, State::Input));
    let is_output = states.iter().any(|state| matches!(state, State::Output));
    waitables.extend(host.streams.input_pending().filter(|_| is_input));
    waitables.extend(host.streams.output_pending().filter(|_| is_output));
    for state in states {
        match state {
            State::At(time) => deadline = deadline.min(Deadline::at(*time)),
            State::Receives(number) => waitables.extend(receives(host, *number)),
            State::Sends(number) => waitables.extend(sends(host, *number)),
            State::Ready(_) | State::Input | State::Output => {}
        }
    }
    if waitables.len() <= MAX_WAITS {
        let _ = wait_any(&waitables, deadline);
        return;
    }
    // More than the kernel waits for at once take turns.
    let turn = |part: &[&dyn Waitable]| wait_any(part, deadline.min(Deadline::after_ms(TURN_MS))).is_some();
    let _ = waitables.chunks(MAX_WAITS).any(turn);
}

fn receives(host: &Wasi, number: u32) -> Option<&dyn Waitable> {
    match host.descriptors.object(number)? {
        Object::Listener(listener) => listener.requested(),
        Object::Connection(connection) => connection.read_requested(),
        _ => None,
    }
}

fn sends(host: &Wasi, number: u32) -> Option<&dyn Waitable> {
    match host.descriptors.object(number)? {
        Object::Connection(connection) => connection.output_pending(),
        _ => None,
    }
}

/// Writes an event.
fn put(memory: &mut Guest<'_>, at: u32, of: &Subscription, outcome: Result<u64, Errno>) -> Result<(), Errno> {
    let mut event = [0; EVENT_BYTES as usize];
    event[..8].copy_from_slice(&of.user_data.to_le_bytes());
    event[8..10].copy_from_slice(&outcome.err().map_or(0, |error| error.0).to_le_bytes());
    event[10] = of.kind;
    event[16..24].copy_from_slice(&outcome.unwrap_or(0).to_le_bytes());
    memory.put(at, &event)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscription(kind: u8, words: [u64; 4]) -> [u8; SUBSCRIPTION_BYTES as usize] {
        let mut bytes = [0; SUBSCRIPTION_BYTES as usize];
        bytes[0] = 7;
        bytes[8] = kind;
        for (place, word) in bytes[16..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn times_are_those_of_the_monotonic_clock() {
        let wanted = |clock, timeout, flags| parse(&subscription(0, [clock, timeout, 0, flags]), 1_000, 50_000).wanted;
        assert_eq!(wanted(1, 200, 0), Ok(Wanted::Time(1_200)));
        assert_eq!(wanted(1, 1_300, 1), Ok(Wanted::Time(1_300)));
        assert_eq!(wanted(0, 50_400, 1), Ok(Wanted::Time(1_400)));
        assert_eq!(wanted(0, 10, 1), Ok(Wanted::Time(1_000)));
        assert_eq!(wanted(1, u64::MAX, 0), Ok(Wanted::Time(u64::MAX)));
        assert_eq!(wanted(2, 0, 0), Err(Errno::NOTSUP));
        assert_eq!(wanted(9, 0, 0), Err(Errno::INVAL));
    }

    #[test]
    fn descriptors_are_named_and_unknown_kinds_refused() {
        let parsed = parse(&subscription(1, [5, 0, 0, 0]), 0, 0);
        assert_eq!(parsed, Subscription { user_data: 7, kind: 1, wanted: Ok(Wanted::Read(5)) });
        assert_eq!(parse(&subscription(2, [6, 0, 0, 0]), 0, 0).wanted, Ok(Wanted::Write(6)));
        assert_eq!(parse(&subscription(3, [6, 0, 0, 0]), 0, 0).wanted, Err(Errno::INVAL));
    }
}

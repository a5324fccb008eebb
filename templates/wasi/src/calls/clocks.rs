//! Clocks. That of the processor counts the time since the program started: a process is not told how long it ran.

use sip_wasm::Caller;

use crate::abi::{Errno, clock};
use crate::calls::guest;
use crate::host::Wasi;

/// Resolution of the clocks, in nanoseconds.
const RESOLUTION_NS: u64 = 1;

pub fn clock_res_get(_host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (clock, place) = (caller.u32(0), caller.u32(1));
    if clock > clock::THREAD_CPU {
        return Err(Errno::INVAL);
    }
    guest(caller).put_u64(place, RESOLUTION_NS)
}

pub fn clock_time_get(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (clock, place) = (caller.u32(0), caller.u32(2));
    let time = match clock {
        clock::REALTIME => sip::time::wall(),
        clock::MONOTONIC => sip::time::monotonic(),
        clock::PROCESS_CPU | clock::THREAD_CPU => sip::time::monotonic().saturating_sub(host.started_ns),
        _ => return Err(Errno::INVAL),
    };
    guest(caller).put_u64(place, time)
}

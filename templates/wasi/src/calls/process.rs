//! Arguments, environment, end, random bytes.

use client::file_io::BLOCK_BYTES;
use client::random::Source;
use sip::exheap::ExVec;
use sip_wasm::Caller;

use alloc::string::String;

use crate::abi::Errno;
use crate::calls::guest;
use crate::guest::Guest;
use crate::host::Wasi;

/// Number of signals.
const SIGNALS: u32 = 31;

pub fn args_get(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (pointers, text) = (caller.u32(0), caller.u32(1));
    put_texts(&mut guest(caller), &host.arguments, pointers, text)
}

pub fn args_sizes_get(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (count, bytes) = (caller.u32(0), caller.u32(1));
    put_sizes(&mut guest(caller), &host.arguments, count, bytes)
}

pub fn environ_get(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (pointers, text) = (caller.u32(0), caller.u32(1));
    put_texts(&mut guest(caller), &host.environment, pointers, text)
}

pub fn environ_sizes_get(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (count, bytes) = (caller.u32(0), caller.u32(1));
    put_sizes(&mut guest(caller), &host.environment, count, bytes)
}

/// Writes each text with a zero after it, and the address of each.
fn put_texts(guest: &mut Guest<'_>, texts: &[String], pointers: u32, text: u32) -> Result<(), Errno> {
    let mut place = text;
    for (number, text) in texts.iter().enumerate() {
        let pointer = pointers.checked_add(number as u32 * 4).ok_or(Errno::FAULT)?;
        guest.put_u32(pointer, place)?;
        guest.put(place, text.as_bytes())?;
        // It was there a moment ago, so this does not overflow.
        place += text.len() as u32;
        guest.put(place, &[0])?;
        place = place.checked_add(1).ok_or(Errno::FAULT)?;
    }
    Ok(())
}

fn put_sizes(guest: &mut Guest<'_>, texts: &[String], count: u32, bytes: u32) -> Result<(), Errno> {
    guest.put_u32(count, texts.len() as u32)?;
    guest.put_u32(bytes, texts.iter().map(|text| text.len() as u32 + 1).sum())
}

pub fn proc_exit(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let status = host.finish(caller.u32(0) as i32);
    sip::process::exit(status)
}

/// There are no signals here: one that a program raises ends it.
pub fn proc_raise(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    match caller.u32(0) {
        0 => Ok(()),
        signal @ 1..SIGNALS => {
            host.finish(0);
            sip::process::fail(format_args!("it raised signal {signal}"))
        }
        _ => Err(Errno::INVAL),
    }
}

pub fn sched_yield(_host: &mut Wasi, _caller: &mut Caller<'_>) -> Result<(), Errno> {
    sip::thread::yield_now();
    Ok(())
}

pub fn random_get(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (at, length) = (caller.u32(0), caller.u32(1));
    let mut memory = guest(caller);
    for piece in memory.bytes_mut(at, length)?.chunks_mut(BLOCK_BYTES) {
        let source = match host.random.take() {
            Some(source) => source,
            None => Source::open(&mut host.namespace)?,
        };
        let (source, block) = source.fill(ExVec::new(piece.len())?)?;
        host.random = Some(source);
        piece.copy_from_slice(block.get(..piece.len()).ok_or(Errno::IO)?);
    }
    Ok(())
}

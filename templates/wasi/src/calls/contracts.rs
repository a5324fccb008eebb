//! Calls about contracts: messages, blocks and waiting. Handles, addresses and lengths are claims.
//!
//! A message lies in the program's memory as words: numbers, then blocks, then endpoints, the latter two as handles. What
//! it may be is the kernel's to judge, by the contract in the manifest; it ends a program that breaks it.

use alloc::vec::Vec;
use core::array::from_fn;

use client::access::AccessError;
use contracts::directory::NameError;
use sip::abi::name_tag;
use sip::channel::{AnyEndpoint, Incoming, Outgoing};
use sip::exheap::{ExBlock, ExVec};
use sip::select::{Waitable, wait_any};
use sip::{Deadline, Status};
use sip_wasm::Caller;

use crate::calls::guest;
use crate::held::{Held, Thing};
use crate::host::Wasi;

/// Endpoints of the template's manifest, in front of the program's own.
const TEMPLATE_ENDPOINTS: u64 = 3;
/// Contracts of the template, by [`name_tag`]. A program gets no channel of them: it would reach files, sockets and streams
/// that it was not given.
const TEMPLATE_CONTRACTS: [u64; 9] = [
    name_tag("Directory"),
    name_tag("Dns"),
    name_tag("Entropy"),
    name_tag("File"),
    name_tag("Pipe"),
    name_tag("Tcp"),
    name_tag("TcpConnection"),
    name_tag("TcpListener"),
    name_tag("TcpWriter"),
];
/// Words of a message.
const WORDS: usize = sip::abi::limits::MESSAGE_WORDS;
/// Words of a received message in the program's memory: a block has its handle and its length.
const BLOCK_WORDS: usize = 2;
/// Places of the counts in the first word of a received message; its tag is in the bits below.
const SCALARS_SHIFT: u32 = 16;
const BLOCKS_SHIFT: u32 = 32;
const ENDPOINTS_SHIFT: u32 = 40;
/// Most endpoints that one wait is for.
const MAX_WAITS: usize = 32;
/// Bytes of a word.
const WORD: usize = 8;

/// What a call returns for a result: a status of the ABI.
fn status(result: Result<(), Status>) -> u64 {
    result.err().map_or(Status::Ok as u64, |error| error as u64)
}

/// What a call returns for a handle: 0 if there is none.
fn handle(result: Result<u64, Status>) -> u64 {
    result.unwrap_or(0)
}

/// Words of the program's memory.
fn words<const N: usize>(caller: &mut Caller<'_>, at: u32, count: usize) -> Result<[u64; N], Status> {
    let bytes = guest(caller);
    let bytes = bytes.bytes(at, (count * WORD) as u32).map_err(|_| Status::BadArgument)?;
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(WORD)) {
        *word = bytes.try_into().map_or(0, u64::from_le_bytes);
    }
    Ok(words)
}

/// The program's own endpoint with this number, in the order of its manifest; 0 if it was not given or was taken before.
pub fn endpoint(host: &mut Wasi, caller: &mut Caller<'_>) -> u64 {
    let slot = TEMPLATE_ENDPOINTS + u64::from(caller.u32(0));
    let taken = sip::channel::AnyEndpoint::of_slot(slot);
    handle(taken.and_then(|taken| taken.ok_or(Status::NotFound)).map(|taken| host.held.add(Thing::Endpoint(taken))))
}

/// A channel of a contract that the program's manifest lists itself.
fn own_channel(contract: u64) -> Result<(AnyEndpoint, AnyEndpoint), Status> {
    if TEMPLATE_CONTRACTS.contains(&contract) {
        return Err(Status::NotPermitted);
    }
    AnyEndpoint::channel(contract)
}

/// Writes words to the program's memory.
fn put_words(caller: &mut Caller<'_>, at: u32, words: &[u64]) -> Result<(), Status> {
    let mut memory = guest(caller);
    let places = memory.bytes_mut(at, (words.len() * WORD) as u32).map_err(|_| Status::BadArgument)?;
    for (place, word) in places.chunks_exact_mut(WORD).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    Ok(())
}

/// Binds a path of the namespace to a new channel of a contract; writes the handle of the importing end.
pub fn open(host: &mut Wasi, caller: &mut Caller<'_>) -> u64 {
    status(try_open(host, caller))
}

fn try_open(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Status> {
    let (contract, place) = (caller.u64(2), caller.u32(3));
    // The handle must find its place before there is an endpoint.
    put_words(caller, place, &[0])?;
    let (at, length) = (caller.u32(0), caller.u32(1));
    let path = guest(caller).path(at, length).map_err(|_| Status::BadArgument)?;
    let opened = host.namespace.open(&path, || own_channel(contract), Ok).map_err(opening)?;
    let handle = host.held.add(Thing::Endpoint(opened));
    put_words(caller, place, &[handle])
}

/// Why a path was not bound, as a status.
fn opening(error: AccessError) -> Status {
    match error {
        AccessError::System(status) => status,
        AccessError::Name(NameError::NotPermitted) => Status::NotPermitted,
        AccessError::Name(NameError::WrongContract) => Status::ContractMismatch,
        AccessError::Name(NameError::BadPath) => Status::BadArgument,
        AccessError::Name(NameError::Exhausted) => Status::Exhausted,
        AccessError::Name(NameError::Unavailable) | AccessError::ServerEnded => Status::Closed,
        AccessError::NoAnswer { .. } => Status::TimedOut,
        AccessError::Name(_) | AccessError::File(_) | AccessError::NoFileSystem => Status::NotFound,
    }
}

/// Creates a channel of a contract; writes the handles of the importing and the exporting end.
pub fn channel(host: &mut Wasi, caller: &mut Caller<'_>) -> u64 {
    status(try_channel(host, caller))
}

fn try_channel(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Status> {
    let (contract, place) = (caller.u64(0), caller.u32(1));
    put_words(caller, place, &[0, 0])?;
    let (importer, exporter) = own_channel(contract)?;
    let handles = [importer, exporter].map(|end| host.held.add(Thing::Endpoint(end)));
    put_words(caller, place, &handles)
}

/// Writes what the kernel knows of an endpoint: the [`name_tag`] of its contract, 1 if it is the importing end, its state.
pub fn describe(host: &mut Wasi, caller: &mut Caller<'_>) -> u64 {
    let described = host.held.endpoint(caller.u64(0)).and_then(|endpoint| endpoint.raw().describe());
    let place = caller.u32(1);
    status(
        described.and_then(|known| {
            put_words(caller, place, &[known.contract, u64::from(known.importer), known.state.into()])
        }),
    )
}

/// Sends a message. Its blocks and endpoints are gone from the program, unless it is not sent.
pub fn send(host: &mut Wasi, caller: &mut Caller<'_>) -> u64 {
    status(try_send(host, caller))
}

fn try_send(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Status> {
    let endpoint = caller.u64(0);
    let tag = u16::try_from(caller.u32(1)).map_err(|_| Status::BadArgument)?;
    let at = caller.u32(2);
    let counts: [usize; 3] = from_fn(|index| caller.u32(3 + index) as usize);
    let [scalars, blocks, endpoints] = counts;
    let fits = counts.iter().all(|count| *count <= WORDS)
        && scalars + blocks * sip::abi::limits::BLOCK_WORDS + endpoints <= WORDS;
    if !fits {
        return Err(Status::TooLarge);
    }
    let all: [u64; WORDS] = words(caller, at, scalars + blocks + endpoints)?;
    host.held.endpoint(endpoint)?;
    let handles = &all[scalars..scalars + blocks + endpoints];
    let taken = take_all(&mut host.held, endpoint, handles, blocks)?;
    let Some(Thing::Endpoint(through)) = host.held.take(endpoint) else { return Err(Status::BadHandle) };
    let message = all[..scalars].iter().fold(Outgoing::new(), |message, word| message.word(*word));
    let message = taken.into_iter().flatten().fold(message, |message, thing| match thing {
        Thing::Block(block) => message.block(block),
        Thing::Endpoint(endpoint) => message.any_endpoint(endpoint),
    });
    let through = through.send(message, tag);
    host.held.put_back(endpoint, Thing::Endpoint(through));
    Ok(())
}

/// Takes all that a message is to carry, or nothing: the first of it are blocks.
fn take_all(held: &mut Held, through: u64, handles: &[u64], blocks: usize) -> Result<[Option<Thing>; WORDS], Status> {
    let mut taken = [const { None }; WORDS];
    for (index, handle) in handles.iter().enumerate() {
        let thing = if *handle == through { None } else { held.take(*handle) };
        let is_block = index < blocks;
        match thing {
            Some(thing) if matches!(thing, Thing::Block(_)) == is_block => taken[index] = Some(thing),
            other => {
                if let Some(thing) = other {
                    held.put_back(*handle, thing);
                }
                for (handle, thing) in handles.iter().zip(taken) {
                    if let Some(thing) = thing {
                        held.put_back(*handle, thing);
                    }
                }
                return Err(Status::BadHandle);
            }
        }
    }
    Ok(taken)
}

/// Receives a message until the deadline. Its words go to memory, and in front of them a word with its tag and counts. If
/// the peer has closed, the blocks that were on loan to it are written in the same form.
pub fn receive(host: &mut Wasi, caller: &mut Caller<'_>) -> u64 {
    status(try_receive(host, caller))
}

fn try_receive(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Status> {
    let (endpoint, deadline) = (caller.u64(0), Deadline::at(caller.u64(1)));
    let (at, room) = (caller.u32(2), caller.u32(3) as usize);
    // A message must find its place before it is taken from the channel.
    if room < 1 + WORDS {
        return Err(Status::TooLarge);
    }
    guest(caller).bytes(at, ((1 + WORDS) * WORD) as u32).map_err(|_| Status::BadArgument)?;
    let incoming = match host.held.endpoint(endpoint)?.receive_by(deadline) {
        Ok(Some(incoming)) => incoming,
        Ok(None) => return Err(Status::TimedOut),
        Err(mut closed) => {
            let (words, count) = returned(&mut host.held, closed.take_home());
            put_words(caller, at, &words[..count])?;
            return Err(Status::Closed);
        }
    };
    let (words, count) = unpacked(&mut host.held, incoming);
    put_words(caller, at, &words[..count])
}

/// The words of blocks that came home from a peer that ended; those that find no place are freed.
fn returned(held: &mut Held, home: Vec<ExBlock>) -> ([u64; 1 + WORDS], usize) {
    let mut words = [0; 1 + WORDS];
    let mut at = 1;
    for (block, place) in home.into_iter().zip(words[1..].chunks_exact_mut(BLOCK_WORDS)) {
        let block = block.into_bytes();
        place[1] = block.len() as u64;
        place[0] = held.add(Thing::Block(block));
        at += BLOCK_WORDS;
    }
    words[0] = ((at / BLOCK_WORDS) as u64) << BLOCKS_SHIFT;
    (words, at)
}

/// The words of a message as the program sees it, and how many there are. Its blocks and endpoints are held from then on.
fn unpacked(held: &mut Held, mut incoming: Incoming) -> ([u64; 1 + WORDS], usize) {
    let (scalars, blocks, endpoints) = (incoming.scalars(), incoming.blocks(), incoming.endpoints());
    let mut words = [0; 1 + WORDS];
    words[0] = incoming.tag()
        | (scalars as u64) << SCALARS_SHIFT
        | (blocks as u64) << BLOCKS_SHIFT
        | (endpoints as u64) << ENDPOINTS_SHIFT;
    for word in words.iter_mut().skip(1).take(scalars) {
        *word = incoming.word();
    }
    // All are taken before the first is held, which may need memory and so the message buffer.
    let mut taken: [Option<Thing>; WORDS] =
        from_fn(|index| (index < blocks).then(|| Thing::Block(incoming.block::<ExVec<u8>>())));
    for thing in taken.iter_mut().skip(blocks).take(endpoints) {
        *thing = Some(Thing::Endpoint(incoming.any_endpoint()));
    }
    let mut at = 1 + scalars;
    for thing in taken.into_iter().flatten() {
        if let Thing::Block(block) = &thing {
            words[at + 1] = block.len() as u64;
        }
        let step = if matches!(thing, Thing::Block(_)) { BLOCK_WORDS } else { 1 };
        words[at] = held.add(thing);
        at += step;
    }
    (words, at)
}

/// Waits until the deadline for one of several endpoints to have a message or be closed; returns its place in the list, or
/// -1. The same if a handle names no endpoint.
pub fn wait(host: &mut Wasi, caller: &mut Caller<'_>) -> u64 {
    u64::from(try_wait(host, caller).unwrap_or(u32::MAX))
}

fn try_wait(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<u32, Status> {
    let (at, count, deadline) = (caller.u32(0), caller.u32(1) as usize, Deadline::at(caller.u64(2)));
    if count > MAX_WAITS {
        return Err(Status::TooLarge);
    }
    let handles: [u64; MAX_WAITS] = words(caller, at, count)?;
    let mut things: Vec<&dyn Waitable> = Vec::with_capacity(count);
    for handle in &handles[..count] {
        things.push(host.held.endpoint_shared(*handle)?.raw());
    }
    wait_any(&things, deadline).map(|index| index as u32).ok_or(Status::TimedOut)
}

/// A new block of zeroes for elements of the type with this tag; 0 if a quota is used up.
pub fn block(host: &mut Wasi, caller: &mut Caller<'_>) -> u64 {
    let bytes = usize::try_from(caller.u64(0)).map_err(|_| Status::TooLarge);
    let made = bytes.and_then(|bytes| ExVec::of_type(bytes, caller.u64(1)));
    handle(made.map(|block| host.held.add(Thing::Block(block))))
}

/// The part of a block that a copy names.
fn part(block: &mut ExVec<u8>, from: u64, length: u32) -> Result<&mut [u8], Status> {
    let start = usize::try_from(from).map_err(|_| Status::BadArgument)?;
    let end = start.checked_add(length as usize).ok_or(Status::BadArgument)?;
    block.as_mut_slice().get_mut(start..end).ok_or(Status::BadArgument)
}

/// Copies a part of a block to memory.
pub fn read(host: &mut Wasi, caller: &mut Caller<'_>) -> u64 {
    let (block, from, at, length) = (caller.u64(0), caller.u64(1), caller.u32(2), caller.u32(3));
    let copied = host
        .held
        .block(block)
        .and_then(|block| part(block, from, length))
        .and_then(|part| guest(caller).put(at, part).map_err(|_| Status::BadArgument));
    status(copied)
}

/// Copies memory to a part of a block.
pub fn write(host: &mut Wasi, caller: &mut Caller<'_>) -> u64 {
    let (block, from, at, length) = (caller.u64(0), caller.u64(1), caller.u32(2), caller.u32(3));
    let copied = host.held.block(block).and_then(|block| part(block, from, length)).and_then(|part| {
        part.copy_from_slice(guest(caller).bytes(at, length).map_err(|_| Status::BadArgument)?);
        Ok(())
    });
    status(copied)
}

/// Closes an endpoint; frees a block, or returns it to its lender.
pub fn close(host: &mut Wasi, caller: &mut Caller<'_>) -> u64 {
    status(host.held.take(caller.u64(0)).map(drop).ok_or(Status::BadHandle))
}

/// The monotonic clock, in nanoseconds.
pub fn time(_host: &mut Wasi, _caller: &mut Caller<'_>) -> u64 {
    sip::time::monotonic()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_own_endpoints_come_behind_those_of_the_template() {
        let manifest = include_str!("../../manifest.toml");
        assert_eq!(manifest.matches("[[endpoint]]").count() as u64, TEMPLATE_ENDPOINTS);
    }

    #[test]
    fn no_channel_is_made_of_a_contract_of_the_template() {
        let manifest = include_str!("../../manifest.toml");
        let listed: Vec<u64> = manifest
            .split("[[contract]]")
            .skip(1)
            .filter_map(|section| section.split('"').nth(1))
            .map(name_tag)
            .collect();
        assert_eq!(listed, TEMPLATE_CONTRACTS);
        for contract in listed {
            assert_eq!(own_channel(contract).err(), Some(Status::NotPermitted));
        }
    }

    #[test]
    fn handles_that_are_made_up_name_nothing() {
        let mut held = Held::default();
        for handle in [0, 1, 1 << 32, u64::MAX] {
            assert_eq!(held.endpoint(handle).err(), Some(Status::BadHandle), "{handle:#x}");
            assert_eq!(held.endpoint_shared(handle).err(), Some(Status::BadHandle), "{handle:#x}");
            assert_eq!(held.block(handle).err(), Some(Status::BadHandle), "{handle:#x}");
            assert!(held.take(handle).is_none(), "{handle:#x}");
        }
    }
}

//! The imports of the template, each behind a function that passes memory which is there.
#![allow(unsafe_code)]

use abi::Status;
use abi::limits::MESSAGE_WORDS;

/// Words of a received message: its tag and counts, then what it carries.
pub const RECEIVED_WORDS: usize = 1 + MESSAGE_WORDS;

#[cfg(target_family = "wasm")]
mod host {
    // SAFETY: the types are those of the table in `templates/wasi/src/calls.rs`, by which a module is checked before it
    // runs. Those that are safe take numbers alone; the others access the memory that they are given, and no other.
    #[link(wasm_import_module = "sing")]
    unsafe extern "C" {
        pub safe fn endpoint(slot: u32) -> u64;
        pub fn open(path: *const u8, bytes: usize, contract: u64, place: *mut u64) -> u32;
        pub fn channel(contract: u64, places: *mut u64) -> u32;
        pub fn describe(endpoint: u64, places: *mut u64) -> u32;
        pub fn send(endpoint: u64, tag: u32, words: *const u64, scalars: u32, blocks: u32, endpoints: u32) -> u32;
        pub fn receive(endpoint: u64, deadline: u64, words: *mut u64, room: usize) -> u32;
        pub fn wait(endpoints: *const u64, count: usize, deadline: u64) -> u32;
        pub safe fn block(bytes: u64, type_tag: u64) -> u64;
        pub fn read(block: u64, from: u64, into: *mut u8, bytes: usize) -> u32;
        pub fn write(block: u64, from: u64, bytes: *const u8, count: usize) -> u32;
        pub safe fn close(handle: u64) -> u32;
        pub safe fn time() -> u64;
    }
}

/// Outside of WebAssembly, where a program's unit tests run, there is nobody to talk to: every endpoint is closed.
#[cfg(not(target_family = "wasm"))]
mod host {
    use abi::Status;

    macro_rules! nobody {
        ($($name:ident($($type:ty),*) -> $result:ty = $value:expr;)*) => {
            $(pub unsafe fn $name($(_: $type),*) -> $result {
                $value
            })*
        };
    }

    const CLOSED: u32 = Status::Closed as u32;

    nobody! {
        open(*const u8, usize, u64, *mut u64) -> u32 = CLOSED;
        channel(u64, *mut u64) -> u32 = CLOSED;
        describe(u64, *mut u64) -> u32 = CLOSED;
        send(u64, u32, *const u64, u32, u32, u32) -> u32 = CLOSED;
        receive(u64, u64, *mut u64, usize) -> u32 = CLOSED;
        wait(*const u64, usize, u64) -> u32 = 0;
        read(u64, u64, *mut u8, usize) -> u32 = CLOSED;
        write(u64, u64, *const u8, usize) -> u32 = CLOSED;
    }

    pub fn endpoint(_: u32) -> u64 {
        0
    }
    pub fn block(_: u64, _: u64) -> u64 {
        0
    }
    pub fn close(_: u64) -> u32 {
        CLOSED
    }
    pub fn time() -> u64 {
        0
    }
}

pub use host::time;

fn done(status: u32) -> Result<(), Status> {
    match Status::from_number(status.into()) {
        Status::Ok => Ok(()),
        other => Err(other),
    }
}

/// The endpoint of a slot of the manifest, once.
pub fn endpoint(slot: u32) -> Option<u64> {
    Some(host::endpoint(slot)).filter(|handle| *handle != 0)
}

/// Binds a path to a new channel; returns the importing end.
pub fn open(path: &str, contract: u64) -> Result<u64, Status> {
    let mut handle = 0;
    // SAFETY: reads the path, and writes one word.
    done(unsafe { host::open(path.as_ptr(), path.len(), contract, &raw mut handle) })?;
    Ok(handle)
}

/// A new channel: its importing and exporting end.
pub fn channel(contract: u64) -> Result<[u64; 2], Status> {
    let mut handles = [0; 2];
    // SAFETY: writes two words.
    done(unsafe { host::channel(contract, handles.as_mut_ptr()) })?;
    Ok(handles)
}

/// Contract, 1 for the importing end, and state of an endpoint.
pub fn describe(endpoint: u64) -> Result<[u64; 3], Status> {
    let mut words = [0; 3];
    // SAFETY: writes three words.
    done(unsafe { host::describe(endpoint, words.as_mut_ptr()) })?;
    Ok(words)
}

/// Sends a message of these words: scalars, then handles of blocks, then of endpoints.
pub fn send(endpoint: u64, tag: u16, words: &[u64], blocks: u32, endpoints: u32) -> Result<(), Status> {
    let scalars = (words.len() as u32).checked_sub(blocks + endpoints).ok_or(Status::BadArgument)?;
    // SAFETY: reads as many words as there are.
    done(unsafe { host::send(endpoint, tag.into(), words.as_ptr(), scalars, blocks, endpoints) })
}

/// Receives a message; if the peer has closed, the words have the blocks that came home.
pub fn receive(endpoint: u64, deadline: u64, words: &mut [u64; RECEIVED_WORDS]) -> Result<(), Status> {
    // SAFETY: writes at most as many words as there are.
    done(unsafe { host::receive(endpoint, deadline, words.as_mut_ptr(), RECEIVED_WORDS) })
}

/// Waits for the first of several endpoints; returns its place.
pub fn wait(endpoints: &[u64], deadline: u64) -> Option<usize> {
    // SAFETY: reads as many words as there are.
    let index = unsafe { host::wait(endpoints.as_ptr(), endpoints.len(), deadline) };
    Some(index as usize).filter(|index| *index < endpoints.len())
}

/// A new block of zeroes.
pub fn block(bytes: u64, type_tag: u64) -> Result<u64, Status> {
    Some(host::block(bytes, type_tag)).filter(|handle| *handle != 0).ok_or(Status::QuotaExceeded)
}

/// Copies a part of a block.
pub fn read(block: u64, from: u64, into: &mut [u8]) -> Result<(), Status> {
    // SAFETY: writes as many bytes as there are.
    done(unsafe { host::read(block, from, into.as_mut_ptr(), into.len()) })
}

/// Copies to a part of a block.
pub fn write(block: u64, from: u64, bytes: &[u8]) -> Result<(), Status> {
    // SAFETY: reads as many bytes as there are.
    done(unsafe { host::write(block, from, bytes.as_ptr(), bytes.len()) })
}

/// Closes an endpoint; frees a block, or returns it to its lender.
pub fn close(handle: u64) {
    // The caller owns it, so the host cannot refuse it.
    let _ = host::close(handle);
}

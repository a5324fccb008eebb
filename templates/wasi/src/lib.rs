//! Template of WASI programs: preview 1 over this system's contracts.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;

use sip_wasm::{Caller, Host, Instance, Module, Trap};
use stdio::Output;

sip::startup!("manifest.toml");

/// What modules can import.
pub const IMPORTS: &str = "func wasi_snapshot_preview1 fd_write i32 i32 i32 i32 -> i32
func wasi_snapshot_preview1 proc_exit i32
func wasi_snapshot_preview1 args_sizes_get i32 i32 -> i32
func wasi_snapshot_preview1 args_get i32 i32 -> i32
func wasi_snapshot_preview1 environ_sizes_get i32 i32 -> i32
func wasi_snapshot_preview1 environ_get i32 i32 -> i32
";

const SUCCESS: u128 = 0;
const EBADF: u128 = 8;
const EFAULT: u128 = 21;

struct Wasi {
    output: Output,
    arguments: Vec<String>,
}

/// Runs the module.
pub fn main(startup: Startup, module: Module) -> i32 {
    let mut instance = match Instance::new(module) {
        Ok(instance) => instance,
        Err(error) => sip::process::fail(format_args!("{error}")),
    };
    let mut host = Wasi { output: Output::new(startup.output), arguments: startup.words };
    host.arguments.insert(0, String::from("program"));
    instance.start(&mut host);
    match instance.call("_start", &[], &mut host) {
        Ok(_) => host.output.finish_with(0),
        Err(error) => sip::process::fail(format_args!("{error}")),
    }
}

fn word(memory: &[u8], at: u32) -> Option<u32> {
    memory.get(at as usize..)?.first_chunk().map(|chunk| u32::from_le_bytes(*chunk))
}

fn set_word(memory: &mut [u8], at: u32, value: u32) -> Option<()> {
    memory.get_mut(at as usize..at as usize + 4)?.copy_from_slice(&value.to_le_bytes());
    Some(())
}

impl Wasi {
    fn write(&mut self, caller: &mut Caller<'_>) -> Option<()> {
        let (vectors, count, written) = (caller.u32(1), caller.u32(2), caller.u32(3));
        let memory = caller.memory();
        let mut all = 0;
        for number in 0..count {
            let start = word(memory, vectors + number * 8)?;
            let length = word(memory, vectors + number * 8 + 4)?;
            let bytes = memory.get(start as usize..start as usize + length as usize)?;
            self.output.write(bytes).ok()?;
            all += length;
        }
        set_word(memory, written, all)
    }

    fn arguments(&self, caller: &mut Caller<'_>) -> Option<()> {
        let (pointers, mut place) = (caller.u32(0), caller.u32(1));
        let memory = caller.memory();
        for (number, argument) in self.arguments.iter().enumerate() {
            set_word(memory, pointers + number as u32 * 4, place)?;
            let end = place as usize + argument.len();
            memory.get_mut(place as usize..end)?.copy_from_slice(argument.as_bytes());
            *memory.get_mut(end)? = 0;
            place = end as u32 + 1;
        }
        Some(())
    }
}

impl Host for Wasi {
    fn call(&mut self, import: usize, caller: &mut Caller<'_>) -> Result<(), Trap> {
        let done = match import {
            0 if !matches!(caller.u32(0), 1 | 2) => {
                caller.set_result(0, EBADF);
                return Ok(());
            }
            0 => self.write(caller),
            1 => {
                let _ = self.output.flush();
                sip::process::exit(caller.u32(0) as i32)
            }
            2 => {
                let bytes: usize = self.arguments.iter().map(|argument| argument.len() + 1).sum();
                let (count, size) = (caller.u32(0), caller.u32(1));
                let memory = caller.memory();
                set_word(memory, count, self.arguments.len() as u32).and_then(|()| set_word(memory, size, bytes as u32))
            }
            3 => self.arguments(caller),
            4 => {
                let (count, size) = (caller.u32(0), caller.u32(1));
                let memory = caller.memory();
                set_word(memory, count, 0).and_then(|()| set_word(memory, size, 0))
            }
            _ => Some(()),
        };
        caller.set_result(0, if done.is_some() { SUCCESS } else { EFAULT });
        Ok(())
    }
}

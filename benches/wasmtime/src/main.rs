//! Runs modules in wasmtime, for `cargo sing bench wasm`: computing, starting pooled instances, keeping many alive.
//!
//! Figures are lines `bench NAME FIGURE`, as of the system's own benchmarks. Modules are compiled as by default: all
//! optimizations, guard pages instead of checks, all instructions of this processor; `--checks` compiles a check for each
//! access instead. Deliberately not here: what is compared with what, which is the host tool's.
#![forbid(unsafe_code)]

mod pool;

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use wasmtime::{Config, Engine, Linker, Module, Store};
use wasmtime_wasi::p1::{self, WasiP1Ctx};
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtxBuilder};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "usage: bench-wasmtime run [--checks] [--dir FOLDER] MODULE [WORD...] | start MODULE TURNS | \
                     alive MODULE COUNT";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let status = match execute(&words) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("bench-wasmtime: {error}");
            1
        }
    };
    std::process::exit(status);
}

fn execute(words: &[&str]) -> Outcome<i32> {
    match words {
        ["run", words @ ..] => run(words),
        ["start", module, turns] => pool::start(Path::new(module), turns.parse()?),
        ["alive", module, count] => pool::alive(Path::new(module), count.parse()?),
        _ => Err(USAGE.into()),
    }
}

/// Compiles a program of WASI and runs it, with this process's output; then prints what both took.
fn run(words: &[&str]) -> Outcome<i32> {
    let mut words = words;
    let (mut config, mut wasi) = (Config::new(), WasiCtxBuilder::new());
    wasi.inherit_stdin().inherit_stdout().inherit_stderr();
    // As wasmtime's own command does for a program with one thread.
    wasi.allow_blocking_current_thread(true);
    loop {
        words = match words {
            ["--checks", rest @ ..] => {
                config.memory_reservation(0).memory_guard_size(0).memory_reservation_for_growth(1 << 20);
                config.signals_based_traps(false);
                rest
            }
            ["--dir", folder, rest @ ..] => {
                wasi.preopened_dir(folder, "/", FsPerms::ReadWrite)?;
                rest
            }
            rest => break words = rest,
        };
    }
    let Some(module) = words.first() else { return Err(USAGE.into()) };
    wasi.args(words);
    let engine = Engine::new(&config)?;
    let start = Instant::now();
    let module = Module::from_file(&engine, module)?;
    let compiled = start.elapsed();
    let mut linker = Linker::new(&engine);
    p1::add_to_linker_sync(&mut linker, |context: &mut WasiP1Ctx| context)?;
    // SQLite locks its database: nobody else has it here.
    for name in ["lock", "test_lock"] {
        linker.func_wrap("sing", name, |_: i32, _: i32, _: i64, _: i64| 0)?;
    }
    let mut store = Store::new(&engine, wasi.build_p1());
    let start = Instant::now();
    let instance = linker.instantiate(&mut store, &module)?;
    let status = status(instance.get_typed_func::<(), ()>(&mut store, "_start")?.call(&mut store, ()))?;
    let ran = start.elapsed();
    println!("bench compile_ns {}\nbench run_ns {}", compiled.as_nanos(), ran.as_nanos());
    Ok(status)
}

/// The exit status of a program, which is an error of the call where it exits by `proc_exit`.
fn status(result: wasmtime::Result<()>) -> Outcome<i32> {
    match result {
        Ok(()) => Ok(0),
        Err(error) => match error.downcast_ref::<I32Exit>() {
            Some(exit) => Ok(exit.0),
            None => Err(error.into()),
        },
    }
}

//! Instances in a pool: how long one takes to its result, and what many that are idle take.
//!
//! As fast as wasmtime starts: memory and tables lie ready, the module is compiled and its imports are resolved before.

use std::path::Path;
use std::time::Instant;

use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, InstancePre, Linker, Module, PoolingAllocationConfig, Store,
};
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p1::{self, WasiP1Ctx};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;

use crate::{Outcome, status};

/// Bytes of output that an instance may write.
const OUTPUT_BYTES: usize = 4096;
/// Name of the program, its first word.
const NAME: &str = "program";
/// Maximum bytes of an instance's memory.
const MEMORY_BYTES: usize = 1 << 20;

/// An engine whose pool has room for this many instances.
fn engine(instances: u32) -> Outcome<Engine> {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(instances).total_memories(instances).total_tables(instances);
    pool.max_memory_size(MEMORY_BYTES);
    let mut config = Config::new();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    // An exit is an error here, and nobody reads where it came from.
    config.wasm_backtrace_max_frames(None);
    Ok(Engine::new(&config)?)
}

fn prepared(engine: &Engine, module: &Path) -> Outcome<InstancePre<WasiP1Ctx>> {
    let module = Module::from_file(engine, module)?;
    let mut linker = Linker::new(engine);
    p1::add_to_linker_sync(&mut linker, |context: &mut WasiP1Ctx| context)?;
    Ok(linker.instantiate_pre(&module)?)
}

/// Starts instances one after the other; prints the median time in nanoseconds from nothing to the end of the program,
/// with what it wrote in hand.
pub fn start(module: &Path, turns: usize) -> Outcome<i32> {
    let engine = engine(16)?;
    let prepared = prepared(&engine, module)?;
    let mut times = Vec::with_capacity(turns);
    for _ in 0..turns {
        let start = Instant::now();
        let output = MemoryOutputPipe::new(OUTPUT_BYTES);
        let context = WasiCtxBuilder::new().arg(NAME).stdout(output.clone()).build_p1();
        let mut store = Store::new(&engine, context);
        let instance = prepared.instantiate(&mut store)?;
        let status = status(instance.get_typed_func::<(), ()>(&mut store, "_start")?.call(&mut store, ()))?;
        let written = output.contents();
        drop(store);
        times.push(start.elapsed().as_nanos());
        if status != 0 || written.is_empty() {
            return Err(format!("{}: it ended with status {status} or wrote nothing", module.display()).into());
        }
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).ok_or("no turns")?;
    println!("bench start_ns {median}");
    Ok(0)
}

/// Keeps instances alive, each idle after its start; prints their number and the memory of this process for each, in
/// bytes, which includes what they wrote of their own memory.
pub fn alive(module: &Path, count: u32) -> Outcome<i32> {
    let engine = engine(count)?;
    let prepared = prepared(&engine, module)?;
    let before = resident_bytes()?;
    let mut stores = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let context = WasiCtxBuilder::new().build_p1();
        let mut store = Store::new(&engine, context);
        prepared.instantiate(&mut store)?;
        stores.push(store);
    }
    let each = resident_bytes()?.saturating_sub(before) / u64::from(count.max(1));
    println!("bench alive {}\nbench bytes_each {each}", stores.len());
    Ok(0)
}

/// Resident memory of this process.
fn resident_bytes() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("/proc/self/status has no VmRSS")?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kibibytes << 10)
}

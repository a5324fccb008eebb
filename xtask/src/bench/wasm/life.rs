//! How WebAssembly programs are installed, start, and idle.

use sing::failure::Outcome;

use super::compute::PROGRAMS;
use super::machine::Machines;
use super::wasmtime::Wasmtime;
use crate::bench::table::{Figures, figures};

/// Instances that are alive at the same time.
pub const ALIVE: u32 = 10_000;
/// Starts, of which the median counts.
const STARTS: u32 = 3_001;
/// Modules that wasmtime runs, too.
const HELLO: &str = "examples/wasm-hello/wasm-hello.wasm";
const IDLE: &str = "benches/idle-wasm/idle.wasm";

/// Measures the installation of SQLite and its parts, then the start of a program that was installed just so beside a
/// native one.
///
/// # Errors
/// A machine or wasmtime fails.
pub fn turn(machines: &Machines, wasmtime: Option<&Wasmtime>) -> Outcome<Figures> {
    let package = "/fs/disk0/sqlite.package";
    let commands = [
        format!("bench-wasm --name parts install {package}"),
        format!("bench-wasm --name install command 'install {package}'"),
        "install /fs/disk0/wasm-hello.package".into(),
        format!("bench-wasm --name native --count {STARTS} start hello"),
        format!("bench-wasm --name here --count {STARTS} start wasm-hello"),
    ];
    let mut all = figures(&machines.install(&commands.join("; "))?);
    if let Some(wasmtime) = wasmtime {
        all.extend(prefixed("wasmtime", wasmtime.pooled("start", &machines.base().join(HELLO), STARTS)?));
        let sqlite = &PROGRAMS[1];
        let text = wasmtime.run(false, &machines.base().join("ports").join(sqlite.module), Some(sqlite))?;
        let compiled = figures(&text).get("compile_ns").copied();
        all.extend(compiled.map(|time| ("wasmtime_compile_ns".to_string(), time)));
    }
    Ok(all)
}

/// Keeps [`ALIVE`] instances alive, and measures their memory: what the kernel counts, and by how much the host's process
/// is larger than with one.
///
/// # Errors
/// As [`turn`].
pub fn alive(machines: &Machines, wasmtime: Option<&Wasmtime>) -> Outcome<Figures> {
    let run = |count| machines.watched(&format!("bench-wasm --name here --count {count} alive bench-idle-wasm"));
    let (_, least) = run(1)?;
    let (text, most) = run(ALIVE)?;
    let mut all = figures(&text);
    all.insert("here_resident_each".into(), most.saturating_sub(least) / u64::from(ALIVE - 1));
    if let Some(wasmtime) = wasmtime {
        all.extend(prefixed("wasmtime", wasmtime.pooled("alive", &machines.base().join(IDLE), ALIVE)?));
    }
    Ok(all)
}

fn prefixed(prefix: &str, figures: Figures) -> impl Iterator<Item = (String, u64)> {
    figures.into_iter().map(move |(name, figure)| (format!("{prefix}_{name}"), figure))
}

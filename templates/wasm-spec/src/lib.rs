//! Template of WebAssembly's test suite: runs its scripts on the modules that were added.
//!
//! A trap ends a process, so the program that is started first only starts others of itself: for each file one that does
//! all that must return, and for each trap one that repeats what came before it and then traps. Key modules: [`child`] (what
//! one of those does), [`files`] (which there are, and how each ended), [`spectest`] (the module that the suite imports).
//! Deliberately not here: the suite.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod child;
mod files;
mod instances;
mod spectest;

use alloc::format;

use sip::log;
use sip_wasm::Module;
use wasm_spec_script as script;

pub use spectest::IMPORTS;

sip::startup!("manifest.toml");

/// What the names of tests begin with.
const SUITE: &str = "wasm/";

/// Runs the suite, or the part of it that the parameters select.
pub fn main(startup: Startup, module: Module) -> i32 {
    let files = match script::files(module.record().attachment) {
        Ok(files) => files,
        Err(error) => sip::process::fail(format_args!("{error}")),
    };
    if let Ok(number) = usize::try_from(startup.file) {
        let steps = files.get(number).and_then(|(_, steps)| script::read(steps).ok());
        let Some(steps) = steps else { sip::process::fail(format_args!("there is no file {number}")) };
        return child::run(&steps, usize::try_from(startup.step).ok(), module);
    }
    let (mut passed, mut failed) = (0, 0);
    let selected =
        files.iter().enumerate().filter(|(_, (name, _))| format!("{SUITE}{name}").contains(startup.only.as_str()));
    for (number, (name, steps)) in selected {
        let started = sip::time::monotonic();
        let outcome = files::run(number, steps);
        let milliseconds = (sip::time::monotonic() - started) / 1_000_000;
        match outcome {
            Ok(assertions) => {
                passed += 1;
                log!("test {SUITE}{name} ... ok ({assertions} steps, {milliseconds} ms)");
            }
            Err(why) => {
                failed += 1;
                log!("test {SUITE}{name} ... FAILED: {why}");
            }
        }
    }
    log!("{passed} passed, {failed} failed");
    i32::from(failed > 0 || (passed == 0 && startup.only.is_empty()))
}

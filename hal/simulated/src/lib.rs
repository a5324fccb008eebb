//! The machine whose every run is decided by a seed: one host thread runs kernel and programs, on processors that take
//! turns, in virtual time, with disks that fail.
//!
//! Key types: [`Simulated`] (the machine), [`Configuration`], [`Report`] (what a run leaves). Neighbours: `hal/hosted`,
//! with which it shares arenas, images and the way from a signal into the kernel; `boot/simulated` starts it.
//! docs/simulation.md says what is decided where. Deliberately not here: workloads, and the judgement of a run.
//!
//! `unsafe` occurs only in the modules `contexts` and `stepping`; see `docs/soundness/hal-simulated.md`.
#![deny(unsafe_code)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("the simulated machine needs Linux on x86-64");

mod choices;
mod clock;
mod console;
#[allow(unsafe_code)]
mod contexts;
mod disk;
mod link;
mod machine;
mod place;
mod processors;
mod report;
mod requests;
mod state;
#[allow(unsafe_code)]
mod stepping;
mod trace;

pub use choices::{Fault, Kind, Kinds, Plan};
pub use machine::{Configuration, DiskSpecification, MAX_PROCESSORS, Simulated};
pub use report::{End, Report};

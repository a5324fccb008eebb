//! Proves of a WebAssembly module's machine code that it keeps to its instance, so that the compiler need not be trusted.
//!
//! Key items: [`verify`], which reads a [`Module`] and returns a [`Report`] or the first [`Violation`]. Every function is
//! interpreted abstractly, over its control flow, until nothing changes: registers and stack slots hold values of which
//! is known what they are derived from and how large they are at most ([`value`]). Each access, call, jump and return
//! has to follow from that. Modules beneath: [`module`] (what surrounds the code), [`convention`] (how functions are
//! called), [`decode`], [`state`] and [`join`] (what is known at a place), [`step`], [`access`] and [`transfer`] (what
//! instructions do), [`function`] (the fixpoint).
//!
//! Neighbours: `wasm-record` has the layout of an instance's context, `image-check` judges each instruction of an image.
//! Deliberately not here: the template, which is trusted; what a module computes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod access;
mod convention;
mod decode;
mod function;
mod join;
mod module;
mod state;
mod step;
mod transfer;
mod value;
mod violation;

pub use violation::{Place, Rule, Violation};

use alloc::vec::Vec;

use crate::function::{Budget, Function};
use crate::module::{Environment, Part};

/// A composed module, as it lies in an image. Addresses are those of the image before it is relocated.
#[derive(Clone, Debug)]
pub struct Module<'a> {
    /// Address of [`data`](Self::data).
    pub data_address: u64,
    /// The added read-only data, from its header to the end of the record at least.
    pub data: &'a [u8],
    /// Address of [`text`](Self::text).
    pub text_address: u64,
    /// The added code.
    pub text: &'a [u8],
    /// The image's relocations: place, address. Those outside of the data are ignored. In any order.
    pub relocations: Vec<(u64, u64)>,
    /// Address of the template's function that performs imports.
    pub host: u64,
    /// Address of the template's function that performs builtins.
    pub builtin: u64,
}

/// What has been proven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of functions, all of which keep the rules.
    pub functions: usize,
    /// Number of entries of signatures.
    pub entries: usize,
    /// Number of instructions.
    pub instructions: u64,
    /// Units of work, which the time is proportional to.
    pub work: u64,
}

/// Verifies a module.
///
/// # Errors
/// The first rule that is not proven, with its place.
pub fn verify(module: &Module<'_>) -> Result<Report, Violation> {
    let environment = Environment::read(module)?;
    let mut report = Report::default();
    for (part, place) in environment.places() {
        judge(&environment, part, place, &mut report)?;
    }
    Ok(report)
}

/// Verifies all functions of a module that has a sound layout; returns every violation, one at most for each function.
///
/// # Errors
/// The layout is wrong.
pub fn verify_all(module: &Module<'_>) -> Result<(Report, Vec<Violation>), Violation> {
    let environment = Environment::read(module)?;
    let mut report = Report::default();
    let judged = environment.places();
    let violations = judged.filter_map(|(part, place)| judge(&environment, part, place, &mut report).err()).collect();
    Ok((report, violations))
}

fn judge(environment: &Environment<'_>, part: &Part, place: Place, report: &mut Report) -> Result<(), Violation> {
    let function = Function::decode(environment, part, place)?;
    let mut budget = Budget::of(function.steps.len());
    let outcome = function.verify(&mut budget);
    report.instructions += function.steps.len() as u64;
    report.work += budget.used();
    outcome?;
    match place {
        Place::Entry(_) => report.entries += 1,
        _ => report.functions += 1,
    }
    Ok(())
}

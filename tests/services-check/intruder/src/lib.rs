//! Attempts forbidden operations, with the rights of most programs. Exits with status 0 if every attempt was refused;
//! otherwise its last message names the one that succeeded.
//!
//! Key modules: `names`, `files`, `volumes`, `network` (state of services), `roles`, `growth` (state of the kernel).
//! Neighbours: `adversary-check`, which starts it and checks the audit lines that it must leave. Deliberately not
//! here: unsafe code; attacks by it are in the conformance suite.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod files;
mod growth;
mod names;
mod network;
mod roles;
mod volumes;

use alloc::format;
use alloc::string::String;

use client::namespace::Namespace;
use contracts::tcp;
use sip::process::create;

sip::startup!();

/// Result of an attack; an error names a successful attempt, or the reason why it could not be tried.
pub(crate) type Outcome = Result<(), String>;

/// Returns an error with the successful attempt unless the condition holds.
macro_rules! check {
    ($condition:expr, $($reason:tt)+) => {
        if !$condition {
            return Err(alloc::format!($($reason)+));
        }
    };
}
pub(crate) use check;

/// Initial resources of an intruder.
pub(crate) struct Intruder {
    namespace: Option<Namespace>,
    /// An endpoint handed over by another.
    tcp: Option<tcp::Imp<tcp::states::Ready>>,
    /// Target of the attack.
    target: String,
}

impl Intruder {
    pub(crate) fn namespace(&mut self) -> Result<&mut Namespace, String> {
        self.namespace.as_mut().ok_or_else(|| String::from("it was given no namespace"))
    }
}

type Attack = fn(&mut Intruder) -> Outcome;

/// Attacks by name.
const ATTACKS: &[&[(&str, Attack)]] =
    &[names::ATTACKS, files::ATTACKS, volumes::ATTACKS, network::ATTACKS, roles::ATTACKS, growth::ATTACKS];

/// Its endpoints by index in its manifest, for children that run the same program.
pub(crate) const NAMESPACE_SLOT: usize = 0;
pub(crate) const TCP_SLOT: usize = 1;
/// Its parameters by index in its manifest.
const ATTACK_PARAMETER: usize = 0;
const TARGET_PARAMETER: usize = 1;
/// Its own name among the installed programs.
pub(crate) const OWN: &str = "intruder";

/// Creates a child that runs this program, to be given endpoints and started.
pub(crate) fn comrade(attack: &str, target: &str) -> Result<sip::process::Child, String> {
    let child = create(OWN).map_err(|error| format!("a comrade: {error}"))?;
    child
        .parameter(ATTACK_PARAMETER, attack)
        .and_then(|child| child.parameter(TARGET_PARAMETER, target))
        .map_err(|status| format!("a comrade's parameters: {}", status.text()))
}

/// Starts such a child and waits: its result becomes this one's.
pub(crate) fn send(child: sip::process::Child) -> Outcome {
    let ended = child.start().and_then(|child| child.wait());
    let ended = ended.map_err(|status| format!("a comrade: {}", status.text()))?;
    check!(ended.is_success(), "by a comrade: {ended}");
    Ok(())
}

/// Runs the requested attack.
pub fn main(startup: Startup) -> i32 {
    let mut intruder =
        Intruder { namespace: startup.namespace.map(Namespace::new), tcp: startup.tcp, target: startup.target };
    let named = ATTACKS.iter().copied().flatten().find(|(name, _)| *name == startup.attack);
    let Some((_, attack)) = named else { panic!("there is no attack `{}`", startup.attack) };
    match attack(&mut intruder) {
        Ok(()) => 0,
        Err(what) => panic!("{what}"),
    }
}

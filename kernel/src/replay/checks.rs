//! Comparing what a program does with what was recorded.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abi::EpitaphKind;
use recording::{ANY_FUNCTION, Digest, Event};

use crate::process::Epitaph;

/// A recorded call as text; without arguments if they are not recorded.
pub fn call(event: &Event) -> String {
    match event.check {
        Some(_) => name(event.function.into()).into(),
        None => text(event.function.into(), &event.words),
    }
}

fn name(function: usize) -> &'static str {
    abi::FUNCTIONS.get(function).map_or("some call", |function| function.name)
}

fn text(function: usize, arguments: &[u64]) -> String {
    let arguments: Vec<String> = arguments.iter().map(|argument| format!("{argument:#x}")).collect();
    format!("{}({})", name(function), arguments.join(", "))
}

/// Compares a call, of these arguments and words read, with the recorded one. `digest` is of all calls of the thread,
/// with this one. Plain calls are compared by the digest of the next other one.
///
/// # Errors
/// How they differ.
pub fn same_call(
    event: &Event,
    function: usize,
    (arguments, words): (&[u64], &[u64]),
    digest: Digest,
) -> Result<(), String> {
    if event.function == ANY_FUNCTION {
        return Ok(());
    }
    let is_same_function = usize::from(event.function) == function;
    if let Some(check) = event.check {
        if is_same_function && check == digest.check() {
            return Ok(());
        }
        let other = if is_same_function { " with other arguments, or another message" } else { "" };
        return Err(format!("recorded: {}{other}; replayed: {}", call(event), text(function, arguments)));
    }
    if !is_same_function || event.words != arguments {
        return Err(format!("recorded: {}; replayed: {}", call(event), text(function, arguments)));
    }
    match event.buffer.iter().zip(words).position(|(recorded, replayed)| recorded != replayed) {
        _ if event.buffer.len() != words.len() => {
            Err(format!("{}: recorded with {} words, replayed with {}", call(event), event.buffer.len(), words.len()))
        }
        Some(index) => Err(format!(
            "{}: word {index} of its message: recorded {:#x}, replayed {:#x}",
            call(event),
            event.buffer[index],
            words[index]
        )),
        None => Ok(()),
    }
}

/// Compares the end of a process with the recorded one. Others may have ended it: then there is nothing to compare.
///
/// # Errors
/// How they differ.
pub fn same_end(event: &Event, kind: EpitaphKind, status: u64, replayed: Option<Epitaph>) -> Result<(), String> {
    use EpitaphKind::{Exited, Faulted, Panicked, StackOverflow};
    if !matches!(kind, Exited | Faulted | Panicked | StackOverflow) {
        return Ok(());
    }
    let replayed = replayed.unwrap_or(Epitaph::new(EpitaphKind::Stopped, "does not end here"));
    let recorded = event.text();
    // A long text is recorded in part.
    let has_text = replayed.text.starts_with(recorded.as_str());
    if replayed.kind == kind && replayed.status == status && has_text {
        return Ok(());
    }
    Err(format!("recorded: {recorded}; replayed: {}", replayed.text))
}

/// A hash of what programs do.
pub struct Hash(u64);

impl Default for Hash {
    fn default() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    /// Adds words.
    pub fn add(&mut self, words: &[u64]) {
        let mix = |sum: u64, word: &u64| (sum.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = words.iter().fold(self.0 ^ words.len() as u64, mix);
    }

    /// Adds bytes.
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        self.add(&[bytes.len() as u64]);
        bytes.chunks(8).for_each(|chunk| self.add(&[word(chunk)]));
    }

    /// Its value.
    pub fn value(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
}

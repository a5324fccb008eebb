//! What a store has, brought into a system that has started anew: programs go and come until nothing more changes.
//!
//! Each step is judged as when it was asked for, on the system as it is then. A program may need one that comes after
//! it in the list, and the system image may be another since; so what is refused is tried again as long as something
//! else succeeds. Deliberately not here: the judgement, and the kernel.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::index::{Index, Kept};

/// The system that is changed.
pub trait System {
    /// Whether there is a program of this name.
    fn has(&mut self, name: &str) -> bool;

    /// Whether the program of this name is the one that is kept.
    fn has_kept(&mut self, kept: &Kept) -> bool;

    /// Takes a program of the system image out.
    ///
    /// # Errors
    /// Why it stays, as a sentence.
    fn take_out(&mut self, name: &str) -> Result<(), String>;

    /// Brings a program in.
    ///
    /// # Errors
    /// Why not, as a sentence.
    fn bring_in(&mut self, kept: &Kept) -> Result<(), String>;
}

/// Brings the system to what the store has, as far as that can be. Gives a sentence for each thing that cannot.
pub fn replay(index: &Index, system: &mut impl System) -> Vec<String> {
    let mut gone: Vec<&String> = index.gone.iter().collect();
    let mut kept: Vec<&Kept> = index.kept.iter().collect();
    loop {
        let before = gone.len() + kept.len();
        let mut problems = Vec::new();
        gone.retain(|name| {
            let successor = index.kept.iter().find(|kept| kept.name == **name);
            // Done by an installer that was here before, or nothing to do in this system image.
            if !system.has(name) || successor.is_some_and(|kept| system.has_kept(kept)) {
                return false;
            }
            let refused = system.take_out(name).err();
            problems.extend(refused.iter().map(|why| format!("`{name}` is not taken out: {why}")));
            refused.is_some()
        });
        kept.retain(|kept| {
            if system.has_kept(kept) {
                return false;
            }
            let refused = match gone.contains(&&kept.name) {
                true => Some("the system image's own program of this name is still there".into()),
                false => system.bring_in(kept).err(),
            };
            problems.extend(refused.iter().map(|why| format!("`{}` is not installed: {why}", kept.name)));
            refused.is_some()
        });
        if problems.is_empty() || gone.len() + kept.len() == before {
            return problems;
        }
    }
}

//! Replay of a store into a freshly booted system, repeated until nothing changes.
//!
//! Each step passes the install check on the system as it is then. A program may require one later in the index, and
//! the system image may have changed, so refused steps are retried as long as another one succeeds.
//! Deliberately not here: the check, and the kernel.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::index::{Index, Kept};

/// The system that a store is replayed into.
pub trait System {
    /// Whether a program of this name is installed.
    fn has(&mut self, name: &str) -> bool;

    /// Whether the installed program of this name is the one in the store.
    fn has_kept(&mut self, kept: &Kept) -> bool;

    /// Uninstalls a program of the system image.
    ///
    /// # Errors
    /// Why it stays, for a message.
    fn uninstall(&mut self, name: &str) -> Result<(), String>;

    /// Installs a program of the store.
    ///
    /// # Errors
    /// Why it is refused, for a message.
    fn install(&mut self, kept: &Kept) -> Result<(), String>;
}

/// Applies the store to the system as far as possible. Returns a message for each step that is refused.
pub fn replay(index: &Index, system: &mut impl System) -> Vec<String> {
    let mut gone: Vec<&String> = index.gone.iter().collect();
    let mut kept: Vec<&Kept> = index.kept.iter().collect();
    loop {
        let before = gone.len() + kept.len();
        let mut problems = Vec::new();
        gone.retain(|name| {
            let successor = index.kept.iter().find(|kept| kept.name == **name);
            // Done by a previous installer process, or not in this system image.
            if !system.has(name) || successor.is_some_and(|kept| system.has_kept(kept)) {
                return false;
            }
            let refused = system.uninstall(name).err();
            problems.extend(refused.iter().map(|why| format!("`{name}` is not taken out: {why}")));
            refused.is_some()
        });
        kept.retain(|kept| {
            if system.has_kept(kept) {
                return false;
            }
            let refused = match gone.contains(&&kept.name) {
                true => Some("the system image's own program of this name is still there".into()),
                false => system.install(kept).err(),
            };
            problems.extend(refused.iter().map(|why| format!("`{}` is not installed: {why}", kept.name)));
            refused.is_some()
        });
        if problems.is_empty() || gone.len() + kept.len() == before {
            return problems;
        }
    }
}

//! Who may change what a store keeps: the installer alone, by the list of the store's folder.
//!
//! What is found in a store is taken for what was agreed to when it was put there. So a folder that others may write
//! into is no store. Deliberately not here: asking for the list, and the folder above, whose list says who may put
//! another folder in the store's place.

use alloc::format;
use alloc::string::String;

use principal::{Acl, Pattern, Right, Verb};

/// Rights by which somebody changes what a folder has, or who may.
const CHANGING: [Right; 3] = [Right::Write, Right::Register, Right::SetAcl];

/// The list of a store of the installer that is `own` as a principal: others may look.
pub fn list(own: &str) -> String {
    format!("allow all {own}\nallow traverse,read **\n")
}

/// Whether by this list nobody but `own` changes anything. Entries that take rights away are not asked: those that
/// give them name nobody else.
pub fn is_guarded(list: &str, own: &str) -> bool {
    let (Ok(acl), Ok(own)) = (Acl::parse(list), Pattern::exactly(own)) else { return false };
    let gives = |rights: principal::Rights| CHANGING.iter().any(|&right| rights.has(right));
    let mut giving = acl.entries().iter().filter(|entry| entry.verb == Verb::Allow && gives(entry.rights));
    !acl.is_empty() && giving.all(|entry| entry.who.text() == own.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_lets_others_change_something_guards_nothing() {
        let own = "installer.singularity";
        for (list, expected) in [
            (list(own).as_str(), true),
            ("allow all installer.singularity", true),
            ("allow traverse,read,notify,execute **", true),
            ("deny all **", true),
            ("", false),
            ("no list", false),
            ("allow all **", false),
            ("allow write shell.singularity", false),
            ("allow register ..shell.singularity\nallow all installer.singularity", false),
            ("allow set-acl login.singularity@admin + **", false),
            ("allow all ..installer.singularity", false),
            ("deny write **\nallow write **", false),
        ] {
            assert_eq!(is_guarded(list, own), expected, "{list}");
        }
    }
}

//! The ACL of the store's folder: only the installer may change its contents.
//!
//! Programs in a store count as approved, so a folder that others may write to is not accepted as one. Deliberately not
//! here: reading the ACL, and the parent folder, whose ACL governs replacement of the store's folder.

use alloc::format;
use alloc::string::String;

use principal::{Acl, Pattern, Right, Verb};

/// Rights to change a folder's contents or ACL.
const CHANGING: [Right; 3] = [Right::Write, Right::Register, Right::SetAcl];

/// The ACL of a store for the installer whose principal is `own`; others may read.
pub fn list(own: &str) -> String {
    format!("allow all {own}\nallow traverse,read **\n")
}

/// Whether this ACL grants no right to change anything to a principal other than `own`. `deny` entries are ignored:
/// no `allow` entry may name another principal.
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
    fn a_list_that_grants_others_changes_is_no_guard() {
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

//! Who may bind to what, and who may change which names.
//!
//! Binding follows the `[[bind]]` rules of the system manifest. Names are changed by the root program of the
//! system, and by those whom the parameter `register` names. Deliberately not here: what a
//! principal is (the kernel makes it from the manifests).

use alloc::string::String;
use alloc::vec::Vec;

use package::{SystemManifest, pattern};

/// The access rules.
pub struct Rules {
    system: SystemManifest,
    registrars: Vec<(String, String)>,
}

impl Rules {
    /// The rules of a system, with lines `WHO PATH` (patterns both) of those who may change names.
    pub fn new(system: SystemManifest, register: &[String]) -> Rules {
        let registrars = register
            .iter()
            .filter_map(|line| line.split_once(' '))
            .map(|(who, path)| (who.trim().into(), path.trim().into()))
            .collect();
        Rules { system, registrars }
    }

    /// Whether the principal may bind to this absolute path.
    pub fn may_bind(&self, principal: &str, path: &str) -> bool {
        self.is_root(principal) || self.system.may_bind(principal, path)
    }

    /// Whether the principal may register, link and take out this absolute path.
    pub fn may_change(&self, principal: &str, path: &str) -> bool {
        let allows = |(who, what): &(String, String)| pattern::matches(who, principal) && pattern::matches(what, path);
        self.is_root(principal) || self.registrars.iter().any(allows)
    }

    fn is_root(&self, principal: &str) -> bool {
        principal.split('.').next() == Some(self.system.root.as_str()) && !principal.contains('+')
    }
}

#[cfg(test)]
mod tests {
    use package::Bind;

    use super::*;

    fn rules() -> Rules {
        let system = SystemManifest {
            name: "test".into(),
            root: "service-manager".into(),
            primary: None,
            instances: Vec::new(),
            installed: Vec::new(),
            binds: Vec::from([Bind { who: "*.singularity".into(), path: "/fs/**".into() }]),
            denies: Vec::new(),
        };
        Rules::new(system, &["tester.singularity /tmp/**".into()])
    }

    #[test]
    fn what_no_rule_allows_is_refused() {
        assert!(rules().may_bind("cat.singularity", "/fs/disk0/a"));
        assert!(!rules().may_bind("cat.singularity", "/dev/disk0"));
        assert!(!rules().may_bind("cat.evil", "/fs/disk0/a"));
    }

    #[test]
    fn the_root_program_may_all_and_others_what_they_were_given() {
        assert!(rules().may_change("service-manager.singularity", "/dev/disk0"));
        assert!(rules().may_bind("service-manager.singularity", "/dev/disk0"));
        assert!(rules().may_change("tester.singularity", "/tmp/x"));
        assert!(!rules().may_change("tester.singularity", "/dev/x"));
        assert!(!rules().may_change("service-manager.singularity + cat.singularity", "/dev/x"));
    }
}

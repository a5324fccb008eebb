//! Hardware protection domains of a system: which programs run apart from the kernel.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{Category, Domain, Manifest, pattern};

/// A hardware domain of a system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Apart {
    /// Unique name.
    pub name: String,
    /// Its kind; the kernel's own for programs that are to stay there, whatever domains follow.
    pub kind: Domain,
    /// Patterns of its programs, as `name.publisher`; empty for all.
    pub who: Vec<String>,
    /// Categories of its programs; empty for all.
    pub categories: Vec<Category>,
    /// Whether each of its SIPs has a domain of its own. Otherwise they share one.
    pub each: bool,
}

impl Apart {
    /// Returns whether it contains any code: each SIP in it is alone, without privileges.
    pub fn contains_any_code(&self) -> bool {
        self.each && self.kind == Domain::Ring3
    }

    /// Returns whether a program runs in it, unless one before it has it.
    pub fn takes(&self, program: &Manifest) -> bool {
        let principal = program.principal();
        let named = self.who.is_empty() || self.who.iter().any(|who| pattern::matches(who, &principal));
        named && (self.categories.is_empty() || self.categories.contains(&program.category))
    }
}

/// Returns the index of the hardware domain of a program in a system with this root program: the first domain that takes
/// it; `None` for the kernel's own, in which the root always runs.
pub fn domain_of(domains: &[Apart], root: &str, program: &Manifest) -> Option<usize> {
    let (index, domain) = domains.iter().enumerate().find(|(_, domain)| domain.takes(program))?;
    (domain.kind != Domain::Kernel && program.name != root).then_some(index)
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::Code;

    fn apart(who: &[&str], categories: &[Category]) -> Apart {
        let who = who.iter().map(|&who| who.into()).collect();
        Apart { name: "one".into(), kind: Domain::Ring3, who, categories: categories.to_vec(), each: true }
    }

    #[test]
    fn only_a_process_alone_without_privileges_is_contained_whatever_its_code() {
        for (kind, each, expected) in [
            (Domain::Ring3, true, true),
            (Domain::Ring3, false, false),
            (Domain::Ring0, true, false),
            (Domain::Kernel, true, false),
        ] {
            assert_eq!(Apart { kind, each, ..apart(&[], &[]) }.contains_any_code(), expected, "{kind:?} {each}");
        }
        let order = [Domain::Kernel, Domain::Ring0, Domain::Ring3];
        for (index, domain) in order.into_iter().enumerate() {
            let given = order.map(|wanted| domain.gives(wanted));
            assert_eq!(given.iter().filter(|given| **given).count(), index + 1, "{domain:?}");
        }
    }

    #[test]
    fn the_first_domain_that_takes_a_program_has_it() {
        let program =
            |name: &str, category| Manifest::plain(name, "strangers", category, Code::Script { text: String::new() });
        let domains = vec![
            apart(&["jpeg-*.strangers"], &[]),
            apart(&["*.friends"], &[]),
            apart(&[], &[Category::Test]),
            apart(&["*.strangers"], &[Category::Console, Category::Test]),
        ];
        let of = |name: &str, category| domain_of(&domains, "root", &program(name, category));
        assert_eq!(of("jpeg-view", Category::Test), Some(0));
        assert_eq!(of("view", Category::Test), Some(2));
        assert_eq!(of("view", Category::Console), Some(3));
        assert_eq!(of("view", Category::Driver), None);
        let mut kept = domains.clone();
        kept.insert(0, Apart { kind: Domain::Kernel, ..apart(&["view.*"], &[]) });
        assert_eq!(domain_of(&kept, "root", &program("view", Category::Console)), None);
        assert_eq!(domain_of(&kept, "root", &program("viewer", Category::Console)), Some(4));
        assert_eq!(domain_of(&[], "root", &program("view", Category::Test)), None);
        assert_eq!(domain_of(&domains, "view", &program("view", Category::Test)), None);
    }
}

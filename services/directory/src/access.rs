//! Access decisions: the mandatory rules first, then the ACL governing the name.
//!
//! Key types: [`Access`] (checks both), [`List`] (the ACL of one name), [`Refusal`] (the audit record of a denial). The
//! root program of the system has every right, so no ACL can lock all programs out. Deliberately not here: the tree of
//! names, and the audit log.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use principal::{Acl, AclError, DecisionCache, Entry, Right, Rights};

use crate::rules::Rules;

/// The access control list of one name.
#[derive(Debug)]
pub struct List {
    /// Unique among all lists, including replaced ones; the cache key.
    number: u64,
    acl: Acl,
}

/// Why a request was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The missing right.
    pub right: Right,
    /// The rule or ACL entry that denied it.
    pub rule: String,
}

/// The mandatory rules and a cache of ACL decisions.
pub struct Access {
    rules: Rules,
    /// Rights by list number and principal.
    cache: RefCell<DecisionCache<Rights>>,
    next: Cell<u64>,
}

/// An invalid line of the parameter `acl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListError {
    /// The line is not `PATH ENTRY`.
    NotALine(String),
    /// The entry is invalid, or exceeds the limit of entries per list.
    BadEntry(String, AclError),
}

impl Access {
    /// Access under these rules, with an empty cache.
    pub fn new(rules: Rules) -> Access {
        Access { rules, cache: RefCell::default(), next: Cell::new(0) }
    }

    /// Parses `PATH ENTRY` lines into the ACLs that names are created with, keyed by path or path pattern.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn initial_lists(&self, lines: &[String]) -> Result<Vec<(String, Rc<List>)>, ListError> {
        let mut lists: Vec<(&str, Acl)> = Vec::new();
        for line in lines {
            let split = line.split_once(' ').filter(|(path, _)| path.starts_with('/'));
            let (path, entry) = split.ok_or_else(|| ListError::NotALine(line.clone()))?;
            let bad = |error| ListError::BadEntry(line.clone(), error);
            let entry = Entry::parse(entry, 1).map_err(bad)?;
            match lists.iter_mut().find(|(known, _)| *known == path) {
                Some((_, acl)) => acl.push(entry).map_err(bad)?,
                None => {
                    let mut acl = Acl::default();
                    acl.push(entry).map_err(bad)?;
                    lists.push((path, acl));
                }
            }
        }
        Ok(lists.into_iter().map(|(path, acl)| (path.to_string(), self.list(acl))).collect())
    }

    /// The mandatory rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Makes a list with a unique number.
    pub fn list(&self, acl: Acl) -> Rc<List> {
        let number = self.next.get();
        // 2^64 lists are never made.
        self.next.set(number.wrapping_add(1));
        Rc::new(List { number, acl })
    }

    /// Drops cached decisions of a list that no name has.
    pub fn forget(&self, list: &List) {
        self.cache.borrow_mut().forget(list.number);
    }

    /// Checks the mandatory rules for a bind to this path.
    ///
    /// # Errors
    /// No rule allows it; the refusal names `right`.
    pub fn bind_rule(&self, principal: &str, path: &str, right: Right) -> Result<(), Refusal> {
        let allowed = self.rules.may_bind(principal, path);
        if allowed { Ok(()) } else { Err(Refusal { right, rule: "no [[bind]] rule of the system".to_string() }) }
    }

    /// Checks the mandatory rules for a change of the name at this path.
    ///
    /// # Errors
    /// No rule allows it; the refusal names `right`.
    pub fn change_rule(&self, principal: &str, path: &str, right: Right) -> Result<(), Refusal> {
        let allowed = self.rules.may_change(principal, path)
            || right == Right::SetAcl && self.rules.may_set_list(principal, path);
        if allowed { Ok(()) } else { Err(Refusal { right, rule: "no rule of the directory".to_string() }) }
    }

    /// The rights that a list grants the principal; the root program has every right.
    pub fn rights(&self, principal: &str, list: &List) -> Rights {
        if self.rules.is_root(principal) {
            return Rights::ALL;
        }
        self.cache.borrow_mut().get(list.number, principal, || list.acl.rights_of(principal))
    }

    /// Checks that a list grants the principal at least one of these rights. `list`: the governing ACL and the path of
    /// the name that it is set on; without one, everything is granted.
    ///
    /// # Errors
    /// It grants none of them; the refusal names the first.
    pub fn check(
        &self,
        principal: &str,
        list: Option<(&List, impl FnOnce() -> String)>,
        rights: &[Right],
    ) -> Result<(), Refusal> {
        let Some((list, path)) = list else { return Ok(()) };
        let given = self.rights(principal, list);
        match rights.first() {
            Some(&right) if !rights.iter().any(|&right| given.has(right)) => {
                let rule = list.acl.decide(principal, right).rule;
                Err(Refusal { right, rule: format!("{rule} of the list of {}", path()) })
            }
            _ => Ok(()),
        }
    }
}

impl List {
    /// The list in its textual form, one entry per line.
    pub fn text(&self) -> String {
        self.acl.text()
    }
}

impl core::fmt::Display for ListError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ListError::NotALine(line) => {
                write!(formatter, "`{line}` is not `PATH ENTRY`, an absolute path and an entry of its list")
            }
            ListError::BadEntry(line, error) => write!(formatter, "`{line}`: {error}; {}", error.remedy()),
        }
    }
}

#[cfg(test)]
mod tests {
    use manifest_model::{Bind, SystemManifest};

    use super::*;

    fn access() -> Access {
        let system = SystemManifest {
            name: "test".into(),
            root: "root".into(),
            primary: None,
            instances: Vec::new(),
            installed: Vec::new(),
            binds: Vec::from([Bind { who: "**".into(), path: "/**".into() }]),
            denies: Vec::new(),
            domains: Vec::new(),
            trust: Default::default(),
        };
        Access::new(Rules::new(&system, &[], &[]).unwrap())
    }

    #[test]
    fn a_refusal_names_the_entry_that_denied() {
        let access = access();
        let list = access.list(Acl::parse("deny write ..guest.a\nallow read,write ..*.a").unwrap());
        let ask = |who: &str, rights: &[Right]| access.check(who, Some((&*list, || "/x".to_string())), rights);
        assert_eq!(ask("cat.a", &[Right::Write]), Ok(()));
        assert_eq!(ask("cat.a", &[Right::Traverse, Right::Read]), Ok(()));
        let refused = |right, rule: &str| Err(Refusal { right, rule: rule.into() });
        assert_eq!(ask("guest.a", &[Right::Write]), refused(Right::Write, "entry 1 of the list of /x"));
        assert_eq!(ask("cat.a", &[Right::Traverse]), refused(Right::Traverse, "no entry of the list of /x"));
        assert_eq!(
            ask("cat.b", &[Right::Traverse, Right::Read]),
            refused(Right::Traverse, "no entry of the list of /x")
        );
        assert_eq!(access.check("cat.b", None::<(_, fn() -> String)>, &[Right::Read]), Ok(()));
    }

    #[test]
    fn no_list_locks_the_root_program_out() {
        let access = access();
        let list = access.list(Acl::parse("deny all **").unwrap());
        let ask = |who: &str| access.check(who, Some((&*list, String::new)), &[Right::SetAcl]).is_ok();
        assert!(ask("root.a"));
        assert!(!ask("root.a + cat.a"));
        assert!(!ask("cat.a"));
    }

    #[test]
    fn a_replaced_list_is_not_served_from_the_cache() {
        let access = access();
        let ask = |list: &List| access.check("cat.a", Some((list, String::new)), &[Right::Read]).is_ok();
        let old = access.list(Acl::parse("allow read **").unwrap());
        assert!(ask(&old));
        let new = access.list(Acl::parse("deny read **").unwrap());
        access.forget(&old);
        assert!(!ask(&new));
    }

    #[test]
    fn initial_lists_are_parsed_line_by_line() {
        let access = access();
        let lines = ["/a allow read **", "/b deny all **", "/a deny all **"].map(String::from);
        let lists = access.initial_lists(&lines).unwrap();
        let texts: Vec<_> = lists.iter().map(|(path, list)| (path.as_str(), list.text())).collect();
        let expected = [("/a", "allow read **\ndeny all **\n".to_string()), ("/b", "deny all **\n".to_string())];
        assert_eq!(texts, expected);
        for (line, words) in [
            ("a allow read **", "is not `PATH ENTRY`"),
            ("/a", "is not"),
            ("/a permit **", "expected `allow` or `deny`"),
        ] {
            let error = access.initial_lists(&[line.into()]).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}

//! Who may do what with which name: the mandatory rules first, then the list that decides about the name.
//!
//! Key types: [`Access`] (asks both), [`List`] (a list of one name), [`Refusal`] (what is written down where the answer
//! is no). The root program of the system may all, so that no list can lock everybody out. Deliberately not here:
//! where names are (the tree), and telling anybody of refusals.

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
    /// Of this list alone, also when others take its place.
    number: u64,
    acl: Acl,
}

/// Why something is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What was asked for.
    pub right: Right,
    /// What decided.
    pub rule: String,
}

/// All that decides.
pub struct Access {
    rules: Rules,
    /// What lists said of principals.
    cache: RefCell<DecisionCache<Rights>>,
    next: Cell<u64>,
}

/// A line of the parameter `acl` that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListError {
    /// It is not `PATH ENTRY`.
    NotALine(String),
    /// Its entry is none, or is one too many.
    BadEntry(String, AclError),
}

impl Access {
    /// Decides by these rules.
    pub fn new(rules: Rules) -> Access {
        Access { rules, cache: RefCell::default(), next: Cell::new(0) }
    }

    /// The lists that names have from when they are made on, by path or pattern of paths, from lines `PATH ENTRY`.
    ///
    /// # Errors
    /// A line cannot be read.
    pub fn first_lists(&self, lines: &[String]) -> Result<Vec<(String, Rc<List>)>, ListError> {
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

    /// A list for a name.
    pub fn list(&self, acl: Acl) -> Rc<List> {
        let number = self.next.get();
        // Nobody lives to see it overflow.
        self.next.set(number.wrapping_add(1));
        Rc::new(List { number, acl })
    }

    /// Forgets what a list said that no name has any more.
    pub fn forget(&self, list: &List) {
        self.cache.borrow_mut().forget(list.number);
    }

    /// Whether the principal may bind to this path by the rules.
    ///
    /// # Errors
    /// It may not, to be written down as a refusal of `right`.
    pub fn bind_rule(&self, principal: &str, path: &str, right: Right) -> Result<(), Refusal> {
        let allowed = self.rules.may_bind(principal, path);
        if allowed { Ok(()) } else { Err(Refusal { right, rule: "no [[bind]] rule of the system".to_string() }) }
    }

    /// Whether the principal may change the name at this path by the rules.
    ///
    /// # Errors
    /// It may not, to be written down as a refusal of `right`.
    pub fn change_rule(&self, principal: &str, path: &str, right: Right) -> Result<(), Refusal> {
        let allowed = self.rules.may_change(principal, path)
            || right == Right::SetAcl && self.rules.may_set_list(principal, path);
        if allowed { Ok(()) } else { Err(Refusal { right, rule: "no rule of the directory".to_string() }) }
    }

    /// All that a list gives the principal; the root program has every right.
    pub fn rights(&self, principal: &str, list: &List) -> Rights {
        if self.rules.is_root(principal) {
            return Rights::ALL;
        }
        self.cache.borrow_mut().get(list.number, principal, || list.acl.rights_of(principal))
    }

    /// Whether a list gives the principal one of these rights. `list`: the one that decides, and the path of the name
    /// that has it.
    ///
    /// # Errors
    /// It gives none of them; the first is the one that is missing.
    pub fn ask(
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
    /// The list as it is written.
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
            trust: Default::default(),
        };
        Access::new(Rules::new(&system, &[], &[]).unwrap())
    }

    #[test]
    fn a_list_narrows_and_says_which_entry_did() {
        let access = access();
        let list = access.list(Acl::parse("deny write ..guest.a\nallow read,write ..*.a").unwrap());
        let ask = |who: &str, rights: &[Right]| access.ask(who, Some((&*list, || "/x".to_string())), rights);
        assert_eq!(ask("cat.a", &[Right::Write]), Ok(()));
        assert_eq!(ask("cat.a", &[Right::Traverse, Right::Read]), Ok(()));
        let refused = |right, rule: &str| Err(Refusal { right, rule: rule.into() });
        assert_eq!(ask("guest.a", &[Right::Write]), refused(Right::Write, "entry 1 of the list of /x"));
        assert_eq!(ask("cat.a", &[Right::Traverse]), refused(Right::Traverse, "no entry of the list of /x"));
        assert_eq!(
            ask("cat.b", &[Right::Traverse, Right::Read]),
            refused(Right::Traverse, "no entry of the list of /x")
        );
        assert_eq!(access.ask("cat.b", None::<(_, fn() -> String)>, &[Right::Read]), Ok(()));
    }

    #[test]
    fn no_list_shuts_the_root_program_out() {
        let access = access();
        let list = access.list(Acl::parse("deny all **").unwrap());
        let ask = |who: &str| access.ask(who, Some((&*list, String::new)), &[Right::SetAcl]).is_ok();
        assert!(ask("root.a"));
        assert!(!ask("root.a + cat.a"));
        assert!(!ask("cat.a"));
    }

    #[test]
    fn a_list_that_takes_the_place_of_another_is_asked_anew() {
        let access = access();
        let ask = |list: &List| access.ask("cat.a", Some((list, String::new)), &[Right::Read]).is_ok();
        let old = access.list(Acl::parse("allow read **").unwrap());
        assert!(ask(&old));
        let new = access.list(Acl::parse("deny read **").unwrap());
        access.forget(&old);
        assert!(!ask(&new));
    }

    #[test]
    fn first_lists_are_read_line_by_line() {
        let access = access();
        let lines = ["/a allow read **", "/b deny all **", "/a deny all **"].map(String::from);
        let lists = access.first_lists(&lines).unwrap();
        let texts: Vec<_> = lists.iter().map(|(path, list)| (path.as_str(), list.text())).collect();
        let expected = [("/a", "allow read **\ndeny all **\n".to_string()), ("/b", "deny all **\n".to_string())];
        assert_eq!(texts, expected);
        for (line, words) in
            [("a allow read **", "is not `PATH ENTRY`"), ("/a", "is not"), ("/a permit **", "begins with")]
        {
            let error = access.first_lists(&[line.into()]).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}

//! The mandatory rules: who may bind to what, and who may change which names.
//!
//! Binding follows the `[[bind]]` rules of the system manifest. Names are changed by the root program of the
//! system, and by those whom the parameter `register` names. Lists on names can only narrow what these allow.
//! Deliberately not here: what a principal is (the kernel makes it).

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;

use manifest_model::{SystemManifest, pattern};
use principal::{DecisionCache, Pattern, PatternError};

/// Patterns of principals whose answers fit into one number.
const AT_ONCE: usize = 64;

/// The access rules.
pub struct Rules {
    /// The program that may all.
    root: String,
    binds: Vec<Rule>,
    registrars: Vec<Rule>,
    /// Who may set the lists of names without being able to change the names.
    keepers: Vec<Rule>,
    /// Every pattern of principals in the rules, once.
    patterns: Vec<Pattern>,
    /// Which of the patterns match a principal, by bits, [`AT_ONCE`] patterns a list.
    cache: RefCell<DecisionCache<u64>>,
}

struct Rule {
    /// Which of the patterns.
    who: usize,
    path: String,
}

/// A rule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// A line of the parameter `register` or `set-acl` is not `WHO PATH`.
    NotALine(String),
    /// The pattern of principals is none.
    BadPattern(String, PatternError),
}

impl Rules {
    /// The rules of a system, with lines `WHO PATH` (patterns both) of those who may change names, and of those who may
    /// set their lists.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn new(system: &SystemManifest, register: &[String], set_lists: &[String]) -> Result<Rules, RuleError> {
        let mut rules = Rules {
            root: system.root.clone(),
            binds: Vec::new(),
            registrars: Vec::new(),
            keepers: Vec::new(),
            patterns: Vec::new(),
            cache: RefCell::new(DecisionCache::new()),
        };
        for bind in &system.binds {
            let who = rules.numbered(&bind.who)?;
            rules.binds.push(Rule { who, path: bind.path.clone() });
        }
        rules.registrars = rules.lines(register)?;
        rules.keepers = rules.lines(set_lists)?;
        Ok(rules)
    }

    fn lines(&mut self, lines: &[String]) -> Result<Vec<Rule>, RuleError> {
        let read = |line: &String| {
            // Patterns of principals may have spaces, those of paths begin with a slash.
            let (who, path) = line.rsplit_once(" /").ok_or_else(|| RuleError::NotALine(line.clone()))?;
            let who = self.numbered(who.trim())?;
            Ok(Rule { who, path: alloc::format!("/{}", path.trim()) })
        };
        lines.iter().map(read).collect()
    }

    fn numbered(&mut self, who: &str) -> Result<usize, RuleError> {
        if let Some(known) = self.patterns.iter().position(|pattern| pattern.text() == who) {
            return Ok(known);
        }
        self.patterns.push(Pattern::parse(who).map_err(|error| RuleError::BadPattern(who.to_string(), error))?);
        Ok(self.patterns.len() - 1)
    }

    /// Whether the principal may bind to this absolute path.
    pub fn may_bind(&self, principal: &str, path: &str) -> bool {
        self.is_root(principal) || self.allows(&self.binds, principal, path)
    }

    /// Whether the principal may register, link and take out this absolute path.
    pub fn may_change(&self, principal: &str, path: &str) -> bool {
        self.is_root(principal) || self.allows(&self.registrars, principal, path)
    }

    /// Whether the principal may set the list of this absolute path, beside those who may change the name.
    pub fn may_set_list(&self, principal: &str, path: &str) -> bool {
        self.allows(&self.keepers, principal, path)
    }

    fn allows(&self, rules: &[Rule], principal: &str, path: &str) -> bool {
        rules.iter().any(|rule| pattern::matches(&rule.path, path) && self.is_matched(rule.who, principal))
    }

    fn is_matched(&self, who: usize, principal: &str) -> bool {
        let from = who - who % AT_ONCE;
        let matched = self.cache.borrow_mut().get(from as u64, principal, || {
            let patterns = self.patterns.iter().skip(from).take(AT_ONCE).enumerate();
            patterns.fold(0, |bits, (bit, pattern)| bits | u64::from(pattern.matches(principal)) << bit)
        });
        matched & 1 << (who % AT_ONCE) != 0
    }

    /// Whether it is the root program of the system itself, not one that it invoked.
    pub fn is_root(&self, principal: &str) -> bool {
        principal.split('.').next() == Some(self.root.as_str()) && !principal.contains('+')
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleError::NotALine(line) => {
                write!(formatter, "`{line}` is not `WHO PATH`, a pattern of principals and one of paths")
            }
            RuleError::BadPattern(who, error) => write!(formatter, "`{who}`: {error}; {}", error.remedy()),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use manifest_model::Bind;

    use super::*;

    fn system() -> SystemManifest {
        SystemManifest {
            name: "test".into(),
            root: "service-manager".into(),
            primary: None,
            instances: Vec::new(),
            installed: Vec::new(),
            binds: Vec::from([Bind { who: "..*.singularity".into(), path: "/fs/**".into() }]),
            denies: Vec::new(),
            trust: manifest_model::Trust::default(),
        }
    }

    fn rules() -> Rules {
        let system = system();
        let register = ["tester.singularity /tmp/**".into(), "shell.singularity + tester.singularity /new/*".into()];
        Rules::new(&system, &register, &["..setacl.singularity /new/**".into()]).unwrap()
    }

    #[test]
    fn what_no_rule_allows_is_refused() {
        assert!(rules().may_bind("cat.singularity", "/fs/disk0/a"));
        assert!(rules().may_bind("shell.singularity + cat.singularity", "/fs/disk0/a"));
        assert!(!rules().may_bind("cat.singularity", "/dev/disk0"));
        assert!(!rules().may_bind("cat.evil", "/fs/disk0/a"));
    }

    #[test]
    fn the_root_program_may_all_and_others_what_they_were_given() {
        assert!(rules().may_change("service-manager.singularity", "/dev/disk0"));
        assert!(rules().may_bind("service-manager.singularity", "/dev/disk0"));
        assert!(rules().may_change("tester.singularity", "/tmp/x"));
        assert!(!rules().may_change("tester.singularity", "/dev/x"));
        assert!(rules().may_change("shell.singularity + tester.singularity", "/new/x"));
        assert!(rules().may_set_list("shell.singularity + setacl.singularity", "/new/x"));
        assert!(!rules().may_change("shell.singularity + setacl.singularity", "/new/x"));
        assert!(!rules().may_set_list("shell.singularity + setacl.singularity", "/dev/x"));
        assert!(!rules().may_change("service-manager.singularity + cat.singularity", "/dev/x"));
    }

    #[test]
    fn many_patterns_are_each_asked() {
        let bind = |number| Bind { who: format!("p{number}.singularity"), path: format!("/n/{number}") };
        let mut system = system();
        system.binds = (0..150).map(bind).collect();
        let rules = Rules::new(&system, &[], &[]).unwrap();
        for number in 0..150 {
            let who = format!("p{number}.singularity");
            assert!(rules.may_bind(&who, &format!("/n/{number}")));
            assert!(!rules.may_bind(&who, &format!("/n/{}", (number + 64) % 150)));
        }
    }

    #[test]
    fn a_rule_that_cannot_be_read_is_told() {
        let mut system = system();
        for (line, words) in [("tester.singularity", "is not `WHO PATH`"), ("the tester /tmp", "no part of a ` + `")] {
            let error = Rules::new(&system, &[], &[line.into()]).err().expect(line);
            assert!(error.to_string().contains(words), "{error}");
        }
        system.binds = Vec::from([Bind { who: "".into(), path: "/".into() }]);
        assert!(matches!(Rules::new(&system, &[], &[]), Err(RuleError::BadPattern(..))));
    }
}

//! Mandatory access rules: which principals may bind to which paths, and change which names.
//!
//! Binding follows the `[[bind]]` rules of the system manifest. Names are changed by the root program of the system
//! and by the principals in the parameter `register`. ACLs can only narrow what these rules allow.
//! Deliberately not here: the definition of a principal (the kernel determines it).

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;

use manifest_model::{SystemManifest, pattern};
use principal::{DecisionCache, Pattern, PatternError};

/// Principal patterns per cache entry: one bit each.
const PATTERNS_PER_WORD: usize = 64;

/// The access rules.
pub struct Rules {
    /// Name of the root program, which has every right.
    root: String,
    binds: Vec<Rule>,
    registrars: Vec<Rule>,
    /// May set ACLs without being able to change the names.
    acl_setters: Vec<Rule>,
    /// All principal patterns of the rules, without duplicates.
    patterns: Vec<Pattern>,
    /// Bit sets of the patterns that match a principal, keyed by the first pattern's index.
    cache: RefCell<DecisionCache<u64>>,
}

struct Rule {
    /// Index into `patterns`.
    pattern: usize,
    path: String,
}

/// An invalid access rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// A line of the parameter `register` or `set-acl` is not `PRINCIPAL PATH`.
    NotALine(String),
    /// The principal pattern is invalid.
    BadPattern(String, PatternError),
}

impl Rules {
    /// The rules of a system. `register` and `set_lists` are lines `PRINCIPAL PATH`, both patterns: the principals that
    /// may change names, and those that may set their ACLs.
    ///
    /// # Errors
    /// The first invalid line or pattern.
    pub fn new(system: &SystemManifest, register: &[String], set_lists: &[String]) -> Result<Rules, RuleError> {
        let mut rules = Rules {
            root: system.root.clone(),
            binds: Vec::new(),
            registrars: Vec::new(),
            acl_setters: Vec::new(),
            patterns: Vec::new(),
            cache: RefCell::new(DecisionCache::new()),
        };
        for bind in &system.binds {
            let who = rules.intern(&bind.who)?;
            rules.binds.push(Rule { pattern: who, path: bind.path.clone() });
        }
        rules.registrars = rules.parse(register)?;
        rules.acl_setters = rules.parse(set_lists)?;
        Ok(rules)
    }

    fn parse(&mut self, lines: &[String]) -> Result<Vec<Rule>, RuleError> {
        let read = |line: &String| {
            // Principal patterns may contain spaces; path patterns begin with a slash.
            let (who, path) = line.rsplit_once(" /").ok_or_else(|| RuleError::NotALine(line.clone()))?;
            let who = self.intern(who.trim())?;
            Ok(Rule { pattern: who, path: alloc::format!("/{}", path.trim()) })
        };
        lines.iter().map(read).collect()
    }

    fn intern(&mut self, who: &str) -> Result<usize, RuleError> {
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

    /// Whether the principal may register, link and remove this absolute path.
    pub fn may_change(&self, principal: &str, path: &str) -> bool {
        self.is_root(principal) || self.allows(&self.registrars, principal, path)
    }

    /// Whether the principal may set the ACL of this absolute path without the right to change the name.
    pub fn may_set_list(&self, principal: &str, path: &str) -> bool {
        self.allows(&self.acl_setters, principal, path)
    }

    fn allows(&self, rules: &[Rule], principal: &str, path: &str) -> bool {
        rules.iter().any(|rule| pattern::matches(&rule.path, path) && self.is_matched(rule.pattern, principal))
    }

    fn is_matched(&self, index: usize, principal: &str) -> bool {
        let from = index - index % PATTERNS_PER_WORD;
        let matched = self.cache.borrow_mut().get(from as u64, principal, || {
            let patterns = self.patterns.iter().skip(from).take(PATTERNS_PER_WORD).enumerate();
            patterns.fold(0, |bits, (bit, pattern)| bits | u64::from(pattern.matches(principal)) << bit)
        });
        matched & 1 << (index % PATTERNS_PER_WORD) != 0
    }

    /// Whether this is the system's root program itself, not a program that it started.
    pub fn is_root(&self, principal: &str) -> bool {
        principal.split('.').next() == Some(self.root.as_str()) && !principal.contains('+')
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleError::NotALine(line) => {
                write!(formatter, "`{line}` is not `PRINCIPAL PATH`, a principal pattern and a path pattern")
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
            domains: Vec::new(),
            trust: manifest_model::Trust::default(),
        }
    }

    fn rules() -> Rules {
        let system = system();
        let register = ["tester.singularity /tmp/**".into(), "shell.singularity + tester.singularity /new/*".into()];
        Rules::new(&system, &register, &["..setacl.singularity /new/**".into()]).unwrap()
    }

    #[test]
    fn binds_without_a_rule_are_refused() {
        assert!(rules().may_bind("cat.singularity", "/fs/disk0/a"));
        assert!(rules().may_bind("shell.singularity + cat.singularity", "/fs/disk0/a"));
        assert!(!rules().may_bind("cat.singularity", "/dev/disk0"));
        assert!(!rules().may_bind("cat.evil", "/fs/disk0/a"));
    }

    #[test]
    fn the_root_program_may_change_everything_and_others_by_rule() {
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
    fn more_patterns_than_one_word_holds_are_matched() {
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
    fn invalid_rules_are_reported() {
        let mut system = system();
        for (line, words) in [("tester.singularity", "is not `PRINCIPAL PATH`"), ("the tester /tmp", "malformed ` + `")]
        {
            let error = Rules::new(&system, &[], &[line.into()]).err().expect(line);
            assert!(error.to_string().contains(words), "{error}");
        }
        system.binds = Vec::from([Bind { who: "".into(), path: "/".into() }]);
        assert!(matches!(Rules::new(&system, &[], &[]), Err(RuleError::BadPattern(..))));
    }
}

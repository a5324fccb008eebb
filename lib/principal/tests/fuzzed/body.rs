//! The body of the fuzz target `principal`: the list is the input up to the first zero byte, the principal the rest.
//! Parsed input must round-trip, and all queries of a list must agree.

use principal::{Acl, DecisionCache, Pattern, PatternError, Principal, Right, STATE_LIMIT};

/// Runs one input; a panic is a finding.
pub fn run(bytes: &[u8]) {
    let middle = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let (list, who) = bytes.split_at(middle);
    let who = std::str::from_utf8(who.get(1..).unwrap_or_default()).unwrap_or_default();
    if let Ok(principal) = Principal::parse(who) {
        assert!(principal.links().count() > 0 && principal.program().is_some());
        match Pattern::exactly(who) {
            Ok(exact) => assert!(exact.matches(who) && who.len() <= STATE_LIMIT),
            Err(error) => assert!(error == PatternError::TooLong && who.len() > STATE_LIMIT, "{error}"),
        }
    }
    let Ok(list) = Acl::from_bytes(list) else { return };
    assert_eq!(Acl::parse(&list.text()).as_ref(), Ok(&list));
    let rights = list.rights_of(who);
    let mut cache = DecisionCache::new();
    for _ in 0..2 {
        assert_eq!(cache.get(1, who, || list.rights_of(who)), rights);
    }
    for &right in Right::ALL {
        assert_eq!(list.decide(who, right).allowed, rights.has(right));
    }
}

//! Fewer faults for a failing run: the delta debugging of Zeller and Hildebrandt (2002) over the list of faults.
//!
//! Whether a fault is used depends on its kind and its number alone, so a run with some of them left out is another run,
//! but one with the rest at the same opportunities. Deliberately not here: running.

use std::collections::BTreeMap;

/// Maximum runs of a search.
const MAX_RUNS: usize = 120;

/// Returns a part of the list for which `fails` still holds, and from which no piece can be left out; or what was found
/// when the number of runs was used up. `fails` is not asked about the whole list.
pub fn smallest<E>(all: &[String], mut fails: impl FnMut(&[String]) -> Result<bool, E>) -> Result<Vec<String>, E> {
    let mut current = all.to_vec();
    let mut pieces = 2;
    let mut runs = 0;
    if fails(&[])? {
        return Ok(Vec::new());
    }
    // Most of the faults are of kinds that do not matter.
    for kind in kinds(all) {
        let rest: Vec<String> = current.iter().filter(|fault| kind_of(fault) != kind).cloned().collect();
        runs += 1;
        if !rest.is_empty() && rest.len() < current.len() && fails(&rest)? {
            current = rest;
        }
    }
    while current.len() > 1 && runs < MAX_RUNS {
        let size = current.len().div_ceil(pieces);
        let mut is_smaller = false;
        let mut start = 0;
        while start < current.len() && runs < MAX_RUNS {
            let end = (start + size).min(current.len());
            let rest: Vec<String> = [&current[..start], &current[end..]].concat();
            runs += 1;
            if !rest.is_empty() && fails(&rest)? {
                // The next piece is at the same place.
                (current, is_smaller) = (rest, true);
            } else {
                start = end;
            }
        }
        if size == 1 && !is_smaller {
            break;
        }
        pieces = if is_smaller { pieces.min(current.len()).max(2) } else { (pieces * 2).min(current.len()) };
    }
    Ok(current)
}

fn kind_of(fault: &str) -> &str {
    fault.split_once(':').map_or(fault, |(kind, _)| kind)
}

/// Returns the kinds of the faults, the most frequent first.
fn kinds(faults: &[String]) -> Vec<&str> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    faults.iter().for_each(|fault| *counts.entry(kind_of(fault)).or_default() += 1);
    let mut kinds: Vec<&str> = counts.keys().copied().collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(counts[kind]));
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("cut:{number}")).collect()
    }

    #[test]
    fn what_is_needed_is_found_among_much() {
        for needed in [&["cut:3"][..], &["cut:17", "cut:18"], &["cut:0", "cut:50", "cut:99"]] {
            let mut runs = 0;
            let found = smallest(&of(100), |some| {
                runs += 1;
                Ok::<bool, ()>(needed.iter().all(|&one| some.iter().any(|other| other == one)))
            });
            assert_eq!(found, Ok(needed.iter().map(|&one| one.to_owned()).collect()));
            assert!(runs < 100, "{runs}");
        }
    }

    #[test]
    fn kinds_that_do_not_matter_go_at_once() {
        let mut all = of(3);
        all.extend((0..400).map(|number| format!("switch:{number}")));
        let mut runs = 0;
        let found = smallest(&all, |some| {
            runs += 1;
            Ok::<bool, ()>(some.contains(&"cut:1".to_owned()))
        });
        assert_eq!((found, runs < 12), (Ok(vec!["cut:1".to_owned()]), true), "{runs}");
    }

    #[test]
    fn a_run_that_fails_without_faults_needs_none() {
        assert_eq!(smallest(&of(10), |_| Ok::<bool, ()>(true)), Ok(Vec::new()));
    }

    #[test]
    fn what_needs_everything_keeps_it() {
        assert_eq!(smallest(&of(9), |some| Ok::<bool, ()>(some.len() == 9)), Ok(of(9)));
    }
}

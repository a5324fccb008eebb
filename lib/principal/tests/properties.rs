//! Patterns, lists and the cache, compared with trivial models.

use std::collections::BTreeSet;
use std::fmt::Write;

use principal::{Acl, DecisionCache, Pattern, Principal, Right, Rights, Rule, Verb};
use proptest::prelude::*;

/// A pattern as its meaning.
#[derive(Clone, Debug)]
enum Part {
    Literal(char),
    Joint,
    NameRun,
    AnyRun,
    Invoked,
    Group(Vec<Vec<Part>>),
    Maybe(Box<Part>),
}

fn written(alternatives: &[Vec<Part>]) -> String {
    let sequences: Vec<String> = alternatives
        .iter()
        .map(|sequence| {
            let mut text = String::new();
            for part in sequence {
                match part {
                    Part::Literal(character) => text.push(*character),
                    Part::Joint => text.push_str(" + "),
                    Part::NameRun => text.push('*'),
                    Part::AnyRun => text.push_str("**"),
                    Part::Invoked => text.push_str(".."),
                    Part::Group(inner) => write!(text, "({})", written(inner)).unwrap(),
                    Part::Maybe(inner) => write!(text, "{}?", written(&[vec![(**inner).clone()]])).unwrap(),
                }
            }
            text
        })
        .collect();
    sequences.join("|")
}

/// Possible ends of a part that begins at one of these positions.
fn ends(part: &Part, text: &[u8], starts: &BTreeSet<usize>) -> BTreeSet<usize> {
    let run = |accepts: &dyn Fn(u8) -> bool| {
        let mut found = BTreeSet::new();
        for &start in starts {
            found.insert(start);
            for (offset, &byte) in text[start..].iter().enumerate() {
                if !accepts(byte) {
                    break;
                }
                found.insert(start + offset + 1);
            }
        }
        found
    };
    let literal = |wanted: &[u8]| {
        starts.iter().filter(|&&start| text[start..].starts_with(wanted)).map(|start| start + wanted.len()).collect()
    };
    match part {
        Part::Literal(character) => literal(&[*character as u8]),
        Part::Joint => literal(b" + "),
        Part::NameRun => run(&|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
        Part::AnyRun => run(&|_| true),
        Part::Invoked => {
            let long = ends(&Part::Joint, text, &run(&|_| true));
            starts.union(&long).copied().collect()
        }
        Part::Group(alternatives) => any(alternatives, text, starts),
        Part::Maybe(inner) => starts.union(&ends(inner, text, starts)).copied().collect(),
    }
}

fn any(alternatives: &[Vec<Part>], text: &[u8], starts: &BTreeSet<usize>) -> BTreeSet<usize> {
    let one = |sequence: &Vec<Part>| sequence.iter().fold(starts.clone(), |from, part| ends(part, text, &from));
    alternatives.iter().flat_map(one).collect()
}

fn simply_matches(pattern: &[Vec<Part>], text: &str) -> bool {
    !text.is_empty() && any(pattern, text.as_bytes(), &BTreeSet::from([0])).contains(&text.len())
}

fn plain() -> impl Strategy<Value = Part> {
    prop_oneof![
        6 => prop::sample::select(vec!['a', 'b', '.', '@', '-', '1']).prop_map(Part::Literal),
        2 => Just(Part::Joint),
    ]
}

/// Whether two adjacent parts would parse differently.
fn runs_together(left: &Part, right: &Part) -> bool {
    let is_dot = |part: &Part| matches!(part, Part::Literal('.'));
    let is_star = |part: &Part| matches!(part, Part::NameRun | Part::AnyRun);
    is_dot(left) && is_dot(right)
        || is_dot(left) && matches!(right, Part::Maybe(inner) if is_dot(inner))
        || matches!(left, Part::Invoked) && (is_dot(right) || matches!(right, Part::Maybe(inner) if is_dot(inner)))
        || is_star(left) && is_star(right)
}

fn sequence(part: impl Strategy<Value = Part>) -> impl Strategy<Value = Vec<Part>> {
    (prop::bool::weighted(0.3), prop::collection::vec(part, 1..6)).prop_map(|(invoked, parts)| {
        let mut all = if invoked { vec![Part::Invoked] } else { Vec::new() };
        for part in parts {
            if !all.last().is_some_and(|last| runs_together(last, &part)) {
                all.push(part);
            }
        }
        if all.len() == usize::from(invoked) {
            all.push(Part::Literal('a'));
        }
        all
    })
}

fn pattern() -> impl Strategy<Value = Vec<Vec<Part>>> {
    let leaf = prop_oneof![6 => plain(), 1 => Just(Part::NameRun), 1 => Just(Part::AnyRun)];
    let part = leaf.prop_recursive(3, 24, 4, |inner| {
        let group = prop::collection::vec(sequence(inner), 1..3).prop_map(Part::Group).boxed();
        let single = prop::sample::select(vec!['a', 'b', '.']).prop_map(Part::Literal);
        prop_oneof![
            2 => plain(),
            1 => group.clone(),
            1 => prop_oneof![group, single].prop_map(|part| Part::Maybe(Box::new(part))),
        ]
    });
    prop::collection::vec(sequence(part), 1..3)
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec!["a", "b", ".", "@", "-", "1", " + ", "ab", "a.b", " ", "+"]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// A text that the pattern matches, for suitable choices.
fn sample(alternatives: &[Vec<Part>], choices: &mut impl Iterator<Item = usize>) -> String {
    let choose = |count: usize, choices: &mut dyn Iterator<Item = usize>| choices.next().unwrap_or(0) % count;
    let sequence = &alternatives[choose(alternatives.len(), choices)];
    let mut text = String::new();
    for part in sequence {
        match part {
            Part::Literal(character) => text.push(*character),
            Part::Joint => text.push_str(" + "),
            Part::NameRun => text.push_str(["", "a", "b-1"][choose(3, choices)]),
            Part::AnyRun => text.push_str(["", "a", " + b@"][choose(3, choices)]),
            Part::Invoked => text.push_str(["", "a.b + ", "a.b@a + b.b + "][choose(3, choices)]),
            Part::Group(inner) => text += &sample(inner, choices),
            Part::Maybe(inner) if choose(2, choices) == 1 => text += &sample(&[vec![(**inner).clone()]], choices),
            Part::Maybe(_) => {}
        }
    }
    text
}

fn principal() -> impl Strategy<Value = String> {
    let role = prop::sample::select(vec!["", "@alice", "@bob"]);
    let link =
        (prop::sample::select(vec!["cat", "shell", "login"]), prop::sample::select(vec!["ours", "theirs"]), role);
    let link = link.prop_map(|(name, publisher, role)| format!("{name}.{publisher}{role}"));
    prop::collection::vec(link, 1..8).prop_map(|links| links.join(" + "))
}

const WHO: [&str; 8] = [
    "**",
    "..cat.ours",
    "..*.theirs",
    "shell.ours",
    "login.*@alice + **",
    "..(cat|shell).ours",
    "*.ours + **",
    "login.ours@(alice|bob)( + *.ours)?",
];

fn acl() -> impl Strategy<Value = String> {
    let rights = prop::collection::vec(prop::sample::select(Right::ALL.to_vec()), 1..4)
        .prop_map(|rights| Rights::of(&rights).to_string());
    let rights = prop_oneof![4 => rights, 1 => Just(String::from("all"))];
    let entry = (prop::sample::select(vec!["allow", "deny"]), rights, prop::sample::select(WHO.to_vec()))
        .prop_map(|(verb, rights, who)| format!("{verb} {rights} {who}\n"));
    prop::collection::vec(entry, 0..8).prop_map(|entries| entries.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_pattern_matches_what_it_means(
        pattern in pattern(),
        texts in prop::collection::vec(text(), 4),
        choices in prop::collection::vec(0usize..6, 40),
    ) {
        let read = Pattern::parse(&written(&pattern));
        prop_assume!(read.is_ok() || written(&pattern).len() > 100);
        let Ok(read) = read else { return Ok(()) };
        let meant = sample(&pattern, &mut choices.into_iter());
        prop_assert!(meant.is_empty() || read.matches(&meant), "`{}` does not match `{}`", read, meant);
        for text in texts {
            prop_assert_eq!(read.matches(&text), simply_matches(&pattern, &text), "`{}` `{}`", read, text);
        }
    }

    #[test]
    fn a_pattern_that_is_written_by_the_rules_is_read(pattern in pattern()) {
        let text = written(&pattern);
        let read = Pattern::parse(&text);
        prop_assert!(read.is_ok() || text.len() > 100, "`{}`: {:?}", text, read);
    }

    #[test]
    fn no_text_is_more_than_refused(text in ".{0,80}", odd in "[ab.+ *?|()@]{0,40}", of in ".{0,40}") {
        for text in [text, odd] {
            match Pattern::parse(&text) {
                Ok(pattern) => {
                    pattern.matches(&of);
                    prop_assert_eq!(Pattern::parse(pattern.text()), Ok(pattern));
                }
                Err(error) => prop_assert!(error.at().is_none_or(|at| at <= text.len()), "{:?} of {:?}", error, text),
            }
            let _ = Principal::parse(&text);
            let _ = Acl::parse(&text);
        }
    }

    #[test]
    fn the_first_entry_that_speaks_of_it_decides(text in acl(), who in principal()) {
        let acl = Acl::parse(&text).unwrap();
        prop_assert_eq!(acl.text(), text);
        for &right in Right::ALL {
            let mut expected = (false, Rule::NoEntry);
            for (index, entry) in acl.entries().iter().enumerate() {
                if entry.rights.has(right) && entry.who.matches(&who) {
                    expected = (entry.verb == Verb::Allow, Rule::Entry(index + 1));
                    break;
                }
            }
            let decided = acl.decide(&who, right);
            prop_assert_eq!((decided.allowed, decided.rule), expected);
            prop_assert_eq!(acl.rights_of(&who).has(right), decided.allowed);
        }
    }

    #[test]
    fn principals_are_taken_apart_and_matched_by_themselves(who in principal()) {
        let taken = Principal::parse(&who).unwrap();
        let joined: Vec<String> = taken.links().map(|link| {
            let role = link.role.map(|role| format!("@{role}")).unwrap_or_default();
            format!("{}.{}{role}", link.name, link.publisher)
        }).collect();
        prop_assert_eq!(joined.join(" + "), who.as_str());
        prop_assert!(Pattern::exactly(&who).unwrap().matches(&who));
        let program = taken.program().unwrap();
        if program.role.is_none() {
            let pattern = format!("..{}.{}", program.name, program.publisher);
            prop_assert!(Pattern::parse(&pattern).unwrap().matches(&who));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_cache_says_what_the_list_says(
        lists in prop::collection::vec(acl(), 1..4),
        questions in prop::collection::vec((0usize..4, principal(), prop::bool::weighted(0.1)), 1..60),
    ) {
        let lists: Vec<Acl> = lists.iter().map(|text| Acl::parse(text).unwrap()).collect();
        let mut cache = DecisionCache::new();
        for (list, who, forget) in questions {
            let list = list % lists.len();
            if forget {
                cache.forget(list as u64);
            }
            let said = cache.get(list as u64, &who, || lists[list].rights_of(&who));
            prop_assert_eq!(said, lists[list].rights_of(&who));
        }
    }
}

//! Compares random systems of hostile programs with the closure that bounds their reach.
//!
//! `model.rs` specifies how endpoints move, step by step, following the kernel and the namespace; `plan.rs` generates
//! random systems; `run.rs` runs them and shrinks counterexamples. Whatever a run reaches must be in the closure of
//! `src/reach`.

mod model;
mod plan;
mod run;

use install::{Map, Rule};

use crate::model::{Class, Seen};
use crate::plan::{DIRECTORY, End, PROVIDER, Plan, Programme, ROOT_PATH, Random, Slot};

/// Searches for a system that reaches something excluded by the closure under these rules.
fn search(seeds: std::ops::Range<u64>, rules: &[Rule]) -> Option<(u64, Plan)> {
    seeds.into_iter().find_map(|seed| {
        let plan = Plan::random(&mut Random::new(seed));
        run::counterexample(&plan, rules, seed, 1).map(|_| (seed, plan))
    })
}

fn expect_none(seeds: std::ops::Range<u64>) {
    if let Some((seed, plan)) = search(seeds, Rule::ALL) {
        panic!("{}", run::shrunk(&plan, Rule::ALL, seed));
    }
}

fn all_but(left_out: Rule) -> Vec<Rule> {
    Rule::ALL.iter().copied().filter(|rule| *rule != left_out).collect()
}

#[test]
fn no_run_leaves_the_closure() {
    expect_none(0..2_000);
}

#[test]
#[ignore = "takes minutes"]
fn no_run_leaves_the_closure_for_long() {
    expect_none(2_000..102_000);
}

/// Mutation test: a closure without one of the rules is refuted.
#[test]
fn a_closure_without_a_rule_is_found_out() {
    for left_out in [Rule::Create, Rule::Message, Rule::AnyMessage, Rule::Start, Rule::Bind, Rule::Root] {
        assert!(search(0..2_000, &all_but(left_out)).is_some(), "no run needs the rule {left_out:?}");
    }
}

/// Systems for rules that random systems seldom need, with few other ways.
fn expect_needed(rule: Rule, plan: &Plan) {
    let runs = 20_000;
    assert!(run::counterexample(plan, &all_but(rule), 0, runs).is_some(), "no run needs the rule {rule:?}:\n{plan}");
    assert!(run::counterexample(plan, Rule::ALL, 0, runs / 20).is_none(), "the rules leave something out:\n{plan}");
}

/// The namespace, and programs with a folder of it.
fn with_names(mut programs: Vec<Programme>) -> Plan {
    let mut plan = Plan::random_of(&mut Random::new(0), 1, 1);
    plan.paths = 1;
    plan.programs.truncate(1);
    plan.programs.append(&mut programs);
    // It has no messages.
    plan.contracts[2].next.iter_mut().flatten().for_each(|next| *next = None);
    plan.contracts[2].messages[0] = plan::Message { sender: End::Exporter, arguments: Vec::new() };
    plan.contracts[2].next =
        Vec::from([plan.contracts[2].messages.iter().enumerate().map(|(tag, _)| (tag == 0).then_some(0)).collect()]);
    plan
}

fn client(lists: &[usize], rules: &[usize]) -> Programme {
    Programme {
        lists: [&[DIRECTORY], lists].concat(),
        rules: rules.iter().copied().collect(),
        is_instance: true,
        bound: Vec::from([(DIRECTORY, ROOT_PATH)]),
        ..Programme::default()
    }
}

fn server() -> Programme {
    Programme {
        lists: Vec::from([PROVIDER, 2]),
        is_instance: true,
        provides: Vec::from([(1, 2)]),
        ..Programme::default()
    }
}

/// Two further contracts: over the second, the provider of path 2 sends its client such an end.
fn with_gifts(programs: Vec<Programme>, contract: usize, end: End) -> Plan {
    let mut plan = with_names(programs);
    plan.paths = 2;
    let sent = plan::Argument { contract: Some(contract), end, state: Some(0) };
    let messages = Vec::from([plan::Message { sender: End::Exporter, arguments: Vec::from([sent]) }]);
    plan.contracts.push(plan::Contract { messages, next: Vec::from([Vec::from([Some(0)])]) });
    plan
}

/// Serves path 2, and gives away an end.
fn giver(contract: usize) -> Programme {
    Programme { lists: Vec::from([PROVIDER, contract, 3]), provides: Vec::from([(2, 3)]), ..server() }
}

/// Gets a channel to the giver, and creates none by which others could send it anything.
fn taker(rules: &[usize]) -> Programme {
    let mut taker = client(&[3], rules);
    taker.is_mute = true;
    taker.bound.push((3, 2));
    taker
}

#[test]
fn a_provider_gives_one_client_what_another_sent() {
    let programs = Vec::from([server(), client(&[2], &[1]), giver(2), taker(&[1])]);
    expect_needed(Rule::Return, &with_gifts(programs, 2, End::Exporter));
}

#[test]
fn a_provider_lets_another_take_its_place() {
    let provider = Programme { starts: true, is_mute: true, ..server() };
    let slots = Vec::from([Slot { contract: PROVIDER, end: End::Exporter, state: 0 }]);
    let successor = Programme { lists: Vec::from([PROVIDER]), slots, ..Programme::default() };
    expect_needed(Rule::Succeed, &with_names(Vec::from([provider, successor, client(&[2], &[1])])));
}

#[test]
fn a_request_that_is_underway_is_that_of_who_has_the_folder() {
    // The parent requests registration of the giver; its child, which may register, has the folder when the namespace
    // identifies the requester.
    let parent = Programme { starts: true, ..taker(&[]) };
    let slots = Vec::from([Slot { contract: DIRECTORY, end: End::Importer, state: 2 }]);
    let child = Programme { lists: Vec::from([DIRECTORY]), slots, registers: Some(1), ..Programme::default() };
    let programs = Vec::from([parent, child, giver(PROVIDER), client(&[2], &[1])]);
    expect_needed(Rule::Underway, &with_gifts(programs, PROVIDER, End::Importer));
}

/// Rate of false positives: the closure includes reach that no run attains. Runs do not attain everything possible, so
/// this is an upper bound.
#[test]
fn what_no_run_comes_to_is_counted() {
    let (mut said, mut happened) = (0, 0);
    for seed in 0..40 {
        let plan = Plan::random_of(&mut Random::new(seed), 1, 2);
        let installed = plan.installed();
        let map = Map::of(&installed);
        let mut seen = Seen::default();
        for number in 0..300 {
            run::run(&plan, &mut Random::new(seed * 7919 + number), 300, &mut seen);
        }
        let (channels, came) = counted(&plan, &map, &seen);
        (said, happened) = (said + channels, happened + came);
    }
    println!("may come about: {said} channels; came about in runs: {happened}, {} %", happened * 100 / said);
    assert!(happened * 100 >= said * 50, "the closure says too much: {said} channels, and {happened} came about");
}

/// Returns the number of channels in the closure, and of those that runs attained.
fn counted(plan: &Plan, map: &Map<'_>, seen: &Seen) -> (usize, usize) {
    let classes: Vec<Class> = (1..plan.programs.len()).flat_map(|one| [(one, true), (one, false)]).collect();
    let (mut said, mut happened) = (0, 0);
    for (importer, exporter) in classes.iter().flat_map(|one| classes.iter().map(move |other| (*one, *other))) {
        for contract in 0..plan.contracts.len() {
            if run::has(map, importer, &plan::contract_name(contract), exporter) {
                said += 1;
                happened += usize::from(seen.channels.contains(&(importer, contract, exporter)));
            }
        }
    }
    (said, happened)
}

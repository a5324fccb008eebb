//! Properties of arbitrary texts and contracts.

use std::collections::{HashSet, VecDeque};

use abi::{Automaton, Direction, NO_TRANSITION};
use lang::SourceFile;
use lang::syntax::{parse, print};
use proptest::prelude::*;

/// Tokens for nearly valid texts.
const PIECES: &[&str] = &[
    "contract",
    "enum",
    "flags",
    "struct",
    "message",
    "state",
    "in",
    "out",
    "one",
    "or",
    "lent",
    "returned",
    "ExHeap",
    "Imp",
    "Exp",
    "any",
    "A",
    "B",
    "READY",
    "uint",
    "byte",
    "x",
    "7",
    "99999999999",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    ";",
    ":",
    ".",
    "*",
    "!",
    "?",
    "->",
    "→",
    "/// text\n",
    "// text\n",
    "/*",
    "*/",
    "$",
    "\n",
];

fn soup() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(PIECES), 0..80).prop_map(|pieces| pieces.join(" "))
}

/// A syntactically valid text.
fn readable() -> impl Strategy<Value = String> {
    let name = || proptest::sample::select(&["A", "Bee", "READY", "STATE_2", "value", "x"][..]);
    let value = (name(), proptest::option::of(1u32..9), any::<bool>()).prop_map(|(name, length, qualified)| {
        let length = length.map_or(String::new(), |length| format!("[{length}]"));
        format!("{}{name}{length}", if qualified { "Other." } else { "" })
    });
    let passing = proptest::sample::select(&["[] in", "[] lent", "* in", "[] returned", "* lent"][..]);
    let argument = prop_oneof![
        (value.clone(), name()).prop_map(|(value, name)| format!("{value} {name}")),
        (value.clone(), passing, name()).prop_map(|(value, how, name)| format!("{value}{how} ExHeap {name}")),
        (name(), name(), name()).prop_map(|(c, state, name)| format!("{c}.Imp:{state} {name}")),
        name().prop_map(|name| format!("any.Exp {name}")),
    ];
    let arguments = proptest::collection::vec(argument, 0..4).prop_map(|arguments| arguments.join(", "));
    let message = (proptest::sample::select(&["in ", "out ", ""][..]), name(), arguments)
        .prop_map(|(direction, name, arguments)| format!("/// About it.\n{direction}message {name}({arguments});"));
    let step = (name(), proptest::sample::select(&["!", "?", ""][..])).prop_map(|(name, sign)| format!("{name}{sign}"));
    let sequence = step.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 1..4).prop_map(|steps| steps.join(" -> ")),
            proptest::collection::vec(inner, 1..4).prop_map(|choices| format!("({})", choices.join(" or "))),
        ]
    });
    let branches = proptest::collection::vec(sequence, 0..4).prop_map(|branches| branches.join(";\n"));
    let state = (name(), branches).prop_map(|(name, branches)| format!("state {name}: one {{ {branches} }}"));
    let fields = proptest::collection::vec((value, name()), 0..4)
        .prop_map(|fields| fields.iter().map(|(value, name)| format!("{value} {name}; ")).collect::<String>());
    let declared = prop_oneof![
        (name(), fields).prop_map(|(name, fields)| format!("struct {name} {{ {fields} }}")),
        name().prop_map(|name| format!("enum {name} {{ A, /// Second.\n Bee }}")),
        (name(), name()).prop_map(|(name, number)| format!("flags {name} : {number} {{ A, /// Second.\n Bee }}")),
        name().prop_map(|name| format!("flags {name} {{ A }}")),
    ];
    let member = prop_oneof![message, state, declared.clone()];
    let contract = (name(), proptest::collection::vec(member, 0..6))
        .prop_map(|(name, members)| format!("contract {name} {{\n{}\n}}", members.join("\n")));
    proptest::collection::vec(prop_oneof![contract, declared], 0..4).prop_map(|items| items.join("\n"))
}

/// A contract whose states each have one sending side; often, but not always, valid.
fn sensible() -> impl Strategy<Value = String> {
    let branch = (proptest::collection::vec(any::<bool>(), 1..5), any::<prop::sample::Index>());
    let state = (any::<bool>(), proptest::collection::vec(branch, 0..4));
    proptest::collection::vec(state, 1..4).prop_map(|states| {
        let mut text = String::from("contract Random {\n");
        for tag in 0..4 {
            text.push_str(&format!("in message In{tag}(); out message Out{tag}();\n"));
        }
        for (number, (side, branches)) in states.iter().enumerate() {
            text.push_str(&format!("state S{number}: one {{\n"));
            for (tag, (more, target)) in branches.iter().enumerate() {
                let word = |inward: bool| if inward { format!("In{tag}?") } else { format!("Out{tag}!") };
                let steps: Vec<String> = std::iter::once(side).chain(more).map(|&inward| word(inward)).collect();
                text.push_str(&format!("  {} -> S{};\n", steps.join(" -> "), target.index(states.len())));
            }
            text.push_str("}\n");
        }
        text + "}\n"
    })
}

/// Maximum queued messages for importer and exporter, by exhaustive search.
fn max_waiting(automaton: &Automaton) -> (usize, usize) {
    type Situation = (u16, u16, VecDeque<usize>, VecDeque<usize>);
    let mut seen: HashSet<Situation> = HashSet::new();
    let mut pending = vec![(0, 0, VecDeque::new(), VecDeque::new())];
    let (mut importer_most, mut exporter_most) = (0, 0);
    while let Some(situation) = pending.pop() {
        if !seen.insert(situation.clone()) {
            continue;
        }
        let (importer, exporter, to_importer, to_exporter) = situation;
        importer_most = importer_most.max(to_importer.len());
        exporter_most = exporter_most.max(to_exporter.len());
        let moves = |state: u16, direction: Direction| {
            let row = automaton.states[state as usize].next.iter().enumerate();
            row.filter(move |(tag, next)| **next != NO_TRANSITION && automaton.messages[*tag].direction == direction)
        };
        for (tag, &next) in moves(importer, Direction::ToExporter) {
            let mut queue = to_exporter.clone();
            queue.push_back(tag);
            pending.push((next, exporter, to_importer.clone(), queue));
        }
        for (tag, &next) in moves(exporter, Direction::ToImporter) {
            let mut queue = to_importer.clone();
            queue.push_back(tag);
            pending.push((importer, next, queue, to_exporter.clone()));
        }
        let mut queue = to_importer.clone();
        if let Some(tag) = queue.pop_front() {
            let next = automaton.states[importer as usize].next[tag];
            assert_ne!(next, NO_TRANSITION, "the importer is sent what it does not expect");
            pending.push((next, exporter, queue, to_exporter.clone()));
        }
        let mut queue = to_exporter;
        if let Some(tag) = queue.pop_front() {
            let next = automaton.states[exporter as usize].next[tag];
            assert_ne!(next, NO_TRANSITION, "the exporter is sent what it does not expect");
            pending.push((importer, next, to_importer, queue));
        }
    }
    (importer_most, exporter_most)
}

proptest! {
    #[test]
    fn any_bytes_are_read_and_rendered(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let compiled = lang::compile(&[SourceFile::new("bytes", String::from_utf8_lossy(&bytes))]);
        compiled.render(lang::Colours::Always);
    }

    #[test]
    fn anything_near_a_contract_is_read_and_rendered(text in soup()) {
        let compiled = lang::compile(&[SourceFile::new("soup", text)]);
        compiled.render(lang::Colours::Never);
    }

    #[test]
    fn what_is_printed_reads_the_same(text in readable()) {
        let mut diagnostics = Vec::new();
        let first = print(&parse(0, &text, &mut diagnostics));
        prop_assert!(diagnostics.is_empty(), "{diagnostics:?}\n{text}");
        let second = print(&parse(0, &first, &mut diagnostics));
        prop_assert!(diagnostics.is_empty(), "{diagnostics:?}\n{first}");
        prop_assert_eq!(first, second);
        lang::compile(&[SourceFile::new("readable", text)]).render(lang::Colours::Never);
    }

    #[test]
    fn queues_never_hold_more_than_their_bound_and_come_up_to_it(text in sensible()) {
        let compiled = lang::compile(&[SourceFile::new("random", text)]);
        let Some(unit) = compiled.unit else { return Ok(()) };
        let automaton = &unit.contracts[0].automaton;
        let bounds = (automaton.queue_to_importer as usize, automaton.queue_to_exporter as usize);
        prop_assert_eq!(max_waiting(automaton), bounds);
        prop_assert_eq!(&Automaton::decode(&automaton.encode()).expect("it is canonical"), automaton);
        lang::emit_rust(&unit);
        lang::emit_svg(&unit.contracts[0]);
        lang::emit_promela(&unit.contracts[0]);
        contract_diagram::render(automaton, |_| None);
    }
}

//! Runs of the model, at random or exhaustive, compared with the closure.

use std::fmt::Write;

use install::{Installed, Map, Rule, Started};

use crate::model::{BIND, Class, EndRef, Limits, Model, REGISTER, Seen, Step};
use crate::plan::{DIRECTORY, End, Plan, Random, contract_name, path_text, program_name};

/// More than a run creates.
const AMPLE: Limits = Limits { processes: 99, channels: 99 };

/// Returns a random possible step of a process: mostly one that moves an endpoint.
fn pick(plan: &Plan, model: &Model, random: &mut Random) -> Option<Step> {
    if random.in_100(50) {
        let steps = model.of_namespace();
        if let Some(step) = random.of(&steps) {
            return Some(step.clone());
        }
    }
    // The namespace is process 0.
    let process = 1 + random.below(model.processes.len() - 1);
    let owned: Vec<EndRef> = model.owned(process).collect();
    match random.below(10) {
        0 | 1 if owned.len() < 5 || random.in_100(10) => {
            let contract = *random.of(&plan.programs[model.processes[process].0].lists)?;
            Some(Step::Create { process, contract })
        }
        2 => start(plan, model, random, process, &owned),
        3..=5 => {
            let waiting: Vec<EndRef> = owned.into_iter().filter(|&end| !model.half(end).queue.is_empty()).collect();
            Some(Step::Receive { process, at: *random.of(&waiting)? })
        }
        _ => send(plan, model, random, process, &owned),
    }
}

fn start(plan: &Plan, model: &Model, random: &mut Random, process: usize, owned: &[EndRef]) -> Option<Step> {
    let program = 1 + random.below(plan.programs.len() - 1);
    let mut given: Vec<Option<EndRef>> = Vec::new();
    for slot in &plan.programs[program].slots {
        let fits = |end: &&EndRef| {
            end.1 == slot.end
                && model.channels[end.0].contract == slot.contract
                && model.half(**end).state == slot.state
                && !given.contains(&Some(**end))
        };
        let fitting: Vec<EndRef> = owned.iter().filter(fits).copied().collect();
        given.push(random.of(&fitting).copied());
    }
    Some(Step::Start { process, program, given })
}

fn send(plan: &Plan, model: &Model, random: &mut Random, process: usize, owned: &[EndRef]) -> Option<Step> {
    let mut could: Vec<(EndRef, usize)> = Vec::new();
    for &over in owned {
        let contract = &plan.contracts[model.channels[over.0].contract];
        let state = model.half(over).state;
        if contract.sender(state) != Some(over.1) {
            continue;
        }
        let tags = (0..contract.messages.len()).filter(|&tag| contract.next(state, tag).is_some());
        let carries = |tag: &usize| !contract.messages[*tag].arguments.is_empty();
        let tags: Vec<usize> = tags.collect();
        // Messages with endpoints are three times as likely.
        could.extend(tags.iter().chain(tags.iter().filter(|tag| carries(tag))).map(|&tag| (over, tag)));
        could.extend(tags.iter().filter(|tag| carries(tag)).map(|&tag| (over, tag)));
    }
    let &(over, tag) = random.of(&could)?;
    let message = &plan.contracts[model.channels[over.0].contract].messages[tag];
    let mut ends: Vec<EndRef> = Vec::new();
    for argument in &message.arguments {
        let fits = |end: &&EndRef| end.0 != over.0 && !ends.contains(*end) && model.is_movable(plan, **end, argument);
        let fitting: Vec<EndRef> = owned.iter().filter(fits).copied().collect();
        ends.push(*random.of(&fitting)?);
    }
    let rules: Vec<usize> = plan.programs[model.processes[process].0].rules.iter().copied().collect();
    let path = match random.of(&rules) {
        Some(&path) if random.in_100(70) => path,
        _ => random.below(plan.paths + 1),
    };
    Some(Step::Send { process, over, tag, ends, path })
}

/// Runs `tries` attempts of a step.
pub fn run(plan: &Plan, random: &mut Random, tries: usize, seen: &mut Seen) -> Vec<Step> {
    let limits = Limits { processes: random.below(7), channels: 30 };
    let mut model = Model::boot(plan, limits, seen);
    let mut taken = Vec::new();
    if model.processes.len() < 2 {
        return taken;
    }
    for _ in 0..tries {
        if let Some(step) = pick(plan, &model, random).filter(|step| model.allows(plan, step)) {
            model.take(plan, &step, seen);
            taken.push(step);
        }
    }
    taken
}

/// Returns an observation that the closure lacks.
pub fn missing(plan: &Plan, installed: &Installed, map: &Map<'_>, seen: &Seen) -> Option<String> {
    for &(importer, contract, exporter) in &seen.channels {
        let name = contract_name(contract);
        if !has(map, importer, &name, exporter) {
            let (importer, exporter) = (class_text(importer), class_text(exporter));
            return Some(format!("a channel of {name} from {importer} to {exporter}"));
        }
    }
    for &(program, path) in &seen.reached {
        let serves = plan.programs[program].provides.iter().any(|(provided, _)| *provided == path);
        if serves || program == plan.namespace() || serves_registered(plan, program, path) {
            continue;
        }
        let index = installed.programs.iter().position(|one| one.manifest.name == program_name(program))?;
        if map.way(index, |served| served == path_text(path)).is_none() {
            return Some(format!("{} at {}", program_name(program), path_text(path)));
        }
    }
    None
}

/// Returns whether the program may be the provider of a path that is registered at run time.
fn serves_registered(plan: &Plan, program: usize, path: usize) -> bool {
    plan.programs.iter().enumerate().any(|(number, registrar)| {
        registrar.registers == Some(path) && (number == program || registrar.names.contains(&program))
    })
}

pub fn has(map: &Map<'_>, importer: Class, contract: &str, exporter: Class) -> bool {
    let (one, other) = (program_name(importer.0), program_name(exporter.0));
    map.has_channel((&one, started(importer)), contract, (&other, started(exporter)))
}

fn started((_, is_boot): Class) -> Started {
    if is_boot { Started::ByRoot } else { Started::ByOthers }
}

pub fn class_text((program, is_boot): Class) -> String {
    format!("{}{}", program_name(program), if is_boot { " (boot)" } else { "" })
}

/// Returns a counterexample to the closure under these rules, in runs of this system from this seed on.
pub fn counterexample(plan: &Plan, rules: &[Rule], seed: u64, runs: u64) -> Option<(String, Vec<Step>)> {
    let installed = plan.installed();
    let map = Map::by(&installed, rules);
    for number in 0..runs {
        let mut seen = Seen::default();
        let mut random = Random::new(seed.wrapping_add(number.wrapping_mul(0x1_0000_0001)));
        let steps = run(plan, &mut random, 250, &mut seen);
        if let Some(what) = missing(plan, &installed, &map, &seen) {
            return Some((what, steps));
        }
    }
    None
}

/// Returns the smallest system found by removing elements one by one, with its run.
pub fn shrunk(plan: &Plan, rules: &[Rule], seed: u64) -> String {
    let mut small = plan.clone();
    let mut found = counterexample(&small, rules, seed, 1);
    loop {
        let mut smaller = small.smaller().into_iter();
        let next = smaller.find_map(|plan| Some((counterexample(&plan, rules, seed, 200)?, plan)));
        let Some((counter, plan)) = next else { break };
        (small, found) = (plan, Some(counter));
    }
    let (what, steps) = found.unwrap_or_default();
    let mut text = format!("{small}seed {seed}: the closure leaves out {what}\n");
    let mut model = Model::boot(&small, AMPLE, &mut Seen::default());
    for step in useful(&small, rules, &steps) {
        writeln!(text, "    {}", step_text(&small, &model, &step)).expect("a text");
        model.take(&small, &step, &mut Seen::default());
    }
    text
}

/// Returns the steps that the counterexample needs.
fn useful(plan: &Plan, rules: &[Rule], steps: &[Step]) -> Vec<Step> {
    let installed = plan.installed();
    let map = Map::by(&installed, rules);
    let fails = |steps: &[Step]| {
        let mut seen = Seen::default();
        let mut model = Model::boot(plan, AMPLE, &mut seen);
        for step in steps {
            if !is_sound(&model, step) || !model.allows(plan, step) {
                return false;
            }
            model.take(plan, step, &mut seen);
        }
        missing(plan, &installed, &map, &seen).is_some()
    };
    let mut kept = steps.to_vec();
    let mut at = kept.len();
    while at > 0 {
        at -= 1;
        let fewer = without(plan, &kept, at);
        if fails(&fewer) {
            kept = fewer;
        }
    }
    kept
}

/// Returns the steps without one of them. Objects created by it are gone, and later ones are renumbered.
fn without(plan: &Plan, steps: &[Step], at: usize) -> Vec<Step> {
    let boot = Model::boot(plan, AMPLE, &mut Seen::default());
    let before = |is_it: fn(&Step) -> bool| steps[..at].iter().filter(|step| is_it(step)).count();
    let channel = boot.channels.len() + before(|step| matches!(step, Step::Create { .. }));
    let process = boot.processes.len() + before(|step| matches!(step, Step::Start { .. }));
    let (mut fewer, removed) = (steps.to_vec(), &steps[at]);
    fewer.remove(at);
    let lower = |number: &mut usize, gone: usize| match (*number).cmp(&gone) {
        std::cmp::Ordering::Greater => *number -= 1,
        std::cmp::Ordering::Equal => *number = usize::MAX,
        std::cmp::Ordering::Less => {}
    };
    for step in &mut fewer[at..] {
        if matches!(removed, Step::Create { .. }) {
            ends_mut(step).into_iter().for_each(|end| lower(&mut end.0, channel));
        }
        if let (Step::Start { .. }, Some(actor)) = (removed, process_mut(step)) {
            lower(actor, process);
        }
    }
    fewer
}

fn process_mut(step: &mut Step) -> Option<&mut usize> {
    match step {
        Step::Create { process, .. }
        | Step::Send { process, .. }
        | Step::Receive { process, .. }
        | Step::Start { process, .. } => Some(process),
        Step::Serve { .. } | Step::Answer { .. } => None,
    }
}

fn ends_mut(step: &mut Step) -> Vec<&mut EndRef> {
    match step {
        Step::Create { .. } => Vec::new(),
        Step::Send { over, ends, .. } => ends.iter_mut().chain([over]).collect(),
        Step::Receive { at, .. } | Step::Serve { at } | Step::Answer { at } => Vec::from([at]),
        Step::Start { given, .. } => given.iter_mut().flatten().collect(),
    }
}

/// Returns whether the processes and channels of the step exist.
fn is_sound(model: &Model, step: &Step) -> bool {
    let (process, ends): (usize, Vec<EndRef>) = match step {
        Step::Create { process, .. } => (*process, Vec::new()),
        Step::Send { process, over, ends, .. } => (*process, ends.iter().copied().chain([*over]).collect()),
        Step::Receive { process, at } => (*process, Vec::from([*at])),
        Step::Start { process, given, .. } => (*process, given.iter().flatten().copied().collect()),
        Step::Serve { at } | Step::Answer { at } => (0, Vec::from([*at])),
    };
    process < model.processes.len() && ends.iter().all(|end| end.0 < model.channels.len())
}

fn step_text(plan: &Plan, model: &Model, step: &Step) -> String {
    let who = |process: usize| format!("{} #{process}", class_text(model.processes[process]));
    let end = |&(channel, end): &EndRef| {
        let contract = model.channels[channel].contract;
        format!("channel {channel} (contract {contract}, {})", if end == End::Importer { "imp" } else { "exp" })
    };
    match step {
        Step::Create { process, contract } => format!("{} creates a channel of contract {contract}", who(*process)),
        Step::Send { process, over, tag, ends, path } => {
            let ends: Vec<String> = ends.iter().map(end).collect();
            let is_named = model.channels[over.0].contract == DIRECTORY && (*tag == BIND || *tag == REGISTER);
            let path = if is_named { format!(" for {}", path_text(*path)) } else { String::new() };
            format!("{} sends M{tag}{path} over {} with [{}]", who(*process), end(over), ends.join(", "))
        }
        Step::Receive { process, at } => format!("{} receives at {}", who(*process), end(at)),
        Step::Start { process, program, given } => {
            let given: Vec<String> = given.iter().flatten().map(end).collect();
            debug_assert!(*program < plan.programs.len());
            format!("{} starts {} with [{}]", who(*process), program_name(*program), given.join(", "))
        }
        Step::Serve { at } => format!("the namespace serves {}", end(at)),
        Step::Answer { at } => format!("the namespace hears a provider at {}", end(at)),
    }
}

//! Plans of small systems: random ones, smaller ones, and their manifests.
//!
//! Program 0 is the namespace; the root has no number. Path 0 is `/`, the others are `/s1`, `/s2`, ...

use std::collections::BTreeSet;
use std::fmt;

use abi::{Automaton, Direction, EndpointShape, MessageShape, NO_TRANSITION, StateRow, name_tag};
use install::{Installed, Program};
use manifest_model::{
    Bind, Category, Code, ContractSide, ContractUse, EndpointSlot, Instance, Manifest, Parameter, ParameterKind,
    ParameterSetting, Provide, PublicKey, Setting, Side, Source, SystemManifest, Trust, Value,
};
use package_check::sha256;

pub const DIRECTORY: usize = 0;
pub const PROVIDER: usize = 1;
pub const ROOT_PATH: usize = 0;

/// An end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    Importer = 0,
    Exporter = 1,
}

impl End {
    pub fn other(self) -> End {
        match self {
            End::Importer => End::Exporter,
            End::Exporter => End::Importer,
        }
    }

    fn side(self) -> Side {
        match self {
            End::Importer => Side::Importer,
            End::Exporter => Side::Exporter,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// `None`: any.
    pub contract: Option<usize>,
    pub end: End,
    pub state: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub sender: End,
    pub arguments: Vec<Argument>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    pub messages: Vec<Message>,
    /// By state and message.
    pub next: Vec<Vec<Option<usize>>>,
}

impl Contract {
    pub fn next(&self, state: usize, tag: usize) -> Option<usize> {
        self.next[state][tag]
    }

    pub fn sender(&self, state: usize) -> Option<End> {
        let tag = self.next[state].iter().position(Option::is_some)?;
        Some(self.messages[tag].sender)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub contract: usize,
    pub end: End,
    pub state: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Programme {
    pub lists: Vec<usize>,
    /// Contracts that the manifest exports.
    pub exports: Vec<usize>,
    pub slots: Vec<Slot>,
    pub starts: bool,
    /// Whether its quota has no channels.
    pub is_mute: bool,
    /// Paths that rules let it bind.
    pub rules: BTreeSet<usize>,
    pub is_instance: bool,
    /// Paths and contracts that it serves at boot.
    pub provides: Vec<(usize, usize)>,
    /// Paths that the root binds for it at boot.
    pub bound: Vec<(usize, usize)>,
    /// The path that it may register, and the programs in its parameters.
    pub registers: Option<usize>,
    pub names: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub contracts: Vec<Contract>,
    pub programs: Vec<Programme>,
    pub paths: usize,
}

/// Random numbers from a seed: xorshift.
pub struct Random(pub u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..4).for_each(|_| _ = random.below(2));
        random
    }

    pub fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % count.max(1) as u64) as usize
    }

    pub fn in_100(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub fn of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        if all.is_empty() { None } else { all.get(self.below(all.len())) }
    }
}

fn argument(contract: Option<usize>, end: End, state: Option<usize>) -> Argument {
    Argument { contract, end, state }
}

fn message(sender: End, arguments: &[Argument]) -> Message {
    Message { sender, arguments: arguments.to_vec() }
}

impl Plan {
    /// A random system.
    pub fn random(random: &mut Random) -> Plan {
        let (own, programs) = (1 + random.below(4), 2 + random.below(4));
        Plan::random_of(random, own, programs)
    }

    /// A random system with `own` contracts of its own and `programs` programs.
    pub fn random_of(random: &mut Random, own: usize, programs: usize) -> Plan {
        let contracts = own + 2;
        let paths = 1 + random.below(3);
        let mut plan =
            Plan { contracts: Vec::from([directory(random, contracts), provider()]), programs: Vec::new(), paths };
        for _ in 0..own {
            let contract = random_contract(random, contracts);
            plan.contracts.push(contract);
        }
        plan.programs.push(Programme {
            is_instance: true,
            lists: Vec::from([DIRECTORY, PROVIDER]),
            ..Programme::default()
        });
        for _ in 0..programs {
            let program = plan.random_program(random, programs + 1);
            plan.programs.push(program);
        }
        if random.in_100(70) {
            plan.serve(random);
        }
        // A path has one provider.
        let mut taken = BTreeSet::new();
        for program in &mut plan.programs {
            program.provides.retain(|(path, _)| taken.insert(*path));
        }
        plan
    }

    fn random_program(&self, random: &mut Random, programs: usize) -> Programme {
        let mut program =
            Programme { starts: random.in_100(45), is_instance: random.in_100(60), ..Programme::default() };
        for contract in 0..self.contracts.len() {
            let chance = match contract {
                DIRECTORY => 70,
                _ => 50,
            };
            if random.in_100(chance) {
                program.lists.push(contract);
                program.exports.extend(random.in_100(50).then_some(contract));
            }
        }
        for _ in 0..random.below(4) {
            let Some(&contract) = random.of(&program.lists) else { break };
            let end = if random.in_100(50) { End::Importer } else { End::Exporter };
            let state = random.below(self.contracts[contract].next.len());
            let state = if random.in_100(50) { 0 } else { state };
            program.slots.push(Slot { contract, end, state });
        }
        program.is_mute = random.in_100(15);
        program.rules = (0..=self.paths).filter(|_| random.in_100(45)).collect();
        if program.is_instance {
            let served: Vec<usize> = program.lists.iter().copied().filter(|&contract| contract != PROVIDER).collect();
            let serves = program.lists.contains(&PROVIDER) && random.in_100(75);
            if let Some(&contract) = random.of(&served).filter(|_| serves) {
                program.provides.push((1 + random.below(self.paths), contract));
            }
            if program.lists.contains(&DIRECTORY) && random.in_100(75) {
                program.bound.push((DIRECTORY, ROOT_PATH));
            }
            let is_bound = random.in_100(30);
            if let Some(&contract) = random.of(&program.lists).filter(|_| is_bound) {
                program.bound.push((contract, 1 + random.below(self.paths)));
            }
        }
        if random.in_100(15) {
            program.registers = Some(1 + random.below(self.paths));
            program.names = (1..programs).filter(|_| random.in_100(20)).collect();
        }
        program
    }

    /// Ensures that at least one path is served and may be bound.
    fn serve(&mut self, random: &mut Random) {
        let count = self.programs.len() - 1;
        let (server, client, child) = (1 + random.below(count), 1 + random.below(count), 1 + random.below(count));
        let list = |program: &mut Programme, contract: usize| {
            if !program.lists.contains(&contract) {
                program.lists.push(contract);
            }
        };
        let contract = if random.in_100(20) { DIRECTORY } else { 2 + random.below(self.contracts.len() - 2) };
        let program = &mut self.programs[server];
        program.is_instance = true;
        list(program, PROVIDER);
        list(program, contract);
        program.provides = Vec::from([(1, contract)]);
        program.starts |= random.in_100(30);
        let program = &mut self.programs[client];
        program.is_instance = true;
        list(program, DIRECTORY);
        program.rules.extend(random.in_100(80).then_some(1));
        program.bound = Vec::from([(DIRECTORY, ROOT_PATH)]);
        program.starts |= random.in_100(30);
        let program = &mut self.programs[child];
        list(program, DIRECTORY);
        let is_provided = random.in_100(30) && program.lists.contains(&PROVIDER);
        let (contract, end) = if is_provided { (PROVIDER, End::Exporter) } else { (DIRECTORY, End::Importer) };
        program.slots.truncate(2);
        program.slots.push(Slot { contract, end, state: random.below(2) });
    }

    pub fn namespace(&self) -> usize {
        0
    }

    /// Returns the contracts served at a path, or exported by those that register it, and those given in their
    /// messages.
    pub fn served(&self, path: usize) -> BTreeSet<usize> {
        let provides = self.programs.iter().flat_map(|program| &program.provides);
        let provided = provides.filter(|(provided, _)| *provided == path).map(|(_, contract)| *contract);
        let registering = self.programs.iter().enumerate().filter(|(_, program)| program.registers == Some(path));
        let registered = registering.flat_map(|(number, program)| program.names.iter().copied().chain([number]));
        let exported = registered.flat_map(|program| self.programs[program].exports.iter().copied());
        provided.chain(exported.filter(|&contract| contract != PROVIDER)).flat_map(|one| self.family(one)).collect()
    }

    /// Returns a contract and those whose importing ends its messages give importers, transitively.
    pub fn family(&self, contract: usize) -> BTreeSet<usize> {
        // Contracts that no program lists have no channels.
        let is_listed = |contract: usize| {
            contract <= PROVIDER || self.programs.iter().any(|program| program.lists.contains(&contract))
        };
        let mut family = BTreeSet::from([contract]);
        let mut open = Vec::from([contract]);
        while let Some(next) = open.pop() {
            let sent = self.contracts[next].messages.iter().filter(|message| message.sender == End::Exporter);
            for argument in sent.flat_map(|message| &message.arguments).filter(|argument| argument.end == End::Importer)
            {
                let given = argument.contract.map_or(0..self.contracts.len(), |contract| contract..contract + 1);
                open.extend(given.filter(|&contract| is_listed(contract) && family.insert(contract)));
            }
        }
        family
    }

    /// Returns plans with one element less.
    pub fn smaller(&self) -> Vec<Plan> {
        let mut out = Vec::new();
        let mut without = |change: &dyn Fn(&mut Plan)| {
            let mut plan = self.clone();
            change(&mut plan);
            if plan != *self {
                out.push(plan);
            }
        };
        for at in 1..self.programs.len() {
            // An empty program is kept, so that numbers are stable.
            without(&|plan| plan.programs[at] = Programme::default());
            without(&|plan| plan.programs[at].starts = false);
            without(&|plan| plan.programs[at].registers = None);
            without(&|plan| plan.programs[at].names.clear());
            for number in 0..self.programs[at].slots.len() {
                without(&|plan| _ = plan.programs[at].slots.remove(number));
            }
            for number in 0..self.programs[at].lists.len() {
                without(&|plan| plan.unlist(at, number));
            }
            for path in &self.programs[at].rules {
                without(&|plan| _ = plan.programs[at].rules.remove(path));
            }
            without(&|plan| plan.programs[at].provides.clear());
            without(&|plan| plan.programs[at].bound.clear());
        }
        for contract in PROVIDER + 1..self.contracts.len() {
            for number in 0..self.contracts[contract].messages.len() {
                without(&|plan| {
                    plan.contracts[contract].next.iter_mut().for_each(|row| row[number] = None);
                });
                without(&|plan| _ = plan.contracts[contract].messages[number].arguments.pop());
            }
        }
        out
    }

    fn unlist(&mut self, program: usize, number: usize) {
        let program = &mut self.programs[program];
        let contract = program.lists.remove(number);
        program.exports.retain(|exported| *exported != contract);
        program.slots.retain(|slot| slot.contract != contract);
        program.provides.retain(|(_, provided)| *provided != contract && contract != PROVIDER);
        program.bound.retain(|(bound, _)| *bound != contract);
    }
}

/// Messages that the model's namespace supports: Bind, Bound, NotBound, Register, Done, and an unknown one.
fn directory(random: &mut Random, contracts: usize) -> Contract {
    let any = argument(None, End::Exporter, None);
    let other =
        argument(Some(random.below(contracts)), if random.in_100(50) { End::Importer } else { End::Exporter }, Some(0));
    let messages = Vec::from([
        message(End::Importer, &[any]),
        message(End::Exporter, &[]),
        message(End::Exporter, &[any]),
        message(End::Importer, &[argument(Some(PROVIDER), End::Importer, Some(0))]),
        message(End::Exporter, &[]),
        message(End::Importer, &[other]),
    ]);
    let next = Vec::from([
        Vec::from([Some(1), None, None, Some(2), None, Some(2)]),
        Vec::from([None, Some(0), Some(0), None, None, None]),
        Vec::from([None, None, None, None, Some(0), None]),
    ]);
    Contract { messages, next }
}

/// Connect, Ack, Nack.
fn provider() -> Contract {
    let any = argument(None, End::Exporter, None);
    let messages =
        Vec::from([message(End::Importer, &[any]), message(End::Exporter, &[]), message(End::Exporter, &[any])]);
    let next = Vec::from([Vec::from([Some(1), None, None]), Vec::from([None, Some(0), Some(0)])]);
    Contract { messages, next }
}

fn random_contract(random: &mut Random, contracts: usize) -> Contract {
    let end = |random: &mut Random| if random.in_100(50) { End::Importer } else { End::Exporter };
    let states = 1 + random.below(3);
    let mut messages = Vec::new();
    for _ in 0..1 + random.below(4) {
        let count = [0, 1, 1, 1, 2][random.below(5)];
        let arguments = (0..count).map(|_| {
            let contract = (!random.in_100(20)).then(|| random.below(contracts));
            let state = contract.map(|_| if random.in_100(70) { 0 } else { random.below(3) });
            argument(contract, end(random), state)
        });
        let arguments = arguments.collect();
        messages.push(Message { sender: end(random), arguments });
    }
    let mut next = Vec::new();
    for _ in 0..states {
        let sender = end(random);
        let row = messages
            .iter()
            .map(|message: &Message| (message.sender == sender && random.in_100(75)).then(|| random.below(states)));
        next.push(row.collect());
    }
    Contract { messages, next }
}

pub fn contract_name(contract: usize) -> String {
    match contract {
        DIRECTORY => "Directory".into(),
        PROVIDER => "ServiceProvider".into(),
        other => format!("C{other}"),
    }
}

pub fn program_name(program: usize) -> String {
    if program == 0 { "names".into() } else { format!("p{program}") }
}

pub fn path_text(path: usize) -> String {
    if path == ROOT_PATH { "/".into() } else { format!("/s{path}") }
}

impl Plan {
    /// Builds the system of the plan.
    pub fn installed(&self) -> Installed {
        let mut root = self.manifest(
            &Programme { lists: Vec::from([DIRECTORY, PROVIDER]), starts: true, ..Programme::default() },
            "root",
        );
        root.quota.children = 64;
        let manifests: Vec<Manifest> = self
            .programs
            .iter()
            .enumerate()
            .map(|(number, program)| self.manifest(program, &program_name(number)))
            .chain([root])
            .collect();
        let instances = (0..self.programs.len()).filter(|&number| self.programs[number].is_instance);
        let mut instances: Vec<Instance> = instances.map(|number| Instance::of(&manifests[number])).collect();
        let lines = self.programs.iter().enumerate().filter_map(|(number, program)| {
            Some(Value::Text(format!("..{}.test {}", program_name(number), path_text(program.registers?))))
        });
        let lines: Vec<Value> = lines.collect();
        instances[0].parameters.push(ParameterSetting { index: 0, setting: Setting::Values(lines) });
        let binds = self.programs.iter().enumerate().flat_map(|(number, program)| {
            let who = format!("..{}.test", program_name(number));
            program.rules.iter().map(move |&path| Bind { who: who.clone(), path: path_text(path) })
        });
        let system = SystemManifest {
            name: "random".into(),
            root: "root".into(),
            primary: None,
            instances,
            installed: manifests.iter().map(|manifest| manifest.name.clone()).collect(),
            binds: binds.collect(),
            denies: Vec::new(),
            domains: Vec::new(),
            trust: Trust::in_key(PublicKey([1; 32])),
        };
        let programs = manifests.into_iter().map(|manifest| Program { manifest, key: PublicKey([1; 32]) }).collect();
        Installed { system, programs }
    }

    fn manifest(&self, program: &Programme, name: &str) -> Manifest {
        let code = Code::Image { digest: [0; 32] };
        let mut manifest = Manifest::plain(name, "test", Category::Service, code);
        for &contract in &program.lists {
            let automaton = self.automaton(contract).encode();
            // Movement must not depend on the declared side, which the kernel does not enforce.
            let is_exported = program.exports.contains(&contract);
            let side = if is_exported { ContractSide::Both } else { ContractSide::Import };
            let name = contract_name(contract);
            let fingerprint = sha256(&automaton);
            manifest.contracts.push(ContractUse { name, side, fingerprint, automaton, waits_for: None });
        }
        let place =
            |contract: usize| program.lists.iter().position(|&listed| listed == contract).expect("listed") as u16;
        let slot = |name: String, slot: &Slot, source: Source| EndpointSlot {
            name,
            contract: place(slot.contract),
            side: slot.end.side(),
            state: slot.state as u16,
            state_name: slot.state.to_string(),
            source,
            optional: true,
        };
        for (number, one) in program.slots.iter().enumerate() {
            // Not `parent`, which the root would supply if it has the contract.
            manifest.endpoints.push(slot(format!("e{number}"), one, Source::StandardInput));
        }
        for &(contract, path) in &program.bound {
            let one = Slot { contract, end: End::Importer, state: UNGIVABLE };
            manifest.endpoints.push(slot(format!("bound-{path}"), &one, Source::Path(path_text(path))));
        }
        for &(path, contract) in &program.provides {
            let provided = Slot { contract: PROVIDER, end: End::Exporter, state: UNGIVABLE };
            if program.lists.contains(&PROVIDER) {
                manifest.endpoints.push(slot(format!("clients-{path}"), &provided, Source::Parent));
            }
            manifest.provides.push(Provide { path: path_text(path), contract: place(contract) });
        }
        if name == "names" {
            let parameter = Parameter { repeated: true, ..Parameter::plain("register", ParameterKind::Text) };
            manifest.parameters.push(parameter);
            manifest.provides.push(Provide { path: "/".into(), contract: place(DIRECTORY) });
        }
        if !program.names.is_empty() {
            let named: Vec<String> = program.names.iter().map(|&named| program_name(named)).collect();
            let default = Some(Value::Text(named.join(" ")));
            manifest.parameters.push(Parameter { default, ..Parameter::plain("programs", ParameterKind::Text) });
        }
        manifest.quota.children = u32::from(program.starts);
        manifest.quota.channels = if program.is_mute { 0 } else { 64 };
        manifest
    }

    fn automaton(&self, number: usize) -> Automaton {
        let contract = &self.contracts[number];
        let messages = contract.messages.iter().enumerate().map(|(tag, message)| MessageShape {
            name: format!("M{tag}"),
            direction: match message.sender {
                End::Importer => Direction::ToExporter,
                End::Exporter => Direction::ToImporter,
            },
            scalar_words: 0,
            ranges: Vec::new(),
            blocks: Vec::new(),
            endpoints: message.arguments.iter().map(shape).collect(),
        });
        let states = contract.next.iter().enumerate().map(|(number, row)| StateRow {
            name: format!("S{number}"),
            next: row.iter().map(|next| next.map_or(NO_TRANSITION, |next| next as u16)).collect(),
        });
        Automaton {
            name: contract_name(number),
            queue_to_importer: 4,
            queue_to_exporter: 4,
            messages: messages.collect(),
            states: states.collect(),
        }
    }
}

/// No state: only the root gives such an endpoint.
const UNGIVABLE: usize = 999;

fn shape(argument: &Argument) -> EndpointShape {
    EndpointShape {
        contract: argument.contract.map_or(0, |contract| name_tag(&contract_name(contract))),
        importer: argument.end == End::Importer,
        state: argument.state.map_or(NO_TRANSITION, |state| state as u16),
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, contract) in self.contracts.iter().enumerate() {
            writeln!(f, "contract {}", contract_name(number))?;
            for (state, row) in contract.next.iter().enumerate() {
                for (tag, next) in row.iter().enumerate() {
                    let Some(next) = next else { continue };
                    let message = &contract.messages[tag];
                    let arguments: Vec<String> = message.arguments.iter().map(argument_text).collect();
                    let sign = if message.sender == End::Exporter { "!" } else { "?" };
                    writeln!(f, "    S{state}: M{tag}({}){sign} -> S{next}", arguments.join(", "))?;
                }
            }
        }
        for (number, program) in self.programs.iter().enumerate() {
            if *program == Programme::default() {
                continue;
            }
            let names = |all: &[usize]| all.iter().map(|&one| contract_name(one)).collect::<Vec<_>>().join(" ");
            write!(f, "program {}: lists {}", program_name(number), names(&program.lists))?;
            write!(f, "; exports {}", names(&program.exports))?;
            for slot in &program.slots {
                write!(f, "; slot {}.{:?}:S{}", contract_name(slot.contract), slot.end, slot.state)?;
            }
            for (word, is) in [
                ("starts others", program.starts),
                ("starts at boot", program.is_instance),
                ("creates no channels", program.is_mute),
            ] {
                write!(f, "{}", if is { format!("; {word}") } else { String::new() })?;
            }
            for path in &program.rules {
                write!(f, "; may bind {}", path_text(*path))?;
            }
            for (path, contract) in &program.provides {
                write!(f, "; serves {} as {}", path_text(*path), contract_name(*contract))?;
            }
            for (contract, path) in &program.bound {
                write!(f, "; is given {} as {}", path_text(*path), contract_name(*contract))?;
            }
            if let Some(path) = program.registers {
                let named: Vec<String> = program.names.iter().map(|&named| program_name(named)).collect();
                write!(f, "; registers {} for itself, {}", path_text(path), named.join(", "))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn argument_text(argument: &Argument) -> String {
    let contract = argument.contract.map_or("any".into(), contract_name);
    let state = argument.state.map_or(String::new(), |state| format!(":S{state}"));
    format!("{contract}.{:?}{state}", argument.end)
}

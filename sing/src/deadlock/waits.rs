//! Which program waits for whose answers.
//!
//! A [`Task`] is what a program does for one exported contract that says what its answers wait for, or all the rest of a
//! program, which waits for whatever it imports. A wait leads from a task to the task that answers. Where the waits have
//! an order, so that each is for a task of a lower layer, nobody waits in a circle.

use std::collections::{BTreeMap, BTreeSet};

use abi::Automaton;
use install::{Conversation, Conversations, Installed};
use manifest_model::{Awaited, ContractSide, EndpointSlot, Manifest, Source, Whose};

/// The contract of folders, over which the namespace is asked.
const DIRECTORY: &str = "Directory";
/// The contract over which the namespace hands clients to providers.
const PROVIDER: &str = "ServiceProvider";

/// A part of a program that answers and waits by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Task {
    /// The program.
    pub program: String,
    /// The exported contract whose answers it gives; `None`: everything else.
    pub contract: Option<String>,
}

impl Task {
    /// Name for people and for models.
    pub fn name(&self) -> String {
        match &self.contract {
            Some(contract) => format!("{} ({contract})", self.program),
            None => self.program.clone(),
        }
    }
}

/// A wait of one task for another's answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    /// Who waits, an index of [`Waits::tasks`].
    pub from: usize,
    /// Who answers.
    pub to: usize,
    /// The contract.
    pub contract: String,
    /// Whether there can be several such channels.
    pub many: bool,
    /// Whether its endpoints come in messages only.
    pub in_messages: bool,
    /// Whether the namespace asks for it, on a channel that is there already.
    pub is_forwarded: bool,
}

/// A contract on which one program is a client of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Talk {
    /// The program with the importing end.
    pub importer: String,
    /// The program with the exporting end.
    pub exporter: String,
    /// The contract.
    pub contract: String,
    /// Whether there can be several such channels.
    pub many: bool,
}

/// The waits of a system.
#[derive(Debug, Default)]
pub struct Waits {
    /// All tasks.
    pub tasks: Vec<Task>,
    /// All waits, without duplicates.
    pub waits: Vec<Wait>,
    /// Contracts of the system.
    pub automata: BTreeMap<String, Automaton>,
    /// All conversations, with or without waits, and the task that answers.
    pub conversations: Vec<(Talk, usize)>,
    /// What programs say of their waits.
    pub claims: Vec<Claim>,
}

/// What a program says of its answers on a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The program.
    pub program: String,
    /// The exported contract.
    pub contract: String,
    /// The awaited contracts, and who answers.
    pub awaited: Vec<(String, Whose)>,
}

impl Claim {
    fn awaits(&self, contract: &str, exporter: &str, namespace: Option<&str>) -> bool {
        let is_meant = |whose: Whose| match whose {
            Whose::Anyone => true,
            Whose::Others => self.program != exporter,
            Whose::Namespace => namespace == Some(exporter),
        };
        self.awaited.iter().any(|(awaited, whose)| awaited == contract && is_meant(*whose))
    }
}

impl Waits {
    /// Finds the waits of a system.
    pub fn of(installed: &Installed) -> Waits {
        let mut waits = Waits { automata: automata(installed), ..Waits::default() };
        for program in &installed.programs {
            waits.add_program(&program.manifest);
        }
        let Conversations { all, namespace } = install::conversations(installed);
        // A namespace whose answers wait for providers alone asks for each path its provider; whoever binds waits for
        // that one.
        let forwards = namespace.filter(|namespace| {
            waits.claims.iter().any(|claim| claim.program == *namespace && claim.awaits(PROVIDER, "", None))
        });
        let mut found = BTreeSet::new();
        let talks = all.iter().filter_map(|conversation| {
            let Conversation { importer, exporter, contract, many, .. } = *conversation;
            let talk = Talk { importer: importer.into(), exporter: exporter.into(), contract: contract.into(), many };
            Some((talk, waits.answering(exporter, contract)?))
        });
        let talks = talks.collect();
        for conversation in &all {
            let ends = (installed.manifest(conversation.importer), installed.manifest(conversation.exporter));
            let (Some(importer), Some(exporter)) = ends else { continue };
            let has_calls = waits.automata.get(conversation.contract).is_some_and(lang::has_calls);
            if !has_calls || is_pipeline(importer, exporter, conversation.contract) {
                continue;
            }
            // A process that waits for its child waits downwards in a tree, also where both are of one program.
            if conversation.of_children && conversation.importer == conversation.exporter {
                continue;
            }
            if forwards == Some(conversation.importer) && conversation.contract == PROVIDER {
                continue;
            }
            waits.add(&mut found, conversation, namespace, forwards);
        }
        waits.waits = found.into_iter().collect();
        waits.conversations = talks;
        waits
    }

    fn add(
        &self,
        found: &mut BTreeSet<Wait>,
        conversation: &Conversation<'_>,
        namespace: Option<&str>,
        forwards: Option<&str>,
    ) {
        for from in self.waiting(conversation, namespace) {
            let mut wait = |program: &str, contract: &str, is_forwarded: bool| {
                let to = self.answering(program, contract);
                found.extend(to.map(|to| {
                    let Conversation { many, in_messages, .. } = *conversation;
                    Wait { from, to, contract: contract.into(), many, in_messages, is_forwarded }
                }));
            };
            wait(conversation.exporter, conversation.contract, false);
            if let Some(namespace) = forwards.filter(|_| conversation.by_name) {
                wait(namespace, DIRECTORY, false);
                wait(conversation.exporter, PROVIDER, true);
            }
        }
    }

    fn add_program(&mut self, manifest: &Manifest) {
        let task = |contract| Task { program: manifest.name.clone(), contract };
        self.tasks.push(task(None));
        let name = |awaited: &Awaited| {
            Some((manifest.contracts.get(usize::from(awaited.contract))?.name.clone(), awaited.whose))
        };
        for used in manifest.contracts.iter().filter(|used| used.side != ContractSide::Import) {
            let Some(awaited) = &used.waits_for else { continue };
            self.tasks.push(task(Some(used.name.clone())));
            let awaited = awaited.iter().filter_map(name).collect();
            self.claims.push(Claim { program: manifest.name.clone(), contract: used.name.clone(), awaited });
        }
    }

    /// Returns the task that answers for a program on a contract.
    fn answering(&self, program: &str, contract: &str) -> Option<usize> {
        let of_program = |task: &Task| task.program == program;
        let own = |task: &Task| of_program(task) && task.contract.as_deref() == Some(contract);
        self.tasks.iter().position(own).or_else(|| self.tasks.iter().position(of_program))
    }

    /// Returns the tasks of the importing program that wait for answers on a channel.
    fn waiting(&self, conversation: &Conversation<'_>, namespace: Option<&str>) -> Vec<usize> {
        let waits = |task: &Task| match &task.contract {
            None => true,
            Some(answered) => self.claims.iter().any(|claim| {
                claim.program == task.program
                    && claim.contract == *answered
                    && claim.awaits(conversation.contract, conversation.exporter, namespace)
            }),
        };
        let tasks = self.tasks.iter().enumerate().filter(|(_, task)| task.program == conversation.importer);
        tasks.filter(|(_, task)| waits(task)).map(|(index, _)| index).collect()
    }

    /// Returns the groups of tasks in which each waits for each, directly or through others; the lowest first, so that
    /// tasks of a group wait only for the same or earlier groups.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut search = Search::of(self);
        for task in 0..self.tasks.len() {
            search.visit(task);
        }
        search.groups
    }

    /// Returns whether a group is a circle.
    pub fn is_circle(&self, group: &[usize]) -> bool {
        group.len() > 1 || self.waits.iter().any(|wait| group == [wait.from] && wait.from == wait.to)
    }

    /// Returns the waits inside a group.
    pub fn within(&self, group: &[usize]) -> Vec<&Wait> {
        self.waits.iter().filter(|wait| group.contains(&wait.from) && group.contains(&wait.to)).collect()
    }

    /// Returns for each task without a circle below it: the layer, 0 for those that wait for nobody.
    pub fn layers(&self) -> Vec<usize> {
        let mut layers = vec![0; self.tasks.len()];
        for group in self.groups() {
            let below = self.waits.iter().filter(|wait| group.contains(&wait.from) && !group.contains(&wait.to));
            let layer = below.map(|wait| layers[wait.to] + 1).max().unwrap_or(0);
            group.into_iter().for_each(|task| layers[task] = layer);
        }
        layers
    }
}

/// Tarjan's search for strongly connected components.
struct Search<'w> {
    waits: &'w Waits,
    number: Vec<Option<usize>>,
    low: Vec<usize>,
    open: Vec<usize>,
    next: usize,
    groups: Vec<Vec<usize>>,
}

impl<'w> Search<'w> {
    fn of(waits: &'w Waits) -> Search<'w> {
        let count = waits.tasks.len();
        Search { waits, number: vec![None; count], low: vec![0; count], open: Vec::new(), next: 0, groups: Vec::new() }
    }

    /// Recursion is as deep as a chain of waits is long: at most the number of tasks.
    fn visit(&mut self, task: usize) {
        if self.number[task].is_some() {
            return;
        }
        self.number[task] = Some(self.next);
        self.low[task] = self.next;
        self.next += 1;
        self.open.push(task);
        for wait in self.waits.waits.iter().filter(|wait| wait.from == task) {
            match self.number[wait.to] {
                None => {
                    self.visit(wait.to);
                    self.low[task] = self.low[task].min(self.low[wait.to]);
                }
                Some(number) if self.open.contains(&wait.to) => self.low[task] = self.low[task].min(number),
                Some(_) => {}
            }
        }
        if Some(self.low[task]) == self.number[task] {
            let start = self.open.iter().position(|&open| open == task).unwrap_or(0);
            let mut group = self.open.split_off(start);
            group.sort_unstable();
            self.groups.push(group);
        }
    }
}

fn automata(installed: &Installed) -> BTreeMap<String, Automaton> {
    let used = installed.programs.iter().flat_map(|program| &program.manifest.contracts);
    used.filter_map(|used| Some((used.name.clone(), Automaton::decode(&used.automaton).ok()?))).collect()
}

/// Standard output, which flows down a line: into the next program's standard input, or into a parent's output. Whoever
/// starts programs joins them so, never to a circle.
fn is_pipeline(importer: &Manifest, exporter: &Manifest, contract: &str) -> bool {
    let has = |manifest: &Manifest, sources: &[Source]| {
        let is_of = |slot: &&EndpointSlot| {
            manifest.contracts.get(usize::from(slot.contract)).is_some_and(|listed| listed.name == contract)
        };
        manifest.endpoints.iter().filter(is_of).any(|slot| sources.contains(&slot.source))
    };
    has(importer, &[Source::StandardOutput]) && has(exporter, &[Source::StandardInput, Source::StandardOutput])
}

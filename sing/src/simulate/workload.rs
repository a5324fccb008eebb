//! What a seed of a workload runs, and how it is judged.
//!
//! Key type: [`Task`]. Neighbours: a module for each workload (`ext2`, `files`, `installs`, `kernel`, `kills`, `network`), and `simulate`, which
//! runs tasks. Deliberately not here: findings that concern the machine itself.

use std::path::Path;

use package_build::Signer;

use crate::builder::UnsafeTests;

use super::arguments::WorkloadName;
use super::machine::{DiskContent, Report, Run};
use super::network::{self, Errands};
use super::{ext2, files, installs, kernel, kills};

/// Judges a run by what is seen of it.
type Judge = Box<dyn Fn(&Seen<'_>) -> Result<(), String>>;

/// What is seen of a run.
pub struct Seen<'a> {
    /// The machine's own report.
    pub report: &'a Report,
    /// The run.
    pub run: &'a Run,
    /// The same without faults, for a workload that is compared.
    pub without: Option<&'a Run>,
    /// A start afterwards, if there was one.
    pub afterwards: Option<&'a Run>,
}

impl Seen<'_> {
    /// Returns the console of the run without faults.
    fn console_without(&self) -> &str {
        self.without.map_or("", |without| &without.text)
    }
}

/// What a seed of a workload runs.
pub struct Task {
    /// Parameters of the system's first program.
    pub parameters: Vec<(&'static str, String)>,
    /// The disks, in order.
    pub disks: Vec<DiskContent>,
    /// Another machine at the same link.
    pub other: Option<Other>,
    /// Virtual time in seconds after which no fault harms.
    pub calm_after_s: Option<u64>,
    /// Programs that no fault ends, besides those that no workload can do without.
    pub spared: &'static [&'static str],
    /// Parameters of a run without faults, if one is needed to judge it.
    pub compared_with: Option<Vec<(&'static str, String)>>,
    /// Parameters of another start, from what is left on the disks and without faults.
    pub afterwards: Option<Vec<(&'static str, String)>>,
    judge: Judge,
}

/// The other machine at a link.
pub struct Other {
    /// Parameters of its first program.
    pub parameters: Vec<(&'static str, String)>,
    /// Its disks, in order.
    pub disks: Vec<DiskContent>,
    /// As [`Task::spared`], there.
    pub spared: &'static [&'static str],
}

impl Task {
    /// Returns what is wrong with a run.
    pub fn finding(&self, seen: &Seen<'_>) -> Option<String> {
        (self.judge)(seen).err()
    }
}

impl WorkloadName {
    /// Returns the manifest of its system.
    pub fn system(self) -> &'static Path {
        Path::new(match self {
            WorkloadName::Ext2 | WorkloadName::Installs | WorkloadName::Kills => "hosted",
            WorkloadName::Files => "storm",
            WorkloadName::Kernel => "conformance",
            WorkloadName::Network | WorkloadName::Web => "web-link",
        })
    }

    /// Whether its system has programs that are unsafe, for tests of the kernel.
    pub fn unsafe_tests(self) -> UnsafeTests {
        if self == WorkloadName::Kernel { UnsafeTests::Allowed } else { UnsafeTests::Refused }
    }

    /// Returns the faults that its runs have unless others are asked for.
    pub fn faults(self) -> &'static str {
        match self {
            WorkloadName::Ext2 => "harmless,cut/150",
            WorkloadName::Files => "harmless,kill/1200,kill-call/60",
            WorkloadName::Installs => "harmless,cut/150,kill/4000,kill-call/200",
            WorkloadName::Kernel => "harmless,preempt/16,race/8",
            WorkloadName::Kills => "harmless,kill/4000",
            WorkloadName::Network => "harmless,step/1000,link",
            WorkloadName::Web => "harmless,step/1000,link,kill/12000,kill-call/300",
        }
    }

    /// Returns what a seed runs, with packages by this signer.
    pub fn task(self, seed: u64, signer: &Signer) -> Task {
        match self {
            WorkloadName::Ext2 => {
                let story = ext2::Story::new(seed);
                Task {
                    parameters: commands(story.commands()),
                    disks: vec![DiskContent::of(story.disk())],
                    calm_after_s: None,
                    spared: &[],
                    compared_with: None,
                    afterwards: None,
                    other: None,
                    judge: Box::new(move |Seen { report, run, .. }| {
                        story.judge(report, &run.text, run.disks.first().cloned().unwrap_or_default())
                    }),
                }
            }
            WorkloadName::Files => storms(seed),
            WorkloadName::Kernel => Task {
                parameters: kernel::parameters(seed),
                disks: Vec::new(),
                calm_after_s: None,
                spared: &[],
                compared_with: None,
                afterwards: None,
                other: None,
                judge: Box::new(|seen| kernel::judge(seen.report, &seen.run.text)),
            },
            WorkloadName::Installs => changes(seed, signer),
            WorkloadName::Network => errands(Errands::of_network(seed)),
            WorkloadName::Web => errands(Errands::of_web(seed)),
            WorkloadName::Kills => Task {
                parameters: commands(kills::commands()),
                disks: vec![DiskContent::of(ext2::Story::new(0).disk())],
                calm_after_s: Some(kills::CALM_AFTER_S),
                spared: kills::SPARED,
                compared_with: Some(commands(kills::commands())),
                afterwards: None,
                other: None,
                judge: Box::new(|seen| kills::judge(seen.report, &seen.run.text, seen.console_without())),
            },
        }
    }
}

/// Returns what a seed of `files` runs.
fn storms(seed: u64) -> Task {
    let clients = files::Clients::new(seed);
    Task {
        parameters: commands(clients.commands()),
        disks: vec![DiskContent::of(ext2::Story::new(0).disk())],
        calm_after_s: Some(files::CALM_AFTER_S),
        spared: files::SPARED,
        compared_with: Some(commands(clients.commands_without())),
        afterwards: None,
        other: None,
        judge: Box::new(|seen| {
            files::judge(&seen.run.text)?;
            kills::judge(seen.report, &seen.run.text, seen.console_without())
        }),
    }
}

/// Returns what these errands of `network` or `web` run: the server is the other machine.
fn errands(errands: Errands) -> Task {
    let other = Other {
        parameters: commands(Errands::server_commands()),
        disks: vec![DiskContent::of(errands.server_disk())],
        spared: network::SPARED_BY_SERVER,
    };
    Task {
        parameters: commands(errands.client_commands()),
        disks: vec![DiskContent::of(ext2::make_disk(&ext2::Files::new()))],
        other: Some(other),
        calm_after_s: Some(network::CALM_AFTER_S),
        spared: network::SPARED_BY_CLIENT,
        compared_with: None,
        afterwards: None,
        judge: Box::new(move |Seen { report, run, .. }| errands.judge(report, &run.text, &run.disks)),
    }
}

/// Returns what a seed of `installs` runs.
fn changes(seed: u64, signer: &Signer) -> Task {
    let story = installs::Story::new(seed, signer);
    Task {
        parameters: commands(story.commands()),
        disks: vec![DiskContent::of(story.disk())],
        other: None,
        calm_after_s: None,
        spared: installs::SPARED,
        compared_with: None,
        afterwards: Some(commands(installs::Story::commands_afterwards())),
        judge: Box::new(move |Seen { report, run, afterwards, .. }| {
            story.judge(report, &run.text, afterwards.map_or("", |afterwards| &afterwards.text))
        }),
    }
}

fn commands(text: String) -> Vec<(&'static str, String)> {
    vec![("commands", text)]
}

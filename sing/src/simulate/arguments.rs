//! The command line of `sing simulate`.

use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

/// `sing simulate`.
#[derive(Debug, Clone, Args)]
pub struct SimulateArguments {
    /// System manifest: a file, or the name of one in systems/ [default: hosted]
    #[arg(long, value_name = "FILE")]
    pub system: Option<PathBuf>,
    /// Seed of a single run [default: 0]
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    pub seed: Option<u64>,
    /// Seeds of many runs, from A to below B
    #[arg(long, value_name = "A..B")]
    pub seeds: Option<Seeds>,
    /// Kinds of faults: preempt, step, switch, delay, read-error, write-error, cut, kill, kill-call, memory, clock,
    /// kernel-step, race; KIND/N for one of N opportunities; or all, none, harmless [default: the workload's, or harmless]
    #[arg(long, value_name = "KIND,...")]
    pub faults: Option<String>,
    /// These faults and no others, KIND:NUMBER of the opportunity, as a failure names them
    #[arg(long, value_name = "FAULT,...", value_delimiter = ',', conflicts_with_all = ["faults", "seeds"])]
    pub exactly: Vec<String>,
    /// What runs, and what must hold at its end
    #[arg(long, value_enum, conflicts_with_all = ["commands", "disk", "system"])]
    pub workload: Option<WorkloadName>,
    /// Run shell commands and shut down
    #[arg(short = 'c', value_name = "COMMANDS")]
    pub commands: Option<String>,
    /// Content of a disk; the file is not changed
    #[arg(long, value_name = "FILE")]
    pub disk: Vec<PathBuf>,
    /// Number of processors [default: of each seed another, 1 to 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8))]
    pub processors: Option<u8>,
    /// Programs that are not ended by faults [default: service-manager, directory, shell]
    #[arg(long, value_name = "PROGRAM")]
    pub spare: Vec<String>,
    /// End with the first seed that fails
    #[arg(long)]
    pub first: bool,
    /// Run every seed twice and compare the hashes
    #[arg(long)]
    pub twice: bool,
    /// Report failing seeds as they are, without looking for fewer faults
    #[arg(long)]
    pub no_shrink: bool,
    /// File for the text of the trace of a single run
    #[arg(long, value_name = "FILE", conflicts_with = "seeds")]
    pub trace: Option<PathBuf>,
    /// Print one JSON object per seed
    #[arg(long)]
    pub json: bool,
}

/// Workloads with invariants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum WorkloadName {
    /// Files of an ext2 disk under power cuts: what was synced is there
    Ext2,
    /// Clients of a file system that is ended at any ABI call: lent blocks come home, files are as they must be
    Files,
    /// Packages installed, upgraded and removed under power cuts and kills: a change is whole or not at all
    Installs,
    /// Channels, loans, principals and processes, by the conformance suite: no test fails, and nothing leaks
    Kernel,
    /// Addresses and files over a bad link between two machines: every fetch succeeds
    Network,
    /// The same, and programs end at any ABI call: what a fetch has got is right, and it succeeds in the end
    Web,
    /// Programs ended at any ABI call: every service comes back, and nothing leaks
    Kills,
}

impl WorkloadName {
    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            WorkloadName::Ext2 => "ext2",
            WorkloadName::Files => "files",
            WorkloadName::Installs => "installs",
            WorkloadName::Kernel => "kernel",
            WorkloadName::Kills => "kills",
            WorkloadName::Network => "network",
            WorkloadName::Web => "web",
        }
    }
}

/// A range of seeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds(pub Range<u64>);

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seeds, String> {
        let wanted = || "write the first seed and the one after the last: 0..100".to_owned();
        let (first, end) = text.split_once("..").ok_or_else(wanted)?;
        let range = first.parse().map_err(|_| wanted())?..end.parse().map_err(|_| wanted())?;
        if range.is_empty() { Err(wanted()) } else { Ok(Seeds(range)) }
    }
}

impl SimulateArguments {
    /// Returns the seeds to run.
    pub fn seeds(&self) -> Range<u64> {
        let one = self.seed.unwrap_or(0);
        self.seeds.clone().map_or(one..one.saturating_add(1), |Seeds(range)| range)
    }

    /// Returns the number of processors of a seed.
    pub fn processors(&self, seed: u64) -> u8 {
        // Few are as interesting as many, and one is the only one whose interleavings are those of programs alone.
        const OF_SEEDS: [u8; 8] = [1, 2, 1, 4, 2, 8, 3, 1];
        self.processors.unwrap_or(OF_SEEDS[(seed % OF_SEEDS.len() as u64) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_seeds_is_not_empty() {
        assert_eq!("3..5".parse(), Ok(Seeds(3..5)));
        for bad in ["3", "5..5", "5..3", "a..b", "..", "-1..3"] {
            assert!(bad.parse::<Seeds>().is_err(), "{bad}");
        }
    }
}

//! The command line. The documentation of its fields is the text of `--help`.

use std::path::PathBuf;

use clap::Parser;
use hal_simulated::{Fault, Kinds, MAX_PROCESSORS, Plan};

/// Runs a Singularity system on a machine whose every run is decided by a seed.
#[derive(Debug, Parser)]
#[command(name = "singularity-simulated", version)]
pub struct Arguments {
    /// The system image, made by `cargo sing build`
    #[arg(long, value_name = "FILE")]
    pub system: PathBuf,

    /// Decides all that is open
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Kinds of faults that the seed selects from: KIND, or KIND/N for one of N opportunities; or `all`, `none`, `harmless`
    #[arg(long, value_name = "KIND,...", default_value = "harmless")]
    pub faults: Kinds,

    /// The faults in this file and no others: KIND:NUMBER of the opportunity, a line each. They may be more than a command
    /// line has room for
    #[arg(long, value_name = "FILE", conflicts_with = "faults", value_parser = read_faults)]
    pub exactly: Option<Listed>,

    /// A disk: the file with its content, which is not changed
    #[arg(long = "disk", value_name = "FILE[:ro]")]
    pub disks: Vec<String>,

    /// Where the content of the disks goes at the end, in order
    #[arg(long = "disk-left", value_name = "FILE")]
    pub disks_left: Vec<PathBuf>,

    /// A link to other machines, by the socket that is standard input: the number of this machine
    #[arg(long, value_name = "NUMBER")]
    pub link: Option<u8>,

    /// What is typed at the console
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,

    /// Number of processors
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_processors)]
    pub processors: usize,

    /// Memory of the system in MiB
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(8..=4096))]
    pub memory_mib: u32,

    /// A program that no fault ends
    #[arg(long = "spare", value_name = "PROGRAM")]
    pub spared: Vec<String>,

    /// Virtual time in seconds after which there are only faults that nobody notices [default: never]
    #[arg(long, value_name = "SECONDS")]
    pub calm_after: Option<u64>,

    /// Maximum virtual time in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub limit: u64,

    /// Where the result of the run goes, one line of JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Where the text of the trace goes
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// A parameter of the system's first program
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
    pub parameters: Vec<(String, String)>,
}

/// The faults of a file.
#[derive(Clone, Debug)]
pub struct Listed(Vec<Fault>);

fn read_faults(path: &str) -> Result<Listed, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("it cannot be read ({error})"))?;
    text.lines().map(str::parse).collect::<Result<_, _>>().map(Listed)
}

impl Arguments {
    /// Returns the faults that the run may have.
    pub fn plan(&self) -> Plan {
        match &self.exactly {
            None => Plan::Kinds(self.faults.clone()),
            Some(Listed(faults)) => Plan::Exactly(faults.iter().copied().collect()),
        }
    }
}

fn parse_processors(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=MAX_PROCESSORS).contains(count));
    count.ok_or_else(|| format!("write a number from 1 to {MAX_PROCESSORS}"))
}

fn parameter(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn faults_are_read() {
        let words = ["x", "--system", "s", "--faults", "cut/3,read-error"];
        let arguments = Arguments::try_parse_from(words).expect("a good command line");
        assert_eq!(Ok(arguments.faults), "cut/3,read-error".parse());
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path.into_os_string()
        };
        let parse = |file| {
            Arguments::try_parse_from(["x", "--system", "s", "--exactly"].map(Into::into).into_iter().chain([file]))
        };
        let Some(Listed(exactly)) = parse(file("good", "cut:3\nkill:7\n")).expect("a good command line").exactly else {
            panic!("no faults")
        };
        assert_eq!(exactly.iter().map(Fault::to_string).collect::<Vec<_>>(), ["cut:3", "kill:7"]);
        let error = parse(file("bad", "cut:3\nrain:1\n")).expect_err("no fault").to_string();
        assert!(error.contains("rain"), "{error}");
        assert!(Arguments::try_parse_from(["x", "--system", "s", "--faults", "rain"]).is_err());
    }
}

//! The workloads `network` and `web`: a machine fetches files from the web server of another one, over a link that loses,
//! delays, doubles and damages frames; in `web` programs of both end at any ABI call, too.
//!
//! Addresses come from the link's server of addresses. What a fetch says that it has got is on the disk, byte by byte; and
//! after all faults but those of the link another fetch succeeds. Deliberately not here: the link.

use std::fmt::Write as _;

use super::dhcp;
use super::ext2::{self, Files};
use super::machine::{End, Report};
use super::random::Random;

/// Virtual time in seconds after which no program is ended.
pub const CALM_AFTER_S: u64 = 130;
/// Programs of the server that no fault ends: the one that gives others time.
pub const SPARED_BY_SERVER: &[&str] = &["sleep"];
/// The same of the client. A file system that ends forgets what was not synced, so that fetched bytes would be gone.
pub const SPARED_BY_CLIENT: &[&str] = &["sleep", "ext2-fs", "volume-manager"];

/// Seconds until the client begins, for its address, of which some messages may be lost.
const BEGIN_S: u64 = 90;
/// Seconds that the server runs. The client needs less, whatever is lost.
const SERVER_S: u64 = 600;
/// Timeout of a fetch that must succeed, in seconds. After some losses in a row TCP waits for half a minute, although
/// nothing is wrong; with all its timeouts before, that is less than this. The web server of `systems/web-link.toml` waits
/// as long: one that closes the connection of a request that the link loses does as it is told, and no client can help it.
const LONG_TIMEOUT_S: u64 = 120;
/// The same of a fetch that may fail, because its server may have ended without a word, or TCP may wait for longer.
const TIMEOUT_S: u64 = 30;
const SERVER: u8 = 1;
const MAX_FETCHES: usize = 5;
const MAX_FILE_BYTES: usize = 200_000;
const NAMES: [&str; 3] = ["one/a", "two/b", "large"];

/// What a seed fetches.
pub struct Errands {
    files: Files,
    /// The files to fetch, by name.
    fetches: Vec<&'static str>,
    /// Timeout of each, in seconds, but for the last, which must always succeed.
    wait_s: u64,
}

impl Errands {
    /// Makes the errands of a seed of `network`.
    pub fn of_network(seed: u64) -> Errands {
        Errands::new(seed, LONG_TIMEOUT_S)
    }

    /// Makes the errands of a seed of `web`.
    pub fn of_web(seed: u64) -> Errands {
        Errands::new(seed, TIMEOUT_S)
    }

    fn new(seed: u64, wait_s: u64) -> Errands {
        let mut random = Random::new(seed);
        let files = NAMES.map(|name| {
            let bytes = random.below(MAX_FILE_BYTES);
            let content = (0..bytes.div_ceil(8)).flat_map(|_| (random.below(usize::MAX) as u64).to_le_bytes());
            (name.to_owned(), content.take(bytes).collect())
        });
        let count = 1 + random.below(MAX_FETCHES);
        let fetches = (0..count).map(|_| NAMES[random.below(NAMES.len())]).collect();
        Errands { files: files.into(), fetches, wait_s }
    }

    /// Returns the server's commands.
    pub fn server_commands() -> String {
        format!("sleep {SERVER_S}")
    }

    /// Returns the server's disk.
    pub fn server_disk(&self) -> Vec<u8> {
        ext2::make_disk(&self.files)
    }

    /// Returns the client's commands: the errands, and a last one when all is calm.
    pub fn client_commands(&self) -> String {
        let mut commands = format!("sleep {BEGIN_S}; ");
        for (number, name) in self.fetches.iter().enumerate() {
            fetch(&mut commands, number, name, self.wait_s);
        }
        let _ = write!(commands, "sleep {}; ", CALM_AFTER_S);
        fetch(&mut commands, self.fetches.len(), NAMES[0], LONG_TIMEOUT_S);
        commands + "sync"
    }

    /// Returns what is wrong with a run, by the console of both machines and what is left on their disks.
    ///
    /// # Errors
    /// What is wrong.
    pub fn judge(&self, report: &Report, console: &str, disks: &[Vec<u8>]) -> Result<(), String> {
        if report.end != End::Off {
            return Err(format!("a machine ended by {:?}", report.end));
        }
        let disk = disks.last().cloned().ok_or("the client's disk is not there")?;
        let found = ext2::files_on(disk)?;
        let are_all_due = report.killed.is_empty() && self.wait_s == LONG_TIMEOUT_S;
        let last = self.fetches.len();
        for (number, name) in self.fetches.iter().chain([&NAMES[0]]).enumerate() {
            let is_done = console.lines().any(|line| line == format!("fetched {number} 0"));
            if !is_done && (are_all_due || number == last) {
                return Err(format!("fetch {number} of {name} failed"));
            }
            if is_done && found.get(&got(number)) != self.files.get(*name) {
                return Err(format!("fetch {number} of {name} did not get its bytes"));
            }
        }
        Ok(())
    }
}

fn fetch(commands: &mut String, number: usize, name: &str, wait_s: u64) {
    let server = dhcp::address_of(SERVER);
    let to = got(number);
    let _ = write!(
        commands,
        "fetch http://{server}/{name} --to /fs/disk0/{to} --wait {wait_s}s --quiet; echo fetched {number} $?; "
    );
}

fn got(number: usize) -> String {
    format!("got{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fetch_that_fails_and_one_with_other_bytes_are_found() {
        let (errands, patient) = (Errands::of_web(4), Errands::of_network(4));
        let report = |killed: &[&str]| Report {
            hash: String::new(),
            virtual_ns: 0,
            calls: 0,
            events: 0,
            end: End::Off,
            status: 0,
            faults: Vec::new(),
            killed: killed.iter().map(|&one| one.to_owned()).collect(),
        };
        let fetched = errands.fetches.iter().chain([&NAMES[0]]).enumerate();
        let files: Files = fetched.map(|(number, name)| (got(number), errands.files[*name].clone())).collect();
        let count = files.len();
        let console: String = (0..count).map(|number| format!("fetched {number} 0\n")).collect();
        let judged_of = |errands: &Errands, console: &str, files: &Files, killed: &[&str]| {
            errands.judge(&report(killed), console, &[Vec::new(), ext2::make_disk(files)])
        };
        let judged = |console: &str, files: &Files, killed: &[&str]| judged_of(&errands, console, files, killed);
        assert_eq!(judged(&console, &files, &[]), Ok(()));
        let failed = console.replace("fetched 0 0", "fetched 0 1");
        // One that waits as long as TCP may must succeed, unless its server has ended.
        assert!(judged_of(&patient, &failed, &files, &[]).is_err_and(|what| what.contains("fetch 0")));
        assert_eq!(judged_of(&patient, &failed, &files, &["web-server 7"]), Ok(()));
        assert_eq!(judged(&failed, &files, &[]), Ok(()));
        let last = console.replace(&format!("fetched {} 0", count - 1), "");
        assert!(judged(&last, &files, &["web-server 7"]).is_err() && judged(&last, &files, &[]).is_err());
        let mut other = files.clone();
        other.entry(got(0)).and_modify(|bytes| bytes.push(1));
        assert!(judged(&console, &other, &["web-server 7"]).is_err_and(|what| what.contains("its bytes")));
    }
}

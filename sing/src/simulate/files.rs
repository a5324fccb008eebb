//! The workload `files`: clients of a file system that ends at any ABI call. A client knows what each piece of its file
//! may hold, and that each block that it has lent comes home.
//!
//! Deliberately not here: what clients check, which `tests/services-check/storm` does, and the state of services and of
//! the kernel afterwards, which is judged as for `kills`.

use super::kills;
use super::random::Random;

/// Programs that no fault ends: clients, the console on which they report, and the one that gives the services time to come
/// back.
pub const SPARED: &[&str] = &["storm", "sleep", "console"];

/// Virtual time in seconds after which no program is ended.
pub const CALM_AFTER_S: u64 = 4;

/// Seconds that the clients go on: as long as anything is ended, and one more.
const SECONDS: u64 = CALM_AFTER_S + 1;
/// The same of a run without kills, in which clients do not wait for a file system: they would make a million calls a
/// second without a pause.
const SECONDS_WITHOUT: u64 = 1;
const PAUSE_WITHOUT_MS: u64 = 5;
/// Pauses of which a seed has one: without any, requests are dense, and others of the system are rarely idle.
const PAUSES_MS: [u64; 4] = [0, 0, 1, 4];
const MAX_CLIENTS: usize = 3;
/// Marks the clients' failures on the console.
const FAILURE: &str = "storm: client";

/// The clients of a seed.
pub struct Clients {
    count: usize,
    pause_ms: u64,
}

impl Clients {
    /// Chooses the clients of a seed.
    pub fn new(seed: u64) -> Clients {
        let mut random = Random::new(seed);
        let count = 1 + random.below(MAX_CLIENTS);
        Clients { count, pause_ms: PAUSES_MS[random.below(PAUSES_MS.len())] }
    }

    /// Returns the shell's commands.
    pub fn commands(&self) -> String {
        self.commands_for(SECONDS, self.pause_ms)
    }

    /// Returns the commands of the run without kills, with whose counters it is compared.
    pub fn commands_without(&self) -> String {
        self.commands_for(SECONDS_WITHOUT, PAUSE_WITHOUT_MS)
    }

    fn commands_for(&self, seconds: u64, pause_ms: u64) -> String {
        let client = |number: usize| format!("storm /fs/disk0/one {number} --seconds {seconds} --pause-ms {pause_ms}");
        let start = |number| client(number) + " & ";
        let last = client(self.count) + "; ";
        (1..self.count).map(start).chain([last, kills::calm_commands()]).collect()
    }
}

/// Returns what a client found.
///
/// # Errors
/// Its words.
pub fn judge(console: &str) -> Result<(), String> {
    match console.lines().find(|line| line.contains(FAILURE)) {
        Some(line) => Err(line.trim().to_owned()),
        None if !console.contains("all as it must be") => Err("no client came to its end".into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_client_that_finds_something_is_found() {
        let good = "client 1: 3 reads, 2 writes, 1 syncs, 0 renames, 4 crashes: all as it must be\n";
        assert_eq!(judge(good), Ok(()));
        assert!(judge("").is_err());
        let bad = format!("{good}storm: client 2: piece 3 is of version 4\n");
        assert!(judge(&bad).is_err_and(|what| what.contains("piece 3")));
    }

    #[test]
    fn seeds_differ_in_the_number_of_clients_and_their_pauses() {
        let clients: Vec<Clients> = (0..50).map(Clients::new).collect();
        let counts: BTreeSet<usize> =
            clients.iter().map(|clients| clients.commands().matches("storm ").count()).collect();
        assert_eq!(counts, (1..=MAX_CLIENTS).collect());
        let pauses: BTreeSet<u64> = clients.iter().map(|clients| clients.pause_ms).collect();
        assert_eq!(pauses, PAUSES_MS.into());
    }
}

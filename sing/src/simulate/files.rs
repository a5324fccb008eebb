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

/// Seconds that the clients go on: as long as anything is ended, and one more.
const SECONDS: u64 = kills::CALM_AFTER_S + 1;
const MAX_CLIENTS: usize = 3;
/// Marks the clients' failures on the console.
const FAILURE: &str = "storm: client";

/// Returns the shell's commands for a seed.
pub fn commands(seed: u64) -> String {
    let clients = 1 + Random::new(seed).below(MAX_CLIENTS);
    let start = |number| format!("storm /fs/disk0/one {number} --seconds {SECONDS} & ");
    let last = format!("storm /fs/disk0/one {clients} --seconds {SECONDS}; ");
    (1..clients).map(start).chain([last, kills::calm_commands()]).collect()
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
    fn seeds_differ_in_the_number_of_clients() {
        let clients = |seed: u64| commands(seed).matches("storm ").count();
        let counts: std::collections::BTreeSet<usize> = (0..50).map(clients).collect();
        assert_eq!(counts, (1..=MAX_CLIENTS).collect());
    }
}

//! Names of processes, contracts and messages, which events have as numbers.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abi::StreamRecord;

/// Names of processes, contracts and messages. Names that are not known are shown as numbers.
#[derive(Clone, Debug, Default)]
pub struct Names {
    processes: BTreeMap<u64, String>,
    /// By index of the contract: its name, and the names of its messages by tag.
    contracts: Vec<(String, Vec<String>)>,
}

impl Names {
    /// Adds a process.
    pub fn add_process(&mut self, id: u64, name: String) {
        self.processes.insert(id, name);
    }

    /// Adds the contract of the next index.
    pub fn add_contract(&mut self, name: String, messages: Vec<String>) {
        self.contracts.push((name, messages));
    }

    /// Number of contracts.
    pub fn contracts(&self) -> usize {
        self.contracts.len()
    }

    /// Whether the name of a process is known.
    pub fn has_process(&self, id: u64) -> bool {
        self.processes.contains_key(&id)
    }

    /// Name of the program of a process.
    pub(crate) fn process(&self, id: u64) -> String {
        match self.processes.get(&id) {
            Some(name) => name.clone(),
            None if id == 0 => String::from("kernel"),
            None => format!("process {id}"),
        }
    }

    /// Contract and message of an event of a message: `File.Read`.
    pub(crate) fn message(&self, event: &StreamRecord) -> String {
        let (contract, tag) = event.message();
        match self.contracts.get(contract) {
            Some((name, messages)) => {
                let message = messages.get(tag).cloned().unwrap_or_else(|| tag.to_string());
                format!("{name}.{message}")
            }
            None => format!("contract {contract}.{tag}"),
        }
    }
}

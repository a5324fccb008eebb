//! The channels of a system on which one program is a client of another, for the analysis of deadlocks.
//!
//! Key type: [`Conversation`]. A channel counts where its ends can come to programs that handle them by their
//! manifests; one that only passes an endpoint on has no conversation on it.

use alloc::vec::Vec;

use manifest_model::{ContractUse, Manifest, Side};

use crate::check::manifest::handles;
use crate::reach::Map;

/// A contract on which processes of one program can be clients of processes of another, or of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conversation<'a> {
    /// Name of the program with the importing end.
    pub importer: &'a str,
    /// Name of the program with the exporting end.
    pub exporter: &'a str,
    /// Name of the contract.
    pub contract: &'a str,
}

impl Map<'_> {
    /// Returns all conversations, each once, in order.
    pub fn conversations(&self) -> Vec<Conversation<'_>> {
        let mut found = Vec::new();
        for (links, protocol) in self.flows.links.iter().zip(&self.world.protocols) {
            let contract = protocol.name.as_str();
            for importer in 0..self.world.holders.len() {
                let client = self.manifest_of(importer);
                if !client.is_some_and(|client| handled(client, contract, Side::Importer)) {
                    continue;
                }
                for exporter in links.row(importer).iter() {
                    let server = self.manifest_of(exporter);
                    // A channel that a process has made and not given away has both ends in one place.
                    let Some((client, server)) = client.zip(server).filter(|_| importer != exporter) else { continue };
                    if handled(server, contract, Side::Exporter) {
                        found.push(Conversation { importer: &client.name, exporter: &server.name, contract });
                    }
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn manifest_of(&self, holder: usize) -> Option<&Manifest> {
        Some(&self.installed.programs.get(self.world.holders.get(holder)?.program)?.manifest)
    }
}

fn handled(manifest: &Manifest, contract: &str, side: Side) -> bool {
    let listed = |used: &&ContractUse| used.name == contract;
    manifest.contracts.iter().find(listed).is_some_and(|used| handles(used.side, side))
}

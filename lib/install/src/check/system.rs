//! Invariants of a system, whatever change it results from.
//!
//! A change is judged by the faults that it introduces. Each finding is about a program or an instance, the one that
//! would not work. Deliberately not here: faults of a single manifest, and of a system manifest over its programs
//! ([`wiring`]).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use boot_order::{Provider, bound_path, provider_of};
use manifest_model::{
    Code as ProgramCode, ContractUse, Digest, EndpointSlot, Instance, Manifest, Side, Source, pattern,
};

use crate::check::manifest::handles;
use crate::check::wiring::{bind_refused, no_provider, other_version};
use crate::check::{dependencies, policy, wiring};
use crate::code::Code;
use crate::installed::Installed;
use crate::reach::{Map, Who};
use crate::report::Finding;

/// Returns all faults of the system, apart from those of single manifests.
pub fn findings(installed: &Installed, map: &Map<'_>) -> Vec<Finding> {
    let mut check = Check { installed, map, findings: Vec::new() };
    check.findings.extend(wiring::findings(&installed.system, &check.manifests().collect::<Vec<_>>()));
    check.programs();
    check.contracts();
    check.slots();
    check.scripts();
    check.templates();
    check.findings.extend(dependencies::findings(installed));
    check.findings.extend(policy::findings(installed, map));
    check.findings
}

struct Check<'a> {
    installed: &'a Installed,
    map: &'a Map<'a>,
    findings: Vec<Finding>,
}

fn contract_of(manifest: &Manifest, index: u16) -> Option<&ContractUse> {
    manifest.contracts.get(usize::from(index))
}

impl<'a> Check<'a> {
    fn refuse(&mut self, code: Code, subject: &str, what: impl Into<String>, remedy: impl Into<String>) {
        self.findings.push(Finding::new(code, subject, what, remedy));
    }

    fn manifests(&self) -> impl Iterator<Item = &'a Manifest> + use<'a> {
        self.installed.programs.iter().map(|program| &program.manifest)
    }

    /// Every package is of a program named by the system, and each of these has one.
    fn programs(&mut self) {
        let installed = self.installed;
        let named = installed.system.programs();
        for (index, program) in installed.programs.iter().enumerate() {
            let name = &program.manifest.name;
            if !named.contains(&name.as_str()) {
                let what =
                    format!("there is a package of `{name}`, which the system does not name: nobody agreed to it");
                self.refuse(Code::ProgramUnnamed, name, what, "install it with `cargo sing install`");
            }
            if installed.programs[..index].iter().any(|other| other.manifest.name == *name) {
                let what = format!("there are two packages of `{name}`");
                self.refuse(Code::ProgramTwice, name, what, "build the system image again");
            }
        }
    }

    /// Every imported contract has an exporter, in the same version.
    fn contracts(&mut self) {
        let mut first: BTreeMap<&str, (&str, &Digest)> = BTreeMap::new();
        for manifest in self.manifests() {
            for used in &manifest.contracts {
                let told = handles(used.side, Side::Importer) && self.import(manifest, used);
                let (other, fingerprint) = *first.entry(&used.name).or_insert((&manifest.name, &used.fingerprint));
                if *fingerprint != used.fingerprint && !told {
                    self.two_contracts(&manifest.name, other, &used.name);
                }
            }
        }
    }

    /// A contract name has one version: the kernel never has two of a name at once, and a promise about reach would
    /// cover only one of them.
    fn two_contracts(&mut self, name: &str, other: &str, contract: &str) {
        let what = format!("`{name}` lists another contract under the name `{contract}` than `{other}`");
        self.refuse(
            Code::TwoContracts,
            name,
            what,
            "build both with the same contract, or call one of the two otherwise",
        );
    }

    /// Returns whether a finding was added.
    fn import(&mut self, manifest: &Manifest, used: &ContractUse) -> bool {
        let exporters = self.manifests().flat_map(|other| other.contracts.iter().map(move |theirs| (other, theirs)));
        let exporters =
            exporters.filter(|(_, theirs)| theirs.name == used.name && handles(theirs.side, Side::Exporter));
        let (mut same, mut others): (bool, Vec<String>) = (false, Vec::new());
        for (other, theirs) in exporters {
            if theirs.fingerprint == used.fingerprint {
                same = true;
            } else {
                others.push(format!("`{}`", other.name));
            }
        }
        if same {
            return false;
        }
        let (name, contract) = (&manifest.name, &used.name);
        if others.is_empty() {
            let what = format!("`{name}` imports the contract `{contract}`, which no installed program exports");
            let remedy = format!("install a program that exports `{contract}` first");
            self.refuse(Code::NoExporter, name, what, remedy);
        } else {
            let what = format!(
                "`{name}` was built with another version of the contract `{contract}` than {}",
                others.join(", ")
            );
            self.refuse(Code::OtherContractVersion, name, what, "build both with the same version");
        }
        true
    }

    /// Endpoints required at start can be supplied.
    fn slots(&mut self) {
        let installed = self.installed;
        for manifest in self.manifests() {
            let instances: Vec<&Instance> =
                installed.system.instances.iter().filter(|instance| instance.program == manifest.name).collect();
            let on_demand = installed.system.installed.contains(&manifest.name);
            for (number, slot) in manifest.endpoints.iter().enumerate() {
                let Some(contract) = contract_of(manifest, slot.contract) else { continue };
                for _ in instances.iter().filter(|instance| bound_path(instance, manifest, number).is_none()) {
                    self.given(manifest, (slot, contract), true);
                }
                match &slot.source {
                    _ if !on_demand => {}
                    Source::Path(path) => self.bound(manifest, (slot, contract), path),
                    _ => self.given(manifest, (slot, contract), false),
                }
            }
        }
    }

    /// An endpoint bound to a path, of a program started by other programs: its parent binds it.
    fn bound(&mut self, manifest: &Manifest, (slot, contract): (&EndpointSlot, &ContractUse), path: &str) {
        let subject = &manifest.name;
        if slot.optional {
            return;
        }
        match self.provider(path, &contract.name) {
            None => self.findings.push(no_provider(subject, slot, contract, path)),
            Some(Some(provider)) => self.findings.extend(other_version(subject, provider, contract, path)),
            Some(None) => {}
        }
        let principal = manifest.principal();
        let mut binds = self.installed.system.binds.iter().filter(|bind| pattern::matches(&bind.path, path));
        if !binds.any(|bind| Who::read(&bind.who).may_mean(&principal)) {
            self.findings.push(bind_refused(subject, manifest, slot, path));
        }
    }

    /// Returns the provider of a path: a program, or one that registers it at run time.
    fn provider(&self, path: &str, contract: &str) -> Option<Option<&'a Manifest>> {
        let installed = self.installed;
        let find = |name: &str| installed.manifest(name);
        let program = match provider_of(&installed.system, find, path, contract) {
            Some(Provider::Instance(index)) => installed.system.instances.get(index).map(|instance| &instance.program),
            Some(Provider::Root) => Some(&installed.system.root),
            None => None,
        };
        if let Some(manifest) = program.and_then(|name| find(name)) {
            return Some(Some(manifest));
        }
        self.map.is_registered(path).then_some(None)
    }

    /// An endpoint whose other end the parent keeps or passes on.
    fn given(&mut self, manifest: &Manifest, (slot, contract): (&EndpointSlot, &ContractUse), at_boot: bool) {
        let other = if slot.side == Side::Importer { Side::Exporter } else { Side::Importer };
        let root = self.installed.system.root.as_str();
        let can = |parent: &Manifest| {
            let starts = parent.name == root || (!at_boot && parent.quota.children > 0);
            let mut theirs = parent.contracts.iter();
            starts && theirs.any(|theirs| theirs.name == contract.name && handles(theirs.side, other))
        };
        let others = |parent: &&Manifest| parent.name != manifest.name;
        if slot.optional || self.manifests().filter(others).any(can) {
            return;
        }
        let name = &manifest.name;
        let who = if at_boot { format!("the root program `{root}`") } else { "no program that starts others".into() };
        let deed = if at_boot { "does not handle" } else { "handles" };
        let what = format!(
            "{who} {deed} the other end of `{}`, so that nobody could give `{name}` its endpoint `{}`",
            contract.name, slot.name
        );
        self.refuse(
            Code::NoParent,
            name,
            what,
            "install the program that starts it first, or let the endpoint be optional",
        );
    }

    /// Each WebAssembly program has its template, and no template runs.
    fn templates(&mut self) {
        for manifest in self.manifests() {
            let Some(template) = manifest.code.template() else { continue };
            let name = &manifest.name;
            match self.installed.manifest(template).filter(|template| template.code.is_template()) {
                None => {
                    let what =
                        format!("`{name}` is a WebAssembly program of the template `{template}`, which is not there");
                    self.refuse(Code::NoTemplate, name, what, "install the template first");
                }
                Some(host) => {
                    if let Err(list) = manifest.fits_template(host) {
                        let what = format!("the {list} of `{name}` are not those of the template `{template}`");
                        let remedy = "build it again with this version of the template";
                        self.refuse(Code::TemplateManifest, name, what, remedy);
                    }
                }
            }
        }
        let system = &self.installed.system;
        let started = system.instances.iter().map(|instance| &instance.program).chain([&system.root]);
        let templates: Vec<String> = started
            .filter(|name| self.installed.manifest(name).is_some_and(|manifest| manifest.code.is_template()))
            .cloned()
            .collect();
        for name in templates {
            let what = format!("`{name}` is a template of WebAssembly programs, and cannot run by itself");
            self.refuse(
                Code::TemplateRuns,
                &name,
                what,
                "list it as installed, and start a program that is made of it",
            );
        }
    }

    fn scripts(&mut self) {
        for manifest in self.manifests() {
            if matches!(manifest.code, ProgramCode::Script { .. }) && self.installed.program("shell").is_none() {
                let what = format!("`{}` is a script, and there is no shell to run it", manifest.name);
                self.refuse(Code::ScriptWithoutShell, &manifest.name, what, "install a shell first");
            }
        }
    }
}

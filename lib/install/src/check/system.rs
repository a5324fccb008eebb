//! What must hold in a system, whatever brought it about.
//!
//! Every change is judged by what it breaks: what is wrong afterwards and was not before. Each finding is of a program
//! or an instance, the one that would not work. Deliberately not here: what a manifest says by itself.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use boot_order::{OrderError, Provider, boot_order, bound_path, provider_of};
use manifest_model::{
    AddressRange, Code as ProgramCode, ContractUse, Digest, EndpointSlot, Instance, Manifest, Setting, Side, Source,
    pattern,
};

use crate::check::manifest::handles;
use crate::check::{dependencies, policy};
use crate::code::Code;
use crate::installed::Installed;
use crate::reach::{Map, Who};
use crate::report::Finding;

/// All that is wrong with the system, apart from what manifests say by themselves.
pub fn findings(installed: &Installed, map: &Map<'_>) -> Vec<Finding> {
    let mut check = Check { installed, map, findings: Vec::new() };
    check.programs();
    check.rules();
    check.contracts();
    check.slots();
    check.devices();
    check.paths();
    check.scripts();
    check.instances();
    check.order();
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

    /// The packages are those of the programs that the system names.
    fn programs(&mut self) {
        let installed = self.installed;
        let named = installed.system.programs();
        for name in &named {
            if installed.program(name).is_none() {
                let what = format!("the system names the program `{name}`, and there is no package of it");
                self.refuse(
                    Code::ProgramMissing,
                    name,
                    what,
                    "install it, or take its name out of the system manifest",
                );
            }
        }
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

    fn rules(&mut self) {
        let system = &self.installed.system;
        for bind in &system.binds {
            if let Some((problem, remedy)) = Who::problem(&bind.who) {
                let what = format!("the rule for {:?} at {} cannot be read: {problem}", bind.who, bind.path);
                self.refuse(Code::BadRule, &system.name, what, remedy);
            }
            if !is_path_pattern(&bind.path) {
                let what =
                    format!("the rule for `{}` speaks of {:?}, which is no pattern of paths", bind.who, bind.path);
                self.refuse(Code::BadRule, &system.name, what, "begin with `/`, or write `**`");
            }
        }
    }

    /// What is imported is exported by somebody, in the same version.
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

    /// A name stands for one contract: the kernel never has two of a name at once, and what is promised of who reaches
    /// what would be of one of the two alone.
    fn two_contracts(&mut self, name: &str, other: &str, contract: &str) {
        let what = format!("`{name}` lists another contract under the name `{contract}` than `{other}`");
        self.refuse(
            Code::TwoContracts,
            name,
            what,
            "build both with the same contract, or call one of the two otherwise",
        );
    }

    /// Says whether there was something to be said.
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

    /// Endpoints that are given at the start can be.
    fn slots(&mut self) {
        let installed = self.installed;
        for manifest in self.manifests() {
            let instances: Vec<&Instance> =
                installed.system.instances.iter().filter(|instance| instance.program == manifest.name).collect();
            let on_demand = installed.system.installed.contains(&manifest.name);
            for (number, slot) in manifest.endpoints.iter().enumerate() {
                let Some(contract) = contract_of(manifest, slot.contract) else { continue };
                for instance in &instances {
                    match (&slot.source, bound_path(instance, manifest, number)) {
                        (Source::Path(_), Some(path)) => self.bound(manifest, Some(instance), (slot, contract), path),
                        _ => self.given(manifest, (slot, contract), true),
                    }
                }
                match &slot.source {
                    _ if !on_demand => {}
                    Source::Path(path) => self.bound(manifest, None, (slot, contract), path),
                    _ => self.given(manifest, (slot, contract), false),
                }
            }
        }
    }

    /// An endpoint that is bound to a path. A program that others start is bound by whoever does.
    fn bound(
        &mut self,
        manifest: &Manifest,
        instance: Option<&Instance>,
        slot: (&EndpointSlot, &ContractUse),
        path: &str,
    ) {
        let (slot, contract) = slot;
        let subject = instance.map_or(&manifest.name, |instance| &instance.name);
        if slot.optional {
            return;
        }
        match self.provider(path, &contract.name) {
            None => {
                let what = format!(
                    "nothing provides {path} with the contract `{}`, which the endpoint `{}` of `{subject}` is bound to",
                    contract.name, slot.name
                );
                self.refuse(Code::NoProvider, subject, what, "install a program that provides it at boot");
            }
            Some(Some(provider)) => {
                let theirs = provider.contracts.iter().find(|theirs| theirs.name == contract.name);
                if theirs.is_some_and(|theirs| theirs.fingerprint != contract.fingerprint) {
                    let what = format!(
                        "`{}`, which provides {path}, has another version of the contract `{}` than `{subject}`",
                        provider.name, contract.name
                    );
                    self.refuse(Code::OtherContractVersion, subject, what, "build both with the same version");
                }
            }
            Some(None) => {}
        }
        let principal = manifest.principal();
        let allowed = |who: &Who, text: &str| match instance {
            // The system starts it, and nobody invokes it.
            Some(_) => package_matches(text, &principal),
            None => who.may_mean(&principal),
        };
        let mut binds = self.installed.system.binds.iter().filter(|bind| pattern::matches(&bind.path, path));
        if !binds.any(|bind| allowed(&Who::read(&bind.who), &bind.who)) {
            let what =
                format!("no rule lets `{principal}` bind {path}, which its endpoint `{}` is bound to", slot.name);
            let remedy = format!("agree to it with `--allow {path}`, or add a [[bind]] to the system manifest");
            self.refuse(Code::BindRefused, subject, what, remedy);
        }
    }

    /// Who provides a path: a program, or somebody who registers it while the system runs.
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

    /// An endpoint whose other end whoever starts the program keeps or passes on.
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

    /// Nothing of a machine has two owners.
    fn devices(&mut self) {
        let manifests: Vec<&Manifest> = self.manifests().collect();
        for (index, manifest) in manifests.iter().enumerate() {
            for other in &manifests[..index] {
                self.overlap(manifest, other);
            }
        }
        let mut taken: Vec<(&str, &str)> = Vec::new();
        for (instance, manifest) in self.installed.instances() {
            let needs = manifest.devices.iter().zip(&instance.devices).filter(|(need, _)| !need.is_fixed());
            for (_, device) in needs {
                match taken.iter().find(|(name, _)| *name == device.as_str()) {
                    Some((_, owner)) => {
                        let what = format!(
                            "the device `{device}` is that of the instance `{owner}`, not of `{}`",
                            instance.name
                        );
                        let remedy = "give one of them another device in the system manifest";
                        self.refuse(Code::DeviceTaken, &instance.name, what, remedy);
                    }
                    None => taken.push((device, &instance.name)),
                }
            }
        }
    }

    fn overlap(&mut self, manifest: &Manifest, other: &Manifest) {
        let ports = |manifest: &Manifest| all_ranges(manifest, |device| &device.ports);
        let memory = |manifest: &Manifest| all_ranges(manifest, |device| &device.memory);
        let remedy = format!("only one of `{}` and `{}` can be installed", manifest.name, other.name);
        let sorts = [
            (Code::PortsOverlap, "I/O ports", ports(manifest), ports(other)),
            (Code::MemoryOverlap, "device memory", memory(manifest), memory(other)),
        ];
        for (code, what, ours, theirs) in sorts {
            let met = ours.iter().find_map(|one| Some((one, theirs.iter().find(|two| one.overlaps(two))?)));
            if let Some((one, two)) = met {
                let what = format!("the {what} {one} of `{}` are those of `{}` too ({two})", manifest.name, other.name);
                self.refuse(code, &manifest.name, what, remedy.clone());
            }
        }
        let lines = |manifest: &Manifest| -> Vec<u32> {
            manifest.devices.iter().flat_map(|device| device.interrupts.iter().copied()).collect()
        };
        let theirs = lines(other);
        if let Some(line) = lines(manifest).iter().find(|line| theirs.contains(line)) {
            let what = format!("the interrupt {line} of `{}` is that of `{}` too", manifest.name, other.name);
            self.refuse(Code::InterruptShared, &manifest.name, what, remedy);
        }
    }

    fn paths(&mut self) {
        let installed = self.installed;
        let mut taken: Vec<(&str, &str)> = Vec::new();
        if let Some(root) = installed.manifest(&installed.system.root) {
            taken.extend(root.provides.iter().map(|provide| (provide.path.as_str(), root.name.as_str())));
        }
        for (instance, _) in installed.instances() {
            for path in &instance.provides {
                match taken.iter().find(|(other, _)| *other == path.as_str()) {
                    Some((_, owner)) => {
                        let what = format!("{path} is provided by `{owner}`, not by `{}`", instance.name);
                        let remedy = "give one of them another path with `provides` in the system manifest";
                        self.refuse(Code::PathTaken, &instance.name, what, remedy);
                    }
                    None => taken.push((path, &instance.name)),
                }
            }
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

    fn instances(&mut self) {
        let system = &self.installed.system;
        let is_there = |name: &String| system.instances.iter().any(|instance| instance.name == *name);
        if let Some(primary) = system.primary.as_ref().filter(|primary| !is_there(primary)) {
            let what = format!("the system ends with the instance `{primary}`, which would not be there");
            self.refuse(Code::PrimaryMissing, primary, what, "name another primary instance in the system manifest");
        }
        for instance in &system.instances {
            for needed in instance.requires.iter().chain(&instance.after).filter(|needed| !is_there(needed)) {
                let what =
                    format!("the instance `{}` starts after `{needed}`, which would not be there", instance.name);
                self.refuse(Code::InstanceMissing, &instance.name, what, "take it out of `requires` or `after` first");
            }
        }
        for (instance, manifest) in self.installed.instances() {
            self.settings(instance, manifest);
        }
    }

    fn settings(&mut self, instance: &Instance, manifest: &Manifest) {
        let name = &instance.name;
        let lengths = [
            (instance.devices.len(), manifest.devices.len()),
            (instance.provides.len(), manifest.provides.len()),
            (instance.endpoints.len(), manifest.endpoints.len()),
        ];
        let indices = instance.parameters.iter().all(|setting| usize::from(setting.index) < manifest.parameters.len());
        if !indices || lengths.iter().any(|(has, wants)| has != wants) {
            let what = format!("the settings of the instance `{name}` are not for its program `{}`", manifest.name);
            self.refuse(Code::InstanceMalformed, name, what, "build the system image again");
            return;
        }
        for (index, parameter) in manifest.parameters.iter().enumerate() {
            let setting = instance.parameters.iter().find(|setting| usize::from(setting.index) == index);
            match setting.map(|setting| &setting.setting) {
                None if parameter.required => {
                    let what = format!(
                        "the instance `{name}` gets no value for `{}`, without which it does not start",
                        parameter.name
                    );
                    self.refuse(
                        Code::ParameterMissing,
                        name,
                        what,
                        "start it by hand, or from a system manifest that says the value",
                    );
                }
                Some(Setting::Values(values)) if values.iter().any(|value| value.kind() != parameter.kind) => {
                    let what = format!(
                        "the instance `{name}` sets `{}` to what is not of the type `{}`",
                        parameter.name, parameter.kind
                    );
                    self.refuse(Code::SettingType, name, what, "keep the type, or change the system manifest first");
                }
                _ => {}
            }
        }
    }

    fn order(&mut self) {
        let installed = self.installed;
        if let Err(OrderError::Cycle { instances }) = boot_order(&installed.system, |name| installed.manifest(name)) {
            let names = instances.iter().filter_map(|&index| installed.system.instances.get(index));
            let mut names: Vec<String> = names.map(|instance| format!("`{}`", instance.name)).collect();
            names.extend(names.first().cloned());
            let what = format!("instances would wait for each other: {}", names.join(" needs "));
            let remedy = "let one of the endpoints be optional";
            self.refuse(Code::BootCycle, names.first().map_or("", |name| name.trim_matches('`')), what, remedy);
        }
    }
}

fn package_matches(who: &str, principal: &str) -> bool {
    principal::Pattern::parse(who).is_ok_and(|who| who.matches(principal))
}

fn is_path_pattern(text: &str) -> bool {
    text.starts_with('/') || text.starts_with("**")
}

fn all_ranges(
    manifest: &Manifest,
    which: impl Fn(&manifest_model::DeviceNeed) -> &Vec<AddressRange>,
) -> Vec<AddressRange> {
    manifest.devices.iter().flat_map(|device| which(device).iter().copied()).collect()
}

//! Checks of a system manifest against its programs: unknown names, unsuitable settings, conflicting owners, instances
//! that cannot start.
//!
//! Applied to the source of a system manifest, and to every system that is built or changed. Deliberately not here:
//! dependencies between programs, and reach.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use boot_order::{OrderError, Provider, boot_order, bound_path, provider_of};
use manifest_model::{ContractUse, Deny, EndpointSlot, Instance, Manifest, Setting, Source, SystemManifest};

use crate::check::manifest::{LIST_MAX, does_fit, long_list, wanted};
use crate::check::{domains, owners};
use crate::code::Code;
use crate::field::Field;
use crate::reach::Who;
use crate::report::Finding;

/// Returns all faults of the system manifest over the manifests of its programs. Places are fields of the system as a
/// whole: `program[1]` is the second of [`SystemManifest::instances`], `devices[0]` of it the first device of its
/// program.
pub fn findings(system: &SystemManifest, programs: &[&Manifest]) -> Vec<Finding> {
    let mut check = Check { system, programs, findings: Vec::new() };
    check.programs();
    check.rules();
    check.findings.extend(promises(&system.denies, &system.name));
    check.findings.extend(owners::findings(system, programs));
    check.findings.extend(domains::findings(system, programs));
    check.instances();
    check.order();
    check.findings
}

/// Returns findings for invalid promises of the system of this name.
pub(crate) fn promises(denies: &[Deny], system: &str) -> Vec<Finding> {
    let rows = denies.iter().enumerate();
    let promise = |(row, deny): (usize, &Deny)| {
        let table = Patterns { code: Code::BadDeny, what: "promise", table: "deny", row, key: "reach" };
        table.findings(system, &deny.who, &deny.reach)
    };
    rows.flat_map(promise).collect()
}

/// Returns the first place where a system manifest names a program: as its root, an instance or an installed one.
pub(crate) fn place_of(system: &SystemManifest, program: &str) -> Field {
    let instance = || system.instances.iter().position(|instance| instance.program == program);
    let installed = || system.installed.iter().position(|name| name == program);
    let list = Field::of("system", "installed");
    match instance() {
        _ if system.root == program => Field::of("system", "root"),
        Some(index) => Field::row("program", index, "name"),
        None => installed().map_or(list, |index| list.item(index)),
    }
}

/// A [[bind]] or a [[deny]].
struct Patterns {
    code: Code,
    what: &'static str,
    table: &'static str,
    row: usize,
    /// Key of its pattern of paths.
    key: &'static str,
}

impl Patterns {
    fn findings(&self, system: &str, who: &str, path: &str) -> Vec<Finding> {
        let field = |key| Field::row(self.table, self.row, key);
        let mut findings = Vec::new();
        if let Some((problem, remedy)) = Who::problem(who) {
            let what = format!("the {} for {who:?} at {path:?} cannot be read: {problem}", self.what);
            findings.push(Finding::new(self.code, system, what, remedy).at(field("who"), "matches nobody"));
        }
        if !path.starts_with('/') && !path.starts_with("**") {
            let what = format!("the {} for {who:?} speaks of {path:?}, which is no pattern of paths", self.what);
            let remedy = "begin with `/`; `*` stands for one name, `**` for any path: `/dev/*`, `/fs/**`";
            findings.push(Finding::new(self.code, system, what, remedy).at(field(self.key), "matches no path"));
        }
        findings
    }
}

/// A finding for a bound endpoint whose path has no provider.
pub(crate) fn no_provider(subject: &str, slot: &EndpointSlot, contract: &ContractUse, path: &str) -> Finding {
    let what = format!(
        "nothing provides {path} with the contract `{}`, which the endpoint `{}` of `{subject}` is bound to",
        contract.name, slot.name
    );
    Finding::new(Code::NoProvider, subject, what, "let a program provide it at boot, or bind the endpoint elsewhere")
}

/// Returns a finding if the provider of a path has another version of the contract than the subject.
pub(crate) fn other_version(subject: &str, provider: &Manifest, contract: &ContractUse, path: &str) -> Option<Finding> {
    let theirs = provider.contracts.iter().find(|theirs| theirs.name == contract.name)?;
    if theirs.fingerprint == contract.fingerprint {
        return None;
    }
    let what = format!(
        "`{}`, which provides {path}, has another version of the contract `{}` than `{subject}`",
        provider.name, contract.name
    );
    Some(Finding::new(Code::OtherContractVersion, subject, what, "build both with the same version"))
}

/// A finding for an endpoint of the subject, which runs the program, that no rule permits to be bound.
pub(crate) fn bind_refused(subject: &str, manifest: &Manifest, slot: &EndpointSlot, path: &str) -> Finding {
    let principal = manifest.principal();
    let what = format!(
        "no rule lets `{principal}` bind {path}, which the endpoint `{}` of `{subject}` is bound to",
        slot.name
    );
    let remedy = format!(
        "add a [[bind]] with `who = \"{principal}\"` and `path = \"{path}\"`, or install the program with \
         `--allow {path}`"
    );
    Finding::new(Code::BindRefused, subject, what, remedy)
}

struct Check<'a> {
    system: &'a SystemManifest,
    programs: &'a [&'a Manifest],
    findings: Vec<Finding>,
}

impl<'a> Check<'a> {
    fn refuse(
        &mut self,
        code: Code,
        subject: &str,
        what: impl Into<String>,
        remedy: impl Into<String>,
        at: (Field, &'static str),
    ) {
        self.findings.push(Finding::new(code, subject, what, remedy).at(at.0, at.1));
    }

    fn find(&self, name: &str) -> Option<&'a Manifest> {
        self.programs.iter().copied().find(|manifest| manifest.name == name)
    }

    fn programs(&mut self) {
        let system = self.system;
        for name in system.programs() {
            if self.find(name).is_none() {
                let what = format!("the system names the program `{name}`, which is not there");
                let remedy = "install it, or take its name out of the system manifest";
                self.refuse(Code::ProgramMissing, name, what, remedy, (place_of(system, name), "not a program"));
            }
        }
    }

    fn rules(&mut self) {
        for (row, bind) in self.system.binds.iter().enumerate() {
            let table = Patterns { code: Code::BadRule, what: "rule", table: "bind", row, key: "path" };
            self.findings.extend(table.findings(&self.system.name, &bind.who, &bind.path));
        }
    }

    fn instances(&mut self) {
        let system = self.system;
        if let Some(primary) = system.primary.as_ref().filter(|primary| system.instance(primary).is_none()) {
            let what = format!("the system ends with the instance `{primary}`, which is not there");
            let remedy = "name another primary instance in the system manifest";
            let at = (Field::of("system", "primary"), "no instance has this name");
            self.refuse(Code::PrimaryMissing, primary, what, remedy, at);
        }
        for (row, instance) in system.instances.iter().enumerate() {
            self.needed(row, instance, "requires", &instance.requires);
            self.needed(row, instance, "after", &instance.after);
            let Some(manifest) = self.find(&instance.program) else { continue };
            self.settings(row, instance, manifest);
            self.endpoints(row, instance, manifest);
        }
    }

    /// Resolves the instances that must start before this one, under a key.
    fn needed(&mut self, row: usize, instance: &Instance, key: &'static str, needed: &[String]) {
        let field = Field::row("program", row, key);
        let list = format!("`{key}` of the instance `{}`", instance.name);
        self.findings.extend(long_list(&instance.name, &list, needed.len(), field));
        for (item, needed) in needed.iter().enumerate().take(LIST_MAX) {
            if self.system.instance(needed).is_none() {
                let what = format!("the instance `{}` starts after `{needed}`, which is not there", instance.name);
                let remedy = format!("take it out of `{key}` first");
                let at = (field.item(item), "no instance has this name");
                self.refuse(Code::InstanceMissing, &instance.name, what, remedy, at);
            }
        }
    }

    fn settings(&mut self, row: usize, instance: &Instance, manifest: &Manifest) {
        let name = &instance.name;
        let lengths = [
            (instance.devices.len(), manifest.devices.len()),
            (instance.provides.len(), manifest.provides.len()),
            (instance.endpoints.len(), manifest.endpoints.len()),
        ];
        let mut indices: Vec<usize> = instance.parameters.iter().map(|setting| usize::from(setting.index)).collect();
        indices.sort_unstable();
        let is_twice = indices.windows(2).any(|pair| pair[0] == pair[1]);
        let is_beyond = indices.last().is_some_and(|index| *index >= manifest.parameters.len());
        let mut bound = instance.endpoints.iter().zip(&manifest.endpoints).filter(|(path, _)| path.is_some());
        let is_bound = bound.any(|(_, slot)| !matches!(slot.source, Source::Path(_)));
        if is_twice || is_beyond || is_bound || lengths.iter().any(|(has, wants)| has != wants) {
            let what = format!("the settings of the instance `{name}` are not for its program `{}`", manifest.name);
            let at = (Field::row("program", row, "name"), "this program has others");
            self.refuse(Code::InstanceMalformed, name, what, "build the system image again", at);
            return;
        }
        for index in 0..manifest.parameters.len() {
            let mut settings = instance.parameters.iter();
            let setting = settings.find(|setting| usize::from(setting.index) == index);
            self.parameter((row, instance), (index, manifest), setting.map(|setting| &setting.setting));
        }
    }

    fn parameter(
        &mut self,
        (row, instance): (usize, &Instance),
        (index, manifest): (usize, &Manifest),
        setting: Option<&Setting>,
    ) {
        let (name, field) = (&instance.name, Field::row("program", row, "parameters").item(index));
        let Some(parameter) = manifest.parameters.get(index) else { return };
        let values = match setting {
            None if parameter.required => {
                let what = format!(
                    "the instance `{name}` gets no value for `{}`, without which `{}` does not start",
                    parameter.name, manifest.name
                );
                let remedy = format!(
                    "let the system manifest say `parameters = {{ {} = ... }}`, of the type `{}`, or start it by hand",
                    parameter.name, parameter.kind
                );
                return self.refuse(Code::ParameterMissing, name, what, remedy, (field, "it gets no value here"));
            }
            None | Some(Setting::FromRoot(_)) => return,
            Some(Setting::Values(values)) => values,
        };
        let list = format!("the value of `{}` of the instance `{name}`", parameter.name);
        self.findings.extend(long_list(name, &list, values.len(), field));
        if values.iter().any(|value| !does_fit(value, parameter.kind)) {
            let what = format!(
                "the instance `{name}` sets `{}` to what is not of the type `{}`",
                parameter.name, parameter.kind
            );
            let remedy = format!("let the system manifest give {}", wanted(parameter.kind));
            self.refuse(Code::SettingType, name, what, remedy, (field, "of another type"));
        } else if !parameter.repeated && values.len() != 1 {
            let what = format!("the instance `{name}` sets `{}`, which takes one value, to a list", parameter.name);
            let remedy = format!("let the system manifest give {}", wanted(parameter.kind));
            self.refuse(Code::SettingType, name, what, remedy, (field, "one value is wanted"));
        }
    }

    /// Endpoints bound to paths: their provider starts before the instance, and a rule permits the binding.
    fn endpoints(&mut self, row: usize, instance: &Instance, manifest: &Manifest) {
        for (number, slot) in manifest.endpoints.iter().enumerate() {
            let Some(path) = bound_path(instance, manifest, number) else { continue };
            let field = Field::row("program", row, "endpoints").item(number);
            let contract = manifest.contracts.get(usize::from(slot.contract));
            if let Some(contract) = contract.filter(|_| !slot.optional) {
                let found = self.provided(instance, slot, contract, path);
                self.findings.extend(found.map(|finding| finding.at(field, "cannot be bound")));
            }
            if !self.system.may_bind(&manifest.principal(), path) {
                let finding = bind_refused(&instance.name, manifest, slot, path);
                self.findings.push(finding.at(field, "may not be bound"));
            }
        }
    }

    fn provided(
        &self,
        instance: &Instance,
        slot: &EndpointSlot,
        contract: &ContractUse,
        path: &str,
    ) -> Option<Finding> {
        let program = match provider_of(self.system, |name| self.find(name), path, &contract.name) {
            Some(Provider::Instance(index)) => &self.system.instances.get(index)?.program,
            Some(Provider::Root) => &self.system.root,
            None => return Some(no_provider(&instance.name, slot, contract, path)),
        };
        other_version(&instance.name, self.find(program)?, contract, path)
    }

    fn order(&mut self) {
        let Err(OrderError::Cycle { instances }) = boot_order(self.system, |name| self.find(name)) else { return };
        let rows = || instances.iter().filter_map(|&row| Some((row, self.system.instances.get(row)?)));
        let mut names: Vec<String> = rows().map(|(_, instance)| format!("`{}`", instance.name)).collect();
        names.extend(names.first().cloned());
        let what = format!("instances wait for each other: {}", names.join(" needs "));
        let remedy = "let one of the endpoints be `optional = true` in its manifest, or take a `requires` out";
        let subject = rows().next().map_or(String::new(), |(_, instance)| instance.name.to_string());
        let label = if instances.len() == 1 { "needs itself" } else { "needs the next" };
        let mut finding = Finding::new(Code::BootCycle, &subject, what, remedy);
        for (row, _) in rows() {
            finding = finding.at(Field::row("program", row, "instance"), label);
        }
        self.findings.push(finding);
    }
}

//! Contents of a system: its manifest, and the manifests of its programs.

use alloc::string::String;
use alloc::vec::Vec;

use manifest_model::{Bind, Instance, Manifest, PublicKey, Setting, Source, SystemManifest, Value};

use crate::code::Code;
use crate::report::Finding;

/// A program of a system, or a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its manifest.
    pub manifest: Manifest,
    /// Key that signed its package.
    pub key: PublicKey,
}

impl Program {
    /// Returns whether its package is unsigned.
    pub fn is_unsigned(&self) -> bool {
        self.key == PublicKey::NONE
    }
}

/// A current or future system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// System manifest, with its instances and settings.
    pub system: SystemManifest,
    /// Programs with a package.
    pub programs: Vec<Program>,
}

impl Installed {
    /// The program of this name.
    pub fn program(&self, name: &str) -> Option<&Program> {
        self.programs.iter().find(|program| program.manifest.name == name)
    }

    /// The manifest of the program of this name.
    pub fn manifest(&self, name: &str) -> Option<&Manifest> {
        self.program(name).map(|program| &program.manifest)
    }

    /// Returns every instance whose program is installed, with the program's manifest.
    pub fn instances(&self) -> impl Iterator<Item = (&Instance, &Manifest)> {
        self.system.instances.iter().filter_map(|instance| Some((instance, self.manifest(&instance.program)?)))
    }
}

/// A change of a system.
#[derive(Clone, Debug)]
pub enum Change<'a> {
    /// Adds a program.
    Install {
        /// The program.
        program: &'a Program,
        /// Whether an instance of it starts at boot, with the defaults of its manifest; otherwise other programs start
        /// it.
        at_boot: bool,
        /// Patterns of the paths that a new rule lets it bind, besides those of existing rules.
        allow: &'a [String],
    },
    /// Replaces an installed program by a newer version.
    Upgrade {
        /// The newer one.
        program: &'a Program,
        /// Whether it may gain permissions and reach beyond those of the previous version.
        more: bool,
    },
    /// Removes a program, its instances and the rules that name it alone.
    Uninstall {
        /// Its name.
        name: &'a str,
    },
}

impl Change<'_> {
    /// Name of the affected program.
    pub fn name(&self) -> &str {
        match self {
            Change::Install { program, .. } | Change::Upgrade { program, .. } => &program.manifest.name,
            Change::Uninstall { name } => name,
        }
    }

    /// Returns the system after the change, valid or not, and findings for settings of the program that cannot be kept.
    pub fn apply(&self, installed: &Installed) -> (Installed, Vec<Finding>) {
        let mut after = installed.clone();
        let mut findings = Vec::new();
        match self {
            Change::Install { program, at_boot, allow } => add(&mut after, program, *at_boot, allow),
            Change::Upgrade { program, .. } => replace(&mut after, program, &mut findings),
            Change::Uninstall { name } => remove(&mut after, name),
        }
        (after, findings)
    }
}

/// Returns the subject of the rule for one program alone, however it was invoked.
pub(crate) fn rule_of(manifest: &Manifest) -> String {
    let mut who = String::from("..");
    who.push_str(&manifest.principal());
    who
}

fn add(after: &mut Installed, program: &Program, at_boot: bool, allow: &[String]) {
    let manifest = &program.manifest;
    after.programs.push(program.clone());
    if at_boot {
        after.system.instances.push(Instance::of(manifest));
    } else {
        after.system.installed.push(manifest.name.clone());
    }
    let who = rule_of(manifest);
    after.system.binds.extend(allow.iter().map(|path| Bind { who: who.clone(), path: path.clone() }));
}

fn remove(after: &mut Installed, name: &str) {
    let whos: Vec<String> =
        after.manifest(name).map(|manifest| Vec::from([rule_of(manifest), manifest.principal()])).unwrap_or_default();
    after.programs.retain(|program| program.manifest.name != name);
    after.system.installed.retain(|installed| installed != name);
    after.system.instances.retain(|instance| instance.program != name);
    after.system.binds.retain(|bind| !whos.contains(&bind.who));
}

fn replace(after: &mut Installed, program: &Program, findings: &mut Vec<Finding>) {
    let Some(place) = after.programs.iter_mut().find(|old| old.manifest.name == program.manifest.name) else { return };
    let old = core::mem::replace(place, program.clone());
    for instance in &mut after.system.instances {
        if instance.program == program.manifest.name {
            *instance = carried_over(instance, &old.manifest, &program.manifest, findings);
        }
    }
}

/// Returns the instance with its settings, which refer to items by index, renumbered for the new manifest.
fn carried_over(instance: &Instance, old: &Manifest, new: &Manifest, findings: &mut Vec<Finding>) -> Instance {
    let mut out = Instance {
        name: instance.name.clone(),
        optional: instance.optional,
        requires: instance.requires.clone(),
        after: instance.after.clone(),
        ..Instance::of(new)
    };
    let mut lost = |code, what: &str, name: &str| {
        let text =
            alloc::format!("the instance `{}` sets the {what} `{name}`, which the new version lacks", instance.name);
        let remedy = "keep it in the new version, or take the setting out of the system manifest first";
        findings.push(Finding::new(code, &instance.name, text, remedy));
    };
    for setting in &instance.parameters {
        let Some(known) = old.parameters.get(usize::from(setting.index)) else { continue };
        match new.parameter(&known.name) {
            Some((index, _)) => {
                let Ok(index) = u16::try_from(index) else { continue };
                out.parameters.push(manifest_model::ParameterSetting { index, setting: setting.setting.clone() });
            }
            None => lost(Code::SettingLost, "parameter", &known.name),
        }
    }
    for (need, name) in old.devices.iter().zip(&instance.devices).filter(|(need, name)| need.name != **name) {
        match new.devices.iter().position(|other| other.name == need.name && !other.is_fixed()) {
            Some(index) => out.devices[index].clone_from(name),
            None => lost(Code::DeviceLost, "device", &need.name),
        }
    }
    for (provide, path) in old.provides.iter().zip(&instance.provides).filter(|(provide, path)| provide.path != **path)
    {
        match new.provides.iter().position(|other| other.path == provide.path) {
            Some(index) => out.provides[index].clone_from(path),
            None => lost(Code::ProvideLost, "provided path", &provide.path),
        }
    }
    for (slot, path) in old.endpoints.iter().zip(&instance.endpoints) {
        let Some(path) = path else { continue };
        match new.endpoint(&slot.name).filter(|(_, slot)| matches!(slot.source, Source::Path(_))) {
            Some((index, _)) => out.endpoints[index] = Some(path.clone()),
            None => lost(Code::EndpointLost, "endpoint", &slot.name),
        }
    }
    out
}

/// Returns the texts of a program's parameters: those of its instances, and the defaults where an instance sets none.
pub(crate) fn parameter_texts<'a>(installed: &'a Installed, program: &'a Manifest) -> Vec<(&'a str, &'a str)> {
    let mut texts = Vec::new();
    let text = |value: &'a Value| match value {
        Value::Text(text) => Some(text.as_str()),
        _ => None,
    };
    let instances: Vec<&Instance> =
        installed.system.instances.iter().filter(|instance| instance.program == program.name).collect();
    for (index, parameter) in program.parameters.iter().enumerate() {
        let set: Vec<_> = instances
            .iter()
            .map(|instance| instance.parameters.iter().find(|setting| usize::from(setting.index) == index))
            .collect();
        for setting in set.iter().flatten() {
            if let Setting::Values(values) = &setting.setting {
                texts.extend(values.iter().filter_map(text).map(|text| (parameter.name.as_str(), text)));
            }
        }
        if set.is_empty() || set.iter().any(Option::is_none) {
            texts.extend(parameter.default.iter().filter_map(text).map(|text| (parameter.name.as_str(), text)));
        }
    }
    texts
}

/// Returns the programs of the system that the program's parameters name, each with the parameter: those it starts.
pub(crate) fn named_programs<'a>(installed: &'a Installed, program: &'a Manifest) -> Vec<(&'a str, &'a str)> {
    let mut named = Vec::new();
    for (parameter, text) in parameter_texts(installed, program) {
        let words = text.split([' ', '=']).filter(|word| !word.is_empty());
        named.extend(words.map(|word| (parameter, word)).filter(|(_, word)| installed.program(word).is_some()));
    }
    named
}

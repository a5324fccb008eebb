//! A system manifest in resolved form: instances, their wiring, and access rules.

use alloc::string::String;
use alloc::vec::Vec;

use principal::Pattern;
use serde::{Deserialize, Serialize};

use crate::manifest::Value;
use crate::{Apart, Manifest, Trust, domain_of, pattern};

/// A whole system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemManifest {
    /// Name of the system.
    pub name: String,
    /// The root program, which the kernel starts and which starts all others.
    pub root: String,
    /// The instance whose exit ends the system; its exit status becomes the system's.
    pub primary: Option<String>,
    /// Instances in the order of the file. The crate `boot-order` computes the start order.
    pub instances: Vec<Instance>,
    /// Programs that can be started by name.
    pub installed: Vec<String>,
    /// Bind rules. A bind that no rule allows is denied.
    pub binds: Vec<Bind>,
    /// Reachability that must never exist. Not evaluated at run time: a change of the system that would violate one is
    /// rejected in advance.
    pub denies: Vec<Deny>,
    /// Hardware domains. A program that none takes runs in the kernel's own.
    pub domains: Vec<Apart>,
    /// Trusted publishers' keys, and keys that may sign a replacement system.
    pub trust: Trust,
}

impl SystemManifest {
    /// The instance with this name.
    pub fn instance(&self, name: &str) -> Option<&Instance> {
        self.instances.iter().find(|instance| instance.name == name)
    }

    /// Returns the hardware domain of a program; `None` for the kernel's own.
    pub fn domain_of(&self, program: &Manifest) -> Option<&Apart> {
        self.domains.get(domain_of(&self.domains, &self.root, program)?)
    }

    /// Each program of the system once: the root, those started at boot, those only installed.
    pub fn programs(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let all = self.instances.iter().map(|instance| instance.program.as_str());
        for name in [self.root.as_str()].into_iter().chain(all).chain(self.installed.iter().map(String::as_str)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Returns whether the principal may bind to the path. For repeated queries, parse the patterns once and keep
    /// them.
    pub fn may_bind(&self, principal: &str, path: &str) -> bool {
        let covers = |bind: &&Bind| pattern::matches(&bind.path, path);
        self.binds.iter().filter(covers).any(|bind| Pattern::parse(&bind.who).is_ok_and(|who| who.matches(principal)))
    }
}

/// A program instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Unique name.
    pub name: String,
    /// The program.
    pub program: String,
    /// Whether the system runs without it (and without the optional instances that depend on it) if one of its devices
    /// is missing once its dependencies are up.
    pub optional: bool,
    /// Values for parameters of its manifest; the others have their defaults.
    pub parameters: Vec<ParameterSetting>,
    /// Machine device names for the devices of its manifest, by index.
    pub devices: Vec<String>,
    /// Registration path of each provided path of its manifest, by index.
    pub provides: Vec<String>,
    /// Paths to bind to for the endpoint slots of its manifest, by index, if the slot's source is a path.
    pub endpoints: Vec<Option<String>>,
    /// Names of instances that must be started before it, besides the providers of its endpoints.
    pub requires: Vec<String>,
    /// Optional dependencies: instances that start before it if they run at all.
    pub after: Vec<String>,
}

impl Instance {
    /// Creates an instance with the program's own name and its manifest's defaults.
    pub fn of(manifest: &Manifest) -> Instance {
        Instance {
            name: manifest.name.clone(),
            program: manifest.name.clone(),
            optional: false,
            parameters: Vec::new(),
            devices: manifest.devices.iter().map(|device| device.name.clone()).collect(),
            provides: manifest.provides.iter().map(|provide| provide.path.clone()).collect(),
            endpoints: manifest.endpoints.iter().map(|_| None).collect(),
            requires: Vec::new(),
            after: Vec::new(),
        }
    }
}

/// A value for a parameter of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterSetting {
    /// Index into the parameters of the program's manifest.
    pub index: u16,
    /// Source of the value.
    pub setting: Setting,
}

/// Source of a parameter's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Setting {
    /// From the system manifest; several for a repeated parameter.
    Values(Vec<Value>),
    /// Value of the root program's parameter of this name; unset if that is.
    FromRoot(String),
}

/// A rule that allows binding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// [Pattern] over principals.
    pub who: String,
    /// [Pattern](crate::pattern) over paths.
    pub path: String,
}

/// A system-wide guarantee: no program that `who` matches can obtain, directly or indirectly, an endpoint to anything
/// at `reach`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deny {
    /// [Pattern] over `program.publisher`, the last link of a principal.
    pub who: String,
    /// [Pattern](crate::pattern) over paths.
    pub reach: String,
}

//! What the machine carries: the system manifest, the manifests of the installed programs, and what this
//! program itself was told at boot.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use package::{Instance, Manifest, SystemManifest};

/// The machine as its root program sees it.
pub struct Machine {
    system: SystemManifest,
    programs: Vec<Manifest>,
    disks: u64,
}

impl Machine {
    /// Reads everything. `disks` is how many disks the machine has.
    pub fn read(disks: u64) -> Result<Machine, String> {
        let bytes =
            sip::diagnostics::system_manifest().map_err(|status| format!("no system manifest: {}", status.text()))?;
        let system = SystemManifest::decode(&bytes)
            .map_err(|_| String::from("the system manifest cannot be read; build the system image again"))?;
        let mut programs = Vec::new();
        for bytes in contracts::programs::manifests() {
            let manifest = Manifest::decode(&bytes)
                .map_err(|_| format!("the manifest of program {} cannot be read; build it again", programs.len()))?;
            programs.push(manifest);
        }
        Ok(Machine { system, programs, disks })
    }

    /// The system manifest.
    pub fn system(&self) -> &SystemManifest {
        &self.system
    }

    /// The instance with this index.
    pub fn instance(&self, index: usize) -> &Instance {
        &self.system.instances[index]
    }

    /// The manifest of the program with this name.
    pub fn program(&self, name: &str) -> Option<&Manifest> {
        self.programs.iter().find(|manifest| manifest.name == name)
    }

    /// Indices of the instances that this machine can run, in the order in which they start.
    pub fn boot_order(&self) -> Result<Vec<usize>, String> {
        let order = package::boot_order(&self.system, |name| self.program(name))
            .map_err(|error| format!("the system manifest has no boot order: {error:?}; `sing check` tells more"))?;
        let runs = package::runnable(&self.system, |name| self.program(name), |device| self.has_device(device));
        Ok(order.into_iter().filter(|&index| runs[index]).collect())
    }

    /// What this program was given for its own parameter of this name.
    pub fn own_parameter(&self, name: &str) -> Option<String> {
        let (index, _) = self.program(&self.system.root)?.parameter(name)?;
        let bytes = sip::config::parameter_bytes(index).ok()??;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Disks are counted from `disk0`; every machine has its other devices.
    fn has_device(&self, name: &str) -> bool {
        match name.strip_prefix("disk").map(str::parse::<u64>) {
            Some(Ok(number)) => number < self.disks,
            _ => true,
        }
    }
}

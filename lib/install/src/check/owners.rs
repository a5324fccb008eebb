//! Checks that each device, register range, interrupt and path has a single owner.
//!
//! Devices of one program may be views of the same registers and share an interrupt line: they have one owner.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use manifest_model::{AddressRange, DeviceNeed, Instance, Manifest, SystemManifest};

use crate::check::wiring::place_of;
use crate::code::Code;
use crate::field::Field;
use crate::report::Finding;

/// Returns all conflicts in the system.
pub(crate) fn findings(system: &SystemManifest, programs: &[&Manifest]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, manifest) in programs.iter().enumerate() {
        findings.extend(programs[..index].iter().flat_map(|other| shared(system, manifest, other)));
        findings.extend(shared_with_itself(system, manifest));
    }
    findings.extend(devices(system, programs));
    findings.extend(paths(system, programs));
    findings
}

fn instances<'a>(
    system: &'a SystemManifest,
    programs: &'a [&'a Manifest],
) -> impl Iterator<Item = (usize, &'a Instance, &'a Manifest)> {
    let find = |name: &str| programs.iter().copied().find(|manifest| manifest.name == name);
    let rows = system.instances.iter().enumerate();
    rows.filter_map(move |(row, instance)| Some((row, instance, find(&instance.program)?)))
}

/// A kind of registers: code of its conflicts, name, and accessor.
type Registers = (Code, &'static str, fn(&DeviceNeed) -> &[AddressRange]);

const REGISTERS: [Registers; 2] = [
    (Code::PortsOverlap, "I/O port range", |device| &device.ports),
    (Code::MemoryOverlap, "device memory range", |device| &device.memory),
];

/// Returns conflicts between the fixed resources of two programs.
fn shared(system: &SystemManifest, manifest: &Manifest, other: &Manifest) -> Vec<Finding> {
    let mut findings = Vec::new();
    let places = [(place_of(system, &manifest.name), "claimed again"), (place_of(system, &other.name), "claimed here")];
    let remedy = format!("let the system do without `{}` or `{}`", manifest.name, other.name);
    let mut refuse = |code, what| {
        let finding = Finding::new(code, &manifest.name, what, remedy.clone());
        findings.push(places.iter().fold(finding, |finding, (field, label)| finding.at(*field, label)));
    };
    for (code, kind, registers) in REGISTERS {
        let ranges = |manifest: &Manifest| -> Vec<AddressRange> {
            manifest.devices.iter().flat_map(registers).copied().collect()
        };
        let theirs = ranges(other);
        let met = |one: AddressRange| Some((one, *theirs.iter().find(|two| one.overlaps(two))?));
        if let Some((one, two)) = ranges(manifest).into_iter().find_map(met) {
            refuse(code, format!("the {kind} {one} of `{}` overlaps {two} of `{}`", manifest.name, other.name));
        }
    }
    if let Some(line) = lines(manifest).find(|line| lines(other).any(|theirs| theirs == *line)) {
        refuse(
            Code::InterruptShared,
            format!("the interrupt {line} of `{}` is that of `{}` too", manifest.name, other.name),
        );
    }
    findings
}

/// Interrupts fixed by the manifest.
fn lines(manifest: &Manifest) -> impl Iterator<Item = u32> {
    manifest.devices.iter().flat_map(|device| device.interrupts.iter().copied())
}

/// Returns conflicts between several instances of a program with fixed resources.
fn shared_with_itself(system: &SystemManifest, manifest: &Manifest) -> Vec<Finding> {
    let rows = system.instances.iter().enumerate();
    let mut rows = rows.filter(|(_, instance)| instance.program == manifest.name);
    let Some((first, owner)) = rows.next() else { return Vec::new() };
    let registers = REGISTERS.into_iter().filter_map(|(code, kind, registers)| {
        let range = manifest.devices.iter().flat_map(registers).next()?;
        Some((code, format!("{kind} {range}")))
    });
    let line = lines(manifest).next().map(|line| (Code::InterruptShared, format!("interrupt {line}")));
    let fixed: Vec<(Code, _)> = registers.chain(line).collect();
    let mut findings = Vec::new();
    for (row, instance) in rows {
        for (code, what) in &fixed {
            let what = format!(
                "the {what} of `{}` would have two owners, the instances `{}` and `{}`",
                manifest.name, owner.name, instance.name
            );
            let remedy = "let the system have one of the two instances only";
            let finding = Finding::new(*code, &manifest.name, what, remedy);
            let field = |row| Field::row("program", row, "instance");
            findings.push(finding.at(field(row), "claimed again").at(field(first), "claimed here"));
        }
    }
    findings
}

/// Checks devices that are identified by name.
fn devices(system: &SystemManifest, programs: &[&Manifest]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut taken: Vec<(&str, &str, Field)> = Vec::new();
    for (row, instance, manifest) in instances(system, programs) {
        let needs = manifest.devices.iter().zip(&instance.devices).enumerate();
        for (index, (need, device)) in needs.filter(|(_, (need, _))| !need.is_fixed()) {
            let field = Field::row("program", row, "devices").item(index);
            let Some((_, owner, first)) = taken.iter().find(|(name, ..)| *name == device.as_str()) else {
                taken.push((device, &instance.name, field));
                continue;
            };
            let what = format!("the device `{device}` is that of the instance `{owner}`, not of `{}`", instance.name);
            let remedy = format!(
                "give one of them another device in the system manifest: `devices = {{ {} = \"...\" }}`",
                need.name
            );
            let finding = Finding::new(Code::DeviceTaken, &instance.name, what, remedy);
            findings.push(finding.at(field, "claimed again").at(*first, "claimed here"));
        }
    }
    findings
}

fn paths(system: &SystemManifest, programs: &[&Manifest]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let root = programs.iter().filter(|manifest| manifest.name == system.root).take(1);
    let of_root = root.flat_map(|root| root.provides.iter().map(|provide| (provide.path.as_str(), root.name.as_str())));
    let mut taken: Vec<(&str, &str, Field)> =
        of_root.map(|(path, root)| (path, root, Field::of("system", "root"))).collect();
    for (row, instance, manifest) in instances(system, programs) {
        for (index, path) in instance.provides.iter().enumerate() {
            let field = Field::row("program", row, "provides").item(index);
            let Some((_, owner, first)) = taken.iter().find(|(other, ..)| *other == path.as_str()) else {
                taken.push((path, &instance.name, field));
                continue;
            };
            let what = format!("{path} is provided by `{owner}`, not by `{}`", instance.name);
            let own = manifest.provides.get(index).map_or(path.to_string(), |provide| provide.path.clone());
            let remedy =
                format!("give one of them another path in the system manifest: `provides = {{ \"{own}\" = \"...\" }}`");
            let finding = Finding::new(Code::PathTaken, &instance.name, what, remedy);
            findings.push(finding.at(field, "provided again").at(*first, "provided here"));
        }
    }
    findings
}

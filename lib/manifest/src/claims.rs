//! What only one instance of a system can have: a device, a register, an interrupt, a path.
//!
//! Devices of one program may be views of the same registers and share a line, as the installer says too: they are
//! one owner's.

use manifest_model::AddressRange;

use crate::diagnostic::Code;
use crate::reader::{Report, Span};
use crate::system::Entry;

/// Something that an instance has, and where the file says so.
struct Claim<'a, T> {
    what: T,
    owner: &'a str,
    span: &'a Span,
}

/// Reports what two instances have.
pub(crate) fn check(report: &Report, entries: &[Entry<'_>]) {
    devices(report, entries);
    paths(report, entries);
    ranges(report, entries, "I/O port range", |need| &need.ports);
    ranges(report, entries, "device memory range", |need| &need.memory);
    interrupts(report, entries);
}

/// Devices that are found by their names.
fn devices(report: &Report, entries: &[Entry<'_>]) {
    let mut claims: Vec<Claim<'_, &str>> = Vec::new();
    for entry in entries {
        let owner = entry.instance.name.as_str();
        let needs = entry.instance.devices.iter().zip(&entry.devices).zip(&entry.manifest.devices);
        for ((name, span), need) in needs.filter(|(_, need)| !need.is_fixed()) {
            if let Some(first) = claims.iter().find(|claim| claim.what == name) {
                let message = format!("the device `{name}` is claimed by `{}` and by `{owner}`", first.owner);
                let remedy = format!("give one of them another device: `devices = {{ {} = \"...\" }}`", need.name);
                let places = ((span, "claimed again"), (first.span, "claimed here"));
                report.add_second(Code::DeviceClaimedTwice, message, places.0, places.1, remedy);
            }
            claims.push(Claim { what: name, owner, span });
        }
    }
}

fn paths(report: &Report, entries: &[Entry<'_>]) {
    let mut claims: Vec<Claim<'_, &str>> = Vec::new();
    for entry in entries {
        let owner = entry.instance.name.as_str();
        for (path, span) in entry.instance.provides.iter().zip(&entry.provides) {
            if let Some(first) = claims.iter().find(|claim| claim.what == path) {
                let message = format!("the path `{path}` is provided by `{}` and by `{owner}`", first.owner);
                let remedy = format!("let one of them provide another: `provides = {{ \"{path}\" = \"...\" }}`");
                let places = ((span, "provided again"), (first.span, "provided here"));
                report.add_second(Code::PathProvidedTwice, message, places.0, places.1, remedy);
            }
            claims.push(Claim { what: path, owner, span });
        }
    }
}

/// Ranges that manifests fix.
fn ranges(
    report: &Report,
    entries: &[Entry<'_>],
    kind: &str,
    ranges_of: impl Fn(&manifest_model::DeviceNeed) -> &Vec<AddressRange>,
) {
    let mut claims: Vec<Claim<'_, AddressRange>> = Vec::new();
    for entry in entries {
        let owner = entry.instance.name.as_str();
        for (&range, need) in
            entry.manifest.devices.iter().flat_map(|need| ranges_of(need).iter().map(move |r| (r, need)))
        {
            let taken = |claim: &&Claim<'_, AddressRange>| claim.what.overlaps(&range) && claim.owner != owner;
            if let Some(first) = claims.iter().find(taken) {
                let message = if first.what == range {
                    format!("the {kind} {range} is claimed by `{}` and by `{owner}`", first.owner)
                } else {
                    format!("the {kind} {} of `{}` overlaps {range} of `{owner}`", first.what, first.owner)
                };
                let remedy = remedy(&need.name, &entry.manifest.name);
                let places = ((&entry.name, "claimed again"), (first.span, "claimed here"));
                report.add_second(Code::RangeClaimedTwice, message, places.0, places.1, remedy);
            }
            claims.push(Claim { what: range, owner, span: &entry.name });
        }
    }
}

/// Interrupts that manifests fix.
fn interrupts(report: &Report, entries: &[Entry<'_>]) {
    let mut claims: Vec<Claim<'_, u32>> = Vec::new();
    for entry in entries {
        let owner = entry.instance.name.as_str();
        for (&line, need) in
            entry.manifest.devices.iter().flat_map(|need| need.interrupts.iter().map(move |line| (line, need)))
        {
            if let Some(first) = claims.iter().find(|claim| claim.what == line && claim.owner != owner) {
                let message = format!("the interrupt {line} is claimed by `{}` and by `{owner}`", first.owner);
                let remedy = remedy(&need.name, &entry.manifest.name);
                let places = ((&entry.name, "claimed again"), (first.span, "claimed here"));
                report.add_second(Code::InterruptClaimedTwice, message, places.0, places.1, remedy);
            }
            claims.push(Claim { what: line, owner, span: &entry.name });
        }
    }
}

fn remedy(device: &str, program: &str) -> String {
    format!("remove one of the two instances, or change the device `{device}` in the manifest of `{program}`")
}

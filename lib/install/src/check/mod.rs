//! Checks: faults that a change would introduce, and properties proved of it.

pub(crate) mod dependencies;
pub(crate) mod domains;
pub(crate) mod manifest;
pub(crate) mod names;
pub(crate) mod owners;
pub(crate) mod policy;
pub(crate) mod proofs;
pub(crate) mod system;
pub(crate) mod wiring;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use manifest_model::Permission;

use crate::code::{Code, Topic};
use crate::installed::{Change, Installed, Program};
use crate::reach::Map;
use crate::report::{Finding, Line, Report};

/// Checks a change of a system; changes nothing. Faults that the system already has do not count against it.
pub fn check(installed: &Installed, change: &Change<'_>) -> Report {
    let early = match change {
        Change::Install { program, .. } => new_program(installed, program),
        Change::Upgrade { program, .. } => newer_program(installed, program),
        Change::Uninstall { name } => removable(installed, name),
    };
    if !early.is_empty() {
        return refused(early);
    }
    let before = Map::of(installed);
    let (after, mut findings) = change.apply(installed);
    let map = Map::of(&after);
    let old = system::findings(installed, &before);
    let new = system::findings(&after, &map).into_iter().filter(|finding| !old.iter().any(|old| old.is_same(finding)));
    findings.extend(new.map(|finding| told_of_others(finding, change)));
    if let Change::Uninstall { name } = change {
        findings.extend(started_by_name(installed, name));
    }
    if let Change::Upgrade { program, more: false } = change {
        findings.extend(beyond(installed, program, &before, &map));
    }
    let mut report = Report::default();
    proofs::add(&mut report, installed, &after, change);
    let spoiled: Vec<Topic> = findings.iter().map(|finding| finding.code.topic()).collect();
    report.lines.retain(|line| !spoiled.contains(&line.topic));
    report.lines.extend(findings.into_iter().map(Line::refused));
    report.reach = map.reach(change.name()).map(Box::new);
    report.sort();
    report
}

/// Checks a system as it is.
pub fn verify(installed: &Installed) -> Report {
    let map = Map::of(installed);
    let mut findings: Vec<Finding> = Vec::new();
    for program in &installed.programs {
        findings.extend(
            manifest::findings(&program.manifest).into_iter().map(|finding| named(finding, &program.manifest.name)),
        );
    }
    findings.extend(system::findings(installed, &map));
    let (unused, wrong): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(|finding| can_be_lived_with(installed, finding));
    let mut report = Report::default();
    proofs::of_system(&mut report, installed);
    let spoiled: Vec<Topic> = wrong.iter().map(|finding| finding.code.topic()).collect();
    report.lines.retain(|line| !spoiled.contains(&line.topic));
    report.lines.extend(wrong.into_iter().map(Line::refused));
    report.lines.extend(unused.into_iter().map(Line::noted));
    report.sort();
    report
}

/// Returns violations of the system's promises, its `[[deny]]`.
pub fn promises(installed: &Installed) -> Vec<Finding> {
    let mut findings = wiring::promises(&installed.system.denies, &installed.system.name);
    findings.extend(policy::findings(installed, &Map::of(installed)));
    findings
}

/// Returns a report of refusals only.
pub(crate) fn refused(findings: Vec<Finding>) -> Report {
    let mut report = Report { lines: findings.into_iter().map(Line::refused).collect(), reach: None };
    report.sort();
    report
}

/// Returns whether a fault is tolerable: a command that cannot work in this system may be installed all the same; a
/// service must work.
fn can_be_lived_with(installed: &Installed, finding: &Finding) -> bool {
    let of_command =
        matches!(finding.code, Code::NoProvider | Code::BindRefused | Code::NoParent | Code::OtherContractVersion);
    let mut runs = installed.system.instances.iter();
    let is_service = runs.any(|instance| instance.program == finding.subject || instance.name == finding.subject);
    // Endpoints that a service does not get at its start are optional.
    matches!(finding.code, Code::NoExporter | Code::ScriptWithoutShell) || (of_command && !is_service)
}

fn named(finding: Finding, program: &str) -> Finding {
    Finding { what: format!("`{program}`: {}", finding.what), ..finding }
}

/// Blames the change for a fault of another program.
fn told_of_others(finding: Finding, change: &Change<'_>) -> Finding {
    if finding.subject == change.name() || finding.code.topic() == Topic::Policy {
        return finding;
    }
    let deed = match change {
        Change::Install { .. } => "installing",
        Change::Upgrade { .. } => "upgrading",
        Change::Uninstall { .. } => "taking out",
    };
    Finding {
        what: format!("{deed} `{}` would break `{}`: {}", change.name(), finding.subject, finding.what),
        ..finding
    }
}

fn new_program(installed: &Installed, program: &Program) -> Vec<Finding> {
    let mut findings = manifest::findings(&program.manifest);
    let name = &program.manifest.name;
    if let Some(there) = installed.manifest(name) {
        let what = format!("`{}` {} is installed under this name", there.principal(), there.version);
        let remedy = format!("use `cargo sing upgrade` for a newer version, or take `{name}` out first");
        findings.push(Finding::new(Code::AlreadyInstalled, name, what, remedy));
    }
    findings.extend(names::findings(installed, program));
    findings
}

fn newer_program(installed: &Installed, program: &Program) -> Vec<Finding> {
    let mut findings = manifest::findings(&program.manifest);
    let manifest = &program.manifest;
    let name = &manifest.name;
    let Some(there) = installed.program(name) else {
        findings.extend(not_installed(installed, name));
        return findings;
    };
    let old = &there.manifest;
    if old.publisher != manifest.publisher {
        let what = format!("`{name}` is of the publisher `{}`, and this is of `{}`", old.publisher, manifest.publisher);
        let remedy = format!("take `{name}` out first if the other publisher's is wanted in its place");
        findings.push(Finding::new(Code::OtherPublisher, name, what, remedy));
    }
    if program.is_unsigned() && !there.is_unsigned() {
        let what = format!("`{name}` is signed with the key {:#}, and this one is signed by nobody", there.key);
        let remedy = format!("have `{}` sign it", manifest.publisher);
        findings.push(Finding::new(Code::SignatureLost, name, what, remedy));
    }
    if manifest.version < old.version {
        let what = format!("`{name}` {} is older than {}, which is installed", manifest.version, old.version);
        let remedy = format!("take `{name}` out first if the older one is wanted");
        findings.push(Finding::new(Code::OlderVersion, name, what, remedy));
    }
    if manifest.version == old.version && old != manifest {
        let what =
            format!("`{name}` {} is installed, and this is another program of the same version", manifest.version);
        findings.push(Finding::new(Code::SameVersion, name, what, "raise the version in its manifest"));
    }
    findings
}

fn not_installed(installed: &Installed, name: &str) -> Option<Finding> {
    if installed.program(name).is_some() {
        return None;
    }
    let instance = installed.system.instance(name);
    if let Some(program) = instance.map(|instance| &instance.program) {
        let what = format!("`{name}` is not a program, but an instance of `{program}`");
        let remedy = format!("name `{program}` if that is meant: the system starts it");
        return Some(Finding::new(Code::NotInstalled, name, what, remedy));
    }
    let what = format!("no program `{name}` is installed");
    let remedy = match names::nearest(installed, name) {
        Some(other) => format!("name `{other}` if that is meant, which is installed"),
        None => {
            let mut names: Vec<&str> =
                installed.programs.iter().map(|program| program.manifest.name.as_str()).collect();
            names.sort_unstable();
            format!("name one of: {}", names.join(", "))
        }
    };
    Some(Finding::new(Code::NotInstalled, name, what, remedy))
}

fn removable(installed: &Installed, name: &str) -> Vec<Finding> {
    if let Some(finding) = names::no_name(name) {
        return Vec::from([finding]);
    }
    let mut findings: Vec<Finding> = not_installed(installed, name).into_iter().collect();
    if installed.system.root == name {
        let what = format!("`{name}` is the root program: without it the system does not start");
        findings.push(Finding::new(Code::RootProgram, name, what, "build a system with another root"));
    }
    findings
}

/// Returns findings for programs that start the removed one, by its name in a parameter.
fn started_by_name(installed: &Installed, name: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for other in installed.programs.iter().map(|program| &program.manifest) {
        if other.name == name || other.quota.children == 0 {
            continue;
        }
        let named = crate::installed::named_programs(installed, other);
        if let Some((parameter, _)) = named.iter().find(|(_, program)| *program == name) {
            let what = format!(
                "taking out `{name}` would break `{}`, which starts it: its parameter `{parameter}` names it",
                other.name
            );
            let remedy = format!("set `{parameter}` of `{}` to another program first", other.name);
            findings.push(Finding::new(Code::NamedInParameter, &other.name, what, remedy));
        }
    }
    findings
}

/// Returns a finding if an upgrade would reach more than the previous version.
fn beyond(installed: &Installed, program: &Program, before: &Map<'_>, after: &Map<'_>) -> Option<Finding> {
    let name = &program.manifest.name;
    let old = &installed.program(name)?.manifest;
    let new: Vec<Permission> =
        program.manifest.permissions.iter().filter(|permission| !old.permits(**permission)).copied().collect();
    let more: Vec<String> = match (before.reach(name), after.reach(name)) {
        (Some(before), Some(after)) => after.beyond(&before),
        _ => new.iter().map(ToString::to_string).collect(),
    };
    if more.is_empty() {
        return None;
    }
    let what = format!(
        "`{name}` {} would come to have what {} has not: {}",
        program.manifest.version,
        old.version,
        more.join(", ")
    );
    Some(Finding::new(Code::MorePermissions, name, what, "agree to that with `--more`"))
}

//! Proved properties of a change: a line for each topic without a finding.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use manifest_model::{Domain, Manifest, Restart, Side, Source};

use crate::check::manifest::handles;
use crate::check::names;
use crate::code::Topic;
use crate::installed::{Change, Installed, Program};
use crate::report::{Line, Report};

pub(crate) fn add(report: &mut Report, before: &Installed, after: &Installed, change: &Change<'_>) {
    let mut prove = |topic, what: String| report.lines.push(Line::proved(topic, what));
    match change {
        Change::Install { program, .. } => {
            let manifest = &program.manifest;
            prove(Topic::Name, format!("`{}` {} is new here", manifest.principal(), manifest.version));
            of_program(&mut prove, after, manifest);
            report.lines.extend(place(after, program));
            if let Some(other) = names::similar(before, program) {
                let what = format!("`{}` is called nearly as `{other}`, which is another publisher's", manifest.name);
                report.lines.push(Line::note(Topic::Name, what));
            }
        }
        Change::Upgrade { program, .. } => {
            let manifest = &program.manifest;
            let old = before.manifest(&manifest.name).map_or(manifest.version, |old| old.version);
            prove(Topic::Name, format!("`{}` {old} becomes {}", manifest.principal(), manifest.version));
            of_program(&mut prove, after, manifest);
            report.lines.extend(place(after, program));
        }
        Change::Uninstall { name } => {
            prove(Topic::Name, format!("`{name}` is installed, and not the root program"));
            prove(Topic::Contracts, "nobody imports a contract that only it exports".into());
            prove(Topic::Endpoints, "nobody is bound to what it provides".into());
            prove(Topic::Dependencies, "nobody requires it".into());
        }
    }
    of_others(report, after, change.name());
}

/// Says in which hardware domain a program runs, if that is not the kernel's own; or that it does not run.
fn place(after: &Installed, program: &Program) -> Option<Line> {
    let manifest = &program.manifest;
    let has_image = manifest.code.image_digest().is_some();
    let line = match after.system.domain_of(manifest) {
        Some(domain) if domain.contains_any_code() => {
            let what = format!("each process of it has a hardware domain of its own (`{}`)", domain.name);
            Line::proved(Topic::System, what)
        }
        Some(domain) if domain.kind == Domain::Ring0 && !program.is_unsigned() => {
            let what = format!("it runs in the domain `{}`, with the processor's privileges", domain.name);
            Line::note(Topic::System, what)
        }
        _ if program.is_unsigned() && has_image => {
            let what = format!(
                "it does not run: no [[domain]] with `each = true` takes `{}`, which nobody has signed",
                manifest.principal()
            );
            Line::note(Topic::System, what)
        }
        Some(domain) => Line::proved(Topic::System, format!("it shares the hardware domain `{}`", domain.name)),
        None => return None,
    };
    Some(line).filter(|_| has_image)
}

/// Adds the properties of a whole system.
pub(crate) fn of_system(report: &mut Report, installed: &Installed) {
    let mut prove = |topic, what: &str| report.lines.push(Line::proved(topic, what));
    prove(Topic::Contracts, "what is imported is exported, in the same version");
    prove(Topic::Endpoints, "what endpoints are bound to is provided, and a rule allows it");
    prove(Topic::Devices, "no register, interrupt or device has two owners");
    prove(Topic::Paths, "no path has two providers");
    prove(Topic::Dependencies, "what programs require is there, without circles");
    prove(Topic::Parameters, "parameters, flags and texts can be used");
    prove(Topic::Quotas, "quotas are what programs can have");
    prove(Topic::Supervision, "restarts can work");
    of_others(report, installed, "");
}

fn of_others(report: &mut Report, after: &Installed, name: &str) {
    let others = after.programs.iter().filter(|program| program.manifest.name != name).count();
    let instances = after.system.instances.len();
    let what = format!("{others} other programs work as before; {instances} instances start, in an order");
    let whole = format!("{others} programs, each named by the system; {instances} instances start, in an order");
    report.lines.push(Line::proved(Topic::System, if name.is_empty() { whole } else { what }));
    let promises = after.system.denies.len();
    let what = match promises {
        0 => "nothing is promised of who reaches what".to_string(),
        1 => "the promise of who reaches what is kept".to_string(),
        _ => format!("the {promises} promises of who reaches what are kept"),
    };
    report.lines.push(Line::proved(Topic::Policy, what));
}

fn of_program(prove: &mut impl FnMut(Topic, String), after: &Installed, manifest: &Manifest) {
    prove(Topic::Contracts, contracts(after, manifest));
    prove(Topic::Endpoints, endpoints(manifest));
    let devices: Vec<&str> = manifest.devices.iter().map(|device| device.name.as_str()).collect();
    prove(Topic::Devices, list("no devices", &devices, "no register or interrupt of another driver: "));
    let paths: Vec<&str> = manifest.provides.iter().map(|provide| provide.path.as_str()).collect();
    prove(Topic::Paths, list("provides no path", &paths, "provides what nobody else does: "));
    let requires: Vec<String> = manifest.requires.iter().map(ToString::to_string).collect();
    let requires: Vec<&str> = requires.iter().map(String::as_str).collect();
    prove(Topic::Dependencies, list("requires no program", &requires, "installed, and without circles: "));
    let (parameters, flags) =
        (manifest.parameters.len(), manifest.parameters.iter().filter(|parameter| parameter.flag.is_some()).count());
    prove(Topic::Parameters, format!("{parameters} parameters, {flags} of them by flags"));
    let quota = &manifest.quota;
    prove(
        Topic::Quotas,
        format!(
            "{} KiB of memory, {} KiB of blocks, {} threads, {} handles, {} channels, {} children, {} KiB of stack",
            quota.memory_kib,
            quota.block_kib,
            quota.threads,
            quota.handles,
            quota.channels,
            quota.children,
            quota.stack_kib
        ),
    );
    let supervision = &manifest.supervision;
    let text = match supervision.restart {
        Restart::Never => "is not started again when it ends".to_string(),
        restart => format!(
            "is started again: {restart}, after {} to {} ms",
            supervision.backoff_ms, supervision.backoff_max_ms
        ),
    };
    prove(Topic::Supervision, text);
    let permissions: Vec<&str> = manifest.permissions.iter().map(|permission| permission.word()).collect();
    prove(Topic::Permissions, list("asks for none", &permissions, "asks for "));
}

fn list(none: &str, items: &[&str], some: &str) -> String {
    if items.is_empty() { none.into() } else { format!("{some}{}", items.join(", ")) }
}

fn contracts(after: &Installed, manifest: &Manifest) -> String {
    let mut met = Vec::new();
    for used in manifest.contracts.iter().filter(|used| handles(used.side, Side::Importer)) {
        let exports = |other: &&Manifest| {
            let mut theirs = other.contracts.iter();
            theirs.any(|theirs| theirs.fingerprint == used.fingerprint && handles(theirs.side, Side::Exporter))
        };
        let exporter = after.programs.iter().map(|program| &program.manifest).find(exports);
        met.extend(exporter.map(|exporter| format!("{} of `{}`", used.name, exporter.name)));
    }
    let count = manifest.contracts.len();
    let all = format!("{count} contracts, each the one of its fingerprint");
    if met.is_empty() { all } else { format!("{all}; imports {}", met.join(", ")) }
}

fn endpoints(manifest: &Manifest) -> String {
    let slots: Vec<String> = manifest
        .endpoints
        .iter()
        .map(|slot| match &slot.source {
            Source::Path(path) => format!("`{}` at {path}", slot.name),
            source => format!("`{}` from {source}", slot.name),
        })
        .collect();
    let slots: Vec<&str> = slots.iter().map(String::as_str).collect();
    list("is given none", &slots, "each can be given: ")
}

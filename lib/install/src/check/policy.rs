//! Promises of the system about who reaches what.

use alloc::format;
use alloc::vec::Vec;

use package::Deny;

use crate::code::Code;
use crate::installed::Installed;
use crate::reach::{Map, Who, paths_meet};
use crate::report::Finding;

/// Promises that are not kept, each for each program that breaks it.
pub fn findings(installed: &Installed, map: &Map<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for deny in &installed.system.denies {
        if let Some((problem, remedy)) = Who::problem(&deny.who) {
            let what = format!("the promise about {:?} cannot be read: {problem}", deny.who);
            findings.push(Finding::new(Code::BadDeny, &installed.system.name, what, remedy));
            continue;
        }
        if !deny.reach.starts_with('/') && !deny.reach.starts_with("**") {
            let what = format!("the promise about `{}` names {:?}, which is no pattern of paths", deny.who, deny.reach);
            let remedy = "begin with `/`, or write `**`";
            findings.push(Finding::new(Code::BadDeny, &installed.system.name, what, remedy));
            continue;
        }
        findings.extend(broken(installed, map, deny));
    }
    findings
}

fn broken(installed: &Installed, map: &Map<'_>, deny: &Deny) -> Vec<Finding> {
    let who = Who::read(&deny.who);
    // What is served there, and what its clients are given by it.
    let mut guarded: Vec<(usize, Option<usize>)> = Vec::new();
    for service in map.services.iter().filter(|service| paths_meet(&deny.reach, &service.path)) {
        match service.contract {
            Some(contract) => {
                guarded.extend(map.family(contract).into_iter().map(|member| (service.program, Some(member))));
            }
            None => guarded.push((service.program, None)),
        }
    }
    let mut findings = Vec::new();
    for (index, program) in installed.programs.iter().enumerate() {
        if !who.may_mean(&program.manifest.principal()) {
            continue;
        }
        let is_guarded = |exporter: usize, contract: usize| {
            let same = |known: Option<usize>| known.is_none_or(|known| known == contract);
            guarded.iter().any(|&(server, known)| server == exporter && server != index && same(known))
        };
        if let Some(chain) = map.way(index, |link| is_guarded(link.exporter, link.contract)) {
            let name = &program.manifest.name;
            let what = format!(
                "`{}` must not reach {} (promised for `{}`), and could: {}",
                program.manifest.principal(),
                deny.reach,
                deny.who,
                chain.join("; ")
            );
            let remedy = "take one of these steps from it, or the promise out of the system manifest";
            findings.push(Finding::new(Code::DenyBroken, name, what, remedy));
        }
    }
    findings
}

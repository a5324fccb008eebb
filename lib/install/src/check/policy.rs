//! Checks of a system's promises about reach.

use alloc::format;
use alloc::vec::Vec;

use manifest_model::Deny;

use crate::code::Code;
use crate::installed::Installed;
use crate::reach::{Map, Who, paths_meet};
use crate::report::Finding;

/// Returns the violated promises, one finding per violating program. An invalid promise covers every program, and is a
/// finding of the system manifest.
pub fn findings(installed: &Installed, map: &Map<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for deny in &installed.system.denies {
        findings.extend(broken(installed, map, deny));
    }
    findings
}

fn broken(installed: &Installed, map: &Map<'_>, deny: &Deny) -> Vec<Finding> {
    let who = Who::read(&deny.who);
    let mut findings = Vec::new();
    for (index, program) in installed.programs.iter().enumerate() {
        if !who.may_mean(&program.manifest.principal()) {
            continue;
        }
        if let Some(chain) = map.way(index, |path| paths_meet(&deny.reach, path)) {
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

//! Checks of requirements between programs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::code::Code;
use crate::installed::Installed;
use crate::report::Finding;

/// Requirements are installed, new enough, and acyclic.
pub fn findings(installed: &Installed) -> Vec<Finding> {
    let mut findings = Vec::new();
    for program in &installed.programs {
        let name = &program.manifest.name;
        for requirement in &program.manifest.requires {
            let wanted = &requirement.program;
            match installed.manifest(wanted) {
                None => {
                    let what = format!("`{name}` requires `{wanted}`, which is not installed");
                    let remedy = format!("install `{wanted}` of version {} or newer first", requirement.least);
                    findings.push(Finding::new(Code::RequirementMissing, name, what, remedy));
                }
                Some(found) if !requirement.is_met_by(found.version) => {
                    let what = format!(
                        "`{name}` requires `{wanted}` of version {} or newer, and {} is installed",
                        requirement.least, found.version
                    );
                    let remedy = format!("upgrade `{wanted}` first");
                    findings.push(Finding::new(Code::RequirementTooOld, name, what, remedy));
                }
                Some(_) => {}
            }
        }
        if let Some(circle) = circle(installed, name) {
            let what = format!("programs require each other: {}", circle.join(" requires "));
            findings.push(Finding::new(Code::RequirementCycle, name, what, "let one of them do without the other"));
        }
    }
    findings
}

/// Returns the cycle of requirements through a program, if there is one.
fn circle(installed: &Installed, start: &str) -> Option<Vec<String>> {
    // Each program is added once, with its predecessor.
    let mut reached: Vec<(&str, Option<usize>)> = Vec::from([(start, None)]);
    let mut at = 0;
    while at < reached.len() {
        let (name, _) = reached[at];
        for requirement in installed.manifest(name).into_iter().flat_map(|manifest| &manifest.requires) {
            let next = requirement.program.as_str();
            // A requirement of itself is reported when the manifest is read.
            if next == start && at != 0 {
                let mut way = Vec::from([format!("`{start}`")]);
                let mut place = Some(at);
                while let Some(index) = place {
                    way.push(format!("`{}`", reached[index].0));
                    place = reached[index].1;
                }
                way.reverse();
                return Some(way);
            }
            if !reached.iter().any(|(seen, _)| *seen == next) {
                reached.push((next, Some(at)));
            }
        }
        at += 1;
    }
    None
}

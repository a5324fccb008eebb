//! Human-readable description of an installed program.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use manifest_model::Code;

use crate::installed::{Installed, Program};
use crate::reach::Map;

/// Returns all details of an installed program: pairs of a label and a text.
pub fn explanation(installed: &Installed, program: &Program, map: &Map<'_>) -> Vec<(&'static str, String)> {
    let manifest = &program.manifest;
    let name = &manifest.name;
    let mut rows = Vec::from([
        ("program", format!("{} {}", manifest.principal(), manifest.version)),
        ("category", manifest.category.to_string()),
        ("summary", manifest.summary.clone()),
        ("signed by", if program.is_unsigned() { "nobody".into() } else { format!("the key {:#}", program.key) }),
    ]);
    let code = match &manifest.code {
        Code::Script { .. } => "a script".into(),
        Code::Image { .. } => "an image".into(),
        Code::Unsafe { .. } => "an image of unsafe code".into(),
        Code::Template { .. } => "a template, to which WebAssembly modules are added".into(),
        Code::Wasm { template, bounds, .. } => {
            format!("a WebAssembly module of the template `{template}`, with {bounds} bounds")
        }
    };
    rows.push(("code", code));
    let instances = installed.system.instances.iter().filter(|instance| instance.program == *name);
    let instances: Vec<&str> = instances.map(|instance| instance.name.as_str()).collect();
    let runs = if installed.system.root == *name {
        "the kernel starts it, and it starts all others".into()
    } else if instances.is_empty() {
        "others start it".into()
    } else {
        format!("starts with the system as {}", instances.join(", "))
    };
    rows.push(("runs", runs));
    let requires: Vec<String> = manifest.requires.iter().map(ToString::to_string).collect();
    rows.extend((!requires.is_empty()).then(|| ("requires", requires.join(", "))));
    let users = installed
        .programs
        .iter()
        .filter(|other| other.manifest.requires.iter().any(|requirement| requirement.program == *name));
    let users: Vec<&str> = users.map(|other| other.manifest.name.as_str()).collect();
    rows.extend((!users.is_empty()).then(|| ("required by", users.join(", "))));
    let provides: Vec<&str> = manifest.provides.iter().map(|provide| provide.path.as_str()).collect();
    rows.extend((!provides.is_empty()).then(|| ("provides", provides.join(", "))));
    if let Some(reach) = map.reach(name) {
        rows.push(("used by", if reach.clients.is_empty() { "nobody".into() } else { reach.clients.join(", ") }));
    }
    rows
}

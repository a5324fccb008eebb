//! Checks of a system's hardware domains: that they can be read, and that each program that asks for one has it.

use alloc::format;
use alloc::vec::Vec;

use manifest_model::{Domain, Manifest, SystemManifest, is_name};

use crate::check::wiring::place_of;
use crate::code::Code;
use crate::field::Field;
use crate::report::Finding;

/// Returns all faults of the domains of a system over the manifests of its programs.
pub(crate) fn findings(system: &SystemManifest, programs: &[&Manifest]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (row, domain) in system.domains.iter().enumerate() {
        let mut bad = |what, remedy: &str, field, label| {
            findings.push(Finding::new(Code::BadDomain, &system.name, what, remedy).at(field, label));
        };
        let name = &domain.name;
        let at_name = Field::row("domain", row, "name");
        if !is_name(name) {
            let what = format!("no domain can have the name {name:?}");
            bad(what, "name it with lower-case letters, digits and `-`", at_name, "no name");
        } else if system.domains[..row].iter().any(|before| before.name == *name) {
            let what = format!("two domains have the name `{name}`");
            bad(what, "rename one of them; the first that takes a program has it", at_name, "the name is taken");
        }
        if domain.kind == Domain::Kernel && domain.each {
            let what = format!("the domain `{name}` is the kernel's own, which no process has for itself");
            bad(what, "leave out `each`, or write `kind = \"ring-3\"`", at_name, "there is one of it");
        }
        for (item, who) in domain.who.iter().enumerate().filter(|(_, who)| !is_program_pattern(who)) {
            let what = format!("the domain `{name}` is for the programs {who:?}, which is no pattern of programs");
            let remedy = "write `name.publisher`, with `*` for any part of either: `jpeg-*.singularity`";
            bad(what, remedy, Field::row("domain", row, "who").item(item), "matches no program");
        }
    }
    findings.extend(programs.iter().filter_map(|program| without(system, program)));
    findings.extend(programs.iter().filter_map(|program| not_apart(system, program)));
    findings
}

fn is_program_pattern(text: &str) -> bool {
    let is_part = |part: &str| {
        let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'*');
        !part.is_empty() && part.bytes().all(known)
    };
    text.split_once('.').is_some_and(|(name, publisher)| is_part(name) && is_part(publisher))
}

/// Returns the finding for a program of unsafe code whose processes have no domain each.
fn not_apart(system: &SystemManifest, program: &Manifest) -> Option<Finding> {
    let is_apart = system.domain_of(program).is_some_and(|domain| domain.contains_any_code());
    if !program.code.is_unsafe() || is_apart {
        return None;
    }
    let name = &program.name;
    let what = format!("`{name}` is unsafe code, and the system has no domain in which each process of it is alone");
    let remedy = format!(
        "add a [[domain]] with `kind = \"{}\"`, `each = true` and `who = [\"{}\"]`",
        Domain::Ring3.word(),
        program.principal()
    );
    Some(Finding::new(Code::UnsafeNotApart, name, what, remedy).at(place_of(system, name), "is not apart"))
}

/// Returns the finding for a program that asks for a hardware domain and has none.
fn without(system: &SystemManifest, program: &Manifest) -> Option<Finding> {
    let has_it = system.domain_of(program).is_some_and(|domain| domain.kind.gives(program.domain));
    if program.domain == Domain::Kernel || has_it {
        return None;
    }
    let (name, kind) = (&program.name, program.domain.word());
    let what = format!("`{name}` is to run in a hardware domain (`{kind}`), and the system has none for it");
    let remedy = format!("add a [[domain]] with `kind = \"{kind}\"` and `who = [\"{}\"]`", program.principal());
    Some(Finding::new(Code::NoDomain, name, what, remedy).at(place_of(system, name), "has no domain"))
}

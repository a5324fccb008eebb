//! Conflicts between the names in generated code, where several names of a manifest become the same.
//!
//! Neighbour: [`reflection::naming`], which `startup!` uses for its names. Deliberately not here: names that are
//! duplicates as written, which are reported when lists are read.

use manifest_model::{EndpointSlot, Parameter, is_name};
use reflection::naming;

use crate::diagnostic::Code;
use crate::program::duplicate;
use crate::reader::{At, Report, Span};
use crate::resources::Device;

/// A name that becomes a field of `Startup`.
struct Field<'a> {
    kind: &'static str,
    name: &'a str,
    span: &'a Span,
    rust: String,
}

/// Endpoints, parameters and devices are fields of one structure.
pub(crate) fn check_fields(
    report: &Report,
    endpoints: &[At<EndpointSlot>],
    parameters: &[At<Parameter>],
    devices: &[At<Device>],
) {
    let field = |kind, name, span| Field { kind, name, span, rust: rust_field(name) };
    let endpoints = endpoints.iter().map(|slot| field("an endpoint", slot.value.name.as_str(), &slot.span));
    let parameters = parameters.iter().map(|given| field("a parameter", given.value.name.as_str(), &given.span));
    let fields: Vec<Field<'_>> = endpoints
        .chain(parameters)
        .chain(devices.iter().map(|device| field("a device", device.value.0.name.as_str(), &device.span)))
        .collect();
    for (index, Field { kind, name, span, rust }) in fields.iter().enumerate() {
        // Duplicates of one kind, and of a parameter and an endpoint, are reported by rules for packages too.
        let is_other = |other: &&Field<'_>| {
            other.rust == *rust && (other.name != *name || (other.kind == "a device") != (*kind == "a device"))
        };
        let Some(other) = fields[..index].iter().find(is_other) else { continue };
        let message = if other.name == *name {
            format!("{kind} and {} are both called `{name}`", other.kind)
        } else {
            format!("{kind} `{name}` and {} `{}` are both the field `{rust}`", other.kind, other.name)
        };
        let remedy = "both become fields of `Startup`; rename one of them".to_string();
        let (here, there) = (format!("this is {kind}"), format!("this is {}", other.kind));
        report.add_second(Code::DuplicateField, message, (*span, &here), (other.span, &there), remedy);
    }
}

/// Register devices are types of one module.
pub(crate) fn check_types(report: &Report, devices: &[At<Device>]) {
    let fixed = devices.iter().filter(|device| device.value.0.is_fixed() && is_name(&device.value.0.name));
    let fixed: Vec<(&str, &Span, String)> =
        fixed.map(|device| (device.value.0.name.as_str(), &device.span, naming::kind(&device.value.0.name))).collect();
    for (index, (name, span, rust)) in fixed.iter().enumerate() {
        if rust == "Self" {
            let message = format!("`{name}` cannot be the name of a device that consists of registers");
            let remedy = "rename it; its type would be called `Self`".to_string();
            report.add(Code::DuplicateField, message, span, "Rust has another use for this name", remedy);
        }
        if let Some((other, other_span, _)) =
            fixed[..index].iter().find(|(other, _, kind)| kind == rust && other != name)
        {
            let message = format!("the devices `{other}` and `{name}` are both the type `devices::{rust}`");
            let remedy = "rename one of them, by more than hyphens".to_string();
            let (here, there) = ((*span, "this is the second"), (*other_span, "this is the first"));
            report.add_second(Code::DuplicateField, message, here, there, remedy);
        }
    }
}

/// The parts of a device are fields of its object.
pub(crate) fn check_parts(report: &Report, parts: &[At<String>]) {
    let rust: Vec<String> = parts.iter().map(|part| rust_field(&part.value)).collect();
    for (index, part) in parts.iter().enumerate() {
        let Some(other) = rust[..index].iter().position(|other| *other == rust[index]).map(|place| &parts[place])
        else {
            continue;
        };
        if other.value == part.value {
            duplicate(report, Code::PartNames, "the name", part, &other.span);
            continue;
        }
        let message = format!("`{}` and `{}` are both the field `{}`", other.value, part.value, rust[index]);
        let (here, there) = ((&part.span, "this is the second"), (&other.span, "this is the first"));
        report.add_second(Code::PartNames, message, here, there, "rename one of them".into());
    }
}

/// Returns the field for a name. An invalid name is kept, as it is reported elsewhere.
fn rust_field(name: &str) -> String {
    if is_name(name) { naming::field(name) } else { name.into() }
}

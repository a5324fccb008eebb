//! `startup!`: a program's manifest to its typed start-up structure.

use std::fmt::Write;
use std::path::PathBuf;

use lang::{rust_module_name, rust_state_name};
use manifest::{Colours, Program};
use package::{EndpointSlot, Parameter, ParameterKind, Side};
use proc_macro::TokenStream;

/// Expands `startup!()` or `startup!("other.toml")`.
pub fn expand(input: TokenStream) -> TokenStream {
    let code = generate(&input.to_string()).unwrap_or_else(|message| compile_error(&message));
    code.parse().unwrap_or_else(|error| {
        let message = format!("the start-up structure cannot be read ({error}); this is a mistake of `startup!`");
        compile_error(&message).parse().unwrap_or_default()
    })
}

fn compile_error(message: &str) -> String {
    format!("::core::compile_error! {{ {message:?} }}")
}

fn generate(argument: &str) -> Result<String, String> {
    let file = match argument.trim() {
        "" => "manifest.toml",
        literal => literal
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .filter(|path| !path.contains(['\\', '"']))
            .ok_or("write startup!() for `manifest.toml`, or startup!(\"other.toml\")")?,
    };
    let root = std::env::var("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let root = root.map_err(|_| "startup! runs under cargo, which sets CARGO_MANIFEST_DIR".to_string())?;
    let path = root.join(file);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("the manifest {} cannot be read: {error}", path.display()))?;
    // What the contracts say is checked when the program is packaged; here rustc sees to it that the
    // named modules and states are there.
    let program = manifest::program(file, &text, None)
        .map_err(|errors| format!("the manifest has errors\n\n{}", errors.render(Colours::Never)))?;
    Ok(emit(&program, &path.display().to_string()))
}

/// The code; `path` is named to cargo, so that a change of the manifest builds the crate anew.
fn emit(program: &Program, path: &str) -> String {
    let mut fields = String::new();
    let mut values = String::new();
    for (index, parameter) in program.manifest.parameters.iter().enumerate() {
        let (name, kind) = (&parameter.name, rust_type(parameter));
        let documentation =
            if parameter.help.is_empty() { format!("The parameter `{name}`.") } else { sentence(&parameter.help) };
        field(&mut fields, &documentation, name, &kind);
        value(&mut values, name, &parameter_value(index, parameter));
    }
    for (slot, endpoint) in program.manifest.endpoints.iter().enumerate() {
        let typed = endpoint_type(program, endpoint);
        let kind = if endpoint.optional { format!("::core::option::Option<{typed}>") } else { typed };
        let documentation = format!("The endpoint `{}`, from `{}`.", endpoint.name, endpoint.source);
        field(&mut fields, &documentation, &endpoint.name, &kind);
        let function = if endpoint.optional { "optional_endpoint" } else { "endpoint" };
        value(&mut values, &endpoint.name, &format!("::sip::config::{function}({slot}, {:?})?", endpoint.name));
    }
    format!(
        "/// What the program is given at its start, as its manifest declares it.\n\
         pub struct Startup {{\n{fields}}}\n\
         impl ::sip::config::FromConfiguration for Startup {{\n\
         fn from_configuration() -> ::core::result::Result<Self, ::sip::config::ConfigurationError> {{\n\
         ::core::result::Result::Ok(Self {{\n{values}}})\n}}\n}}\n\
         {}const _: &[u8] = ::core::include_bytes!({path:?});\n",
        devices(program)
    )
}

fn field(out: &mut String, documentation: &str, name: &str, kind: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "#[doc = {documentation:?}]\npub {}: {kind},", identifier(name));
}

fn value(out: &mut String, name: &str, expression: &str) {
    let _ = writeln!(out, "{}: {expression},", identifier(name));
}

/// A manifest's name as a Rust one; a keyword gets an underscore behind it.
fn identifier(name: &str) -> String {
    rust_module_name(&name.replace('-', "_"))
}

/// A help text as a doc comment.
fn sentence(help: &str) -> String {
    let mut characters = help.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let stop = if help.ends_with('.') { "" } else { "." };
    format!("{first}{}{stop}", characters.as_str())
}

fn rust_type(parameter: &Parameter) -> String {
    let kind = match parameter.kind {
        ParameterKind::Text => "::alloc::string::String",
        ParameterKind::Integer => "i64",
        ParameterKind::Boolean => "bool",
        ParameterKind::DurationMs => "::core::time::Duration",
    };
    if parameter.repeated {
        format!("::alloc::vec::Vec<{kind}>")
    } else if parameter.required || default(parameter).is_some() {
        kind.into()
    } else {
        format!("::core::option::Option<{kind}>")
    }
}

/// The value of a parameter that is not given, as text; a boolean is then false.
fn default(parameter: &Parameter) -> Option<String> {
    let implied = (parameter.kind == ParameterKind::Boolean).then(|| "false".to_string());
    parameter.default.as_ref().map(ToString::to_string).or(implied)
}

fn parameter_value(index: usize, parameter: &Parameter) -> String {
    let name = &parameter.name;
    match default(parameter) {
        _ if parameter.repeated => format!("::sip::config::repeated({index}, {name:?})?"),
        _ if parameter.required => format!("::sip::config::required({index}, {name:?})?"),
        Some(text) => format!("::sip::config::with_default({index}, {name:?}, {text:?})?"),
        None => format!("::sip::config::optional({index}, {name:?})?"),
    }
}

fn endpoint_type(program: &Program, slot: &EndpointSlot) -> String {
    let index = usize::from(slot.contract);
    let contract = program.manifest.contracts.get(index).map_or("", |contract| contract.name.as_str());
    let module = match program.modules.get(index) {
        Some(Some(module)) if module.starts_with("crate::") => module.clone(),
        Some(Some(module)) => format!("::{module}"),
        _ => format!("::contracts::{}", rust_module_name(contract)),
    };
    let end = match slot.side {
        Side::Importer => "Imp",
        Side::Exporter => "Exp",
    };
    format!("{module}::{end}<{module}::states::{}>", rust_state_name(&slot.state_name))
}

/// Constants for `sip::device`: the program's devices by name.
fn devices(program: &Program) -> String {
    if program.manifest.devices.is_empty() {
        return String::new();
    }
    let mut constants = String::new();
    for (index, device) in program.manifest.devices.iter().enumerate() {
        let name = device.name.replace('-', "_").to_uppercase();
        let _ = writeln!(constants, "/// The device `{}`.\npub const {name}: u64 = {index};", device.name);
    }
    format!("/// Indices of the devices in the manifest.\npub mod devices {{\n{constants}}}\n")
}

#[cfg(test)]
mod tests {
    use super::emit;

    const MANIFEST: &str = r#"
        [program]
        name = "example"
        version = "0.1.0"
        abi = 1
        category = "console"
        summary = "shows what is generated"

        [[contract]]
        name = "NicDevice"
        use = "import"

        [[contract]]
        name = "Ping"
        use = "both"
        module = "ping_contract::ping"

        [[endpoint]]
        name = "nic"
        contract = "NicDevice"
        side = "imp"
        state = "IO_RUNNING"
        from = "/dev/nic0"

        [[endpoint]]
        name = "self"
        contract = "Ping"
        side = "exp"
        state = "START"
        from = "parent"
        optional = true

        [[parameter]]
        name = "working-folder"
        type = "string"
        default = "a \"b\""
        help = "where paths start"

        [[parameter]]
        name = "limit"
        type = "integer"

        [[parameter]]
        name = "type"
        type = "boolean"

        [[parameter]]
        name = "pauses"
        type = "duration-ms"
        repeated = true

        [[parameter]]
        name = "count"
        type = "integer"
        required = true

        [[device]]
        name = "nic-0"
    "#;

    #[test]
    fn each_declaration_becomes_a_typed_field() {
        let program = manifest::program("manifest.toml", MANIFEST, None).unwrap_or_else(|errors| panic!("{errors}"));
        let code = emit(&program, "/here/manifest.toml");
        for line in [
            "#[doc = \"Where paths start.\"]",
            "pub working_folder: ::alloc::string::String,",
            "working_folder: ::sip::config::with_default(0, \"working-folder\", \"a \\\"b\\\"\")?,",
            "pub limit: ::core::option::Option<i64>,",
            "limit: ::sip::config::optional(1, \"limit\")?,",
            "pub type_: bool,",
            "type_: ::sip::config::with_default(2, \"type\", \"false\")?,",
            "pub pauses: ::alloc::vec::Vec<::core::time::Duration>,",
            "pauses: ::sip::config::repeated(3, \"pauses\")?,",
            "pub count: i64,",
            "count: ::sip::config::required(4, \"count\")?,",
            "pub nic: ::contracts::nic_device::Imp<::contracts::nic_device::states::IoRunning>,",
            "nic: ::sip::config::endpoint(0, \"nic\")?,",
            "pub self_: ::core::option::Option<::ping_contract::ping::Exp<::ping_contract::ping::states::Start>>,",
            "self_: ::sip::config::optional_endpoint(1, \"self\")?,",
            "pub const NIC_0: u64 = 0;",
            "const _: &[u8] = ::core::include_bytes!(\"/here/manifest.toml\");",
        ] {
            assert!(code.lines().any(|found| found == line), "{line}\nis not in\n{code}");
        }
    }
}

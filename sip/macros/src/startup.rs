//! `startup!`: generates a typed start-up structure from a program's manifest, and an object for each of its devices.

use lang::{rust_module_name, rust_state_name};
use manifest::{Colours, DeviceObject, Program};
use manifest_model::{AddressRange, DeviceNeed, EndpointSlot, Parameter, ParameterKind, Side};
use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};
use reflection::emit::{Member, Source, Structure};
use reflection::{expand, naming};

const USAGE: &str = "write startup!() for `manifest.toml`, or startup!(\"other.toml\")";

/// `Startup` is read from the process's configuration.
const STARTUP: Source = Source {
    interface: "::sip::config::FromConfiguration",
    function: "from_configuration()",
    error: "::sip::config::ConfigurationError",
    before: "",
};

/// A device object is made from the opened device.
const DEVICE: Source = Source {
    interface: "::sip::device::DeviceObject",
    function: "open(index: usize)",
    error: "::sip::Status",
    before: "let hardware = ::sip::hardware::Hardware::open(index)?;",
};

/// Expands `startup!()` or `startup!("other.toml")`.
pub fn expand(input: TokenStream) -> TokenStream {
    expand::code_or_error(generate(input))
}

fn generate(input: TokenStream) -> Result<TokenStream, String> {
    let files = expand::texts(input, USAGE)?;
    let file = match files.as_slice() {
        [] => "manifest.toml",
        [file] => file,
        _ => return Err(USAGE.into()),
    };
    let path = expand::crate_folder("startup!")?.join(file);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("the manifest {} cannot be read: {error}", path.display()))?;
    // The contracts are checked when the program is packaged; here rustc checks that the named modules and states exist.
    let program = manifest::program(file, &text, None)
        .map_err(|errors| format!("the manifest has errors\n\n{}", errors.render(Colours::Never)))?;
    let (code, watched) = (emit(&program)?, expand::watched(&path));
    Ok(quote! { #code #watched })
}

fn emit(program: &Program) -> Result<TokenStream, String> {
    let parameters = program.manifest.parameters.iter().enumerate();
    let endpoints = program.manifest.endpoints.iter().enumerate();
    let devices = program.manifest.devices.iter().zip(&program.objects).enumerate();
    let members = parameters
        .map(|(index, given)| Ok(parameter(index, given)))
        .chain(endpoints.map(|(slot, given)| endpoint(program, slot, given)))
        .chain(devices.map(|(index, (need, object))| Ok(device(index, need, object))))
        .collect::<Result<_, String>>()?;
    let documentation = "What the program is given at its start, as its manifest declares it.".into();
    let startup = Structure { name: "Startup".into(), documentation, members, source: STARTUP }.emit()?;
    let devices = device_module(program)?;
    Ok(quote! { #startup #devices })
}

fn parameter(index: usize, parameter: &Parameter) -> Member {
    let name = &parameter.name;
    let documentation = match parameter.help.as_str() {
        "" => format!("The parameter `{name}`."),
        help => naming::sentence(help),
    };
    let kind = parameter_type(parameter);
    Member { name: name.clone(), documentation, kind, value: parameter_value(index, parameter) }
}

fn endpoint(program: &Program, slot: usize, endpoint: &EndpointSlot) -> Result<Member, String> {
    let (name, typed) = (&endpoint.name, endpoint_type(program, endpoint)?);
    let kind = if endpoint.optional { format!("::core::option::Option<{typed}>") } else { typed };
    let function = if endpoint.optional { "optional_endpoint" } else { "endpoint" };
    Ok(Member {
        name: name.clone(),
        documentation: format!("The endpoint `{name}`, from `{}`.", endpoint.source),
        kind,
        value: format!("::sip::config::{function}({slot}, {name:?})?"),
    })
}

fn device(index: usize, need: &DeviceNeed, object: &DeviceObject) -> Member {
    let kind = match &object.object {
        Some(path) => naming::path(path),
        None if need.is_fixed() => format!("devices::{}", naming::kind(&need.name)),
        None => "::sip::hardware::Hardware".into(),
    };
    Member {
        name: need.name.clone(),
        documentation: format!("The device `{}`, not yet opened.", need.name),
        kind: format!("::sip::device::Declared<{kind}>"),
        value: format!("::sip::device::Declared::at({index})"),
    }
}

/// Generates the module `devices`: the indices of all devices, and the objects of those made of registers and interrupts.
fn device_module(program: &Program) -> Result<TokenStream, String> {
    if program.manifest.devices.is_empty() {
        return Ok(TokenStream::new());
    }
    let mut code = TokenStream::new();
    for (index, (need, object)) in program.manifest.devices.iter().zip(&program.objects).enumerate() {
        let constant = format_ident!("{}", naming::constant(&need.name));
        let (documentation, index) = (format!("The device `{}`.", need.name), Literal::usize_unsuffixed(index));
        code.extend(quote! { #[doc = #documentation] pub const #constant: u64 = #index; });
        if need.is_fixed() {
            code.extend(device_object(need, object)?);
        }
    }
    let documentation = "The devices of the manifest: what each consists of, and its index.";
    Ok(quote! { #[doc = #documentation] pub mod devices { #code } })
}

/// Generates a structure with a field per part of a device, and assertions that the register maps fit their ranges.
fn device_object(need: &DeviceNeed, object: &DeviceObject) -> Result<TokenStream, String> {
    let ports = need.ports.iter().map(|range| ("IoPortRange", "I/O ports", range));
    let memory = need.memory.iter().map(|range| ("IoMemoryRange", "device memory", range));
    let mut members = Vec::new();
    let mut checks = TokenStream::new();
    for (index, ((kind, what, range), part)) in ports.chain(memory).zip(&object.ranges).enumerate() {
        let access = format!("::sip::hardware::{kind}");
        let kind = match &part.registers {
            Some(path) => {
                let map = format!("{}<{access}>", naming::path(path));
                checks.extend(fits(&map, path, range)?);
                map
            }
            None => access,
        };
        members.push(Member {
            name: part.name.clone(),
            documentation: format!("The {what} {range}."),
            kind,
            value: format!("::sip::hardware::declared_range(&hardware, {index})?"),
        });
    }
    for (index, (name, line)) in object.interrupts.iter().zip(&need.interrupts).enumerate() {
        members.push(Member {
            name: name.clone(),
            documentation: format!("The interrupt line {line}."),
            kind: "::sip::hardware::Interrupt".into(),
            value: format!("hardware.interrupt({index})?"),
        });
    }
    let documentation = format!("The device `{}`, opened: its registers and interrupts.", need.name);
    let object = Structure { name: naming::kind(&need.name), documentation, members, source: DEVICE }.emit()?;
    Ok(quote! { #object #checks })
}

/// Asserts at compile time that a register map fits its range: only rustc can compute the length of a map.
fn fits(map: &str, path: &str, range: &AddressRange) -> Result<TokenStream, String> {
    let map = expand::parsed("startup!", map)?;
    let message = format!("the manifest's range {range} is shorter than the map of registers `{path}`");
    let bytes = range.bytes;
    Ok(quote! { const _: () = ::core::assert!(::sip::hardware::map_bytes::<#map>() <= #bytes, #message); })
}

fn parameter_type(parameter: &Parameter) -> String {
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

/// Returns the default of a parameter as text; a boolean without one defaults to `false`.
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

/// Returns the Rust type of an endpoint. The manifest parser accepts any text as the name of an unknown contract or
/// state, so this checks that it is a Rust identifier.
fn endpoint_type(program: &Program, slot: &EndpointSlot) -> Result<String, String> {
    let index = usize::from(slot.contract);
    let contract = program.manifest.contracts.get(index).map_or("", |contract| contract.name.as_str());
    let contract = naming::identifier(contract)?;
    let state = rust_state_name(naming::identifier(&slot.state_name)?);
    let module = match program.modules.get(index) {
        Some(Some(module)) => naming::path(module),
        _ => format!("::contracts::{}", rust_module_name(contract)),
    };
    let end = match slot.side {
        Side::Importer => "Imp",
        Side::Exporter => "Exp",
    };
    Ok(format!("{module}::{end}<{module}::states::{state}>"))
}

#[cfg(test)]
mod tests {
    use proc_macro2::{TokenStream, TokenTree};

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

        [[device]]
        name = "disk"
        object = "sip_virtio::System"

        [[device]]
        name = "serial-port"
        ports = ["0x3f8+8", "0x2f8+8"]
        memory = ["0xfee00000+0x1000"]
        interrupts = [4]
        names = ["uart", "second", "block", "line"]
        registers = { uart = "uart_16550::Registers", block = "crate::map::Block" }
    "#;

    fn squeezed(code: &str) -> String {
        code.split_whitespace().collect()
    }

    #[test]
    fn names_of_a_manifest_cannot_carry_code() {
        for (right, wrong) in [
            ("state = \"IO_RUNNING\"", "state = \"Ready<{ impl crate::Startup { pub fn f() { unsafe {} } } 0 }>\""),
            ("state = \"IO_RUNNING\"", "state = \"Ready>, pub other: (\""),
            ("\"NicDevice\"", "\"a::b, pub other: u8, pub third: c\""),
        ] {
            assert!(MANIFEST.contains(right));
            let text = MANIFEST.replace(right, wrong);
            match manifest::program("manifest.toml", &text, None) {
                Ok(program) => {
                    let error = emit(&program).expect_err(wrong);
                    assert!(error.contains("is not a Rust identifier"), "{error}");
                }
                // A manifest rule rejects such names of contracts before code is generated.
                Err(errors) => assert!(errors.to_string().contains("cannot be the name of a contract"), "{errors}"),
            }
        }
    }

    #[test]
    fn each_declaration_becomes_a_typed_field() {
        let program = manifest::program("manifest.toml", MANIFEST, None).unwrap_or_else(|errors| panic!("{errors}"));
        let code = emit(&program).expect("the manifest is right").to_string();
        for part in [
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
            "pub nic_0: ::sip::device::Declared<::sip::hardware::Hardware>,",
            "pub disk: ::sip::device::Declared<::sip_virtio::System>,",
            "pub serial_port: ::sip::device::Declared<devices::SerialPort>,",
            "serial_port: ::sip::device::Declared::at(2),",
            "pub const NIC_0: u64 = 0;",
        ] {
            assert!(squeezed(&code).contains(&squeezed(part)), "{part}\nis not in\n{code}");
        }
    }

    #[test]
    fn a_device_of_registers_becomes_an_object_of_its_parts() {
        let program = manifest::program("manifest.toml", MANIFEST, None).unwrap_or_else(|errors| panic!("{errors}"));
        let code = emit(&program).expect("the manifest is right").to_string();
        for part in [
            "pub struct SerialPort {",
            "#[doc = \"The I/O ports 0x3f8+0x8.\"]",
            "pub uart: ::uart_16550::Registers<::sip::hardware::IoPortRange>,",
            "pub second: ::sip::hardware::IoPortRange,",
            "pub block: crate::map::Block<::sip::hardware::IoMemoryRange>,",
            "pub line: ::sip::hardware::Interrupt,",
            "impl ::sip::device::DeviceObject for SerialPort { fn open(index: usize)",
            "block: ::sip::hardware::declared_range(&hardware, 2)?,",
            "line: hardware.interrupt(0)?,",
            "::sip::hardware::map_bytes::<::uart_16550::Registers<::sip::hardware::IoPortRange>>() <= 8u64,",
            "\"the manifest's range 0x3f8+0x8 is shorter than the map of registers `uart_16550::Registers`\"",
        ] {
            assert!(squeezed(&code).contains(&squeezed(part)), "{part}\nis not in\n{code}");
        }
    }

    /// Returns a code block of the page about reflection.
    fn block<'a>(page: &'a str, language: &str, beginning: &str) -> &'a str {
        let mut blocks = page.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
        let found = blocks.find(|(name, code)| *name == language && code.starts_with(beginning));
        found.unwrap_or_else(|| panic!("the page has no block of {language} that begins with {beginning}")).1
    }

    /// Returns the tokens without documentation, separated by spaces.
    fn tokens(code: TokenStream) -> String {
        let mut out = String::new();
        let mut rest = code.into_iter().peekable();
        while let Some(token) = rest.next() {
            let is_hash = matches!(&token, TokenTree::Punct(hash) if hash.as_char() == '#');
            if is_hash && matches!(rest.peek(), Some(TokenTree::Group(group)) if group.to_string().starts_with("[doc"))
            {
                rest.next();
                continue;
            }
            match token {
                TokenTree::Group(group) => out.push_str(&format!("{:?} {}", group.delimiter(), tokens(group.stream()))),
                token => out.push_str(&token.to_string()),
            }
            out.push(' ');
        }
        out
    }

    #[test]
    fn the_page_about_reflection_shows_what_is_generated() {
        let page = include_str!("../../../docs/reflection.md");
        let head =
            "[program]\nname = \"sound\"\nversion = \"0.1.0\"\nabi = 1\ncategory = \"driver\"\nsummary = \"sound\"\n";
        let text = format!("{head}{}", block(page, "toml", "[[device]]"));
        let program = manifest::program("manifest.toml", &text, None).unwrap_or_else(|errors| panic!("{errors}"));
        let generated = tokens(emit(&program).expect("the manifest is right"));
        let shown: TokenStream = block(page, "rust", "pub struct Sound").parse().expect("the block is Rust");
        let shown = tokens(shown);
        assert!(generated.contains(&shown), "{shown}\nis not in\n{generated}");
    }
}

//! Device objects of a program: names and Rust types of their parts, for the macro `startup!`.
//!
//! Not part of a package: the kernel identifies parts by index.

use manifest_model::DeviceNeed;
use reflection::naming;

use crate::diagnostic::Code;
use crate::generated;
use crate::program::check_name;
use crate::reader::{At, Report, Table, list, one_of, wrong_type};

/// A device as an object of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceObject {
    /// Rust path of the type that it is opened as, if the manifest has one. A device without one is opened as its
    /// parts, or if it is not fixed as `sip::hardware::Hardware`.
    pub object: Option<String>,
    /// Its ranges, in the order of their indices: I/O ports first.
    pub ranges: Vec<RangeObject>,
    /// Names of its interrupts, in the order of their indices.
    pub interrupts: Vec<String>,
}

/// A range of a device as an object of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeObject {
    /// Its name.
    pub name: String,
    /// Rust path of its register map, if the manifest has one.
    pub registers: Option<String>,
}

/// Reads the object of a device from its table.
pub(crate) fn read(report: &Report, table: &Table<'_, '_>, need: &DeviceNeed) -> DeviceObject {
    let object = table.text("object").map(|path| {
        check_rust_path(report, &path);
        if need.is_fixed() {
            let message = format!("the device `{}` consists of registers and is opened as `{}`", need.name, path.value);
            let remedy = "remove `object`; such a device is opened as an object with a field for each part".to_string();
            report.add(Code::FixedObject, message, &path.span, "it cannot be both", remedy);
        }
        path.value
    });
    let ranges = need.ports.len() + need.memory.len();
    let names = names(report, table, ranges, need.interrupts.len());
    let mut ranges: Vec<RangeObject> =
        names[..ranges].iter().map(|name| RangeObject { name: name.clone(), registers: None }).collect();
    for (name, path) in table.entries("registers") {
        let Some(text) = path.get_ref().as_str() else {
            wrong_type(report, "a map of registers", "a text in quotes", path);
            continue;
        };
        let path = At::new(text.to_string(), path.span());
        check_rust_path(report, &path);
        match ranges.iter_mut().find(|range| range.name == name.value) {
            Some(range) => range.registers = Some(path.value),
            None => {
                let known: Vec<&str> = ranges.iter().map(|range| range.name.as_str()).collect();
                let message = format!("the device `{}` has no range `{}`", need.name, name.value);
                let remedy = one_of(&name.value, &known);
                report.add(Code::UnknownRange, message, &name.span, "no range is called so", remedy);
            }
        }
    }
    DeviceObject { object, ranges, interrupts: names[names.len() - need.interrupts.len()..].to_vec() }
}

/// Returns the names of `ranges` ranges and `interrupts` interrupts.
fn names(report: &Report, table: &Table<'_, '_>, ranges: usize, interrupts: usize) -> Vec<String> {
    let own: Vec<String> = (0..ranges)
        .map(|index| format!("range-{index}"))
        .chain((0..interrupts).map(|index| format!("interrupt-{index}")))
        .collect();
    let given = table.bounded_texts("names");
    let (Some(first), Some(last)) = (given.first(), given.last()) else { return own };
    if given.len() != own.len() {
        let message = format!("`names` has {} for {} parts of the device", given.len(), own.len());
        let remedy = match own.as_slice() {
            [] => "remove `names`; the device has no parts of its own".into(),
            own => format!("write {} names, in place of {}", own.len(), list(own)),
        };
        report.add(Code::PartNames, message, &(first.span.start..last.span.end), "one for each part", remedy);
        return own;
    }
    for name in &given {
        check_name(report, name, "a part of a device");
    }
    generated::check_parts(report, &given);
    given.into_iter().map(|name| name.value).collect()
}

/// Reports an invalid type path.
fn check_rust_path(report: &Report, path: &At<String>) {
    if !is_rust_path(&path.value) {
        let message = format!("`{}` is not the path of a Rust type", path.value);
        let remedy = "write the crate and the type: `uart_16550::Registers`, or `crate::...`".to_string();
        report.add(Code::BadModule, message, &path.span, "not a path", remedy);
    }
}

/// Returns whether a text is a valid entry of a program: the path of a module from its crate's root, such as `wc`. The
/// builder inserts it into generated code, so only identifiers separated by `::` are accepted, and no keywords.
pub fn is_entry(text: &str) -> bool {
    is_rust_path(text) && text.split("::").all(|part| naming::identifier(part).is_ok())
}

/// Returns whether a text is a Rust path: identifiers separated by `::`.
pub(crate) fn is_rust_path(text: &str) -> bool {
    let is_identifier = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    text.split("::").all(is_identifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_path_of_modules_and_nothing_else() {
        for entry in ["wc", "tools::wc", "_0", "r2"] {
            assert!(is_entry(entry), "{entry}");
        }
        for entry in [
            "",
            "::wc",
            "wc::",
            "a:b",
            "a::::b",
            "web-hello",
            "2to3",
            " wc",
            "wc ",
            "wc\n",
            "wc;",
            "wc::main); fn injected() {} sip::entry!(program",
            "wc<{ 0 }>",
            "wc/**/",
            "wc//",
            "r#wc",
            "wc!",
            "\u{0}",
            "wörter",
            "self",
            "super::super::other",
            "crate",
            "Self",
            "unsafe",
            "_",
        ] {
            assert!(!is_entry(entry), "{entry}");
        }
    }
}

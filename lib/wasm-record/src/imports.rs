//! The list of what a template offers to modules: text, a line for each import.
//!
//! ```text
//! func wasi_snapshot_preview1 fd_write i32 i32 i32 i32 -> i32
//! global spectest global_i32 i32 666
//! table spectest table funcref 10 20
//! memory spectest memory 1 2
//! ```
//!
//! A function's number is that of its line. Words are separated by single spaces. A `global` has its value as bits, a
//! `table` and a `memory` have their limits.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::{Global, Limits, Signature, Table, ValueType};

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The module that it is imported from.
    pub module: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ImportKind,
}

/// What is imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// A function that the host performs.
    Function(Signature),
    /// A constant.
    Global(Global),
    /// A table, which the instance has as its own.
    Table(Table),
    /// A memory, which the instance has as its own.
    Memory(Limits),
}

/// What a template offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imports(pub Vec<Import>);

/// A line of the list is not one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportsError {
    /// Its number, from 0.
    pub line: usize,
}

impl fmt::Display for ImportsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the template's list of imports is malformed", self.line + 1)
    }
}

impl core::error::Error for ImportsError {}

impl Imports {
    /// Reads a list.
    ///
    /// # Errors
    /// A line is malformed.
    pub fn parse(text: &str) -> Result<Imports, ImportsError> {
        let lines = text.lines().enumerate();
        lines.map(|(line, text)| import(text).ok_or(ImportsError { line })).collect::<Result<_, _>>().map(Imports)
    }

    /// Finds an import; returns its number too.
    pub fn find(&self, module: &str, name: &str) -> Option<(usize, &Import)> {
        self.0.iter().enumerate().find(|(_, import)| import.module == module && import.name == name)
    }
}

fn import(line: &str) -> Option<Import> {
    let mut words = line.split(' ');
    let kind = words.next()?;
    let module = words.next()?;
    let name = words.next()?;
    let rest: Vec<&str> = words.collect();
    let kind = match (kind, rest.as_slice()) {
        ("func", words) => ImportKind::Function(signature(words)?),
        ("global", [kind, value]) => ImportKind::Global(Global { kind: value_type(kind)?, value: value.parse().ok()? }),
        ("table", [kind, min, max]) => ImportKind::Table(Table { limits: limits(min, max)?, kind: value_type(kind)? }),
        ("memory", [min, max]) => ImportKind::Memory(limits(min, max)?),
        _ => return None,
    };
    Some(Import { module: module.into(), name: name.into(), kind })
}

fn signature(words: &[&str]) -> Option<Signature> {
    let arrow = words.iter().position(|word| *word == "->");
    let (parameters, results) = match arrow {
        Some(arrow) => (&words[..arrow], &words[arrow + 1..]),
        None => (words, &[][..]),
    };
    let types = |words: &[&str]| words.iter().map(|word| value_type(word)).collect::<Option<Vec<ValueType>>>();
    Some(Signature { parameters: types(parameters)?, results: types(results)? })
}

fn limits(min: &str, max: &str) -> Option<Limits> {
    Some(Limits { min: min.parse().ok()?, max: max.parse().ok()? })
}

fn value_type(word: &str) -> Option<ValueType> {
    Some(match word {
        "i32" => ValueType::I32,
        "i64" => ValueType::I64,
        "f32" => ValueType::F32,
        "f64" => ValueType::F64,
        "v128" => ValueType::V128,
        "funcref" => ValueType::FuncRef,
        "externref" => ValueType::ExternRef,
        _ => return None,
    })
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ValueType::I32 => "i32",
            ValueType::I64 => "i64",
            ValueType::F32 => "f32",
            ValueType::F64 => "f64",
            ValueType::V128 => "v128",
            ValueType::FuncRef => "funcref",
            ValueType::ExternRef => "externref",
        })
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, types: &[ValueType]| {
            f.write_str("(")?;
            for (number, kind) in types.iter().enumerate() {
                let comma = if number > 0 { ", " } else { "" };
                write!(f, "{comma}{kind}")?;
            }
            f.write_str(")")
        };
        list(f, &self.parameters)?;
        f.write_str(" -> ")?;
        list(f, &self.results)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    #[test]
    fn a_list_has_functions_and_values() {
        let list = "func host add i32 i64 -> f32\nfunc host stop\nglobal host g i64 7\ntable host t funcref 1 2\nmemory host m 1 2";
        let imports = Imports::parse(list).expect("a list");
        let (number, add) = imports.find("host", "add").expect("is there");
        let signature = Signature { parameters: vec![ValueType::I32, ValueType::I64], results: vec![ValueType::F32] };
        assert_eq!((number, &add.kind), (0, &ImportKind::Function(signature.clone())));
        assert_eq!(signature.to_string(), "(i32, i64) -> (f32)");
        assert_eq!(imports.find("host", "g").map(|(number, _)| number), Some(2));
        assert_eq!(imports.find("other", "add"), None);
        for text in ["func host", "func host f i33", "global host g i64 x", "memory host m 1", "thing a b"] {
            let list = alloc::format!("func a b\n{text}\n");
            assert_eq!(Imports::parse(&list), Err(ImportsError { line: 1 }), "{text}");
        }
    }
}

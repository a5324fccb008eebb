//! Reads and validates a module; resolves its imports and constants.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use wasm_record::layout::{Bounds, MAX_ARGUMENTS, MAX_GLOBALS, MAX_TABLES};
use wasm_record::{
    Data, Element, Export, ExportKind, Function, Global, ImportKind, Imports, Limits, MAX_MEMORY_PAGES, Mode, Record,
    Signature, Table, ValueType,
};
use wasmparser::{
    CompositeInnerType, DataKind, ElementItems, ElementKind, ExternalKind, FuncToValidate, FunctionBody, Name,
    NameSectionReader, Parser, Payload, RefType, TableInit, TypeRef, ValType, ValidPayload, Validator,
    ValidatorResources, WasmFeatures,
};

use crate::sealed::Sealed;
use crate::{Error, constants, limits, unsupported};

/// WebAssembly 2.0, with the proposals that are supported beside it.
const FEATURES: WasmFeatures = WasmFeatures::WASM2
    .union(WasmFeatures::TAIL_CALL)
    .union(WasmFeatures::EXTENDED_CONST)
    .union(WasmFeatures::EXCEPTIONS)
    .union(WasmFeatures::LEGACY_EXCEPTIONS);

/// A kind of exception.
pub struct Tag {
    /// Its signature, of which only the parameters count.
    signature: u32,
    /// The globals that hold the values of one that is thrown.
    pub globals: Range<u32>,
}

/// The body of a function, or the import that it is.
pub enum Body<'a> {
    /// The number of the template's import.
    Import(u32),
    /// Code.
    Code(FunctionBody<'a>, FuncToValidate<ValidatorResources>),
}

/// A module that is valid but for its bodies.
pub struct Module<'a> {
    /// Distinct signatures.
    pub signatures: Vec<Signature>,
    /// Index of the signature of each type.
    pub types: Vec<u32>,
    pub functions: Vec<Function<'a>>,
    pub memory: Option<Limits>,
    /// How code keeps to memory.
    pub bounds: Bounds,
    pub tables: Vec<Table>,
    /// Number of tables that are imports; they come first.
    pub imported_tables: u32,
    /// Those that nothing changes.
    pub sealed: Sealed,
    /// Those of the module, and behind them those for exceptions, if it has tags.
    pub globals: Vec<Global>,
    pub tags: Vec<Tag>,
    /// The global that has the number of the tag of the exception that is pending, from 1; zero if none is.
    pub pending: u32,
    pub exports: Vec<Export<'a>>,
    pub elements: Vec<Element>,
    data: Vec<Data<'a>>,
    start: Option<u32>,
    /// Number of functions that are imports; they come first.
    pub imported: u32,
}

impl<'a> Module<'a> {
    /// Reads a module; returns the bodies of its functions too.
    pub fn parse(bytes: &'a [u8], imports: &Imports, bounds: Bounds) -> Result<(Module<'a>, Vec<Body<'a>>), Error> {
        let mut reader = Reading {
            module: Module {
                signatures: Vec::new(),
                types: Vec::new(),
                functions: Vec::new(),
                memory: None,
                bounds,
                tables: Vec::new(),
                imported_tables: 0,
                sealed: Sealed::default(),
                globals: Vec::new(),
                tags: Vec::new(),
                pending: 0,
                exports: Vec::new(),
                elements: Vec::new(),
                data: Vec::new(),
                start: None,
                imported: 0,
            },
            bodies: Vec::new(),
            imports,
            numbers: BTreeMap::new(),
            names: BTreeMap::new(),
        };
        let mut validator = Validator::new_with_features(FEATURES);
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload?;
            if let Payload::Version { encoding: wasmparser::Encoding::Component, .. } = &payload {
                return Err(Error::Unsupported { what: String::from("a component; a core module is needed") });
            }
            let valid = validator.payload(&payload)?;
            if let ValidPayload::Func(to_validate, body) = valid {
                if body.as_bytes().len() > limits::BODY_BYTES {
                    return Err(Error::Limit { what: "bytes of a function", most: limits::BODY_BYTES });
                }
                reader.bodies.push(Body::Code(body, to_validate));
            } else {
                reader.section(payload)?;
            }
        }
        reader.hide_globals()?;
        Ok(reader.finish())
    }

    /// What the template gets to know of it.
    pub fn record(&self) -> Record<'a> {
        Record {
            signatures: self.signatures.clone(),
            functions: self.functions.clone(),
            imported: self.imported,
            memory: self.memory,
            tables: self.tables.clone(),
            globals: self.globals.clone(),
            exports: self.exports.clone(),
            elements: self.elements.clone(),
            data: self.data.clone(),
            start: self.start,
            attachment: &[],
            parts: Vec::new(),
        }
    }

    /// Where a global lies in the context.
    pub fn place_of_global(&self, index: u32) -> u32 {
        wasm_record::layout::global(self.tables.len() as u32, index)
    }

    /// The globals that hold the values of exceptions of any tag.
    pub fn exception_values(&self) -> Range<u32> {
        self.pending + 1..self.globals.len() as u32
    }

    /// The signature of a function.
    pub fn signature_of(&self, function: u32) -> &Signature {
        &self.signatures[self.functions[function as usize].signature as usize]
    }

    /// The signature of a type.
    pub fn signature_of_type(&self, index: u32) -> &Signature {
        &self.signatures[self.types[index as usize] as usize]
    }
}

struct Reading<'a, 'i> {
    module: Module<'a>,
    bodies: Vec<Body<'a>>,
    imports: &'i Imports,
    numbers: BTreeMap<Signature, u32>,
    names: BTreeMap<u32, &'a str>,
}

impl<'a> Reading<'a, '_> {
    fn section(&mut self, payload: Payload<'a>) -> Result<(), Error> {
        match payload {
            Payload::TypeSection(section) => self.types(section),
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    self.import(import.module, import.name, import.ty)?;
                }
                Ok(())
            }
            Payload::FunctionSection(section) => {
                for index in section {
                    self.function(index?, "")?;
                }
                Ok(())
            }
            Payload::TableSection(section) => {
                for table in section {
                    let table = table?;
                    if !matches!(table.init, TableInit::RefNull) {
                        return Err(unsupported("a table with an initial value"));
                    }
                    let limits = Limits { min: table.ty.initial, max: table.ty.maximum.unwrap_or(u64::from(u32::MAX)) };
                    self.table(Table { limits, kind: reference(table.ty.element_type)? })?;
                }
                Ok(())
            }
            Payload::MemorySection(section) => {
                for memory in section {
                    let memory = memory?;
                    let limits = Limits { min: memory.initial, max: memory.maximum.unwrap_or(MAX_MEMORY_PAGES) };
                    self.module.memory = Some(limits);
                }
                Ok(())
            }
            Payload::GlobalSection(section) => {
                for global in section {
                    let global = global?;
                    let value = constants::evaluate(&global.init_expr, &self.module.globals)?;
                    self.global(Global { kind: value_type(global.ty.content_type)?, value })?;
                }
                Ok(())
            }
            Payload::TagSection(section) => {
                for tag in section {
                    let signature = self.module.types[tag?.func_type_idx as usize];
                    self.module.tags.push(Tag { signature, globals: 0..0 });
                }
                Ok(())
            }
            Payload::ExportSection(section) => self.exports(section),
            Payload::StartSection { func, .. } => {
                self.module.start = Some(func);
                Ok(())
            }
            Payload::ElementSection(section) => {
                for element in section {
                    self.element(element?)?;
                }
                Ok(())
            }
            Payload::DataSection(section) => {
                for data in section {
                    let data = data?;
                    let mode = match data.kind {
                        DataKind::Passive => Mode::Passive,
                        DataKind::Active { offset_expr, .. } => self.active(0, &offset_expr)?,
                    };
                    self.module.data.push(Data { mode, bytes: data.data });
                }
                Ok(())
            }
            Payload::CustomSection(section) if section.name() == "name" => {
                // Names are for people: what cannot be read is left out.
                self.names(NameSectionReader::new(wasmparser::BinaryReader::new(
                    section.data(),
                    section.data_offset(),
                )));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn types(&mut self, section: wasmparser::TypeSectionReader<'a>) -> Result<(), Error> {
        for group in section {
            for sub in group?.into_types() {
                let CompositeInnerType::Func(kind) = sub.composite_type.inner else {
                    return Err(unsupported("a type that is no function's"));
                };
                let types = |types: &[ValType]| types.iter().map(|kind| value_type(*kind)).collect::<Result<_, _>>();
                let signature = Signature { parameters: types(kind.params())?, results: types(kind.results())? };
                let next = self.module.signatures.len() as u32;
                let number = *self.numbers.entry(signature.clone()).or_insert(next);
                if number == next {
                    if self.module.signatures.len() == limits::SIGNATURES {
                        return Err(Error::Limit { what: "signatures", most: limits::SIGNATURES });
                    }
                    self.module.signatures.push(signature);
                }
                self.module.types.push(number);
            }
        }
        Ok(())
    }

    fn function(&mut self, index: u32, name: &'a str) -> Result<(), Error> {
        if self.module.functions.len() == limits::FUNCTIONS {
            return Err(Error::Limit { what: "functions", most: limits::FUNCTIONS });
        }
        let signature = self.module.types[index as usize];
        self.module.functions.push(Function { signature, name });
        Ok(())
    }

    fn table(&mut self, table: Table) -> Result<(), Error> {
        if self.module.tables.len() == MAX_TABLES {
            return Err(Error::Limit { what: "tables", most: MAX_TABLES });
        }
        self.module.tables.push(table);
        Ok(())
    }

    fn global(&mut self, global: Global) -> Result<(), Error> {
        if self.module.globals.len() == MAX_GLOBALS {
            return Err(Error::Limit { what: "globals", most: MAX_GLOBALS });
        }
        self.module.globals.push(global);
        Ok(())
    }

    /// Finds an import among those of the template.
    fn import(&mut self, module: &'a str, name: &'a str, kind: TypeRef) -> Result<(), Error> {
        let wrong = |why: String| Error::Import { module: module.into(), name: name.into(), why };
        let Some((number, offered)) = self.imports.find(module, name) else {
            return Err(wrong(self.nearest(module)));
        };
        match (&offered.kind, kind) {
            (ImportKind::Function(signature), TypeRef::Func(index)) => {
                let wanted = &self.module.signatures[self.module.types[index as usize] as usize];
                if wanted != signature {
                    return Err(wrong(format!("it is imported as {wanted}, and is {signature}")));
                }
                if signature.parameters.len().max(signature.results.len()) > MAX_ARGUMENTS {
                    return Err(Error::Limit { what: "arguments of an import", most: MAX_ARGUMENTS });
                }
                self.function(index, name)?;
                self.module.imported += 1;
                self.bodies.push(Body::Import(number as u32));
                Ok(())
            }
            (ImportKind::Global(global), TypeRef::Global(kind)) => {
                if kind.mutable || value_type(kind.content_type)? != global.kind {
                    return Err(wrong(format!("it is a constant of type {}", global.kind)));
                }
                self.global(*global)
            }
            (ImportKind::Memory(limits), TypeRef::Memory(kind)) => {
                let max = kind.maximum.unwrap_or(MAX_MEMORY_PAGES);
                if kind.initial > limits.min || max < limits.max {
                    return Err(wrong(format!("it has {} to {} pages", limits.min, limits.max)));
                }
                self.module.memory = Some(*limits);
                Ok(())
            }
            (ImportKind::Table(table), TypeRef::Table(kind)) => {
                let max = kind.maximum.unwrap_or(u64::from(u32::MAX));
                let fits = kind.initial <= table.limits.min && max >= table.limits.max;
                if !fits || reference(kind.element_type)? != table.kind {
                    return Err(wrong(format!("it has {} to {} entries", table.limits.min, table.limits.max)));
                }
                self.module.imported_tables += 1;
                self.table(*table)
            }
            _ => Err(wrong(String::from("it is something else"))),
        }
    }

    /// Says what there is, for an import that is not.
    fn nearest(&self, module: &str) -> String {
        let names: Vec<&str> =
            self.imports.0.iter().filter(|import| import.module == module).map(|import| import.name.as_str()).collect();
        if !names.is_empty() {
            return format!("there is none of this name; there are {}", names.join(", "));
        }
        let mut modules: Vec<&str> = self.imports.0.iter().map(|import| import.module.as_str()).collect();
        modules.sort_unstable();
        modules.dedup();
        match modules.as_slice() {
            [] => String::from("nothing can be imported here"),
            _ => format!("there is no such module; there is {}", modules.join(", ")),
        }
    }

    fn exports(&mut self, section: wasmparser::ExportSectionReader<'a>) -> Result<(), Error> {
        for export in section {
            let export = export?;
            let kind = match export.kind {
                ExternalKind::Func => ExportKind::Function,
                ExternalKind::Table => ExportKind::Table,
                ExternalKind::Memory => ExportKind::Memory,
                ExternalKind::Global => ExportKind::Global,
                // A host has no use for a kind of exception.
                ExternalKind::Tag => continue,
                other => return Err(unsupported(other)),
            };
            self.module.exports.push(Export { name: export.name, kind, index: export.index });
        }
        Ok(())
    }

    fn element(&mut self, element: wasmparser::Element<'a>) -> Result<(), Error> {
        let mode = match element.kind {
            ElementKind::Passive => Mode::Passive,
            ElementKind::Declared => Mode::Declared,
            ElementKind::Active { table_index, offset_expr } => self.active(table_index.unwrap_or(0), &offset_expr)?,
        };
        let globals = &self.module.globals;
        let items = match element.items {
            ElementItems::Functions(functions) => functions.into_iter().collect::<Result<Vec<u32>, _>>()?,
            ElementItems::Expressions(_, expressions) => expressions
                .into_iter()
                .map(|expression| Ok(constants::evaluate(&expression?, globals)? as u32))
                .collect::<Result<Vec<u32>, Error>>()?,
        };
        self.module.elements.push(Element { mode, items });
        Ok(())
    }

    fn active(&self, target: u32, offset: &wasmparser::ConstExpr<'a>) -> Result<Mode, Error> {
        let offset = constants::evaluate(offset, &self.module.globals)? as u32;
        Ok(Mode::Active { target, offset: u64::from(offset) })
    }

    /// Adds the globals in which exceptions pass.
    fn hide_globals(&mut self) -> Result<(), Error> {
        if self.module.tags.is_empty() {
            return Ok(());
        }
        self.module.pending = self.module.globals.len() as u32;
        self.global(Global { kind: ValueType::I32, value: 0 })?;
        for tag in 0..self.module.tags.len() {
            let first = self.module.globals.len() as u32;
            let signature = self.module.tags[tag].signature as usize;
            for kind in self.module.signatures[signature].parameters.clone() {
                self.global(Global { kind, value: 0 })?;
            }
            self.module.tags[tag].globals = first..self.module.globals.len() as u32;
        }
        Ok(())
    }

    fn names(&mut self, section: NameSectionReader<'a>) {
        for subsection in section.into_iter().map_while(Result::ok) {
            if let Name::Function(names) = subsection {
                for naming in names.into_iter().map_while(Result::ok) {
                    self.names.insert(naming.index, naming.name);
                }
            }
        }
    }

    fn finish(mut self) -> (Module<'a>, Vec<Body<'a>>) {
        let module = &mut self.module;
        for export in module.exports.iter().filter(|export| export.kind == ExportKind::Function) {
            if let Some(function) = module.functions.get_mut(export.index as usize)
                && function.name.is_empty()
            {
                function.name = export.name;
            }
        }
        for (index, name) in self.names {
            if let Some(function) = module.functions.get_mut(index as usize) {
                function.name = name;
            }
        }
        self.module.sealed = Sealed::of(&self.module, &self.bodies);
        (self.module, self.bodies)
    }
}

/// The type of a value.
pub fn value_type(kind: ValType) -> Result<ValueType, Error> {
    Ok(match kind {
        ValType::I32 => ValueType::I32,
        ValType::I64 => ValueType::I64,
        ValType::F32 => ValueType::F32,
        ValType::F64 => ValueType::F64,
        ValType::V128 => ValueType::V128,
        ValType::Ref(kind) => return reference(kind),
    })
}

fn reference(kind: RefType) -> Result<ValueType, Error> {
    if kind == RefType::FUNCREF {
        Ok(ValueType::FuncRef)
    } else if kind == RefType::EXTERNREF {
        Ok(ValueType::ExternRef)
    } else {
        Err(unsupported(kind))
    }
}

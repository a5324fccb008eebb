//! A program's manifest.

use abi::Automaton;
use manifest_model::{
    Awaited, Bounds, Category, Code as ProgramCode, ContractSide, ContractUse, Digest, EndpointSlot, Manifest, Provide,
    Quota, Side, Source, Version, Whose, is_name, is_path, may_give,
};
use toml::Spanned;
use toml::de::DeTable;

use crate::diagnostic::{Code, Diagnostics};
use crate::objects::{DeviceObject, is_entry, is_rust_path};
use crate::parameters;
use crate::reader::{At, Report, Span, Table, one_of};
use crate::{generated, resources, shapes};

/// Metadata of a contract.
#[derive(Clone, Debug)]
pub struct Contract {
    /// SHA-256 of the automaton's bytes.
    pub fingerprint: Digest,
    /// Messages and states.
    pub automaton: Automaton,
}

/// A source of contract metadata.
pub trait Contracts {
    /// Returns the contract of this name from the contract files that the program depends on.
    fn find(&self, name: &str) -> Option<Contract>;
    /// Names of all of them, for messages.
    fn names(&self) -> Vec<String>;
}

/// A program's manifest, read and checked.
#[derive(Clone, Debug)]
pub struct Program {
    /// Binary form. The digest of the image is zero until a package is built. Without contracts to look names up in,
    /// fingerprints, automata and state numbers are zero and empty.
    pub manifest: Manifest,
    /// Folder of the crate, relative to the manifest; `None` if the code is a script.
    pub crate_path: Option<String>,
    /// Rust path of the module with `main`, from the crate's root; `None` if that is the root itself.
    pub entry: Option<String>,
    /// The WebAssembly module that it is, if it is one.
    pub wasm: Option<WasmModule>,
    /// For each contract, the Rust path of its module if the manifest has one.
    pub modules: Vec<Option<String>>,
    /// For each device, the object that the program gets.
    pub objects: Vec<DeviceObject>,
}

/// A WebAssembly module and the template that plays its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WasmModule {
    /// Path of the module, relative to the manifest.
    pub path: String,
    /// Name of the template.
    pub template: String,
    /// How its code keeps to linear memory.
    pub bounds: Bounds,
}

/// Bounds of a module whose manifest names none.
pub const DEFAULT_BOUNDS: Bounds = Bounds::Guarded;

/// Template of a module whose manifest names none.
pub const DEFAULT_TEMPLATE: &str = "wasi";

impl Program {
    /// Gives a WebAssembly program the contracts, endpoints, parameters and whatever else its template's code expects;
    /// its own come behind those of the template, and a program without quotas has those of the template. Fails with
    /// the name of the section that it may not have.
    ///
    /// # Errors
    /// It has devices, or a contract or an endpoint of a name that the template has.
    pub fn inherit(&mut self, template: &Program) -> Result<(), &'static str> {
        let (own, host) = (&mut self.manifest, &template.manifest);
        let is_slot_twice = own.endpoints.iter().any(|slot| host.endpoint(&slot.name).is_some());
        let is_hosts = |contract: &ContractUse| host.contracts.iter().any(|other| other.name == contract.name);
        let sections = [
            (own.devices.is_empty(), "a [[device]]"),
            (!own.contracts.iter().any(is_hosts), "a [[contract]] by which its template works"),
            (!is_slot_twice, "an [[endpoint]] of a name that its template has"),
        ];
        if let Some((_, section)) = sections.into_iter().find(|(is_allowed, _)| !is_allowed) {
            return Err(section);
        }
        let behind = host.contracts.len() as u16;
        own.endpoints.iter_mut().for_each(|slot| slot.contract += behind);
        own.provides.iter_mut().for_each(|provide| provide.contract += behind);
        let awaited = own.contracts.iter_mut().flat_map(|contract| contract.waits_for.iter_mut().flatten());
        awaited.for_each(|awaited| awaited.contract += behind);
        own.contracts.splice(0..0, host.contracts.iter().cloned());
        own.endpoints.splice(0..0, host.endpoints.iter().cloned());
        self.modules.splice(0..0, template.modules.iter().cloned());
        let parameters = core::mem::take(&mut own.parameters);
        own.parameters = host.parameters.clone();
        own.parameters.extend(parameters);
        if own.quota == Quota::default() {
            own.quota = host.quota;
        }
        Ok(())
    }
}

/// Publisher of a manifest that has none.
pub const DEFAULT_PUBLISHER: &str = "singularity";

/// Reads and checks the manifest `text` of a program; `file` is its name in messages. Without `contracts`, checks that
/// depend on them are skipped.
pub fn program(file: &str, text: &str, contracts: Option<&dyn Contracts>) -> Result<Program, Diagnostics> {
    crate::read(file, text, |report, table| {
        let program = Reader { report, contracts }.program(table)?;
        // After a reading error, the rules would report consequential faults.
        if report.count() == 0 {
            let left_open = |code| contracts.is_none() && code == install::Code::BadAutomaton;
            let findings = install::manifest_findings(&program.manifest).into_iter();
            findings.filter(|finding| !left_open(finding.code)).for_each(|finding| report.add_finding(finding));
        }
        Some(program)
    })
}

struct Reader<'a> {
    report: &'a Report,
    contracts: Option<&'a dyn Contracts>,
}

/// What `[code]` says; nothing where it is wrong.
#[derive(Default)]
struct Body {
    code: Option<ProgramCode>,
    crate_path: Option<String>,
    entry: Option<String>,
    wasm: Option<WasmModule>,
}

/// A listed contract, with its automaton if known.
struct Listed {
    name: At<String>,
    side: ContractSide,
    known: Option<Contract>,
    waits_for: Option<Vec<At<String>>>,
}

impl Reader<'_> {
    fn program(&self, table: &Spanned<DeTable<'_>>) -> Option<Program> {
        let root = Table::new(self.report, table.get_ref(), &shapes::PROGRAM, 0..0);
        let Some(head) = root.table("program") else {
            let remedy = "add `[program]` with `name`, `version`, `abi`, `category` and `summary`".to_string();
            self.report.add(Code::MissingKey, "the manifest has no [program]".into(), &(0..0), "here", remedy);
            return None;
        };
        let name = head.required_text("name");
        let publisher = head.text("publisher");
        let version = self.version(&head);
        let abi = head.required_judged("abi");
        let category = head.required_word("category", Category::from_word);
        let summary = head.required_text("summary").map(|text| text.value);
        head.close();

        let Body { code, crate_path, entry, wasm } = self.code(&root);
        let (listed, modules) = self.contracts(&root);
        let endpoints = self.endpoints(&root, &listed);
        let parameters = parameters::read(self.report, &root);
        let provides = self.provides(&root, &listed);
        let devices = resources::devices(self.report, &root);
        generated::check_fields(self.report, &endpoints, &parameters, &devices);
        generated::check_types(self.report, &devices);
        let (devices, objects) = devices.into_iter().map(|device| device.value).unzip();
        let requires = resources::requires(self.report, &root);
        let quota = resources::quota(&root);
        let supervision = resources::supervision(&root);
        let permissions = resources::permissions(&root);
        let domain = resources::domain(&root);
        let assertions = resources::assertions(self.report, &root);
        root.close();
        let manifest = Manifest {
            name: name?.value,
            publisher: publisher.map_or(DEFAULT_PUBLISHER.into(), |publisher| publisher.value),
            version: version?,
            abi: abi?.value,
            category: category?.value,
            summary: summary?,
            code: code?,
            contracts: self.uses(listed),
            endpoints: endpoints.into_iter().map(|slot| slot.value).collect(),
            parameters: parameters.into_iter().map(|parameter| parameter.value).collect(),
            provides,
            devices,
            requires,
            quota,
            supervision,
            permissions,
            domain,
            assertions,
        };
        Some(Program { manifest, crate_path, entry, wasm, modules, objects })
    }

    fn name(&self, name: Option<At<String>>, what: &str) -> Option<At<String>> {
        let name = name?;
        check_name(self.report, &name, what);
        Some(name)
    }

    fn version(&self, head: &Table<'_, '_>) -> Option<Version> {
        let text = head.required_text("version")?;
        let version = Version::parse(&text.value);
        if version.is_none() {
            let message = format!("`{}` is not a version", text.value);
            let remedy = "write three numbers without leading zeros: `0.1.0`".to_string();
            self.report.add(Code::BadVersion, message, &text.span, "three numbers with dots are wanted", remedy);
        }
        version
    }

    /// Reads the code, the crate's folder and the module with `main`.
    fn code(&self, root: &Table<'_, '_>) -> Body {
        let Some(table) = root.table("code") else {
            let code = Some(ProgramCode::Image { digest: [0; 32] });
            return Body { code, crate_path: Some(".".into()), ..Body::default() };
        };
        let (wasm, template) = (table.text("wasm"), table.text("template"));
        let bounds = table.word("bounds", Bounds::from_word);
        let (path, script, entry) = (table.text("crate"), table.text("script"), table.text("entry"));
        // For the builder alone, which decides whether a program may declare it.
        table.flag("unsafe-for-tests");
        let is_template = table.flag("wasm-template").value;
        // The builder compiles the files.
        let has_c = !table.bounded_texts("c").is_empty() | !table.bounded_texts("c-headers").is_empty();
        let is_unsafe = table.flag("unsafe").value | has_c;
        table.close();
        let digest = [0; 32];
        let image = match (is_unsafe, is_template) {
            (true, _) => ProgramCode::Unsafe { digest },
            (false, true) => ProgramCode::Template { digest },
            (false, false) => ProgramCode::Image { digest },
        };
        let problem = |message: &str, span: &Span, label: &str| {
            let remedy =
                "write `crate = \".\"` for a Rust program, `wasm = \"x.wasm\"` for a WebAssembly module, or `script = \"...\"` for shell commands".to_string();
            self.report.add(Code::ScriptOrCrate, message.into(), span, label, remedy);
        };
        if let Some(wasm) = wasm {
            if let Some(other) = [&path, &script, &entry].into_iter().flatten().next() {
                problem("[code] has a WebAssembly module and other code", &other.span, "other code");
                return Body::default();
            }
            if is_unsafe {
                problem("[code] has a WebAssembly module and unsafe code", &wasm.span, "a module is not unsafe");
                return Body::default();
            }
            let template = template.map_or(DEFAULT_TEMPLATE.into(), |template| template.value);
            return Body {
                code: Some(image),
                wasm: Some(WasmModule {
                    path: wasm.value,
                    template,
                    bounds: bounds.map_or(DEFAULT_BOUNDS, |bounds| bounds.value),
                }),
                ..Body::default()
            };
        }
        if let Some(template) = template {
            problem("[code] has a template and no WebAssembly module", &template.span, "only a module has one");
            return Body::default();
        }
        if let Some(bounds) = bounds {
            problem("[code] has bounds and no WebAssembly module", &bounds.span, "only a module has them");
            return Body::default();
        }
        match (path, script, entry) {
            (Some(path), None, entry) => {
                let entry = entry.map(|entry| self.entry(entry));
                return Body { code: Some(image), crate_path: Some(path.value), entry, ..Body::default() };
            }
            (None, Some(script), _) if is_unsafe => {
                problem("[code] has a script and unsafe code", &script.span, "only a crate has unsafe code or C code");
            }
            (None, Some(script), None) => {
                return Body { code: Some(ProgramCode::Script { text: script.value }), ..Body::default() };
            }
            (None, Some(_), Some(entry)) => {
                problem("[code] has a script and an entry", &entry.span, "only a crate has one");
            }
            (Some(_), Some(script), _) => {
                problem("[code] has both a crate and a script", &script.span, "a crate is named too");
            }
            (None, None, _) => {
                problem("[code] has neither a crate nor a script", &table.span, "one of them is wanted here");
            }
        }
        Body::default()
    }

    fn entry(&self, entry: At<String>) -> String {
        if !is_entry(&entry.value) {
            let message = format!("`{}` is not the path of a Rust module", entry.value);
            let remedy = "write the module's name, or the names on the way to it: `wc`, `tools::wc`".to_string();
            self.report.add(Code::BadModule, message, &entry.span, "not a path", remedy);
        }
        entry.value
    }

    fn contracts(&self, root: &Table<'_, '_>) -> (Vec<Listed>, Vec<Option<String>>) {
        let mut listed: Vec<Listed> = Vec::new();
        let mut modules = Vec::new();
        for table in root.tables("contract") {
            let name = table.required_text("name");
            let side = table.required_word("use", ContractSide::from_word);
            let module = table.text("module").map(|module| self.module(module));
            let waits_for = table.get("waits-for").map(|_| table.texts("waits-for"));
            table.close();
            let Some(name) = name else { continue };
            let known = self.contracts.and_then(|contracts| contracts.find(&name.value));
            if let (None, Some(contracts)) = (&known, self.contracts) {
                let names = contracts.names();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let message = format!("there is no contract `{}`", name.value);
                let remedy = if names.is_empty() {
                    "put the manifest beside a crate that depends on the crate with the contract's file".into()
                } else {
                    format!("{} Else depend on the crate that has the contract's file", one_of(&name.value, &names))
                        .replace("` Else", "`; else")
                };
                self.report.add(Code::UnknownContract, message, &name.span, "no contract file declares it", remedy);
            }
            listed.push(Listed { name, side: side.map_or(ContractSide::Both, |side| side.value), known, waits_for });
            modules.push(module);
        }
        (listed, modules)
    }

    fn uses(&self, listed: Vec<Listed>) -> Vec<ContractUse> {
        let awaited = |contract: &Listed| {
            let entry = |text: &At<String>| {
                let (name, whose) = Whose::split(&text.value);
                let (contract, _) = self.listed(&listed, &At::new(name.into(), text.span.clone()))?;
                Some(Awaited { contract, whose })
            };
            Some(contract.waits_for.as_ref()?.iter().filter_map(entry).collect())
        };
        let awaited: Vec<Option<Vec<Awaited>>> = listed.iter().map(awaited).collect();
        let uses = listed.into_iter().zip(awaited);
        uses.map(|(contract, waits_for)| ContractUse { waits_for, ..contract.into_use() }).collect()
    }

    fn module(&self, module: At<String>) -> String {
        if !is_rust_path(&module.value) {
            let message = format!("`{}` is not the path of a Rust module", module.value);
            let remedy = "write the crate and the module: `ping_contract::ping`".to_string();
            self.report.add(Code::BadModule, message, &module.span, "not a path", remedy);
        }
        module.value
    }

    /// Returns the listed contract of this name.
    fn listed<'l>(&self, listed: &'l [Listed], name: &At<String>) -> Option<(u16, &'l Listed)> {
        let found = listed.iter().enumerate().find(|(_, contract)| contract.name.value == name.value);
        if found.is_none() {
            let message = format!("the contract `{}` is not listed", name.value);
            let remedy = format!("add a [[contract]] with `name = \"{}\"`", name.value);
            self.report.add(Code::ContractNotListed, message, &name.span, "no [[contract]] has this name", remedy);
        }
        found.and_then(|(index, contract)| Some((u16::try_from(index).ok()?, contract)))
    }

    fn endpoints(&self, root: &Table<'_, '_>, listed: &[Listed]) -> Vec<At<EndpointSlot>> {
        let mut slots: Vec<At<EndpointSlot>> = Vec::new();
        for table in root.tables("endpoint") {
            slots.extend(self.endpoint(&table, listed));
            table.close();
        }
        slots
    }

    /// Reads one slot; its place is that of its name.
    fn endpoint(&self, table: &Table<'_, '_>, listed: &[Listed]) -> Option<At<EndpointSlot>> {
        let name = self.name(table.required_text("name"), "an endpoint");
        let contract = table.required_text("contract");
        let side = table.required_word("side", Side::from_word);
        let state = table.required_text("state");
        // An invalid path is reported by the rules.
        let source = table.required_text("from");
        let source = source.map(|text| Source::from_word(&text.value).unwrap_or(Source::Path(text.value)));
        let optional = table.flag("optional").value;
        let (index, contract) = self.listed(listed, &contract?)?;
        let (name, side, state) = (name?, side?, state?);
        let state_number = self.check_state(contract, &state);
        let slot = EndpointSlot {
            name: name.value,
            contract: index,
            side: side.value,
            state: state_number,
            state_name: state.value,
            source: source?,
            optional,
        };
        Some(At::new(slot, name.span))
    }

    /// Returns the number of the state; 0 if the contract is unknown.
    fn check_state(&self, contract: &Listed, state: &At<String>) -> u16 {
        let Some(known) = &contract.known else { return 0 };
        let states = &known.automaton.states;
        let number = states.iter().position(|row| row.name == state.value).and_then(|at| u16::try_from(at).ok());
        let givable: Vec<&str> = (0u16..)
            .zip(states)
            .filter(|(number, row)| may_give(&known.automaton, *number) && !row.name.contains(' '))
            .map(|(_, row)| row.name.as_str())
            .collect();
        let Some(number) = number else {
            let message = format!("the contract `{}` has no state `{}`", contract.name.value, state.value);
            let remedy = one_of(&state.value, &givable);
            self.report.add(Code::UnknownState, message, &state.span, "no such state", remedy);
            return 0;
        };
        number
    }

    fn provides(&self, root: &Table<'_, '_>, listed: &[Listed]) -> Vec<Provide> {
        let mut provides = Vec::new();
        for table in root.tables("provide") {
            let path = table.required_text("path");
            let contract = table.required_text("contract");
            table.close();
            let (Some(path), Some(contract)) = (path, contract) else { continue };
            let Some((index, _)) = self.listed(listed, &contract) else { continue };
            provides.push(Provide { path: path.value, contract: index });
        }
        provides
    }
}

impl Listed {
    fn into_use(self) -> ContractUse {
        let (fingerprint, automaton) =
            self.known.map_or(([0; 32], Vec::new()), |known| (known.fingerprint, known.automaton.encode()));
        ContractUse { name: self.name.value, side: self.side, fingerprint, automaton, waits_for: None }
    }
}

/// Reports a name that is not `[a-z][a-z0-9-]*`.
pub(crate) fn check_name(report: &Report, name: &At<String>, what: &str) {
    if !is_name(&name.value) {
        let message = format!("`{}` cannot be the name of {what}", name.value);
        let remedy = "write small letters, digits and hyphens, a letter first, 63 at most".to_string();
        report.add(Code::BadName, message, &name.span, "not a name", remedy);
    }
}

/// Reports a path that is not absolute.
pub(crate) fn check_path(report: &Report, path: &At<String>) {
    if !is_path(&path.value) {
        let message = format!("`{}` is not a path from the root", path.value);
        let remedy = "write `/` or `/a/b`, without `.`, `..` and `/` at the end".to_string();
        report.add(Code::BadPath, message, &path.span, "not an absolute path", remedy);
    }
}

/// Reports the second of two items with the same name.
pub(crate) fn duplicate(report: &Report, code: Code, what: &str, name: &At<String>, first: &Span) {
    let message = format!("{what} `{}` is there twice", name.value);
    let here = (&name.span, "this is the second");
    report.add_second(code, message, here, (first, "this is the first"), "remove or rename one of them".into());
}

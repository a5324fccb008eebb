//! A program's manifest.

use abi::Automaton;
use manifest_model::{
    Category, Code as ProgramCode, ContractSide, ContractUse, Digest, EndpointSlot, Manifest, Provide, Side, Source,
    Version, is_name, is_path, may_give,
};
use toml::Spanned;
use toml::de::DeTable;

use crate::diagnostic::{Code, Diagnostics};
use crate::objects::{DeviceObject, is_rust_path};
use crate::parameters;
use crate::reader::{At, Report, Span, Table, list, one_of};
use crate::{generated, resources, shapes};

/// What is known of a contract.
#[derive(Clone, Debug)]
pub struct Contract {
    /// SHA-256 of the automaton's bytes.
    pub fingerprint: Digest,
    /// Messages and states.
    pub automaton: Automaton,
}

/// Where facts about contracts come from.
pub trait Contracts {
    /// The contract of this name among the contract files that the program depends on.
    fn find(&self, name: &str) -> Option<Contract>;
    /// Names of all of them, for messages.
    fn names(&self) -> Vec<String>;
}

/// A program's manifest, read and checked.
#[derive(Clone, Debug)]
pub struct Program {
    /// For machines. The digest of the image is zero until a package is built. If no contracts were given
    /// to look names up in, fingerprints, automata and state numbers are zero and empty.
    pub manifest: Manifest,
    /// Folder of the crate, relative to the manifest; `None` if the code is a script.
    pub crate_path: Option<String>,
    /// For each contract: the Rust path of its module where the manifest names one.
    pub modules: Vec<Option<String>>,
    /// For each device: as what the program gets it.
    pub objects: Vec<DeviceObject>,
}

/// The publisher where the manifest names none.
const DEFAULT_PUBLISHER: &str = "singularity";

/// Reads and checks the manifest `text` of a program; `file` is its name in messages. Without
/// `contracts`, what depends on them is left unchecked.
pub fn program(file: &str, text: &str, contracts: Option<&dyn Contracts>) -> Result<Program, Diagnostics> {
    crate::read(file, text, |report, table| Reader { report, contracts }.program(table))
}

struct Reader<'a> {
    report: &'a Report,
    contracts: Option<&'a dyn Contracts>,
}

/// A contract of the list, with its automaton where one is known.
struct Listed {
    name: At<String>,
    side: ContractSide,
    known: Option<Contract>,
}

impl Reader<'_> {
    fn program(&self, table: &Spanned<DeTable<'_>>) -> Option<Program> {
        let root = Table::new(self.report, table.get_ref(), &shapes::PROGRAM, 0..0);
        let Some(head) = root.table("program") else {
            let remedy = "add `[program]` with `name`, `version`, `abi`, `category` and `summary`".to_string();
            self.report.add(Code::MissingKey, "the manifest has no [program]".into(), &(0..0), "here", remedy);
            return None;
        };
        let name = self.name(head.required_text("name"), "a program");
        if let Some(name) = &name {
            check_is_not_system(self.report, name);
        }
        let publisher = self.name(head.text("publisher"), "a publisher");
        let version = self.version(&head);
        let abi = self.abi(&head);
        let category = head.required_word("category", Category::from_word);
        let summary = head.required_text("summary").map(|text| self.line(text, "summary"));
        head.close();

        let (code, crate_path) = self.code(&root);
        let (listed, modules) = self.contracts(&root);
        let endpoints = self.endpoints(&root, &listed);
        let parameters = parameters::read(self.report, &root);
        let provides = self.provides(&root, &listed, &endpoints);
        let devices = resources::devices(self.report, &root);
        generated::check_fields(self.report, &endpoints, &parameters, &devices);
        generated::check_types(self.report, &devices);
        let (devices, objects) = devices.into_iter().map(|device| device.value).unzip();
        let own_name = name.as_ref().map(|name| name.value.as_str());
        let requires = resources::requires(self.report, &root, own_name);
        let quota = resources::quota(&root);
        let supervision = resources::supervision(self.report, &root);
        let permissions = resources::permissions(self.report, &root);
        let domain = resources::domain(&root);
        root.close();
        let manifest = Manifest {
            name: name?.value,
            publisher: publisher.map_or(DEFAULT_PUBLISHER.into(), |publisher| publisher.value),
            version: version?,
            abi: abi?,
            category: category?.value,
            summary: summary?,
            code: code?,
            contracts: listed.into_iter().map(Listed::into_use).collect(),
            endpoints: endpoints.into_iter().map(|slot| slot.value).collect(),
            parameters: parameters.into_iter().map(|parameter| parameter.value).collect(),
            provides,
            devices,
            requires,
            quota,
            supervision,
            permissions,
            domain,
        };
        Some(Program { manifest, crate_path, modules, objects })
    }

    fn name(&self, name: Option<At<String>>, what: &str) -> Option<At<String>> {
        let name = name?;
        check_name(self.report, &name, what);
        Some(name)
    }

    /// A text of one line.
    fn line(&self, text: At<String>, key: &str) -> String {
        check_line(self.report, &text, key);
        text.value
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

    fn abi(&self, head: &Table<'_, '_>) -> Option<u32> {
        let number = head.required_integer("abi")?;
        if number.value != i64::from(abi::ABI_VERSION) {
            let message = format!("there is no ABI version {}", number.value);
            let remedy = format!("write `abi = {}`", abi::ABI_VERSION);
            self.report.add(Code::AbiVersion, message, &number.span, "no kernel has this version", remedy);
            return None;
        }
        u32::try_from(number.value).ok()
    }

    fn code(&self, root: &Table<'_, '_>) -> (Option<ProgramCode>, Option<String>) {
        let Some(table) = root.table("code") else {
            return (Some(ProgramCode::Image { digest: [0; 32] }), Some(".".into()));
        };
        let (path, script) = (table.text("crate"), table.text("script"));
        // For the builder alone, which says when a program may declare it.
        table.flag("unsafe-for-tests");
        table.close();
        let problem = |message: &str, span: &Span, label: &str| {
            let remedy =
                "write `crate = \".\"` for a Rust program, or `script = \"...\"` for shell commands".to_string();
            self.report.add(Code::ScriptOrCrate, message.into(), span, label, remedy);
        };
        match (path, script) {
            (Some(path), None) => (Some(ProgramCode::Image { digest: [0; 32] }), Some(path.value)),
            (None, Some(script)) if script.value.trim().is_empty() => {
                problem("the script has no commands", &script.span, "this is empty");
                (None, None)
            }
            (None, Some(script)) => (Some(ProgramCode::Script { text: script.value }), None),
            (Some(_), Some(script)) => {
                problem("[code] has both a crate and a script", &script.span, "a crate is named too");
                (None, None)
            }
            (None, None) => {
                problem("[code] has neither a crate nor a script", &table.span, "one of them is wanted here");
                (None, None)
            }
        }
    }

    fn contracts(&self, root: &Table<'_, '_>) -> (Vec<Listed>, Vec<Option<String>>) {
        let mut listed: Vec<Listed> = Vec::new();
        let mut modules = Vec::new();
        for table in root.tables("contract") {
            let name = table.required_text("name");
            let side = table.required_word("use", ContractSide::from_word);
            let module = table.text("module").map(|module| self.module(module));
            table.close();
            let Some(name) = name else { continue };
            if let Some(first) = listed.iter().find(|other| other.name.value == name.value) {
                self.duplicate(Code::DuplicateContract, "the contract", &name, &first.name.span);
                continue;
            }
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
            listed.push(Listed { name, side: side.map_or(ContractSide::Both, |side| side.value), known });
            modules.push(module);
        }
        (listed, modules)
    }

    fn module(&self, module: At<String>) -> String {
        if !is_rust_path(&module.value) {
            let message = format!("`{}` is not the path of a Rust module", module.value);
            let remedy = "write the crate and the module: `ping_contract::ping`".to_string();
            self.report.add(Code::BadModule, message, &module.span, "not a path", remedy);
        }
        module.value
    }

    fn duplicate(&self, code: Code, what: &str, name: &At<String>, first: &Span) {
        duplicate(self.report, code, what, name, first);
    }

    /// The contract of the list with this name.
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
            let slot = self.endpoint(&table, listed);
            table.close();
            let Some(slot) = slot else { continue };
            match slots.iter().find(|other| other.value.name == slot.value.name) {
                Some(first) => {
                    let name = At::new(slot.value.name, slot.span);
                    self.duplicate(Code::DuplicateEndpoint, "the endpoint", &name, &first.span);
                }
                None => slots.push(slot),
            }
        }
        slots
    }

    /// One slot; its place is that of its name.
    fn endpoint(&self, table: &Table<'_, '_>, listed: &[Listed]) -> Option<At<EndpointSlot>> {
        let name = self.name(table.required_text("name"), "an endpoint");
        let contract = table.required_text("contract");
        let side = table.required_word("side", Side::from_word);
        let state = table.required_text("state");
        let source = table.required_text("from").and_then(|text| self.source(text));
        let optional = table.flag("optional").value;
        let (index, contract) = self.listed(listed, &contract?)?;
        let (name, side, state) = (name?, side?, state?);
        self.check_side(contract, &side);
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

    fn source(&self, text: At<String>) -> Option<Source> {
        let source = Source::from_word(&text.value);
        if source.is_none() {
            let message = format!("`{}` is no place that an endpoint comes from", text.value);
            let remedy = "write `parent`, `stdin`, `stdout` or a path from the root: `/dev/disk0`".to_string();
            self.report.add(Code::BadPath, message, &text.span, "neither a known word nor a path", remedy);
        }
        source
    }

    fn check_side(&self, contract: &Listed, side: &At<Side>) {
        let needed = match side.value {
            Side::Importer => ContractSide::Import,
            Side::Exporter => ContractSide::Export,
        };
        if contract.side == needed || contract.side == ContractSide::Both {
            return;
        }
        let message = format!(
            "the endpoint is the `{}` end of `{}`, which the program lists for {} only",
            side.value, contract.name.value, contract.side
        );
        let remedy = format!("write `use = \"{needed}\"` or `use = \"both\"` in the [[contract]]");
        let here = (&side.span, "this end is not handled");
        self.report.add_second(Code::WrongSide, message, here, (&contract.name.span, "listed here"), remedy);
    }

    /// Number of the state; 0 where the contract is not known.
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
        if !may_give(&known.automaton, number) {
            let message = format!(
                "an endpoint of `{}` cannot be given away in the state `{}`: the conversation is over there",
                contract.name.value, state.value
            );
            let remedy = format!("write one of {}", list(&givable));
            self.report.add(Code::ImmovableEndpoint, message, &state.span, "nothing can be said here", remedy);
        }
        number
    }

    fn provides(&self, root: &Table<'_, '_>, listed: &[Listed], endpoints: &[At<EndpointSlot>]) -> Vec<Provide> {
        let mut provides: Vec<(At<String>, Provide)> = Vec::new();
        for table in root.tables("provide") {
            let path = table.required_text("path");
            let contract = table.required_text("contract");
            table.close();
            let (Some(path), Some(contract)) = (path, contract) else { continue };
            check_path(self.report, &path);
            if let Some((first, _)) = provides.iter().find(|(other, _)| other.value == path.value) {
                self.duplicate(Code::DuplicateProvide, "the path", &path, &first.span);
                continue;
            }
            let Some((index, listed)) = self.listed(listed, &contract) else { continue };
            self.check_side(listed, &contract.map(|_| Side::Exporter));
            let provide = Provide { path: path.value.clone(), contract: index };
            provides.push((path, provide));
        }
        // The n-th path's clients come through the n-th slot whose other end the parent keeps: one of the
        // directory service's provider contract, or one of the contract itself.
        let takes_clients = |slot: &EndpointSlot, provide: &Provide| {
            let name = listed.get(slot.contract as usize).map(|contract| contract.name.value.as_str());
            slot.side == Side::Exporter
                && slot.source == Source::Parent
                && (name == Some(PROVIDER_CONTRACT) || slot.contract == provide.contract)
        };
        let mut slots = endpoints.iter();
        for (path, provide) in &provides {
            if !slots.any(|slot| takes_clients(&slot.value, provide)) {
                let message = format!("nothing takes the clients of `{}`", path.value);
                let remedy = format!(
                    "add an [[endpoint]] with `contract = \"{PROVIDER_CONTRACT}\"`, `side = \"exp\"`, `state = \"START\"` \
                     and `from = \"parent\"` for each [[provide]]"
                );
                self.report.add(Code::ProvideWithoutSlot, message, &path.span, "provided here", remedy);
            }
        }
        provides.into_iter().map(|(_, provide)| provide).collect()
    }
}

/// The contract through which the directory service hands clients over.
const PROVIDER_CONTRACT: &str = "ServiceProvider";

impl Listed {
    fn into_use(self) -> ContractUse {
        let (fingerprint, automaton) =
            self.known.map_or(([0; 32], Vec::new()), |known| (known.fingerprint, known.automaton.encode()));
        ContractUse { name: self.name.value, side: self.side, fingerprint, automaton }
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

/// Reports a program that would be called as the system is.
fn check_is_not_system(report: &Report, name: &At<String>) {
    if name.value == manifest_model::SYSTEM_NAME {
        let message = format!("`{}` is the name of the system itself, with which its messages begin", name.value);
        report.add(Code::BadName, message, &name.span, "taken", "give the program another name".to_string());
    }
}

/// Reports a text that is empty or has several lines.
pub(crate) fn check_line(report: &Report, text: &At<String>, key: &str) {
    if text.value.trim().is_empty() || text.value.contains(char::is_control) {
        let message = format!("the {key} is not one line of text");
        report.add(Code::BadText, message, &text.span, "one line is wanted", "say in one line what it is for".into());
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

/// Reports the second of two things with one name.
pub(crate) fn duplicate(report: &Report, code: Code, what: &str, name: &At<String>, first: &Span) {
    let message = format!("{what} `{}` is there twice", name.value);
    let here = (&name.span, "this is the second");
    report.add_second(code, message, here, (first, "this is the first"), "remove or rename one of them".into());
}

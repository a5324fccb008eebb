//! What a manifest says by itself: a signed one can be wrong all the same, for its publisher can err or lie.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abi::Automaton;
use manifest_model::{
    Category, Code as ProgramCode, ContractSide, ContractUse, EndpointSlot, MEMORY_END, Manifest, PORTS_END, Parameter,
    Restart, Side, Source, is_name, is_path, is_program_name, may_give,
};

use crate::code::Code;
use crate::report::Finding;

/// The longest list of a manifest.
const LIST_MAX: usize = 256;
/// The longest summary, in bytes.
const SUMMARY_MAX: usize = 200;
/// The longest time of a restart, in milliseconds.
const TIME_MAX_MS: u32 = 3_600_000;
/// The contract through which a directory hands clients over.
const PROVIDER_CONTRACT: &str = "ServiceProvider";

/// All that is wrong with the manifest alone. The fingerprints of its automata are for whoever can hash.
pub fn findings(manifest: &Manifest) -> Vec<Finding> {
    let mut check = Check { manifest, findings: Vec::new() };
    check.lists();
    if !check.findings.is_empty() {
        // What is too long is not read: the time that is spent on a manifest has a bound.
        return check.findings;
    }
    check.names();
    let automata = check.contracts();
    check.endpoints(&automata);
    check.devices();
    check.provides();
    check.requirements();
    check.texts();
    check.parameters();
    check.limits();
    check.findings
}

struct Check<'m> {
    manifest: &'m Manifest,
    findings: Vec<Finding>,
}

impl Check<'_> {
    fn refuse(&mut self, code: Code, what: impl Into<String>, remedy: &str) {
        self.findings.push(Finding::new(code, &self.manifest.name, what, remedy));
    }

    fn names(&mut self) {
        const REMEDY: &str = "write small letters, digits and hyphens, a letter first, 63 at most";
        let (name, publisher) = (&self.manifest.name, &self.manifest.publisher);
        if !is_name(name) {
            self.refuse(Code::BadProgramName, format!("{name:?} cannot be the name of a program"), REMEDY);
        } else if !is_program_name(name) {
            let what = format!("{name:?} is the name of the system itself, with which its messages begin");
            self.refuse(Code::BadProgramName, what, "give the program another name");
        }
        if !is_name(publisher) {
            self.refuse(Code::BadPublisherName, format!("{publisher:?} cannot be the name of a publisher"), REMEDY);
        }
    }

    fn lists(&mut self) {
        let manifest = self.manifest;
        let lists = [
            ("contracts", manifest.contracts.len()),
            ("endpoints", manifest.endpoints.len()),
            ("parameters", manifest.parameters.len()),
            ("provided paths", manifest.provides.len()),
            ("devices", manifest.devices.len()),
            ("required programs", manifest.requires.len()),
            ("permissions", manifest.permissions.len()),
        ];
        for (what, length) in lists.into_iter().filter(|(_, length)| *length > LIST_MAX) {
            self.refuse(Code::ListTooLong, format!("the list of {what} has {length} entries"), "keep it to 256");
        }
    }

    /// The automata that can be read, by contract.
    fn contracts(&mut self) -> Vec<Option<Automaton>> {
        let mut automata = Vec::new();
        for (index, contract) in self.manifest.contracts.iter().enumerate() {
            let name = &contract.name;
            if self.manifest.contracts[..index].iter().any(|other| other.name == *name) {
                self.refuse(Code::DuplicateContract, format!("the contract `{name}` is listed twice"), "remove one");
            }
            if !is_contract_name(name) {
                let remedy = "write letters, digits and underscores, a letter first";
                self.refuse(Code::ContractName, format!("{name:?} cannot be the name of a contract"), remedy);
            }
            match Automaton::decode(&contract.automaton) {
                Ok(automaton) if automaton.name == *name => automata.push(Some(automaton)),
                Ok(other) => {
                    let what = format!("the automaton listed as `{name}` is that of `{}`", other.name);
                    self.refuse(Code::BadAutomaton, what, "build the program again");
                    automata.push(None);
                }
                Err(error) => {
                    let what = format!("the automaton of `{name}` at byte {}: {}", error.offset, error.what);
                    self.refuse(Code::BadAutomaton, what, "build the program again");
                    automata.push(None);
                }
            }
        }
        automata
    }

    fn endpoints(&mut self, automata: &[Option<Automaton>]) {
        let slots = &self.manifest.endpoints;
        for (index, slot) in slots.iter().enumerate() {
            let name = &slot.name;
            if slots[..index].iter().any(|other| other.name == *name) {
                self.refuse(Code::DuplicateSlot, format!("two endpoints are called `{name}`"), "rename one");
            }
            let Some(contract) = self.manifest.contracts.get(usize::from(slot.contract)) else {
                let what =
                    format!("the endpoint `{name}` is of the contract number {}, which is not listed", slot.contract);
                self.refuse(Code::SlotContract, what, "add a [[contract]] to the manifest");
                continue;
            };
            self.slot(slot, contract, automata.get(usize::from(slot.contract)).and_then(Option::as_ref));
        }
    }

    fn slot(&mut self, slot: &EndpointSlot, contract: &ContractUse, automaton: Option<&Automaton>) {
        let name = &slot.name;
        if !handles(contract.side, slot.side) {
            let what = format!(
                "the endpoint `{name}` is the `{}` end of `{}`, which the program handles for {} only",
                slot.side, contract.name, contract.side
            );
            self.refuse(Code::SlotSide, what, "list the contract with `use = \"both\"`");
        }
        if automaton.is_some_and(|automaton| !may_give(automaton, slot.state)) {
            let what =
                format!("the endpoint `{name}` is in a state of `{}` in which nothing can be said", contract.name);
            self.refuse(Code::SlotState, what, "name a state in which the conversation goes on");
        }
        let is_pipe_end = |side| slot.side == side && contract.name == "Pipe";
        match &slot.source {
            Source::Path(path) if !is_path(path) => {
                let what = format!("the endpoint `{name}` is bound to {path:?}, which is no path from the root");
                self.refuse(Code::SlotPath, what, "write `/` or `/a/b`, without `.` and `..`");
            }
            Source::Path(_) if slot.side != Side::Importer => {
                let what = format!(
                    "the endpoint `{name}` is bound to a path, but is the exporting end of `{}`",
                    contract.name
                );
                self.refuse(Code::SlotBoundOtherEnd, what, "who binds a path is a client: write `side = \"imp\"`");
            }
            Source::StandardInput if !is_pipe_end(Side::Exporter) => {
                let what = format!("the endpoint `{name}` is the standard input, but not the exporting end of a Pipe");
                self.refuse(Code::StandardPipe, what, "write `contract = \"Pipe\"` and `side = \"exp\"`");
            }
            Source::StandardOutput if !is_pipe_end(Side::Importer) => {
                let what = format!("the endpoint `{name}` is the standard output, but not the importing end of a Pipe");
                self.refuse(Code::StandardPipe, what, "write `contract = \"Pipe\"` and `side = \"imp\"`");
            }
            _ => {}
        }
    }

    fn devices(&mut self) {
        let devices = &self.manifest.devices;
        for (index, device) in devices.iter().enumerate() {
            let name = &device.name;
            if !is_name(name) {
                let remedy = "write small letters, digits and hyphens, a letter first";
                self.refuse(Code::DeviceName, format!("{name:?} cannot be the name of a device"), remedy);
            }
            if devices[..index].iter().any(|other| other.name == *name) {
                self.refuse(Code::DuplicateDevice, format!("the device `{name}` is listed twice"), "rename one");
            }
            let lists = [device.ports.len(), device.memory.len(), device.interrupts.len()];
            if lists.iter().any(|&length| length > LIST_MAX) {
                let what = format!("the device `{name}` has more than {LIST_MAX} ranges or interrupts");
                self.refuse(Code::ListTooLong, what, "keep each list to 256");
            }
            let sound = device.ports.iter().all(|range| range.is_within(PORTS_END))
                && device.memory.iter().all(|range| range.is_within(MEMORY_END));
            if !sound {
                let what = format!("the device `{name}` has addresses that no machine has");
                self.refuse(Code::RangeImpossible, what, "give ranges that are not empty, of ports below 0x10000");
            }
        }
        // Two devices of one program may be two views of the same registers; one device has each once.
        for ranges in devices.iter().flat_map(|device| [&device.ports, &device.memory]) {
            for (index, range) in ranges.iter().enumerate() {
                if ranges[..index].iter().any(|other| other.overlaps(range)) {
                    let what = format!("the range {range} is listed twice, or a part of it");
                    self.refuse(Code::RangeTwice, what, "list it once");
                }
            }
        }
    }

    fn provides(&mut self) {
        let manifest = self.manifest;
        let mut slots = manifest.endpoints.iter();
        for (index, provide) in manifest.provides.iter().enumerate() {
            let path = &provide.path;
            if !is_path(path) {
                self.refuse(
                    Code::ProvidePath,
                    format!("{path:?} is provided, which is no path from the root"),
                    "write `/a/b`",
                );
            }
            if manifest.provides[..index].iter().any(|other| other.path == *path) {
                self.refuse(Code::DuplicateProvide, format!("`{path}` is provided twice"), "remove one");
            }
            let contract = manifest.contracts.get(usize::from(provide.contract));
            if !contract.is_some_and(|contract| handles(contract.side, Side::Exporter)) {
                let what = format!("`{path}` is provided under a contract that the program does not export");
                self.refuse(Code::ProvideContract, what, "list the contract with `use = \"export\"`");
                continue;
            }
            // The n-th path's clients come through the n-th slot of this sort.
            let takes_clients = |slot: &EndpointSlot| {
                let name = manifest.contracts.get(usize::from(slot.contract)).map(|contract| contract.name.as_str());
                slot.side == Side::Exporter
                    && slot.source == Source::Parent
                    && (name == Some(PROVIDER_CONTRACT) || slot.contract == provide.contract)
            };
            if !slots.any(takes_clients) {
                let what = format!("nothing takes the clients of `{path}`");
                self.refuse(Code::ProvideWithoutSlot, what, "add an [[endpoint]] of ServiceProvider from `parent`");
            }
        }
    }

    fn requirements(&mut self) {
        let requires = &self.manifest.requires;
        for (index, requirement) in requires.iter().enumerate() {
            let name = &requirement.program;
            if *name == self.manifest.name {
                self.refuse(Code::RequirementItself, format!("`{name}` requires itself"), "remove the [[requires]]");
            }
            if requires[..index].iter().any(|other| other.program == *name) {
                self.refuse(Code::RequirementTwice, format!("`{name}` is required twice"), "remove one");
            }
        }
    }

    /// People read these on a terminal, which control characters could make show something else.
    fn texts(&mut self) {
        let manifest = self.manifest;
        let mut texts = Vec::from([("summary", manifest.summary.as_str())]);
        texts.extend(manifest.parameters.iter().map(|parameter| ("help of a parameter", parameter.help.as_str())));
        for (what, _) in texts.into_iter().filter(|(_, text)| text.contains(char::is_control)) {
            self.refuse(Code::ControlCharacter, format!("the {what} has control characters"), "write one line of text");
        }
        if manifest.summary.trim().is_empty() || manifest.summary.len() > SUMMARY_MAX {
            let what = format!("the summary has {} bytes", manifest.summary.len());
            self.refuse(Code::NoSummary, what, "say in one line, of 200 bytes at most, what the program is for");
        }
        if let ProgramCode::Script { text } = &manifest.code {
            if text.trim().is_empty() {
                self.refuse(Code::ScriptEmpty, "the script has no commands", "write some, or name a crate");
            }
            if text.contains(|letter: char| letter.is_control() && letter != '\n' && letter != '\t') {
                self.refuse(Code::ControlCharacter, "the script has control characters", "keep to lines of text");
            }
        }
    }

    fn parameters(&mut self) {
        let parameters = &self.manifest.parameters;
        for (index, parameter) in parameters.iter().enumerate() {
            self.parameter(parameter, &parameters[..index]);
        }
        self.positions();
    }

    fn parameter(&mut self, parameter: &Parameter, before: &[Parameter]) {
        let name = &parameter.name;
        if !is_name(name) {
            let remedy = "write small letters, digits and hyphens, a letter first";
            self.refuse(Code::ParameterName, format!("{name:?} cannot be the name of a parameter"), remedy);
        }
        if before.iter().any(|other| other.name == *name) {
            self.refuse(Code::DuplicateParameter, format!("two parameters are called `{name}`"), "rename one");
        }
        if self.manifest.endpoint(name).is_some() {
            self.refuse(
                Code::ParameterIsEndpoint,
                format!("a parameter and an endpoint are called `{name}`"),
                "rename one",
            );
        }
        if parameter.default.as_ref().is_some_and(|default| default.kind() != parameter.kind) {
            let what = format!("the default of `{name}` is not of the type `{}`", parameter.kind);
            self.refuse(Code::DefaultType, what, "give a value of the parameter's type");
        }
        if parameter.default.is_some() && (parameter.required || parameter.repeated) {
            let sort = if parameter.required { "required" } else { "repeated" };
            self.refuse(Code::DefaultUseless, format!("`{name}` is {sort} and has a default"), "remove the default");
        }
        let Some(flag) = &parameter.flag else { return };
        let body = flag
            .strip_prefix("--")
            .filter(|body| body.len() > 1)
            .or(flag.strip_prefix('-').filter(|body| body.len() == 1));
        let typed = |body: &str| {
            body.starts_with(|first: char| first.is_ascii_alphabetic())
                && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        if !body.is_some_and(typed) {
            self.refuse(
                Code::BadFlag,
                format!("the flag {flag:?} of `{name}` cannot be typed"),
                "write `-l` or `--long`",
            );
        }
        if before.iter().any(|other| other.flag.as_ref() == Some(flag)) {
            self.refuse(Code::DuplicateFlag, format!("the flag `{flag}` has two meanings"), "change one");
        }
    }

    fn positions(&mut self) {
        let mut placed: Vec<&Parameter> =
            self.manifest.parameters.iter().filter(|parameter| parameter.position.is_some()).collect();
        placed.sort_by_key(|parameter| parameter.position);
        if placed.iter().enumerate().any(|(index, parameter)| parameter.position.map(usize::from) != Some(index)) {
            self.refuse(Code::PositionGap, "the positions of parameters are not 0, 1, 2 and so on", "number them anew");
        }
        for pair in placed.windows(2) {
            if pair[0].repeated {
                let what = format!("`{}` takes all words, and `{}` comes behind it", pair[0].name, pair[1].name);
                self.refuse(Code::RepeatedNotLast, what, "let the repeated parameter be the last");
            }
            if pair[1].required && !pair[0].required {
                let what = format!("`{}` must be given, and `{}` before it need not", pair[1].name, pair[0].name);
                self.refuse(Code::RequiredAfterOptional, what, "let required parameters come first");
            }
        }
    }

    fn limits(&mut self) {
        let manifest = self.manifest;
        if let Err(problem) = manifest.quota.check() {
            self.refuse(Code::QuotaRange, problem, "ask for what a program can have");
        }
        let slots = manifest.endpoints.len();
        if (manifest.quota.handles as usize) < slots {
            let what = format!("{} handles are too few for the {slots} endpoints it is given", manifest.quota.handles);
            self.refuse(Code::QuotaHandles, what, "raise the quota `handles`");
        }
        let supervision = &manifest.supervision;
        let times = [supervision.backoff_ms, supervision.backoff_max_ms, supervision.ending_ms];
        if times.iter().any(|&time| time > TIME_MAX_MS) {
            let what = "a time of [supervision] is longer than an hour";
            self.refuse(Code::SupervisionRange, what, "write 3600000 milliseconds at most");
        }
        if supervision.backoff_ms > supervision.backoff_max_ms {
            let what = format!(
                "the longest wait before a restart, {} ms, is below the first, {} ms",
                supervision.backoff_max_ms, supervision.backoff_ms
            );
            self.refuse(Code::SupervisionOrder, what, "raise `backoff_max_ms`");
        }
        if supervision.limit == Some(0) {
            self.refuse(
                Code::SupervisionLimit,
                "the limit of restarts is 0",
                "write `restart = \"never\"` in its place",
            );
        }
        if manifest.category == Category::Console && supervision.restart != Restart::Never {
            let what = "a person starts a console program, and this one would be started again when it ends";
            self.refuse(Code::SupervisionConsole, what, "write `restart = \"never\"`, or make it a service");
        }
        for (index, permission) in manifest.permissions.iter().enumerate() {
            if manifest.permissions[..index].contains(permission) {
                self.refuse(
                    Code::DuplicatePermission,
                    format!("the permission `{permission}` is listed twice"),
                    "remove one",
                );
            }
        }
    }
}

fn is_contract_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a program that lists a contract so handles this end.
pub(crate) fn handles(listed: ContractSide, end: Side) -> bool {
    match end {
        Side::Importer => listed != ContractSide::Export,
        Side::Exporter => listed != ContractSide::Import,
    }
}

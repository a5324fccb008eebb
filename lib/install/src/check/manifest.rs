//! Checks of a single manifest: even a signed one can be wrong, by mistake or intent of its publisher.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abi::{ABI_VERSION, Automaton};
use manifest_model::{
    AddressRange, Category, Code as ProgramCode, ContractSide, ContractUse, EndpointSlot, MEMORY_END, Manifest,
    PORTS_END, Parameter, ParameterKind, Restart, Side, Source, Value, is_name, is_path, is_program_name, may_give,
};

use crate::code::Code;
use crate::field::Field;
use crate::report::Finding;

/// Maximum length of a manifest's lists.
pub const LIST_MAX: usize = 256;
/// Maximum length of a summary, in bytes.
const SUMMARY_MAX: usize = 200;
/// Maximum length of a function's name in an assertion, in bytes.
const FUNCTION_MAX: usize = 400;
/// Maximum restart time, in milliseconds.
const TIME_MAX_MS: u32 = 3_600_000;
/// The contract through which a directory hands clients over.
const PROVIDER_CONTRACT: &str = "ServiceProvider";

/// Returns all faults of the manifest alone. Fingerprints of automata are verified elsewhere, as that needs a hash.
pub fn findings(manifest: &Manifest) -> Vec<Finding> {
    let mut check = Check { manifest, findings: Vec::new() };
    check.lists();
    if !check.findings.is_empty() {
        // Overlong lists are not read, which bounds the time spent on a manifest.
        return check.findings;
    }
    check.names();
    check.findings.extend(other_abi(&manifest.name, manifest.abi));
    let automata = check.contracts();
    check.endpoints(&automata);
    check.devices();
    check.provides();
    check.requirements();
    check.texts();
    check.parameters();
    check.limits();
    check.assertions();
    check.findings
}

struct Check<'m> {
    manifest: &'m Manifest,
    findings: Vec<Finding>,
}

impl Check<'_> {
    fn refuse(&mut self, code: Code, what: impl Into<String>, remedy: impl Into<String>, at: (Field, &'static str)) {
        self.findings.push(Finding::new(code, &self.manifest.name, what, remedy).at(at.0, at.1));
    }

    /// Adds a finding with a second, explanatory place.
    fn refuse_two(
        &mut self,
        code: Code,
        what: impl Into<String>,
        remedy: impl Into<String>,
        places: [(Field, &'static str); 2],
    ) {
        let [at, other] = places;
        self.findings.push(Finding::new(code, &self.manifest.name, what, remedy).at(at.0, at.1).at(other.0, other.1));
    }

    /// Reports the second of two items that must differ.
    fn twice(&mut self, code: Code, what: impl Into<String>, second: Field, first: Field) {
        let places = [(second, "this is the second"), (first, "this is the first")];
        self.refuse_two(code, what, "remove or rename one of them", places);
    }

    fn name(&mut self, code: Code, name: &str, what: &str, field: Field) {
        if !is_name(name) {
            let what = format!("{name:?} cannot be the name of {what}");
            self.refuse(
                code,
                what,
                "write small letters, digits and hyphens, a letter first, 63 at most",
                (field, "not a name"),
            );
        }
    }

    fn names(&mut self) {
        let manifest = self.manifest;
        let field = Field::of("program", "name");
        self.name(Code::BadProgramName, &manifest.name, "a program", field);
        if is_name(&manifest.name) && !is_program_name(&manifest.name) {
            let what = format!("`{}` is the name of the system itself, with which its messages begin", manifest.name);
            self.refuse(Code::BadProgramName, what, "give the program another name", (field, "taken"));
        }
        self.name(Code::BadPublisherName, &manifest.publisher, "a publisher", Field::of("program", "publisher"));
    }

    fn lists(&mut self) {
        let manifest = self.manifest;
        let lists = [
            ("contracts", manifest.contracts.len(), Field::row("contract", LIST_MAX, "name")),
            ("endpoints", manifest.endpoints.len(), Field::row("endpoint", LIST_MAX, "name")),
            ("parameters", manifest.parameters.len(), Field::row("parameter", LIST_MAX, "name")),
            ("provided paths", manifest.provides.len(), Field::row("provide", LIST_MAX, "path")),
            ("devices", manifest.devices.len(), Field::row("device", LIST_MAX, "name")),
            ("required programs", manifest.requires.len(), Field::row("requires", LIST_MAX, "program")),
            ("permissions", manifest.permissions.len(), Field::of("permissions", "list")),
            ("bounded functions", manifest.assertions.max_stack.len(), Field::of("assert", "max-stack-of")),
            ("functions without panics", manifest.assertions.no_panic.len(), Field::of("assert", "no-panic")),
            ("functions without allocations", manifest.assertions.no_alloc.len(), Field::of("assert", "no-alloc")),
            ("functions without floats", manifest.assertions.no_float.len(), Field::of("assert", "no-float")),
        ];
        for (index, contract) in manifest.contracts.iter().enumerate() {
            let awaited = contract.waits_for.as_ref().map_or(0, Vec::len);
            let (list, field) =
                (format!("`waits-for` of `{}`", contract.name), Field::row("contract", index, "waits-for"));
            self.findings.extend(long_list(&manifest.name, &list, awaited, field));
        }
        for (what, length, field) in lists {
            self.findings.extend(long_list(&manifest.name, &format!("the list of {what}"), length, field));
        }
    }

    /// Returns the readable automata, by contract.
    fn contracts(&mut self) -> Vec<Option<Automaton>> {
        let mut automata = Vec::new();
        for (index, contract) in self.manifest.contracts.iter().enumerate() {
            let name = &contract.name;
            let field = |index| Field::row("contract", index, "name");
            if let Some(first) = self.manifest.contracts[..index].iter().position(|other| other.name == *name) {
                let what = format!("the contract `{name}` is listed twice");
                self.twice(Code::DuplicateContract, what, field(index), field(first));
            }
            if !is_contract_name(name) {
                let what = format!("{name:?} cannot be the name of a contract");
                let remedy = "write letters, digits and underscores, a letter first";
                self.refuse(Code::ContractName, what, remedy, (field(index), "not a name"));
            }
            self.awaited(index, contract);
            match Automaton::decode(&contract.automaton) {
                Ok(automaton) if automaton.name == *name => automata.push(Some(automaton)),
                Ok(other) => {
                    let what = format!("the automaton listed as `{name}` is that of `{}`", other.name);
                    self.refuse(Code::BadAutomaton, what, "build the program again", (field(index), "listed here"));
                    automata.push(None);
                }
                Err(error) => {
                    let what = format!("the automaton of `{name}` at byte {}: {}", error.offset, error.what);
                    self.refuse(Code::BadAutomaton, what, "build the program again", (field(index), "listed here"));
                    automata.push(None);
                }
            }
        }
        automata
    }

    /// Checks what the answers of an exported contract wait for.
    fn awaited(&mut self, index: usize, contract: &ContractUse) {
        let Some(awaited) = &contract.waits_for else { return };
        let (name, field) = (&contract.name, Field::row("contract", index, "waits-for"));
        if !handles(contract.side, Side::Exporter) {
            let what = format!("`{name}` has `waits-for`, but the program gives no answers of it");
            let remedy = "remove `waits-for`; it belongs to exported contracts";
            self.refuse(Code::WaitsForOther, what, remedy, (field, "not exported"));
        }
        for (item, other) in awaited.iter().enumerate() {
            let other = self.manifest.contracts.get(usize::from(other.contract));
            if other.is_none_or(|other| !handles(other.side, Side::Importer)) {
                let other = other.map_or("a contract that is not listed", |other| other.name.as_str());
                let what = format!("answers of `{name}` wait for {other}, which the program does not import");
                let remedy = "name contracts of the list with `use = \"import\"` or `\"both\"`";
                self.refuse(Code::WaitsForOther, what, remedy, (field.item(item), "not imported"));
            }
        }
    }

    /// Checks the names of functions in assertions; whether the assertions hold is seen in the image.
    fn assertions(&mut self) {
        let asserted = &self.manifest.assertions;
        let stacks: Vec<String> = asserted.max_stack.iter().map(|(function, _)| function.clone()).collect();
        let lists = [
            ("max-stack-of", &stacks),
            ("no-panic", &asserted.no_panic),
            ("no-alloc", &asserted.no_alloc),
            ("no-float", &asserted.no_float),
        ];
        for (key, functions) in lists {
            for (item, function) in functions.iter().enumerate() {
                if function.is_empty() || function.len() > FUNCTION_MAX || function.chars().any(char::is_control) {
                    let what = format!("{function:?} cannot be the name of a function");
                    let remedy = "write its path, `crate::module::Type::function`, or \"*\" for the whole program";
                    self.refuse(Code::BadAssertion, what, remedy, (Field::of("assert", key).item(item), "no function"));
                } else if functions[..item].contains(function) {
                    let what = format!("`{function}` is listed twice in `{key}`");
                    let at = (Field::of("assert", key).item(item), "this is the second");
                    self.refuse(Code::BadAssertion, what, "remove one of them", at);
                }
            }
        }
        if !asserted.is_empty() && self.manifest.code.image_digest().is_none() {
            let what = "a script has no machine code of which something could be asserted";
            self.refuse(Code::BadAssertion, what, "remove [assert]", (Field::table("assert", None), "of a script"));
        }
    }

    fn endpoints(&mut self, automata: &[Option<Automaton>]) {
        let slots = &self.manifest.endpoints;
        for (index, slot) in slots.iter().enumerate() {
            let name = &slot.name;
            let field = |index| Field::row("endpoint", index, "name");
            if let Some(first) = slots[..index].iter().position(|other| other.name == *name) {
                let what = format!("two endpoints are called `{name}`");
                self.twice(Code::DuplicateSlot, what, field(index), field(first));
            }
            let Some(contract) = self.manifest.contracts.get(usize::from(slot.contract)) else {
                let what =
                    format!("the endpoint `{name}` is of the contract number {}, which is not listed", slot.contract);
                let at = (Field::row("endpoint", index, "contract"), "not listed");
                self.refuse(Code::SlotContract, what, "add a [[contract]] to the manifest", at);
                continue;
            };
            self.slot((index, slot), contract, automata.get(usize::from(slot.contract)).and_then(Option::as_ref));
        }
    }

    fn slot(&mut self, (index, slot): (usize, &EndpointSlot), contract: &ContractUse, automaton: Option<&Automaton>) {
        let name = &slot.name;
        let field = |key| Field::row("endpoint", index, key);
        let listed = Field::row("contract", usize::from(slot.contract), "name");
        if !handles(contract.side, slot.side) {
            let what = format!(
                "the endpoint `{name}` is the `{}` end of `{}`, which the program lists for {} only",
                slot.side, contract.name, contract.side
            );
            let places = [(field("side"), "this end is not handled"), (listed, "listed here")];
            self.refuse_two(Code::SlotSide, what, remedy_for_side(slot.side), places);
        }
        if let Some(automaton) = automaton.filter(|automaton| !may_give(automaton, slot.state)) {
            let what =
                format!("the endpoint `{name}` is in a state of `{}` in which nothing can be said", contract.name);
            let givable = (0..)
                .zip(&automaton.states)
                .filter(|(state, row)| may_give(automaton, *state) && !row.name.contains(' '));
            let givable: Vec<String> = givable.map(|(_, row)| format!("`{}`", row.name)).collect();
            let remedy = format!("name a state in which the conversation goes on: {}", givable.join(", "));
            self.refuse(Code::SlotState, what, remedy, (field("state"), "the conversation is over here"));
        }
        let is_pipe_end = |side| slot.side == side && contract.name == "Pipe";
        match &slot.source {
            Source::Path(path) if !is_path(path) => {
                let what = format!("the endpoint `{name}` is bound to {path:?}, which is no path from the root");
                self.refuse(
                    Code::SlotPath,
                    what,
                    "write `/` or `/a/b`, without `.` and `..`",
                    (field("from"), "not a path"),
                );
            }
            Source::Path(_) if slot.side != Side::Importer => {
                let what = format!(
                    "the endpoint `{name}` is bound to a path, but is the exporting end of `{}`",
                    contract.name
                );
                let places = [(field("side"), "not the client's end"), (field("from"), "bound to a path")];
                self.refuse_two(
                    Code::SlotBoundOtherEnd,
                    what,
                    "who binds a path is a client: write `side = \"imp\"`",
                    places,
                );
            }
            Source::StandardInput if !is_pipe_end(Side::Exporter) => {
                let what = format!("the endpoint `{name}` is the standard input, but not the exporting end of a Pipe");
                self.refuse(
                    Code::StandardPipe,
                    what,
                    "write `contract = \"Pipe\"` and `side = \"exp\"`",
                    (field("from"), "not for this end"),
                );
            }
            Source::StandardOutput if !is_pipe_end(Side::Importer) => {
                let what = format!("the endpoint `{name}` is the standard output, but not the importing end of a Pipe");
                self.refuse(
                    Code::StandardPipe,
                    what,
                    "write `contract = \"Pipe\"` and `side = \"imp\"`",
                    (field("from"), "not for this end"),
                );
            }
            _ => {}
        }
    }

    fn devices(&mut self) {
        let devices = &self.manifest.devices;
        for (index, device) in devices.iter().enumerate() {
            let name = &device.name;
            let field = |key| Field::row("device", index, key);
            self.name(Code::DeviceName, name, "a device", field("name"));
            if let Some(first) = devices[..index].iter().position(|other| other.name == *name) {
                let what = format!("the device `{name}` is listed twice");
                self.twice(Code::DuplicateDevice, what, field("name"), Field::row("device", first, "name"));
            }
            let lists = [
                ("ports", device.ports.len()),
                ("memory", device.memory.len()),
                ("interrupts", device.interrupts.len()),
            ];
            for (key, length) in lists {
                let list = format!("`{key}` of the device `{name}`");
                self.findings.extend(long_list(&self.manifest.name, &list, length, field(key)));
            }
            // Two devices of one program may be views of the same registers; one device has each once.
            self.ranges("ports", &device.ports, PORTS_END, field("ports"));
            self.ranges("memory", &device.memory, MEMORY_END, field("memory"));
        }
    }

    /// Checks the ranges of a device; `end` is the first address past the maximum.
    fn ranges(&mut self, kind: &str, ranges: &[AddressRange], end: u64, field: Field) {
        for (index, range) in ranges.iter().enumerate() {
            if !range.is_within(end) {
                let what = format!("{range} is a range of {kind} that no machine has");
                let remedy = format!("write the first address and how many there are, all below {end:#x}: `0x3f8+8`");
                self.refuse(Code::RangeImpossible, what, remedy, (field.item(index), "not a range"));
            }
            if let Some(first) = ranges[..index].iter().position(|other| other.overlaps(range)) {
                let what = format!("the range {range} is listed twice, or a part of it");
                self.twice(Code::RangeTwice, what, field.item(index), field.item(first));
            }
        }
    }

    fn provides(&mut self) {
        let manifest = self.manifest;
        let mut slots = manifest.endpoints.iter();
        for (index, provide) in manifest.provides.iter().enumerate() {
            let path = &provide.path;
            let field = |index| Field::row("provide", index, "path");
            if !is_path(path) {
                let what = format!("{path:?} is provided, which is no path from the root");
                let remedy = "write `/` or `/a/b`, without `.`, `..` and `/` at the end";
                self.refuse(Code::ProvidePath, what, remedy, (field(index), "not a path"));
            }
            if let Some(first) = manifest.provides[..index].iter().position(|other| other.path == *path) {
                let what = format!("`{path}` is provided twice");
                self.twice(Code::DuplicateProvide, what, field(index), field(first));
            }
            let number = usize::from(provide.contract);
            if !manifest.contracts.get(number).is_some_and(|contract| handles(contract.side, Side::Exporter)) {
                let what = format!("`{path}` is provided under a contract that the program does not export");
                let at = (Field::row("provide", index, "contract"), "this end is not handled");
                let listed = (Field::row("contract", number, "name"), "listed here");
                self.refuse_two(Code::ProvideContract, what, remedy_for_side(Side::Exporter), [at, listed]);
                continue;
            }
            // The n-th path's clients arrive at the n-th slot of this kind.
            let takes_clients = |slot: &EndpointSlot| {
                let name = manifest.contracts.get(usize::from(slot.contract)).map(|contract| contract.name.as_str());
                slot.side == Side::Exporter
                    && slot.source == Source::Parent
                    && (name == Some(PROVIDER_CONTRACT) || slot.contract == provide.contract)
            };
            if !slots.any(takes_clients) {
                let what = format!("nothing takes the clients of `{path}`");
                let remedy = format!(
                    "add an [[endpoint]] with `contract = \"{PROVIDER_CONTRACT}\"`, `side = \"exp\"`, `state = \"START\"` \
                     and `from = \"parent\"` for each [[provide]]"
                );
                self.refuse(Code::ProvideWithoutSlot, what, remedy, (field(index), "provided here"));
            }
        }
    }

    fn requirements(&mut self) {
        let requires = &self.manifest.requires;
        for (index, requirement) in requires.iter().enumerate() {
            let name = &requirement.program;
            let field = |index| Field::row("requires", index, "program");
            if *name == self.manifest.name {
                let what = format!("`{name}` requires itself");
                self.refuse(Code::RequirementItself, what, "remove the [[requires]]", (field(index), "this program"));
            }
            if let Some(first) = requires[..index].iter().position(|other| other.program == *name) {
                let what = format!("`{name}` is required twice");
                self.twice(Code::RequirementTwice, what, field(index), field(first));
            }
        }
    }

    /// These are shown on terminals, where control characters could falsify the output.
    fn texts(&mut self) {
        let manifest = self.manifest;
        let summary = Field::of("program", "summary");
        let mut texts = Vec::from([("summary", manifest.summary.as_str(), summary)]);
        texts.extend(manifest.parameters.iter().enumerate().map(|(index, parameter)| {
            ("help of a parameter", parameter.help.as_str(), Field::row("parameter", index, "help"))
        }));
        for (what, _, field) in texts.into_iter().filter(|(_, text, _)| text.contains(char::is_control)) {
            let what = format!("the {what} has control characters or several lines");
            self.refuse(Code::ControlCharacter, what, "write one line of text", (field, "one line is wanted"));
        }
        if manifest.summary.trim().is_empty() || manifest.summary.len() > SUMMARY_MAX {
            let what = format!("the summary has {} bytes", manifest.summary.len());
            let remedy = "say in one line, of 200 bytes at most, what the program is for";
            self.refuse(Code::NoSummary, what, remedy, (summary, "empty, or too long"));
        }
        if let ProgramCode::Script { text } = &manifest.code {
            let field = Field::of("code", "script");
            if text.trim().is_empty() {
                let remedy = "write some, or name a crate";
                self.refuse(Code::ScriptEmpty, "the script has no commands", remedy, (field, "this is empty"));
            }
            if text.contains(|letter: char| letter.is_control() && letter != '\n' && letter != '\t') {
                let what = "the script has control characters";
                self.refuse(Code::ControlCharacter, what, "keep to lines of text", (field, "not all of it is text"));
            }
        }
    }

    fn parameters(&mut self) {
        let parameters = &self.manifest.parameters;
        for (index, parameter) in parameters.iter().enumerate() {
            self.parameter(index, parameter, &parameters[..index]);
        }
        self.positions();
    }

    fn parameter(&mut self, index: usize, parameter: &Parameter, before: &[Parameter]) {
        let name = &parameter.name;
        let field = |key| Field::row("parameter", index, key);
        self.name(Code::ParameterName, name, "a parameter", field("name"));
        if let Some(first) = before.iter().position(|other| other.name == *name) {
            let what = format!("two parameters are called `{name}`");
            self.twice(Code::DuplicateParameter, what, field("name"), Field::row("parameter", first, "name"));
        }
        if let Some((slot, _)) = self.manifest.endpoint(name) {
            let what = format!("a parameter and an endpoint are called `{name}`");
            let places =
                [(field("name"), "this is a parameter"), (Field::row("endpoint", slot, "name"), "this is an endpoint")];
            self.refuse_two(Code::ParameterIsEndpoint, what, "rename one of them", places);
        }
        if parameter.default.as_ref().is_some_and(|default| !does_fit(default, parameter.kind)) {
            let what = format!("the default of `{name}` is not of the type `{}`", parameter.kind);
            let remedy = format!("give {}", wanted(parameter.kind));
            self.refuse(Code::DefaultType, what, remedy, (field("default"), "of another type"));
        }
        if parameter.default.is_some() && (parameter.required || parameter.repeated) {
            let sort = if parameter.required { "required" } else { "repeated" };
            let what = format!("`{name}` is {sort} and has a default, which is never used");
            self.refuse(
                Code::DefaultUseless,
                what,
                "remove the default, or the key that makes it useless",
                (field("default"), "never used"),
            );
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
            let what = format!("the flag {flag:?} of `{name}` cannot be typed");
            let remedy = "write a hyphen and a letter, `-l`, or two and a word, `--long`";
            self.refuse(Code::BadFlag, what, remedy, (field("flag"), "not a flag"));
        }
        if let Some(first) = before.iter().position(|other| other.flag.as_ref() == Some(flag)) {
            let what = format!("the flag `{flag}` has two meanings");
            self.twice(Code::DuplicateFlag, what, field("flag"), Field::row("parameter", first, "flag"));
        }
    }

    fn positions(&mut self) {
        let parameters = self.manifest.parameters.iter().enumerate();
        let mut placed: Vec<(usize, &Parameter)> =
            parameters.filter(|(_, parameter)| parameter.position.is_some()).collect();
        placed.sort_by_key(|(_, parameter)| parameter.position);
        let field = |index| Field::row("parameter", index, "position");
        let wrong = placed.iter().zip(0u16..).find(|((_, parameter), wanted)| parameter.position != Some(*wanted));
        if let Some(((index, parameter), wanted)) = wrong {
            let is_twice = parameter.position.is_some_and(|position| position < wanted);
            let what = match parameter.position {
                Some(position) if is_twice => format!("two parameters have the position {position}"),
                position => format!("there is a position {}, but no position {wanted}", position.unwrap_or_default()),
            };
            let label = if is_twice { "this is the second" } else { "this place is never reached" };
            let remedy = format!("number the positions 0, 1, 2, ...; this one is {wanted}");
            self.refuse(Code::PositionGap, what, remedy, (field(*index), label));
        }
        for pair in placed.windows(2) {
            let [(first, before), (second, parameter)] = [pair[0], pair[1]];
            if before.repeated {
                let what = format!("`{}` takes all words, and `{}` comes behind it", before.name, parameter.name);
                let places = [(field(first), "takes all words"), (field(second), "never reached")];
                self.refuse_two(Code::RepeatedNotLast, what, "give the repeated parameter the last position", places);
            }
            if parameter.required && !before.required {
                let what = format!("`{}` must be given, and `{}` before it need not", parameter.name, before.name);
                let places = [(field(second), "required"), (field(first), "not required")];
                self.refuse_two(Code::RequiredAfterOptional, what, "put required positions first", places);
            }
        }
    }

    fn limits(&mut self) {
        let manifest = self.manifest;
        for (key, problem) in manifest.quota.problems() {
            let at = (Field::of("quota", key), "no program can have this");
            self.refuse(Code::QuotaRange, problem, "ask for what a program can have", at);
        }
        let slots = manifest.endpoints.len();
        if (manifest.quota.handles as usize) < slots {
            let what = format!("{} handles are too few for the {slots} endpoints it is given", manifest.quota.handles);
            self.refuse(
                Code::QuotaHandles,
                what,
                "raise the quota `handles`",
                (Field::of("quota", "handles"), "too few"),
            );
        }
        self.supervision();
        for (index, permission) in manifest.permissions.iter().enumerate() {
            let field = Field::of("permissions", "list");
            if let Some(first) = manifest.permissions[..index].iter().position(|other| other == permission) {
                let what = format!("the permission `{permission}` is listed twice");
                self.twice(Code::DuplicatePermission, what, field.item(index), field.item(first));
            }
        }
    }

    fn supervision(&mut self) {
        let supervision = &self.manifest.supervision;
        let field = |key| Field::of("supervision", key);
        let times = [
            ("backoff_ms", supervision.backoff_ms),
            ("backoff_max_ms", supervision.backoff_max_ms),
            ("ending_ms", supervision.ending_ms),
        ];
        for (key, _) in times.into_iter().filter(|(_, time)| *time > TIME_MAX_MS) {
            let what = format!("the time `{key}` of [supervision] is longer than an hour");
            self.refuse(Code::SupervisionRange, what, "write 3600000 milliseconds at most", (field(key), "too long"));
        }
        if supervision.backoff_ms > supervision.backoff_max_ms {
            let what = format!(
                "the longest wait before a restart, {} ms, is below the first, {} ms",
                supervision.backoff_max_ms, supervision.backoff_ms
            );
            let remedy = format!("write `backoff_max_ms = {}` or more", supervision.backoff_ms);
            self.refuse(Code::SupervisionOrder, what, remedy, (field("backoff_max_ms"), "too short"));
        }
        if supervision.limit == Some(0) {
            let what = "the limit of restarts is 0";
            let remedy = "write `restart = \"never\"` in its place";
            self.refuse(Code::SupervisionLimit, what, remedy, (field("limit"), "no restart at all"));
        }
        if self.manifest.category == Category::Console && supervision.restart != Restart::Never {
            let what = "a person starts a console program, and this one would be started again when it ends";
            let places = [
                (field("restart"), "it would be started again"),
                (Field::of("program", "category"), "a person starts it"),
            ];
            self.refuse_two(
                Code::SupervisionConsole,
                what,
                "write `restart = \"never\"`, or make it a service",
                places,
            );
        }
    }
}

/// Returns a finding if a program requires another ABI version.
pub(crate) fn other_abi(subject: &str, version: u32) -> Option<Finding> {
    if version == ABI_VERSION {
        return None;
    }
    let what = format!("the program is for ABI version {version}, and there is version {ABI_VERSION}");
    let remedy = format!("write `abi = {ABI_VERSION}`, and build it for that");
    let finding = Finding::new(Code::AbiVersion, subject, what, remedy);
    Some(finding.at(Field::of("program", "abi"), "another version"))
}

/// Returns a finding if a list of this length is too long.
pub fn long_list(subject: &str, list: &str, length: usize, field: Field) -> Option<Finding> {
    if length <= LIST_MAX {
        return None;
    }
    let what = format!("{list} has {length} entries, more than the {LIST_MAX} allowed");
    let finding = Finding::new(Code::ListTooLong, subject, what, format!("keep it to {LIST_MAX}"));
    Some(finding.at(field, "this list is too long"))
}

/// Returns whether a parameter of the type accepts the value. A text is given without its NUL terminator.
pub(crate) fn does_fit(value: &Value, kind: ParameterKind) -> bool {
    value.kind() == kind && !matches!(value, Value::Text(text) if text.contains('\0'))
}

/// Returns a description of the values that a parameter of the type accepts.
pub(crate) const fn wanted(kind: ParameterKind) -> &'static str {
    match kind {
        ParameterKind::Text => "a text in quotes, without NUL",
        ParameterKind::Integer => "a whole number",
        ParameterKind::Boolean => "`true` or `false`",
        ParameterKind::DurationMs => "a number of milliseconds, from 0",
    }
}

/// Returns the remedy for a contract listed without an end that is used.
fn remedy_for_side(side: Side) -> String {
    let needed = match side {
        Side::Importer => ContractSide::Import,
        Side::Exporter => ContractSide::Export,
    };
    format!("write `use = \"{needed}\"` or `use = \"both\"` in the [[contract]]")
}

fn is_contract_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns whether a program that lists a contract for this side handles this end.
pub(crate) fn handles(listed: ContractSide, end: Side) -> bool {
    match end {
        Side::Importer => listed != ContractSide::Export,
        Side::Exporter => listed != ContractSide::Import,
    }
}

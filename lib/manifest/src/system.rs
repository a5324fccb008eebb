//! A system manifest.

use boot_order::{OrderError, boot_order, bound_path};
use manifest_model::{
    Bind, Deny, DeviceNeed, Instance, Manifest, ParameterKind, ParameterSetting, Setting, Source, SystemManifest, Value,
};
use principal::Pattern;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::bases::{self, SystemFile};
use crate::claims;
use crate::diagnostic::{Code, Diagnostics};
use crate::parameters::value_of;
use crate::program::{check_name, check_path, duplicate};
use crate::reader::{At, Mark, Report, Span, Table, check_length, list, one_of, wrong_type};
use crate::{shapes, trust};

/// Reads and checks a system manifest over the programs that there are. `find` gives a system manifest by its
/// name, for those that are based on another: everything of the base is part of the system.
pub fn system(
    file: SystemFile,
    find: &dyn Fn(&str) -> Option<SystemFile>,
    programs: &[&Manifest],
) -> Result<SystemManifest, Diagnostics> {
    let report = Report::default();
    let files = bases::chain(&report, file, find);
    let tables: Vec<Option<_>> = files.iter().map(|file| crate::parse(&report, &file.moved)).collect();
    let tables: Option<Vec<_>> = tables.into_iter().collect();
    let starts = files.iter().map(|file| file.start);
    let result = tables.and_then(|tables| {
        let files: Vec<_> = tables.iter().zip(starts).collect();
        Reader { report: &report, programs }.system(&files)
    });
    crate::finish(report, result, files.into_iter().map(|file| (file.source, file.start)).collect())
}

/// A file's tables and where it starts.
type File<'f, 'i> = (&'f Spanned<DeTable<'i>>, usize);

struct Reader<'a> {
    report: &'a Report,
    programs: &'a [&'a Manifest],
}

/// `[system]` of one file.
struct Head {
    name: Option<At<String>>,
    /// Whether it says anything of a root, right or wrong.
    names_root: bool,
    root: Option<At<String>>,
    primary: Option<At<String>>,
    installed: Vec<At<String>>,
    span: Span,
}

/// Stands for the number of an instance where there are several.
const NUMBER: char = '#';

/// The number of an instance, where its [[program]] stands for several.
#[derive(Clone, Copy)]
struct Number(Option<u32>);

impl Number {
    fn put_into(self, text: At<String>) -> At<String> {
        match self.0 {
            Some(number) => text.map(|text| text.replace(NUMBER, &number.to_string())),
            None => text,
        }
    }
}

/// An instance and where in the file it is spoken of.
pub(crate) struct Entry<'a> {
    pub(crate) instance: Instance,
    pub(crate) manifest: &'a Manifest,
    pub(crate) name: Span,
    /// Those that it requires, and those that it is only started after.
    requires: Vec<At<String>>,
    /// By device index.
    pub(crate) devices: Vec<Span>,
    /// By index of the provided path.
    pub(crate) provides: Vec<Span>,
}

impl<'a> Reader<'a> {
    /// `files`: the system manifest, then what it is based on.
    fn system(&self, files: &[File<'_, '_>]) -> Option<SystemManifest> {
        let tables: Vec<Table<'_, '_>> = files
            .iter()
            .map(|&(table, start)| Table::new(self.report, table.get_ref(), &shapes::SYSTEM, start..start))
            .collect();
        let heads = tables.iter().map(|file| self.head(file)).collect::<Option<Vec<Head>>>()?;
        let root = heads.iter().find_map(|head| head.root.clone());
        if !heads.iter().any(|head| head.names_root) {
            let remedy = "add `root = ...`, the program that starts all others".to_string();
            let message = "[system] has no `root`, and nothing that it is based on has one".to_string();
            self.report.add(Code::MissingKey, message, &heads.first()?.span, "`root` is missing here", remedy);
        }
        let primary = heads.iter().find_map(|head| head.primary.clone());
        // What a system is based on comes first.
        let installed: Vec<At<String>> = heads.iter().rev().flat_map(|head| head.installed.clone()).collect();
        let root_manifest = root.as_ref().and_then(|root| self.program(root));
        let entries = self.instances(&tables, root_manifest);
        self.check_installed(&installed);
        let binds = tables.iter().rev().flat_map(|file| self.binds(file)).collect();
        let denies = tables.iter().rev().flat_map(|file| self.denies(file)).collect();
        let trust = trust::read(self.report, &tables);
        for file in &tables {
            file.close();
        }
        self.check_primary(primary.as_ref(), &entries);
        self.check_root(root.as_ref(), &entries);
        claims::check(self.report, &entries);
        self.check_requirements(&entries);
        let name = heads.into_iter().next()?.name;
        let system = SystemManifest {
            name: name?.value,
            root: root?.value,
            primary: primary.map(|primary| primary.value),
            instances: entries.iter().map(|entry| entry.instance.clone()).collect(),
            installed: installed.into_iter().map(|name| name.value).collect(),
            binds,
            denies,
            trust,
        };
        root_manifest?;
        self.check_order(&system, &entries);
        self.check_binds(&system, &entries);
        Some(system)
    }

    fn head(&self, file: &Table<'_, '_>) -> Option<Head> {
        let Some(head) = file.table("system") else {
            let remedy = "add `[system]` with `name` and `root`".to_string();
            self.report.add(Code::MissingKey, "the system manifest has no [system]".into(), &file.span, "here", remedy);
            return None;
        };
        let name = head.required_text("name");
        if let Some(name) = &name {
            check_name(self.report, name, "a system");
        }
        // Followed before the files were read.
        head.text("base");
        let names_root = head.get("root").is_some();
        let root = head.text("root");
        let primary = head.text("primary");
        let installed = head.texts("installed");
        head.close();
        Some(Head { name, names_root, root, primary, installed, span: head.span.clone() })
    }

    fn instances(&self, files: &[Table<'_, '_>], root: Option<&Manifest>) -> Vec<Entry<'a>> {
        let mut entries: Vec<Entry<'a>> = Vec::new();
        for table in files.iter().rev().flat_map(|file| file.tables("program")) {
            let new = self.numbered_instances(&table, root);
            table.close();
            for entry in new {
                match entries.iter().find(|other| other.instance.name == entry.instance.name) {
                    Some(first) => {
                        let name = At::new(entry.instance.name.clone(), entry.name.clone());
                        duplicate(self.report, Code::DuplicateInstance, "the instance", &name, &first.name);
                    }
                    None => entries.push(entry),
                }
            }
        }
        entries
    }

    /// The instances that one [[program]] stands for.
    fn numbered_instances(&self, table: &Table<'_, '_>, root: Option<&Manifest>) -> Vec<Entry<'a>> {
        let name = table.text("instance").filter(|name| name.value.contains(NUMBER));
        let given = table.get("count").map(Spanned::span);
        let count = table.number("count", Code::BadCount, "no number of instances");
        match (&given, &name) {
            (Some(span), None) => {
                let message = "`count` has no instances to number".to_string();
                let remedy =
                    format!("write `{NUMBER}` into `instance` where the number is to stand, as in \"disk{NUMBER}\"");
                self.report.add(Code::BadCount, message, span, "nothing tells the instances apart", remedy);
            }
            (None, Some(name)) => {
                let message = format!("the instance `{}` has a place for a number and no count", name.value);
                let remedy = "add `count = ...`, how many instances there are".to_string();
                self.report.add(Code::BadCount, message, &name.span, "`count` is missing", remedy);
            }
            _ => {}
        }
        let Some(_) = name else { return self.instance(table, root, Number(None)).into_iter().collect() };
        let mut entries = Vec::new();
        for number in 0..count.map_or(1, |count| count.value) {
            let before = self.report.count();
            entries.extend(self.instance(table, root, Number(Some(number))));
            if self.report.count() > before {
                // The others would be reported for the same.
                break;
            }
        }
        entries
    }

    fn find(&self, name: &str) -> Option<&'a Manifest> {
        self.programs.iter().copied().find(|program| program.name == name)
    }

    fn program(&self, name: &At<String>) -> Option<&'a Manifest> {
        let found = self.find(&name.value);
        if found.is_none() {
            let names: Vec<&str> = self.programs.iter().map(|program| program.name.as_str()).collect();
            let message = format!("there is no program `{}`", name.value);
            self.report.add(Code::UnknownProgram, message, &name.span, "not a program", one_of(&name.value, &names));
        }
        found
    }

    fn instance(&self, table: &Table<'_, '_>, root: Option<&Manifest>, number: Number) -> Option<Entry<'a>> {
        let program = table.required_text("name");
        let name = table.text("instance").map(|name| number.put_into(name)).or_else(|| program.clone());
        let optional = table.flag("optional").value;
        let parameters = table.entries("parameters");
        let devices = table.entries("devices");
        let provides = table.entries("provides");
        let endpoints = table.entries("endpoints");
        let requires = table.texts("requires");
        let after = table.texts("after");
        let (program, name) = (program?, name?);
        check_name(self.report, &name, "an instance");
        let manifest = self.program(&program)?;
        let parameters = self.parameters(manifest, &parameters, root, &program.span);
        let (devices, device_spans) = self.devices(manifest, &devices, &program.span, number);
        let (provides, provide_spans) = self.provides(manifest, &provides, &program.span, number);
        let endpoints = self.endpoints(manifest, &endpoints, number);
        let instance = Instance {
            name: name.value,
            program: program.value,
            optional,
            parameters,
            devices,
            provides,
            endpoints,
            requires: requires.iter().map(|name| name.value.clone()).collect(),
            after: after.iter().map(|name| name.value.clone()).collect(),
        };
        let requires = [requires, after].concat();
        Some(Entry { instance, manifest, name: name.span, requires, devices: device_spans, provides: provide_spans })
    }

    /// The text of an entry of a table.
    fn text(&self, what: &str, value: &Spanned<DeValue<'_>>) -> Option<At<String>> {
        match value.get_ref().as_str() {
            Some(text) => Some(At::new(text.into(), value.span())),
            None => {
                wrong_type(self.report, what, "a text in quotes", value);
                None
            }
        }
    }

    /// Reports a key that names nothing of the program.
    fn unknown(&self, code: Code, manifest: &Manifest, what: &str, key: &At<String>, names: &[&str]) {
        let message = format!("the program `{}` has no {what} `{}`", manifest.name, key.value);
        self.report.add(code, message, &key.span, "not in its manifest", one_of(&key.value, names));
    }

    fn parameters(
        &self,
        manifest: &Manifest,
        entries: &[(At<String>, &Spanned<DeValue<'_>>)],
        root: Option<&Manifest>,
        program: &Span,
    ) -> Vec<ParameterSetting> {
        let mut settings: Vec<ParameterSetting> = Vec::new();
        for (key, value) in entries {
            let Some((index, parameter)) = manifest.parameter(&key.value) else {
                let names: Vec<&str> = manifest.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
                self.unknown(Code::UnknownParameter, manifest, "parameter", key, &names);
                continue;
            };
            let setting = self.setting(key, parameter.kind, parameter.repeated, value, root);
            if let (Some(setting), Ok(index)) = (setting, u16::try_from(index)) {
                settings.push(ParameterSetting { index, setting });
            }
        }
        let given = |name: &str| entries.iter().any(|(key, _)| key.value == name);
        for parameter in manifest.parameters.iter().filter(|parameter| parameter.required && !given(&parameter.name)) {
            let message = format!("the program `{}` needs its parameter `{}`", manifest.name, parameter.name);
            let remedy = format!("add `parameters = {{ {} = ... }}`, of the type `{}`", parameter.name, parameter.kind);
            self.report.add(Code::MissingParameter, message, program, "it gets no value here", remedy);
        }
        settings
    }

    fn setting(
        &self,
        key: &At<String>,
        kind: ParameterKind,
        repeated: bool,
        value: &Spanned<DeValue<'_>>,
        root: Option<&Manifest>,
    ) -> Option<Setting> {
        if let Some(table) = value.get_ref().as_table() {
            let table = Table::new(self.report, table, &shapes::FROM_ROOT, value.span());
            let table = table.called(format!("the value of `{}`", key.value));
            let source = table.required_text("root");
            table.close();
            let source = source?;
            if let Some(root) = root.filter(|root| root.parameter(&source.value).is_none()) {
                let names: Vec<&str> = root.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
                self.unknown(Code::UnknownRootParameter, root, "parameter", &source, &names);
            }
            return Some(Setting::FromRoot(source.value));
        }
        let what = format!("the value of `{}`", key.value);
        let one = |value| value_of(self.report, Code::BadParameterValue, &what, kind, value);
        let items = value.get_ref().as_array();
        if let Some(items) = items {
            check_length(self.report, &what, items.len(), &value.span());
        }
        match items {
            Some(items) if repeated => items.iter().map(one).collect::<Option<Vec<Value>>>().map(Setting::Values),
            _ => one(value).map(|value| Setting::Values(vec![value])),
        }
    }

    fn devices(
        &self,
        manifest: &Manifest,
        entries: &[(At<String>, &Spanned<DeValue<'_>>)],
        program: &Span,
        number: Number,
    ) -> (Vec<String>, Vec<Span>) {
        let mut devices: Vec<String> = manifest.devices.iter().map(|device| device.name.clone()).collect();
        let mut spans = vec![program.clone(); devices.len()];
        for (key, value) in entries {
            let named = |device: &DeviceNeed| device.name == key.value && !device.is_fixed();
            let Some(index) = manifest.devices.iter().position(named) else {
                let named = manifest.devices.iter().filter(|device| !device.is_fixed());
                let names: Vec<&str> = named.map(|device| device.name.as_str()).collect();
                self.unknown(Code::UnknownDevice, manifest, "named device", key, &names);
                continue;
            };
            let Some(name) = self.text("the machine's name for a device", value).map(|name| number.put_into(name))
            else {
                continue;
            };
            check_name(self.report, &name, "a device");
            devices[index] = name.value;
            spans[index] = name.span;
        }
        (devices, spans)
    }

    fn provides(
        &self,
        manifest: &Manifest,
        entries: &[(At<String>, &Spanned<DeValue<'_>>)],
        program: &Span,
        number: Number,
    ) -> (Vec<String>, Vec<Span>) {
        let names: Vec<&str> = manifest.provides.iter().map(|provide| provide.path.as_str()).collect();
        let mut paths: Vec<String> = names.iter().map(|path| path.to_string()).collect();
        let mut spans = vec![program.clone(); paths.len()];
        for (key, value) in entries {
            let Some(index) = names.iter().position(|path| *path == key.value) else {
                self.unknown(Code::UnknownProvide, manifest, "[[provide]] for", key, &names);
                continue;
            };
            let Some(path) = self.text("the path to provide", value).map(|path| number.put_into(path)) else {
                continue;
            };
            check_path(self.report, &path);
            paths[index] = path.value;
            spans[index] = path.span;
        }
        (paths, spans)
    }

    fn endpoints(
        &self,
        manifest: &Manifest,
        entries: &[(At<String>, &Spanned<DeValue<'_>>)],
        number: Number,
    ) -> Vec<Option<String>> {
        let mut paths = vec![None; manifest.endpoints.len()];
        let bound = manifest.endpoints.iter().filter(|slot| matches!(slot.source, Source::Path(_)));
        let names: Vec<&str> = bound.map(|slot| slot.name.as_str()).collect();
        for (key, value) in entries {
            let Some((index, _)) = manifest.endpoint(&key.value).filter(|_| names.contains(&key.value.as_str())) else {
                self.unknown(Code::UnknownEndpoint, manifest, "endpoint that is bound to a path,", key, &names);
                continue;
            };
            let Some(path) = self.text("the path to bind to", value).map(|path| number.put_into(path)) else {
                continue;
            };
            check_path(self.report, &path);
            paths[index] = Some(path.value);
        }
        paths
    }

    fn check_installed(&self, installed: &[At<String>]) {
        for (index, name) in installed.iter().enumerate() {
            self.program(name);
            if let Some(first) = installed[..index].iter().find(|other| other.value == name.value) {
                duplicate(self.report, Code::DuplicateInstance, "the installed program", name, &first.span);
            }
        }
    }

    fn binds(&self, file: &Table<'_, '_>) -> Vec<Bind> {
        let rules = file.tables("bind").into_iter().filter_map(|table| self.rule(&table, "path"));
        rules.map(|(who, path)| Bind { who, path }).collect()
    }

    fn denies(&self, file: &Table<'_, '_>) -> Vec<Deny> {
        let rules = file.tables("deny").into_iter().filter_map(|table| self.rule(&table, "reach"));
        rules.map(|(who, reach)| Deny { who, reach }).collect()
    }

    /// A pattern of principals, and one of paths under the key `what`.
    fn rule(&self, table: &Table<'_, '_>, what: &'static str) -> Option<(String, String)> {
        let who = table.required_text("who");
        let path = table.required_text(what);
        table.close();
        let (who, path) = (who?, path?);
        if let Err(error) = Pattern::parse(&who.value) {
            let message = format!("`{}` is no pattern of principals: {error}", who.value);
            self.report.add(Code::BadPattern, message, &who.span, "matches nobody", error.remedy().to_string());
        }
        if !path.value.starts_with('/') && !path.value.starts_with("**") {
            let message = format!("`{}` is no pattern of paths", path.value);
            let remedy = "begin with `/`; `*` stands for one name, `**` for any path: `/dev/*`, `/fs/**`".to_string();
            self.report.add(Code::BadPattern, message, &path.span, "matches no path", remedy);
        }
        Some((who.value, path.value))
    }

    fn check_primary(&self, primary: Option<&At<String>>, entries: &[Entry<'_>]) {
        let Some(primary) = primary else { return };
        let names: Vec<&str> = entries.iter().map(|entry| entry.instance.name.as_str()).collect();
        if !names.contains(&primary.value.as_str()) {
            let message = format!("the primary instance `{}` is not there", primary.value);
            let remedy = one_of(&primary.value, &names);
            self.report.add(Code::UnknownPrimary, message, &primary.span, "no [[program]] has this name", remedy);
        }
    }

    fn check_root(&self, root: Option<&At<String>>, entries: &[Entry<'_>]) {
        let Some(root) = root else { return };
        for entry in entries.iter().filter(|entry| entry.instance.program == root.value) {
            let message = format!("the root program `{}` is listed as an instance", root.value);
            let remedy = "remove this [[program]]: the kernel starts the root program".to_string();
            let here = (&entry.name, "it would run twice");
            self.report.add_second(Code::RootListed, message, here, (&root.span, "it is the root"), remedy);
        }
    }

    fn check_requirements(&self, entries: &[Entry<'_>]) {
        let names: Vec<&str> = entries.iter().map(|entry| entry.instance.name.as_str()).collect();
        for required in entries.iter().flat_map(|entry| &entry.requires) {
            if !names.contains(&required.value.as_str()) {
                let message = format!("there is no instance `{}`", required.value);
                let remedy = one_of(&required.value, &names);
                self.report.add(Code::UnknownRequirement, message, &required.span, "nothing has this name", remedy);
            }
        }
    }

    fn check_order(&self, system: &SystemManifest, entries: &[Entry<'_>]) {
        match boot_order(system, |name| self.find(name)) {
            // Reported where it was read.
            Ok(_) | Err(OrderError::UnknownProgram { .. } | OrderError::UnknownRequirement { .. }) => {}
            // Without a primary instance it is no system to be run, only what others are based on: they provide it.
            Err(OrderError::NoProvider { .. }) if system.primary.is_none() => {}
            Err(OrderError::NoProvider { instance, slot, path }) => {
                let entry = &entries[instance];
                let slot = &entry.manifest.endpoints[slot];
                let contract =
                    entry.manifest.contracts.get(slot.contract as usize).map_or("", |contract| contract.name.as_str());
                let message = format!(
                    "nobody provides `{path}` with the contract `{contract}`, which the endpoint `{}` of `{}` is bound to",
                    slot.name, entry.instance.name
                );
                let remedy = format!(
                    "add a [[program]] that provides it, or bind elsewhere: `endpoints = {{ {} = \"/...\" }}`",
                    slot.name
                );
                self.report.add(Code::NoProvider, message, &entry.name, "it cannot start", remedy);
            }
            Err(OrderError::Cycle { instances }) => self.report_cycle(entries, &instances),
        }
    }

    fn report_cycle(&self, entries: &[Entry<'_>], instances: &[usize]) {
        let names: Vec<&str> = instances.iter().map(|&index| entries[index].instance.name.as_str()).collect();
        let first = names.first().copied().unwrap_or_default();
        let chain: Vec<String> = names.iter().chain([&first]).map(|name| format!("`{name}`")).collect();
        let message = format!("instances wait for each other: {}", chain.join(" needs "));
        let labels = instances.iter().zip(names.iter().skip(1).chain([&first]));
        let labels =
            labels.map(|(&index, next)| Mark { span: entries[index].name.clone(), text: format!("needs `{next}`") });
        let remedy = "make one of the endpoints `optional = true` in its manifest, or remove a `requires`".to_string();
        self.report.add_labels(Code::BootCycle, message, labels.collect(), remedy);
    }

    /// Whatever an instance is bound to at start, some rule must allow.
    fn check_binds(&self, system: &SystemManifest, entries: &[Entry<'_>]) {
        for entry in entries {
            let principal = entry.manifest.principal();
            let slots = 0..entry.manifest.endpoints.len();
            let paths = slots.filter_map(|slot| bound_path(&entry.instance, entry.manifest, slot));
            let refused: Vec<&str> = paths.filter(|path| !system.may_bind(&principal, path)).collect();
            if !refused.is_empty() {
                let message = format!("no rule allows `{principal}` to bind to {}", list(&refused));
                let remedy = format!("add a [[bind]] with `who = \"{principal}\"` and `path = \"{}\"`", refused[0]);
                self.report.add(Code::BindRefused, message, &entry.name, "it could not start", remedy);
            }
        }
    }
}

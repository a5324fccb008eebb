//! A system manifest.

use std::collections::{BTreeMap, BTreeSet};

use install::{Code as Rule, Field};
use manifest_model::{
    Bind, Deny, DeviceNeed, Instance, Manifest, ParameterKind, ParameterSetting, Setting, Source, SystemManifest, Value,
};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::bases::{self, SystemFile};
use crate::diagnostic::{Code, Diagnostics};
use crate::parameters::value_of;
use crate::program::{check_name, check_path, duplicate};
use crate::reader::{At, Report, Span, Table, one_of, wrong_type};
use crate::{domains, shapes, trust};

/// Reads and checks a system manifest over the available programs. `find` returns a system manifest by name, for bases:
/// everything of a base is part of the system.
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

/// A file's tables and its start offset.
type File<'f, 'i> = (&'f Spanned<DeTable<'i>>, usize);

struct Reader<'a> {
    report: &'a Report,
    programs: &'a [&'a Manifest],
}

/// `[system]` of one file.
struct Head {
    name: Option<At<String>>,
    /// Whether it names a root, valid or not.
    names_root: bool,
    root: Option<At<String>>,
    primary: Option<At<String>>,
    installed: Vec<At<String>>,
    span: Span,
}

/// Placeholder for the number of an instance, if there are several.
const NUMBER: char = '#';

/// Number of an instance whose [[program]] has a count.
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

/// Fields of the system, each with its value in the source.
type Places = Vec<(Field, At<String>)>;

/// An instance and its place in the file.
struct Entry {
    instance: Instance,
    name: Span,
    /// Fields of all instances, with this one's values in the source.
    places: Places,
}

/// A field of every instance.
const fn of_instances(key: &'static str) -> Field {
    Field::table("program", None).key(key)
}

fn places_of_instances(entries: &[Entry]) -> Places {
    let of_one = |(row, entry): (usize, &Entry)| -> Places {
        entry.places.iter().map(|(field, at)| (field.of_row(Some(row)), at.clone())).collect()
    };
    entries.iter().enumerate().flat_map(of_one).collect()
}

fn places_of_head(root: &At<String>, primary: Option<&At<String>>, installed: &[At<String>]) -> Places {
    let field = |key| Field::of("system", key);
    let programs = installed.iter().enumerate().map(|(item, name)| (field("installed").item(item), name.clone()));
    let primary = primary.map(|primary| (field("primary"), primary.clone()));
    programs.chain(primary).chain([(field("root"), root.clone())]).collect()
}

fn places_of_rules(table: &'static str, key: &'static str, rules: &Rules) -> Places {
    let of_one = |(row, (who, path)): (usize, &(At<String>, At<String>))| {
        [(Field::row(table, row, "who"), who.clone()), (Field::row(table, row, key), path.clone())]
    };
    rules.iter().enumerate().flat_map(of_one).collect()
}

/// Patterns of principals and of paths.
type Rules = Vec<(At<String>, At<String>)>;

impl<'a> Reader<'a> {
    /// `files`: the system manifest, then its bases.
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
        // Bases come first.
        let installed: Vec<At<String>> = heads.iter().rev().flat_map(|head| head.installed.clone()).collect();
        let root_manifest = root.as_ref().and_then(|root| self.find(&root.value));
        let entries = self.instances(&tables, root_manifest);
        self.check_installed(&installed);
        let binds: Rules = tables.iter().rev().flat_map(|file| self.rules(file, "bind", "path")).collect();
        let denies: Rules = tables.iter().rev().flat_map(|file| self.rules(file, "deny", "reach")).collect();
        let domains = domains::read(&tables);
        let trust = trust::read(self.report, &tables);
        for file in &tables {
            file.close();
        }
        self.check_root(root.as_ref(), &entries);
        let name = heads.into_iter().next()?.name;
        let root = root?;
        let mut places = places_of_rules("bind", "path", &binds);
        places.extend(places_of_rules("deny", "reach", &denies));
        places.extend(domains.iter().flat_map(|entry| entry.places.clone()));
        places.extend(places_of_instances(&entries));
        places.extend(places_of_head(&root, primary.as_ref(), &installed));
        let texts = |(who, path): (At<String>, At<String>)| (who.value, path.value);
        let system = SystemManifest {
            name: name?.value,
            root: root.value,
            primary: primary.map(|primary| primary.value),
            instances: entries.into_iter().map(|entry| entry.instance).collect(),
            installed: installed.into_iter().map(|name| name.value).collect(),
            binds: binds.into_iter().map(texts).map(|(who, path)| Bind { who, path }).collect(),
            denies: denies.into_iter().map(texts).map(|(who, reach)| Deny { who, reach }).collect(),
            domains: domains.into_iter().map(|entry| entry.domain).collect(),
            trust,
        };
        // After a reading error, the rules would report consequential faults.
        if self.report.count() == 0 {
            self.judge(&system, &places.into_iter().collect());
        }
        Some(system)
    }

    /// Reports the rules that the system violates.
    fn judge(&self, system: &SystemManifest, places: &BTreeMap<Field, At<String>>) {
        self.report.place(places.iter().map(|(field, at)| (*field, at.span.clone())).collect());
        let programs: Vec<&Manifest> = system.programs().into_iter().filter_map(|name| self.find(name)).collect();
        // Without a primary instance it cannot run and only serves as a base: derived systems add the providers.
        let left_open = |code| system.primary.is_none() && code == Rule::NoProvider;
        let mut shown = BTreeSet::new();
        for mut finding in install::system_findings(system, &programs) {
            let field = finding.places.first().map_or(Field::table("system", None), |place| place.field);
            let start = self.report.span(field).start;
            // A fault of one [[program]] affects all of its instances, and is reported once.
            if left_open(finding.code) || !shown.insert((finding.code, field.of_row(None), start)) {
                continue;
            }
            if let Some(remedy) = places.get(&field).and_then(|at| self.meant(system, finding.code, &at.value)) {
                finding.remedy = remedy;
            }
            self.report.add_finding(finding);
        }
    }

    /// Returns the remedy for an unknown name: only the source shows whether it is misspelt.
    fn meant(&self, system: &SystemManifest, code: Rule, name: &str) -> Option<String> {
        let names: Vec<&str> = match code {
            Rule::ProgramMissing => self.programs.iter().map(|program| program.name.as_str()).collect(),
            Rule::PrimaryMissing | Rule::InstanceMissing => {
                system.instances.iter().map(|instance| instance.name.as_str()).collect()
            }
            _ => return None,
        };
        Some(one_of(name, &names))
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
        let installed = head.bounded_texts("installed");
        head.close();
        Some(Head { name, names_root, root, primary, installed, span: head.span.clone() })
    }

    fn instances(&self, files: &[Table<'_, '_>], root: Option<&Manifest>) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for table in files.iter().rev().flat_map(|file| file.bounded_tables("program")) {
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

    /// Returns the instances of one [[program]].
    fn numbered_instances(&self, table: &Table<'_, '_>, root: Option<&Manifest>) -> Vec<Entry> {
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
                // The others would be reported for the same reason.
                break;
            }
        }
        entries
    }

    fn find(&self, name: &str) -> Option<&'a Manifest> {
        self.programs.iter().copied().find(|program| program.name == name)
    }

    fn instance(&self, table: &Table<'_, '_>, root: Option<&Manifest>, number: Number) -> Option<Entry> {
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
        let mut places = Places::from([
            (Field::table("program", None), name.clone()),
            (of_instances("name"), program.clone()),
            (of_instances("instance"), name.clone()),
        ]);
        for (key, names) in [("requires", &requires), ("after", &after)] {
            places.extend(names.iter().enumerate().map(|(item, name)| (of_instances(key).item(item), name.clone())));
        }
        let texts = |names: Vec<At<String>>| names.into_iter().map(|name| name.value).collect();
        let mut instance = Instance {
            name: name.value,
            program: program.value,
            optional,
            parameters: Vec::new(),
            devices: Vec::new(),
            provides: Vec::new(),
            endpoints: Vec::new(),
            requires: texts(requires),
            after: texts(after),
        };
        // An unknown program has no settings.
        if let Some(manifest) = self.find(&instance.program) {
            instance.parameters = self.parameters(manifest, &parameters, root, &mut places);
            instance.devices = self.devices(manifest, &devices, number, &mut places);
            instance.provides = self.provides(manifest, &provides, number, &mut places);
            instance.endpoints = self.endpoints(manifest, &endpoints, number, &mut places);
        }
        Some(Entry { instance, name: name.span, places })
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

    /// Reports a key that the program does not have.
    fn unknown(&self, code: Code, manifest: &Manifest, what: &str, key: &At<String>, names: &[&str]) {
        let message = format!("the program `{}` has no {what} `{}`", manifest.name, key.value);
        self.report.add(code, message, &key.span, "not in its manifest", one_of(&key.value, names));
    }

    fn parameters(
        &self,
        manifest: &Manifest,
        entries: &[(At<String>, &Spanned<DeValue<'_>>)],
        root: Option<&Manifest>,
        places: &mut Places,
    ) -> Vec<ParameterSetting> {
        let mut settings: Vec<ParameterSetting> = Vec::new();
        for (key, value) in entries {
            let Some((index, parameter)) = manifest.parameter(&key.value) else {
                let names: Vec<&str> = manifest.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
                self.unknown(Code::UnknownParameter, manifest, "parameter", key, &names);
                continue;
            };
            places.push((of_instances("parameters").item(index), At::new(key.value.clone(), value.span())));
            let setting = self.setting(key, parameter.kind, value, root);
            if let (Some(setting), Ok(index)) = (setting, u16::try_from(index)) {
                settings.push(ParameterSetting { index, setting });
            }
        }
        settings
    }

    fn setting(
        &self,
        key: &At<String>,
        kind: ParameterKind,
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
        let one = |value| value_of(self.report, &what, kind, value);
        let values: Option<Vec<Value>> = match value.get_ref().as_array() {
            Some(items) => items.iter().map(one).collect(),
            None => one(value).map(|value| vec![value]),
        };
        values.map(Setting::Values)
    }

    fn devices(
        &self,
        manifest: &Manifest,
        entries: &[(At<String>, &Spanned<DeValue<'_>>)],
        number: Number,
        places: &mut Places,
    ) -> Vec<String> {
        let mut devices: Vec<String> = manifest.devices.iter().map(|device| device.name.clone()).collect();
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
            places.push((of_instances("devices").item(index), name.clone()));
            devices[index] = name.value;
        }
        devices
    }

    fn provides(
        &self,
        manifest: &Manifest,
        entries: &[(At<String>, &Spanned<DeValue<'_>>)],
        number: Number,
        places: &mut Places,
    ) -> Vec<String> {
        let names: Vec<&str> = manifest.provides.iter().map(|provide| provide.path.as_str()).collect();
        let mut paths: Vec<String> = names.iter().map(|path| path.to_string()).collect();
        for (key, value) in entries {
            let Some(index) = names.iter().position(|path| *path == key.value) else {
                self.unknown(Code::UnknownProvide, manifest, "[[provide]] for", key, &names);
                continue;
            };
            let Some(path) = self.text("the path to provide", value).map(|path| number.put_into(path)) else {
                continue;
            };
            check_path(self.report, &path);
            places.push((of_instances("provides").item(index), path.clone()));
            paths[index] = path.value;
        }
        paths
    }

    fn endpoints(
        &self,
        manifest: &Manifest,
        entries: &[(At<String>, &Spanned<DeValue<'_>>)],
        number: Number,
        places: &mut Places,
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
            places.push((of_instances("endpoints").item(index), path.clone()));
            paths[index] = Some(path.value);
        }
        paths
    }

    fn check_installed(&self, installed: &[At<String>]) {
        for (index, name) in installed.iter().enumerate() {
            if let Some(first) = installed[..index].iter().find(|other| other.value == name.value) {
                duplicate(self.report, Code::DuplicateInstance, "the installed program", name, &first.span);
            }
        }
    }

    /// Returns the tables of a name in one file: each has a pattern of principals, and one of paths under `key`.
    fn rules(&self, file: &Table<'_, '_>, name: &'static str, key: &'static str) -> Rules {
        let mut rules = Rules::new();
        for table in file.bounded_tables(name) {
            let who = table.required_text("who");
            let path = table.required_text(key);
            table.close();
            rules.extend(who.zip(path));
        }
        rules
    }

    fn check_root(&self, root: Option<&At<String>>, entries: &[Entry]) {
        let Some(root) = root else { return };
        for entry in entries.iter().filter(|entry| entry.instance.program == root.value) {
            let message = format!("the root program `{}` is listed as an instance", root.value);
            let remedy = "remove this [[program]]: the kernel starts the root program".to_string();
            let here = (&entry.name, "it would run twice");
            self.report.add_second(Code::RootListed, message, here, (&root.span, "it is the root"), remedy);
        }
    }
}

//! `sing new`: creates a program of a given kind, ready to be built, tested and run.
//!
//! Key types: [`Kind`] (the kinds with templates), [`Plan`] (the files of a new program). The templates lie in
//! `sing/templates`. Neighbour: [`names`] decides which names are valid. Deliberately not here: building; a new
//! program is found by its manifest like any other.

pub mod names;

use std::path::{Path, PathBuf};

use crate::cargo::Metadata;
use crate::command_line::NewArguments;
use crate::contracts::ContractUnits;
use crate::failure::{Failure, Outcome};
use crate::programs::Programs;
use crate::repository::{Repository, read_text, write_whole};
use crate::workspace;

/// What a new program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// A command that a person starts
    App,
    /// A server in the namespace, its contract, and a command that asks it
    Service,
    /// A server that owns a device, its contract, and a command that asks it
    Driver,
    /// An application of the web server
    Webapp,
    /// A command with unsafe code, in C or Rust, which runs in a hardware domain of its own
    Native,
    /// The same in Rust.
    #[value(skip)]
    NativeRust,
    /// An application of the web server, as a WebAssembly module.
    #[value(skip)]
    WebappWasm,
}

/// The language of a program with unsafe code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    /// C, freestanding
    C,
    /// Rust
    Rust,
}

/// Returns the kind with its language, or as a module.
///
/// # Errors
/// The kind has no choice of that.
fn in_language(kind: Kind, language: Option<Language>, is_module: bool) -> Outcome<Kind> {
    match (kind, language) {
        (Kind::Webapp, None) if is_module => Ok(Kind::WebappWasm),
        _ if is_module && kind != Kind::Webapp => {
            Err(Failure::new("only `webapp` has a template as a WebAssembly module")
                .remedy("leave out --wasm; `cargo sing docs webassembly` tells how to write other modules"))
        }
        (Kind::Native, Some(Language::Rust)) => Ok(Kind::NativeRust),
        (Kind::Native, _) | (_, None) => Ok(kind),
        (_, Some(_)) => Err(Failure::new("only `native` programs have a choice of languages")
            .remedy("leave out --language: the others are safe Rust")),
    }
}

/// Templates of a folder's files: path in the new folder, and text.
type Templates = &'static [(&'static str, &'static str)];

macro_rules! templates {
    ($($path:literal = $file:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../templates/", $file, ".txt")))),*]
    };
}

const CRATE: &str = include_str!("../templates/Cargo.toml.txt");
const APP: Templates = templates! { "manifest.toml" = "app/manifest.toml", "src/lib.rs" = "app/lib.rs" };
const SERVICE: Templates = templates! { "manifest.toml" = "service/manifest.toml", "src/lib.rs" = "service/lib.rs" };
const DRIVER: Templates = templates! {
    "manifest.toml" = "driver/manifest.toml",
    "src/lib.rs" = "driver/lib.rs",
    "src/registers.rs" = "driver/registers.rs",
};
const WEBAPP: Templates = templates! { "manifest.toml" = "webapp/manifest.toml", "src/lib.rs" = "webapp/lib.rs" };
const NATIVE_C: Templates = templates! {
    "manifest.toml" = "native-c/manifest.toml",
    "src/lib.rs" = "native-c/lib.rs",
    "src/main.c" = "native-c/main.c",
};
const NATIVE_RUST: Templates =
    templates! { "manifest.toml" = "native-rust/manifest.toml", "src/lib.rs" = "native-rust/lib.rs" };
const WEBAPP_WASM: Templates = templates! {
    "manifest.toml" = "webapp-wasm/manifest.toml",
    "src/main.rs" = "webapp-wasm/main.rs",
    "build.sh" = "webapp-wasm/build.sh",
};
const CONTRACT: Templates =
    templates! { "{{module}}.contract" = "contract/contract", "src/lib.rs" = "contract/lib.rs" };
const ASK: Templates = templates! { "manifest.toml" = "ask/manifest.toml", "src/lib.rs" = "ask/lib.rs" };

impl Kind {
    fn templates(self) -> Templates {
        match self {
            Kind::App => APP,
            Kind::Service => SERVICE,
            Kind::Driver => DRIVER,
            Kind::Webapp => WEBAPP,
            Kind::Native => NATIVE_C,
            Kind::NativeRust => NATIVE_RUST,
            Kind::WebappWasm => WEBAPP_WASM,
        }
    }

    fn system(self) -> &'static str {
        match self {
            Kind::App => include_str!("../templates/app/system.toml.txt"),
            Kind::Service => include_str!("../templates/service/system.toml.txt"),
            Kind::Driver => include_str!("../templates/driver/system.toml.txt"),
            Kind::Webapp | Kind::WebappWasm => include_str!("../templates/webapp/system.toml.txt"),
            Kind::Native | Kind::NativeRust => include_str!("../templates/native/system.toml.txt"),
        }
    }

    /// Returns the folder for programs of this kind.
    fn folder(self, place: Place) -> &'static str {
        match self {
            _ if place == Place::Own => workspace::PROGRAMS,
            Kind::App | Kind::Webapp | Kind::Native | Kind::NativeRust | Kind::WebappWasm => "apps",
            Kind::Service => "services",
            Kind::Driver => "drivers",
        }
    }

    /// Returns whether it has its own contract, and a command that uses it.
    fn has_contract(self) -> bool {
        matches!(self, Kind::Service | Kind::Driver)
    }

    fn description(self) -> &'static str {
        match self {
            Kind::App => "Application SIP: greets people",
            Kind::Service => "Service SIP: counts how often it is asked",
            Kind::Driver => "Driver SIP: a parallel port",
            Kind::Webapp | Kind::WebappWasm => "Web application: greets whoever asks",
            Kind::Native => "Application SIP in C: turns text around",
            Kind::NativeRust => "Application SIP with unsafe code: turns text around",
        }
    }

    /// Returns its dependencies, beside the crate with its contract.
    fn crates(self) -> &'static [&'static str] {
        match self {
            Kind::App => &["client", "contracts", "path", "sip", "stdio"],
            Kind::Service => &["contracts", "provider", "sip"],
            Kind::Driver => &["contracts", "layout", "provider", "sip", "stdio"],
            Kind::Webapp => &["contracts", "sip", "stdio", "web-application"],
            Kind::Native => &["contracts"],
            Kind::NativeRust => &["contracts", "sip", "stdio"],
            Kind::WebappWasm => &["sing-guest-web"],
        }
    }

    /// Returns the commands of a first run.
    fn first_run(self, name: &str) -> String {
        let run = match self {
            Kind::App => format!("-c '{name} Ada'"),
            Kind::Service => format!("-c 'ask-{name} 3'"),
            Kind::Driver => format!("--machine qemu -c ask-{name}"),
            Kind::Webapp | Kind::WebappWasm => "--parameter web-port=8080".into(),
            Kind::Native | Kind::NativeRust => format!("-c '{name} drawer'"),
        };
        format!("cargo sing run --system {name} {run}")
    }
}

/// Location of a new program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Among the system's own programs.
    System,
    /// In a separate workspace.
    Own,
}

/// Files of a new program, by path relative to the repository or workspace.
#[derive(Debug)]
pub struct Plan {
    /// Folders that must not exist yet.
    pub folders: Vec<PathBuf>,
    /// Path and text of each file.
    pub files: Vec<(PathBuf, String)>,
}

impl Plan {
    /// Returns the files of a program of this kind.
    pub fn new(kind: Kind, name: &str, publisher: &str, place: Place) -> Plan {
        let mut plan = Plan { folders: Vec::new(), files: Vec::new() };
        let words = Words::new(kind, name, publisher);
        let folder = Path::new(kind.folder(place));
        let workspace = |names: &[&str]| -> String {
            names.iter().map(|name| format!("{name} = {{ workspace = true }}\n")).collect()
        };
        let mut own = workspace(kind.crates());
        if kind.has_contract() {
            let contract = format!("{name}-contract");
            own.push_str(&format!("{contract} = {{ path = \"../{contract}\" }}\n"));
            plan.add(
                &folder.join(&contract),
                CONTRACT,
                &words,
                "Contract of {{name}} and its clients",
                &workspace(&["sip"]),
            );
            let path = format!("{contract} = {{ path = \"../../{}/{contract}\" }}\n", folder.display());
            let dependencies = workspace(&["client", "contracts", "sip", "stdio"]) + &path;
            plan.add(
                &Path::new(Kind::App.folder(place)).join(format!("ask-{name}")),
                ASK,
                &words,
                "Application SIP: asks {{name}}",
                &dependencies,
            );
        }
        plan.add(&folder.join(name), kind.templates(), &words, kind.description(), &own);
        if kind == Kind::NativeRust
            && let Some((_, manifest)) = plan.files.iter_mut().find(|(path, _)| path.ends_with("Cargo.toml"))
        {
            // A workspace's lints may forbid unsafe code.
            *manifest =
                manifest.replace("[lints]\nworkspace = true", "[lints.rust]\nunsafe_op_in_unsafe_fn = \"deny\"");
        }
        let system = Path::new("systems").join(name).with_extension("toml");
        plan.files.push((system, words.put_into(kind.system())));
        plan
    }

    fn add(&mut self, folder: &Path, templates: Templates, words: &Words, description: &str, dependencies: &str) {
        let package = folder.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
        let text = CRATE.replace("{{name}}", &package).replace("{{dependencies}}", dependencies);
        let text = text.replace("{{description}}", &words.put_into(description));
        self.files.push((folder.join("Cargo.toml"), text));
        for (path, text) in templates {
            self.files.push((folder.join(words.put_into(path)), words.put_into(text)));
        }
        self.folders.push(folder.to_path_buf());
    }

    /// Writes all files below `root`, or none if something exists already.
    ///
    /// # Errors
    /// A folder or the system manifest exists, or a file cannot be written.
    pub fn write(&self, root: &Path) -> Outcome<()> {
        let systems = self.files.iter().map(|(path, _)| path).filter(|path| path.starts_with("systems"));
        if let Some(path) = self.folders.iter().chain(systems).find(|path| root.join(path).exists()) {
            return Err(
                Failure::new(format!("{} already exists", path.display())).remedy("choose another name, or remove it")
            );
        }
        // Manifests last: the workspace picks up a folder as soon as it has a Cargo.toml.
        let (last, first): (Vec<_>, Vec<_>) = self.files.iter().partition(|(path, _)| path.ends_with("Cargo.toml"));
        first.into_iter().chain(last).try_for_each(|(path, text)| write_whole(&root.join(path), text.as_bytes()))
    }
}

/// Substitutions of a template's placeholders.
struct Words(Vec<(&'static str, String)>);

impl Words {
    fn new(kind: Kind, name: &str, publisher: &str) -> Words {
        let parts = name.split('-').filter(|part| !part.is_empty());
        let capital = |part: &str| {
            let (first, rest) = part.split_at(1);
            first.to_uppercase() + rest
        };
        let place = if kind == Kind::Driver { "dev" } else { "service" };
        Words(vec![
            ("{{name}}", name.into()),
            ("{{module}}", parts.clone().collect::<Vec<_>>().join("_")),
            ("{{Type}}", parts.map(capital).collect()),
            ("{{publisher}}", publisher.into()),
            ("{{path}}", format!("/{place}/{name}")),
        ])
    }

    fn put_into(&self, template: &str) -> String {
        self.0.iter().fold(template.into(), |text, (place, word)| text.replace(place, word))
    }
}

/// `sing new`.
///
/// # Errors
/// The name is invalid or taken, or a file cannot be written.
pub fn new(repository: &Repository, arguments: &NewArguments) -> Outcome<u8> {
    let kind = in_language(arguments.kind, arguments.language, arguments.wasm)?;
    let (name, publisher) = (arguments.name.as_str(), arguments.publisher.as_str());
    names::check_program(name)?;
    names::check_publisher(publisher)?;
    if kind.has_contract() {
        check_contract(&Words::new(kind, name, publisher), &ContractUnits::compile(repository)?.names())?;
    }
    let own = own_root(repository, name)?;
    let place = if own.is_some() { Place::Own } else { Place::System };
    let plan = Plan::new(kind, name, publisher, place);
    let programs = Programs::find(repository);
    let metadata = Metadata::of_members(&repository.base().join("Cargo.toml"))?;
    for folder in &plan.folders {
        let new = folder.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
        let is_program = programs.all().any(|program| program.name == new);
        if is_program || metadata.member(&new).is_some() {
            let what = if is_program { "program" } else { "crate" };
            return Err(
                Failure::new(format!("the repository already has a {what} `{new}`")).remedy("choose another name")
            );
        }
    }
    let root = own.as_ref().map_or(repository.root(), |own| &own.root);
    begin_workspace(repository, own.as_ref())?;
    plan.write(root)?;
    for folder in &plan.folders {
        println!("{}", folder.display());
    }
    println!("systems/{name}.toml");
    if let Some(own) = own.as_ref().filter(|own| own.is_new) {
        println!("\nThis is a workspace of your own. Go into it:  cd {}", own.root.display());
    }
    println!("\nTest it:  cargo test --package {name}");
    if kind == Kind::WebappWasm {
        println!("Build it: sh {}/{name}/build.sh", kind.folder(place));
    }
    println!("Run it:   {}", kind.first_run(name));
    Ok(0)
}

/// A separate workspace.
struct Own {
    root: PathBuf,
    is_new: bool,
}

/// Returns the workspace of a new program: the one around the current folder, or one of the program's name in the
/// current folder; `None` inside the system's sources.
fn own_root(repository: &Repository, name: &str) -> Outcome<Option<Own>> {
    if repository.is_own() {
        return Ok(Some(Own { root: repository.root().to_path_buf(), is_new: false }));
    }
    let here =
        std::env::current_dir().map_err(|error| Failure::new(format!("cannot read the current folder: {error}")))?;
    if here.starts_with(repository.root()) {
        return Ok(None);
    }
    let root = PathBuf::from(name);
    if root.exists() {
        return Err(Failure::new(format!("{name} already exists")).remedy("choose another name, or remove it"));
    }
    Ok(Some(Own { root, is_new: true }))
}

/// Writes the files of a new workspace.
fn begin_workspace(repository: &Repository, own: Option<&Own>) -> Outcome<()> {
    let Some(own) = own.filter(|own| own.is_new) else { return Ok(()) };
    // Pins the dependency versions that the system was tested with.
    let lock = read_text(&repository.base().join("Cargo.lock"))?;
    let name = own.root.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    let files = workspace::files(repository.base(), repository.cargo_target(), lock, &name);
    files.into_iter().try_for_each(|(path, text)| write_whole(&own.root.join(path), text.as_bytes()))
}

/// Refuses a contract from the templates that clashes with those in `known`.
fn check_contract(words: &Words, known: &[String]) -> Outcome<()> {
    let text: String = CONTRACT.iter().filter(|(path, _)| path.ends_with(".contract")).map(|(_, text)| *text).collect();
    let [contract, module] = ["{{Type}}", "{{module}}"].map(|place| words.put_into(place));
    names::check_contract(&contract, &module, &words.put_into(&text), known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::CommandLine;
    use clap::Parser;

    const KINDS: [Kind; 7] =
        [Kind::App, Kind::Service, Kind::Driver, Kind::Webapp, Kind::Native, Kind::NativeRust, Kind::WebappWasm];

    #[test]
    fn every_place_is_filled_and_every_manifest_is_right() {
        for kind in KINDS {
            let plan = Plan::new(kind, "tea-pot2", "acme", Place::System);
            for (path, text) in &plan.files {
                let shown = path.display().to_string();
                assert!(!text.contains("{{") && !shown.contains("{{"), "{shown}:\n{text}");
                if shown.ends_with("manifest.toml") {
                    let program = manifest::program(&shown, text, None).unwrap_or_else(|errors| panic!("{errors}"));
                    assert_eq!(program.manifest.publisher, "acme");
                } else if shown.ends_with(".toml") {
                    let table: Result<toml::Table, _> = toml::from_str(text);
                    assert!(table.is_ok(), "{shown}: {table:?}");
                } else if shown.ends_with(".rs") {
                    assert!(attributes_of(text, path, kind != Kind::NativeRust), "{shown}");
                }
            }
            assert_eq!(plan.folders.len(), if kind.has_contract() { 3 } else { 1 });
        }
    }

    /// Returns whether a library forbids what no SIP may contain.
    fn attributes_of(text: &str, path: &Path, is_safe: bool) -> bool {
        let attributes = crate::attributes::inner_attributes(text);
        let is_library = path.ends_with("lib.rs");
        let is_right = crate::attributes::forbids_unsafe(&attributes) == is_safe;
        !is_library || crate::attributes::is_no_std(&attributes) && is_right
    }

    #[test]
    fn crates_of_a_workspace_of_ones_own_find_each_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let plan = Plan::new(Kind::Service, "tea-pot", "acme", Place::Own);
        plan.write(folder.path()).expect("nothing is there");
        assert!(plan.folders.iter().all(|folder| folder.starts_with(workspace::PROGRAMS)), "{:?}", plan.folders);
        let mut followed = 0;
        for program in &plan.folders {
            let program = folder.path().join(program);
            let manifest = std::fs::read_to_string(program.join("Cargo.toml")).expect("a crate");
            for path in manifest.lines().filter_map(|line| line.split_once("path = \"")?.1.split('"').next()) {
                assert!(program.join(path).join("Cargo.toml").is_file(), "{path}");
                followed += 1;
            }
        }
        assert_eq!(followed, 2);
    }

    #[test]
    fn what_is_there_is_left_alone() {
        let root = tempfile::tempdir().expect("a folder");
        let plan = Plan::new(Kind::Service, "tea", "acme", Place::System);
        std::fs::create_dir_all(root.path().join("apps/ask-tea")).expect("a folder");
        let refused = plan.write(root.path()).expect_err("the client's folder is there");
        assert!(refused.to_string().starts_with("apps/ask-tea already exists"), "{refused}");
        assert!(!root.path().join("services").exists());
        std::fs::remove_dir(root.path().join("apps/ask-tea")).expect("an empty folder");
        plan.write(root.path()).expect("nothing is there");
        assert!(root.path().join("services/tea-contract/tea.contract").is_file());
        assert!(plan.write(root.path()).is_err());
    }

    #[test]
    fn a_contract_that_nothing_else_is_called_after_is_taken() {
        let known = ["Pipe", "ServiceProvider"].map(String::from);
        let check = |name| check_contract(&Words::new(Kind::Service, name, "acme"), &known);
        for (name, phrase) in [
            ("pipe", "already has a contract `Pipe`"),
            ("service-provider", "already has a contract `ServiceProvider`"),
            ("report", "the module name `report` conflicts"),
            ("imp", "the name `Imp` is reserved"),
            ("exp-ready", "the name `ExpReady` is reserved"),
            ("plan-b-c", "adjacent one-letter words"),
        ] {
            let refused = check(name).expect_err(name).to_string();
            assert!(refused.contains(phrase), "{name}: {refused}");
        }
        for name in ["counter", "tea-pot2", "plan-b", "x-ray", "report-card", "pipe-line"] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn only_native_programs_have_a_language_and_only_web_applications_are_modules() {
        for (kind, language, is_module, expected) in [
            (Kind::Native, None, false, Some(Kind::Native)),
            (Kind::Native, Some(Language::C), false, Some(Kind::Native)),
            (Kind::Native, Some(Language::Rust), false, Some(Kind::NativeRust)),
            (Kind::App, Some(Language::C), false, None),
            (Kind::App, None, false, Some(Kind::App)),
            (Kind::Webapp, None, true, Some(Kind::WebappWasm)),
            (Kind::Webapp, Some(Language::Rust), true, None),
            (Kind::App, None, true, None),
        ] {
            assert_eq!(in_language(kind, language, is_module).ok(), expected, "{kind:?} {language:?} {is_module}");
        }
    }

    /// Splits a command into words, as a shell does.
    fn words_of(command: &str) -> Vec<&str> {
        let quoted = command.split('\'').enumerate();
        quoted
            .flat_map(|(index, part)| if index % 2 == 1 { vec![part] } else { part.split_whitespace().collect() })
            .collect()
    }

    #[test]
    fn what_is_told_to_be_run_can_be_run() {
        for kind in KINDS {
            let said = kind.first_run("tea-pot2");
            let words = words_of(&said);
            assert_eq!(words[..2], ["cargo", "sing"]);
            let parsed = CommandLine::try_parse_from(&words[1..]);
            let told = parsed.unwrap_or_else(|error| panic!("{said}: {error}"));
            let crate::command_line::Command::Run(run) = told.command else { panic!("{said} runs nothing") };
            assert_eq!(run.system.as_deref(), Some(Path::new("tea-pot2")), "{said}");
            // The generated system manifest repeats it in its header.
            let plan = Plan::new(kind, "tea-pot2", "acme", Place::System);
            let (_, system) = plan.files.iter().find(|(path, _)| path.starts_with("systems")).expect("a system");
            let told = system.split('`').map(words_of).filter(|words| words.starts_with(&["cargo", "sing"]));
            let mut count = 0;
            for words in told {
                let sorted = |words: &[&str]| {
                    let mut sorted: Vec<String> = words.iter().map(ToString::to_string).collect();
                    sorted.sort();
                    sorted
                };
                assert!(CommandLine::try_parse_from(&words[1..]).is_ok(), "{words:?}");
                assert_eq!(sorted(&words), sorted(&words_of(&said)));
                count += 1;
            }
            assert_eq!(count, 1, "{system}");
        }
    }
}

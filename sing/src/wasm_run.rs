//! `sing run --wasm`: WebAssembly modules given bare, without a manifest. Each becomes a command of the system.
//!
//! A module gets a folder of its own in the output, with a copy of it and a manifest; a system manifest based on the one
//! asked for adds them all. Neighbour: `wasm` composes their images, as of any program with a module.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};

use command_language::quote;
use manifest::DEFAULT_PUBLISHER;
use package_check::sha256;

use crate::command_line::{MachineName, RunArguments};
use crate::domains;
use crate::failure::{Failure, Outcome};
use crate::keys::hexadecimal;
use crate::programs::Programs;
use crate::repository::{Repository, write_if_changed};
use crate::systems;

/// Folder of what is made for bare modules.
const FOLDER: &str = "bare-wasm";
/// File there with the paths of the modules, a line each.
const PATHS: &str = "paths";
/// Endings of what is made of a system.
const OUTPUTS: [&str; 3] = ["system", "stamp", "bare.stamp"];
/// What every module begins with.
const MAGIC: &[u8] = b"\0asm";

/// A module, as a program.
struct Module {
    name: String,
    file: String,
    /// Where it was read.
    path: PathBuf,
    bytes: Vec<u8>,
}

/// Returns the repository with the modules as programs, and the arguments with a system that has them. A single module
/// is what runs, unless commands are given.
///
/// # Errors
/// A file is no module, two have one name, or the system cannot be the base of another.
pub fn applied(repository: &Repository, arguments: &RunArguments) -> Outcome<(Repository, RunArguments)> {
    let mut applied = arguments.clone();
    if arguments.wasm.is_empty() {
        return Ok((repository.clone(), applied));
    }
    let programs = Programs::find(repository);
    let taken = |name: &str| programs.get(name).is_ok();
    let modules: Vec<Module> = arguments.wasm.iter().map(|path| Module::read(path, taken)).collect::<Outcome<_>>()?;
    refuse_twins(&modules)?;
    applied.commands = commands(arguments, &modules)?;
    if let [module] = &modules[..] {
        let rules = network_rules(&module.name, arguments)?;
        applied.parameter.extend(rules.into_iter().map(|rule| format!("network-rule={rule}")));
    }
    let usual = match arguments.machine {
        None | Some(MachineName::Hosted) if arguments.tap.is_some() => systems::HOSTED_TAP,
        None | Some(MachineName::Hosted) => systems::HOSTED,
        Some(MachineName::Qemu | MachineName::Microvm) => systems::BARE,
    };
    let asked = repository.system_manifest(arguments.system.as_deref().unwrap_or(Path::new(usual)))?;
    let base = domains::base_name(repository, &asked, "--wasm")?;
    let folder = write(repository, &asked, &base, &modules)?;
    applied.system = Some(folder.join(system_file(&base)));
    Ok((repository.with_programs(folder), applied))
}

impl Module {
    fn read(path: &Path, is_taken: impl Fn(&str) -> bool) -> Outcome<Module> {
        let bytes = std::fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
        if !bytes.starts_with(MAGIC) {
            return Err(Failure::new(format!("{} is not a WebAssembly module in the binary format", path.display()))
                .remedy("compile a program for wasm32-wasip1, or translate text by wat2wasm"));
        }
        let file = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let name = program_name(&stem);
        let name = if is_taken(&name) { program_name(&format!("wasm-{name}")) } else { name };
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        Ok(Module { name, file, path, bytes })
    }

    fn manifest(&self) -> String {
        let Module { name, file, .. } = self;
        let file: String =
            file.chars().filter(|letter| letter.is_ascii_graphic() && !matches!(letter, '"' | '\\')).collect();
        format!(
            "# Made for a module without a manifest.\n\n[program]\nname = \"{name}\"\nversion = \"0.1.0\"\nabi = 1\n\
             category = \"console\"\nsummary = \"the WebAssembly module {file}\"\n\n[code]\nwasm = \"module.wasm\"\n"
        )
    }
}

/// The name of a program for a file: what a name cannot have becomes a hyphen.
fn program_name(stem: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let mut name: String = stem.chars().map(letter).collect();
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        name.insert_str(0, "wasm-");
    }
    name.truncate(63);
    name
}

fn refuse_twins(modules: &[Module]) -> Outcome<()> {
    let mut names: Vec<&str> = modules.iter().map(|module| module.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            Err(Failure::new(format!("two modules would be the program `{}`", pair[0]))
                .remedy("rename one of the files"))
        }
    }
}

/// What the shell runs: the commands given, or the only module with its words.
fn commands(arguments: &RunArguments, modules: &[Module]) -> Outcome<Option<String>> {
    let lists = [&arguments.words, &arguments.dir, &arguments.env, &arguments.tcp_listen, &arguments.tcp_connect];
    let has_words = lists.iter().any(|list| !list.is_empty());
    match modules {
        [module] if arguments.commands.is_none() => {
            let mut words = vec![module.name.clone(), "--no-working-folder".into()];
            words.extend(arguments.dir.iter().flat_map(|folder| ["--dir".into(), quote(folder)]));
            words.extend(arguments.tcp_listen.iter().flat_map(|address| ["--tcp-listen".into(), quote(address)]));
            words.extend(arguments.tcp_connect.iter().flat_map(|address| ["--tcp-connect".into(), quote(address)]));
            words.extend(arguments.env.iter().flat_map(|variable| ["--env".into(), quote(variable)]));
            words.push("--".into());
            words.extend(arguments.words.iter().map(|word| quote(word)));
            Ok(Some(words.join(" ")))
        }
        _ if has_words => Err(Failure::new(
            "--dir, --env, --tcp-listen, --tcp-connect and words belong to the one program that --wasm runs",
        )
        .remedy("with -c, and with several modules, write them in a command of the shell: `NAME --dir PATH WORDS`; the network lets it have sockets by --parameter \"network-rule=allow listen ..NAME.singularity ADDRESS:PORT\"")),
        _ => Ok(arguments.commands.clone()),
    }
}

/// The access rules of the network without which the program could not have the sockets that it is given.
fn network_rules(name: &str, arguments: &RunArguments) -> Outcome<Vec<String>> {
    let who = format!("..{name}.{DEFAULT_PUBLISHER}");
    let mut rules = Vec::new();
    for asked in &arguments.tcp_listen {
        let address = socket_address(asked).ok_or_else(|| no_address("--tcp-listen", asked, "127.0.0.1:8080"))?;
        rules.push(format!("allow listen {who} {address}"));
    }
    for asked in &arguments.tcp_connect {
        if let Some(address) = socket_address(asked) {
            rules.push(format!("allow connect {who} {address}"));
            continue;
        }
        // Rules know no names of hosts.
        let port = port_of_name(asked).ok_or_else(|| no_address("--tcp-connect", asked, "example.org:80"))?;
        rules.extend([format!("allow connect {who} *:{port}"), format!("allow resolve {who}")]);
    }
    Ok(rules)
}

fn socket_address(text: &str) -> Option<SocketAddr> {
    text.parse().ok().filter(|address: &SocketAddr| address.port() != 0)
}

/// The port behind the name of a host.
fn port_of_name(text: &str) -> Option<NonZeroU16> {
    let (host, port) = text.split_once(':')?;
    let is_name =
        !host.is_empty() && host.chars().all(|letter| letter.is_ascii_alphanumeric() || "-.".contains(letter));
    port.parse().ok().filter(|_| is_name)
}

fn no_address(option: &str, asked: &str, example: &str) -> Failure {
    Failure::new(format!("{option} {asked}: not an address with a port"))
        .remedy(format!("write it as {example} or [::1]:8080"))
}

/// Writes the manifests, and returns their folder: one for these files, since other files of the same names may be run at
/// the same time.
fn write(repository: &Repository, system: &Path, base: &str, modules: &[Module]) -> Outcome<PathBuf> {
    let names: Vec<&str> = modules.iter().map(|module| module.name.as_str()).collect();
    prune(repository);
    let folder = repository.output(FOLDER).join(folder_name(system, modules));
    write_if_changed(&folder.join(PATHS), paths(modules).as_bytes())?;
    for module in modules {
        let own = folder.join(&module.name);
        write_if_changed(&own.join("module.wasm"), &module.bytes)?;
        write_if_changed(&own.join("manifest.toml"), module.manifest().as_bytes())?;
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let text = format!(
        "# What `--wasm` adds to `{base}`.\n\n[system]\nname = \"{base}-wasm\"\nbase = \"{base}\"\ninstalled = [{}]\n",
        quoted.join(", ")
    );
    write_if_changed(&folder.join(system_file(base)), text.as_bytes())?;
    Ok(folder)
}

fn paths(modules: &[Module]) -> String {
    modules.iter().map(|module| format!("{}\n", module.path.display())).collect()
}

fn folder_name(system: &Path, modules: &[Module]) -> String {
    let key = sha256(format!("{}\n{}", system.display(), paths(modules)).as_bytes());
    hexadecimal(&key)[..16].into()
}

/// Removes what was made for modules that are no longer there, as far as it can be removed.
fn prune(repository: &Repository) {
    let folders = std::fs::read_dir(repository.output(FOLDER)).into_iter().flatten().flatten();
    for folder in folders.map(|entry| entry.path()) {
        let Ok(paths) = std::fs::read_to_string(folder.join(PATHS)) else { continue };
        if paths.lines().all(|path| Path::new(path).exists()) {
            continue;
        }
        let files = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        for system in files.filter(|path| path.extension().is_some_and(|extension| extension == "toml")) {
            let name = repository.system_outputs(&system);
            for ending in OUTPUTS {
                let _ = std::fs::remove_file(repository.output(&format!("systems/{name}.{ending}")));
            }
        }
        let _ = std::fs::remove_dir_all(&folder);
    }
}

fn system_file(base: &str) -> String {
    format!("{base}-wasm.toml")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command_line::{Command, CommandLine};

    fn module(name: &str) -> Module {
        Module { name: name.into(), file: format!("{name}.wasm"), path: PathBuf::from("/"), bytes: MAGIC.to_vec() }
    }

    fn arguments(words: &[&str]) -> RunArguments {
        let all = ["sing", "run", "--wasm", "x.wasm"].iter().chain(words);
        match CommandLine::try_parse_from(all).expect("a command line").command {
            Command::Run(arguments) => arguments,
            _ => panic!("it is `run`"),
        }
    }

    #[test]
    fn any_file_name_gives_a_name() {
        for (stem, name) in
            [("rg", "rg"), ("Fd_Write-To.stdout", "fd-write-to-stdout"), ("7z", "wasm-7z"), ("", "wasm-")]
        {
            assert_eq!(program_name(stem), name);
            assert!(manifest_model::is_name(&program_name(stem)), "{stem}");
        }
        assert!(manifest_model::is_name(&program_name(&"é".repeat(100))));
    }

    #[test]
    fn modules_of_one_name_in_two_folders_do_not_share_a_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let read = |parent: &str| {
            let path = folder.path().join(parent).join("x.wasm");
            std::fs::create_dir_all(path.with_file_name("")).expect("a folder");
            std::fs::write(&path, MAGIC).expect("a file");
            [Module::read(&path, |_| false).unwrap_or_else(|refused| panic!("{refused}"))]
        };
        let system = Path::new("systems/hosted.toml");
        let (first, second) = (read("first"), read("second"));
        assert_eq!(first[0].name, second[0].name);
        assert_ne!(folder_name(system, &first), folder_name(system, &second));
        assert_eq!(folder_name(system, &first), folder_name(system, &read("first")));
        assert_ne!(folder_name(system, &first), folder_name(Path::new("systems/bare.toml"), &first));
    }

    #[test]
    fn one_module_runs_with_its_words() {
        let given = arguments(&["--dir", "/fs/disk0/a b", "--env", "A=it's", "--", "-x", "--", ""]);
        let run = commands(&given, &[module("rg")]).expect("a command").expect("a command");
        assert_eq!(run, "rg --no-working-folder --dir '/fs/disk0/a b' --env \"A=it's\" -- -x -- ''");
        let refused = commands(&given, &[module("a"), module("b")]).expect_err("whose words?").to_string();
        assert!(refused.contains("write them in a command of the shell"), "{refused}");
        let commands_given = arguments(&["-c", "rg x"]);
        assert_eq!(commands(&commands_given, &[module("rg")]).expect("given"), Some("rg x".into()));
        assert_eq!(commands(&arguments(&[]), &[module("a"), module("b")]).expect("a prompt"), None);
    }

    #[test]
    fn the_network_lets_a_program_have_the_sockets_that_it_is_given_and_no_more() {
        let given =
            arguments(&["--tcp-listen", "[::1]:80", "--tcp-connect", "192.0.2.1:7", "--tcp-connect", "a.org:443"]);
        let expected = [
            "allow listen ..rg.singularity [::1]:80",
            "allow connect ..rg.singularity 192.0.2.1:7",
            "allow connect ..rg.singularity *:443",
            "allow resolve ..rg.singularity",
        ];
        assert_eq!(network_rules("rg", &given).expect("rules"), expected);
        for wrong in ["80", ":80", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "localhost:80", "[zz]:80"] {
            let refused = network_rules("rg", &arguments(&["--tcp-listen", wrong])).expect_err(wrong).to_string();
            assert!(refused.contains("not an address with a port"), "{refused}");
        }
        for wrong in ["", "a.org", "a.org:0", ":80", "a b:80", "[zz]:80", "a.org:80:90"] {
            let refused = network_rules("rg", &arguments(&["--tcp-connect", wrong])).expect_err(wrong).to_string();
            assert!(refused.contains("not an address with a port"), "{refused}");
        }
    }

    #[test]
    fn a_file_that_is_no_module_is_refused_in_a_sentence() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.wasm");
        std::fs::write(&path, "(module)").expect("a file");
        let refused = Module::read(&path, |_| false).err().expect("text").to_string();
        assert!(refused.contains("is not a WebAssembly module in the binary format"), "{refused}");
        std::fs::write(&path, MAGIC).expect("a file");
        assert_eq!(Module::read(&path, |name| name == "x").ok().map(|module| module.name), Some("wasm-x".into()));
        assert!(refuse_twins(&[module("a"), module("b"), module("a")]).is_err());
    }
}

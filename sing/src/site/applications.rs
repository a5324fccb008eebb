//! The web applications beside the served content: the status page, those of `--demo` and of `--app`, and the system
//! that contains their programs.
//!
//! Deliberately not here: the served content itself.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use manifest_model::{Manifest, Setting, Side, Source, SystemManifest};

use crate::command_line::RunArguments;
use crate::failure::{Failure, Outcome};
use crate::repository::{Repository, write_if_changed};
use crate::systems::{self, Catalogue};

/// The root program's parameter for applications, repeated for each.
const PARAMETER: &str = "web-application";
/// Its parameters for the log, port and address.
const LOG: &str = "web-log";
const PORT: &str = "web-port";
const ADDRESS: &str = "web-address";
const NETWORK: &str = "/service/tcp";
const CONTRACT: &str = "WebApplication";
/// They answer with the served content, and write to the log's disk.
const DEMO: [&str; 2] = ["/hello=web-hello", "/spec=web-spec root=SERVED log=/fs/disk1/post.log"];
/// Placeholder for the served folder.
const SERVED: &str = "SERVED";
/// Clients on this host may see processes and channels; others see only whether the system is healthy.
const STATUS: &str = "/status=web-status";
const HEALTH: &str = "/status=web-status show=health";
/// For Prometheus on this host.
const METRICS: &str = "/metrics=web-status show=metrics";

/// A program mounted at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Application {
    /// Without a trailing slash; empty for all paths.
    path: String,
    program: String,
    options: String,
}

/// Content served beside applications.
pub struct Served<'a> {
    /// Its path on the host.
    pub at_host: &'a Path,
    /// Its path in the system.
    pub root: &'a str,
}

/// Configuration of a run with its applications.
pub struct Chosen {
    /// The system that contains their programs.
    pub system: PathBuf,
    /// Parameters of its root program.
    pub parameters: Vec<String>,
}

/// Chooses the applications of a run. `usual` is the default system; `place` is the host address being served.
///
/// # Errors
/// An application is malformed or its program does not exist, or the system does not serve.
pub fn choose(
    repository: &Repository,
    arguments: &RunArguments,
    usual: &str,
    place: Option<IpAddr>,
    served: &Served<'_>,
) -> Outcome<Chosen> {
    let own: Vec<Application> = arguments.app.iter().map(|text| parse(text)).collect::<Outcome<_>>()?;
    let applications = all(&own, arguments, place);
    refuse_twice(&applications)?;
    for application in &applications {
        if let Some(hidden) = hidden(application, served.at_host) {
            eprintln!("sing: {hidden}");
        }
    }
    let given = arguments.system.as_deref();
    let mut system = given.map_or_else(|| PathBuf::from(usual), Path::to_path_buf);
    let mut takes_applications = true;
    if given.is_some() || !own.is_empty() {
        let path = repository.system_manifest(&system)?;
        let known = Known::read(repository, &path)?;
        known.refuse_what_does_not_serve(arguments, &system)?;
        takes_applications = known.takes(PARAMETER);
        system = known.with_programs(repository, path, &own)?;
    }
    let told = applications.iter().filter(|_| takes_applications);
    Ok(Chosen {
        system,
        parameters: told.map(|one| format!("{PARAMETER}={}", one.text().replace(SERVED, served.root))).collect(),
    })
}

/// Returns the applications of this run: the user's, the demos, and status page and metrics unless their paths are taken.
fn all(own: &[Application], arguments: &RunArguments, place: Option<IpAddr>) -> Vec<Application> {
    let is_local = place.is_some_and(|address| address.is_loopback());
    let demos = DEMO.iter().filter(|_| arguments.demo);
    let status: &[&str] = if is_local { &[STATUS, METRICS] } else { &[HEALTH] };
    let status = status.iter().filter_map(|text| parse(text).ok());
    let free = status.filter(|one| own.iter().all(|own| own.path != one.path));
    own.iter().cloned().chain(demos.filter_map(|text| parse(text).ok())).chain(free).collect()
}

/// Parses `/path=program`, with options after a space.
fn parse(text: &str) -> Outcome<Application> {
    let wrong = |why: &str| {
        Err(Failure::new(format!("--app {text}: {why}"))
            .remedy("use /PATH=PROGRAM, with options after a space, as in --app '/shop=my-shop currency=EUR'"))
    };
    let Some((path, program)) = text.split_once('=') else { return wrong("missing `=`") };
    if !path.starts_with('/') || path.contains(|letter: char| letter.is_whitespace() || "?#%".contains(letter)) {
        return wrong("the path does not begin with `/`, or contains a space, `?`, `#` or `%`");
    }
    let (program, options) = program.split_once(' ').unwrap_or((program, ""));
    if program.is_empty() {
        return wrong("missing program");
    }
    let path = path.trim_end_matches('/').to_string();
    Ok(Application { path, program: program.into(), options: options.trim().into() })
}

impl Application {
    fn shown_path(&self) -> &str {
        if self.path.is_empty() { "/" } else { &self.path }
    }

    /// Formats it as the web server parses it.
    fn text(&self) -> String {
        let blank = if self.options.is_empty() { "" } else { " " };
        format!("{}={}{blank}{}", self.shown_path(), self.program, self.options)
    }
}

fn refuse_twice(applications: &[Application]) -> Outcome<()> {
    let mut seen = BTreeSet::new();
    match applications.iter().find(|application| !seen.insert(&application.path)) {
        None => Ok(()),
        Some(again) => Err(Failure::new(format!("conflicting applications for {}", again.shown_path()))
            .remedy("change one of the paths")),
    }
}

/// Returns a warning if an application's path hides one of the folder's.
fn hidden(application: &Application, site: &Path) -> Option<String> {
    let Application { path, program, .. } = application;
    if path.is_empty() {
        return Some(format!("{program} serves all paths, which hides {}", site.display()));
    }
    let is_there = std::fs::symlink_metadata(site.join(path.trim_start_matches('/'))).is_ok();
    is_there.then(|| format!("{program} serves {path}, which hides `{path}` of {}", site.display()))
}

/// A system that must serve.
struct Known {
    system: SystemManifest,
    /// Manifests of its programs.
    programs: Vec<Manifest>,
    /// Manifests of the repository, from which programs can be added.
    catalogue: Catalogue,
}

impl Known {
    fn read(repository: &Repository, path: &Path) -> Outcome<Known> {
        let catalogue = Catalogue::read(repository)?;
        let described = systems::described(repository, &catalogue, path)?;
        let programs = described.programs.into_iter().map(|program| program.manifest).collect();
        Ok(Known { system: described.system, programs, catalogue })
    }

    /// Returns whether an instance forwards this parameter of the root program. Network rules, which name the port too,
    /// do not count.
    fn takes(&self, parameter: &str) -> bool {
        let instances = self.system.instances.iter().filter(|one| !one.provides.iter().any(|path| path == NETWORK));
        let mut settings = instances.flat_map(|instance| &instance.parameters);
        settings.any(|one| matches!(&one.setting, Setting::FromRoot(name) if name == parameter))
    }

    fn refuse_what_does_not_serve(&self, arguments: &RunArguments, shown: &Path) -> Outcome<()> {
        let shown = shown.display();
        let missing = |what: String, parameter: &str| {
            let place = match parameter {
                PARAMETER => "applications",
                PORT => "port",
                LOG => "log",
                _ => "address",
            };
            Err(Failure::new(what).remedy(format!(
                "give its web server the parameter {place} = {{ root = \"{parameter}\" }}, or base it on `web`"
            )))
        };
        if !self.takes(PORT) {
            let what = format!("the system {shown} serves no site: no program takes the port");
            return missing(what, PORT);
        }
        if arguments.listen.is_some() && arguments.machine.is_none() && !self.takes(ADDRESS) {
            return missing(format!("the system {shown} does not support --listen"), ADDRESS);
        }
        if arguments.access_log.is_some() && !self.takes(LOG) {
            return missing(format!("the system {shown} does not support --access-log"), LOG);
        }
        if (arguments.demo || !arguments.app.is_empty()) && !self.takes(PARAMETER) {
            return missing(format!("the system {shown} does not support --app or --demo"), PARAMETER);
        }
        Ok(())
    }

    /// Returns a system with the programs of these applications: this one, or one based on it.
    fn with_programs(&self, repository: &Repository, path: PathBuf, own: &[Application]) -> Outcome<PathBuf> {
        let mut missing = BTreeSet::new();
        for application in own {
            let name = application.program.as_str();
            match self.programs.iter().find(|manifest| manifest.name == name) {
                Some(manifest) => check_program(manifest, application)?,
                None => {
                    check_program(self.catalogue.manifest(name)?, application)?;
                    missing.insert(name);
                }
            }
        }
        if missing.is_empty() {
            return Ok(path);
        }
        let names: Vec<String> = missing.iter().map(|name| format!("\"{name}\"")).collect();
        let name = repository.system_outputs(&path);
        let base = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        if name != base {
            return Err(Failure::new(format!("the system {} lacks {}", path.display(), names.join(" and ")))
                .remedy(format!("set `installed` in its manifest to [{}]", names.join(", "))));
        }
        let text = format!(
            "# What `--app` adds to `{base}`.\n\n[system]\nname = \"{base}-with-applications\"\nbase = \"{base}\"\ninstalled = [{}]\n",
            names.join(", ")
        );
        let programs: Vec<&str> = missing.into_iter().collect();
        let derived = repository.output(&format!("web/{base}-with-{}.toml", programs.join("-")));
        write_if_changed(&derived, text.as_bytes())?;
        Ok(derived)
    }
}

/// Refuses a program that cannot be a web application.
fn check_program(manifest: &Manifest, application: &Application) -> Outcome<()> {
    let name = &manifest.name;
    let speaks = manifest.endpoints.first().is_some_and(|slot| {
        let contract = manifest.contracts.get(usize::from(slot.contract));
        contract.is_some_and(|contract| contract.name == CONTRACT)
            && slot.side == Side::Exporter
            && matches!(slot.source, Source::Parent)
    });
    if !speaks {
        return Err(Failure::new(format!(
            "`{name}` is not a web application: the first endpoint of its manifest does not export \
             {CONTRACT} to its parent"
        ))
        .remedy("see docs/web-applications.md; `cargo sing new webapp NAME` creates one"));
    }
    if !application.options.is_empty() && manifest.parameters.is_empty() {
        return Err(Failure::new(format!("`{name}` takes no options: `{}`", application.options)).remedy("remove them"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse(text).expect_err("it is none").to_string()
    }

    #[test]
    fn an_application_is_a_path_and_a_program() {
        let application = parse("/shop/=my-shop  currency=EUR ").expect("one");
        assert_eq!(application.text(), "/shop=my-shop currency=EUR");
        assert_eq!(parse("/=all").expect("one").text(), "/=all");
        assert!(refused("/shop").starts_with("--app /shop: missing `=`; use /PATH=PROGRAM"));
        for bad in ["shop=my-shop", "/a b=x", "/a?b=x", "/a%20=x", "=x", "/a="] {
            assert!(refused(bad).contains("; use /PATH=PROGRAM"), "{bad}");
        }
    }

    fn arguments(words: &[&str]) -> RunArguments {
        use clap::Parser;
        let words = [&["sing", "run", "--web", "x"], words].concat();
        let line = crate::command_line::CommandLine::try_parse_from(words).expect("a good command line");
        let crate::command_line::Command::Run(arguments) = line.command else { panic!("it is `run`") };
        arguments
    }

    fn paths(words: &[&str], place: Option<IpAddr>) -> Vec<String> {
        let arguments = arguments(words);
        let own: Vec<Application> = arguments.app.iter().map(|text| parse(text).expect("one")).collect();
        all(&own, &arguments, place).iter().map(Application::text).collect()
    }

    #[test]
    fn nothing_but_the_status_answers_unless_it_is_asked_for() {
        let local = Some("127.0.0.1".parse().expect("an address"));
        assert_eq!(paths(&[], local), [STATUS, METRICS]);
        assert_eq!(paths(&[], Some("0.0.0.0".parse().expect("an address"))), [HEALTH], "strangers see no processes");
        assert_eq!(paths(&[], None), [HEALTH]);
        assert_eq!(paths(&["--demo"], local), [DEMO[0], DEMO[1], STATUS, METRICS]);
        assert_eq!(paths(&["--app", "/status=mine", "--app", "/=all"], local), ["/status=mine", "/=all", METRICS]);
    }

    #[test]
    fn two_for_one_path_are_refused() {
        let two = [parse("/hello=mine").expect("one"), parse(DEMO[0]).expect("one")];
        let refused = refuse_twice(&two).expect_err("two").to_string();
        assert_eq!(refused, "conflicting applications for /hello; change one of the paths.");
    }

    #[test]
    fn a_name_of_the_folder_that_cannot_be_seen_is_said() {
        let site = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(site.path().join("status")).expect("a folder");
        let status = parse(STATUS).expect("one");
        let said = hidden(&status, site.path()).expect("it is hidden");
        assert!(said.starts_with("web-status serves /status, which hides `/status` of "), "{said}");
        assert_eq!(hidden(&parse("/other=web-hello").expect("one"), site.path()), None);
    }

    #[test]
    fn a_program_must_be_there_and_be_a_web_application() {
        let repository = Repository::find().expect("tests run inside the repository");
        let path = repository.system_manifest(Path::new("web")).expect("there is one");
        let known = Known::read(&repository, &path).expect("a system");
        let with = |text: &str| known.with_programs(&repository, path.clone(), &[parse(text).expect("one")]);
        assert_eq!(with("/a=web-hello").expect("it is there"), path);
        assert!(with("/a=web-helo").expect_err("there is none").to_string().contains("web-helo"));
        let refused = with("/a=cat").expect_err("it is no application").to_string();
        assert!(refused.starts_with("`cat` is not a web application: the first endpoint"), "{refused}");
        let derived = with("/a=web-fault").expect("it is installed");
        let system = known.catalogue.system(&repository, &derived).expect("a system");
        assert!(system.programs().contains(&"web-fault"), "{:?}", system.programs());
    }

    #[test]
    fn a_system_that_does_not_serve_is_refused() {
        let repository = Repository::find().expect("tests run inside the repository");
        let path = repository.system_manifest(Path::new("hosted")).expect("there is one");
        let known = Known::read(&repository, &path).expect("a system");
        let arguments = arguments(&[]);
        let refused =
            known.refuse_what_does_not_serve(&arguments, Path::new("mine")).expect_err("no server").to_string();
        assert!(refused.starts_with("the system mine serves no site: no program takes the port"), "{refused}");
        let path = repository.system_manifest(Path::new("web-faults")).expect("there is one");
        let known = Known::read(&repository, &path).expect("a system");
        known.refuse_what_does_not_serve(&arguments, Path::new("mine")).expect("it takes the port");
        let refused = known.refuse_what_does_not_serve(&self::arguments(&["--demo"]), Path::new("mine"));
        assert!(refused.expect_err("its own").to_string().contains("does not support --app or --demo"));
        let refused = known.refuse_what_does_not_serve(&self::arguments(&["--listen", "::"]), Path::new("mine"));
        assert!(refused.expect_err("its own").to_string().contains("does not support --listen"));
    }
}

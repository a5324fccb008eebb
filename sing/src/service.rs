//! `sing run` without a terminal: the system runs as a service of the host.
//!
//! It runs until it is told to stop, so it has no shell; its log lines carry timestamps, and the supervisor of this
//! process is notified when it is ready. Neighbours: `run`, which starts it; `bare::guest`, which runs one in QEMU.
//! Deliberately not here: the format of log lines, which is crate `host-service`'s.

use std::io::{Read, Write, stdin};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use host_service::log::{self, Format};
use host_service::notify::{self, Reloads, State};
use manifest_model::{Category, Manifest};
use package::Package;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat, major, minor};

use crate::command_line::{LogForm, RunArguments};
use crate::failure::{Failure, Outcome};
use crate::site::Site;

/// The root program's parameter that leaves the shell out.
const WITHOUT_PRIMARY: &str = "without-primary=true";
const CONSOLE: &str = "Console";
/// Polling interval for the site, and timeout for one response.
const LOOK: Duration = Duration::from_millis(100);
const ANSWER: Duration = Duration::from_secs(5);

/// Whether the system in QEMU serves.
static SERVES: AtomicBool = AtomicBool::new(false);
static RELOADS: Reloads = Reloads::new();

/// A system that runs as a service.
#[derive(Debug, Clone)]
pub struct Service {
    /// Log format.
    pub log: Format,
    /// Announcement when it serves.
    pub announcement: String,
    /// Parameter for the root program, if its primary program is to be left out.
    pub parameter: Option<&'static str>,
    /// Address of its web server as seen from this host, if it has one.
    pub place: Option<SocketAddr>,
}

/// Notifies the supervisor of this process, if there is one.
pub fn tell(state: State) {
    if let Err(error) = notify::tell(state) {
        eprintln!("sing: cannot notify the supervisor at NOTIFY_SOCKET of {state:?}: {error}");
    }
}

/// Notifies the supervisor of a reload, once the system in QEMU serves; the system notices changed files and the name
/// of its log by itself.
pub fn reload() {
    if !SERVES.load(Ordering::SeqCst) || !RELOADS.request() {
        return;
    }
    thread::spawn(|| {
        loop {
            if let Err(error) = notify::reload() {
                eprintln!("sing: cannot notify the supervisor at NOTIFY_SOCKET of a reload: {error}");
            }
            if !RELOADS.finish() {
                return;
            }
        }
    });
}

impl Service {
    /// Announces and notifies the supervisor as soon as a machine in QEMU serves. QEMU accepts connections from the
    /// start, so only a response shows that all services run.
    pub fn announce_when_it_serves(&self) {
        let service = self.clone();
        thread::spawn(move || {
            while service.place.is_some_and(|place| !is_well(place)) {
                thread::sleep(LOOK);
            }
            let process = std::process::id();
            let line = format!("sing: {}; SIGTERM or Ctrl-C shuts it down (process {process})\n", service.announcement);
            eprint!("{}", log::stamp(line.as_bytes(), service.log, log::unix_ms()));
            SERVES.store(true, Ordering::SeqCst);
            tell(State::Ready);
        });
    }

    /// Returns the arguments that configure the hosted machine.
    pub fn machine_words(&self) -> Vec<String> {
        let mut words = vec!["--service".into(), self.announcement.clone()];
        words.extend((self.log == Format::Json).then(|| "--json-log".into()));
        words.extend(self.parameter.into_iter().flat_map(|parameter| ["--parameter".into(), parameter.into()]));
        words
    }
}

/// Returns the service that a run of this system image is, if it is one.
///
/// # Errors
/// The image cannot be read, or the arguments do not fit.
pub fn of(arguments: &RunArguments, image: &Path, site: Option<&Site>) -> Outcome<Option<Service>> {
    let nobody_types = arguments.commands.is_none() && !has_input();
    if !arguments.service && !nobody_types {
        return refuse_log(arguments).map(|()| None);
    }
    let bytes = std::fs::read(image).map_err(|error| Failure::file("read", image, &error))?;
    let primary = Primary::of(&bytes);
    let serves = site.is_some() || primary == Primary::Server;
    if !arguments.service && !serves {
        return refuse_log(arguments).map(|()| None);
    }
    let parameter = (primary == Primary::Shell).then_some(WITHOUT_PRIMARY);
    let announcement = site.map_or_else(|| "the system serves".into(), |site| site.announcement.clone());
    Ok(Some(Service {
        log: arguments.log.map_or(Format::Text, format),
        announcement,
        parameter,
        place: site.and_then(Site::reached_at),
    }))
}

/// Returns whether the site's status page reports the system as healthy.
fn is_well(place: SocketAddr) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&place, ANSWER)?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.write_all(b"GET /status/health HTTP/1.0\r\n\r\n")?;
        let mut head = [0; 12];
        stream.read_exact(&mut head)?;
        // A user's own system may have no status page.
        Ok(head.ends_with(b" 200") || head.ends_with(b" 404"))
    };
    ask().unwrap_or(false)
}

fn refuse_log(arguments: &RunArguments) -> Outcome<()> {
    match arguments.log {
        None => Ok(()),
        Some(_) => Err(Failure::new("--log is for a system that runs as a service").remedy("add --service")),
    }
}

fn format(form: LogForm) -> Format {
    match form {
        LogForm::Text => Format::Text,
        LogForm::Json => Format::Json,
    }
}

/// Conditions that end a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Primary {
    /// A program that reads from the console.
    Shell,
    /// A program that serves.
    Server,
    /// A program that does its work and exits.
    Job,
}

impl Primary {
    fn of(image: &[u8]) -> Primary {
        let Ok(system) = package_check::verify_system(image) else { return Primary::Job };
        let instance =
            system.manifest.instances.iter().find(|instance| Some(&instance.name) == system.manifest.primary.as_ref());
        // Without a primary instance the system ends with its root program.
        let program = instance.map_or(&system.manifest.root, |instance| &instance.program);
        let packages = system.packages.iter().filter_map(|bytes| Package::parse(bytes).ok());
        packages.map(|package| package.manifest).find(|manifest| manifest.name == *program).map_or(Primary::Job, kind)
    }
}

fn kind(manifest: Manifest) -> Primary {
    let contract = |index: u16| manifest.contracts.get(usize::from(index)).map(|contract| contract.name.as_str());
    if manifest.endpoints.iter().any(|slot| contract(slot.contract) == Some(CONSOLE)) {
        Primary::Shell
    } else if matches!(manifest.category, Category::Service | Category::Driver) {
        Primary::Server
    } else {
        Primary::Job
    }
}

/// Returns whether standard input can deliver anything: it is neither `/dev/null`, which also stands for a closed one,
/// nor a pipe or socket at end of file.
fn has_input() -> bool {
    let input = stdin();
    let Ok(status) = fstat(&input) else { return false };
    match FileType::from_raw_mode(status.st_mode) {
        FileType::CharacterDevice => (major(status.st_rdev), minor(status.st_rdev)) != (1, 3),
        FileType::Fifo | FileType::Socket => {
            let mut polled = [PollFd::new(&input, PollFlags::IN)];
            let is_polled = poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok();
            let found = polled[0].revents();
            !(is_polled && found.contains(PollFlags::HUP) && !found.contains(PollFlags::IN))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use manifest_model::{Category, Code};

    use super::*;

    #[test]
    fn a_job_is_no_service() {
        let program =
            |category| kind(Manifest::plain("mine", "singularity", category, Code::Script { text: "".into() }));
        assert_eq!(program(Category::Service), Primary::Server);
        assert_eq!(program(Category::Test), Primary::Job);
        assert_eq!(program(Category::Console), Primary::Job, "it reads from no console");
        assert_eq!(Primary::of(b"no image"), Primary::Job);
    }
}

//! `sing bench web`: requests per second of the web server, beside nginx with the same files and client in the same
//! run.
//!
//! Both servers run throughout on one host processor; the client on another processor loads them in short alternating
//! turns, so that the host's other load affects both. The metric is requests per second of processor time used. On a
//! bare machine Linux runs in the same QEMU, and processor time is QEMU's. With `--recorded`, a third server is this
//! system's again, with a recording. Deliberately not here: requests (`files`).

mod client;
mod files;
mod functions;
mod guest;
mod here;
mod namespace;
mod nginx;
pub mod processes;
mod report;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use crate::bench::linux_program;
use crate::command_line::BenchArguments;
use sing::command_line::MachineName;
use sing::failure::{Failure, Outcome};
use sing::repository::{Repository, write_whole};
use sing::site::GUEST_PORT;
use sing::spelling;
use sing::tap;

use clap::ValueEnum as _;

use client::Seen;
use files::Mix;
use guest::Guest;
use here::Here;
use nginx::Nginx;

/// Duration of a turn: one side, one mix.
const SECONDS: u32 = 3;
/// Warm-up before the first turn of a mix.
const WARM_UP_SECONDS: u32 = 1;
const SERVERS_PROCESSOR: &str = "0";
const CLIENTS_PROCESSOR: &str = "1";

/// Result of one turn.
#[derive(Debug, Clone)]
pub struct Turn {
    /// The client's figures.
    pub seen: Seen,
    /// Processor time of the servers, in seconds per second.
    pub processors: f64,
    /// The same by part.
    pub parts: Vec<Part>,
}

/// A process or program of a side and its processor time, in a unit common to that side.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Display name.
    pub name: String,
    /// Processor time used so far.
    pub used: f64,
}

impl Turn {
    /// Requests per second of processor time.
    pub fn for_each_processor(&self) -> f64 {
        self.seen.requests_per_s / self.processors.max(0.01)
    }
}

/// The turns of both sides with one mix.
pub struct Measured {
    /// The mix of requests.
    pub mix: Mix,
    /// This system's.
    pub here: Vec<Turn>,
    /// nginx's.
    pub linux: Vec<Turn>,
    /// This system's with a recording; empty without `--recorded`.
    pub recorded: Vec<Turn>,
    /// This system's processor time by function, from an extra turn; empty without `--functions`.
    pub functions: Vec<Part>,
}

/// `sing bench web`. Returns 1 if something could not be measured; a missed target is shown, but is not a failure.
///
/// # Errors
/// The files cannot be written, or a server or the client cannot be run.
pub fn bench(repository: &Repository, arguments: &BenchArguments) -> Outcome<u8> {
    if !client::is_here() {
        return Err(Failure::new("wrk is not installed").remedy("`apt-get install wrk`"));
    }
    if arguments.functions && arguments.machine != MachineName::Hosted {
        return Err(Failure::new("--functions requires the hosted machine"));
    }
    if arguments.recorded && (arguments.machine != MachineName::Hosted || arguments.tap.is_some()) {
        return Err(Failure::new("--recorded requires the hosted machine, without --tap"));
    }
    if arguments.tap.is_some() {
        if arguments.machine != MachineName::Hosted {
            return Err(Failure::new("--tap requires the hosted machine").remedy("remove --machine"));
        }
        if let Some(status) = namespace::enter(repository, arguments.system.as_deref())? {
            return Ok(status);
        }
    }
    let folder = repository.output("bench/web");
    let served = folder.join("files");
    files::write(&served)?;
    let sides = Sides { repository, arguments, folder: folder.clone(), served };
    let mixes = mixes_named(arguments.only.as_deref().unwrap_or(""))?;
    let mut measured = Vec::new();
    for mix in mixes {
        let script = folder.join(format!("{mix:?}.lua"));
        client::write_script(&script, &files::requests(mix))?;
        measured.push((
            Measured { mix, here: Vec::new(), linux: Vec::new(), recorded: Vec::new(), functions: Vec::new() },
            script,
        ));
    }
    let address = match &arguments.tap {
        Some(_) => SocketAddr::from((tap::MACHINE, GUEST_PORT)),
        None => local(free_port()?),
    };
    let here = (address, sides.here(address, None)?);
    let recorded = match arguments.recorded {
        true => {
            let address = local(free_port()?);
            Some((address, sides.here(address, Some(&folder.join("recorded.rec")))?))
        }
        false => None,
    };
    let port = free_port()?;
    let linux = sides.linux(port)?.map(|server| (local(port), server));
    for (_, script) in &measured {
        for (address, _) in [Some(&here), recorded.as_ref(), linux.as_ref()].into_iter().flatten() {
            client::ask(CLIENTS_PROCESSOR, script, &url(*address), WARM_UP_SECONDS)?;
        }
    }
    for round in 1..=arguments.rounds {
        eprintln!("sing: round {round} of {}", arguments.rounds);
        for (one, script) in &mut measured {
            let mut sides = [
                (Some(&here), &mut one.here),
                (recorded.as_ref(), &mut one.recorded),
                (linux.as_ref(), &mut one.linux),
            ];
            // So that no side always comes after the same other.
            if round.is_multiple_of(2) {
                sides.reverse();
            }
            for (server, turns) in sides {
                turns.extend(server.map(|server| turn(script, server)).transpose()?);
            }
        }
    }
    if arguments.functions {
        for (one, script) in &mut measured {
            let watch = functions::Watch::start(&here.1.processes(), SECONDS, &folder)?;
            client::ask(CLIENTS_PROCESSOR, script, &url(here.0), SECONDS)?;
            one.functions = watch.parts()?;
        }
    }
    let measured: Vec<Measured> = measured.into_iter().map(|(one, _)| one).collect();
    let wanted = if arguments.machine == MachineName::Hosted { report::WANTED_HOSTED } else { report::WANTED_BARE };
    print!("{}", report::table(&measured, wanted));
    if let Some(path) = &arguments.json {
        write_whole(path, report::json_list(&measured).as_bytes())?;
    }
    Ok(u8::from(measured.iter().any(|one| one.here.is_empty())))
}

/// Returns the mixes whose names contain `part`.
///
/// # Errors
/// None matches.
fn mixes_named(part: &str) -> Outcome<Vec<Mix>> {
    let named: Vec<Mix> = Mix::ALL.into_iter().filter(|mix| mix.name().contains(part)).collect();
    if named.is_empty() {
        let names: Vec<&str> = Mix::ALL.iter().map(|mix| mix.name()).collect();
        return Err(Failure::new(format!("no request mix name contains `{part}`")).remedy(spelling::part_meant(
            part,
            names.iter().copied(),
            format!("use a part of one of: {}", names.join(", ")),
        )));
    }
    Ok(named)
}

/// A running server, stopped on drop.
trait Server {
    /// Processor time used so far, in seconds.
    fn processor_seconds(&self) -> f64;

    /// Processor time used so far by part, as far as known.
    fn parts(&self) -> Vec<Part>;

    /// Host processes to profile; empty if a profile would be meaningless.
    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }
}

/// An address and its server.
type Serving = (SocketAddr, Box<dyn Server>);

/// Starts either side on the measured machine.
struct Sides<'a> {
    repository: &'a Repository,
    arguments: &'a BenchArguments,
    folder: PathBuf,
    served: PathBuf,
}

impl Sides<'_> {
    /// This system, recorded to a file if one is given; it is removed in the end.
    fn here(&self, address: SocketAddr, recording: Option<&Path>) -> Outcome<Box<dyn Server>> {
        let machine = self.arguments.machine.to_possible_value().map(|value| value.get_name().to_string());
        let machine = machine.unwrap_or_default();
        let mut options = vec!["--machine".into(), machine.into()];
        if self.arguments.machine != MachineName::Hosted {
            // As for Linux.
            options.extend(["--accel".into(), "tcg".into(), "--mem".into(), guest::MEMORY.into()]);
        }
        if let Some(system) = &self.arguments.system {
            options.extend(["--system".into(), system.clone().into_os_string()]);
        }
        if let Some(tap) = &self.arguments.tap {
            options.extend(["--tap".into(), tap.into()]);
            options.extend(tap::parameters().into_iter().flat_map(|one| ["--parameter".into(), one.into()]));
        }
        if let Some(file) = recording {
            options.extend(["--record".into(), file.into()]);
        }
        let mut started = Here::start(self.repository, &self.served, address, SERVERS_PROCESSOR, &options)?;
        started.remove_at_end(recording);
        Ok(Box::new(started))
    }

    /// `None` if the host has no nginx.
    fn linux(&self, port: u16) -> Outcome<Option<Box<dyn Server>>> {
        if self.arguments.machine == MachineName::Hosted {
            let behind = linux_program(self.repository)?;
            let folder = self.folder.join("nginx");
            let started = Nginx::start(&folder, &self.served, &behind, port, SERVERS_PROCESSOR)?;
            return Ok(started.map(|nginx| Box::new(nginx) as Box<dyn Server>));
        }
        let kernel = self.arguments.linux_kernel.as_deref();
        let started = Guest::start(self.repository, kernel, &self.served, port, SERVERS_PROCESSOR)?;
        Ok(started.map(|guest| Box::new(guest) as Box<dyn Server>))
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}/")
}

fn turn(script: &Path, (address, server): &Serving) -> Outcome<Turn> {
    let (parts, before) = (server.parts(), server.processor_seconds());
    let seen = client::ask(CLIENTS_PROCESSOR, script, &url(*address), SECONDS)?;
    let processors = (server.processor_seconds() - before) / f64::from(SECONDS);
    Ok(Turn { seen, processors, parts: used_since(&parts, server.parts()) })
}

/// Usage by part since an earlier sample; new processes count in full.
fn used_since(before: &[Part], now: Vec<Part>) -> Vec<Part> {
    let earlier = |name: &str| before.iter().find(|part| part.name == name).map_or(0.0, |part| part.used);
    now.into_iter().map(|part| Part { used: (part.used - earlier(&part.name)).max(0.0), ..part }).collect()
}

/// Returns a free port.
fn free_port() -> Outcome<u16> {
    let address = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|error| Failure::new(format!("no free port on this host: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_mix_has_measures_nothing() {
        let refused = mixes_named("flies").expect_err("there is none").to_string();
        assert_eq!(refused, "no request mix name contains `flies`; did you mean `files`?");
        let refused = mixes_named("x-y").expect_err("there is none").to_string();
        assert!(refused.contains("`x-y`") && refused.contains("files of SPECweb99"), "{refused}");
        assert!(mixes_named("files of").is_ok_and(|named| named.contains(&Mix::Static)));
        assert!(mixes_named("").is_ok_and(|named| named == Mix::ALL));
    }

    #[test]
    fn what_was_used_before_does_not_count() {
        let part = |name: &str, used: f64| Part { name: name.into(), used };
        let used = used_since(&[part("a", 1.0), part("gone", 9.0)], vec![part("a", 3.0), part("new", 2.0)]);
        assert_eq!(used, [part("a", 2.0), part("new", 2.0)]);
    }
}

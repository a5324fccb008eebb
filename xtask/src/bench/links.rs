//! `sing bench links`: time to transfer 3 MiB over impaired links, from the web server over the system's TCP and from
//! nginx over Linux's, in the same run; and time to the first byte for a client beside many slow readers.
//!
//! Each side has its own link between two temporary network namespaces, emulated by `wire.py` of the tests, as not
//! every kernel has `tc netem`. The sides alternate, so that the host's other load affects both. Deliberately not here:
//! the namespaces and the servers (`network`).

mod network;

use std::path::Path;

use serde_json::json;

use crate::command_line::BenchArguments;
use sing::builder::UnsafeTests;
use sing::failure::{Failure, Outcome};
use sing::host_tools;
use sing::repository::{Repository, write_whole};
use sing::systems::{self, Platform};

use network::Network;

/// Impairments and their display names.
const LINKS: [(&str, &str); 5] = [
    ("nothing", ""),
    ("5 % lost", "loss=0.05"),
    ("50 ms each way", "delay=50"),
    ("a quarter 1 to 5 ms late", "reorder=0.25"),
    ("all of that", "loss=0.05 delay=50 reorder=0.25"),
];
/// Path of the fetched file.
const FILE_BYTES: usize = 3 << 20;
/// Fetches per round. One whose SYN is lost takes a second longer and is not representative.
const FETCHES: usize = 5;
/// Name of the row with slow readers, their number, and the number of other clients per round.
const SLOW_READERS: &str = "first byte, 500 readers";
const READERS: usize = 500;
const CLIENTS: usize = 21;
/// Target: maximum ratio to Linux's time.
const WANTED: f64 = 2.0;
const SYSTEM: &str = "web-tap";
const NEEDED: [(&str, &str); 4] =
    [("ip", "iproute2"), ("python3", "python3"), ("curl", "curl"), ("nginx", "nginx-light")];

/// Times of fetches over one link, in seconds.
struct Measured {
    name: &'static str,
    here: Vec<f64>,
    linux: Vec<f64>,
}

/// `sing bench links`. A missed target is shown, but is not a failure.
///
/// # Errors
/// A tool is missing, this user may not create namespaces, a server does not respond, or a file arrives damaged.
pub fn bench(repository: &Repository, arguments: &BenchArguments) -> Outcome<u8> {
    for (program, package) in NEEDED {
        if host_tools::find(program).is_none() {
            return Err(
                Failure::new(format!("this host has no {program}")).remedy(format!("`apt-get install {package}`"))
            );
        }
    }
    // Built in advance: inside the namespaces a build could not download anything.
    let manifest = repository.system_manifest(arguments.system.as_deref().unwrap_or(SYSTEM.as_ref()))?;
    systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?;
    let folder = repository.output("bench/links");
    let served = folder.join("files");
    std::fs::create_dir_all(&served).map_err(|error| Failure::file("make the folder", &served, &error))?;
    let content = content();
    write_whole(&served.join("file"), &content)?;
    let only = arguments.only.as_deref().unwrap_or("");
    let links = links_named(only)?;
    let has_readers = SLOW_READERS.contains(only);
    let mut here = Network::new("here", &folder)?;
    here.serve_here(&served, arguments.system.as_deref())?;
    let mut linux = Network::new("linux", &folder)?;
    linux.serve_linux(&served)?;
    let empty = |name| Measured { name, here: Vec::new(), linux: Vec::new() };
    let mut measured: Vec<Measured> = links.iter().map(|(name, _)| empty(*name)).collect();
    let mut readers = empty(SLOW_READERS);
    for round in 1..=arguments.rounds {
        eprintln!("sing: round {round} of {}", arguments.rounds);
        for ((_, damage), one) in links.iter().zip(&mut measured) {
            for _ in 0..FETCHES {
                one.here.push(here.fetch(damage, &content)?);
                one.linux.push(linux.fetch(damage, &content)?);
            }
        }
        if has_readers {
            readers.here.extend(here.first_bytes(READERS, CLIENTS)?);
            readers.linux.extend(linux.first_bytes(READERS, CLIENTS)?);
        }
    }
    measured.extend(has_readers.then_some(readers));
    print!("{}", table(&measured));
    if let Some(path) = &arguments.json {
        write_whole(Path::new(path), json_list(&measured).as_bytes())?;
    }
    Ok(0)
}

/// Pseudo-random bytes, so that no two stretches are alike.
fn content() -> Vec<u8> {
    (0..FILE_BYTES as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Returns the links whose names contain `part`.
fn links_named(part: &str) -> Outcome<Vec<(&'static str, &'static str)>> {
    let named: Vec<_> = LINKS.into_iter().filter(|(name, _)| name.contains(part)).collect();
    if named.is_empty() && !SLOW_READERS.contains(part) {
        let names: Vec<&str> = LINKS.iter().map(|(name, _)| *name).chain([SLOW_READERS]).collect();
        return Err(Failure::new(format!("no link name contains `{part}`"))
            .remedy(format!("use a part of one of: {}", names.join(", "))));
    }
    Ok(named)
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn table(measured: &[Measured]) -> String {
    let mut text = format!("{:<26} {:>9} {:>9} {:>12}\n", "3 MiB, the link does", "here s", "Linux s", "here / Linux");
    for one in measured {
        let (here, linux) = (median(&one.here), median(&one.linux));
        let missed = if here > WANTED * linux { " missed" } else { "" };
        let name = one.name;
        text.push_str(&format!("{name:<26} {here:>9.4} {linux:>9.4} {:>12.2}{missed}\n", here / linux));
    }
    text.push_str(&format!("wanted: at most {WANTED} times Linux's time; medians\n"));
    text
}

fn json_list(measured: &[Measured]) -> String {
    let rows: Vec<_> = measured
        .iter()
        .map(|one| json!({ "link": one.name, "here_s": median(&one.here), "linux_s": median(&one.linux) }))
        .collect();
    format!("{}\n", serde_json::Value::from(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_told() {
        let one = |name, here| Measured { name, here: vec![9.0, here, 0.1], linux: vec![1.0, 1.0, 1.0] };
        let text = table(&[one("good", 1.9), one("bad", 2.1)]);
        let missed: Vec<&str> = text.lines().filter(|line| line.ends_with("missed")).collect();
        assert!(missed.len() == 1 && missed[0].starts_with("bad"), "{text}");
    }

    #[test]
    fn links_are_chosen_by_a_part_of_their_names() {
        assert_eq!(links_named("").expect("all").len(), LINKS.len());
        assert_eq!(links_named("lost").expect("one").len(), 1);
        assert_eq!(links_named("readers").expect("none, but a row").len(), 0);
        assert!(links_named("snow").is_err_and(|error| error.to_string().contains("snow")));
    }
}

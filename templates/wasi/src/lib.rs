//! Template of WASI programs: preview 1 over this system's contracts.
//!
//! `calls` has the table of calls and performs them; `guest` checks what a program says of its memory; `walk` resolves
//! paths within a `folder` that the program was given, and `descriptors` has what is open. A program reaches the folders
//! it was given, its standard streams, clocks and random bytes, and nothing else. Deliberately not here: the runtime of
//! modules, which is `sip-wasm`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod abi;
mod calls;
mod descriptors;
mod errors;
mod file;
mod folder;
mod given;
mod guest;
mod held;
mod host;
mod listing;
mod socket;
mod streams;
mod walk;

use alloc::string::String;
use alloc::vec::Vec;

use client::namespace::Namespace;
use sip_wasm::{Instance, Module};
use stdio::{Input, Output};

use crate::abi::rights;
use crate::descriptors::{Descriptor, Descriptors, Object};
use crate::folder::Folder;
use crate::held::Held;
use crate::host::Wasi;
use crate::streams::Streams;

pub use calls::IMPORTS;

sip::startup!("manifest.toml");

/// Exit status of a program that cannot be started as asked.
const STATUS_MISTAKE: i32 = 2;

/// Number of the standard streams, which are the first descriptors.
const STREAMS: usize = 3;

/// Runs the module.
pub fn main(startup: Startup, module: Module) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let given = match given_folders(&startup.dir, &startup.working_folder, startup.no_working_folder) {
        Ok(given) => given,
        Err(mistake) => {
            stdio::report::error(format_args!("{mistake}"));
            return STATUS_MISTAKE;
        }
    };
    let mut descriptors = Descriptors::default();
    let streams: [_; STREAMS] =
        [(Object::Input, rights::OF_INPUT), (Object::Output, rights::OF_OUTPUT), (Object::Error, rights::OF_OUTPUT)];
    for (object, base) in streams {
        // There is room for them.
        let _ = descriptors.add(Descriptor::stream(object, base));
    }
    let mut folders = Vec::new();
    let mut known: Vec<(String, Folder)> = Vec::new();
    for (place, path) in given {
        let folder = match known.iter().find(|(other, _)| *other == place) {
            Some((_, folder)) => folder.clone(),
            None => match Folder::preopen(&mut namespace, &place) {
                Ok(folder) => folder,
                Err(error) => return stdio::report::path_error(&place, &error),
            },
        };
        folders.push(Descriptor::preopened(folder.clone(), path));
        known.push((place, folder));
    }
    let sockets = match given::sockets(&mut namespace, &startup.tcp_listen, &startup.tcp_connect) {
        Ok(sockets) => sockets,
        Err(mistake) => {
            stdio::report::error(format_args!("{mistake}"));
            return STATUS_MISTAKE;
        }
    };
    let first_socket = STREAMS + folders.len();
    for descriptor in folders.into_iter().chain(sockets) {
        if descriptors.add(descriptor).is_err() {
            stdio::report::error(format_args!("too many folders and sockets; leave some --dir out"));
            return STATUS_MISTAKE;
        }
    }
    let mut arguments = Vec::from([own_name()]);
    arguments.extend(startup.argv);
    let mut environment = environment(startup.env, &startup.working_folder, startup.no_working_folder);
    environment.extend(given::variables(first_socket, startup.tcp_listen.len(), startup.tcp_connect.len()));
    let mut host = Wasi {
        namespace,
        descriptors,
        held: Held::default(),
        streams: Streams::new(startup.input.map(Input::new), startup.output.map(Output::new)),
        arguments,
        environment,
        random: None,
        started_ns: sip::time::monotonic(),
    };
    run(module, &mut host)
}

fn run(module: Module, host: &mut Wasi) -> i32 {
    let mut instance = match Instance::new(module) {
        Ok(instance) => instance,
        Err(error) => sip::process::fail(format_args!("{error}")),
    };
    instance.start(host);
    match instance.call("_start", &[], host) {
        Ok(_) => host.finish(0),
        Err(error) => sip::process::fail(format_args!("{error}; a WASI command exports `_start`")),
    }
}

/// Name of the program: the last link of its principal, without the publisher.
fn own_name() -> String {
    let principal = sip::principal::own();
    // A joint ends with a space, and names have none.
    let last = principal.rsplit(' ').next().unwrap_or("");
    last.split('.').next().unwrap_or("").into()
}

/// The folders that the program is given: of each the place in the namespace and the path under which it sees it.
fn given_folders(asked: &[String], working_folder: &str, is_without: bool) -> Result<Vec<(String, String)>, String> {
    let mut given = Vec::new();
    if !is_without && !working_folder.is_empty() {
        // Relative paths are looked up under `.`; in the root they are the same as absolute ones.
        if path::parts(working_folder).next().is_some() {
            given.push((working_folder.into(), String::from(".")));
        }
        given.push((working_folder.into(), working_folder.into()));
    }
    let base = if working_folder.is_empty() { "/" } else { working_folder };
    for one in asked {
        let (place, seen) = one.split_once("::").unwrap_or((one, one));
        if place.is_empty() || seen.is_empty() {
            return Err(alloc::format!("--dir {one}: write the path of a folder, or PATH::OTHER"));
        }
        given.push((path::absolute(base, place), seen.into()));
    }
    Ok(given)
}

/// The variables that the program is given, and `PWD`: the runtime of Go has relative paths from there.
fn environment(asked: Vec<String>, working_folder: &str, is_without: bool) -> Vec<String> {
    let mut variables = asked;
    let has_one = variables.iter().any(|variable| variable.starts_with("PWD="));
    if !is_without && !working_folder.is_empty() && !has_one {
        variables.push(alloc::format!("PWD={working_folder}"));
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(asked: &[&str], working_folder: &str) -> Vec<(String, String)> {
        let asked: Vec<String> = asked.iter().map(|text| String::from(*text)).collect();
        given_folders(&asked, working_folder, false).expect("folders")
    }

    #[test]
    fn the_working_folder_is_seen_as_itself_and_by_relative_paths() {
        let pair = |place: &str, seen: &str| (String::from(place), String::from(seen));
        assert_eq!(given(&[], "/fs/disk0"), [pair("/fs/disk0", "."), pair("/fs/disk0", "/fs/disk0")]);
        assert_eq!(given(&[], "/"), [pair("/", "/")]);
        assert_eq!(given(&[], ""), []);
        assert_eq!(given(&["/fs/disk0/x"], ""), [pair("/fs/disk0/x", "/fs/disk0/x")]);
        assert_eq!(given(&["x::/"], "/fs")[2..], [pair("/fs/x", "/")]);
        assert!(given_folders(&[String::from("::/")], "", false).is_err());
        assert_eq!(given_folders(&[], "/fs", true), Ok(Vec::new()));
    }

    #[test]
    fn programs_find_the_working_folder_in_their_environment() {
        let variables = |asked: &[&str], folder: &str, is_without: bool| {
            environment(asked.iter().map(|text| String::from(*text)).collect(), folder, is_without)
        };
        assert_eq!(variables(&["A=b"], "/fs/disk0", false), ["A=b", "PWD=/fs/disk0"]);
        assert_eq!(variables(&["PWD=/"], "/fs/disk0", false), ["PWD=/"]);
        assert!(variables(&[], "/fs/disk0", true).is_empty());
        assert!(variables(&[], "", false).is_empty());
    }
}

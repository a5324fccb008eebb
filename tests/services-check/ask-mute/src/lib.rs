//! Test SIP: sends one request of each kind to a folder and a file whose server does not reply, all concurrently, and
//! prints the result of each with its duration in seconds.
//!
//! Deliberately not here: disks and interfaces, which have programs of their own.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::CreateMode;
use sip::exheap::ExVec;
use sip::thread;
use stdio::{Output, report};

sip::startup!();

const FOLDER: &str = "/check/mute-folder";
const FILE: &str = "/check/mute-file";
const NS_PER_S: u64 = 1_000_000_000;

/// A request, which returns its result.
type Request = (&'static str, fn(&mut Namespace) -> Result<(), AccessError>);

const REQUESTS: [Request; 10] = [
    ("list", |root| root.names(FOLDER).map(drop)),
    ("attributes", |root| root.open_directory(FOLDER)?.own_attributes("name").map(drop)),
    ("create", |root| root.open_directory(FOLDER)?.create_own_file("name", 0o644, CreateMode::New).map(drop)),
    ("bind", |root| root.open_directory(FOLDER)?.open_file("name").map(drop)),
    ("make folder", |root| root.open_directory(FOLDER)?.make_directory("name")),
    ("read link", |root| root.open_directory(FOLDER)?.read_link("name").map(drop)),
    ("read", |root| root.open_file(FILE)?.read_at(ExVec::new(512)?, 0).map(drop)),
    ("write", |root| root.open_file(FILE)?.write_at(ExVec::new(512)?, 0, 512).map(drop)),
    ("append", |root| root.open_file(FILE)?.append(ExVec::new(512)?, 512).map(drop)),
    ("ask again", |root| {
        let mut file = root.open_file(FILE)?;
        let _first = file.attributes();
        file.attributes().map(drop)
    }),
];

/// Prints a line for each request. Afterwards the root folder must still reply.
pub fn main(startup: Startup) -> i32 {
    let mut root = Namespace::new(startup.namespace);
    let mut output = Output::new(startup.output);
    let text = match ask_all(&mut root) {
        Ok(text) => text,
        Err(error) => return report::path_error(FOLDER, &error),
    };
    if let Err(error) = root.names("/check") {
        return report::path_error("/check", &error);
    }
    output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
}

fn ask_all(root: &mut Namespace) -> Result<String, AccessError> {
    let mut asked = Vec::new();
    for (name, request) in REQUESTS {
        let mut own = root.open_directory("/")?;
        let thread = thread::spawn(move || {
            let begun_ns = sip::time::monotonic();
            let outcome = request(&mut own);
            (outcome, (sip::time::monotonic() - begun_ns) / NS_PER_S)
        })?;
        asked.push((name, thread));
    }
    let mut text = String::new();
    for (name, thread) in asked {
        let (outcome, seconds) = thread.join()?;
        let outcome = outcome.map_or_else(|error| format!("{error}"), |()| String::from("it was answered"));
        text.push_str(&format!("{name} after {seconds} s: {outcome}\n"));
    }
    Ok(text)
}

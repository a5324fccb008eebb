//! Makes a line of `login`'s user list: `people alice admin >> /fs/disk0/etc/people`.
//!
//! The passphrase is read twice from the console without echo; the line goes to standard output. Deliberately not
//! here: storage of the lines.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::access::AccessError;
use client::answer::{REQUEST_LIMIT, wait};
use client::namespace::Namespace;
use client::random::{RandomError, Source};
use contracts::console::{self, LineKind};
use contracts::directory::NameError;
use people_list::{Cost, Person, SALT_BYTES};
use sip::exheap::ExVec;
use stdio::{Output, report};

sip::startup!();

/// Path of the console.
const CONSOLE: &str = "/dev/console";

type Console = console::Imp<console::states::Ready>;

/// Prompts for the passphrase and prints the line.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let person = match make(&mut namespace, &startup.name, startup.roles) {
        Ok(person) => person,
        Err(reason) => {
            report::error(format_args!("{reason}"));
            return 1;
        }
    };
    let mut output = Output::new(startup.output);
    output.write(format!("{person}\n").as_bytes()).map_or(1, |()| output.finish_with(0))
}

fn make(namespace: &mut Namespace, name: &str, roles: Vec<String>) -> Result<Person, String> {
    for word in core::iter::once(name).chain(roles.iter().map(String::as_str)) {
        if !people_list::is_name(word) {
            return Err(format!("{word}: {}", people_list::LineError::Name));
        }
    }
    let salt = salt(namespace);
    let console = open(namespace).map_err(|error| format!("{CONSOLE}: {error}"))?;
    let (first, console) = read(console, "Passphrase: ")?;
    let (second, _console) = read(console, "Once more: ")?;
    if first != second {
        return Err(String::from("the passphrases differ; nothing was printed"));
    }
    Person::new(name, roles, &first, salt, Cost::USUAL).map_err(|error| error.to_string())
}

/// Returns a salt. It must be unique, not secret: on a machine without a source of random bytes the time suffices.
fn salt(namespace: &mut Namespace) -> [u8; SALT_BYTES] {
    random_salt(namespace).unwrap_or_else(|_| {
        let moment = sip::time::wall().to_le_bytes();
        let since = (sip::time::monotonic() ^ sip::process::id() << 48).to_le_bytes();
        let mut salt = [0; SALT_BYTES];
        for (place, byte) in salt.iter_mut().zip(moment.into_iter().chain(since)) {
            *place = byte;
        }
        salt
    })
}

fn random_salt(namespace: &mut Namespace) -> Result<[u8; SALT_BYTES], RandomError> {
    let (_source, bytes) = Source::open(namespace)?.fill(ExVec::new(SALT_BYTES)?)?;
    let mut salt = [0; SALT_BYTES];
    for (place, byte) in salt.iter_mut().zip(bytes.iter()) {
        *place = *byte;
    }
    Ok(salt)
}

fn open(namespace: &mut Namespace) -> Result<Console, AccessError> {
    namespace.open(CONSOLE, console::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
        console::ImpStart::Success { next } => Ok(next),
        console::ImpStart::Refused { .. } => Err(NameError::NotPermitted.into()),
        console::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    })
}

fn read(console: Console, prompt: &str) -> Result<(Vec<u8>, Console), String> {
    let prompt = ExVec::from_slice(prompt.as_bytes()).map_err(|status| status.text().to_string())?;
    match console.read_line(LineKind::Secret, prompt).receive() {
        console::ImpReading::Line { text, next } => Ok((text.to_vec(), next)),
        console::ImpReading::Failed { .. } => Err(format!("{CONSOLE}: in use by another reader")),
        // A passphrase has no completion.
        _ => Err(String::from("cancelled; nothing was printed")),
    }
}

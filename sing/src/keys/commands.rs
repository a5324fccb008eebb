//! `sing key`: makes, shows, certifies, trusts and revokes keys.

use std::path::Path;

use package::{Certificate, May, PublicKey, Revoked, Root, SecretKey};

use super::store::{Store, chain_text, read_chain, write_chain};
use crate::command_line::{CertifyArguments, KeyCommand};
use crate::failure::{Failure, Outcome};
use crate::repository::{Repository, read_text};

/// Does what `sing key` is asked; without a command, shows the development key.
///
/// # Errors
/// What was asked cannot be done; the failure says why in one sentence.
pub fn execute(repository: &Repository, command: Option<&KeyCommand>) -> Outcome<u8> {
    let store = Store::of_user();
    match command {
        None => show_development(repository)?,
        Some(KeyCommand::New { name }) => {
            let key = store.make(name)?;
            println!("public key  {key}");
            println!("secret in   {}", store.folder()?.join(format!("{name}.key")).display());
        }
        Some(KeyCommand::List) => list(repository, &store)?,
        Some(KeyCommand::Show { name }) => {
            println!("public key  {}", store.secret(name)?.public());
            print!("{}", chain_text(&store.chain(name)?));
        }
        Some(KeyCommand::Trust { file, publishers, systems }) => {
            let key = public_key(&store, file)?;
            let root = Root { key, publishers: publishers.clone(), systems: *systems };
            let new = store.trust(&root)?;
            println!("{} {key} for {publishers}", if new { "trusted:" } else { "trusted before:" });
        }
        Some(KeyCommand::Certify(arguments)) => certify(&store, arguments)?,
        Some(KeyCommand::Import { name, file }) => {
            for certificate in store.import(name, file)? {
                println!("{}", described(&certificate));
            }
        }
        Some(KeyCommand::Revoke { what }) => {
            let revoked = Revoked::parse(what).ok_or_else(|| {
                Failure::new(format!("`{what}` is neither the serial number of a certificate nor a key")).remedy(
                    "give the 16 digits of a serial number or the 64 of a key, as cargo sing key list prints them",
                )
            })?;
            let new = store.revoke(revoked)?;
            println!("{} {revoked}", if new { "revoked:" } else { "revoked before:" });
            println!("systems that are built from now on refuse what it signed; those that run do not know");
        }
    }
    Ok(0)
}

fn show_development(repository: &Repository) -> Outcome<()> {
    let key = SecretKey::from_bytes(&super::development_seed(repository)?);
    println!("public key  {}", key.public());
    println!("secret in   {}", super::path(repository).display());
    Ok(())
}

fn list(repository: &Repository, store: &Store) -> Outcome<()> {
    let development = SecretKey::from_bytes(&super::development_seed(repository)?);
    println!("{}  development, of this repository", development.public());
    for name in store.names()? {
        println!("{}  {name}", store.secret(&name)?.public());
        for certificate in store.chain(&name)? {
            println!("    {}", described(&certificate));
        }
    }
    for root in store.trusted()? {
        let systems = if root.systems { " and systems" } else { "" };
        println!("{}  trusted for {}{systems}", root.key, root.publishers);
    }
    for revoked in store.revoked()? {
        println!("{revoked}  revoked");
    }
    Ok(())
}

fn certify(store: &Store, arguments: &CertifyArguments) -> Outcome<()> {
    let key = public_key(store, &arguments.key)?;
    let may = if arguments.certifier { May::Certify } else { May::Sign };
    let chain = store.certify(&arguments.with, key, &arguments.publishers, may)?;
    match &arguments.output {
        Some(path) => {
            write_chain(path, &chain)?;
            println!("{}", described(&chain[0]));
        }
        None => print!("{}", chain_text(&chain)),
    }
    Ok(())
}

/// A public key: given as 64 digits, as the name of an own key, or as a file that holds the digits or certificates.
fn public_key(store: &Store, given: &str) -> Outcome<PublicKey> {
    if let Some(key) = PublicKey::parse(given) {
        return Ok(key);
    }
    let path = Path::new(given);
    if path.is_file() {
        let text = read_text(path)?;
        // What `key new` and `key show` print, or the digits alone.
        let digits = text.lines().find_map(|line| PublicKey::parse(line.trim_start_matches("public key").trim()));
        if let Some(key) = digits {
            return Ok(key);
        }
        return match read_chain(path)?.first() {
            Some(certificate) => Ok(certificate.key),
            None => Err(Failure::new(format!("{given} holds no public key")).remedy("give a file with its 64 digits")),
        };
    }
    if store.names()?.iter().any(|name| name == given) {
        return Ok(store.secret(given)?.public());
    }
    Err(Failure::new(format!("`{given}` is no public key, no file and no key of yours"))
        .remedy("give the 64 digits that cargo sing key show prints"))
}

/// A certificate in one line.
pub fn described(certificate: &Certificate) -> String {
    let Certificate { publishers, key, serial, may, issuer, .. } = certificate;
    format!("certificate {serial:016x}: {key:#} may {} for {publishers}, says {issuer:#}", may.word())
}

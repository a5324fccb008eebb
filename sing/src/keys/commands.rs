//! `sing key`: makes, shows, certifies, trusts and revokes keys.
//!
//! A secret key is never accepted as a public one, in any form: trusted, certified and revoked keys are published.
//! Deliberately not here: where keys are kept (`store`).

use std::path::Path;

use manifest_model::{PublicKey, Revoked, Rights, Root};
use package::{Certificate, May};
use package_build::{Grant, SecretKey};

use super::secret;
use super::store::{Store, chain_text, read_chain, write_chain};
use crate::command_line::{CertifyArguments, KeyCommand};
use crate::failure::{Failure, Outcome};
use crate::repository::{Repository, read_text};

/// Executes `sing key`; without a command, shows the development key.
///
/// # Errors
/// The command failed.
pub fn execute(repository: &Repository, command: Option<&KeyCommand>) -> Outcome<u8> {
    let store = Store::of_user();
    match command {
        None => show_development(repository)?,
        Some(KeyCommand::New { name }) => {
            let key = store.make(name)?;
            println!("{}", public_line(key));
            println!("for others  {}", store.public_file(name)?.display());
            println!("secret in   {}", store.folder()?.join(format!("{name}.key")).display());
        }
        Some(KeyCommand::List) => print!("{}", listed(super::development_seed(repository), &store)?),
        Some(KeyCommand::Show { name }) => {
            println!("{}", public_line(store.secret(name)?.public()));
            print!("{}", chain_text(&store.chain(name)?));
        }
        Some(KeyCommand::Trust { file, publishers, systems, native }) => {
            let key = public_key(repository, &store, file)?;
            let root = Root { key, publishers: publishers.clone(), systems: *systems, rights: rights(*native) };
            let new = store.trust(&root)?;
            println!("{} {key} for {publishers}", if new { "trusted:" } else { "trusted before:" });
            if root.effective_rights() == Rights::NONE {
                println!("for scripts only; pass --native to allow native code, which runs beside the kernel");
            }
        }
        Some(KeyCommand::Certify(arguments)) => certify(repository, &store, arguments)?,
        Some(KeyCommand::Import { name, file }) => {
            for certificate in store.import(name, file)? {
                println!("{}", described(&certificate));
            }
        }
        Some(KeyCommand::Revoke { what }) => {
            let revoked = Revoked::parse(what).ok_or_else(|| {
                Failure::new(format!("`{what}` is neither the serial number of a certificate nor a key")).remedy(
                    "use the 16 digits of a serial number or the 64 of a key, as printed by cargo sing key list",
                )
            })?;
            if let Revoked::Key(key) = revoked {
                refuse_secret(repository, &store, key)?;
            }
            let new = store.revoke(revoked)?;
            println!("{} {revoked}", if new { "revoked:" } else { "already revoked:" });
            println!("systems built from now on reject its signatures, and its packages cannot be installed");
            println!("running systems are not affected; check existing systems with cargo sing verify");
        }
    }
    Ok(0)
}

fn show_development(repository: &Repository) -> Outcome<()> {
    let key = SecretKey::from_bytes(&super::development_seed(repository)?);
    println!("{}", public_line(key.public()));
    println!("secret in   {}", super::path(repository).display());
    Ok(())
}

/// Formats a public key for display and exchange.
pub fn public_line(key: PublicKey) -> String {
    format!("public key  {key}")
}

/// Returns all keys, one per line. An unreadable one is a line too, and hides no others.
fn listed(development: Outcome<[u8; secret::SEED_BYTES]>, store: &Store) -> Outcome<String> {
    let mut lines = Vec::new();
    lines.push(match development {
        Ok(seed) => format!("{}  development, of this repository", SecretKey::from_bytes(&seed).public()),
        Err(failure) => format!("development, of this repository: {failure}"),
    });
    for name in store.names()? {
        lines.push(match store.secret(&name) {
            Ok(secret) => format!("{}  {name}", secret.public()),
            Err(failure) => format!("{name}: {failure}"),
        });
        match store.chain(&name) {
            Ok(chain) => lines.extend(chain.iter().map(|certificate| format!("    {}", described(certificate)))),
            Err(failure) => lines.push(format!("    {failure}")),
        }
    }
    match store.trusted() {
        Ok(roots) => lines.extend(roots.iter().map(|root| {
            let native = if root.rights.contains(Rights::NATIVE) { ", native code" } else { "" };
            let systems = if root.systems { ", systems" } else { "" };
            format!("{}  trusted for {}{native}{systems}", root.key, root.publishers)
        })),
        Err(failure) => lines.push(format!("trusted: {failure}")),
    }
    match store.revoked() {
        Ok(revoked) => lines.extend(revoked.iter().map(|revoked| format!("{revoked}  revoked"))),
        Err(failure) => lines.push(format!("revoked: {failure}")),
    }
    Ok(lines.iter().map(|line| format!("{line}\n")).collect())
}

fn certify(repository: &Repository, store: &Store, arguments: &CertifyArguments) -> Outcome<()> {
    let key = public_key(repository, store, &arguments.key)?;
    let may = if arguments.certifier { May::Certify } else { May::Sign };
    let grant = Grant { publishers: &arguments.publishers, may, rights: rights(arguments.native) };
    let chain = store.certify(&arguments.with, key, grant)?;
    match &arguments.output {
        Some(path) => {
            if is_secret_file(path) {
                return Err(Failure::new(format!("refusing to overwrite the secret key {}", path.display()))
                    .remedy("write the certificates to another file"));
            }
            write_chain(path, &chain)?;
            println!("{}", described(&chain[0]));
        }
        None => print!("{}", chain_text(&chain)),
    }
    Ok(())
}

/// Parses a public key: given as the name of an own key, as 64 digits, or as a file that holds the digits or
/// certificates.
///
/// # Errors
/// It is none of these, or a secret.
fn public_key(repository: &Repository, store: &Store, given: &str) -> Outcome<PublicKey> {
    // Before files: a file in the current folder must not shadow a key of the user.
    if store.has(given) {
        return Ok(store.secret(given)?.public());
    }
    let key = match PublicKey::parse(given) {
        Some(key) => key,
        None => key_in_file(given)?,
    };
    refuse_secret(repository, store, key)?;
    Ok(key)
}

fn key_in_file(given: &str) -> Outcome<PublicKey> {
    let path = Path::new(given);
    if !path.is_file() {
        return Err(Failure::new(format!("`{given}` is not a public key, a file or one of your keys"))
            .remedy("use the 64 digits printed by cargo sing key show"));
    }
    if is_secret_file(path) {
        return Err(Failure::new(format!("{given} is the secret half of a key; only the public half may be shared"))
            .remedy("use the key's name, or its file NAME.public"));
    }
    let text = read_text(path)?;
    // Output of `key new` or `key show`, or the digits alone.
    let digits = text.lines().find_map(|line| PublicKey::parse(line.trim_start_matches("public key").trim()));
    if let Some(key) = digits {
        return Ok(key);
    }
    match read_chain(path)?.first() {
        Some(certificate) => Ok(certificate.key),
        None => Err(Failure::new(format!("{given} contains no public key")).remedy("use a file with its 64 digits")),
    }
}

/// Returns whether a file contains a secret, by its name or content.
fn is_secret_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "key")
        || std::fs::read_to_string(path).is_ok_and(|text| secret::is_marked(&text))
}

/// Refuses 64 digits that are a secret key of this user or clone. They are not printed, as output may be logged.
fn refuse_secret(repository: &Repository, store: &Store, key: PublicKey) -> Outcome<()> {
    let development = std::fs::read_to_string(super::path(repository)).unwrap_or_default();
    let owner = match secret::seed_of(&development) == Some(key.0) {
        true => Some("the development key".to_string()),
        false => store.owner_of_secret(&key.0)?.map(|name| format!("your key `{name}`")),
    };
    match owner {
        None => Ok(()),
        Some(owner) => Err(Failure::new(format!(
            "these are the digits of the secret half of {owner}, which must not be disclosed"
        ))
        .remedy("use its name, or the digits printed by cargo sing key list")),
    }
}

/// Rights granted by `--native`.
fn rights(native: bool) -> Rights {
    if native { Rights::NATIVE } else { Rights::NONE }
}

/// Formats a certificate in one line.
pub fn described(certificate: &Certificate) -> String {
    let Certificate { publishers, key, serial, may, rights, issuer, .. } = certificate;
    let native = if rights.contains(Rights::NATIVE) { ", native code" } else { "" };
    format!("certificate {serial:016x}: {key:#} may {} for {publishers}{native}, issued by {issuer:#}", may.word())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn store() -> (tempfile::TempDir, Repository, Store) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::at(&folder.path().join("keys"));
        (folder, Repository::find().expect("tests run inside the repository"), store)
    }

    #[test]
    fn a_secret_is_not_taken_for_a_public_key() {
        let (folder, repository, store) = store();
        let key = store.make("acme").expect("a key");
        let keys = store.folder().expect("there is one");
        let given = |path: &Path| public_key(&repository, &store, path.to_str().expect("UTF-8"));
        assert_eq!(given(&keys.join("acme.public")), Ok(key));
        assert_eq!(given(Path::new("acme")), Ok(key));

        let secret = std::fs::read_to_string(keys.join("acme.key")).expect("the secret");
        let digits = secret.trim().strip_prefix("secret ").expect("the word is there");
        let copy = folder.path().join("for-you.txt");
        std::fs::write(&copy, &secret).expect("a file");
        let bare = folder.path().join("digits.txt");
        std::fs::write(&bare, digits).expect("a file");
        // Of an unreadable key, only the file name is known.
        let foreign = folder.path().join("foreign.key");
        std::fs::write(&foreign, "ab".repeat(32)).expect("a file");
        for path in [&keys.join("acme.key"), &copy, &bare, &foreign, Path::new(digits)] {
            let refused = given(path).expect_err("a secret").to_string();
            assert!(refused.contains("the secret half of"), "{refused}");
            assert!(!refused.contains(digits), "the secret is shown");
        }
    }

    #[test]
    fn certificates_are_not_written_over_a_key() {
        let (_folder, repository, store) = store();
        store.make("acme").expect("a key");
        store.make("daily").expect("a key");
        let path = store.folder().expect("there is one").join("acme.key");
        let before = std::fs::read(&path).expect("the key");
        let arguments = CertifyArguments {
            key: "daily".into(),
            with: "acme".into(),
            publishers: "acme".into(),
            certifier: false,
            native: false,
            output: Some(path.clone()),
        };
        let refused = certify(&repository, &store, &arguments).expect_err("there is a key").to_string();
        assert!(refused.contains("refusing to overwrite"), "{refused}");
        assert_eq!(std::fs::read(&path).expect("the key"), before);
    }

    #[test]
    fn what_cannot_be_read_hides_no_other_key() {
        let (_folder, _, store) = store();
        let good = store.make("good").expect("a key");
        let open = store.make("open").expect("a key");
        store
            .trust(&Root { key: good, publishers: "acme".into(), systems: false, rights: Rights::NATIVE })
            .expect("it can be kept");
        store.revoke(Revoked::Serial(7)).expect("it can be kept");
        let folder = store.folder().expect("there is one");
        std::fs::set_permissions(folder.join("open.key"), std::fs::Permissions::from_mode(0o644)).expect("a mode");
        for (name, content) in [("damaged.key", ""), ("No Name.key", "x"), ("good.certificates", "hello")] {
            std::fs::write(folder.join(name), content).expect("a file");
        }
        std::fs::set_permissions(folder.join("damaged.key"), std::fs::Permissions::from_mode(0o600)).expect("a mode");
        let list = listed(Err(Failure::new("no development key")), &store).expect("it can be listed");
        for part in [
            "development, of this repository: no development key",
            "damaged: ",
            "is not a signing key",
            &format!("{good}  good\n"),
            "is not a certificate file",
            "open: other users can read",
            &format!("{good}  trusted for acme, native code\n"),
            "0000000000000007  revoked\n",
        ] {
            assert!(list.contains(part), "`{part}` is not in:\n{list}");
        }
        assert!(!list.contains("No Name") && !list.contains(&open.to_string()), "{list}");
        std::fs::write(folder.join("trusted"), "nonsense\n").expect("a file");
        let list = listed(Ok([1; 32]), &store).expect("it can be listed");
        assert!(list.contains("trusted: cannot parse line 1 of") && list.contains("  revoked\n"), "{list}");
    }
}

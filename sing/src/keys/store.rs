//! A user's key store: the folder named by `SING_KEYS`, else `~/.config/singularity/keys`.
//!
//! `NAME.key` is a secret key (readable by its owner only), `NAME.public` its public half for distribution,
//! `NAME.certificates` its chain; `trusted` and `revoked` are line-based lists that only the owner may write. Trust and
//! revocations recorded here apply to every system built for this user. A missing store counts as empty; reading never
//! creates it. With `SING_KEYS` set to the empty string there is no store.
//!
//! Deliberately not here: output (`commands`), secret-key files (`secret`), and the development key.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use manifest_model::trust::{is_publishers, is_within};
use manifest_model::{PublicKey, Revoked, Rights, Root, Trust, is_name};
use package::{CHAIN_MAX, Certificate, May};
use package_build::{Grant, SecretKey, Signer};

use super::secret::{self, Remedy, SEED_BYTES};
use crate::failure::{Failure, Outcome};
use crate::repository::{read_text, write_whole};
use crate::spelling;

/// Environment variable that names the folder.
const VARIABLE: &str = "SING_KEYS";

/// A folder of keys.
#[derive(Debug, Clone)]
pub struct Store {
    folder: Option<PathBuf>,
}

impl Store {
    /// Returns the store of the user running the tool.
    pub fn of_user() -> Store {
        let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".config"));
        let folder = match std::env::var_os(VARIABLE) {
            Some(folder) => Some(PathBuf::from(folder)),
            None => {
                let settings = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
                settings.or_else(home).map(|folder| folder.join("singularity/keys"))
            }
        };
        Store { folder: folder.filter(|folder| !folder.as_os_str().is_empty()) }
    }

    /// Returns the store in `folder`.
    pub fn at(folder: &Path) -> Store {
        Store { folder: Some(folder.to_path_buf()) }
    }

    /// Returns the store's folder, which need not exist.
    ///
    /// # Errors
    /// No store is configured.
    pub fn folder(&self) -> Outcome<&Path> {
        self.folder
            .as_deref()
            .ok_or_else(|| Failure::new("no folder for keys").remedy(format!("set {VARIABLE} or HOME")))
    }

    fn file(&self, name: &str, kind: &str) -> Outcome<PathBuf> {
        if !is_name(name) {
            return Err(Failure::new(format!("invalid key name `{name}`"))
                .remedy("use lowercase letters, digits and hyphens, starting with a letter, at most 63"));
        }
        Ok(self.folder()?.join(format!("{name}.{kind}")))
    }

    /// Generates a key and writes a file with its public half.
    ///
    /// # Errors
    /// A key of this name exists, or a file cannot be created.
    pub fn make(&self, name: &str) -> Outcome<PublicKey> {
        let path = self.file(name, "key")?;
        secret::create(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Failure::new(format!("the key `{name}` already exists"))
                .remedy("choose another name; keys are never replaced"),
            _ => Failure::file("make the key", &path, &error),
        })?;
        let key = self.secret(name)?.public();
        let public = self.public_file(name)?;
        let written = secret::replace(&public, format!("{}\n", super::commands::public_line(key)).as_bytes());
        written.map_err(|error| Failure::file("write the public half of the new key to", &public, &error))?;
        Ok(key)
    }

    /// Returns the path of the named key's public half.
    ///
    /// # Errors
    /// The name is not a valid key name, or there is no store.
    pub fn public_file(&self, name: &str) -> Outcome<PathBuf> {
        self.file(name, "public")
    }

    /// Returns whether a key of this name exists, usable or not.
    pub fn has(&self, name: &str) -> bool {
        self.file(name, "key").is_ok_and(|path| path.exists())
    }

    /// Reads the named secret key.
    ///
    /// # Errors
    /// It does not exist, is readable by others, or is damaged.
    pub fn secret(&self, name: &str) -> Outcome<SecretKey> {
        let path = self.file(name, "key")?;
        match secret::read(&path, Remedy::Restore)? {
            Some(seed) => Ok(SecretKey::from_bytes(&seed)),
            None => {
                let known = self.names()?;
                let otherwise = format!("create it with cargo sing key new {name}, or see cargo sing key list");
                Err(Failure::new(format!("no key `{name}` in {}", self.folder()?.display())).remedy(spelling::meant(
                    name,
                    known.iter().map(String::as_str),
                    otherwise,
                )))
            }
        }
    }

    /// Returns the name of the key whose secret is `bytes`; checks content that is about to be published.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn owner_of_secret(&self, bytes: &[u8; SEED_BYTES]) -> Outcome<Option<String>> {
        if self.folder.is_none() {
            return Ok(None);
        }
        for name in self.names()? {
            // A secret readable by others is still a secret.
            let text = std::fs::read_to_string(self.file(&name, "key")?).unwrap_or_default();
            if secret::seed_of(&text).as_ref() == Some(bytes) {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Returns the named key's certificate chain; empty if it has none.
    ///
    /// # Errors
    /// The chain is damaged.
    pub fn chain(&self, name: &str) -> Outcome<Vec<Certificate>> {
        let path = self.file(name, "certificates")?;
        if path.exists() { read_chain(&path) } else { Ok(Vec::new()) }
    }

    /// Returns the named key with its certificates.
    ///
    /// # Errors
    /// As for `secret` and `chain`.
    pub fn signer(&self, name: &str) -> Outcome<Signer> {
        Ok(Signer { key: self.secret(name)?, chain: self.chain(name)? })
    }

    /// Stores the certificates in `from` as the chain of the named key.
    ///
    /// # Errors
    /// The file has no certificates, or the first certifies another key.
    pub fn import(&self, name: &str, from: &Path) -> Outcome<Vec<Certificate>> {
        let key = self.secret(name)?.public();
        let chain = read_chain(from)?;
        let Some(first) = chain.first() else {
            return Err(Failure::new(format!("{} has no certificate", from.display()))
                .remedy("use the output of cargo sing key certify"));
        };
        if first.key != key {
            return Err(Failure::new(format!(
                "the certificate in {} is for the key {:#}, but `{name}` is {key:#}",
                from.display(),
                first.key
            ))
            .remedy(format!("get a certificate for the key {key}")));
        }
        let path = self.file(name, "certificates")?;
        let written = secret::replace(&path, chain_text(&chain).as_bytes());
        written.map_err(|error| Failure::file("write", &path, &error))?;
        Ok(chain)
    }

    /// Certifies a key with the key `issuer`, whose own chain is appended to the new certificate.
    ///
    /// # Errors
    /// The issuer does not exist, may not grant this, or its own chain is too long.
    pub fn certify(&self, issuer: &str, key: PublicKey, grant: Grant<'_>) -> Outcome<Vec<Certificate>> {
        let Grant { publishers, may, rights } = grant;
        let Signer { key: secret, chain } = self.signer(issuer)?;
        if let Some(own) = chain.first() {
            // Never issue a certificate that every system refuses.
            if own.may != May::Certify {
                return Err(Failure::new(format!(
                    "the certificate of `{issuer}` allows it to sign packages, not to certify"
                ))
                .remedy("use a key that may certify"));
            }
            if !is_within(publishers, &own.publishers) {
                return Err(Failure::new(format!(
                    "`{issuer}` may certify for `{}` only, not for `{publishers}`",
                    own.publishers
                ))
                .remedy("certify for fewer publishers, or use another key"));
            }
            if !own.rights.contains(rights) {
                return Err(Failure::new(format!("`{issuer}` does not have the right `{rights}`"))
                    .remedy("omit --native, or use a key that has the right"));
            }
        }
        // A certifier's chain must leave room for one more certificate.
        let room = if may == May::Certify { CHAIN_MAX - 1 } else { CHAIN_MAX };
        if chain.len() >= room {
            return Err(Failure::new(format!(
                "`{issuer}` cannot certify another {} key: a chain has at most {CHAIN_MAX} certificates",
                may.word()
            ))
            .remedy("use a key closer to the root"));
        }
        let serial = secret::random().map(u64::from_le_bytes);
        let serial = serial.map_err(|error| Failure::file("read", Path::new("/dev/urandom"), &error))?;
        let certificate = package_build::issue_certificate(&secret, key, grant, serial)
            .map_err(|error| Failure::new(format!("the key `{issuer}` cannot certify that: {error}")))?;
        Ok([vec![certificate], chain].concat())
    }

    /// Returns the roots that this user trusts.
    ///
    /// # Errors
    /// The list is damaged.
    pub fn trusted(&self) -> Outcome<Vec<Root>> {
        self.list("trusted", |line| {
            let mut words = line.split_whitespace();
            let key = PublicKey::parse(words.next()?)?;
            let publishers = words.next().filter(|text| is_publishers(text))?;
            let (mut systems, mut rights) = (false, Rights::NONE);
            for word in words {
                match word {
                    "native" if rights == Rights::NONE => rights = Rights::NATIVE,
                    "systems" if !systems => systems = true,
                    _ => return None,
                }
            }
            Some(Root { key, publishers: publishers.into(), systems, rights })
        })
    }

    /// Returns this user's revocations.
    ///
    /// # Errors
    /// The list is damaged.
    pub fn revoked(&self) -> Outcome<Vec<Revoked>> {
        self.list("revoked", Revoked::parse)
    }

    /// Adds a trusted root; returns whether it is new.
    ///
    /// # Errors
    /// The list is damaged or cannot be written.
    pub fn trust(&self, root: &Root) -> Outcome<bool> {
        if !is_publishers(&root.publishers) {
            return Err(Failure::new(format!("invalid publisher pattern `{}`", root.publishers))
                .remedy("use a name, `name-*` for a prefix, or `*` for all"));
        }
        let _lock = self.lock()?;
        if self.trusted()?.contains(root) {
            return Ok(false);
        }
        let native = if root.rights.contains(Rights::NATIVE) { " native" } else { "" };
        let systems = if root.systems { " systems" } else { "" };
        self.append("trusted", &format!("{} {}{native}{systems}", root.key, root.publishers))?;
        Ok(true)
    }

    /// Revokes a certificate or a key; returns whether the revocation is new.
    ///
    /// # Errors
    /// The list is damaged or cannot be written.
    pub fn revoke(&self, revoked: Revoked) -> Outcome<bool> {
        let _lock = self.lock()?;
        if self.revoked()?.contains(&revoked) {
            return Ok(false);
        }
        self.append("revoked", &revoked.to_string())?;
        Ok(true)
    }

    /// Adds this user's trusted roots and revocations to a system's.
    ///
    /// # Errors
    /// A list is damaged, or the system or a list has a secret in place of a public key.
    pub fn add_to(&self, trust: &mut Trust) -> Outcome<()> {
        if self.folder.is_none() {
            return Ok(());
        }
        trust.roots.extend(self.trusted()?);
        trust.revoked.extend(self.revoked()?);
        let revoked = trust.revoked.iter().filter_map(|revoked| match revoked {
            Revoked::Key(key) => Some(key),
            Revoked::Serial(_) => None,
        });
        for key in trust.roots.iter().map(|root| &root.key).chain(revoked) {
            if let Some(name) = self.owner_of_secret(&key.0)? {
                return Err(Failure::new(format!(
                    "what the system or `trusted` or `revoked` in {} has for a public key is the secret half of \
                     your key `{name}`",
                    self.folder()?.display()
                ))
                .remedy("remove it, create a new key, and revoke this one if it may have been disclosed"));
            }
        }
        Ok(())
    }

    /// Returns the names of the secret keys, sorted.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn names(&self) -> Outcome<Vec<String>> {
        let folder = self.folder()?;
        let entries = match std::fs::read_dir(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| Failure::file("read", folder, &error))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(|error| Failure::file("read", folder, &error))?.file_name();
            // A file without a valid key name was not created here.
            let name = name.to_str().and_then(|name| name.strip_suffix(".key")).filter(|name| is_name(name));
            names.extend(name.map(String::from));
        }
        names.sort();
        Ok(names)
    }

    fn list<T>(&self, name: &str, read: impl Fn(&str) -> Option<T>) -> Outcome<Vec<T>> {
        let path = self.folder()?.join(name);
        // Only a file that certainly does not exist means no revocations: not one behind a permission error, and not
        // a dangling link.
        match std::fs::symlink_metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found.map_err(|error| Failure::file("read", &path, &error))?,
        };
        refuse_writers(self.folder()?)?;
        refuse_writers(&path)?;
        let text = read_text(&path)?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let entry = |(number, line): (usize, &str)| {
            read(line.trim()).ok_or_else(|| {
                Failure::new(format!("cannot parse line {} of {}", number + 1, path.display()))
                    .remedy("fix or remove the line")
            })
        };
        lines.map(entry).collect()
    }

    /// Locks the lists against other runs of the tool until the guard is dropped.
    fn lock(&self) -> Outcome<File> {
        let folder = self.folder()?;
        let locked = secret::private_folder(folder).and_then(|()| File::open(folder)).and_then(|file| {
            file.lock()?;
            Ok(file)
        });
        locked.map_err(|error| Failure::file("lock the folder", folder, &error))
    }

    /// Appends a line to a list; the caller holds the lock.
    fn append(&self, name: &str, line: &str) -> Outcome<()> {
        let path = self.folder()?.join(name);
        let old = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            old => old.map_err(|error| Failure::file("read", &path, &error))?,
        };
        let end = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
        let written = secret::replace(&path, format!("{old}{end}{line}\n").as_bytes());
        written.map_err(|error| Failure::file("write", &path, &error))
    }
}

/// Refuses a list that others may write: they could trust keys in this user's name.
fn refuse_writers(path: &Path) -> Outcome<()> {
    let metadata = std::fs::metadata(path).map_err(|error| Failure::file("read", path, &error))?;
    if metadata.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(Failure::new(format!("other users can write to {}, and so add trusted keys", path.display()))
        .remedy(format!("review it, and run chmod go-w {}", path.display())))
}

/// Reads a certificate file: one certificate per line, in hexadecimal.
///
/// # Errors
/// It cannot be read, or a line is not a certificate.
pub fn read_chain(path: &Path) -> Outcome<Vec<Certificate>> {
    let mut bytes = Vec::new();
    for line in read_text(path)?.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let digits = super::bytes(line);
        bytes.extend(digits.ok_or_else(|| {
            Failure::new(format!("{} is not a certificate file", path.display()))
                .remedy("use the output of cargo sing key certify")
        })?);
    }
    Certificate::chain(&bytes).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// Writes a certificate file, with explanatory comments.
///
/// # Errors
/// It cannot be written.
pub fn write_chain(path: &Path, chain: &[Certificate]) -> Outcome<()> {
    write_whole(path, chain_text(chain).as_bytes())
}

/// Returns the content of a certificate file.
pub fn chain_text(chain: &[Certificate]) -> String {
    let line = |certificate: &Certificate| {
        format!("# {}\n{}\n", super::commands::described(certificate), super::hexadecimal(&certificate.encode()))
    };
    chain.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use package_check::check_signer;

    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::at(&folder.path().join("keys"));
        (folder, store)
    }

    fn grant(publishers: &str, may: May) -> Grant<'_> {
        Grant { publishers, may, rights: Rights::NATIVE }
    }

    #[track_caller]
    fn refused<T>(outcome: Outcome<T>, phrase: &str) {
        let text = outcome.err().expect("it is refused").to_string();
        assert!(text.contains(phrase) && text.contains(';'), "{text}");
    }

    #[test]
    fn a_key_is_made_once_and_for_its_owner_alone() {
        let (_folder, store) = store();
        assert_eq!(store.names().expect("none yet"), Vec::<String>::new());
        assert!(!store.has("acme"));
        let key = store.make("acme").expect("a key");
        assert!(store.has("acme"));
        assert_eq!(store.secret("acme").expect("it is there").public(), key);
        refused(store.make("acme"), "already");
        refused(store.make("../acme"), "invalid key name");
        refused(store.secret("other"), "no key `other`");
        let path = store.folder().expect("there is one").join("acme.key");
        assert_eq!(std::fs::metadata(&path).expect("metadata").permissions().mode() & 0o777, 0o600);
        let folder = std::fs::metadata(store.folder().expect("there is one")).expect("metadata");
        assert_eq!(folder.permissions().mode() & 0o777, 0o700);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("a mode");
        refused(store.secret("acme"), "chmod 600");
        assert_eq!(store.names().expect("one"), ["acme"]);
    }

    #[test]
    fn a_key_is_certified_and_what_it_signs_is_believed() {
        let (folder, store) = store();
        let root = store.make("root").expect("a key");
        let middle = store.make("middle").expect("a key");
        let daily = store.make("daily").expect("a key");
        let file = folder.path().join("certificates");
        let chain = store.certify("root", middle, grant("acme-*", May::Certify)).expect("a root may");
        write_chain(&file, &chain).expect("it can be written");
        refused(store.import("daily", &file), "is for the key");
        store.import("middle", &file).expect("it is of this key");
        let chain = store.certify("middle", daily, grant("acme-tools", May::Sign)).expect("it is within");
        write_chain(&file, &chain).expect("it can be written");
        store.import("daily", &file).expect("it is of this key");
        let signer = store.signer("daily").expect("a key with certificates");
        assert_eq!(signer.chain.len(), 2);
        let trust = |revoked: Vec<Revoked>| {
            let root = Root { key: root, publishers: "acme-*".into(), systems: false, rights: Rights::NATIVE };
            Trust { roots: vec![root], revoked, ..Trust::default() }
        };
        check_signer(&trust(Vec::new()), "acme-tools", daily, &signer.chain).expect("it is believed");
        let without = trust(vec![Revoked::Serial(chain[0].serial)]);
        check_signer(&without, "acme-tools", daily, &signer.chain).expect_err("it was revoked");

        refused(store.certify("middle", daily, grant("other", May::Sign)), "may certify for `acme-*` only");
        refused(store.certify("daily", middle, grant("acme-tools", May::Sign)), "not to certify");
        refused(store.certify("root", middle, grant("ACME", May::Sign)), "is no publisher");
        refused(store.certify("nobody", middle, grant("acme", May::Sign)), "no key `nobody`");
    }

    #[test]
    fn native_code_is_a_right_that_its_issuer_must_have() {
        let (folder, store) = store();
        store.make("root").expect("a key");
        let middle = store.make("middle").expect("a key");
        let daily = store.make("daily").expect("a key");
        let file = folder.path().join("certificates");
        let scripts = Grant { rights: Rights::NONE, ..grant("acme-*", May::Certify) };
        write_chain(&file, &store.certify("root", middle, scripts).expect("a root may")).expect("it can be written");
        store.import("middle", &file).expect("it is of this key");
        refused(store.certify("middle", daily, grant("acme-tools", May::Sign)), "does not have the right `native`");
        let chain = store.certify("middle", daily, Grant { may: May::Sign, ..scripts }).expect("without the right");
        assert_eq!(chain[0].rights, Rights::NONE);
    }

    #[test]
    fn a_chain_has_an_end() {
        let (folder, store) = store();
        let file = folder.path().join("certificates");
        let keys: Vec<PublicKey> = ["a", "b", "c", "d"].map(|name| store.make(name).expect("a key")).into();
        for (issuer, name, key) in [("a", "b", keys[1]), ("b", "c", keys[2])] {
            let chain = store.certify(issuer, key, grant("acme", May::Certify)).expect("there is room");
            write_chain(&file, &chain).expect("it can be written");
            store.import(name, &file).expect("it is of this key");
        }
        refused(store.certify("c", keys[3], grant("acme", May::Certify)), "at most 3 certificates");
        store.certify("c", keys[3], grant("acme", May::Sign)).expect("there is room for one that signs");
    }

    #[test]
    fn files_of_certificates_that_are_none() {
        let (folder, store) = store();
        store.make("acme").expect("a key");
        let file = folder.path().join("certificates");
        refused(store.import("acme", &file), "cannot read");
        for (text, phrase) in
            [("", "has no certificate"), ("hello", "is not a certificate file"), ("00ff", "malformed")]
        {
            std::fs::write(&file, text).expect("it can be written");
            refused(store.import("acme", &file), phrase);
        }
    }

    #[test]
    fn roots_and_revocations_are_kept_and_added_to_a_system() {
        let (_folder, store) = store();
        let mut trust = Trust::default();
        store.add_to(&mut trust).expect("nothing to add");
        assert_eq!(trust, Trust::default());
        let key = store.make("acme").expect("a key");
        let root = Root { key, publishers: "acme-*".into(), systems: false, rights: Rights::NATIVE };
        let owner = Root { key, publishers: "*".into(), systems: true, rights: Rights::ALL };
        assert!(store.trust(&root).expect("it can be kept") && !store.trust(&root).expect("it is there"));
        assert!(store.trust(&owner).expect("it can be kept"));
        assert!(store.revoke(Revoked::Serial(7)).expect("it can be kept"));
        assert!(!store.revoke(Revoked::Serial(7)).expect("it is there"));
        refused(store.trust(&Root { publishers: "ACME".into(), ..root.clone() }), "invalid publisher pattern");
        store.add_to(&mut trust).expect("it can be read");
        assert_eq!(
            (trust.roots.as_slice(), trust.revoked.as_slice()),
            ([root, owner].as_slice(), [Revoked::Serial(7)].as_slice())
        );
        let list = store.folder().expect("there is one").join("trusted");
        std::fs::write(&list, format!("# mine\n{key} acme\n{key}\n")).expect("it can be written");
        refused(store.trusted(), "line 3 of");
    }

    #[test]
    fn the_folder_is_private_whatever_is_kept_first() {
        for first in ["key", "trusted", "revoked"] {
            let (_folder, store) = store();
            let key = PublicKey([7; 32]);
            match first {
                "key" => drop(store.make("acme").expect("a key")),
                "trusted" => drop(
                    store
                        .trust(&Root { key, publishers: "acme".into(), systems: false, rights: Rights::NATIVE })
                        .expect("kept"),
                ),
                _ => drop(store.revoke(Revoked::Key(key)).expect("kept")),
            }
            let folder = std::fs::metadata(store.folder().expect("there is one")).expect("metadata");
            assert_eq!(folder.permissions().mode() & 0o777, 0o700, "{first}");
        }
    }

    #[test]
    fn lists_that_others_may_write_are_refused() {
        let (_folder, store) = store();
        store
            .trust(&Root { key: PublicKey([7; 32]), publishers: "acme".into(), systems: false, rights: Rights::NATIVE })
            .expect("kept");
        store.trusted().expect("it is private");
        let folder = store.folder().expect("there is one").to_path_buf();
        for path in [folder.join("trusted"), folder] {
            let usual = std::fs::metadata(&path).expect("metadata").permissions();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(usual.mode() | 0o020)).expect("a mode");
            refused(store.trusted(), "chmod go-w");
            refused(store.add_to(&mut Trust::default()), "can write to");
            std::fs::set_permissions(&path, usual).expect("a mode");
        }
        store.trusted().expect("it is private again");
    }

    #[test]
    fn a_list_that_cannot_be_read_is_not_an_empty_one() {
        let (_folder, store) = store();
        store.revoke(Revoked::Serial(7)).expect("it can be kept");
        let folder = store.folder().expect("there is one");
        std::fs::remove_file(folder.join("revoked")).expect("a file");
        assert_eq!(store.revoked(), Ok(Vec::new()));
        std::os::unix::fs::symlink(folder.join("elsewhere"), folder.join("revoked")).expect("a link");
        refused(store.revoked(), "cannot read");
        refused(store.add_to(&mut Trust::default()), "cannot read");
        std::fs::write(folder.join("file"), "").expect("a file");
        refused(Store::at(&folder.join("file")).trusted(), "cannot read");
    }

    #[test]
    fn what_several_keep_at_once_is_all_kept() {
        let (_folder, store) = store();
        std::thread::scope(|scope| {
            for number in 0..16 {
                let store = &store;
                scope.spawn(move || store.revoke(Revoked::Serial(number)).expect("it can be kept"));
            }
        });
        assert_eq!(store.revoked().expect("it can be read").len(), 16);
    }

    #[test]
    fn only_names_of_keys_are_names() {
        let (_folder, store) = store();
        store.make("acme").expect("a key");
        let folder = store.folder().expect("there is one");
        for other in ["Backup of acme.key", ".key", "acme (1).key", ".acme.key.00ff.new", "acme.public"] {
            std::fs::write(folder.join(other), "").expect("a file");
        }
        assert_eq!(store.names().expect("one"), ["acme"]);
    }

    #[test]
    fn a_secret_never_comes_into_a_system() {
        let (_folder, store) = store();
        let key = store.make("acme").expect("a key");
        let path = store.folder().expect("there is one").join("acme.key");
        let seed = secret::read(&path, Remedy::Restore).expect("a key").expect("it is there");
        assert_eq!(store.owner_of_secret(&seed), Ok(Some("acme".into())));
        assert_eq!(store.owner_of_secret(&key.0), Ok(None));
        refused(store.add_to(&mut Trust::in_key(PublicKey(seed))), "the secret half of your key `acme`");
        let revoked = Vec::from([Revoked::Key(PublicKey(seed))]);
        refused(store.add_to(&mut Trust { revoked, ..Trust::default() }), "the secret half of your key `acme`");
        store.add_to(&mut Trust::in_key(key)).expect("the public half may be known");
        // Nor is one that others may read.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("a mode");
        assert_eq!(store.owner_of_secret(&seed), Ok(Some("acme".into())));
    }

    #[test]
    fn without_a_folder_there_is_nothing() {
        let store = Store { folder: None };
        let mut trust = Trust::default();
        store.add_to(&mut trust).expect("nothing to add");
        refused(store.names(), "no folder for keys");
    }
}

//! Checks a system's promises (`[[deny]]`) before anything is built.
//!
//! The check needs only manifests, so a violation is found without a build. The rules are those of the crate `install`,
//! which also check changes of the built image. Deliberately not here: the other checks of `sing verify`.

use install::{Finding, Installed, Line, Program};
use manifest_model::{PublicKey, SystemManifest};

use crate::failure::{Failure, Outcome};
use crate::systems::Catalogue;

/// Returns the system with the manifests of its programs, as if built and signed with this key.
///
/// # Errors
/// A program's manifest is invalid.
pub fn as_built(catalogue: &Catalogue, system: SystemManifest, key: PublicKey) -> Outcome<Installed> {
    let program = |name: &&str| Ok(Program { manifest: catalogue.manifest(name)?.clone(), key });
    let programs = system.programs().iter().map(program).collect::<Outcome<_>>()?;
    Ok(Installed { system, programs })
}

/// Refuses a system that violates its promises. A system without a primary instance cannot run and is only a base; the
/// derived systems are checked.
///
/// # Errors
/// It violates a promise, a promise cannot be read, or a program's manifest is invalid.
pub fn hold(catalogue: &Catalogue, system: &SystemManifest) -> Outcome<()> {
    if system.denies.is_empty() || system.primary.is_none() {
        return Ok(());
    }
    // Signers do not affect reach.
    let findings = install::promises(&as_built(catalogue, system.clone(), PublicKey::NONE)?);
    if findings.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = findings.into_iter().map(told).collect();
    Err(Failure::new(format!("the system `{}` violates its promises of reachability", system.name))
        .details(lines.join("\n"))
        .remedy("fix the errors above"))
}

/// A finding as `sing verify` shows it.
fn told(finding: Finding) -> String {
    Line::refused(finding).to_string()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::builder::UnsafeTests;
    use crate::check::check;
    use crate::command_line::CheckArguments;
    use crate::repository::Repository;
    use crate::systems::{self, Platform};

    const PROMISE: &str = "[[deny]]\nwho = \"..fetch.singularity\"\nreach = \"/service/tcp\"\n";

    /// A system manifest among copies of those of the repository, based on `hosted` and with a promise that this
    /// breaks.
    fn mine(repository: &Repository, folder: &Path) -> PathBuf {
        for name in repository.system_names() {
            let file = repository.system_manifest(name.as_ref()).expect("there is one");
            std::fs::copy(file, folder.join(name).with_extension("toml")).expect("a copy");
        }
        let path = folder.join("mine.toml");
        std::fs::write(&path, format!("[system]\nname = \"mine\"\nbase = \"hosted\"\n\n{PROMISE}")).expect("a file");
        path
    }

    #[test]
    fn a_system_that_breaks_a_promise_is_not_built_and_told_how_it_does() {
        let repository = Repository::find().expect("tests run inside the repository");
        let folder = tempfile::tempdir().expect("a folder");
        let mine = mine(&repository, folder.path());
        let told = systems::prepare(&repository, &mine, Platform::Hosted, UnsafeTests::Refused)
            .expect_err("`fetch` is there to come to the network")
            .to_string();
        for part in [
            "refused I230 `fetch.singularity` must not reach /service/tcp",
            "promised for `..fetch.singularity`), and could: ",
            "take one of these steps from it, or the promise out of the system manifest",
            "the system `mine` violates its promises of reachability; fix the errors above.",
        ] {
            assert!(told.contains(part), "{part}:\n{told}");
        }
        let image = repository.output(&format!("systems/{}.system", repository.system_outputs(&mine)));
        assert!(!image.exists(), "{}", image.display());
        // A check before building reports it, too.
        let status = check(&repository, &CheckArguments { file: Some(mine), deadlock: false, json: true })
            .expect("a system manifest");
        assert_eq!(status, 1);
    }

    /// The programs of tests/hostile/reach, with a promise that two of them break by help of others.
    #[test]
    fn programs_that_others_help_to_files_are_refused_with_the_way() {
        let repository = Repository::find().expect("tests run inside the repository");
        let catalogue = Catalogue::read(&repository).expect("the manifests are right");
        let folder = tempfile::tempdir().expect("a folder");
        for (name, promised, way) in [
            (
                "joined",
                "hostile-reach-taker",
                "`hostile-reach-giver` binds /fs/disk0 (Directory of `ext2-fs`), as a rule allows; `hostile-reach-joiner` can start `hostile-reach-giver` with its endpoint `courier` (Courier); `hostile-reach-joiner` can start `hostile-reach-taker` with its endpoint `courier` (Courier); `hostile-reach-giver` sends `hostile-reach-taker` the importing end of Directory, one that it has, with Courier.Take",
            ),
            (
                "inherited",
                "hostile-reach-heir",
                "can start `hostile-reach-heir` with its endpoint `file` (File); take one of these steps from it",
            ),
        ] {
            mine(&repository, folder.path());
            let path = folder.path().join(format!("{name}.toml"));
            let promise = format!("[[deny]]\nwho = \"..{promised}.singularity\"\nreach = \"/fs/**\"\n");
            std::fs::write(&path, format!("[system]\nname = \"{name}\"\nbase = \"reach-check\"\n\n{promise}"))
                .expect("a file");
            let system = catalogue.system(&repository, &path).expect("it is right");
            let told = hold(&catalogue, &system).expect_err("the promise is broken").to_string();
            assert!(told.contains(way), "{told}");
            let built = systems::prepare(&repository, &path, Platform::Hosted, UnsafeTests::Refused);
            assert!(built.is_err_and(|failure| failure.to_string() == told), "{name} was built");
        }
    }

    #[test]
    fn what_others_are_based_on_is_judged_with_those() {
        let repository = Repository::find().expect("tests run inside the repository");
        let catalogue = Catalogue::read(&repository).expect("the manifests are right");
        let folder = tempfile::tempdir().expect("a folder");
        let mine = mine(&repository, folder.path());
        let mut system = catalogue.system(&repository, &mine).expect("it is right");
        assert!(hold(&catalogue, &system).is_err());
        // Without a primary instance it is only a base.
        system.primary = None;
        assert_eq!(hold(&catalogue, &system), Ok(()));
    }
}

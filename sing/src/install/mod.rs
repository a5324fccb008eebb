//! `sing install`, `upgrade`, `uninstall`, `verify` and `explain`: changes of system images, judged before they are made.
//!
//! The judging is the crate `install`'s. Deliberately not here: installing into a running system.

#[cfg(test)]
mod tests {
    use install::{Installed, Program};
    use package::PublicKey;

    use crate::repository::Repository;
    use crate::systems::Catalogue;

    #[test]
    fn every_system_of_the_repository_keeps_what_is_checked() {
        let repository = Repository::find().expect("tests run inside the repository");
        let catalogue = Catalogue::read(&repository).expect("the manifests are right");
        let mut judged = 0;
        for name in repository.system_names() {
            let path = repository.system_manifest(name.as_ref()).expect("there is one");
            // What others are based on need not be a system by itself.
            let Ok(system) = catalogue.system(&repository, &path) else { continue };
            let program = |name: &&str| {
                let manifest = catalogue.manifest(name).expect("a manifest").clone();
                Program { manifest, key: PublicKey([1; 32]) }
            };
            let programs = system.programs().iter().map(program).collect();
            let report = install::verify(&Installed { system, programs });
            assert!(report.is_accepted(), "{name}:\n{report}");
            judged += 1;
        }
        assert!(judged > 10, "{judged} systems");
    }
}

//! Replay of a store into a freshly booted system, with the real install check.

use install::{Change, Code, Installed, Program};
use installer::index::{Index, Kept};
use installer::replay::{System, replay};
use manifest_model::{
    Category, Code as ProgramCode, Manifest, Permission, PublicKey, Requirement, SystemManifest, Trust, Version,
};

const KEY: PublicKey = PublicKey([5; 32]);

fn version(minor: u32) -> Version {
    Version { major: 1, minor, patch: 0 }
}

/// A program that requires others of at least these versions.
fn program(name: &str, minor: u32, requires: &[(&str, u32)]) -> Manifest {
    let requires =
        requires.iter().map(|(program, minor)| Requirement { program: (*program).into(), least: version(*minor) });
    let code = ProgramCode::Script { text: "echo".into() };
    Manifest {
        version: version(minor),
        requires: requires.collect(),
        summary: "is small".into(),
        ..Manifest::plain(name, "singularity", Category::Console, code)
    }
}

fn kept(name: &str, minor: u32) -> Kept {
    Kept { name: name.into(), version: version(minor), more: false }
}

/// A system and a store's packages.
struct Small {
    installed: Installed,
    packages: Vec<Manifest>,
}

/// A system image with a root, a shell and these programs, and a store with these packages.
fn small(image: &[Manifest], packages: &[Manifest]) -> Small {
    let base = ["manager", "shell"].map(|name| program(name, 0, &[]));
    let programs: Vec<Program> =
        base.iter().chain(image).map(|manifest| Program { manifest: manifest.clone(), key: KEY }).collect();
    let system = SystemManifest {
        name: "small".into(),
        root: "manager".into(),
        primary: None,
        instances: Vec::new(),
        installed: programs[1..].iter().map(|program| program.manifest.name.clone()).collect(),
        binds: Vec::new(),
        denies: Vec::new(),
        domains: Vec::new(),
        trust: Trust::in_key(KEY),
    };
    Small { installed: Installed { system, programs }, packages: packages.to_vec() }
}

impl Small {
    fn make(&mut self, change: &Change<'_>) -> Result<(), String> {
        let report = install::check(&self.installed, change);
        if let Some(line) = report.refused().next() {
            return Err(line.to_string());
        }
        self.installed = change.apply(&self.installed).0;
        Ok(())
    }

    fn package(&self, kept: &Kept) -> Option<Manifest> {
        let is_it = |manifest: &&Manifest| manifest.name == kept.name && manifest.version == kept.version;
        self.packages.iter().find(is_it).cloned()
    }

    fn versions(&self, names: &[&str]) -> Vec<Option<u32>> {
        let minor = |name: &&str| self.installed.manifest(name).map(|manifest| manifest.version.minor);
        names.iter().map(minor).collect()
    }
}

impl System for Small {
    fn has(&mut self, name: &str) -> bool {
        self.installed.program(name).is_some()
    }

    fn has_kept(&mut self, kept: &Kept) -> bool {
        self.installed.manifest(&kept.name) == self.package(kept).as_ref() && self.package(kept).is_some()
    }

    fn uninstall(&mut self, name: &str) -> Result<(), String> {
        self.make(&Change::Uninstall { name })
    }

    fn install(&mut self, kept: &Kept) -> Result<(), String> {
        let manifest = self.package(kept).ok_or("its package is missing")?;
        let program = Program { manifest, key: KEY };
        match self.has(&kept.name) {
            true => self.make(&Change::Upgrade { program: &program, more: kept.more }),
            false => self.make(&Change::Install { program: &program, at_boot: false, allow: &[] }),
        }
    }
}

#[test]
fn a_program_listed_before_its_requirement_is_installed() {
    let packages = [program("a", 1, &[]), program("b", 0, &[("a", 1)]), program("c", 0, &[("b", 0)])];
    for order in [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]] {
        let index = order.iter().fold(Index::default(), |index, name| index.with(kept(name, u32::from(*name == "a"))));
        let mut system = small(&[], &packages);
        assert_eq!(replay(&index, &mut system), Vec::<String>::new(), "{order:?}");
        assert_eq!(system.versions(&["a", "b", "c"]), [Some(1), Some(0), Some(0)], "{order:?}");
    }
}

#[test]
fn an_upgrade_keeps_a_programs_position() {
    let index = Index::default().with(kept("a", 0)).with(kept("b", 0)).with(kept("a", 1));
    let names: Vec<&str> = index.kept.iter().map(|kept| kept.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn a_refusal_is_reported_once_and_stops_nothing_else() {
    let packages = [program("a", 0, &[("nobody", 0)]), program("b", 0, &[])];
    let index = Index::default().with(kept("a", 0)).with(kept("lost", 0)).with(kept("b", 0));
    let mut system = small(&[], &packages);
    let outcome = replay(&index, &mut system);
    assert_eq!(outcome.len(), 2, "{outcome:?}");
    assert!(
        outcome[0].contains("`a` is not installed") && outcome[0].contains(Code::RequirementMissing.text()),
        "{outcome:?}"
    );
    assert!(outcome[1].contains("`lost` is not installed"), "{outcome:?}");
    assert_eq!(system.versions(&["a", "b"]), [None, Some(0)]);
}

#[test]
fn an_uninstalled_program_stays_out_and_its_successor_is_installed() {
    let other = Manifest { publisher: "acme".into(), ..program("greet", 0, &[]) };
    let image = [program("greet", 3, &[])];
    let index = Index::default().without("greet", true);
    let mut system = small(&image, &[]);
    assert_eq!(replay(&index, &mut system), Vec::<String>::new());
    assert_eq!(system.versions(&["greet"]), [None]);
    // Of another publisher and older: not an upgrade of the image's own.
    let index = index.with(kept("greet", 0));
    let mut system = small(&image, std::slice::from_ref(&other));
    for start in ["the first", "a restart of the installer"] {
        assert_eq!(replay(&index, &mut system), Vec::<String>::new(), "{start}");
        assert_eq!(system.installed.manifest("greet"), Some(&other), "{start}");
    }
    // Once that is uninstalled too, the image's own stays out.
    let mut system = small(&image, &[]);
    assert_eq!(replay(&index.without("greet", true), &mut system), Vec::<String>::new());
    assert_eq!(system.versions(&["greet"]), [None]);
}

#[test]
fn a_program_that_others_require_is_not_uninstalled_at_start() {
    // The new system image has a program that requires the one uninstalled from the old image.
    let image = [program("greet", 0, &[]), program("party", 0, &[("greet", 0)])];
    let index = Index::default().without("greet", true).with(kept("greet", 2));
    let mut system = small(&image, &[Manifest { publisher: "acme".into(), ..program("greet", 2, &[]) }]);
    let outcome = replay(&index, &mut system);
    assert_eq!(outcome.len(), 2, "{outcome:?}");
    assert!(outcome[0].contains("`greet` is not taken out") && outcome[0].contains("I160"), "{outcome:?}");
    assert!(outcome[1].contains("still there"), "{outcome:?}");
    assert_eq!(system.versions(&["greet", "party"]), [Some(0), Some(0)]);
}

#[test]
fn a_program_uninstalled_after_its_dependant_was_upgraded_goes_again() {
    let image = [program("greet", 0, &[]), program("party", 0, &[("greet", 0)])];
    let index = Index::default().with(kept("party", 1)).without("greet", true);
    let mut system = small(&image, &[program("party", 1, &[])]);
    assert_eq!(replay(&index, &mut system), Vec::<String>::new());
    assert_eq!(system.versions(&["greet", "party"]), [None, Some(1)]);
}

#[test]
fn only_approved_upgrades_widen_the_reach() {
    let greedy = Manifest { permissions: vec![Permission::Power], ..program("greet", 1, &[]) };
    let image = [program("greet", 0, &[])];
    let mut system = small(&image, std::slice::from_ref(&greedy));
    let outcome = replay(&Index::default().with(kept("greet", 1)), &mut system);
    assert!(outcome.len() == 1 && outcome[0].contains(Code::MorePermissions.text()), "{outcome:?}");
    assert_eq!(system.versions(&["greet"]), [Some(0)]);
    let agreed = Index::default().with(Kept { more: true, ..kept("greet", 1) });
    assert_eq!(replay(&agreed, &mut system), Vec::<String>::new());
    assert_eq!(system.versions(&["greet"]), [Some(1)]);
}

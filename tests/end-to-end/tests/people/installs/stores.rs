//! The installer's store after a restart: order, consent, and tampering.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use end_to_end::{Doctor, Machine, built_system, key, reseal, reseal_system};
use manifest_model::{Manifest, Permission, Policy, Requirement, Version};

use super::{Trial, greeter, packed, told};
use crate::bad_input::hosted;

test_needs::needs!(E2fsprogs);

impl Trial {
    /// Writes to a file of the store, as if the disk were in another machine.
    fn put_into_store(&self, name: &str, bytes: &[u8]) {
        let file = self.folder.path().join("bytes");
        fs::write(&file, bytes).expect("a file");
        if self.store().iter().any(|(other, _)| other == name) {
            self.image.debugfs(&format!("rm system/{name}"));
        }
        self.image.debugfs(&format!("write {} system/{name}", file.display()));
    }
}

#[test]
fn damaged_stores_are_told_of_and_stop_nothing() {
    let trial = Trial::new();
    trial.run("install one.package").succeeded();
    trial.put_into_store("greeter-1.0.0.package", b"nonsense");
    let run = trial.run("greeter");
    run.refused(&["greeter"]);
    // It is logged at boot.
    assert!(run.errors.contains("`greeter` is not installed: greeter-1.0.0.package is damaged"), "{run}");
    told(&trial.run("verify"), &["I224", "greeter-1.0.0.package is damaged"]);
    let run = trial.run("install one.package; greeter");
    assert!(run.text().contains("this is 1.0.0") && run.errors.contains("is damaged"), "{run}");
    trial.put_into_store("installed", b"nonsense");
    trial.run("greeter").refused(&["greeter"]);
    let run = trial.run("install one.package; greeter; verify");
    assert!(run.text().contains("its file `installed` is damaged") && run.text().contains("this is 1.0.0"), "{run}");
    // Only this file is removed, no package.
    trial.image.debugfs("rm system/installed");
    let said = trial.run("install one.package; greeter").succeeded();
    assert!(said.contains("kept in /fs/disk0/system"), "{said}");
    let before = trial.store();
    trial.image.debugfs("rm system/installed");
    trial.run("uninstall greet").succeeded();
    let names: Vec<String> = trial.store().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, before.into_iter().map(|(name, _)| name).collect::<Vec<_>>());
}

#[test]
fn nobody_but_the_installer_writes_into_the_store() {
    let trial = Trial::new();
    trial.run("install one.package").succeeded();
    let before = trial.store();
    for command in [
        "echo 'installed 1' > system/installed",
        "echo more >> system/installed",
        "cp two.package system/greeter-1.1.0.package",
        "rm system/installed",
        "rm system/greeter-1.0.0.package",
        "mv system/greeter-1.0.0.package gone.package",
        "mkdir system/more",
        "rmdir system",
    ] {
        let run = trial.run(command);
        assert!(matches!(run.status, Some(1..=127)), "{command}: {run}");
        run.orderly();
    }
    assert_eq!(trial.store(), before);
    let said = trial.run("greeter; cat system/installed; acl -e system").succeeded();
    for part in ["this is 1.0.0", "program greeter 1.0.0", "allow all installer.singularity"] {
        assert!(said.contains(part), "`{part}` is not in {said}");
    }
    trial.image.check();
}

/// The folder is created before the installer does, or is replaced.
#[test]
fn what_others_may_have_made_is_no_store() {
    let trial = Trial::new();
    let list = "mkdir system; echo 'installed 1' > system/installed; echo 'without greet' >> system/installed; \
                echo 'end 1' >> system/installed; cp one.package system/greeter-1.0.0.package";
    trial.run(list).succeeded();
    let before = trial.store();
    let run = trial.run("greet Ada; greeter");
    assert!(run.text().contains("Hello, Ada."), "what others wrote took a program out: {run}");
    assert!(run.errors.contains("/fs/disk0/system: other programs may write to it"), "{run}");
    let run = trial.run("install one.package; greeter");
    assert!(
        run.text().contains("lasts until the machine restarts: /fs/disk0/system: other programs may write"),
        "{run}"
    );
    assert_eq!(trial.store(), before);
    assert!(trial.run("verify").text().contains("/fs/disk0/system is ignored"));
    // The same if the folder has a list that does not keep others out.
    trial.run("setacl system 'allow all installer.singularity' 'allow all ..shell.singularity' 'allow all **'");
    assert!(trial.run("greet Ada").errors.contains("other programs may write to it"));
    // As its message suggests.
    trial.run("setacl system --none; rm system/installed; rm system/greeter-1.0.0.package; rmdir system");
    let said = trial.run("install one.package").succeeded();
    assert!(said.contains("kept in /fs/disk0/system"), "{said}");
    // An empty one is taken over.
    trial.run("uninstall greeter").succeeded();
    let trial = Trial::new();
    trial.run("mkdir system").succeeded();
    assert!(trial.run("install one.package").succeeded().contains("kept in /fs/disk0/system"));
    assert_eq!(trial.run("greeter").succeeded(), "this is 1.0.0\n");
}

#[test]
fn what_was_agreed_to_counts_after_a_restart_and_nothing_else() {
    let trial = Trial::new();
    trial.run("install one.package; upgrade --more greedy.package").succeeded();
    assert_eq!(trial.run("greeter").succeeded(), "this is 1.2.0\n");
    // An upgrade of one of the image's own.
    let mut manifest = Manifest { name: "greet".into(), permissions: vec![Permission::Power], ..greeter("1.3.0") };
    manifest.summary = "greets with more".into();
    let trial = Trial::with(&hosted(), &[("greet.package", packed(manifest, key()))]);
    told(&trial.run("upgrade greet.package"), &["I200"]);
    trial.run("upgrade --more greet.package").succeeded();
    assert_eq!(trial.run("greet").succeeded(), "this is 1.3.0\n");
    let list = trial.store().into_iter().find(|(name, _)| name == "installed").expect("a list").1;
    let list = String::from_utf8(list).expect("it is text");
    assert_eq!(list, "installed 1\nprogram greet 1.3.0 more\nend 1\n");
    // There is no consent to this list.
    trial.put_into_store("installed", list.replace(" more", "").as_bytes());
    let run = trial.run("greet Ada");
    assert!(run.text().contains("Hello, Ada.") && run.errors.contains("I200"), "{run}");
}

/// A requires B, and precedes it in the list.
#[test]
fn programs_come_back_in_whatever_order_they_were_installed() {
    let least = |minor| Version { major: 1, minor, patch: 0 };
    let requiring = |version, minor| {
        let requires = vec![Requirement { program: "greeter".into(), least: least(minor) }];
        packed(Manifest { name: "party".into(), requires, ..greeter(version) }, key())
    };
    let alone = packed(Manifest { name: "party".into(), ..greeter("1.0.0") }, key());
    let files = [("alone.package", alone), ("party.package", requiring("1.2.0", 1))];
    let trial = Trial::with(&hosted(), &files);
    trial.run("install alone.package; install one.package; upgrade two.package; upgrade party.package").succeeded();
    let run = trial.run("party; greeter");
    assert_eq!(run.succeeded(), "this is 1.2.0\nthis is 1.1.0\n");
    told(&trial.run("uninstall greeter"), &["I160", "nothing was changed"]);
}

#[test]
fn a_program_of_the_image_does_not_come_back_in_place_of_its_successor() {
    let other = packed(Manifest { name: "greet".into(), publisher: "somebody".into(), ..greeter("0.0.1") }, key());
    let trial = Trial::with(&hosted(), &[("other.package", other)]);
    told(&trial.run("install other.package"), &["I103"]);
    trial.run("uninstall greet; install other.package").succeeded();
    assert_eq!(trial.run("greet").succeeded(), "this is 0.0.1\n");
    trial.run("uninstall greet").succeeded();
    trial.run("greet").refused(&["greet"]);
}

/// The disk moves to a machine whose system image requires an uninstalled program.
#[test]
fn what_the_system_needs_is_not_taken_out_by_what_was_kept() {
    let trial = Trial::new();
    trial.run("uninstall greet").succeeded();
    let needing = reseal(
        &hosted(),
        "echo",
        &Doctor::Resealed(&|manifest, _| {
            let least = Version { major: 0, minor: 1, patch: 0 };
            manifest.requires.push(Requirement { program: "greet".into(), least });
        }),
    );
    fs::write(trial.system(), needing).expect("a system image");
    let run = trial.run("greet Ada");
    assert!(run.text().contains("Hello, Ada."), "{run}");
    assert!(run.errors.contains("`greet` is not taken out") && run.errors.contains("I160"), "{run}");
}

/// In a system that accepts unsigned packages none of them runs, not even a script, which is not a process.
#[test]
fn a_script_that_nobody_has_signed_does_not_run() {
    let quarantine = |system: &[u8]| reseal_system(system, &|system| system.trust.policy = Policy::QuarantineUnsigned);
    let unsigned = package_build::build_unsigned(greeter("1.1.0"), b"", b"").expect("a package");
    let fresh = Manifest { name: "fresh".into(), ..greeter("1.0.0") };
    let fresh = package_build::build_unsigned(fresh, b"", b"").expect("a package");
    let trial = Trial::with(&quarantine(&hosted()), &[("bare.package", unsigned), ("fresh.package", fresh)]);
    trial.run("install one.package").succeeded();
    told(&trial.run("upgrade bare.package"), &["I110", "nothing was changed"]);
    assert_eq!(trial.run("greeter").succeeded(), "this is 1.0.0\n");
    let run = trial.run("install fresh.package; fresh");
    assert!(!run.text().contains("this is 1.0.0"), "{run}");
    run.refused(&["fresh", "nobody has signed", "quarantine"]);
    trial.run("fresh").refused(&["fresh", "quarantine"]);
    trial.run("fresh | cat").refused(&["fresh", "quarantine"]);
    trial.run("fresh &").refused(&["fresh", "quarantine"]);
    // A program of the system image itself.
    let image = reseal(&hosted(), "greet", &Doctor::Unsigned);
    fs::write(trial.system(), quarantine(&image)).expect("a system image");
    trial.run("greet Ada").refused(&["greet", "quarantine"]);
}

/// In a system with roles, the mount point's list protects the parent folder from users who may not install.
#[test]
fn who_may_not_change_programs_changes_no_store() {
    let login = fs::read(built_system("login")).expect("a system image");
    let trial = Trial::with(&login, &[]);
    let as_person = |name: &str, commands: &str| {
        let machine = Machine::new().system(trial.system()).disk(trial.image.path());
        let mut command = machine.command(Some(commands));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the machine starts");
        let mut input = child.stdin.take().expect("it has input");
        input.write_all(format!("{name}\nsingularity\n").as_bytes()).expect("it takes its input");
        drop(input);
        let output = child.wait_with_output().expect("it ends");
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat()
    };
    let said = as_person("admin", "install /fs/disk0/one.package; greeter");
    assert!(said.contains("kept in /fs/disk0/system") && said.contains("this is 1.0.0"), "{said}");
    let before = trial.store();
    let attempts = [
        "echo 'installed 1' > /fs/disk0/system/installed",
        "mv /fs/disk0/system /fs/disk0/other",
        "rmdir /fs/disk0/system",
        "mkdir /fs/disk0/mine",
        "setacl /fs/disk0/system --none",
        "setacl /fs/disk0 'allow all **'",
        "uninstall greeter",
        "uninstall greet",
        "install /fs/disk0/two.package",
    ];
    for attempt in attempts {
        let said = as_person("guest", &format!("{attempt} && echo it was let"));
        assert!(said.contains("may not") && !said.contains("it was let"), "{attempt}: {said}");
    }
    assert_eq!(trial.store(), before);
    let said = as_person("guest", "greeter; greet Ada");
    assert!(said.contains("this is 1.0.0\n") && said.contains("Hello, Ada."), "{said}");
    let said = as_person("admin", "uninstall greeter && greeter");
    assert!(said.contains("uninstalled") && said.contains("no such program"), "{said}");
    trial.image.check();
}

//! Source and compiled form share one set of rules: a system manifest that violates one is refused with its place in
//! the source, and the same system without its source with the same code and message.

mod known;

use std::fs;
use std::path::Path;

use install::Code as Rule;
use known::Known;
use manifest::{Diagnostics, Kind, SystemFile};
use manifest_model::{Bind, Manifest, Setting, SystemManifest, Value};

const GOOD: &str = r#"
[system]
name = "fixture"
root = "root"
primary = "store"
installed = ["left", "right"]

[[program]]
name = "disk"

[[program]]
name = "files"
instance = "store"
parameters = { cache = 5, mode = "r" }
requires = ["disk"]
endpoints = { disk = "/dev/disk0" }

[[program]]
name = "disk"
instance = "spare"
devices = { disk = "disk1" }
provides = { "/dev/disk0" = "/dev/disk1" }
after = ["disk"]

[[program]]
name = "serial"

[[bind]]
who = "..*.singularity"
path = "/**"

[[deny]]
who = "right.singularity"
reach = "/dev/**"

[[domain]]
name = "apart"
kind = "ring-3"
who = ["left.singularity"]
categories = ["console"]
"#;

/// A modification of the source, and of the compiled system.
struct Fault {
    rule: Rule,
    /// Replaced part of the source.
    from: &'static str,
    to: &'static str,
    /// The line and the text that the caret is under.
    shown: (&'static str, &'static str),
    spoil: fn(&mut SystemManifest),
}

const FAULTS: &[Fault] = &[
    Fault {
        rule: Rule::ProgramMissing,
        from: "\"right\"]",
        to: "\"dog\"]",
        shown: ("installed = [\"left\", \"dog\"]", "\"dog\""),
        spoil: |system| system.installed[1] = "dog".into(),
    },
    Fault {
        rule: Rule::PrimaryMissing,
        from: "primary = \"store\"",
        to: "primary = \"dog\"",
        shown: ("primary = \"dog\"", "\"dog\""),
        spoil: |system| system.primary = Some("dog".into()),
    },
    Fault {
        rule: Rule::InstanceMissing,
        from: "after = [\"disk\"]",
        to: "after = [\"disk\", \"dog\"]",
        shown: ("after = [\"disk\", \"dog\"]", "\"dog\""),
        spoil: |system| system.instances[2].after.push("dog".into()),
    },
    Fault {
        rule: Rule::BootCycle,
        from: "after = [\"disk\"]",
        to: "after = [\"spare\"]",
        shown: ("instance = \"spare\"", "\"spare\""),
        spoil: |system| system.instances[2].after[0] = "spare".into(),
    },
    Fault {
        rule: Rule::ParameterMissing,
        from: "{ cache = 5, mode = \"r\" }",
        to: "{ mode = \"r\" }",
        shown: ("instance = \"store\"", "\"store\""),
        spoil: |system| drop(system.instances[1].parameters.remove(0)),
    },
    Fault {
        rule: Rule::SettingType,
        from: "cache = 5",
        to: "cache = true",
        shown: ("parameters = { cache = true, mode = \"r\" }", "true"),
        spoil: |system| system.instances[1].parameters[0].setting = Setting::Values(vec![Value::Boolean(true)]),
    },
    Fault {
        rule: Rule::SettingType,
        from: "mode = \"r\"",
        to: "mode = [\"r\", \"w\"]",
        shown: ("parameters = { cache = 5, mode = [\"r\", \"w\"] }", "[\"r\", \"w\"]"),
        spoil: |system| {
            let values = ["r", "w"].map(|text| Value::Text(text.into()));
            system.instances[1].parameters[1].setting = Setting::Values(values.into());
        },
    },
    Fault {
        rule: Rule::SettingType,
        from: "mode = \"r\"",
        to: "mode = \"r\\u0000\"",
        shown: ("parameters = { cache = 5, mode = \"r\\u0000\" }", "\"r\\u0000\""),
        spoil: |system| system.instances[1].parameters[1].setting = Setting::Values(vec![Value::Text("r\0".into())]),
    },
    Fault {
        rule: Rule::DeviceTaken,
        from: "disk = \"disk1\"",
        to: "disk = \"disk\"",
        shown: ("devices = { disk = \"disk\" }", "\"disk\""),
        spoil: |system| system.instances[2].devices[0] = "disk".into(),
    },
    Fault {
        rule: Rule::PathTaken,
        from: "= \"/dev/disk1\"",
        to: "= \"/dev/disk0\"",
        shown: ("provides = { \"/dev/disk0\" = \"/dev/disk0\" }", "\"/dev/disk0\""),
        spoil: |system| system.instances[2].provides[0] = "/dev/disk0".into(),
    },
    Fault {
        rule: Rule::NoProvider,
        from: "{ disk = \"/dev/disk0\" }",
        to: "{ disk = \"/dev/disk9\" }",
        shown: ("endpoints = { disk = \"/dev/disk9\" }", "\"/dev/disk9\""),
        spoil: |system| system.instances[1].endpoints[0] = Some("/dev/disk9".into()),
    },
    Fault {
        rule: Rule::BindRefused,
        from: "path = \"/**\"",
        to: "path = \"/fs/**\"",
        shown: ("endpoints = { disk = \"/dev/disk0\" }", "\"/dev/disk0\""),
        spoil: |system| system.binds[0].path = "/fs/**".into(),
    },
    // An installed driver claims its registers even if it is not started.
    Fault {
        rule: Rule::PortsOverlap,
        from: "\"right\"]",
        to: "\"modem\"]",
        shown: ("installed = [\"left\", \"modem\"]", "\"modem\""),
        spoil: |system| system.installed[1] = "modem".into(),
    },
    Fault {
        rule: Rule::BadRule,
        from: "[[deny]]",
        to: "[[bind]]\nwho = \"the shell\"\npath = \"/\"\n\n[[deny]]",
        shown: ("who = \"the shell\"", "\"the shell\""),
        spoil: |system| system.binds.push(Bind { who: "the shell".into(), path: "/".into() }),
    },
    Fault {
        rule: Rule::BadDeny,
        from: "reach = \"/dev/**\"",
        to: "reach = \"dev\"",
        shown: ("reach = \"dev\"", "\"dev\""),
        spoil: |system| system.denies[0].reach = "dev".into(),
    },
    Fault {
        rule: Rule::BadDomain,
        from: "who = [\"left.singularity\"]",
        to: "who = [\"*.singularity\", \"left\"]",
        shown: ("who = [\"*.singularity\", \"left\"]", "\"left\""),
        spoil: |system| system.domains[0].who = vec!["*.singularity".into(), "left".into()],
    },
    Fault {
        rule: Rule::BadDomain,
        from: "[[deny]]",
        to: "[[domain]]\nname = \"apart\"\nkind = \"ring-3\"\n\n[[deny]]",
        shown: ("name = \"apart\"", "\"apart\""),
        spoil: |system| system.domains.push(system.domains[0].clone()),
    },
];

fn programs() -> Vec<Manifest> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/programs");
    let files = fs::read_dir(folder).expect("the folder of fixtures is there");
    let text = |file: std::io::Result<fs::DirEntry>| {
        fs::read_to_string(file.expect("an entry").path()).expect("a fixture can be read")
    };
    let read = |text: String| manifest::program("program.toml", &text, Some(&Known)).map(|program| program.manifest);
    files.map(text).map(|text| read(text).unwrap_or_else(|errors| panic!("{errors}"))).collect()
}

fn read(text: String, programs: &[Manifest]) -> Result<SystemManifest, Diagnostics> {
    let programs: Vec<&Manifest> = programs.iter().collect();
    manifest::system(SystemFile { file: "fixture.toml".into(), text }, &|_| None, &programs)
}

/// Checks it as an installer does.
fn judged(system: &SystemManifest, programs: &[Manifest]) -> Vec<install::Finding> {
    let find = |name: &str| programs.iter().find(|manifest| manifest.name == name);
    let programs: Vec<&Manifest> = system.programs().into_iter().filter_map(find).collect();
    install::system_findings(system, &programs)
}

#[test]
fn a_system_is_refused_alike_with_its_source_and_without() {
    let programs = programs();
    let good = read(GOOD.into(), &programs).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(judged(&good, &programs), []);
    for Fault { rule, from, to, shown: (line, caret), spoil } in FAULTS {
        let text = GOOD.replacen(from, to, 1);
        let errors = read(text.clone(), &programs).expect_err("the source is refused");
        let mut compiled = good.clone();
        spoil(&mut compiled);
        let compiled = SystemManifest::decode(&compiled.encode()).expect("it was encoded");
        let findings = judged(&compiled, &programs);
        let (items, found): (Vec<_>, Vec<_>) = (
            errors.items.iter().map(|item| (item.code, item.message.as_str())).collect(),
            findings.iter().map(|finding| (Kind::Rule(finding.code), finding.what.as_str())).collect(),
        );
        assert_eq!((items.len(), items[0].0), (1, Kind::Rule(*rule)), "{errors}");
        assert_eq!(items, found, "{errors}");
        let span = errors.items[0].labels[0].span;
        assert_eq!((span.file, &text[span.start..span.end]), (0, *caret), "{errors}");
        let number = text[..span.start].lines().count();
        assert_eq!(text.lines().nth(number - 1), Some(*line), "{errors}");
        let rendered = errors.to_string();
        for part in [format!("error[{}]: ", rule.text()), format!(" --> fixture.toml:{number}:")] {
            assert!(rendered.contains(&part), "{part}\n{rendered}");
        }
    }
}

/// Faults of a base are reported at their places in it.
#[test]
fn a_fault_of_the_base_is_shown_there() {
    let programs = programs();
    let programs: Vec<&Manifest> = programs.iter().collect();
    let base = |name: &str| {
        (name == "base").then(|| SystemFile { file: "base.toml".into(), text: GOOD.replace("\"/**\"", "\"/fs/**\"") })
    };
    let text = "[system]\nname = \"mine\"\nbase = \"base\"\n\n[[program]]\nname = \"mouse\"\n";
    let errors = manifest::system(SystemFile { file: "mine.toml".into(), text: text.into() }, &base, &programs)
        .expect_err("nothing may be bound, and two drivers have one interrupt");
    let shown: Vec<(&str, &str)> = errors
        .items
        .iter()
        .map(|item| {
            let span = item.labels[0].span;
            let file = &errors.files[span.file];
            (item.code.text(), &file.text[span.start..span.end])
        })
        .collect();
    assert_eq!(shown, [("I144", "\"mouse\""), ("I145", "\"mouse\""), ("I137", "\"/dev/disk0\"")], "{errors}");
}

/// One [[program]] with many instances is refused once.
#[test]
fn a_fault_of_counted_instances_is_shown_once() {
    let programs = programs();
    let text = "[system]\nname = \"many\"\nroot = \"root\"\n\n[[program]]\nname = \"files\"\ninstance = \"files#\"\n\
                count = 200\nprovides = { \"/fs/disk0\" = \"/fs/disk#\" }\n";
    let errors = read(text.into(), &programs).expect_err("a value is missing, and a rule");
    let codes: Vec<&str> = errors.items.iter().map(|item| item.code.text()).collect();
    assert_eq!(codes, ["I184", "I137"], "{errors}");
}

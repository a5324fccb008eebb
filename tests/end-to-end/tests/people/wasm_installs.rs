//! WebAssembly packages: compiled, proven and run by a system that has no other compiler than its own.

use std::time::Duration;

use end_to_end::{Doctor, Format, Image, Machine, Run, built_system, key, repository, reseal, reseal_system};
use manifest_model::{Bounds, Code, Manifest};
use package::{Delivery, Package};
use package_build::Signer;
use tempfile::TempDir;

test_needs::needs!(E2fsprogs);

/// Time of a run that compiles, on a busy host.
const LIMIT: Duration = Duration::from_secs(300);

/// Waits until all that is kept was proven, which a slow host may not do before the shell starts.
const PROVEN: &str = "verify > /fs/disk0/checked";

/// A module in the binary format: magic, version, sections.
fn module(sections: &[(u8, &[u8])]) -> Vec<u8> {
    let mut bytes = b"\0asm\x01\0\0\0".to_vec();
    for (kind, content) in sections {
        bytes.push(*kind);
        length(&mut bytes, content.len());
        bytes.extend_from_slice(content);
    }
    bytes
}

fn length(bytes: &mut Vec<u8>, mut value: usize) {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            return bytes.push(low);
        }
        bytes.push(low | 0x80);
    }
}

/// A module whose `_start` has this body, behind an empty list of locals and before its end.
fn with_body(body: &[u8]) -> Vec<u8> {
    let mut code = Vec::new();
    length(&mut code, body.len() + 2);
    code.push(0);
    code.extend_from_slice(body);
    code.push(0x0b);
    code.insert(0, 1);
    module(&[(1, &[1, 0x60, 0, 0]), (3, &[1, 0]), (7, b"\x01\x06_start\0\0"), (10, &code)])
}

/// A system that is installed into, and its disk.
pub struct Trial {
    folder: TempDir,
    disk: Image,
}

/// The system's own program of this name.
pub fn program_of(system: &[u8], name: &str) -> Manifest {
    let system = package_check::verify_system(system).expect("it is whole");
    let mut packages = system.packages.iter().map(|bytes| Package::parse(bytes).expect("a package"));
    packages.find(|package| package.manifest.name == name).expect("the system has the program").manifest
}

/// A package of a module, by the name of a file.
fn packed(system: &[u8], name: &str, template: &str, module: &[u8]) -> Vec<u8> {
    packed_with(Bounds::Guarded, system, name, template, module)
}

fn packed_with(bounds: Bounds, system: &[u8], name: &str, template: &str, module: &[u8]) -> Vec<u8> {
    let code = Code::Wasm { digest: [0; 32], template: template.into(), bounds };
    let manifest = Manifest { name: name.into(), code, ..program_of(system, "wasm-hello") };
    package_build::build_unchecked(manifest, b"", module, &Signer::root(key())).expect("a package")
}

impl Trial {
    /// A system with the tests' key as its root, and packages of these modules on a disk.
    fn new(modules: &[(&str, Vec<u8>)]) -> Trial {
        let system = std::fs::read(built_system("wasm")).expect("a system image");
        let mut packages: Vec<(&str, Vec<u8>)> =
            modules.iter().map(|(name, module)| (*name, packed(&system, name, "wasi", module))).collect();
        packages.push(("no-template", packed(&system, "no-template", "nothing", &module(&[]))));
        Trial::with(&system, &packages)
    }

    /// A system, and these packages on its disk.
    pub fn with(system: &[u8], packages: &[(&str, Vec<u8>)]) -> Trial {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("trial.system"), reseal_system(system, &|_| {})).expect("a system image");
        let files = folder.path().join("files");
        std::fs::create_dir(&files).expect("a folder");
        for (name, package) in packages {
            std::fs::write(files.join(format!("{name}.package")), package).expect("a file");
        }
        let disk = Image::of(&files, Format { mebibytes: 32, ..Format::default() });
        Trial { folder, disk }
    }

    /// Runs commands in the folder of the packages.
    pub fn run(&self, commands: &str) -> Run {
        let machine = Machine::new().system(self.folder.path().join("trial.system"));
        machine.disk(self.disk.path()).limit(LIMIT).run(&format!("cd /fs/disk0; {commands}"))
    }

    /// A file of the store.
    fn kept(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.disk.contents().path().join("system").join(name)).ok()
    }
}

fn hello() -> Vec<u8> {
    std::fs::read(repository().join("examples/wasm-hello/wasm-hello.wasm")).expect("a module")
}

#[test]
fn a_module_is_installed_runs_and_is_taken_out() {
    let trial = Trial::new(&[("guest", hello())]);
    trial.run("guest").refused(&["guest"]);
    let dry = trial.run("install --dry-run guest.package").succeeded();
    assert!(dry.contains("module, which is compiled and proven when it is installed"), "{dry}");
    let report = trial.run("install guest.package; guest; explain guest; ps").succeeded();
    for part in
        ["kept in /fs/disk0/system", "installed\n", "hello from wasm\n", "a WebAssembly module of the template `wasi`"]
    {
        assert!(report.contains(part), "`{part}` is not in:\n{report}");
    }
    assert!(!report.contains("compiler") && !report.contains("verifier"), "both have ended:\n{report}");
    let image = trial.kept("guest-0.1.0.image").expect("the image is kept");
    let restarted = trial.run(&format!("{PROVEN}; guest; verify"));
    restarted.orderly();
    assert!(restarted.text().starts_with("hello from wasm\n"), "{restarted}");
    assert!(restarted.text().contains("`guest` as it is kept"), "{restarted}");
    assert_eq!(trial.kept("guest-0.1.0.image").as_ref(), Some(&image), "what is whole stays");

    // A kept image that was changed is noticed, and made again: the same bytes.
    let mut changed = image.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 0x55;
    for (spoilt, what) in
        [(changed, "changed"), (image[..image.len() - 9].to_vec(), "shortened"), (Vec::new(), "emptied")]
    {
        let file = trial.folder.path().join("spoilt");
        std::fs::write(&file, spoilt).expect("a file");
        trial.disk.debugfs("rm /system/guest-0.1.0.image");
        trial.disk.debugfs(&format!("write {} /system/guest-0.1.0.image", file.display()));
        let run = trial.run(&format!("{PROVEN}; guest"));
        assert_eq!(run.text(), "hello from wasm\n", "{what}: {run}");
        assert_eq!(trial.kept("guest-0.1.0.image").as_ref(), Some(&image), "{what}");
    }
    trial.run("uninstall guest").succeeded();
    trial.run("guest").refused(&["guest"]);
    assert_eq!(trial.kept("guest-0.1.0.image"), None);
    trial.disk.check();
}

/// A manifest's bounds are those of the code that a running system compiles, as `native-verifier` would find.
#[test]
fn a_package_is_compiled_with_the_bounds_of_its_manifest() {
    let system = std::fs::read(built_system("wasm")).expect("a system image");
    let both = [("guarded", Bounds::Guarded), ("checked", Bounds::Checked)];
    let packages = both.map(|(name, bounds)| (name, packed_with(bounds, &system, name, "wasi", &hello())));
    let trial = Trial::with(&system, &packages);
    let report = trial
        .run("install guarded.package; install checked.package; guarded; checked; explain checked; explain guarded")
        .succeeded();
    assert_eq!(report.matches("hello from wasm\n").count(), 2, "{report}");
    for (name, _) in both {
        assert!(report.contains(&format!("with {name} bounds")), "{report}");
    }
    let text = both.map(|(name, _)| trial.kept(&format!("{name}-0.1.0.image")).expect("the image is kept").len());
    assert!(text[1] > text[0], "comparisons are code: {text:?} bytes");
}

/// The compiler of the host and that of the system make the same image.
#[test]
fn host_and_system_compile_to_the_same_bytes() {
    let trial = Trial::new(&[("guest", hello())]);
    trial.run("install guest.package").succeeded();
    let kept = trial.kept("guest-0.1.0.image").expect("the image is kept");
    // Behind the magic and the digest.
    let kept = &kept[40..];
    let system = std::fs::read(built_system("wasm")).expect("a system image");
    let system = package_check::verify_system(&system).expect("it is whole");
    let packages = system.packages.iter().map(|bytes| Delivery::parse(bytes).expect("a package"));
    let built = packages.into_iter().find(|delivery| delivery.package.manifest.name == "wasm-hello").expect("built");
    assert!(kept == built.image(), "{} and {} bytes", kept.len(), built.image().len());
}

/// Deeply nested blocks.
fn nested(depth: usize) -> Vec<u8> {
    with_body(&[[0x02, 0x40].repeat(depth), vec![0x0b; depth]].concat())
}

#[test]
fn a_module_that_cannot_be_compiled_is_refused_in_a_sentence() {
    let import = module(&[
        (1, &[1, 0x60, 0, 0]),
        (2, b"\x01\x03env\x07missing\0\0"),
        (3, &[1, 0]),
        (7, b"\x01\x06_start\0\x01"),
        (10, &[1, 2, 0, 0x0b]),
    ]);
    let huge = with_body(&[0x41, 0, 0x1a].repeat(400_000));
    let bad = [
        ("cut-short", hello()[..60].to_vec(), "I069"),
        ("ill-typed", with_body(&[0x6a]), "I069"),
        ("strange-import", import, "missing"),
        ("huge-function", huge, "bytes of a function"),
        ("text", b"(module)".to_vec(), "I223"),
        ("deep", nested(200_000), "I069"),
    ];
    let modules: Vec<(&str, Vec<u8>)> = bad.iter().map(|(name, module, _)| (*name, module.clone())).collect();
    let trial = Trial::new(&modules);
    let before = trial.run("sysinfo").counters()[0].clone();
    let mut commands = String::new();
    for (name, ..) in bad.iter().map(|(name, _, part)| (name, part)).chain([(&"no-template", &"I067")]) {
        commands.push_str(&format!("echo == {name}; install {name}.package; "));
    }
    let run = trial.run(&format!("{commands} echo == end; ls system; sysinfo"));
    run.orderly();
    let text = run.text();
    for (name, part) in bad.iter().map(|(name, _, part)| (*name, *part)).chain([("no-template", "I067")]) {
        let report = text.split(&format!("== {name}\n")).nth(1).and_then(|rest| rest.split("== ").next());
        let report = report.unwrap_or_else(|| panic!("no report of {name}: {run}"));
        let refused: Vec<&str> = report.lines().filter(|line| line.starts_with("refused ")).collect();
        assert_eq!(refused.len(), 1, "{name}:\n{report}");
        assert!(refused[0].contains(part), "{name}: `{part}` is not in:\n{report}");
        assert!(!report.contains("panicked"), "{name}:\n{report}");
    }
    let after = run.counters()[0].clone();
    for name in ["processes", "threads", "hardware domains"] {
        assert_eq!(after.get(name), before.get(name), "{name}: {run}");
    }
    assert_eq!(trial.kept("installed"), None, "nothing is kept");
    trial.disk.check();
}

/// SQLite, which takes seconds to compile.
fn sqlite() -> Vec<u8> {
    std::fs::read(repository().join("ports/sqlite/sqlite.wasm")).expect("a module")
}

/// Compiler or verifier with too little memory: one sentence, and nothing is left.
#[test]
fn a_compiler_without_memory_leaves_nothing() {
    let system = std::fs::read(built_system("wasm")).expect("a system image");
    let module = packed(&system, "guest", "wasi", &hello());
    for program in ["compiler", "verifier"] {
        let starve = |manifest: &mut Manifest, _: &mut Vec<u8>| manifest.quota.memory_kib = 256;
        let starved = reseal(&system, program, &Doctor::Resealed(&starve));
        let trial = Trial::with(&starved, &[("guest", module.clone())]);
        let run = trial.run("install guest.package");
        run.orderly();
        let text = run.text();
        let refused: Vec<&str> = text.lines().filter(|line| line.starts_with("refused ")).collect();
        assert_eq!(refused.len(), 1, "{program}: {run}");
        assert!(refused[0].contains(&format!("`{program}` ended: its memory is too small")), "{run}");
        assert_eq!(trial.kept("installed"), None, "{program}");
        trial.disk.check();
    }
}

/// A compiler that is killed.
#[test]
#[ignore = "long"]
fn a_compiler_that_is_killed_leaves_nothing() {
    let trial = Trial::new(&[("database", sqlite())]);
    // The moment at which it is there depends on the host.
    let tries = "kill compiler 2> errors || sleep 20ms; ".repeat(300);
    let run = trial.run(&format!("install database.package > report & {tries} wait; cat report; ps"));
    run.orderly();
    assert!(run.text().contains("`compiler` ended: "), "{run}");
    assert!(run.text().contains("nothing was changed"), "{run}");
    assert_eq!(trial.kept("installed"), None);
    trial.disk.check();
}

/// An image that is proven, but of another module or another template, is not taken for the program's.
#[test]
fn a_kept_image_of_another_program_is_noticed() {
    let system = std::fs::read(built_system("wasm")).expect("a system image");
    let silent = with_body(&[]);
    let packages =
        [("guest", packed(&system, "guest", "wasi", &hello())), ("silent", packed(&system, "silent", "wasi", &silent))];
    let trial = Trial::with(&system, &packages);
    trial.run("install guest.package; install silent.package").succeeded();
    let image = trial.kept("guest-0.1.0.image").expect("it is kept");
    let other = trial.folder.path().join("other");
    std::fs::write(&other, trial.kept("silent-0.1.0.image").expect("it is kept")).expect("a file");
    trial.disk.debugfs("rm /system/guest-0.1.0.image");
    trial.disk.debugfs(&format!("write {} /system/guest-0.1.0.image", other.display()));
    let run = trial.run(&format!("{PROVEN}; guest"));
    assert_eq!(run.text(), "hello from wasm\n", "{run}");
    assert_eq!(trial.kept("guest-0.1.0.image"), Some(image));
    trial.disk.check();
}

/// Compiles SQLite, of 1.1 MB, as a running system sees it.
#[test]
#[ignore = "long"]
fn sqlite_is_installed_within_a_running_system() {
    let trial = Trial::new(&[("database", sqlite())]);
    let run = trial.run("time install database.package; database a.db 'select 6 * 7'");
    run.orderly();
    assert!(run.text().ends_with("42\n"), "{run}");
    println!("{run}");
}

//! Invalid contracts, manifests, system manifests, packages and system images: one clear message, a non-zero status,
//! and nothing is started.

use std::process::Command;

use end_to_end::{BUILD_LIMIT, Doctor, Machine, Run, finish, repository, reseal, sing, system_image};
use manifest_model::Manifest;

#[track_caller]
fn tool(words: &[&str]) -> Run {
    let mut command = Command::new(sing());
    command.args(words).current_dir(repository());
    finish(command, &format!("sing {}", words.join(" ")), BUILD_LIMIT)
}

/// `sing check` of a file with this text.
#[track_caller]
fn check(name: &str, text: &str) -> Run {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("a file can be written");
    tool(&["check", &path.display().to_string()])
}

#[track_caller]
fn mistakes(run: &Run, parts: &[&str]) {
    run.orderly();
    assert!(matches!(run.status, Some(1..=100)), "{run}");
    let said = format!("{}{}", run.text(), run.errors);
    for part in parts {
        assert!(said.contains(part), "nothing is said of `{part}`:\n{run}");
    }
}

fn file(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).expect("a file of the repository")
}

#[test]
fn everything_in_the_repository_is_right() {
    let run = tool(&["check"]);
    assert_eq!(run.status, Some(0), "{run}");
}

#[test]
fn a_contract_with_errors() {
    let unknown = "contract C { out message Hello(); state START: one { Hello! -> NOWHERE; } }";
    mistakes(&check("c.contract", unknown), &["NOWHERE", "c.contract:1"]);
    mistakes(&check("c.contract", "contract C {"), &["c.contract:1"]);
    mistakes(&check("c.contract", "contract C { in message M(strange x); }"), &["strange", "c.contract:1"]);
    mistakes(&check("c.contract", "\0\u{7f}\u{202e}"), &["c.contract"]);
}

#[test]
fn a_manifest_with_errors() {
    let good = file("apps/text/echo/manifest.toml");
    mistakes(&check("manifest.toml", &good.replace("name = \"echo\"", "nmae = \"echo\"")), &["nmae", "manifest.toml"]);
    mistakes(&check("manifest.toml", &good.replace("abi = 1", "abi = \"one\"")), &["abi", "manifest.toml"]);
    mistakes(&check("manifest.toml", &good.replace("\"Pipe\"", "\"Pip\"")), &["Pip", "manifest.toml"]);
    mistakes(&check("manifest.toml", "[program"), &["manifest.toml"]);
}

#[test]
fn a_system_manifest_with_errors() {
    let (system, base) = (file("systems/hosted-common.toml"), file("systems/common.toml"));
    let machine = file("systems/hosted-machine.toml");
    let wrong = [
        (system.clone(), base.replace("\"cat\",", "\"cta\","), "cta", "common.toml"),
        (system.replace("primary = \"shell\"", "primary = \"shlel\""), base.clone(), "shlel", "system.toml"),
        (system.replace("\"directory\"]", "\"directroy\"]"), base.clone(), "directroy", "system.toml"),
        (
            system.replace("base = \"hosted-machine\"", "base = \"hosted-mashine\""),
            base,
            "hosted-mashine",
            "system.toml",
        ),
    ];
    for (system, base, word, place) in &wrong {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let path = folder.path().join("system.toml");
        std::fs::write(&path, system).expect("a file can be written");
        std::fs::write(folder.path().join("common.toml"), base).expect("a file can be written");
        std::fs::write(folder.path().join("hosted-machine.toml"), &machine).expect("a file can be written");
        let path = path.display().to_string();
        mistakes(&tool(&["check", &path]), &[word, place]);
        let run = tool(&["run", "--system", &path, "-c", "echo started"]);
        mistakes(&run, &[word, place]);
        assert!(run.output.is_empty(), "nothing may start:\n{run}");
    }
}

#[test]
fn files_that_are_not_there() {
    tool(&["check", "/no/such.contract"]).refused(&["/no/such.contract"]);
    tool(&["run", "--system", "/no/such.toml", "-c", "true"]).refused(&["/no/such.toml"]);
    tool(&["run", "--system", "nothing", "-c", "true"]).refused(&["nothing", "hosted"]);
    Machine::new().system("/no/such.system").run("true").refused(&["/no/such.system", "no such file"]);
    Machine::new().system("/").run("true").refused(&["folder"]);
}

/// Writes a system image and starts it.
#[track_caller]
pub fn boot(bytes: &[u8], commands: &str) -> Run {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("doctored.system");
    std::fs::write(&path, bytes).expect("a file can be written");
    Machine::new().system(&path).run(commands)
}

/// The hosted system's image.
pub fn hosted() -> Vec<u8> {
    std::fs::read(system_image()).expect("the system image was built")
}

#[test]
fn no_system_image() {
    boot(b"", "true").refused(&["doctored.system"]);
    boot(b"certainly not a system image", "true").refused(&["doctored.system", "not a system image", "sing build"]);
    let bytes = hosted();
    for length in [7, 100, bytes.len() / 2, bytes.len() - 1] {
        boot(&bytes[..length], "true").refused(&["doctored.system"]);
    }
    let mut changed = bytes.clone();
    changed[60] ^= 1;
    boot(&changed, "true").refused(&["doctored.system"]);
}

#[test]
fn parameters_of_the_first_program_that_it_cannot_take() {
    let twice = Machine::new().parameter("web-port=1").parameter("web-port=2");
    twice.run("true").refused(&["web-port", "given twice"]);
    Machine::new().parameter("web-pot=1").run("true").refused(&["has no parameter web-pot"]);
}

/// A tampered `echo`: running it, or the whole image, is refused with a message.
#[track_caller]
fn refused(doctor: Doctor<'_>, parts: &[&str]) {
    let run = boot(&reseal(&hosted(), "echo", &doctor), "echo this must not be printed");
    run.refused(parts);
    assert!(run.output.is_empty(), "a bad program ran:\n{run}");
}

#[test]
fn a_good_package_sealed_again_runs() {
    let bytes = reseal(&hosted(), "echo", &Doctor::Resealed(&|_, _| {}));
    assert_eq!(boot(&bytes, "echo resealed").succeeded(), "resealed\n");
}

#[test]
fn a_changed_byte_in_an_image() {
    refused(
        Doctor::Raw(&|bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }),
        &["echo", "a byte was changed after signing", "build it again"],
    );
}

#[test]
fn a_wrong_signature() {
    refused(
        Doctor::Raw(&|bytes| {
            let last = bytes.len() - 1;
            bytes[last - 40] ^= 1;
        }),
        &["echo", "signature"],
    );
    // Another publisher's key: the signed head of the image covers it, too.
    refused(
        Doctor::Raw(&|bytes| {
            let key = bytes.len() - 96;
            bytes[key] ^= 1;
        }),
        &["echo", "is another than the head of the system image names", "build the system again"],
    );
}

#[test]
fn an_abi_version_that_the_kernel_does_not_have() {
    refused(Doctor::Resealed(&|manifest: &mut Manifest, _| manifest.abi = 77), &["echo", "77"]);
}

/// Offset and fields of the ELF file's program headers.
fn program_headers(image: &[u8]) -> impl Iterator<Item = usize> {
    let number = |offset: usize, size: usize| {
        image[offset..offset + size].iter().rev().fold(0_usize, |value, &byte| value << 8 | usize::from(byte))
    };
    let (begin, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    (0..count).map(move |index| begin + index * size)
}

const LOADED: u8 = 1;
const EXECUTABLE: u8 = 1;
const WRITABLE: u8 = 2;

/// The header of the segment with the code.
fn code_header(image: &[u8]) -> usize {
    program_headers(image)
        .find(|&header| image[header] == LOADED && image[header + 4] & EXECUTABLE != 0)
        .expect("an image has code")
}

#[test]
fn a_writable_code_segment() {
    refused(
        Doctor::Resealed(&|_, image: &mut Vec<u8>| {
            let header = code_header(image);
            image[header + 4] |= WRITABLE;
        }),
        &["echo", "writable"],
    );
}

/// Overwrites the code at the entry point.
pub fn begin_with(image: &mut [u8], instructions: &[u8]) {
    let number = |offset: usize| {
        image[offset..offset + 8].iter().rev().fold(0_usize, |value, &byte| value << 8 | usize::from(byte))
    };
    let header = code_header(image);
    // Map the entry's address to its file offset.
    let entry = number(24) - number(header + 16) + number(header + 8);
    image[entry..entry + instructions.len()].copy_from_slice(instructions);
}

#[test]
fn a_system_call_in_the_code() {
    let system_call = [0x0f, 0x05];
    refused(Doctor::Resealed(&|_, image: &mut Vec<u8>| begin_with(image, &system_call)), &["echo", "syscall"]);
}

#[test]
fn a_package_of_noise() {
    refused(Doctor::Raw(&|bytes| bytes.fill(0xA5)), &["package"]);
    // The manifest's length exceeds the file.
    refused(Doctor::Raw(&|bytes| bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes())), &["package", "cut short"]);
}

#[test]
fn no_permission_to_bind() {
    let run = Machine::new().run("cat /service/service-manager");
    run.refused(&["cat: /service/service-manager"]);
    // Only file systems may use raw disks.
    let run = Machine::new().run_by_tool("cat /dev/disk0");
    run.refused(&["cat: /dev/disk0", "may not", "[[bind]]"]);
}

#[test]
fn no_permission_to_kill() {
    // The same image with a manifest without permissions.
    let system =
        reseal(&hosted(), "kill", &Doctor::Resealed(&|manifest: &mut Manifest, _| manifest.permissions.clear()));
    let run = boot(&system, "kill answer");
    run.refused(&["kill"]);
}

#[test]
fn wrong_words_on_the_command_line() {
    for words in [&["rnu"][..], &["run", "--procesors", "2"], &["run", "--processors", "0"], &["check", "--nothing"]] {
        let run = tool(words);
        run.orderly();
        assert!(run.status != Some(0) && !run.errors.is_empty(), "{run}");
    }
}

#[test]
fn a_file_of_no_known_kind() {
    mistakes(&check("something.txt", "words"), &["something.txt"]);
}

#[test]
fn the_graph_of_a_running_system_is_drawn() {
    let run = tool(&["graph", "--running"]);
    assert!(run.succeeded().contains("<svg"), "{run}");
}

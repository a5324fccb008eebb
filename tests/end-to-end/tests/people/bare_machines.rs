//! The system on bare machines: it behaves as hosted, and a failed boot gives one clear message.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use end_to_end::{
    BUILD_LIMIT, BareMachine, Doctor, KINDS, Machine, Run, bare_kernel, bare_system, boot_disc, boot_image,
    boot_kernel, finish, repository, reseal, reseal_system, sing,
};
use manifest_model::Manifest;

test_needs::needs!(Qemu);

/// Scripts whose output does not depend on machine and time.
const SCRIPTS: [&str; 8] = [
    "echo hello; echo -n no line end",
    "x=6; y=$((x * 7)); for n in 1 2 3; do if test $n = 2; then continue; end; echo $n; end; echo $y; false",
    "echo through pipes | cat | cat; echo -n 123456789 | hash -a crc32; exit 200",
    "ls /; ls /status; contract Directory | hash; no-such-program",
    "tree /fs/disk0; cat /fs/disk0/poems/tyger.txt; exit 7",
    "cat /fs/disk0/data/bytes.bin; hash /fs/disk0/sparse.bin; cat /no/file",
    "hello; greet you; extensible-parent; crashing-extension; echo $?",
    "echo before; echo $nope",
];

#[test]
fn scripts_do_the_same_as_hosted() {
    for script in SCRIPTS {
        let hosted = Machine::new().run_by_tool(script);
        for kind in KINDS {
            let bare = BareMachine::new(kind).run(script);
            bare.orderly();
            assert_eq!(bare.output, hosted.output, "on {kind}:\n{bare}\n\nand hosted:\n{hosted}");
            assert_eq!(bare.status, hosted.status, "on {kind}:\n{bare}\n\nand hosted:\n{hosted}");
            assert_eq!(bare.errors, hosted.errors, "on {kind}:\n{bare}\n\nand hosted:\n{hosted}");
        }
    }
}

#[test]
fn one_and_four_processors_give_the_status_on() {
    for (kind, processors, status) in [("microvm", "1", 0), ("microvm", "4", 7), ("qemu", "1", 200), ("qemu", "4", 10)]
    {
        let run = BareMachine::new(kind).with(&["--smp", processors]).run(&format!("exit {status}"));
        assert!(run.output.is_empty(), "nothing is to be said:\n{run}");
        assert_eq!((run.status, run.errors.trim()), (Some(status), ""), "{run}");
    }
}

#[test]
fn commands_are_read_from_a_pipe_as_well() {
    let machine = BareMachine::new("microvm").command(None);
    let mut shell = Command::new("sh");
    shell.args(["-c", "printf 'echo typed\\nexit 4\\n' | \"$@\"", "sh"]).arg(machine.get_program());
    shell.args(machine.get_args()).current_dir(repository());
    let run = finish(shell, "commands on standard input", BUILD_LIMIT);
    assert_eq!((run.text().as_str(), run.errors.as_str(), run.status), ("typed\n", "", Some(4)), "{run}");
}

#[test]
fn every_byte_goes_through_the_console() {
    let bytes: Vec<u8> = (0..=255u8).cycle().take(10_000).collect();
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("bytes");
    std::fs::write(&path, &bytes).expect("a file can be written");
    let machine = BareMachine::new("microvm").command(Some("cat"));
    let mut shell = Command::new("sh");
    shell.args(["-c", "input=$1; shift; exec \"$@\" <\"$input\"", "sh"]).arg(&path).arg(machine.get_program());
    shell.args(machine.get_args()).current_dir(repository());
    let run = finish(shell, "all bytes through cat", BUILD_LIMIT);
    assert!(run.output == bytes, "{} of {} bytes came back:\n{}", run.output.len(), bytes.len(), run.errors);
    assert_eq!(run.status, Some(0), "{run}");
}

#[test]
fn a_reader_that_goes_away_ends_the_machine() {
    let machine = BareMachine::new("microvm").command(Some("while true; do echo more || exit 9; end"));
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$@\" | head -n 3", "sh"]).arg(machine.get_program()).args(machine.get_args());
    let run = finish(shell, "an endless output into head", BUILD_LIMIT);
    assert_eq!(run.text(), "more\nmore\nmore\n", "{run}");
}

#[test]
fn what_a_machine_has_not_got_is_refused_before_it_starts() {
    let refused = |words: &[&str], parts: &[&str]| {
        let mut command = Command::new(sing());
        command.arg("run").args(words).args(["-c", "true"]).current_dir(repository());
        finish(command, &words.join(" "), BUILD_LIMIT).refused(parts);
    };
    refused(&["--mem", "64M"], &["--mem", "--machine"]);
    refused(&["--machine", "qemu", "--disk", "/no/such.img"], &["/no/such.img", "no such file"]);
    refused(&["--machine", "qemu", "--mem", "some"], &["64M"]);
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if !processor.contains(" vmx") && !processor.contains(" svm") {
        refused(&["--machine", "qemu", "--accel", "kvm"], &["KVM", "--accel tcg"]);
    }
}

/// A kernel that cannot start reports it on the debug port and exits with status 1.
#[track_caller]
fn cannot_start(boot_image: &[u8], mebibytes: u32, parts: &[&str]) {
    let run = boot_kernel(boot_image, mebibytes);
    assert!(run.output.is_empty(), "nothing may run:\n{run}");
    run.refused(parts);
}

fn system() -> Vec<u8> {
    std::fs::read(bare_system()).expect("the system image was built")
}

#[test]
fn a_boot_image_without_a_disk_boots() {
    let run = boot_kernel(&boot_image(&system(), "ls /fs; echo no disk; exit 3"), 256);
    assert_eq!((run.text().as_str(), run.status), ("no disk\n", Some(3)), "{run}");
}

#[test]
fn a_damaged_boot_image_is_one_sentence() {
    cannot_start(b"certainly no boot image", 256, &["not a boot image", "SINGBOOT"]);
    let good = boot_image(&system(), "true");
    for (offset, part) in [(14, "header"), (70, "parameters"), (good.len() - 1, "symbols")] {
        let mut damaged = good.clone();
        damaged[offset] ^= 0x20;
        cannot_start(&damaged, 256, &["damaged", part]);
    }
    cannot_start(&good[..good.len() / 2], 256, &["cut short"]);
    let mut system = system();
    system[60] ^= 1;
    cannot_start(&boot_image(&system, "true"), 256, &["cannot start the system"]);
}

#[test]
fn a_damaged_or_wrongly_signed_program_does_not_run() {
    let good = system();
    let wrong_signature = |package: &mut Vec<u8>| *package.last_mut().expect("a package has bytes") ^= 1;
    let wrong_code = |package: &mut Vec<u8>| {
        let middle = package.len() / 2;
        package[middle] ^= 1;
    };
    for doctor in [Doctor::Raw(&wrong_signature), Doctor::Raw(&wrong_code)] {
        let run = boot_kernel(&boot_image(&reseal(&good, "echo", &doctor), "echo it runs"), 256);
        assert!(!run.text().contains("it runs") && run.status != Some(0), "{run}");
        run.refused(&["echo"]);
        let root = boot_image(&reseal(&good, "service-manager", &doctor), "echo it runs");
        cannot_start(&root, 256, &["cannot start the system", "service-manager"]);
    }
}

#[test]
fn a_program_whose_key_nobody_trusts_does_not_run() {
    let doctor = |_: &mut Manifest, _: &mut Vec<u8>| {};
    let doctored = reseal(&system(), "service-manager", &Doctor::Resealed(&doctor));
    // The tampered program's key may still sign systems, but for another publisher.
    let untrusted = reseal_system(&doctored, &|system| {
        system.trust.roots.last_mut().expect("there are roots").publishers = "somebody-else".into();
    });
    cannot_start(&boot_image(&untrusted, "true"), 256, &["cannot start the system", "service-manager", "key"]);
}

#[test]
fn kernel_and_system_are_measured_as_their_files() {
    let mut command = Command::new(sing());
    command.args(["measure", "--machine", "qemu"]).current_dir(repository());
    // It may report a build.
    let measured = finish(command, "sing measure", Duration::from_secs(600));
    let expected = measured.text();
    assert_eq!((measured.status, expected.lines().count()), (Some(0), 2), "{measured}");
    for kind in KINDS {
        let shown = BareMachine::new(kind).run("sysinfo").succeeded();
        for line in expected.lines() {
            assert!(shown.lines().any(|other| other == line), "on {kind}, `{line}` is not in:\n{shown}");
        }
    }
}

#[test]
fn too_little_memory_is_one_sentence() {
    // With less, QEMU cannot load kernel and system, so the kernel cannot report it.
    for mebibytes in [20, 24, 28] {
        cannot_start(&boot_image(&system(), "true"), mebibytes, &["too little memory"]);
    }
}

#[test]
fn the_kernel_is_at_most_a_mebibyte() {
    let bytes = std::fs::metadata(bare_kernel()).expect("the kernel was built").len();
    assert!(bytes <= 1 << 20, "the kernel without symbols has {bytes} bytes");
}

/// Writes an image that firmware boots and that runs the commands.
fn disc(folder: &Path, commands: &str) -> std::path::PathBuf {
    bare_system();
    let path = folder.join("disc.iso");
    let mut command = Command::new(sing());
    command.args(["image", "-c", commands, "-o"]).arg(&path).current_dir(repository());
    finish(command, "sing image", BUILD_LIMIT).succeeded();
    path
}

/// The boot loader's output precedes it.
#[track_caller]
fn ran_from_disc(run: &Run) {
    assert!(run.text().ends_with("from a disc\n") && run.status == Some(9), "{run}");
}

#[test]
fn an_image_boots_by_bios_and_by_uefi() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let disc = disc(folder.path(), "echo from a disc; exit 9");
    ran_from_disc(&boot_disc(&disc, None));
    let firmware = Path::new("/usr/share/ovmf/OVMF.fd");
    if firmware.is_file() {
        ran_from_disc(&boot_disc(&disc, Some(firmware)));
    } else {
        println!("skipped: no UEFI firmware for QEMU; install the package ovmf");
    }
}

#[test]
fn a_debugger_stops_in_kernel_and_program_by_name() {
    if Command::new("gdb").arg("--version").output().is_err() {
        println!("skipped: there is no gdb");
        return;
    }
    bare_system();
    let commands = "hbreak kernel::start\ncontinue\ninfo symbol $pc\ninfo line kernel::start\nhbreak text_apps::echo::main\ncontinue\nbacktrace 1\ninfo symbol $pc\nbacktrace\ncontinue";
    for kind in KINDS {
        let mut command = Command::new(sing());
        command.args(["debug", "--machine", kind, "-c", "echo done", "--batch", commands]).current_dir(repository());
        let run = finish(command, commands, BUILD_LIMIT);
        let text = run.text();
        assert!(text.contains("Breakpoint 1,") && text.contains("kernel::start + "), "on {kind}:\n{run}");
        assert!(text.contains("Breakpoint 2,") && text.contains("echo::main in section"), "on {kind}:\n{run}");
        // Source lines, no unnamed frames below a program's entry, and gdb ends with the machine.
        assert!(text.contains("kernel/src/lib.rs"), "on {kind}:\n{run}");
        assert!(text.contains("in sip::entry::run") && !text.contains(" in ?? ()\n#"), "on {kind}:\n{run}");
        assert_eq!(run.status, Some(0), "on {kind}:\n{run}");
    }
}

/// `--lines` rebuilds a program with line tables; its code equals the running one.
#[test]
#[ignore = "takes minutes"]
fn a_debugger_shows_the_source_lines_of_a_program() {
    if Command::new("gdb").arg("--version").output().is_err() {
        println!("skipped: there is no gdb");
        return;
    }
    bare_system();
    let commands = "hbreak text_apps::echo::main\ncontinue\nlist\nnext\ncontinue";
    let mut command = Command::new(sing());
    command.args(["debug", "--machine", "microvm", "-c", "echo done", "--lines", "echo", "--batch", commands]);
    command.current_dir(repository());
    let run = finish(command, commands, BUILD_LIMIT);
    let text = run.text();
    assert!(text.contains("at src/echo.rs:") && text.contains("pub fn main(startup: Startup)"), "{run}");
    assert!(text.contains("done\n") && run.status == Some(0), "{run}");
}

/// The debugger makes the kernel write to an unmapped address: the report names fault, address, SIP and back trace.
#[test]
fn a_fault_of_the_kernel_itself_is_reported_and_ends_the_machine() {
    if Command::new("gdb").arg("--version").output().is_err() {
        println!("skipped: there is no gdb");
        return;
    }
    bare_system();
    let commands = "hbreak kernel::entry::process_start\ncontinue\n\
                    python gdb.execute('set $rip = ' + gdb.execute('info address memset', to_string=True).split()[4])\n\
                    set $rdi = 16\nset $rdx = 64\ncontinue";
    let mut command = Command::new(sing());
    command.args(["debug", "--machine", "microvm", "-c", "true", "--batch", commands]).current_dir(repository());
    let run = finish(command, commands, BUILD_LIMIT);
    let said = format!("{}\n{}", run.text(), run.errors);
    for part in
        ["kernel fault: page fault", "address  0x10", "memset+0x", "running  service-manager, process 1", "called from"]
    {
        assert!(said.contains(part), "`{part}` is missing:\n{run}");
    }
}

#[test]
fn memory_at_the_prompt_is_within_bounds_and_pages_may_be_small() {
    let machine = || BareMachine::new("microvm").with(&["--smp", "1"]);
    let [largest, small] = [&["--pages", "largest"], &["--pages", "4k"]].map(|words| {
        let run = machine().with(words).run("sysinfo");
        run.orderly();
        run.counters()[0]["memory bytes in use"]
    });
    assert!(largest <= 28 << 20, "{largest} bytes of memory are in use at the prompt");
    // Small pages need a table entry of 8 bytes for each 4 KiB of 256 MiB.
    assert!(small > largest + (256 << 20) / 4096 * 8 / 2, "{small} bytes with small pages, {largest} with the largest");
}

/// Both machines run the same program images.
#[test]
fn programs_are_byte_for_byte_the_same_hosted_and_bare() {
    let hosted = std::fs::read(end_to_end::system_image()).expect("the hosted system was built");
    let bare = system();
    let hosted = package_check::verify_system(&hosted).expect("a system image");
    let bare = package_check::verify_system(&bare).expect("a system image");
    let name = |package: &[u8]| package::Package::parse(package).expect("a package").manifest.name;
    let mut same = 0;
    for package in &bare.packages {
        if let Some(other) = hosted.packages.iter().find(|other| name(other) == name(package)) {
            assert!(package == other, "{} differs", name(package));
            same += 1;
        }
    }
    assert!(same > 25, "{same} programs are in both systems");
}

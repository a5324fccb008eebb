//! Linux in a virtual machine that counts instructions: Debian's kernel, with the measuring program as init.
//!
//! Deliberately not here: fetching the kernel (`debian_kernel`).

use std::path::Path;
use std::process::Command;

use crate::bench::table::{Figures, figures};
use crate::bench::{LIMIT, MEBIBYTES, debian_kernel, initramfs};
use sing::bare::qemu;
use sing::cargo;
use sing::failure::{Failure, Outcome};
use sing::process::run_machine;
use sing::repository::{Repository, write_if_changed};

/// Counter increment of a thousand instructions, if it counts instructions.
const THOUSAND: u64 = 1_000;
/// A reset ends QEMU, too, so that a failing Linux does not reboot.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet panic=-1";

/// Measures Linux; `more` are QEMU's arguments for counting instructions.
///
/// # Errors
/// The kernel cannot be fetched, the program not built or QEMU not started; Linux prints no figures; or the counter
/// does not count instructions.
pub fn measure(repository: &Repository, kernel: Option<&Path>, more: &[&str]) -> Outcome<Figures> {
    let qemu = qemu::find()?;
    let kernel = debian_kernel::find(repository, kernel)?;
    let archive = repository.output("bench/linux.initramfs");
    write_if_changed(&archive, &initramfs::of_one_program(&program(repository)?))?;
    let mut command = Command::new(qemu);
    command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"]);
    command.args(["-M", "q35", "-accel", "tcg", "-smp", "1", "-m", &format!("{MEBIBYTES}M")]).args(more);
    command.arg("-kernel").arg(&kernel).arg("-initrd").arg(&archive).args(["-append", KERNEL_ARGUMENTS]);
    let output = run_machine(command, LIMIT)?;
    let figures = figures(&output.text);
    let problem = output.problem.or_else(|| figures.is_empty().then(|| "it printed no figures".to_string()));
    if let Some(problem) = problem {
        return Err(Failure::new(format!("cannot measure Linux with {}: {problem}", kernel.display()))
            .details(output.text)
            .remedy("use another kernel with --linux-kernel FILE"));
    }
    match figures.get("counter_per_1000_instructions") {
        Some(&THOUSAND) => Ok(figures),
        counted => Err(Failure::new(format!(
            "QEMU's counter advances by {} for {THOUSAND} instructions",
            counted.map_or("nothing".to_string(), u64::to_string)
        ))
        .remedy("use QEMU 7.2 or later, in which `-icount shift=0` counts each instruction once")),
    }
}

/// Builds the measuring program, statically linked.
///
/// # Errors
/// It cannot be built.
pub fn program(repository: &Repository) -> Outcome<Vec<u8>> {
    let mut command = cargo::command(repository);
    // An explicit target keeps the flags away from build scripts.
    command.args(["build", "--release", "--package", "bench-linux", "--target", cargo::TARGET, "--manifest-path"]);
    command.arg(repository.base().join("Cargo.toml")).arg("--target-dir").arg(repository.cargo_target());
    let flags = ["-Ctarget-feature=+crt-static", "-Cstrip=symbols"];
    command.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    let made = cargo::build(command, "the measurements of Linux", 2)?;
    let path = made.get("bench-linux").ok_or_else(|| Failure::new("cargo produced no program bench-linux"))?;
    std::fs::read(path).map_err(|error| Failure::file("read", path, &error))
}

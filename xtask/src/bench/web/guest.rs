//! Linux with nginx in a virtual machine, so that both systems run on the same one: QEMU without KVM, one processor,
//! and a network card with one forwarded port.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::bench::{debian_kernel, initramfs::Archive, linux_guest};
use sing::bare::qemu;
use sing::failure::{Failure, Outcome};
use sing::host_tools;
use sing::repository::{Repository, write_if_changed};

use super::processes::processor_seconds;
use super::{Part, Server, nginx};

/// The guest's address in QEMU's own network (QEMU, documentation of `-netdev user`).
const ADDRESS: &str = "10.0.2.15";
/// Memory of both machines; Linux keeps all files in its initramfs.
pub const MEMORY: &str = "1G";
/// The guest's message when its servers run.
const SERVING: &str = "bench-linux: serving";

/// The running guest, stopped on drop.
pub struct Guest {
    machine: Child,
}

impl Guest {
    /// Starts it on one host processor. Returns `None`, after printing why, if the host has no nginx.
    ///
    /// # Errors
    /// QEMU, the kernel or its modules are missing, or the guest does not respond.
    pub fn start(
        repository: &Repository,
        kernel: Option<&Path>,
        files: &Path,
        port: u16,
        processor: &str,
    ) -> Outcome<Option<Guest>> {
        let Some(server) = host_tools::find("nginx") else {
            eprintln!("sing: nginx is skipped: not installed; run `apt-get install nginx-light`");
            return Ok(None);
        };
        let modules = debian_kernel::network_modules(repository)?;
        let kernel = debian_kernel::find(repository, kernel)?;
        let archive = repository.output("bench/web.initramfs");
        write_if_changed(&archive, &packed(repository, &server, files, &modules)?)?;
        let mut command = Command::new("taskset");
        command.args(["-c", processor]).arg(qemu::find()?);
        command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"]);
        command.args(["-M", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", MEMORY]);
        command.arg("-netdev").arg(format!("user,id=net0,hostfwd=tcp:127.0.0.1:{port}-:80"));
        command.args(["-device", "virtio-net-pci,netdev=net0"]);
        command.arg("-kernel").arg(&kernel).arg("-initrd").arg(&archive);
        command.arg("-append").arg(format!("console=ttyS0 quiet panic=-1 -- guest {ADDRESS}"));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let machine = command.spawn().map_err(|error| Failure::file("start", Path::new("taskset"), &error))?;
        let mut guest = Guest { machine };
        guest.wait()?;
        Ok(Some(guest))
    }

    /// Waits until its servers run.
    fn wait(&mut self) -> Outcome<()> {
        let mut said = String::new();
        let lines = self.machine.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
        for line in lines.map_while(Result::ok) {
            if line.contains(SERVING) {
                return Ok(());
            }
            said.push_str(&line);
            said.push('\n');
        }
        Err(Failure::new("Linux in QEMU does not serve").details(said).remedy("use another with --linux-kernel FILE"))
    }
}

impl Server for Guest {
    fn processor_seconds(&self) -> f64 {
        processor_seconds(self.machine.id())
    }

    /// Processes inside the guest are not visible from the host.
    fn parts(&self) -> Vec<Part> {
        Vec::new()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.machine.kill();
        let _ = self.machine.wait();
    }
}

/// The guest's initramfs: the measuring program as init, nginx and its libraries, modules, files.
fn packed(repository: &Repository, server: &Path, files: &Path, modules: &Path) -> Outcome<Vec<u8>> {
    let mut archive = Archive::of(&linux_guest::program(repository)?);
    for folder in ["modules", "etc", "usr", "usr/sbin", "lib", "lib64", "lib/x86_64-linux-gnu", "var", "var/log"] {
        archive.folder(folder);
    }
    for folder in ["var/log/nginx", "var/lib", "var/lib/nginx"] {
        archive.folder(folder);
    }
    archive.file("usr/sbin/nginx", &read(server)?);
    for library in libraries(server)? {
        let name = library.to_string_lossy().trim_start_matches('/').to_string();
        archive.file(&name, &read(&library)?);
    }
    let settings =
        nginx::configured(Path::new("/tmp"), Path::new("/files"), Path::new("/tmp/behind.socket"), ("0.0.0.0", 80));
    archive.file("etc/nginx.conf", settings.as_bytes());
    archive.file("etc/passwd", b"root:x:0:0:root:/:/init\n");
    archive.file("etc/group", b"root:x:0:\n");
    for module in sorted(modules)? {
        let name = module.file_name().unwrap_or_default().to_string_lossy().into_owned();
        archive.file(&format!("modules/{name}"), &read(&module)?);
    }
    archive.folder("files");
    add_folder(&mut archive, files, "files")?;
    Ok(archive.end())
}

fn add_folder(archive: &mut Archive, folder: &Path, name: &str) -> Outcome<()> {
    for path in sorted(folder)? {
        let inner = format!("{name}/{}", path.file_name().unwrap_or_default().to_string_lossy());
        if path.is_dir() {
            archive.folder(&inner);
            add_folder(archive, &path, &inner)?;
        } else {
            archive.file(&inner, &read(&path)?);
        }
    }
    Ok(())
}

/// Shared libraries of a program, from `ldd`, by the paths it prints.
fn libraries(program: &Path) -> Outcome<Vec<PathBuf>> {
    let output =
        Command::new("ldd").arg(program).output().map_err(|error| Failure::file("ask ldd of", program, &error))?;
    Ok(named_by_ldd(&String::from_utf8_lossy(&output.stdout)))
}

fn named_by_ldd(text: &str) -> Vec<PathBuf> {
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    text.lines().filter_map(path).collect()
}

fn sorted(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|error| Failure::file("read the folder", folder, &error))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(path).map_err(|error| Failure::file("read", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_under_the_names_that_the_loader_uses() {
        let text = "\tlinux-vdso.so.1 (0x1)\n\tlibz.so.1 => /lib/x/libz.so.1 (0x2)\n\t/lib64/ld.so.2 (0x3)\n";
        assert_eq!(named_by_ldd(text), [PathBuf::from("/lib/x/libz.so.1"), PathBuf::from("/lib64/ld.so.2")]);
    }
}

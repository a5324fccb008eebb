//! Debian's Linux kernel for virtual machines, fetched on first use with apt, which verifies its signature. Nothing is
//! installed on the host.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sing::failure::{Failure, Outcome};
use sing::host_tools;
use sing::repository::{Repository, write_whole};

/// Metapackage of the newest kernel.
const NEWEST: &str = "linux-image-cloud-amd64";
/// Modules for virtio-net, in load order.
const NETWORK_MODULES: [&str; 8] = [
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci",
    "net/core/failover",
    "drivers/net/net_failover",
    "drivers/net/virtio_net",
];
/// Package name prefix of a kernel.
const PREFIX: &str = "linux-image-";

/// Returns the path of the kernel: the given one, a cached one, or one fetched now.
///
/// # Errors
/// It cannot be fetched; the failure contains a remedy.
pub fn find(repository: &Repository, given: Option<&Path>) -> Outcome<PathBuf> {
    if let Some(given) = given {
        std::fs::File::open(given).map_err(|error| Failure::file("open the Linux kernel", given, &error))?;
        return Ok(given.to_path_buf());
    }
    let folder = repository.output("bench");
    if let Some(fetched) = fetched_before(&folder) {
        return Ok(fetched);
    }
    for tool in ["apt-get", "apt-cache", "dpkg-deb", "tar"] {
        if host_tools::find(tool).is_none() {
            return Err(Failure::new(format!("{tool}, which fetches Debian's {NEWEST}, is not installed")).remedy(OWN));
        }
    }
    fetch(&folder)
}

/// Returns the folder of the fetched kernel's virtio-net modules, whose names sort in load order.
///
/// # Errors
/// They cannot be fetched.
pub fn network_modules(repository: &Repository) -> Outcome<PathBuf> {
    let kernel = find(repository, None)?;
    let place = modules_beside(&kernel);
    if !place.is_dir() {
        // An earlier fetch was without modules.
        fetch(&repository.output("bench"))?;
    }
    Ok(place)
}

/// `modules-VERSION` beside `vmlinuz-VERSION`.
fn modules_beside(kernel: &Path) -> PathBuf {
    let name = kernel.file_name().map_or_else(Default::default, |name| name.to_string_lossy().into_owned());
    kernel.with_file_name(name.replace("vmlinuz-", "modules-"))
}

const OWN: &str = "use an x86-64 Linux kernel with --linux-kernel FILE";

fn fetched_before(folder: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    files.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-"))).max()
}

fn fetch(folder: &Path) -> Outcome<PathBuf> {
    let package = match newest_package() {
        Some(package) => package,
        None => {
            // The package lists may be stale or missing; without privileges this has no effect.
            let _ = apt_get(&["update"], folder);
            let unknown = || Failure::new(format!("apt has no package {NEWEST} on this host")).remedy(OWN);
            newest_package().ok_or_else(unknown)?
        }
    };
    eprintln!("sing: fetching Debian's {package} to compare with");
    let download = folder.join("download");
    std::fs::create_dir_all(&download).map_err(|error| Failure::file("make the folder", &download, &error))?;
    let path = folder.join(format!("vmlinuz-{}", version(&package)));
    let fetched = apt_get(&["download", &package], &download).and_then(|()| {
        unpack_modules(&download, &package, &modules_beside(&path))?;
        unpack(&download, &package, &format!("./boot/vmlinuz-{}", version(&package)))
    });
    // Only the unpacked files are kept.
    let _ = std::fs::remove_dir_all(&download);
    write_whole(&path, &fetched?)?;
    Ok(path)
}

fn version(package: &str) -> &str {
    package.strip_prefix(PREFIX).unwrap_or(package)
}

/// The package of the newest kernel.
fn newest_package() -> Option<String> {
    let output = Command::new("apt-cache").args(["depends", NEWEST]).stdin(Stdio::null()).output().ok()?;
    dependency(&String::from_utf8_lossy(&output.stdout))
}

/// Returns the kernel's package in the output of `apt-cache depends`.
fn dependency(text: &str) -> Option<String> {
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    names.map(str::trim).find(|name| name.starts_with(PREFIX)).map(String::from)
}

fn apt_get(arguments: &[&str], folder: &Path) -> Outcome<()> {
    let what = format!("apt-get {}", arguments.join(" "));
    let mut command = Command::new("apt-get");
    command.arg("-qq").args(arguments).stdin(Stdio::null());
    if folder.is_dir() {
        command.current_dir(folder);
    }
    let output = command.output().map_err(|error| Failure::new(format!("cannot start {what}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("{what} failed"))
        .details(String::from_utf8_lossy(&output.stderr))
        .remedy(format!("check the network, or {OWN}")))
}

fn unpack_modules(folder: &Path, package: &str, place: &Path) -> Outcome<()> {
    std::fs::create_dir_all(place).map_err(|error| Failure::file("make the folder", place, &error))?;
    for (turn, module) in NETWORK_MODULES.iter().enumerate() {
        let member = format!("./lib/modules/{}/kernel/{module}.ko", version(package));
        let name = module.rsplit('/').next().unwrap_or(module);
        write_whole(&place.join(format!("{turn:02}-{name}.ko")), &unpack(folder, package, &member)?)?;
    }
    Ok(())
}

/// Extracts a file of the package in the folder.
fn unpack(folder: &Path, package: &str, member: &str) -> Outcome<Vec<u8>> {
    let files = std::fs::read_dir(folder).map_err(|error| Failure::file("read the folder", folder, &error))?;
    let is_package = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "deb");
    let file = files.flatten().map(|entry| entry.path()).find(is_package);
    let file = file.ok_or_else(|| Failure::new(format!("apt-get fetched no {package}")).remedy(OWN))?;
    let cannot = |error: std::io::Error| Failure::file("unpack", &file, &error);
    let mut reader = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(cannot)?;
    let archive = reader.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let kernel = Command::new("tar").args(["-xO", member]).stdin(archive).output().map_err(cannot);
    // After tar has ended, the rest of the archive is not needed.
    let _ = reader.wait();
    let kernel = kernel?;
    if !kernel.status.success() || kernel.stdout.is_empty() {
        return Err(Failure::new(format!("no file {member} in the package {}", file.display())).remedy(OWN));
    }
    Ok(kernel.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_is_what_the_package_depends_on() {
        let text = "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-56-cloud-amd64\n  Suggests: other\n";
        assert_eq!(dependency(text).as_deref(), Some("linux-image-6.1.0-56-cloud-amd64"));
        assert_eq!(version("linux-image-6.1.0-56-cloud-amd64"), "6.1.0-56-cloud-amd64");
        assert_eq!(dependency(""), None);
    }

    #[test]
    fn a_kernel_that_is_given_must_be_there() {
        let repository = Repository::find().expect("tests run inside the repository");
        let failure = find(&repository, Some(Path::new("/no/such/kernel"))).expect_err("there is none").to_string();
        assert!(failure.starts_with("cannot open the Linux kernel /no/such/kernel"), "{failure}");
    }
}

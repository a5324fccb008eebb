//! Programs of the host that some tests need.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where a program of the host is, if it is installed.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // The tools of file systems lie in folders that are not on every user's path.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

/// Whether the program is there, after an attempt to install its package when this is root on a system
/// with `apt-get`.
pub fn ensure(program: &str, package: &str) -> bool {
    if find(program).is_some() {
        return true;
    }
    if !is_root() || find("apt-get").is_none() {
        return false;
    }
    eprintln!("sing: installing {package} for {program}");
    if !apt(&["install", "-y", package]) {
        // The lists of packages may be old or missing.
        apt(&["update"]);
        apt(&["install", "-y", package]);
    }
    find(program).is_some()
}

fn apt(arguments: &[&str]) -> bool {
    Command::new("apt-get")
        .arg("-qq")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    // A process's own folder in /proc belongs to its effective user.
    std::fs::metadata(Path::new("/proc/self")).is_ok_and(|metadata| metadata.uid() == 0)
}

//! Linux's side: mounts the same image through a loop device, which takes root, and runs the tasks there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::bench::table::{Figures, figures};
use sing::failure::{Failure, Outcome};

use super::Task;

/// The benchmark program and its mount point.
pub struct Linux {
    program: PathBuf,
    place: PathBuf,
}

impl Linux {
    /// Returns `None`, after printing why, if this process may not mount.
    pub fn new(program: PathBuf, image: &Path, place: PathBuf) -> Outcome<Option<Linux>> {
        std::fs::create_dir_all(&place).map_err(|error| Failure::file("make the folder", &place, &error))?;
        let linux = Linux { program, place };
        if let Err(failure) = linux.mount(image).map(drop) {
            eprintln!("sing: Linux is skipped: {failure}");
            return Ok(None);
        }
        Ok(Some(linux))
    }

    /// Mounts the image, runs a task and unmounts.
    pub fn measure(&self, image: &Path, task: &Task) -> Outcome<Figures> {
        let mounted = self.mount(image)?;
        let mut command = Command::new(&self.program);
        command.arg("disk").arg(self.place.join(task.path)).arg(task.name);
        let numbers = [task.block_bytes, task.size_mib, task.count, task.rounds];
        command.args(numbers.map(|number| number.to_string()));
        let output = command.output().map_err(|error| Failure::file("start", &self.program, &error))?;
        drop(mounted);
        if output.status.success() {
            return Ok(figures(&String::from_utf8_lossy(&output.stdout)));
        }
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(Failure::new(format!("cannot measure Linux: {}", task.label())).details(words))
    }

    fn mount(&self, image: &Path) -> Outcome<Mounted<'_>> {
        let mut command = Command::new("mount");
        command.args(["-t", "ext2", "-o", "loop,noatime"]).arg(image).arg(&self.place).stdin(Stdio::null());
        let output = command.output().map_err(|error| Failure::file("start", Path::new("mount"), &error))?;
        if output.status.success() {
            return Ok(Mounted(&self.place));
        }
        let words = String::from_utf8_lossy(&output.stderr).trim().to_string();
        Err(Failure::new(format!("cannot mount the disk through a loop device: {words}")).remedy("run it as root"))
    }
}

/// Unmounts on drop.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.0).stdin(Stdio::null()).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("sing: cannot unmount {}", self.0.display());
        }
    }
}

/// Syncs the image and drops it from the page cache, so that the next reader starts cold with free memory available.
pub fn forget(program: &Path, image: &Path) -> Outcome<()> {
    let status = Command::new(program).arg("forget").arg(image).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Failure::new(format!("cannot drop {} from the page cache", image.display()))),
    }
}

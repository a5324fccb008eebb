//! One build at a time in an output folder: a lock file there, in which the build that holds it names itself.
//!
//! The lock goes with the process: one that is killed leaves none.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};
use crate::repository::Repository;

/// Time to wait before the user is told for whom.
const QUIET: Duration = Duration::from_secs(1);
/// Interval between attempts until then.
const INTERVAL: Duration = Duration::from_millis(20);
/// Characters of a command that are shown.
const MAX_SHOWN: usize = 100;

/// Locks out other builds of this output folder until the guard is dropped. Waits for a build in progress, and after a
/// second says on standard error which one that is.
///
/// # Errors
/// The lock file cannot be created or locked.
pub fn lock(repository: &Repository) -> Outcome<File> {
    let (path, folder) = (repository.output("lock"), repository.output(""));
    std::fs::create_dir_all(&folder).map_err(|error| Failure::file("make the folder", &folder, &error))?;
    let open = OpenOptions::new().create(true).read(true).write(true).truncate(false).open(&path);
    let mut file = open.map_err(|error| Failure::file("make", &path, &error))?;
    wait(&mut file, |holder| eprintln!("sing: {}", waiting(holder, &folder)))
        .and_then(|()| sign(&mut file))
        .map_err(|error| Failure::file("lock", &path, &error))?;
    Ok(file)
}

/// Locks the file; calls `tell` with what its holder has written there if that takes long.
fn wait(file: &mut File, tell: impl FnOnce(&str)) -> std::io::Result<()> {
    let begin = Instant::now();
    while begin.elapsed() < QUIET {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(INTERVAL),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => return Ok(()),
        }
    }
    let mut holder = Vec::new();
    // Whoever has just taken the lock may not have written anything yet.
    file.read_to_end(&mut holder)?;
    tell(&String::from_utf8_lossy(&holder));
    file.lock()
}

fn waiting(holder: &str, folder: &Path) -> String {
    let who = if holder.is_empty() { String::new() } else { format!(": {holder}") };
    format!("waiting for another build in {}{who}", folder.display())
}

/// Writes process and command into the file.
fn sign(file: &mut File) -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let command: String = words.join(" ").chars().filter(|one| !one.is_control()).take(MAX_SHOWN).collect();
    file.set_len(0)?;
    // From the beginning: reading has moved the position.
    std::io::Seek::rewind(file)?;
    write!(file, "process {}, `sing {}`", std::process::id(), command.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_a_build_is_told_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let open = || OpenOptions::new().create(true).read(true).write(true).truncate(false).open(&path);
        let mut first = open().expect("a file");
        wait(&mut first, |_| panic!("nobody holds it")).and_then(|()| sign(&mut first)).expect("nobody holds it");
        let mut second = open().expect("a file");
        let told = std::cell::RefCell::new(String::new());
        wait(&mut second, |holder| {
            *told.borrow_mut() = waiting(holder, folder.path());
            first.unlock().expect("it was locked");
        })
        .and_then(|()| sign(&mut second))
        .expect("it comes free");
        let told = told.into_inner();
        assert!(told.contains(&format!("process {}, `sing", std::process::id())), "{told}");
        let kept = std::fs::read_to_string(&path).expect("text");
        assert!(told.ends_with(&kept), "{told} {kept}");
    }
}

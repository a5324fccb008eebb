//! Waits until written data is on the disks.

use client::access::AccessError;
use client::namespace::Namespace;
use client::volume_managers::VolumeManager;
use contracts::directory::NameError;
use file_tools::feed::for_each_path;
use stdio::report;

sip::startup!("sync/manifest.toml");

/// Syncs the volumes of the paths; without any, all volumes.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    if startup.paths.is_empty() {
        return sync_all(&mut namespace);
    }
    for_each_path(&startup.working_folder, &startup.paths, |_, full| sync_path(&mut namespace, full))
}

fn sync_path(namespace: &mut Namespace, full: &str) -> Result<(), AccessError> {
    match namespace.open_directory(full) {
        Ok(mut folder) => folder.sync(),
        Err(AccessError::Name(NameError::NotADirectory | NameError::WrongContract)) => {
            namespace.open_file(full)?.sync()
        }
        Err(error) => Err(error),
    }
}

fn sync_all(namespace: &mut Namespace) -> i32 {
    let managers = match VolumeManager::open_all(namespace) {
        Ok(managers) => managers,
        Err(error) => {
            report::error(format_args!("{error}"));
            return 1;
        }
    };
    let mut status = 0;
    for mut manager in managers {
        if let Err(error) = manager.sync() {
            report::error(format_args!("{error}"));
            status = 1;
        }
    }
    status
}

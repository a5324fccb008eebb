//! Unmounts volumes after writing all changes.

use client::namespace::Namespace;
use client::volume_managers::{VolumeManager, ask_each};
use contracts::volume_manager::VolumeError;
use stdio::report;

sip::startup!("umount/manifest.toml");

/// Unmounts the volume at each path.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let mut managers = match VolumeManager::open_all(&mut namespace) {
        Ok(managers) => managers,
        Err(error) => {
            report::error(format_args!("{error}"));
            return 1;
        }
    };
    let mut status = 0;
    for asked in &startup.points {
        let point = path::absolute(&startup.working_folder, asked);
        let unmounted = ask_each(&mut managers, VolumeError::NotMounted, |manager| manager.unmount(&point));
        match unmounted {
            Ok(()) => {}
            Err(error) if error.error() == Some(VolumeError::NotMounted) => {
                status = report::path_error(asked, &"not a mount point; `mount` lists mounts");
            }
            Err(error) => {
                report::error(format_args!("{error}"));
                status = 1;
            }
        }
    }
    status
}

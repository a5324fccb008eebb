//! Creates folders.

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::NameError;
use file_tools::feed::for_each_path;

sip::startup!("mkdir/manifest.toml");

/// Creates each folder. A failure is reported; the others are still created.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    for_each_path(&startup.working_folder, &startup.paths, |_, full| match startup.parents {
        true => make_with_parents(&mut namespace, full),
        false => namespace.make_directory(full),
    })
}

/// Creates the missing folders of a path.
fn make_with_parents(namespace: &mut Namespace, full: &str) -> Result<(), AccessError> {
    let ends = full.match_indices('/').map(|(slash, _)| slash).skip(1).chain([full.len()]);
    let mut nothing_yet = false;
    for end in ends {
        let folder = &full[..end];
        if !nothing_yet && namespace.open_directory(folder).is_ok() {
            continue;
        }
        nothing_yet = true;
        match namespace.make_directory(folder) {
            // Created by another program meanwhile, or not a folder, in which case the next step fails.
            Err(AccessError::Name(NameError::AlreadyExists)) => drop(namespace.open_directory(folder)?),
            other => other?,
        }
    }
    Ok(())
}

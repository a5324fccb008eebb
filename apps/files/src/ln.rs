//! Creates hard and symbolic links.

mod volumes;

use alloc::format;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::NameError;
use file_tools::copying::{Place, each_destination};
use stdio::report;

sip::startup!("ln/manifest.toml");

/// Links each path at the last one.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let symbolic = startup.symbolic;
    each_destination(
        &mut namespace,
        &startup.working_folder,
        &startup.paths,
        "ln TARGET... PATH",
        |namespace, from, to| match symbolic {
            true => symbolic_link(namespace, from, to),
            false => hard_link(namespace, from, to),
        },
    )
}

/// A symbolic link stores its target as given, to be resolved relative to its own folder.
fn symbolic_link(namespace: &mut Namespace, from: &Place, to: &Place) -> bool {
    if let Some(why) = volumes::misleads(namespace, &from.shown, &to.full) {
        report::path_error(&to.shown, &why);
        return false;
    }
    match namespace.make_link(&to.full, &from.shown) {
        Ok(()) => return true,
        Err(AccessError::Name(NameError::NotSupported)) => {
            report::path_error(&to.shown, &"its file system has no links; use `cp`");
        }
        Err(error) => {
            report::path_error(&to.shown, &error);
        }
    }
    false
}

fn hard_link(namespace: &mut Namespace, from: &Place, to: &Place) -> bool {
    match namespace.hard_link(&from.full, &to.full) {
        Ok(()) => return true,
        Err(AccessError::Name(NameError::NotSupported)) => why_not_supported(namespace, from, to),
        Err(error) => {
            report::path_error(&to.shown, &error);
        }
    }
    false
}

fn why_not_supported(namespace: &mut Namespace, from: &Place, to: &Place) {
    if let Err(error) = namespace.attributes(&from.full) {
        report::path_error(&from.shown, &error);
        return;
    }
    let (from_volume, to_volume) = (volumes::volume_of(namespace, &from.full), volumes::volume_of(namespace, &to.full));
    match (from_volume, to_volume) {
        (_, None) => report::path_error(&to.shown, &AccessError::NoFileSystem),
        (None, _) => report::path_error(&from.shown, &"not on a volume, so it cannot be linked"),
        (Some(from_volume), Some(to_volume)) if from_volume != to_volume => {
            let why = format!("{} is on another volume, {from_volume}; use `cp`", from.shown);
            report::path_error(&to.shown, &why)
        }
        _ => report::path_error(&to.shown, &"its file system has no hard links; use `cp`"),
    };
}

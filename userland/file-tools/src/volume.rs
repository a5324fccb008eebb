//! Resolves paths to volumes and through symbolic links.
//!
//! Volume and node number identify a file.

use alloc::string::String;
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::{NameError, NodeKind};

/// Maximum symbolic links followed for one path.
const MAX_LINKS: usize = 16;

/// Returns the mount point of the volume of a path, or `/` if it is on none. A name that does not exist belongs to the
/// volume on which it could be created.
pub fn volume_of(namespace: &mut Namespace, full: &str) -> Result<String, AccessError> {
    let mut whole = path::absolute("/", full);
    for _ in 0..MAX_LINKS {
        match first_redirection(namespace, &whole)? {
            Redirection::None => return Ok(String::from("/")),
            Redirection::Mount(point) => return Ok(point),
            Redirection::Link(next) => whole = next,
        }
    }
    Ok(String::from("/"))
}

enum Redirection {
    None,
    Mount(String),
    Link(String),
}

/// Returns the first part of a path that is a mount point or a symbolic link.
fn first_redirection(namespace: &mut Namespace, whole: &str) -> Result<Redirection, AccessError> {
    let parts: Vec<&str> = path::parts(whole).collect();
    let mut folder = String::from("/");
    for (index, part) in parts.iter().enumerate() {
        let here = path::join(&folder, part);
        match namespace.attributes(&here) {
            Ok((NodeKind::Mount, _)) => return Ok(Redirection::Mount(here)),
            Ok((NodeKind::Link, _)) => {
                let target = path::absolute(&folder, &namespace.read_link(&here)?);
                return Ok(Redirection::Link(path::join(&target, &parts[index + 1..].join("/"))));
            }
            Ok(_) => folder = here,
            Err(AccessError::Name(_)) => return Ok(Redirection::None),
            Err(error) => return Err(error),
        }
    }
    Ok(Redirection::None)
}

/// Follows symbolic links at the end of a path. The result need not exist.
pub fn end_of_links(namespace: &mut Namespace, full: &str) -> Result<String, AccessError> {
    let mut whole = path::absolute("/", full);
    for _ in 0..MAX_LINKS {
        match namespace.attributes(&whole) {
            Ok((NodeKind::Link, _)) => {}
            _ => return Ok(whole),
        }
        let target = namespace.read_link(&whole)?;
        let above = path::split_last(&whole).map_or("/", |(folder, _)| folder);
        whole = match target.strip_prefix('/') {
            // An absolute target starts at the root of the volume.
            Some(below) => path::absolute(&volume_of(namespace, &whole)?, below),
            None => path::absolute(above, &target),
        };
    }
    Err(NameError::TooManyLinks.into())
}

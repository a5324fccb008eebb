//! Where paths lead: on which volume, and past symbolic links.
//!
//! The volume and the number of a node tell whether two names are one file.

use alloc::string::String;
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::{NameError, NodeKind};

/// How many symbolic links are followed on one way.
const MAX_LINKS: usize = 16;

/// Where the volume is mounted that holds what has this path, from the root on; `/` for what is on none. A path
/// that leads nowhere counts to the volume that a name could be made on.
pub fn volume_of(namespace: &mut Namespace, full: &str) -> Result<String, AccessError> {
    let mut whole = path::absolute("/", full);
    for _ in 0..MAX_LINKS {
        match first_turn(namespace, &whole)? {
            Turn::None => return Ok(String::from("/")),
            Turn::Mount(point) => return Ok(point),
            Turn::Link(next) => whole = next,
        }
    }
    Ok(String::from("/"))
}

enum Turn {
    None,
    Mount(String),
    Link(String),
}

/// The first part of a path at which it leaves the directory service, or is led elsewhere.
fn first_turn(namespace: &mut Namespace, whole: &str) -> Result<Turn, AccessError> {
    let parts: Vec<&str> = path::parts(whole).collect();
    let mut folder = String::from("/");
    for (index, part) in parts.iter().enumerate() {
        let here = path::join(&folder, part);
        match namespace.attributes(&here) {
            Ok((NodeKind::Mount, _)) => return Ok(Turn::Mount(here)),
            Ok((NodeKind::Link, _)) => {
                let target = path::absolute(&folder, &namespace.read_link(&here)?);
                return Ok(Turn::Link(path::join(&target, &parts[index + 1..].join("/"))));
            }
            Ok(_) => folder = here,
            Err(AccessError::Name(_)) => return Ok(Turn::None),
            Err(error) => return Err(error),
        }
    }
    Ok(Turn::None)
}

/// The path of what is found where the symbolic links at the end of `full` lead; that may be nothing.
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
            // The root of a link is that of its volume.
            Some(below) => path::absolute(&volume_of(namespace, &whole)?, below),
            None => path::absolute(above, &target),
        };
    }
    Err(NameError::TooManyLinks.into())
}

//! Open folders: an endpoint each, which reaches only what is below it, whatever path is asked for.
//!
//! Key types: [`Folder`], [`Preopened`]. Neighbour: `walk` resolves paths from one. A folder that is renamed stays open;
//! requests that need two folders at once go to the preopened folder above both, by the paths found when they were
//! opened.

use alloc::rc::Rc;
use alloc::string::String;
use core::cell::{OnceCell, RefCell, RefMut};

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::{NodeAttributes, NodeKind};

use crate::abi::Errno;

/// A folder that the program was given.
pub struct Preopened {
    namespace: RefCell<Namespace>,
    /// Its path in the namespace.
    place: String,
    /// Number of its volume, once it was asked for.
    device: OnceCell<u64>,
}

/// An open folder.
#[derive(Clone)]
pub struct Folder {
    preopened: Rc<Preopened>,
    /// Its path below the preopened folder, without links.
    path: String,
    /// Its own endpoint; none for the preopened folder itself.
    namespace: Option<Rc<RefCell<Namespace>>>,
    /// Number of its volume, if that is another than the preopened folder's.
    device: Option<u64>,
}

impl Folder {
    /// Opens a folder of the namespace for the program. `place` is an absolute path without `..`.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn preopen(namespace: &mut Namespace, place: &str) -> Result<Folder, AccessError> {
        let opened = RefCell::new(namespace.open_directory(place)?);
        let preopened = Rc::new(Preopened { namespace: opened, place: place.into(), device: OnceCell::new() });
        Ok(Folder { preopened, path: String::new(), namespace: None, device: None })
    }

    /// Its endpoint. The borrow must end before another is asked for.
    pub fn namespace(&self) -> RefMut<'_, Namespace> {
        match &self.namespace {
            Some(namespace) => namespace.borrow_mut(),
            None => self.preopened.namespace.borrow_mut(),
        }
    }

    /// Attributes of a name; a link is not followed. The empty name is the folder.
    pub fn attributes(&self, name: &str) -> Result<(NodeKind, NodeAttributes), Errno> {
        Ok(self.namespace().own_attributes(name)?)
    }

    /// Target of a link.
    pub fn read_link(&self, name: &str) -> Result<String, Errno> {
        Ok(self.namespace().read_link(name)?)
    }

    /// Opens a folder in this one.
    pub fn child(&self, name: &str, kind: NodeKind) -> Result<Folder, Errno> {
        let opened = self.namespace().open_directory(name)?;
        let path = self.path_of(name);
        let device = match kind {
            NodeKind::Mount => Some(device(&path::join(&self.preopened.place, &path))),
            _ => self.device,
        };
        let namespace = Some(Rc::new(RefCell::new(opened)));
        Ok(Folder { preopened: Rc::clone(&self.preopened), path, namespace, device })
    }

    /// Number of the volume it lies on, which is found from the root of the namespace.
    ///
    /// # Errors
    /// A folder above the preopened one has no attributes.
    pub fn device(&self, root: &mut Namespace) -> Result<u64, Errno> {
        let Preopened { place, device: found, .. } = &*self.preopened;
        match self.device.or_else(|| found.get().copied()) {
            Some(device) => Ok(device),
            None => {
                let number = device(&mount_point(root, place)?);
                Ok(*found.get_or_init(|| number))
            }
        }
    }

    /// Performs a request about names in this folder and in another one, at the preopened folder above both.
    ///
    /// # Errors
    /// Those of the request; they lie below different preopened folders.
    pub fn with_other(
        &self,
        name: &str,
        other: &Folder,
        other_name: &str,
        act: impl FnOnce(&mut Namespace, &str, &str) -> Result<(), AccessError>,
    ) -> Result<(), Errno> {
        if !Rc::ptr_eq(&self.preopened, &other.preopened) {
            return Err(Errno::XDEV);
        }
        let (first, second) = (self.path_of(name), other.path_of(other_name));
        act(&mut self.preopened.namespace.borrow_mut(), &first, &second).map_err(|error| match Errno::from(error) {
            Errno::NOTSUP if self.device != other.device => Errno::XDEV,
            errno => errno,
        })
    }

    /// Path of a name below the preopened folder.
    fn path_of(&self, name: &str) -> String {
        path::join(&self.path, name)
    }
}

/// Returns the deepest mount point on an absolute path, or the root.
fn mount_point(namespace: &mut Namespace, place: &str) -> Result<String, AccessError> {
    let ends = place.match_indices('/').map(|(end, _)| end).chain([place.len()]).filter(|end| *end > 0);
    let mut found = String::from("/");
    for end in ends {
        let above = &place[..end];
        if path::split_last(above).is_some() && namespace.attributes(above)?.0 == NodeKind::Mount {
            found = above.into();
        }
    }
    Ok(found)
}

/// Number of the volume mounted at a path: a hash of it, the same for all programs.
fn device(mount_point: &str) -> u64 {
    // FNV-1a.
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    mount_point.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_have_different_numbers() {
        assert_ne!(device("/fs/disk0"), device("/fs/disk1"));
        assert_eq!(device("/"), device("/"));
    }
}

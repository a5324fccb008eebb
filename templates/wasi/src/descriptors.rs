//! The descriptors of the program, and what each may be used for.

use alloc::string::String;
use alloc::vec::Vec;

use sip::Deadline;
use sip::select::wait_any;

use crate::abi::{Errno, rights};
use crate::file::File;
use crate::folder::Folder;
use crate::listing::Listing;
use crate::socket::{Connection, Listener};

/// Maximum number of open descriptors.
const MAX_DESCRIPTORS: usize = 1024;

/// What a descriptor stands for.
pub enum Object {
    /// Standard input.
    Input,
    /// Standard output.
    Output,
    /// Standard error.
    Error,
    /// A file.
    File(File),
    /// A folder, and where the program is in its list of names.
    Folder(Folder, Listing),
    /// A listening socket.
    Listener(Listener),
    /// A connection.
    Connection(Connection),
}

/// An open descriptor.
pub struct Descriptor {
    /// What it stands for.
    pub object: Object,
    /// What may be done with it.
    pub base: u64,
    /// What may be done with what is opened from it.
    pub inheriting: u64,
    /// See [`descriptor_flags`](crate::abi::descriptor_flags).
    pub flags: u16,
    /// The path under which the program was given it, if it was.
    pub preopened: Option<String>,
}

impl Descriptor {
    /// A standard stream.
    pub fn stream(object: Object, base: u64) -> Descriptor {
        Descriptor { object, base, inheriting: 0, flags: 0, preopened: None }
    }

    /// A listening socket.
    pub fn listener(listener: Listener) -> Descriptor {
        Descriptor {
            inheriting: rights::OF_CONNECTION,
            ..Descriptor::stream(Object::Listener(listener), rights::OF_LISTENER)
        }
    }

    /// A connection, with these flags.
    pub fn connection(connection: Connection, base: u64, flags: u16) -> Descriptor {
        Descriptor { flags, ..Descriptor::stream(Object::Connection(connection), base) }
    }

    /// A folder that the program is given under a path.
    pub fn preopened(folder: Folder, path: String) -> Descriptor {
        Descriptor {
            object: Object::Folder(folder, Listing::default()),
            base: rights::OF_FOLDER,
            inheriting: rights::OF_FOLDER | rights::OF_FILE,
            flags: 0,
            preopened: Some(path),
        }
    }
}

/// All descriptors, by number.
#[derive(Default)]
pub struct Descriptors {
    open: Vec<Option<Descriptor>>,
    /// Connections that the program closed before all that it wrote was taken.
    closing: Vec<Connection>,
}

impl Descriptors {
    /// Whether [`add`](Descriptors::add) has room.
    pub fn has_room(&self) -> bool {
        self.open.len() < MAX_DESCRIPTORS || self.open.iter().any(Option::is_none)
    }

    /// Adds a descriptor under the lowest free number.
    ///
    /// # Errors
    /// There are too many.
    pub fn add(&mut self, descriptor: Descriptor) -> Result<u32, Errno> {
        let free = self.open.iter().position(Option::is_none).unwrap_or(self.open.len());
        if free >= MAX_DESCRIPTORS {
            return Err(Errno::MFILE);
        }
        if free == self.open.len() {
            self.open.push(None);
        }
        self.open[free] = Some(descriptor);
        Ok(free as u32)
    }

    /// Returns a descriptor that has these rights.
    ///
    /// # Errors
    /// It is not open, or lacks a right.
    pub fn get(&mut self, number: u32, wanted: u64) -> Result<&mut Descriptor, Errno> {
        let descriptor = self.open.get_mut(number as usize).and_then(Option::as_mut).ok_or(Errno::BADF)?;
        if wanted & !descriptor.base != 0 { Err(Errno::NOTCAPABLE) } else { Ok(descriptor) }
    }

    /// Returns a file that has these rights.
    ///
    /// # Errors
    /// It is not open, no file, or lacks a right.
    pub fn file(&mut self, number: u32, wanted: u64) -> Result<(&mut File, u16), Errno> {
        match self.get(number, 0)? {
            Descriptor { object: Object::Folder(..), .. } => Err(Errno::ISDIR),
            Descriptor { object: Object::File(file), base, flags, .. } if wanted & !*base == 0 => Ok((file, *flags)),
            Descriptor { object: Object::File(_), .. } => Err(Errno::NOTCAPABLE),
            _ => Err(Errno::SPIPE),
        }
    }

    /// Checks that the program's locks still hold, before it changes a name: who relies on a lock relies on it there, too.
    ///
    /// # Errors
    /// A server of a locked file has ended.
    pub fn check_locks(&mut self) -> Result<(), Errno> {
        self.open.iter_mut().flatten().try_for_each(|descriptor| match &mut descriptor.object {
            Object::File(file) => file.check_locks(),
            _ => Ok(()),
        })
    }

    /// Returns a folder that has these rights.
    ///
    /// # Errors
    /// It is not open, no folder, or lacks a right.
    pub fn folder(&mut self, number: u32, wanted: u64) -> Result<Folder, Errno> {
        match self.get(number, 0)? {
            Descriptor { object: Object::Folder(folder, _), base, .. } if wanted & !*base == 0 => Ok(folder.clone()),
            Descriptor { object: Object::Folder(..), .. } => Err(Errno::NOTCAPABLE),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// Closes a descriptor.
    ///
    /// # Errors
    /// It is not open.
    pub fn close(&mut self, number: u32) -> Result<(), Errno> {
        let place = self.open.get_mut(number as usize).ok_or(Errno::BADF)?;
        let closed = place.take().ok_or(Errno::BADF)?;
        self.end(closed);
        Ok(())
    }

    fn end(&mut self, closed: Descriptor) {
        self.end_closed();
        match closed.object {
            Object::Connection(connection) => self.closing.extend(connection.close()),
            Object::File(file) => file.close(),
            _ => {}
        }
    }

    /// Ends connections that were closed, and of which all is taken by now.
    pub fn end_closed(&mut self) {
        self.closing = core::mem::take(&mut self.closing).into_iter().filter_map(Connection::close).collect();
    }

    /// Closes all connections, and waits until what was written is taken, or the deadline passes.
    pub fn end_all(&mut self, deadline: Deadline) {
        for descriptor in core::mem::take(&mut self.open).into_iter().flatten() {
            self.end(descriptor);
        }
        while let Some(pending) = self.closing.first().and_then(Connection::output_pending) {
            if wait_any(&[pending], deadline).is_none() {
                return;
            }
            self.end_closed();
        }
        self.end_closed();
    }

    /// What a descriptor stands for, if it is open.
    pub fn object(&self, number: u32) -> Option<&Object> {
        Some(&self.open.get(number as usize)?.as_ref()?.object)
    }

    /// Gives a descriptor the number of another one, which is closed.
    ///
    /// # Errors
    /// One of them is not open.
    pub fn renumber(&mut self, from: u32, to: u32) -> Result<(), Errno> {
        self.get(from, 0)?;
        self.get(to, 0)?;
        if from != to {
            let moved = self.open[from as usize].take();
            let replaced = core::mem::replace(&mut self.open[to as usize], moved);
            if let Some(replaced) = replaced {
                self.end(replaced);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams() -> Descriptors {
        let mut descriptors = Descriptors::default();
        for object in [Object::Input, Object::Output, Object::Error] {
            descriptors.add(Descriptor::stream(object, rights::FD_WRITE)).expect("room");
        }
        descriptors
    }

    #[test]
    fn the_lowest_free_number_is_taken() {
        let mut descriptors = streams();
        assert_eq!(descriptors.close(1), Ok(()));
        assert_eq!(descriptors.close(1), Err(Errno::BADF));
        assert_eq!(descriptors.close(u32::MAX), Err(Errno::BADF));
        assert_eq!(descriptors.add(Descriptor::stream(Object::Output, 0)), Ok(1));
        for number in 3..MAX_DESCRIPTORS as u32 {
            assert_eq!(descriptors.add(Descriptor::stream(Object::Output, 0)), Ok(number));
        }
        assert_eq!(descriptors.add(Descriptor::stream(Object::Output, 0)), Err(Errno::MFILE));
    }

    #[test]
    fn a_number_can_be_given_to_another_descriptor() {
        let mut descriptors = streams();
        assert_eq!(descriptors.renumber(0, 9), Err(Errno::BADF));
        assert_eq!(descriptors.renumber(9, 0), Err(Errno::BADF));
        assert_eq!(descriptors.renumber(2, 2), Ok(()));
        assert_eq!(descriptors.renumber(2, 0), Ok(()));
        assert!(matches!(descriptors.get(0, 0), Ok(Descriptor { object: Object::Error, .. })));
        assert_eq!(descriptors.get(2, 0).err(), Some(Errno::BADF));
    }

    #[test]
    fn what_a_descriptor_is_not_for_is_refused() {
        let mut descriptors = streams();
        assert!(descriptors.get(0, rights::FD_WRITE).is_ok());
        assert_eq!(descriptors.get(0, rights::FD_WRITE | rights::FD_READ).err(), Some(Errno::NOTCAPABLE));
        assert_eq!(descriptors.file(0, 0).err(), Some(Errno::SPIPE));
        assert_eq!(descriptors.folder(0, 0).err(), Some(Errno::NOTDIR));
    }
}

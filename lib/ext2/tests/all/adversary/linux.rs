//! Operations on a volume mounted by Linux through a loop device.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{self as unix, FileExt, MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use crate::adversary::image::Image;
use crate::adversary::model::{Content, Kind, Model};
use crate::adversary::noise::noise;
use crate::adversary::operation::{Extended, Facts, Operation, Outcome, SLOTS, Sort, many_name, shown_name};
use crate::adversary::tools::{ImageFile, tool};
use crate::adversary::volume::{same_bytes, same_facts, same_names};

/// Exceeds the names or values of extended attributes in a block.
const LONGEST_EXTENDED: usize = 8192;
/// Maximum attempts of a command that other processes may block.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// An image mounted by Linux, until this is dropped.
pub struct LinuxMount {
    file: ImageFile,
    place: TempDir,
    slots: [Option<File>; SLOTS],
}

/// Returns whether this process may mount images; prints a message if not, as the test is then skipped.
pub fn may_mount() -> bool {
    let may =
        crate::adversary::tools::are_there() && LinuxMount::mount(&crate::adversary::tools::FORMATS[0].make()).is_ok();
    if !may {
        eprintln!("skipped: mounting through a loop device is not possible; root may do so");
    }
    may
}

/// Retries a command that may fail transiently: loop devices race with other processes, and a mount is busy while
/// another process scans all mounts.
fn patiently(mut command: Command) -> Result<(), String> {
    let mut said = String::new();
    for _ in 0..ATTEMPTS {
        let output = command.output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        said = String::from_utf8_lossy(&output.stderr).into_owned();
        std::thread::sleep(PAUSE);
    }
    Err(said)
}

impl LinuxMount {
    pub fn mount(image: &Image) -> Result<LinuxMount, String> {
        let mount = LinuxMount {
            file: ImageFile::of(image),
            place: TempDir::new().map_err(|error| error.to_string())?,
            slots: Default::default(),
        };
        mount.attach()?;
        Ok(mount)
    }

    fn attach(&self) -> Result<(), String> {
        let mut command = tool("mount");
        command.args(["-t", "ext2", "-o", "loop"]).arg(self.file.path()).arg(self.place.path());
        patiently(command)
    }

    fn detach(&self) -> bool {
        let mut command = tool("umount");
        command.arg(self.place.path());
        patiently(command).is_ok()
    }

    /// Unmounts, and returns the image.
    pub fn unmount(mut self) -> Image {
        self.slots = Default::default();
        assert!(self.detach(), "Linux unmounts");
        self.file.load()
    }

    pub fn apply(&mut self, operation: &Operation) -> Outcome {
        match self.try_apply(operation) {
            Ok(outcome) => outcome,
            Err(error) if error.kind() == io::ErrorKind::StorageFull => Outcome::NoRoom(0),
            Err(_) => Outcome::Refused,
        }
    }

    fn path(&self, path: &[Vec<u8>]) -> io::Result<PathBuf> {
        // An empty name, or one with a slash, is valid to the file system but not in a path.
        if path.iter().any(|name| name.is_empty() || name.contains(&b'/')) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(path.iter().fold(self.place.path().to_path_buf(), |at, name| at.join(OsStr::from_bytes(name))))
    }

    fn try_apply(&mut self, operation: &Operation) -> io::Result<Outcome> {
        match operation {
            Operation::Create { path, permissions, owner } => create(&self.path(path)?, *permissions, *owner)?,
            Operation::MakeFolder { path, permissions } => {
                let path = self.path(path)?;
                fs::create_dir(&path)?;
                own(&path, *permissions, 0)?;
            }
            Operation::MakeLink { path, target } => {
                let path = self.path(path)?;
                unix::symlink(OsStr::from_bytes(target), &path)?;
                unix::lchown(&path, Some(0), Some(0))?;
            }
            Operation::AddName { existing, path } => fs::hard_link(self.path(existing)?, self.path(path)?)?,
            Operation::Unlink { path } => fs::remove_file(self.path(path)?)?,
            Operation::RemoveFolder { path } if path.is_empty() => return Ok(Outcome::Refused),
            Operation::RemoveFolder { path } => fs::remove_dir(self.path(path)?)?,
            Operation::Rename { from, to } if from.is_empty() || to.is_empty() => return Ok(Outcome::Refused),
            Operation::Rename { from, to } => fs::rename(self.path(from)?, self.path(to)?)?,
            Operation::CreateMany { folder, first, count, name_bytes } => {
                for number in *first..first + count {
                    create(&self.path(folder)?.join(OsStr::from_bytes(&many_name(number, *name_bytes))), 0o644, 0)?;
                }
            }
            Operation::UnlinkMany { folder, first, count, name_bytes } => {
                for number in *first..first + count {
                    fs::remove_file(self.path(folder)?.join(OsStr::from_bytes(&many_name(number, *name_bytes))))?;
                }
            }
            Operation::SetAttributes { .. } => self.set_attributes(operation)?,
            Operation::SetExtended { path, name, bytes, seed } => {
                let path = self.path(path)?;
                let value = noise(*seed, *bytes);
                rustix::fs::lsetxattr(&path, format!("user.{name}"), &value, rustix::fs::XattrFlags::empty())?;
            }
            Operation::RemoveExtended { path, name } => {
                rustix::fs::lremovexattr(&self.path(path)?, format!("user.{name}"))?;
            }
            Operation::List { path } => return self.names(path).map(Outcome::Names),
            Operation::Look { path } => return self.facts(path).map(Outcome::Facts),
            Operation::Sync => {}
            Operation::Remount => {
                self.slots = Default::default();
                assert!(self.detach(), "Linux unmounts");
                self.attach().expect("Linux mounts again");
            }
            other => return self.apply_to_open_file(other),
        }
        Ok(Outcome::Done)
    }

    fn set_attributes(&self, operation: &Operation) -> io::Result<()> {
        let Operation::SetAttributes { path, permissions, owner, group, modified } = operation else { return Ok(()) };
        let path = self.path(path)?;
        let before = fs::symlink_metadata(&path)?;
        if owner.is_some() || group.is_some() {
            unix::lchown(&path, *owner, *group)?;
        }
        if !before.is_symlink() {
            // Linux clears some permissions when the owner changes.
            let permissions = permissions.map_or(before.mode(), u32::from) & 0o7777;
            fs::set_permissions(&path, Permissions::from_mode(permissions))?;
        }
        if let Some(modified) = modified {
            set_modified(&path, *modified)?;
        }
        Ok(())
    }

    fn apply_to_open_file(&mut self, operation: &Operation) -> io::Result<Outcome> {
        match operation {
            Operation::Open { path, slot } => {
                let path = self.path(path)?;
                if !fs::symlink_metadata(&path)?.is_file() {
                    return Ok(Outcome::Refused);
                }
                self.slots[*slot] = Some(OpenOptions::new().read(true).write(true).open(path)?);
            }
            Operation::Close { slot } => self.slots[*slot] = None,
            Operation::Read { slot, offset, bytes } => {
                let mut buffer = vec![0; *bytes];
                let read = self.open(*slot)?.read_at(&mut buffer, *offset)?;
                buffer.truncate(read);
                return Ok(Outcome::Data(buffer));
            }
            Operation::Write { slot, offset, bytes, seed } => {
                self.open(*slot)?.write_all_at(&noise(*seed, *bytes), *offset)?;
            }
            Operation::Append { slot, bytes, seed } => {
                let file = self.open(*slot)?;
                let end = file.metadata()?.len();
                file.write_all_at(&noise(*seed, *bytes), end)?;
                return Ok(Outcome::AppendedAt(end));
            }
            Operation::SetSize { slot, size } => self.open(*slot)?.set_len(*size)?,
            _ => {}
        }
        Ok(Outcome::Done)
    }

    fn open(&self, slot: usize) -> io::Result<&File> {
        self.slots[slot].as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn names(&self, path: &[Vec<u8>]) -> io::Result<BTreeMap<Vec<u8>, Sort>> {
        let entries = fs::read_dir(self.path(path)?)?;
        entries
            .map(|entry| entry.and_then(|entry| Ok((entry.file_name().into_vec(), sort(&entry.file_type()?)))))
            .collect()
    }

    fn facts(&self, path: &[Vec<u8>]) -> io::Result<Facts> {
        let path = self.path(path)?;
        let found = fs::symlink_metadata(&path)?;
        let sort = sort(&found.file_type());
        let target = if sort == Sort::Link { Some(fs::read_link(&path)?.into_os_string().into_vec()) } else { None };
        Ok(Facts {
            sort,
            size: (sort != Sort::Folder).then_some(found.len()),
            permissions: (found.mode() & 0o7777) as u16,
            owner: found.uid(),
            group: found.gid(),
            links: found.nlink() as u32,
            modified: Some(found.mtime() as u32),
            target,
            extended: if sort == Sort::Link { Extended::new() } else { extended(&path)? },
        })
    }

    /// Reads everything on the volume; the first difference from the model is the error.
    pub fn compare(&self, model: &Model) -> Result<(), String> {
        for (path, number) in model.walk() {
            let shown = path.iter().map(|name| shown_name(name)).collect::<Vec<_>>().join("/");
            let named = |what: String| format!("in Linux, /{shown}: {what}");
            let facts = self.facts(&path).map_err(|error| named(error.to_string()))?;
            same_facts(&facts, &model.facts(number)).map_err(named)?;
            match &model.node(number).kind {
                Kind::File(content) => self.same_content(&path, content).map_err(named)?,
                Kind::Folder { entries } => {
                    let names = self.names(&path).map_err(|error| named(error.to_string()))?;
                    same_names(&names, entries.keys()).map_err(named)?;
                }
                Kind::Link(_) => {}
            }
        }
        Ok(())
    }

    fn same_content(&self, path: &[Vec<u8>], content: &Content) -> Result<(), String> {
        let file = self.path(path).and_then(File::open).map_err(|error| error.to_string())?;
        for (start, bytes) in content.pieces() {
            let start = start.saturating_sub(5000);
            let expected = content.read(start, bytes as usize + 10_000);
            let mut found = vec![0xee; expected.len()];
            file.read_exact_at(&mut found, start).map_err(|error| error.to_string())?;
            same_bytes(start, &found, &expected)?;
        }
        Ok(())
    }
}

impl Drop for LinuxMount {
    fn drop(&mut self) {
        self.slots = Default::default();
        // After `unmount`, or a failed mount, there is nothing to do.
        self.detach();
    }
}

fn sort(found: &fs::FileType) -> Sort {
    if found.is_dir() {
        Sort::Folder
    } else if found.is_symlink() {
        Sort::Link
    } else {
        Sort::File
    }
}

/// Returns the `user.` attributes of a file or folder.
fn extended(path: &std::path::Path) -> io::Result<Extended> {
    let mut names = vec![0; LONGEST_EXTENDED];
    let bytes = rustix::fs::llistxattr(path, &mut names)?;
    let mut found = Extended::new();
    for name in names[..bytes].split(|byte| *byte == 0) {
        let Some(own) = name.strip_prefix(b"user.") else { continue };
        let mut value = vec![0; LONGEST_EXTENDED];
        let bytes = rustix::fs::lgetxattr(path, name, &mut value)?;
        found.insert(own.to_vec(), value[..bytes].to_vec());
    }
    Ok(found)
}

fn create(path: &std::path::Path, permissions: u16, owner: u32) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?;
    own(path, permissions, owner)
}

fn own(path: &std::path::Path, permissions: u16, owner: u32) -> io::Result<()> {
    unix::chown(path, Some(owner), Some(owner / 2))?;
    fs::set_permissions(path, Permissions::from_mode(permissions.into()))
}

/// Sets the time of a file, folder or link. For links `touch` is used, as the standard library follows them.
fn set_modified(path: &std::path::Path, modified: u32) -> io::Result<()> {
    let time: SystemTime = UNIX_EPOCH + Duration::from_secs(modified.into());
    if !fs::symlink_metadata(path)?.is_symlink() {
        return File::open(path)?.set_modified(time);
    }
    let status = tool("touch").args(["-h", "-m", "-d", &format!("@{modified}")]).arg(path).status()?;
    if status.success() { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
}

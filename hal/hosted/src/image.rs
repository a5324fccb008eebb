//! Sealed images: immutable code and constants.
//!
//! Key type: [`Images`]. Each image's bytes go to a sealed memfd, of which only readable and
//! readable-executable mappings are made. Deliberately not here: the image format; the kernel has
//! checked and relocated it.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use hal_api::{Arena, MapError, Segment};

use crate::arena::{HOST_PAGE_BYTES, range_within};

const MFD_EXEC: libc::c_uint = 0x10;
const SEALS: libc::c_int = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;

/// The image arena and its mappings.
#[derive(Debug)]
pub struct Images {
    arena: Arena,
    /// First address -> bytes in whole pages of each mapped segment. Mappings are never removed or replaced.
    mapped: Mutex<BTreeMap<usize, usize>>,
    /// Kinds of mappings to try, in order.
    sharing: [libc::c_int; 2],
}

impl Images {
    /// Creates an empty image arena.
    pub fn new(arena: Arena) -> Self {
        // A shared mapping of a write-sealed file can never be made writable, not even by mprotect, nor by a debugger, which
        // writes breakpoints. Hosts before Linux 6.7 refuse shared mappings of such a file altogether.
        let mut sharing = [libc::MAP_SHARED, libc::MAP_PRIVATE];
        if is_traced() {
            sharing.reverse();
        }
        Self { arena, mapped: Mutex::new(BTreeMap::new()), sharing }
    }

    /// Maps all segments or none.
    pub fn map(&self, segments: &[Segment<'_>]) -> Result<(), MapError> {
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = mapped.clone();
        for segment in segments {
            claim(&mut taken, self.arena, segment)?;
        }
        let file = sealed_file(segments).map_err(|_| MapError)?;
        let mut offset = 0;
        for (index, segment) in segments.iter().enumerate() {
            if map_segment(&file, offset, segment, self.sharing).is_err() {
                segments[..index].iter().for_each(unmap_segment);
                return Err(MapError);
            }
            offset += padded_bytes(segment);
        }
        *mapped = taken;
        Ok(())
    }

    /// Returns pages of a mapped segment.
    pub(crate) fn bytes(&self, address: usize, bytes: usize) -> Option<&[u8]> {
        let mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, length) = mapped.range(..=address).next_back()?;
        let is_inside = address - start <= *length && bytes <= length - (address - start);
        // SAFETY: the pages are mapped readable, of a file that cannot be changed, and stay so for ever.
        is_inside.then(|| unsafe { std::slice::from_raw_parts(ptr::with_exposed_provenance(address), bytes) })
    }
}

fn padded_bytes(segment: &Segment<'_>) -> usize {
    segment.bytes.len().next_multiple_of(HOST_PAGE_BYTES)
}

/// Records a segment's pages, or fails: not whole pages, outside the arena, or mapped already.
fn claim(taken: &mut BTreeMap<usize, usize>, arena: Arena, segment: &Segment<'_>) -> Result<(), MapError> {
    let bytes = padded_bytes(segment);
    let inside = range_within(arena, segment.address, bytes);
    if bytes == 0 || !inside || !segment.address.is_multiple_of(HOST_PAGE_BYTES) {
        return Err(MapError);
    }
    let before = taken.range(..segment.address + bytes).next_back();
    if before.is_some_and(|(start, length)| start + length > segment.address) {
        return Err(MapError);
    }
    taken.insert(segment.address, bytes);
    Ok(())
}

/// Creates a memfd that holds the segments one after another, each padded to whole pages, and that can
/// never be written, resized or unsealed again.
fn sealed_file(segments: &[Segment<'_>]) -> io::Result<File> {
    let mut file = memory_file(c"singularity-image")?;
    for segment in segments {
        file.write_all(segment.bytes)?;
        let padding = padded_bytes(segment) - segment.bytes.len();
        file.write_all(&[0; HOST_PAGE_BYTES][..padding])?;
    }
    // SAFETY: fcntl with F_ADD_SEALS takes an integer and touches no memory of this process.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}

/// Creates a memory file of this size.
pub(crate) fn sized_file(name: &CStr, bytes: usize) -> io::Result<File> {
    let file = memory_file(name)?;
    file.set_len(bytes as u64)?;
    Ok(file)
}

/// Creates an empty memory file, of which executable mappings can be made.
pub(crate) fn memory_file(name: &CStr) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Hosts before Linux 6.3 do not support MFD_EXEC; later ones may require it.
    for flags in [flags | MFD_EXEC, flags] {
        // SAFETY: the name is a C string.
        let descriptor = unsafe { libc::memfd_create(name.as_ptr(), flags) };
        if descriptor >= 0 {
            // SAFETY: the descriptor is new and has no other owner.
            return Ok(unsafe { File::from_raw_fd(descriptor) });
        }
    }
    Err(io::Error::last_os_error())
}

/// Whether a debugger traces this process, which can do with it what it likes anyway.
fn is_traced() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|id| id.trim() != "0")
}

fn map_segment(file: &File, offset: usize, segment: &Segment<'_>, sharing: [libc::c_int; 2]) -> io::Result<()> {
    let protection = if segment.executable { libc::PROT_READ | libc::PROT_EXEC } else { libc::PROT_READ };
    let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
    for sharing in sharing {
        let address = ptr::with_exposed_provenance_mut(segment.address);
        let flags = sharing | libc::MAP_FIXED;
        // SAFETY: the range is whole pages of the image arena that nothing was mapped to before
        // (`claim`, under the lock), so the fixed mapping replaces only reserved, inaccessible space.
        let answer = unsafe { libc::mmap(address, padded_bytes(segment), protection, flags, file.as_raw_fd(), offset) };
        if answer != libc::MAP_FAILED {
            return Ok(());
        }
    }
    Err(io::Error::last_os_error())
}

/// Restores reserved, inaccessible space where a segment of a failed image was mapped.
fn unmap_segment(segment: &Segment<'_>) {
    let address = ptr::with_exposed_provenance_mut(segment.address);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: the range was mapped by `map_segment` in this same call, under the lock, and its address has not
    // been handed out.
    unsafe { libc::mmap(address, padded_bytes(segment), libc::PROT_NONE, flags, -1, 0) };
}

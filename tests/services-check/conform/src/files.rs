//! Checks of the contract `File`.

use alloc::vec;
use alloc::vec::Vec;

use client::access::AccessError;
use client::answer::{REQUEST_LIMIT, wait};
use client::file_io::OpenFile;
use contracts::directory::{CreateMode, NameError};
use contracts::file::LockKind::{Exclusive, Shared};
use contracts::file::{self, FileError, states};
use sip::Deadline;
use sip::exheap::ExVec;

use crate::suite::{Done, Suite};

const NAME: &str = "file";
const OTHER: &str = "other";
const NEW_PERMISSIONS: u32 = 0o644;

/// Maximum time until a server knows of a client's end, in milliseconds.
const END_MS: u64 = 10_000;

type Ready = file::Imp<states::Ready>;

/// Runs all checks, and leaves the folder empty.
///
/// # Errors
///
/// The setup of a check failed.
pub fn check(suite: &mut Suite) -> Done {
    let mut opened = suite.folder.create_own_file(NAME, NEW_PERMISSIONS, CreateMode::New)?;
    contents(suite, &mut opened)?;
    sizes(suite, &mut opened)?;
    lengths(suite)?;
    locks(suite)?;
    removed(suite, opened)
}

fn read(file: &mut OpenFile, offset: u64, bytes: usize) -> Result<Vec<u8>, AccessError> {
    let (block, count) = file.read_at(ExVec::new(bytes)?, offset)?;
    Ok(block[..count].to_vec())
}

fn write(file: &mut OpenFile, offset: u64, bytes: &[u8]) -> Done {
    file.write_at(ExVec::from_slice(bytes)?, offset, bytes.len())?.all().map(drop)
}

fn contents(suite: &mut Suite, file: &mut OpenFile) -> Done {
    suite.expect("read an empty file", read(file, 0, 10), Ok(vec![]));
    suite.expect("write", write(file, 0, b"0123456789"), Ok(()));
    suite.expect("read more than there is", read(file, 0, 100), Ok(b"0123456789".to_vec()));
    suite.expect("read a part", read(file, 3, 4), Ok(b"3456".to_vec()));
    suite.expect("read at the end", read(file, 10, 10), Ok(vec![]));
    suite.expect("read past the end", read(file, 1 << 40, 10), Ok(vec![]));
    suite.expect("write over a part", write(file, 2, b"ab"), Ok(()));
    suite.expect("append", file.append(ExVec::from_slice(b"cd")?, 2)?.failed, None);
    suite.expect("read what was written", read(file, 0, 100), Ok(b"01ab456789cd".to_vec()));
    let mut other = suite.folder.open_file(NAME)?;
    suite.expect("read by another client", read(&mut other, 0, 3), Ok(b"01a".to_vec()));
    suite.expect("write by another client", write(&mut other, 0, b"xy"), Ok(()));
    suite.expect("read what another wrote", read(file, 0, 3), Ok(b"xya".to_vec()));
    suite.expect("sync", file.sync(), Ok(()));
    Ok(())
}

fn sizes(suite: &mut Suite, file: &mut OpenFile) -> Done {
    suite.expect("cut", file.set_size(3), Ok(()));
    suite.expect("read what is left", read(file, 0, 100), Ok(b"xya".to_vec()));
    suite.expect("lengthen", file.set_size(6), Ok(()));
    suite.expect("read zeros", read(file, 0, 100), Ok(b"xya\0\0\0".to_vec()));
    suite.expect("write beyond the end", write(file, 9_000, b"z"), Ok(()));
    suite.expect("the size of it all", file.attributes()?.size_bytes, 9_001);
    suite.expect("read between", read(file, 6, 8_994).map(|bytes| bytes.iter().all(|&byte| byte == 0)), Ok(true));
    suite.expect("grow without end", file.set_size(u64::MAX), Err(FileError::TooLarge.into()));
    let far = file.write_at(ExVec::from_slice(b"far")?, u64::MAX - 1, 3)?;
    suite.expect("write without end", (far.failed, far.bytes), (Some(FileError::TooLarge), 0));
    suite.expect("the size after that", file.attributes()?.size_bytes, 9_001);
    Ok(())
}

/// Counts that do not fit their blocks, which the library would not send.
fn lengths(suite: &mut Suite) -> Done {
    let (importer, exporter) = file::new_channel()?;
    suite.folder.bind(NAME, exporter)?;
    let ready = match wait(importer, REQUEST_LIMIT)? {
        file::ImpStart::Success { next } => next,
        file::ImpStart::Refused { error, .. } => return Err(error.into()),
        file::ImpStart::ChannelClosed(_) => return Err(AccessError::ServerEnded),
    };
    let ready = long_write(suite, ready)?;
    let ready = long_append(suite, ready)?;
    match wait(ready.read(ExVec::new(2)?, 0, 100), REQUEST_LIMIT)? {
        file::ImpReadyAfterRead::ReadDone { count, data, .. } => {
            suite.expect("read more than the block holds", (count, &data[..] == b"xy"), (2, true));
        }
        file::ImpReadyAfterRead::ReadFailed { error, .. } => return Err(error.into()),
        file::ImpReadyAfterRead::ChannelClosed(_) => return Err(AccessError::ServerEnded),
    }
    let size = suite.folder.own_attributes(NAME)?.1.size_bytes;
    suite.expect("the size after what was too long", size, 9_001);
    Ok(())
}

fn long_write(suite: &mut Suite, ready: Ready) -> Result<Ready, AccessError> {
    let (answer, ready) = match wait(ready.write(ExVec::from_slice(b"long")?, 0, 5), REQUEST_LIMIT)? {
        file::ImpReadyAfterWrite::WriteDone { next, .. } => (None, next),
        file::ImpReadyAfterWrite::WriteFailed { error, written, data, next } => {
            (Some((error, written, data.len())), next)
        }
        file::ImpReadyAfterWrite::ChannelClosed(_) => return Err(AccessError::ServerEnded),
    };
    suite.expect("write more than the block holds", answer, Some((FileError::TooLarge, 0, 4)));
    Ok(ready)
}

fn long_append(suite: &mut Suite, ready: Ready) -> Result<Ready, AccessError> {
    let (answer, ready) = match wait(ready.append(ExVec::from_slice(b"long")?, 5), REQUEST_LIMIT)? {
        file::ImpReadyAfterAppend::Appended { next, .. } => (None, next),
        file::ImpReadyAfterAppend::WriteFailed { error, written, data, next } => {
            (Some((error, written, data.len())), next)
        }
        file::ImpReadyAfterAppend::ChannelClosed(_) => return Err(AccessError::ServerEnded),
    };
    suite.expect("append more than the block holds", answer, Some((FileError::TooLarge, 0, 4)));
    Ok(ready)
}

/// Locks, and that they end with their channel, whatever became of the file's name.
fn locks(suite: &mut Suite) -> Done {
    let (mut one, mut two) = (suite.folder.open_file(NAME)?, suite.folder.open_file(NAME)?);
    suite.expect("lock for oneself", one.lock(Exclusive, 10, 10), Ok(true));
    suite.expect("lock what another has", two.lock(Exclusive, 19, 1), Ok(false));
    suite.expect("share what another has", two.lock(Shared, 0, 0), Ok(false));
    suite.expect("lock beside another", two.lock(Exclusive, 20, 0), Ok(true));
    suite.expect("a lock excludes no write", write(&mut two, 10, b"z"), Ok(()));
    suite.expect("share what was one's own", one.lock(Shared, 0, 20), Ok(true));
    suite.expect("share what another shares", two.lock(Shared, 15, 10), Ok(true));
    suite.expect("test what another shares", two.may_lock(Exclusive, 19, 1), Ok(false));
    suite.expect("test what one shares alone", two.may_lock(Exclusive, 20, 5), Ok(true));
    suite.expect("unlock a part", one.unlock(15, 5), Ok(()));
    suite.expect("lock what was given up", two.lock(Exclusive, 15, 5), Ok(true));
    suite.expect("lock beyond the last byte", one.lock(Shared, 2, u64::MAX), Err(FileError::TooLarge.into()));
    suite.expect("unlock what one has not", one.unlock(1 << 40, 0), Ok(()));
    let mut other = suite.folder.create_own_file(OTHER, NEW_PERMISSIONS, CreateMode::New)?;
    suite.expect("lock another file", other.lock(Exclusive, 0, 0), Ok(true));
    drop(other);
    suite.folder.remove_file(OTHER)?;
    suite.folder.rename(NAME, OTHER)?;
    let mut third = suite.folder.open_file(OTHER)?;
    suite.expect("a new name leaves locks", third.may_lock(Exclusive, 15, 5), Ok(false));
    let ranges = (0..10_000u64).take_while(|number| one.lock(Shared, number * 2, 1) == Ok(true)).count();
    suite.expect("a channel has few locks", ranges < 100, true);
    drop(two);
    let mut last = suite.folder.open_file(OTHER)?;
    suite.expect("wait for a lock that ends", until(|| last.lock(Exclusive, 15, 0)), Ok(true));
    suite.expect("lock what a new channel has", one.may_lock(Shared, 15, 1), Ok(false));
    drop((one, last));
    suite.expect("wait for all to end", until(|| third.lock(Exclusive, 0, 0)), Ok(true));
    suite.folder.rename(OTHER, NAME)
}

/// Asks until the answer is yes, or [`END_MS`] have passed: a server learns of an end after its client.
fn until(mut ask: impl FnMut() -> Result<bool, AccessError>) -> Result<bool, AccessError> {
    let deadline = Deadline::after_ms(END_MS);
    while !ask()? {
        if deadline.has_passed() {
            return Ok(false);
        }
        sip::time::sleep_until(Deadline::after_ms(1));
    }
    Ok(true)
}

/// An open file stays usable after its name is removed.
fn removed(suite: &mut Suite, mut file: OpenFile) -> Done {
    suite.folder.remove_file(NAME)?;
    suite.expect("write to a removed file", write(&mut file, 0, b"on"), Ok(()));
    suite.expect("read a removed file", read(&mut file, 0, 3), Ok(b"ona".to_vec()));
    let gone = suite.folder.own_attributes(NAME).map(drop);
    suite.expect("the name of a removed file", gone, Err(NameError::NotFound.into()));
    let mut next = suite.folder.create_own_file(NAME, NEW_PERMISSIONS, CreateMode::New)?;
    suite.expect("read the next file of that name", read(&mut next, 0, 3), Ok(vec![]));
    suite.expect("the removed one has its content still", read(&mut file, 0, 3), Ok(b"ona".to_vec()));
    drop((file, next));
    suite.folder.remove_file(NAME)
}

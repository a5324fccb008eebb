//! Copies blocks between files, disks and pipes.

mod disk;
mod ends;
mod progress;

use alloc::string::String;

use client::namespace::Namespace;
use stdio::{Input, Output, report};
use text::amount::{not_an_amount, parse_bytes};

use crate::dd::ends::{Error, From, To};
use crate::dd::progress::Progress;

sip::startup!("dd/manifest.toml");

/// Maximum block size in bytes, which is lent to a server in one request.
const MAX_BLOCK_BYTES: u64 = 16 << 20;

/// The part to copy.
struct Extent {
    block_bytes: usize,
    count: Option<u64>,
    /// Bytes of the source to skip.
    skip: u64,
    /// Bytes of the target to skip.
    seek: u64,
}

/// Copies, then reports the amount and the speed.
pub fn main(startup: Startup) -> i32 {
    let extent = match extent(&startup.block_bytes, startup.count, startup.skip, startup.seek) {
        Ok(extent) => extent,
        Err(message) => {
            report::error(format_args!("{message}"));
            return 2;
        }
    };
    let mut namespace = Namespace::new(startup.namespace);
    let output = Output::new(startup.output);
    let folder = startup.working_folder;
    let opened = || {
        let from = From::open(&mut namespace, &folder, startup.from.as_deref(), startup.input.map(Input::new))?;
        Ok((from, startup.to.as_deref().map(|asked| To::open(&mut namespace, asked, &path::absolute(&folder, asked)))))
    };
    let outcome: Result<(), Error> = opened().and_then(|(from, to)| match to {
        // Only the copied bytes may go to standard output.
        None => copy(from, To::Output(output), Progress::to_person(), &extent),
        Some(to) => copy(from, to?, Progress::to_output(output), &extent),
    });
    match outcome {
        Ok(()) => 0,
        Err(Error::NoReader) => 1,
        Err(error) => {
            report::error(format_args!("{error}"));
            1
        }
    }
}

fn copy(mut from: From, mut to: To, mut progress: Progress, extent: &Extent) -> Result<(), Error> {
    from.skip(extent.skip)?;
    let mut offset = extent.seek;
    let mut blocks = 0;
    while extent.count.is_none_or(|count| blocks < count) {
        let Some((block, bytes)) = from.block(extent.block_bytes)? else { break };
        from.recycle(to.write(block, offset, bytes)?);
        offset += bytes as u64;
        blocks += 1;
        progress.add(bytes);
        if bytes < extent.block_bytes {
            break;
        }
    }
    to.finish()?;
    progress.finish(blocks);
    Ok(())
}

fn extent(block_bytes: &str, count: Option<i64>, skip: i64, seek: i64) -> Result<Extent, String> {
    let bytes = parse_bytes(block_bytes).ok_or_else(|| not_an_amount(block_bytes))?;
    if bytes == 0 || bytes > MAX_BLOCK_BYTES {
        return Err(alloc::format!("invalid block size {bytes}; use 1 byte to 16 MiB"));
    }
    let blocks = |number: i64, what: &str| {
        let blocks = u64::try_from(number).ok();
        blocks.ok_or_else(|| alloc::format!("{what} {number} blocks: use 0 or more"))
    };
    let in_bytes = |number: i64, what: &str| {
        blocks(number, what)?.checked_mul(bytes).ok_or_else(|| alloc::format!("{what} {number} blocks is out of range"))
    };
    Ok(Extent {
        block_bytes: bytes as usize,
        count: count.map(|count| blocks(count, "--count")).transpose()?,
        skip: in_bytes(skip, "--skip")?,
        seek: in_bytes(seek, "--seek")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_is_worked_out_in_bytes() {
        let extent = extent("4k", Some(3), 2, 1).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((extent.block_bytes, extent.count, extent.skip, extent.seek), (4096, Some(3), 8192, 4096));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (block, count, skip, seek) in [
            ("0", None, 0, 0),
            ("17M", None, 0, 0),
            ("x", None, 0, 0),
            ("1", Some(-1), 0, 0),
            ("1", None, -1, 0),
            ("16M", None, i64::MAX, 0),
            ("16M", None, 0, i64::MAX),
        ] {
            assert!(extent(block, count, skip, seek).is_err(), "{block} {count:?} {skip} {seek}");
        }
    }
}

//! The task `format`.

use client::namespace::Namespace;
use contracts::volume_manager::VolumeError;
use ext2::BlockSource;
use ext2::make::{MakeError, MakeOptions, Style, make_empty};
use stdio::Output;

use crate::outcome::{Refusal, of_disk};
use crate::seed;

/// The requested parameters; 0 for defaults.
pub(crate) struct Request<'a> {
    pub(crate) block_bytes: i64,
    pub(crate) nodes: i64,
    pub(crate) reserved_percent: i64,
    pub(crate) plain: bool,
    pub(crate) label: &'a str,
}

impl Request<'_> {
    /// Validates the parameters and adds a UUID and hash seed.
    pub(crate) fn options(&self, namespace: &mut Namespace) -> Result<MakeOptions, Refusal> {
        let number = |name: &str, value: i64| {
            let refusal = format_args!("{name} {value} is out of range; give 0 or more");
            u32::try_from(value).map_err(|_| Refusal::new(VolumeError::BadRequest, &refusal))
        };
        let chosen = |value: u32| Some(value).filter(|&value| value > 0);
        let mut label = [0; 16];
        let bytes = self.label.as_bytes();
        let place = label.get_mut(..bytes.len()).filter(|_| !bytes.contains(&0)).ok_or_else(|| {
            let refusal = format_args!("the label `{}` is longer than 16 bytes", self.label.escape_debug());
            Refusal::new(VolumeError::BadRequest, &refusal)
        })?;
        place.copy_from_slice(bytes);
        let (uuid, hash_seed) = seed::identities(namespace);
        Ok(MakeOptions {
            block_bytes: chosen(number("block-bytes", self.block_bytes)?),
            inodes: chosen(number("nodes", self.nodes)?),
            reserved_percent: number("reserved-percent", self.reserved_percent)?,
            style: if self.plain { Style::Plain } else { Style::Usual },
            label,
            uuid,
            hash_seed,
        })
    }
}

/// Formats the disk and reports the geometry.
pub(crate) async fn format<S: BlockSource>(
    source: &S,
    options: &MakeOptions,
    disk: &str,
    output: &mut Output,
) -> Result<i32, Refusal> {
    let made = make_empty(source, options).await.map_err(|error| Refusal::new(reason(error), &error))?;
    let report = alloc::format!(
        "{disk}: formatted with {} blocks of {} bytes, {} of them free, {} reserved; {} nodes; {} groups\n",
        made.blocks,
        made.block_bytes,
        made.free_blocks,
        made.reserved_blocks,
        made.inodes,
        made.groups
    );
    output.write(report.as_bytes())?;
    Ok(0)
}

fn reason(error: MakeError) -> VolumeError {
    match error {
        MakeError::ReadOnly => VolumeError::ReadOnly,
        MakeError::BlockSize(_) | MakeError::Reserved { .. } => VolumeError::BadRequest,
        MakeError::Inodes(_) | MakeError::TooSmall { .. } => VolumeError::NoSpace,
        MakeError::TooLarge { .. } => VolumeError::NotSupported,
        MakeError::Disk(_, error) => of_disk(error),
    }
}

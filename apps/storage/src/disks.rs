//! Lists the partitions of disks, as reported by the partition service.

use alloc::string::{String, ToString};

use client::access::AccessError;
use client::answer::{REQUEST_LIMIT, wait};
use client::namespace::{Namespace, block};
use contracts::directory::NameError;
use contracts::partition_manager::{self, PartitionError, states};
use stdio::{Output, report};

sip::startup!("disks/manifest.toml");

/// Path of the partition service.
const PATH: &str = "/service/partitions";

/// Prints the service's report.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    match ask(&mut namespace, &startup.disk, startup.scan) {
        Ok(Ok(text)) => {
            let mut output = Output::new(startup.output);
            output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
        }
        Ok(Err(error)) => {
            report::error(format_args!("{}: {}", startup.disk, sentence(error)));
            1
        }
        Err(error) => report::path_error(PATH, &error),
    }
}

type Client = partition_manager::Imp<states::Ready>;

fn ask(namespace: &mut Namespace, disk: &str, look_again: bool) -> Result<Result<String, PartitionError>, AccessError> {
    use partition_manager::{ImpReadyAfterDescribe as Described, ImpReadyAfterScan as Scanned};
    let client: Client =
        namespace.open(PATH, partition_manager::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
            partition_manager::ImpStart::Success { next } => Ok(next),
            partition_manager::ImpStart::Refused { .. } => Err(NameError::Exhausted.into()),
            partition_manager::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        })?;
    let disk = block(disk)?;
    if look_again {
        match wait(client.scan(disk), REQUEST_LIMIT)? {
            Scanned::Report { text, .. } => Ok(Ok(text.to_text().to_string())),
            Scanned::Failed { error, .. } => Ok(Err(error)),
            Scanned::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    } else {
        match wait(client.describe(disk), REQUEST_LIMIT)? {
            Described::Report { text, .. } => Ok(Ok(text.to_text().to_string())),
            Described::Failed { error, .. } => Ok(Err(error)),
            Described::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }
}

fn sentence(error: PartitionError) -> &'static str {
    match error {
        PartitionError::NotFound => "no such disk; `ls /dev` lists disks",
        PartitionError::DeviceError => "cannot read the disk; its partitions are unchanged",
        PartitionError::Exhausted => "the partition service is out of memory; try again later",
    }
}

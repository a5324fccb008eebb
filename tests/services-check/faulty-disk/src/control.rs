//! Control interface.

use disk_server::Disk;
use faulty_contract::faulty_disk::{self, ExpReady, states};

use crate::disk::FaultyDisk;

/// Serves one controller until it closes its end.
pub async fn serve(disk: Disk<FaultyDisk>, client: faulty_disk::Exp<states::Start>) {
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            ExpReady::SetPlan { plan, next } => {
                disk.medium().set_plan(plan);
                next.done()
            }
            ExpReady::Cut { seed, next } => match disk.medium().cut(seed).await {
                Ok(()) => next.done(),
                Err(_) => next.failed(),
            },
            ExpReady::PowerOn { next } => {
                disk.medium().power_on();
                next.done()
            }
            ExpReady::GetCounts { next } => next.counts(disk.medium().counts()),
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

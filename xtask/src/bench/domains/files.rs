//! What is measured on a disk: WebFiles, and the disk's driver alone.
//!
//! Both run on one machine, so that the driver reads what WebFiles has written. Deliberately not here: the tasks, in
//! `benches/disk`.

use super::rows::{Row, row_without_paper};
use crate::bench::table::Figures;

/// Name of the figure of an access of WebFiles.
pub const WEB_FILES: &str = "web_files";
/// Files read by WebFiles, of a set that is larger than the file system's cache.
const ACCESSES: u64 = 10_000;
/// The first round also fills the cache.
const WEB_ROUND: &str = "web_1";
/// Bytes that are read from the driver, in each order; fewer than WebFiles writes.
const DEVICE_BYTES: u64 = 32 << 20;
/// Sizes of the driver's reads.
const BLOCKS: [u64; 3] = [4 << 10, 64 << 10, 1 << 20];

/// Reads of the disk's driver alone.
pub const DRIVER_ROWS: [Row; 6] = [
    row_without_paper("device_4096", "disk driver, 4 KiB"),
    row_without_paper("device_random_4096", "the same, at random"),
    row_without_paper("device_65536", "disk driver, 64 KiB"),
    row_without_paper("device_random_65536", "the same, at random"),
    row_without_paper("device_1048576", "disk driver, 1 MiB"),
    row_without_paper("device_random_1048576", "the same, at random"),
];

/// The commands that measure on a machine of `bench-files`.
pub fn commands() -> String {
    let devices = BLOCKS.map(|bytes| {
        let mebibytes = DEVICE_BYTES >> 20;
        format!("bench-disk /dev/ram0 --task device --block-bytes {bytes} --size-mib {mebibytes} --figures")
    });
    format!(
        "x=$(format ram0 --yes); mount ram0; \
         bench-disk /fs/ram0 --task web --count {ACCESSES} --size-mib 40 --rounds 2 --figures; {}",
        devices.join("; ")
    )
}

/// The figures of an access and of each read, from those that the commands print.
pub fn figures(printed: &Figures) -> Figures {
    let mut figures = Figures::new();
    figures.extend(printed.get(WEB_ROUND).map(|nanoseconds| (WEB_FILES.to_string(), nanoseconds / ACCESSES)));
    for bytes in BLOCKS {
        for name in [format!("device_{bytes}"), format!("device_random_{bytes}")] {
            let read = printed.get(&format!("{name}_0")).map(|nanoseconds| nanoseconds / (DEVICE_BYTES / bytes));
            figures.extend(read.map(|figure| (name, figure)));
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_the_driver_has_its_figure() {
        let names = DRIVER_ROWS.iter().map(|row| (format!("{}_0", row.name), 8_192_000));
        let printed: Figures = names.chain([("web_1".to_string(), 50_000_000)]).collect();
        let figures = figures(&printed);
        assert!(DRIVER_ROWS.iter().all(|row| figures.contains_key(row.name)), "{figures:?}");
        assert_eq!((figures["device_4096"], figures["device_1048576"], figures[WEB_FILES]), (1_000, 256_000, 5_000));
        assert!(DRIVER_ROWS.iter().all(|row| commands().contains(row.name.rsplit('_').next().expect("a size"))));
    }
}

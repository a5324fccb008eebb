//! Shows the usage of the mounted volumes and the hit rates of their caches.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use client::namespace::Namespace;
use client::volume_managers::{VolumeManager, VolumeManagerError};
use contracts::file_system::{CacheCounters, VolumeStatistics};
use file_tools::volume::volume_of;
use stdio::{Output, report};
use text::{Align, Table, bytes, count, json_string, padded, printable};

sip::startup!("df/manifest.toml");

/// A volume and its statistics.
struct Volume {
    point: String,
    disk: String,
    statistics: VolumeStatistics,
}

/// Prints a line for each volume, or for the one that contains the path.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let only = match &startup.path {
        None => None,
        Some(asked) => {
            let full = path::absolute(&startup.working_folder, asked);
            match namespace.attributes(&full).and_then(|_| volume_of(&mut namespace, &full)) {
                Ok(point) if point == "/" => {
                    return report::path_error(asked, &"not on a volume, but in the memory of the directory service");
                }
                Ok(point) => Some(point),
                Err(error) => return report::path_error(asked, &error),
            }
        }
    };
    let mut status = 0;
    let volumes = match read(&mut namespace, only.as_deref(), &mut status) {
        Ok(volumes) => volumes,
        Err(error) => {
            report::error(format_args!("{error}"));
            return 1;
        }
    };
    if let Some(point) = only.filter(|_| volumes.is_empty() && status == 0) {
        return report::path_error(&point, &"not mounted by a volume manager, so its usage is unknown");
    }
    let text = match (startup.json, startup.caches, startup.long) {
        (true, ..) => json(&volumes),
        (false, true, _) => caches(&volumes),
        (false, false, true) => long_sizes(&volumes),
        (false, false, false) => sizes(&volumes),
    };
    let mut output = Output::new(startup.output);
    output.write(text.as_bytes()).map_or(1, |()| output.finish_with(status))
}

/// Returns the statistics of all volumes, or of the one mounted there. Volumes without statistics at present are
/// reported.
fn read(namespace: &mut Namespace, only: Option<&str>, status: &mut i32) -> Result<Vec<Volume>, VolumeManagerError> {
    let mut volumes = Vec::new();
    for mut manager in VolumeManager::open_all(namespace)? {
        for mount in manager.list()? {
            let point = padded(&mount.point);
            if only.is_some_and(|only| only != point) {
                continue;
            }
            match manager.statistics(&point) {
                Ok(statistics) => volumes.push(Volume { point, disk: padded(&mount.disk), statistics }),
                Err(error) => {
                    report::error(format_args!("{error}"));
                    *status = 1;
                }
            }
        }
    }
    volumes.sort_by(|left, right| left.point.cmp(&right.point));
    Ok(volumes)
}

/// Fits a terminal of 80 columns unless names are unusually long.
fn sizes(volumes: &[Volume]) -> String {
    let mut table = Table::new(&[
        ("VOLUME", Align::Left),
        ("DISK", Align::Left),
        ("SIZE", Align::Right),
        ("USED", Align::Right),
        ("AVAILABLE", Align::Right),
        ("FULL", Align::Right),
        ("ACCESS", Align::Left),
        ("KIND", Align::Left),
    ]);
    for volume in volumes {
        let numbers = &volume.statistics;
        let kind = padded(&numbers.kind);
        table.row([
            printable(volume.point.as_bytes()),
            printable(volume.disk.as_bytes()),
            bytes(numbers.size_bytes),
            bytes(used(numbers)),
            bytes(numbers.available_bytes),
            full(numbers),
            access(numbers),
            printable(kind.split([' ', ',', ';']).next().unwrap_or_default().as_bytes()),
        ]);
    }
    table.render()
}

fn used(numbers: &VolumeStatistics) -> u64 {
    numbers.size_bytes.saturating_sub(numbers.free_bytes)
}

/// Excludes the space reserved for repairs: at 100 % no file can grow.
fn full(numbers: &VolumeStatistics) -> String {
    let used = used(numbers);
    percent(used, used.saturating_add(numbers.available_bytes), Rounding::Up)
}

fn access(numbers: &VolumeStatistics) -> String {
    String::from(if numbers.read_only == 0 { "write" } else { "read" })
}

fn long_sizes(volumes: &[Volume]) -> String {
    let mut table = Table::new(&[
        ("VOLUME", Align::Left),
        ("DISK", Align::Left),
        ("SIZE", Align::Right),
        ("USED", Align::Right),
        ("FREE", Align::Right),
        ("AVAILABLE", Align::Right),
        ("FULL", Align::Right),
        ("NODES", Align::Right),
        ("FREE NODES", Align::Right),
        ("ACCESS", Align::Left),
        ("LABEL", Align::Left),
        ("KIND", Align::Left),
    ]);
    for volume in volumes {
        let numbers = &volume.statistics;
        let nodes = |number: u64| if numbers.nodes == 0 { String::from("-") } else { count(number) };
        table.row([
            printable(volume.point.as_bytes()),
            printable(volume.disk.as_bytes()),
            bytes(numbers.size_bytes),
            bytes(used(numbers)),
            bytes(numbers.free_bytes),
            bytes(numbers.available_bytes),
            full(numbers),
            nodes(numbers.nodes),
            nodes(numbers.free_nodes),
            access(numbers),
            label(numbers),
            printable(padded(&numbers.kind).as_bytes()),
        ]);
    }
    table.render()
}

fn label(numbers: &VolumeStatistics) -> String {
    match padded(&numbers.label) {
        label if label.is_empty() => String::from("-"),
        label => printable(label.as_bytes()),
    }
}

fn caches(volumes: &[Volume]) -> String {
    let mut table = Table::new(&[
        ("VOLUME", Align::Left),
        ("CACHE", Align::Left),
        ("HITS", Align::Right),
        ("MISSES", Align::Right),
        ("HIT", Align::Right),
        ("HELD", Align::Right),
        ("LIMIT", Align::Right),
    ]);
    for volume in volumes {
        for (name, cache) in named(&volume.statistics) {
            table.row([
                printable(volume.point.as_bytes()),
                String::from(name),
                count(cache.hits),
                count(cache.misses),
                percent(cache.hits, cache.hits.saturating_add(cache.misses), Rounding::Down),
                bytes(cache.bytes),
                bytes(cache.limit_bytes),
            ]);
        }
    }
    let mut text = table.render();
    for volume in volumes {
        let numbers = &volume.statistics;
        text.push_str(&format!(
            "{}: {} not yet written, {} open\n",
            printable(volume.point.as_bytes()),
            bytes(numbers.unwritten_bytes),
            count(numbers.open)
        ));
    }
    text
}

fn named(numbers: &VolumeStatistics) -> [(&'static str, &CacheCounters); 3] {
    [("nodes", &numbers.node_cache), ("block numbers", &numbers.number_cache), ("data", &numbers.data_cache)]
}

enum Rounding {
    Up,
    Down,
}

/// Percentage of a whole; `-` if the whole is zero.
fn percent(part: u64, whole: u64, rounding: Rounding) -> String {
    let (part, whole) = (u128::from(part) * 100, u128::from(whole));
    match (whole, rounding) {
        (0, _) => String::from("-"),
        (_, Rounding::Up) => format!("{} %", part.div_ceil(whole)),
        (_, Rounding::Down) => format!("{} %", part / whole),
    }
}

fn json(volumes: &[Volume]) -> String {
    let cache = |(name, cache): (&'static str, &CacheCounters)| {
        format!(
            "{{\"cache\": {}, \"hits\": {}, \"misses\": {}, \"bytes\": {}, \"limit_bytes\": {}}}",
            json_string(name),
            cache.hits,
            cache.misses,
            cache.bytes,
            cache.limit_bytes
        )
    };
    let line = |volume: &Volume| {
        let numbers = &volume.statistics;
        let caches: Vec<String> = named(numbers).into_iter().map(cache).collect();
        format!(
            "  {{\"volume\": {}, \"disk\": {}, \"size_bytes\": {}, \"free_bytes\": {}, \"available_bytes\": {}, \
             \"nodes\": {}, \"free_nodes\": {}, \"block_bytes\": {}, \"read_only\": {}, \"unwritten_bytes\": {}, \
             \"open\": {}, \"label\": {}, \"kind\": {}, \"caches\": [{}]}}",
            json_string(&volume.point),
            json_string(&volume.disk),
            numbers.size_bytes,
            numbers.free_bytes,
            numbers.available_bytes,
            numbers.nodes,
            numbers.free_nodes,
            numbers.block_bytes,
            numbers.read_only != 0,
            numbers.unwritten_bytes,
            numbers.open,
            json_string(&padded(&numbers.label)),
            json_string(&padded(&numbers.kind)),
            caches.join(", ")
        )
    };
    let lines: Vec<String> = volumes.iter().map(line).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

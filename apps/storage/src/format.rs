//! Creates an empty file system on a disk. Everything on the disk is lost, so it requires `--yes`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::namespace::Namespace;
use client::volume_managers::{VolumeManager, disk_path};
use contracts::volume_manager::FormatOptions;
use stdio::{Output, report};
use text::{pad, padded, printable};

sip::startup!("format/manifest.toml");

/// Maximum length of a volume name in bytes.
const LABEL_BYTES: usize = 32;

/// Formats the disk; without `--yes`, only lists the data that would be lost.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let disk = disk_path(&startup.working_folder, &startup.disk);
    let number = |value: i64, flag: &str| {
        u32::try_from(value).map_err(|_| format!("{flag} {value}: use a number from 0 to {}", u32::MAX))
    };
    let options = || {
        if startup.label.len() > LABEL_BYTES {
            return Err(format!("the label has {} bytes; the maximum is {LABEL_BYTES}", startup.label.len()));
        }
        Ok(FormatOptions {
            block_bytes: number(startup.block_bytes, "--block-bytes")?,
            nodes: number(startup.nodes, "--nodes")?,
            reserved_percent: number(startup.reserved, "--reserved")?,
            plain: u32::from(startup.plain),
            label: pad(&startup.label),
        })
    };
    let formatted = options().and_then(|options| {
        if !startup.yes {
            return Err(warning(&mut namespace, &disk));
        }
        let mut manager = VolumeManager::open(&mut namespace, &startup.type_).map_err(|error| error.to_string())?;
        manager.format(&disk, options).map_err(|error| error.to_string())
    });
    match formatted {
        Ok(text) => {
            let text: String = text.lines().map(|line| printable(line.as_bytes()) + "\n").collect();
            let mut output = Output::new(startup.output);
            output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
        }
        Err(error) => {
            report::error(format_args!("{error}"));
            1
        }
    }
}

/// Describes the data that would be lost. The disk's volume may be mounted, which its manager would refuse anyway.
fn warning(namespace: &mut Namespace, disk: &str) -> String {
    let shown = printable(disk.as_bytes());
    let Ok((folder, name)) = path::split_last(disk).ok_or(()) else {
        return format!("{shown}: not a disk");
    };
    let names = namespace.names(folder).unwrap_or_default();
    if !names.iter().any(|other| other.name == name.as_bytes()) {
        return format!("{shown}: no such disk; `ls /dev` lists disks");
    }
    let is_partition = |other: &&client::namespace::Name| {
        let number = other.name.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"p"));
        number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
    };
    let partitions: Vec<String> = names.iter().filter(is_partition).map(|other| other.text()).collect();
    let with = match partitions.len() {
        0 => String::new(),
        1 => format!(", with its partition {}", partitions[0]),
        _ => format!(", with its partitions {}", partitions.join(", ")),
    };
    let mounted = match mounted_at(namespace, disk) {
        Some(point) => format!(" It is mounted at {point}; unmount it first."),
        None => String::new(),
    };
    format!("this erases {shown}{with}; confirm with `--yes`.{mounted}")
}

fn mounted_at(namespace: &mut Namespace, disk: &str) -> Option<String> {
    let managers = VolumeManager::open_all(namespace).ok()?;
    let mut mounts = managers.into_iter().flat_map(|mut manager| manager.list().unwrap_or_default());
    mounts.find(|mount| padded(&mount.disk) == disk).map(|mount| printable(padded(&mount.point).as_bytes()))
}

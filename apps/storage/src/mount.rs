//! Mounts a disk, or lists mounted volumes.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::namespace::Namespace;
use client::volume_managers::{VolumeManager, VolumeManagerError, ask_each, disk_path};
use contracts::volume_manager::{MountAccess, MountRecord, VolumeError};
use stdio::{Output, report};
use text::{Align, Table, json_string, padded, printable};

sip::startup!("mount/manifest.toml");

/// Mounts the named disk; without one, prints a line for each mounted volume.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let managers = match &startup.type_ {
        Some(kind) => VolumeManager::open(&mut namespace, kind).map(|manager| Vec::from([manager])),
        None => VolumeManager::open_all(&mut namespace),
    };
    let mut managers = match managers {
        Ok(managers) => managers,
        Err(error) => return failed(&error),
    };
    let text = match &startup.disk {
        None => list(&mut managers, startup.json),
        Some(asked) => {
            let disk = disk_path(&startup.working_folder, asked);
            let point = match &startup.point {
                Some(point) => path::absolute(&startup.working_folder, point),
                None => path::join("/fs", path::split_last(&disk).map_or("", |(_, name)| name)),
            };
            let access = if startup.read_only { MountAccess::ReadOnly } else { MountAccess::WriteIfPossible };
            mount(&mut managers, &disk, &point, access)
        }
    };
    match text {
        Ok(text) => {
            let mut output = Output::new(startup.output);
            output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
        }
        Err(error) if error.error() == Some(VolumeError::NotRecognised) && startup.type_.is_none() => {
            let disk = startup.disk.unwrap_or_default();
            report::path_error(&disk, &"no known file system; `format` creates one")
        }
        Err(error) => failed(&error),
    }
}

fn failed(error: &VolumeManagerError) -> i32 {
    report::error(format_args!("{error}"));
    1
}

fn mount(
    managers: &mut [VolumeManager],
    disk: &str,
    point: &str,
    access: MountAccess,
) -> Result<String, VolumeManagerError> {
    let (kind, read_only) = ask_each(managers, VolumeError::NotRecognised, |manager| {
        let read_only = manager.mount(disk, point, access)?;
        Ok((manager.kind().to_string(), read_only))
    })?;
    let limits = match read_only {
        None => String::new(),
        Some(why) if why.is_empty() => String::from(", read only"),
        Some(why) => format!(", read only: {}", printable(why.as_bytes())),
    };
    Ok(format!("{} is at {} ({kind}{limits})\n", printable(disk.as_bytes()), printable(point.as_bytes())))
}

fn list(managers: &mut [VolumeManager], as_json: bool) -> Result<String, VolumeManagerError> {
    let mut all = Vec::new();
    for manager in managers {
        let records = manager.list()?;
        all.extend(records.into_iter().map(|record| (manager.kind().to_string(), record)));
    }
    all.sort_by_key(|(_, mount)| mount.point);
    Ok(if as_json { json(&all) } else { table(&all) })
}

fn table(all: &[(String, MountRecord)]) -> String {
    let mut table = Table::new(&[
        ("POINT", Align::Left),
        ("DISK", Align::Left),
        ("TYPE", Align::Left),
        ("ACCESS", Align::Left),
        ("ID", Align::Right),
        ("RESTARTS", Align::Right),
        ("ERROR", Align::Left),
    ]);
    for (kind, mount) in all {
        let access = if mount.read_only == 0 { "write" } else { "read" };
        table.row([
            printable(padded(&mount.point).as_bytes()),
            printable(padded(&mount.disk).as_bytes()),
            kind.clone(),
            String::from(access),
            if mount.process == 0 { String::from("-") } else { mount.process.to_string() },
            mount.restarts.to_string(),
            printable(padded(&mount.error).as_bytes()),
        ]);
    }
    table.render()
}

fn json(all: &[(String, MountRecord)]) -> String {
    let line = |(kind, mount): &(String, MountRecord)| {
        format!(
            "  {{\"point\": {}, \"disk\": {}, \"type\": {}, \"read_only\": {}, \"process\": {}, \"restarts\": {}, \
             \"error\": {}}}",
            json_string(&padded(&mount.point)),
            json_string(&padded(&mount.disk)),
            json_string(kind),
            mount.read_only != 0,
            mount.process,
            mount.restarts,
            json_string(&padded(&mount.error)),
        )
    };
    let lines: Vec<String> = all.iter().map(line).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

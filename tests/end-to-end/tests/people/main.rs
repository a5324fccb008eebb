//! What people do with the system, and what they must see.
//!
//! Tests that need Linux's own file system tools are in modules with `e2fsprogs` in their names, those that need
//! QEMU in modules with `qemu`; those that take minutes are ignored unless asked for (`cargo sing test --long`).
#![forbid(unsafe_code)]

mod access_e2fsprogs;
mod bad_disks_e2fsprogs;
mod bad_input;
mod bare_buses_qemu_e2fsprogs;
mod bare_disks_qemu_e2fsprogs;
mod bare_files_qemu_sfdisk_e2fsprogs;
mod bare_hogs_qemu;
mod bare_qemu;
mod bare_terminals_qemu;
mod bare_virtio_qemu;
mod bare_web_qemu;
mod builder;
mod commands;
mod disks_e2fsprogs;
mod endings;
mod fat_dosfstools;
mod faulty_disks;
mod fetch;
mod fetch_python;
mod files_e2fsprogs;
mod foreign_names_e2fsprogs;
mod fresh_copies;
mod host_folders;
mod host_folders_qemu;
mod hostile_builds;
mod installs_e2fsprogs;
mod jobs;
mod kernel_entries;
mod kills_e2fsprogs;
mod lists;
mod logins;
mod mounts_e2fsprogs;
mod network_programs;
mod partitions_sfdisk_e2fsprogs;
mod programs;
mod promises;
mod reach_e2fsprogs;
mod redirected_errors;
mod redirected_errors_qemu;
mod roles_e2fsprogs;
mod signals_e2fsprogs;
mod storms_e2fsprogs;
mod systems;
mod terminals;
mod tools_e2fsprogs;
mod trust;
mod unreliable_file_systems;
mod web_addresses;
mod web_curl;
mod web_deaths_e2fsprogs;
mod web_faults;
mod web_files_e2fsprogs;
mod web_kills_e2fsprogs;
mod web_limits_e2fsprogs;
mod web_overload;
mod web_python_requests;
mod web_services;
mod web_sets_e2fsprogs;
mod web_soak;
mod web_status_chromium;
mod web_wget;
mod web_wrk;

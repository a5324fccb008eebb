//! Volumes in use, with faults, and under repair, on disks in memory.
//!
//! Tests that need Linux's FAT tools are in modules with `dosfstools` in their names.
#![forbid(unsafe_code)]

mod channels;
mod check_dosfstools;
mod crash_dosfstools;
mod damaged;
mod disk;
mod faults_dosfstools;
mod fuzzed;
mod machine;
mod operations_dosfstools;
mod player;
mod random_dosfstools;
mod support;
mod trial;

//! Volumes on disks in memory, in use, in error and under repair.
#![forbid(unsafe_code)]

mod channels;
mod check;
mod crash;
mod damaged;
mod disk;
mod faults;
mod fuzzed;
mod machine;
mod operations;
mod player;
mod random;
mod support;
mod trial;

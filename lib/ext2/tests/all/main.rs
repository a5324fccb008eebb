//! Tests of the file system's public API: beside Linux and e2fsck, on damaged volumes, and with random operations.
//!
//! One program, so that the code of volumes, which is generic over the disk, is compiled once. [`support`] and
//! [`volumes`] are shared by the tests.
#![forbid(unsafe_code)]

mod adversary;
mod caches;
mod check;
mod check_foreign;
mod check_random;
mod check_sizes;
mod check_verdicts;
mod check_whole;
mod corrupt;
mod extended_attributes;
mod foreign_names;
mod linux;
mod make_empty;
mod make_image;
mod operations;
mod operations_errors;
mod operations_together;
mod read_ahead;
mod reading_on;
mod support;
mod volumes;

//! Contract by which tests make a disk fail.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

sip::contracts!("src/faulty_disk.contract");

/// Converts a parameter to a number of a plan; invalid ones become 0.
pub fn number(parameter: i64) -> u64 {
    u64::try_from(parameter).unwrap_or(0)
}

/// Reads a plan from the parameters of a program that has one parameter per number of a plan.
#[macro_export]
macro_rules! plan_of_parameters {
    ($startup:expr) => {
        $crate::faulty_disk::FaultPlan {
            fail_read: $crate::number($startup.fail_read),
            fail_reads: $crate::number($startup.fail_reads),
            fail_write: $crate::number($startup.fail_write),
            fail_writes: $crate::number($startup.fail_writes),
            fail_flush: $crate::number($startup.fail_flush),
            fail_flushes: $crate::number($startup.fail_flushes),
            bad_offset: $crate::number($startup.bad_offset),
            bad_bytes: $crate::number($startup.bad_bytes),
            cut_after_writes: $crate::number($startup.cut_after_writes),
            cut_seed: $crate::number($startup.cut_seed),
            end_at_write: $crate::number($startup.end_at_write),
            delay_us: $crate::number($startup.delay_us),
        }
    };
}

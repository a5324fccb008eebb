//! Duration for which calls kept their processor from other threads, if measured by the kernel: with the boot
//! parameter `measure-calls=1`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sip::diagnostics;

/// Prefix of the kernel's counters, before the function's name.
const PREFIX: &str = "ns ";
/// Number of functions reported.
const SHOWN: usize = 8;

/// A line for each of the functions that held a processor longest.
pub(crate) fn longest() -> Vec<String> {
    let counters = diagnostics::counters().ok();
    let records = counters.iter().flat_map(|counters| counters.iter());
    let mut longest: Vec<(u64, String)> = records
        .filter_map(|record| Some((record.value, String::from(diagnostics::name(&record.name).strip_prefix(PREFIX)?))))
        .filter(|(ns, _)| *ns > 0)
        .collect();
    longest.sort_unstable_by(|one, other| other.cmp(one));
    longest.truncate(SHOWN);
    longest.into_iter().map(|(ns, name)| format!("longest stretch in {name}: {} us", ns / 1000)).collect()
}

//! Profile of a server by function, as table 2 of "Sealing OS Processes": samples of the host's `perf`, grouped by part
//! of the kernel. Deliberately not here: processor time by process (`here`).

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use sing::failure::{Failure, Outcome};

use super::Part;

/// Samples per second; a prime, to avoid lockstep with periodic work.
const SAMPLES_PER_S: &str = "997";
/// Lowest address of the Linux kernel.
const LINUX_FROM: u64 = 1 << 63;
const LINUX: &str = "Linux, with its TCP";
const SIPS: &str = "the SIPs' own code";
/// `perf`'s name for code outside files, such as images of SIPs, without symbols.
const NO_FILES: [&str; 3] = ["[unknown] (/memfd:", "[unknown] (//anon", "[unknown] ([unknown])"];
const REST: &str = "the hosted machine";

/// Substrings of function names and their groups; the first match counts.
const KINDS: [(&[&str], &str); 7] = [
    (&["kernel::channel::receive", "channel_receive", "message_receive"], "receive"),
    (&["kernel::channel::send", "channel_send", "message_send"], "send"),
    (&["kernel::sync", "kernel::wait", "wait_set", "event_"], "select: wait sets and events"),
    (&["kernel::exheap", "handlers::exchange", "block_"], "exchange heap"),
    (&["kernel::sched", "kernel::thread", "kernel::timers", "switch", "kernel::handlers::threads"], "scheduler"),
    (&["memcpy", "memmove", "memset", "memcmp"], "copying outside SIPs"),
    (&["kernel::", "hal_hosted::entry"], "other work of the kernel"),
];

/// A running `perf record` with a time limit.
pub struct Watch {
    perf: Child,
    data: PathBuf,
}

impl Watch {
    /// Profiles processes for this many seconds, with the data in a folder.
    ///
    /// # Errors
    /// This host has no `perf`.
    pub fn start(processes: &[u32], seconds: u32, folder: &Path) -> Outcome<Watch> {
        let data = folder.join("perf.data");
        let numbers: Vec<String> = processes.iter().map(u32::to_string).collect();
        let mut command = Command::new("perf");
        command.args(["record", "-q", "-e", "cpu-clock", "-F", SAMPLES_PER_S, "-p", &numbers.join(","), "-o"]);
        command.arg(&data).args(["--", "sleep", &seconds.to_string()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let perf = command.spawn().map_err(|error| {
            Failure::file("start", Path::new("perf"), &error).remedy("`apt-get install linux-perf`")
        })?;
        Ok(Watch { perf, data })
    }

    /// Waits for its end; returns the samples by group.
    ///
    /// # Errors
    /// There are no samples, or `perf` lacks permission.
    pub fn parts(mut self) -> Outcome<Vec<Part>> {
        let may_not = || Failure::new("`perf` could not watch the system").remedy("try it as root");
        if !self.perf.wait().is_ok_and(|status| status.success()) {
            return Err(may_not());
        }
        let mut script = Command::new("perf");
        script.args(["script", "-F", "ip,sym,dso", "-i"]).arg(&self.data).stderr(Stdio::null());
        let output = script.output().map_err(|error| Failure::file("start", Path::new("perf"), &error))?;
        let _ = std::fs::remove_file(&self.data);
        let parts = sorted(&String::from_utf8_lossy(&output.stdout));
        if parts.is_empty() { Err(may_not()) } else { Ok(parts) }
    }
}

/// Counts lines of the form `ADDRESS FUNCTION (FILE)` by the function's purpose.
fn sorted(script: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for name in script.lines().filter_map(kind) {
        match parts.iter_mut().find(|part| part.name == name) {
            Some(part) => part.used += 1.0,
            None => parts.push(Part { name: name.into(), used: 1.0 }),
        }
    }
    parts
}

fn kind(line: &str) -> Option<&'static str> {
    let (address, rest) = line.trim().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let (function, file) = rest.trim().rsplit_once(" (")?;
    if address >= LINUX_FROM || file.starts_with("[kernel") {
        return Some(LINUX);
    }
    if let Some((_, kind)) = KINDS.iter().find(|(parts, _)| parts.iter().any(|part| function.contains(part))) {
        return Some(kind);
    }
    Some(if NO_FILES.iter().any(|no_file| rest.trim().starts_with(no_file)) { SIPS } else { REST })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_sorted_by_what_they_do() {
        let script = "
      ffffffff81a0 tcp_sendmsg ([kernel.kallsyms])
  ffffffff81a00000 [unknown] ([unknown])
      5581cf000000 kernel::channel::receive::receive (/a/hosted-machine)
      5581cf000001 kernel::channel::receive::try_receive (/a/hosted-machine)
      5581cf000002 kernel::exheap::allocate (/a/hosted-machine)
      5581cf000003 kernel::installed::find (/a/hosted-machine)
      7f0000000000 __memmove_avx_unaligned_erms (/usr/lib/libc.so.6)
      200000000000 [unknown] ([unknown])
      200000000001 [unknown] (//anon)
      200000000002 [unknown] (/memfd:images (deleted))
      7f0000000001 write (/usr/lib/libc.so.6)
no sample
";
        let parts: Vec<(String, f64)> = sorted(script).into_iter().map(|part| (part.name, part.used)).collect();
        let expected = [
            (LINUX, 2.0),
            ("receive", 2.0),
            ("exchange heap", 1.0),
            ("other work of the kernel", 1.0),
            ("copying outside SIPs", 1.0),
            (SIPS, 3.0),
            (REST, 1.0),
        ];
        assert_eq!(parts, expected.map(|(name, used)| (name.to_string(), used)));
    }
}

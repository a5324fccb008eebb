//! The client: wrk with a script of requests.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use sing::failure::{Failure, Outcome};
use sing::host_tools;
use sing::repository::write_whole;

use super::files::Asked;

/// Connections, all kept alive.
pub const CONNECTIONS: u32 = 64;

/// The client's figures.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Seen {
    /// Responses per second.
    pub requests_per_s: f64,
    /// Bytes per second, with headers.
    pub bytes_per_s: f64,
    /// Median latency in microseconds.
    pub p50_us: f64,
    /// See `p50_us`.
    pub p99_us: f64,
    /// See `p50_us`.
    pub mean_us: f64,
    /// Responses other than 2xx and 3xx, and failed connections or requests.
    pub failed: u64,
}

/// Returns whether this host has the client.
pub fn is_here() -> bool {
    host_tools::find("wrk").is_some()
}

/// Writes the client's script.
///
/// # Errors
/// It cannot be written.
pub fn write_script(path: &Path, requests: &[Asked]) -> Outcome<()> {
    let mut text = String::from("local asked = {\n");
    for one in requests {
        let method = if one.form.is_some() { "POST" } else { "GET" };
        let mut headers = String::new();
        if let Some(cookie) = &one.cookie {
            let _ = write!(headers, "Cookie = {cookie:?}, ");
        }
        let body = match &one.form {
            Some(form) => {
                headers.push_str("[\"Content-Type\"] = \"application/x-www-form-urlencoded\"");
                format!("{form:?}")
            }
            None => String::from("nil"),
        };
        let _ = writeln!(text, "{{{method:?}, {:?}, {{{headers}}}, {body}}},", one.target);
    }
    text.push_str(
        "}\nlocal ready = {}\nlocal at = 0\n\
         function init(arguments)\n\
         for index, one in ipairs(asked) do ready[index] = wrk.format(one[1], one[2], one[3], one[4]) end\nend\n\
         function request()\nat = at % #ready + 1\nreturn ready[at]\nend\n\
         function done(summary, latency, requests)\n\
         local failed = summary.errors.connect + summary.errors.read + summary.errors.write\n\
         + summary.errors.status + summary.errors.timeout\n\
         io.write(string.format(\"figures %d %d %d %d %d %d %d\\n\", summary.requests, summary.duration,\n\
         summary.bytes, failed, latency:percentile(50), latency:percentile(99), latency.mean))\nend\n",
    );
    write_whole(path, text.as_bytes())
}

/// Runs the client for this many seconds, with one thread on the given processor.
///
/// # Errors
/// wrk is missing or prints no figures.
pub fn ask(processor: &str, script: &Path, address: &str, seconds: u32) -> Outcome<Seen> {
    let mut command = Command::new("taskset");
    command.args(["-c", processor, "wrk", "-t", "1", "-c", &CONNECTIONS.to_string(), "-d"]);
    command.arg(format!("{seconds}s")).arg("--timeout").arg("10s").arg("-s").arg(script).arg(address);
    let output = command.output().map_err(|error| Failure::file("start", Path::new("taskset"), &error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().find_map(figures).ok_or_else(|| {
        Failure::new(format!("wrk gave no figures of {address}"))
            .details(format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
            .remedy("install wrk (`apt-get install wrk`), and taskset of util-linux")
    })
}

fn figures(line: &str) -> Option<Seen> {
    let numbers = line.strip_prefix("figures ")?.split(' ').map(str::parse).collect::<Result<Vec<f64>, _>>().ok()?;
    let [requests, duration_us, bytes, failed, p50_us, p99_us, mean_us] = numbers[..] else { return None };
    let seconds = duration_us.max(1.0) / 1e6;
    let failed = failed as u64;
    Some(Seen { requests_per_s: requests / seconds, bytes_per_s: bytes / seconds, p50_us, p99_us, mean_us, failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_figures_is_read() {
        let seen = figures("figures 1000 2000000 4000 3 50 99 60").expect("a line of figures");
        assert_eq!((seen.requests_per_s, seen.bytes_per_s, seen.failed), (500.0, 2000.0, 3));
        assert_eq!((seen.p50_us, seen.p99_us, seen.mean_us), (50.0, 99.0, 60.0));
        assert_eq!(figures("Requests/sec: 5"), None);
    }
}

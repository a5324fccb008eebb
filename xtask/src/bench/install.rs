//! `sing bench install`: time to verify a package with an image of 500 KB and to install it into a system image, from
//! the bytes of both to the new file on disk.
//!
//! Deliberately not here: installing into a running system, which verifies with the same code.

use std::time::{Duration, Instant};

use install::Request;
use serde_json::json;

use crate::command_line::BenchArguments;
use sing::builder::UnsafeTests;
use sing::failure::{Failure, Outcome};
use sing::install::{change_file, sample};
use sing::repository::{Repository, write_whole};
use sing::systems::{self, Platform};

/// Target.
const TARGET: Duration = Duration::from_millis(50);
/// Rounds, of which the median is shown.
const TURNS: usize = 21;
/// `sing bench install`. Returns 1 if the target is missed.
///
/// # Errors
/// The system cannot be built, or the package is refused.
pub fn bench(repository: &Repository, arguments: &BenchArguments) -> Outcome<u8> {
    let system = arguments.system.as_deref().unwrap_or("hosted".as_ref());
    let manifest = repository.system_manifest(system)?;
    // An existing image is neither built nor started.
    let image = if manifest.extension().is_some_and(|extension| extension == "system") {
        manifest
    } else {
        systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?.image
    };
    let old = std::fs::read(&image).map_err(|error| Failure::file("read", &image, &error))?;
    let signer = systems::signer(repository)?;
    let package = sample::package(&signer)?;
    let path = repository.output("bench/install.system");
    let request = Request::Install { package: &package, at_boot: false, allow: &[] };
    let system = package_check::verify_system(&old)
        .map_err(|error| Failure::new(format!("{} is not a system image: {error}", image.display())))?
        .manifest;
    let (mut whole, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        write_whole(&path, &old)?;
        let start = Instant::now();
        let report = change_file(&path, &request, &signer.key)?;
        whole.push(start.elapsed());
        if let Err(report) = report {
            return Err(Failure::new("the package of the benchmark was refused").details(report.to_string()));
        }
        let start = Instant::now();
        if install::verified(&package, Some(&[]), &system).is_err() {
            return Err(Failure::new("the package of the benchmark was refused alone"));
        }
        alone.push(start.elapsed());
    }
    let (whole, alone) = (median(whole), median(alone));
    let (verdict, status) = verdict(whole);
    let shown = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    println!("{:<34} {:>10} {:>10}  target", "operation (median)", "target", "here");
    println!(
        "{:<34} {:>10} {:>10}  {verdict}",
        "verify and install 500 KB",
        format!("<= {}", shown(TARGET)),
        shown(whole)
    );
    println!("{:<34} {:>10} {:>10}", "of that, verify the package", "-", shown(alone));
    println!("into a system image of {} KB", old.len() / 1000);
    if let Some(path) = &arguments.json {
        let figures =
            json!({ "verify_and_install_ms": whole.as_secs_f64() * 1e3, "verify_ms": alone.as_secs_f64() * 1e3 });
        write_whole(path, format!("{figures:#}\n").as_bytes())?;
    }
    Ok(status)
}

/// Returns the report and the exit status.
fn verdict(whole: Duration) -> (&'static str, u8) {
    if whole <= TARGET { ("ok", 0) } else { ("missed", 1) }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_target_is_a_failure() {
        assert_eq!(verdict(TARGET), ("ok", 0));
        assert_eq!(verdict(TARGET + Duration::from_micros(1)), ("missed", 1));
    }
}

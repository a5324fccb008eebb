//! `sing bench install`: how long it takes to verify a package with an image of 500 KB and to install it into a system
//! image of this repository, from the bytes of both to the new file on the disk.
//!
//! The image is made here, of short instructions all of which are decoded. Deliberately not here: how long a running
//! system takes, which verifies with the same code.

use std::time::{Duration, Instant};

use install::Request;
use package::{Category, Code, Manifest, Package, Signer};
use serde_json::json;

use crate::command_line::BenchArguments;
use sing::builder::UnsafeTests;
use sing::failure::{Failure, Outcome};
use sing::install::change_file;
use sing::repository::{Repository, write_whole};
use sing::systems::{self, Platform};

/// Bytes of the image.
const IMAGE_BYTES: usize = 500_000;
/// The longest that it may take.
const TARGET: Duration = Duration::from_millis(50);
/// How often it is done; the median is shown.
const TURNS: usize = 21;
/// `mov eax, 1; call +2; ret; int3; nop; ret`
const CODE: [u8; 15] = [0xB8, 1, 0, 0, 0, 0xE8, 2, 0, 0, 0, 0xC3, 0xCC, 0x90, 0xC3, 0x90];
/// Where the code begins, in the file and in memory.
const START: usize = 0x1000;

/// `sing bench install`. Returns 1 when the target is missed.
///
/// # Errors
/// The system cannot be built, or the package is refused.
pub fn bench(repository: &Repository, arguments: &BenchArguments) -> Outcome<u8> {
    let system = arguments.system.as_deref().unwrap_or("hosted".as_ref());
    let manifest = repository.system_manifest(system)?;
    // Of an image that is there already nothing is to be built, and nothing is started.
    let image = if manifest.extension().is_some_and(|extension| extension == "system") {
        manifest
    } else {
        systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?.image
    };
    let old = std::fs::read(&image).map_err(|error| Failure::file("read", &image, &error))?;
    let signer = systems::signer(repository)?;
    let package = package(&signer)?;
    let path = repository.output("bench/install.system");
    let request = Request::Install { package: &package, at_boot: false, allow: &[] };
    let trust = package::SystemImage::parse(&old)
        .map_err(|error| Failure::new(format!("{} is no system image: {error}", image.display())))?
        .manifest
        .trust;
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
        if install::verified(&package, &trust).is_err() {
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

/// What is said of the time that it took, and the exit status.
fn verdict(whole: Duration) -> (&'static str, u8) {
    if whole <= TARGET { ("ok", 0) } else { ("missed", 1) }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// A signed package whose image has [`IMAGE_BYTES`].
///
/// # Errors
/// The image is refused.
pub fn package(signer: &Signer) -> Outcome<Vec<u8>> {
    let code = Code::Image { digest: [0; 32] };
    let manifest = Manifest::plain("bench-install", "singularity", Category::Console, code);
    Package::build(manifest, b"", &image(), signer)
        .map_err(|error| Failure::new(format!("the package of the benchmark cannot be made: {error}")))
}

/// An ELF file of one segment of code, without sections, so that each byte of it is decoded.
fn image() -> Vec<u8> {
    let code: Vec<u8> = CODE.iter().copied().cycle().take((IMAGE_BYTES - START) / CODE.len() * CODE.len()).collect();
    let mut file = vec![0; START];
    let mut head = vec![0x7F, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let halves = |numbers: &[u16]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let words = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let (start, length) = (START as u64, code.len() as u64);
    // A position-independent file for x86-64, entered at its first byte of code; one program header follows.
    head.extend(halves(&[3, 62, 1, 0]));
    head.extend(words(&[start, 64, 0]));
    head.extend([0; 4]);
    head.extend(halves(&[64, 56, 1, 64, 0, 0]));
    // To be loaded, readable and executable.
    head.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    head.extend(words(&[start, start, start, length, length, 0x1000]));
    file[..head.len()].copy_from_slice(&head);
    file.extend(code);
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use package::SecretKey;

    #[test]
    fn a_missed_target_is_a_failure() {
        assert_eq!(verdict(TARGET), ("ok", 0));
        assert_eq!(verdict(TARGET + Duration::from_micros(1)), ("missed", 1));
    }

    #[test]
    fn the_package_of_the_benchmark_is_one() {
        let signer = Signer::root(SecretKey::from_bytes(&[3; 32]));
        let bytes = package(&signer).expect("it passes every check");
        assert!((495_000..=505_000).contains(&bytes.len()), "{} bytes", bytes.len());
    }
}

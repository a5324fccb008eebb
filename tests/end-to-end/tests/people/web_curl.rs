//! A served folder, with curl as the client.

use std::fs;
use std::path::Path;
use std::time::Duration;

use end_to_end::{Format, Image, Run, Site, client};

test_needs::needs!(Curl);

const LIMIT: Duration = Duration::from_secs(50);

/// File lengths around block sizes of the file system and sizes of sent pieces.
const LENGTHS: [usize; 15] =
    [0, 1, 2, 511, 4095, 4096, 4097, 12_289, 65_535, 65_536, 65_537, 262_143, 262_144, 262_145, 1_048_577];
/// Length of the large file.
const LARGE: usize = 64 << 20;
/// A line of a file embedded in pages.
const WRAPPED: &str = "the file itself\n";

fn name(length: usize) -> String {
    format!("length-{length}")
}

/// Bytes whose period is not a block size.
fn content(length: usize) -> Vec<u8> {
    (0..length as u32).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 23) as u8).collect()
}

fn fill(folder: &Path, lengths: &[usize]) {
    for &length in lengths {
        fs::write(folder.join(name(length)), content(length)).expect("a file can be written");
    }
}

#[track_caller]
fn curl(arguments: &[&str]) -> Run {
    let fixed = ["--silent", "--show-error", "--max-time", "45"];
    client("curl", fixed.iter().chain(arguments), LIMIT)
}

/// Fetches all files on one connection, and compares them.
#[track_caller]
fn fetch_all(site: &Site, lengths: &[usize]) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut arguments = vec!["--write-out".to_string(), "%{http_code} %{num_connects} %{size_download}\n".into()];
    for length in lengths {
        arguments.extend(["-o".into(), folder.path().join(name(*length)).display().to_string()]);
        arguments.push(site.url(&format!("/{}", name(*length))));
    }
    let told = curl(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).succeeded();
    for (number, (line, length)) in told.lines().zip(lengths).enumerate() {
        // The connection is made for the first file.
        assert_eq!(line, format!("200 {} {length}", usize::from(number == 0)), "file {number}:\n{told}");
        let found = fs::read(folder.path().join(name(*length))).unwrap_or_default();
        assert!(found == content(*length), "the file of {length} bytes came as {} others", found.len());
    }
    assert_eq!(told.lines().count(), lengths.len());
}

#[test]
fn files_of_a_folder_arrive_whole_on_one_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let lengths: Vec<usize> = LENGTHS.into_iter().chain([LARGE]).collect();
    fill(folder.path(), &lengths);
    let mut site = Site::serve(folder.path());
    let paths = ["/length-1"];
    // The server caches blocks.
    fetch_all(&site, &lengths);
    let before = site.in_use(&paths);
    fetch_all(&site, &lengths);
    site.is_as_before(&before, &paths, 20);
    site.end();
}

/// An image made by `mke2fs`, instead of the one that `--web` makes from a folder.
#[test]
fn files_of_an_image_made_by_mke2fs_arrive_whole() {
    test_needs::needs!(E2fsprogs);
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path(), &LENGTHS);
    let image = Image::of(folder.path(), Format { mebibytes: 24, ..Format::default() });
    let site = Site::serve(&image.path());
    fetch_all(&site, &LENGTHS);
    site.end();
}

#[test]
#[ignore = "takes several minutes"]
fn a_file_of_one_gibibyte_arrives_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path(), &[1 << 30]);
    let site = Site::serve(folder.path());
    let begin = std::time::Instant::now();
    let url = site.url(&format!("/{}", name(1 << 30)));
    let script = format!("curl --silent --fail '{url}' | cmp - '{}'", folder.path().join(name(1 << 30)).display());
    client("sh", ["-c", &script], Duration::from_secs(600)).succeeded();
    println!("1 GiB to curl and compared in {:.1?}", begin.elapsed());
    site.end();
}

#[test]
fn parts_heads_and_conditions() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path(), &[65_537]);
    fs::create_dir(folder.path().join("sub")).expect("a folder");
    let site = Site::serve(folder.path());
    let url = site.url("/length-65537");
    let whole = content(65_537);
    for (range, expected) in [
        ("0-0", &whole[..1]),
        ("-1", &whole[65_536..]),
        ("4095-4096", &whole[4095..4097]),
        ("65535-", &whole[65_535..]),
        ("0-99999999", &whole[..]),
    ] {
        let run = curl(&["--fail", "-r", range, &url]);
        assert!(run.status == Some(0) && run.output == expected, "{range}: {} bytes", run.output.len());
    }
    let status = |arguments: &[&str]| {
        let all: Vec<&str> = ["-o", "/dev/null", "-w", "%{http_code}"].iter().chain(arguments).copied().collect();
        curl(&all).succeeded()
    };
    assert_eq!(status(&["-r", "1-2,5-6", &url]), "206");
    assert_eq!(status(&["-r", "70000-", &url]), "416");
    assert_eq!(status(&["-z", "Tue, 01 Jan 2999 00:00:00 GMT", &url]), "304");
    assert_eq!(status(&["-z", "Sat, 01 Jan 2000 00:00:00 GMT", &url]), "200");
    assert_eq!(status(&["-d", "x=y", &url]), "405");
    assert_eq!(status(&[&site.url("/no-such-file")]), "404");
    assert_eq!(status(&[&site.url("/sub")]), "301");
    assert_eq!(status(&["-L", &site.url("/sub")]), "200");
    assert_eq!(status(&["--path-as-is", &site.url("/../../service/tcp")]), "400");
    let head = curl(&["--head", &url]).succeeded().to_lowercase();
    assert!(head.contains("content-length: 65537\r\n") && head.contains("\r\netag: "), "{head}");
    // A client that accepts compression must see the same bytes.
    assert!(curl(&["--compressed", &url]).output == whole);
    site.end();
}

/// Posts are logged, advertisements rotate by cookie, and files are embedded in pages.
#[test]
fn the_dynamic_site() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("dir00001")).expect("a folder");
    fs::write(folder.path().join("dir00001/class2_3"), WRAPPED.repeat(400)).expect("a file can be written");
    fs::create_dir(folder.path().join(".hidden")).expect("a folder");
    fs::write(folder.path().join(".hidden/secret"), "secret").expect("a file can be written");
    let mut site = Site::serve_with(folder.path(), &["--demo"]);
    dynamic(&site, folder.path());
    // Allocate everything that stays open or cached.
    let before = site.in_use(&["/spec/", "/hello", "/status/"]);
    dynamic(&site, folder.path());
    site.is_as_before(&before, &["/spec/", "/hello", "/status/"], 20);
    site.end();
}

#[track_caller]
fn dynamic(site: &Site, folder: &Path) {
    let wrapped = WRAPPED.repeat(400);
    curl(&["--fail", "-d", "", &site.url("/spec/command/reset")]).succeeded();
    let fields = "urlroot=/spec/static&dir=1&class=2&num=3&client=77";
    for number in 1..=3 {
        let page = curl(&["--fail", "-b", "my_cookie=42", "-d", fields, &site.url("/spec/post")]).succeeded();
        assert!(page.contains("the file itself"), "post {number} is answered with:\n{page}");
    }
    let log = curl(&["--fail", &site.url("/spec/command/fetch")]).succeeded();
    assert!(log.matches("dir00001/class2_3").count() == 3 && log.contains("77"), "the log is:\n{log}");
    let jar = folder.join("jar").display().to_string();
    let mut seen = Vec::new();
    for number in 0..5 {
        let url = site.url("/spec/ad?file=dir00001/class2_3");
        let first = ["--cookie", "my_cookie=user_id=17&last_ad=0"];
        let rest = ["--cookie", &jar];
        let sent = if number == 0 { first } else { rest };
        let page = curl(&["--fail", sent[0], sent[1], "--cookie-jar", &jar, &url]).succeeded();
        assert!(page.contains("the file itself"), "{page}");
        let kept = fs::read_to_string(&jar).unwrap_or_default();
        let ad = kept.split("Ad_id=").nth(1).and_then(|rest| rest.split('&').next()).map(String::from);
        seen.push(ad.unwrap_or_else(|| panic!("there is no advertisement in the cookie:\n{kept}")));
    }
    seen.dedup();
    assert!(seen.len() > 1, "the advertisement is always the same: {seen:?}");
    let plain = curl(&["--fail", &site.url("/spec/static/dir00001/class2_3")]).succeeded();
    assert!(plain == wrapped, "{plain}");
    let status = |path: &str| {
        let url = site.url(path);
        curl(&["--path-as-is", "-o", "/dev/null", "-w", "%{http_code}", &url]).succeeded()
    };
    assert_eq!(status("/spec/static/no-such-file"), "404");
    for path in ["/spec/static/.hidden/secret", "/spec/static/../../service", "/spec/get?file=.hidden/secret"] {
        assert!(["400", "404"].contains(&status(path).as_str()), "{path}");
    }
    let again = curl(&["--fail", "-d", "", &site.url("/spec/command/reset")]).succeeded();
    assert!(again.contains("the log is empty"), "{again}");
    assert_eq!(curl(&["--fail", &site.url("/spec/command/fetch")]).succeeded(), "");
}

//! A served folder under the load of wrk, with many busy connections.

use std::fs;
use std::time::Duration;

use end_to_end::{Site, client};

test_needs::needs!(Wrk);

/// wrk's messages about broken connections and failed responses.
const ERROR: [&str; 2] = ["Socket errors", "Non-2xx"];
/// Maximum blocks that the server caches: up to four for each of at most 140 connections. With tens of thousands of
/// requests, a leak in one of a hundred shows.
const KEPT_BLOCKS: u64 = 4 * 140;

#[test]
fn many_connections_are_all_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("small"), "small".repeat(200)).expect("a file can be written");
    let mut site = Site::serve_with(folder.path(), &["--demo"]);
    let paths = ["/small", "/hello"];
    ask(&site);
    let before = site.in_use(&paths);
    ask(&site);
    site.is_as_before(&before, &paths, KEPT_BLOCKS);
    site.end();
}

#[track_caller]
fn ask(site: &Site) {
    for (path, connections) in [("/small", "100"), ("/hello", "40")] {
        let url = site.url(path);
        let run = client("wrk", ["-t2", "-c", connections, "-d1s", "--timeout", "20s", &url], Duration::from_secs(40));
        let told = run.succeeded();
        assert!(ERROR.iter().all(|error| !told.contains(error)), "{told}");
        let count = told.lines().find_map(|line| line.trim().split_once(" requests in ")?.0.parse().ok());
        assert!(count > Some(100u64), "{told}");
        println!("{path}, {connections} connections: {} answers in 1 s", count.unwrap_or(0));
    }
}

//! A folder that is served, asked by wrk: many connections that never rest.

use std::fs;
use std::time::Duration;

use end_to_end::{Site, client};

/// What wrk says of connections that broke, and of answers that are none.
const TROUBLE: [&str; 2] = ["Socket errors", "Non-2xx"];

#[test]
fn many_connections_are_all_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("small"), "small".repeat(200)).expect("a file can be written");
    let mut site = Site::serve(folder.path());
    let paths = ["/small", "/hello"];
    // The server keeps blocks that it has used, as many as the most connections needed.
    ask(&site);
    let before = site.in_use(&paths);
    ask(&site);
    site.is_as_before(&before, &paths, 300);
    site.end();
}

#[track_caller]
fn ask(site: &Site) {
    for (path, connections) in [("/small", "100"), ("/hello", "40")] {
        let url = site.url(path);
        let run = client("wrk", ["-t2", "-c", connections, "-d1s", "--timeout", "20s", &url], Duration::from_secs(40));
        let told = run.succeeded();
        assert!(TROUBLE.iter().all(|trouble| !told.contains(trouble)), "{told}");
        let count = told.lines().find_map(|line| line.trim().split_once(" requests in ")?.0.parse().ok());
        assert!(count > Some(100u64), "{told}");
        println!("{path}, {connections} connections: {} answers in 1 s", count.unwrap_or(0));
    }
}

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
    let before = site.in_use(&paths);
    for (path, connections) in [("/small", "100"), ("/hello", "40")] {
        let url = site.url(path);
        let run = client("wrk", ["-t2", "-c", connections, "-d2s", "--timeout", "20s", &url], Duration::from_secs(40));
        let told = run.succeeded();
        assert!(TROUBLE.iter().all(|trouble| !told.contains(trouble)), "{told}");
        let count: u64 =
            told.lines().find_map(|line| line.trim().split_once(" requests in ")?.0.parse().ok()).unwrap_or(0);
        assert!(count > 100, "{told}");
        println!("{path}, {connections} connections: {count} answers in 2 s");
    }
    site.is_as_before(&before, &paths);
    site.end();
}

//! Host addresses at which a folder is served.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpStream;

use end_to_end::Site;

/// A loopback address that only servers on all addresses listen on.
const ANOTHER: &str = "127.0.0.2";

#[test]
fn only_who_asks_for_it_is_reached_at_all_addresses() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("index.html"), "here").expect("a file can be written");

    let site = Site::serve(folder.path());
    let refused = TcpStream::connect((ANOTHER, site.port)).expect_err("it is served at another address");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{refused}");
    site.end();

    for address in ["0.0.0.0", "::"] {
        let site = Site::serve_with(folder.path(), &["--listen", address]);
        TcpStream::connect((ANOTHER, site.port)).unwrap_or_else(|error| panic!("--listen {address}: {error}"));
        site.end();
    }
}

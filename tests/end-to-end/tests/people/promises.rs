//! Promises (`[[deny]]`) of systems, verified on the built systems.

use std::process::Command;
use std::time::Duration;

use end_to_end::{finish, repository, sing};

/// Systems with a web server, and the number of their promises.
const SYSTEMS: [(&str, usize); 3] = [("web", 4), ("web-tap", 5), ("web-bare", 5)];

#[test]
fn what_systems_with_a_web_server_promise_of_its_applications_is_kept() {
    for (name, promises) in SYSTEMS {
        let mut command = Command::new(sing());
        command.args(["verify", "--system", name]).current_dir(repository());
        let run = finish(command, &format!("sing verify --system {name}"), Duration::from_secs(600));
        let kept = format!("the {promises} promises of who reaches what are kept");
        assert!(run.status == Some(0) && run.text().contains(&kept), "`{kept}` is to be said:\n{run}");
    }
}

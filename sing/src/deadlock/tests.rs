//! Small systems that deadlock or only seem to: the programs of tests/services-check/circles. All systems of the
//! repository are checked with the tool itself, by the tests of people.

use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

/// A system of a namespace and these programs.
fn small(programs: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("small.toml");
    let text = format!(
        "[system]\nname = \"small\"\nroot = \"service-manager\"\nprimary = \"last\"\n\n\
         [[program]]\nname = \"directory\"\n\n{programs}\n\
         [[bind]]\nwho = \"..*.singularity\"\npath = \"/\"\n\n\
         [[bind]]\nwho = \"circle-left.singularity\"\npath = \"/service/right\"\n\n\
         [[bind]]\nwho = \"circle-right.singularity\"\npath = \"/service/left\"\n\n\
         [[bind]]\nwho = \"circle-lender.singularity\"\npath = \"/service/worker\"\n"
    );
    std::fs::write(&path, text).expect("a file");
    (folder, path)
}

fn analysed(programs: &str) -> Analysis {
    let repository = Repository::find().expect("tests run inside the repository");
    let catalogue = Catalogue::read(&repository).expect("the manifests are right");
    let (_folder, path) = small(programs);
    let installed = systems::described(&repository, &catalogue, &path).unwrap_or_else(|failure| panic!("{failure}"));
    analyse(&installed).unwrap_or_else(|failure| panic!("{failure}"))
}

const LEFT_AND_RIGHT: &str =
    "[[program]]\nname = \"circle-left\"\n\n[[program]]\nname = \"circle-right\"\ninstance = \"last\"\n";
const LENDER_AND_WORKER: &str =
    "[[program]]\nname = \"circle-worker\"\n\n[[program]]\nname = \"circle-lender\"\ninstance = \"last\"\n";

#[test]
fn services_that_ask_each_other_deadlock_and_the_story_is_told() {
    test_needs::needs!(Spin);
    let analysis = analysed(LEFT_AND_RIGHT);
    let told = view::text(&analysis);
    assert!(!analysis.is_free(), "{told}");
    for line in [
        "system small: a deadlock is possible",
        "`circle-left` sends `circle-right` ",
        "`circle-right` sends `circle-left` ",
        "then `circle-left` waits for `circle-right` to answer on ",
        "then `circle-right` waits for `circle-left` to answer on ",
    ] {
        assert!(told.contains(line), "{line}:\n{told}");
    }
    let json = view::json(&analysis);
    assert_eq!((&json["ok"], &json["circles"][0]["verdict"]), (&false.into(), &"deadlock".into()));
}

#[test]
fn endpoints_that_are_lent_while_the_lender_serves_them_do_no_harm() {
    test_needs::needs!(Spin);
    let analysis = analysed(LENDER_AND_WORKER);
    let told = view::text(&analysis);
    let [circle] = analysis.circles.as_slice() else { panic!("there is one circle:\n{told}") };
    assert_eq!(circle.tasks, ["circle-worker", "circle-lender"]);
    assert_eq!(circle.verdict, Verdict::Cleared, "{told}");
    assert!(told.contains("none of them is a deadlock"), "{told}");
}

#[test]
fn what_is_wrong_is_told_with_a_remedy() {
    let repository = Repository::find().expect("tests run inside the repository");
    let missing = check(&repository, Some(Path::new("hosetd")), false).expect_err("no such system").to_string();
    assert!(missing.contains("hosetd") && missing.contains("hosted"), "{missing}");
    let (_folder, path) = small("[[program]]\nname = \"circle-middle\"\ninstance = \"last\"\n");
    let unknown = check(&repository, Some(&path), true).expect_err("no such program").to_string();
    assert!(unknown.contains("circle-middle"), "{unknown}");
}

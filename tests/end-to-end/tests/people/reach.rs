//! Programs that reach files through others, in a system without promises. The builder's tests cover its refusal of a
//! system whose promises this breaks.

use end_to_end::{Format, Image, Machine, built_system};

test_needs::needs!(E2fsprogs);

const TEXT: &str = "not for everybody\n";

fn in_reach_check(commands: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    std::fs::write(folder.path().join("secret"), TEXT).expect("a file can be written");
    let image = Image::of(folder.path(), Format { mebibytes: 8, ..Format::default() });
    Machine::new().system(built_system("reach-check")).disk(image.path()).run(commands).succeeded()
}

#[test]
fn two_children_joined_by_their_parent_pass_a_file_on() {
    assert_eq!(in_reach_check("hostile-reach-joiner /fs/disk0/secret"), TEXT);
}

#[test]
fn a_child_reads_a_file_that_it_was_started_with() {
    assert_eq!(in_reach_check("hostile-reach-holder /fs/disk0/secret"), TEXT);
}

//! Conformance of every file server to the contracts of folders and files: ext2, FAT, and host folders.

use std::time::Duration;

use end_to_end::{Machine, built_system};

#[test]
fn all_file_servers_keep_to_the_contracts_of_folders_and_files() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let work = format!("work={}", folder.path().to_str().expect("a path of text"));
    let machine = Machine::new().system(built_system("faulty")).folder(&work).limit(Duration::from_secs(300));
    for place in ["ext2", "fat", "work"] {
        let (begin, end) = match place {
            "work" => (String::new(), String::new()),
            // The shell starts before the disk, for which `fault` waits.
            kind => (
                format!(
                    "fault /check/faulty1 counts; format /dev/faulty1 --type {kind} --yes; mount /dev/faulty1 /fs/{kind}; "
                ),
                format!("; umount /fs/{kind}"),
            ),
        };
        let conform =
            format!("mkdir /fs/{place}/below; conform /fs/{place}/below && ls /fs/{place}/below && echo conforms");
        let list = "'deny write ..conform.singularity' 'allow all **'";
        let read = format!(
            "echo text > /fs/{place}/below/there; setacl /fs/{place} {list}; conform /fs/{place}/below --read-only && echo reads"
        );
        let run = machine.run(&format!("{begin}{conform}; {read}{end}"));
        run.orderly();
        // The folder is empty after the first suite.
        for part in [" answers are right\nconforms\n", " answers are right\nreads\n"] {
            assert!(run.text().contains(part), "{place}: {run}");
        }
    }
}

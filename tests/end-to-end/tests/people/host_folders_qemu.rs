//! Folders of the host on bare machines, over virtio-9p: QEMU's server, which knows nothing of ours.

use std::fs;
use std::os::unix::fs::symlink;

use end_to_end::{BareMachine, KINDS};

#[test]
fn a_folder_is_read_and_changed_on_both_machines() {
    for kind in KINDS {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a"), "one\ntwo\n").expect("written");
        fs::write(at("large"), vec![b'x'; 300_000]).expect("written");
        fs::create_dir(at("sub")).expect("a folder");
        symlink("../a", at("sub/inside")).expect("a link");
        symlink("/etc/passwd", at("out")).expect("a link");
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().expect("mkfifo").success());
        let option = format!("work={}", folder.path().to_str().expect("a path of text"));
        let commands = "cd /fs/work; cat a sub/inside; wc -c large; cp large copy; echo more >> a; mkdir -p x/y; mv a x/y/b; \
            ls; rmdir x || echo full; cat out || echo refused; cat pipe || echo refused; ln -s sub/inside way; cat way || echo gone; \
            sync; rm large; exit 0";
        let run = BareMachine::new(kind).with(&["--folder", &option]).run(commands);
        let text = run.text();
        let expected =
            "one\ntwo\none\ntwo\n300000  large\ncopy\nlarge\nout@\npipe\nsub/\nx/\nfull\nrefused\nrefused\ngone\n";
        assert_eq!(text, expected, "{run}");
        assert_eq!(fs::read_to_string(at("x/y/b")).expect("moved"), "one\ntwo\nmore\n");
        assert_eq!((fs::read(at("copy")).expect("copied").len(), at("large").exists()), (300_000, false));
        let reading = format!("{option}:ro");
        let run =
            BareMachine::new(kind).with(&["--folder", &reading]).run("cat /fs/work/x/y/b; echo x > /fs/work/x/y/b");
        assert_eq!(run.text(), "one\ntwo\nmore\n", "{run}");
        run.refused(&["/fs/work/x/y/b", "read only"]);
    }
}

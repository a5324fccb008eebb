//! `2>` on a bare machine: the same as hosted.

use end_to_end::{BareMachine, Machine};

test_needs::needs!(Qemu);

const SCRIPT: &str = "x=$(format ram0 --yes); mount ram0; cd /fs/ram0; cat /no 2> e; cat e; cat /no > f 2>&1; cat f; \
                      for i in 1 2 3; do cat /no/$i; end 2>&1 | grep -c /no; no-such 2> e; cat e; cat /no 2> e & wait; cat e; \
                      cat /no 2> /no/e; cat /no";

#[test]
fn errors_go_to_files_and_pipes_on_bare_machines() {
    let hosted = Machine::new().run(SCRIPT);
    assert_eq!((hosted.text().lines().count(), hosted.errors.lines().count()), (6, 2), "{hosted}");
    for processors in ["1", "4"] {
        let bare = BareMachine::new("microvm").with(&["--smp", processors]).run(SCRIPT);
        bare.orderly();
        assert_eq!(
            (&bare.output, &bare.errors, bare.status),
            (&hosted.output, &hosted.errors, hosted.status),
            "{bare}"
        );
    }
}

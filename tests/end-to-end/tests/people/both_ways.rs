//! One program from one source, natively and as WebAssembly: `cat` and `wasm-cat`.

use std::fs;

use end_to_end::{Format, Image, Machine, Run, built_system};

test_needs::needs!(E2fsprogs);

/// What both are to do, by the name of the program.
const USES: [&str; 8] = [
    "PROGRAM one.txt empty.txt two.bin | hash -",
    "PROGRAM one.txt none.txt two.bin | wc; echo status $?",
    "PROGRAM none.txt; echo status $?",
    "seq 1 5 | PROGRAM",
    "seq 1 5 | PROGRAM one.txt - one.txt",
    "seq 1 5 | PROGRAM - -; echo status $?",
    "PROGRAM two.bin two.bin | head -n 1",
    "PROGRAM folder; echo status $?",
];

fn disk() -> Image {
    let source = tempfile::tempdir().expect("a folder");
    // More than a block, with every byte, without a line at the end.
    let bytes: Vec<u8> = (0..300_000_u32).map(|place| ((place * 7) >> 3) as u8).collect();
    fs::write(source.path().join("one.txt"), "a line\nand another\n").expect("a file");
    fs::write(source.path().join("empty.txt"), "").expect("a file");
    fs::write(source.path().join("two.bin"), bytes).expect("a file");
    fs::create_dir(source.path().join("folder")).expect("a folder");
    Image::of(source.path(), Format::default())
}

fn run(disk: &Image, program: &str) -> Run {
    let commands = format!("cd /fs/disk0\n{}", USES.join("\necho next\n")).replace("PROGRAM", program);
    Machine::new().system(built_system("wasm")).disk(disk.path()).run(&commands)
}

#[test]
fn a_program_built_in_both_ways_prints_the_same() {
    let disk = disk();
    let [native, module] = ["cat", "wasm-cat"].map(|program| run(&disk, program));
    let text = native.text();
    assert_eq!(text.matches("next\n").count(), USES.len() - 1, "{native}");
    assert!(text.contains("a line\nand another\n1\n2\n3\n4\n5\na line\nand another\n"), "{native}");
    assert!(text.contains("status 1"), "{native}");
    assert_eq!(module.text(), text, "{module}");
    for run in [native, module] {
        assert!(run.errors.contains("none.txt: ") && run.errors.contains("folder: "), "{run}");
    }
}

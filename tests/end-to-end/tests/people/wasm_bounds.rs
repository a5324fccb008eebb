//! Memory of WebAssembly programs in a window: it grows, and what is behind it is out of bounds.
//!
//! ```wat
//! (memory (export "memory") 1)
//! (func $beyond (param i32) (i32.store (local.get 0) (i32.const 7)))
//! (func $start (export "_start")
//!   (if (i32.ne (memory.grow (i32.const 500)) (i32.const 1)) (then unreachable))
//!   (i32.store (i32.const LAST) (i32.const 42))
//!   (if (i32.ne (i32.load (i32.const LAST)) (i32.const 42)) (then unreachable))
//!   (call $beyond (i32.const PLACE)))
//! ```

use std::path::Path;
use std::process::Command;

use end_to_end::{BUILD_LIMIT, Run, built_system, finish, repository, sing};

/// Bytes of memory after its growth by 500 pages.
const BYTES: i64 = 501 * 65536;
/// The last place of an `i32`.
const LAST: i64 = BYTES - 4;
/// Status of a command whose program has faulted.
const FAULTED: i32 = 130;

/// LEB128 with sign.
fn number(mut value: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if (value == 0 && byte & 0x40 == 0) || (value == -1 && byte & 0x40 != 0) {
            bytes.push(byte);
            return bytes;
        }
        bytes.push(byte | 0x80);
    }
}

fn constant(value: i64) -> Vec<u8> {
    [&[0x41], &number(value)[..]].concat()
}

fn with_length(bytes: &[u8]) -> Vec<u8> {
    [&[bytes.len() as u8], bytes].concat()
}

fn section(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [&[kind], &with_length(bytes)[..]].concat()
}

/// The module that stores at a place.
fn storing_at(place: i64) -> Vec<u8> {
    let unless_42: &[u8] = &[0x41, 42, 0x47, 4, 0x40, 0, 0x0b];
    let beyond = [&[0, 0x20, 0][..], &constant(7), &[0x36, 2, 0, 0x0b]].concat();
    let grown = [&[0][..], &constant(500), &[0x40, 0, 0x41, 1, 0x47, 4, 0x40, 0, 0x0b]].concat();
    let stored = [&constant(LAST)[..], &constant(42), &[0x36, 2, 0]].concat();
    let loaded = [&constant(LAST)[..], &[0x28, 2, 0], unless_42].concat();
    let start = [&grown[..], &stored, &loaded, &constant(place), &[0x10, 0, 0x0b]].concat();
    let module = [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, &[2, 0x60, 1, 0x7f, 0, 0x60, 0, 0]),
        section(3, &[2, 0, 1]),
        section(5, &[1, 0, 1]),
        section(7, b"\x02\x06_start\0\x01\x06memory\x02\0"),
        section(10, &[&[2], &with_length(&beyond)[..], &with_length(&start)].concat()),
        section(0, b"\x04name\x01\x10\x02\0\x06beyond\x01\x05start"),
    ];
    module.concat()
}

/// Runs the module for a place.
fn run(place: i64, options: &[&str]) -> Run {
    built_system("wasm");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stores.wasm");
    std::fs::write(&path, storing_at(place)).expect("it is written");
    let mut command = Command::new(sing());
    command.arg("run").args(options).arg("--wasm").arg(Path::new(&path)).current_dir(repository());
    finish(command, &format!("a store at {place:#x} {options:?}"), BUILD_LIMIT)
}

fn grows_and_traps(options: &[&str]) {
    let inside = run(LAST, options);
    assert_eq!(inside.status, Some(0), "{inside}");
    // One byte too far, the end of memory, the largest index.
    for place in [LAST + 1, BYTES, -1] {
        let beyond = run(place, options);
        assert_eq!(beyond.status, Some(FAULTED), "{beyond}");
        for part in ["trap: out of bounds memory access at stores+", "in beyond"] {
            assert!(beyond.to_string().contains(part), "{part}: {beyond}");
        }
    }
}

#[test]
fn memory_grows_and_an_access_behind_it_is_a_trap() {
    grows_and_traps(&[]);
}

#[test]
fn the_same_in_a_hardware_domain() {
    grows_and_traps(&["--domains", "hip-r3-s"]);
}

#[test]
fn the_same_on_a_bare_machine() {
    test_needs::needs!(Qemu);
    grows_and_traps(&["--machine", "microvm"]);
}

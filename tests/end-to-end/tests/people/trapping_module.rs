//! A WebAssembly module that spoils a number in its memory and then divides by it:
//!
//! ```wat
//! (memory (export "memory") 1)
//! (func $spoil (i32.store (i32.const 64) (i32.const 0)))
//! (func $divide (result i32) (i32.div_u (i32.const 7) (i32.load (i32.const 64))))
//! (func $start (export "_start") (i32.store (i32.const 64) (i32.const 3)) (call $spoil) (drop (call $divide)))
//! ```

use std::path::PathBuf;

use tempfile::TempDir;

/// Name of the program that the module becomes.
pub const PROGRAM: &str = "divide";

fn section(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [&[kind, bytes.len() as u8], bytes].concat()
}

/// Writes the module to a file, in a folder.
pub fn written() -> (TempDir, PathBuf) {
    const SPOIL: &[u8] = &[10, 0, 0x41, 0xc0, 0, 0x41, 0, 0x36, 2, 0, 0x0b];
    const DIVIDE: &[u8] = &[11, 0, 0x41, 7, 0x41, 0xc0, 0, 0x28, 2, 0, 0x6e, 0x0b];
    const START: &[u8] = &[15, 0, 0x41, 0xc0, 0, 0x41, 3, 0x36, 2, 0, 0x10, 0, 0x10, 1, 0x1a, 0x0b];
    let module = [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, &[2, 0x60, 0, 0, 0x60, 0, 1, 0x7f]),
        section(3, &[3, 0, 1, 0]),
        section(5, &[1, 0, 1]),
        section(7, b"\x02\x06_start\0\x02\x06memory\x02\0"),
        section(10, &[&[3], SPOIL, DIVIDE, START].concat()),
        section(0, b"\x04name\x01\x17\x03\0\x05spoil\x01\x06divide\x02\x05start"),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(format!("{PROGRAM}.wasm"));
    std::fs::write(&path, module.concat()).expect("it is written");
    (folder, path)
}

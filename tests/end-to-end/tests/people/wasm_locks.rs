//! Locks of files as a WebAssembly program sees them: errors by number, and what is left when the server of a locked file
//! has ended.

use std::process::Command;

use end_to_end::{BUILD_LIMIT, Format, Image, Run, built_system, finish, repository, sing};

test_needs::needs!(E2fsprogs);

/// A program whose exit status is the number of the first step that did not go as expected, or 0.
const LOCKS: &str = r#"(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_unlink_file" (func $path_unlink_file (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_close" (func $fd_close (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (import "sing" "lock" (func $lock (param i32 i32 i64 i64) (result i32)))
  (import "sing" "test_lock" (func $test_lock (param i32 i32 i64 i64) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 256) "disk0/adisk0/bdisk0/c")
  ;; A vector of one byte, for fd_read.
  (data (i32.const 16) "\40\00\00\00\01\00\00\00")
  (func $is (param $step i32) (param $found i32) (param $wanted i32)
    (if (i32.ne (local.get $found) (local.get $wanted)) (then (call $proc_exit (local.get $step)))))
  (func $open (param $name i32) (param $flags i32) (param $rights i64) (result i32)
    (call $path_open (i32.const 3) (i32.const 0) (local.get $name) (i32.const 7) (local.get $flags)
      (local.get $rights) (i64.const 0) (i32.const 0) (i32.const 32)))
  (func $unlink (param $name i32) (result i32)
    (call $path_unlink_file (i32.const 3) (local.get $name) (i32.const 7)))
  (func $start (export "_start")
    ;; 3 is the folder of all volumes: it outlives their servers. `disk0/a`, for reading and writing, becomes 4, and once
    ;; more for reading 5.
    (call $is (i32.const 1) (call $open (i32.const 256) (i32.const 1) (i64.const 66)) (i32.const 0))
    (call $is (i32.const 2) (i32.load (i32.const 32)) (i32.const 4))
    (call $is (i32.const 3) (call $open (i32.const 256) (i32.const 0) (i64.const 2)) (i32.const 0))
    ;; EINVAL, EBADF, EISDIR, ESPIPE, EFBIG, ENOTCAPABLE
    (call $is (i32.const 4) (call $lock (i32.const 4) (i32.const 3) (i64.const 0) (i64.const 0)) (i32.const 28))
    (call $is (i32.const 5) (call $test_lock (i32.const 4) (i32.const 0) (i64.const 0) (i64.const 0)) (i32.const 28))
    (call $is (i32.const 6) (call $lock (i32.const 9) (i32.const 1) (i64.const 0) (i64.const 0)) (i32.const 8))
    (call $is (i32.const 7) (call $lock (i32.const 3) (i32.const 1) (i64.const 0) (i64.const 0)) (i32.const 31))
    (call $is (i32.const 8) (call $lock (i32.const 0) (i32.const 1) (i64.const 0) (i64.const 0)) (i32.const 70))
    (call $is (i32.const 9) (call $lock (i32.const 4) (i32.const 1) (i64.const 2) (i64.const -1)) (i32.const 22))
    (call $is (i32.const 10) (call $lock (i32.const 5) (i32.const 2) (i64.const 0) (i64.const 0)) (i32.const 76))
    ;; Descriptors exclude one another, also those of one program: EAGAIN.
    (call $is (i32.const 11) (call $lock (i32.const 4) (i32.const 2) (i64.const 0) (i64.const 10)) (i32.const 0))
    (call $is (i32.const 12) (call $lock (i32.const 5) (i32.const 1) (i64.const 9) (i64.const 1)) (i32.const 6))
    (call $is (i32.const 13) (call $test_lock (i32.const 5) (i32.const 1) (i64.const 9) (i64.const 1)) (i32.const 6))
    (call $is (i32.const 14) (call $test_lock (i32.const 5) (i32.const 2) (i64.const 10) (i64.const 0)) (i32.const 0))
    (call $is (i32.const 15) (call $lock (i32.const 4) (i32.const 0) (i64.const 9) (i64.const 1)) (i32.const 0))
    (call $is (i32.const 16) (call $lock (i32.const 5) (i32.const 1) (i64.const 9) (i64.const 1)) (i32.const 0))
    (call $is (i32.const 17) (call $fd_close (i32.const 5)) (i32.const 0))
    (call $is (i32.const 25) (call $lock (i32.const 4) (i32.const 2) (i64.const 0) (i64.const 0)) (i32.const 0))
    (call $is (i32.const 18) (call $unlink (i32.const 263)) (i32.const 0))
    ;; Until the end of standard input. The server ends meanwhile: EIO, also for names, as long as `a` is open.
    (call $is (i32.const 19) (call $fd_read (i32.const 0) (i32.const 16) (i32.const 1) (i32.const 36)) (i32.const 0))
    (call $is (i32.const 20) (call $unlink (i32.const 270)) (i32.const 29))
    (call $is (i32.const 21) (call $open (i32.const 263) (i32.const 1) (i64.const 2)) (i32.const 29))
    (call $is (i32.const 22) (call $lock (i32.const 4) (i32.const 1) (i64.const 0) (i64.const 1)) (i32.const 29))
    (call $is (i32.const 23) (call $fd_close (i32.const 4)) (i32.const 0))
    (call $is (i32.const 24) (call $unlink (i32.const 270)) (i32.const 0))))"#;

#[track_caller]
fn locks(script: &str) -> Run {
    built_system("wasm");
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["b", "c"] {
        std::fs::write(folder.path().join(name), "text").expect("a file");
    }
    let disk = Image::of(folder.path(), Format::default());
    let module = folder.path().join("locks.wasm");
    std::fs::write(&module, wat::parse_str(LOCKS).expect("a module")).expect("it is written");
    let mut command = Command::new(sing());
    command.arg("run").arg("--disk").arg(disk.path()).arg("--wasm").arg(&module).arg("-c").arg(script);
    command.current_dir(repository());
    let run = finish(command, "sing run --wasm locks.wasm", BUILD_LIMIT);
    disk.check();
    run
}

#[test]
fn locks_of_a_program_end_with_their_server_and_so_does_what_relies_on_them() {
    let run = locks(
        "function later\nsleep 2s\necho\nend\n\
         function strike\nsleep 1s\nkill ext2-fs\nend\n\
         sync\nstrike &\nlater | locks --no-working-folder --dir /fs; echo status $?; wait; ls /fs/disk0",
    );
    // What was not on the disk yet is lost with the server: there may be an `a`, or a `b` still.
    assert!(run.text().starts_with("status 0\n") && !run.text().contains("\nc\n"), "{run}");
}

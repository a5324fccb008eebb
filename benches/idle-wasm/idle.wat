;; Writes a byte, and waits for the end of its standard input: an instance that is alive and idle.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1 1)
  ;; One range of one byte at 16.
  (data (i32.const 0) "\10\00\00\00\01\00\00\00")
  (data (i32.const 16) "\0a")
  (func (export "_start")
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
    (loop $again
      (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
      (br_if $again (i32.load (i32.const 8))))))

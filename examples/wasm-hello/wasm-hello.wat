;; Says hello. With arguments it fails in one of the ways in which a module can, by their number.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $arguments (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "hello from wasm\n")
  (table funcref (elem $hello $divide $recurse $reach $unreachable $loop))

  (func $hello
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (i32.const 16))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func $divide (drop (i32.div_u (i32.const 1) (i32.load (i32.const 32)))))
  (func $recurse (call $recurse) (drop (i32.load (i32.const 0))))
  (func $reach (drop (i64.load offset=65530 (i32.load (i32.const 32)))))
  (func $unreachable (unreachable))
  (func $loop (loop (br 0)))

  (func $count (result i32)
    (drop (call $arguments (i32.const 16) (i32.const 20)))
    (i32.sub (i32.load (i32.const 16)) (i32.const 1)))
  (func (export "_start")
    (call_indirect (call $count))
    (call $exit (i32.const 0))))

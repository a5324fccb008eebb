;; memory.copy in a loop, where short pieces are copied without a call: of every short length, overlapping in both
;; directions, and at the end of memory.

(module
  (memory 1 1)

  (func $fill (local $at i32)
    (loop $again
      (i32.store8 (local.get $at) (i32.add (i32.mul (local.get $at) (i32.const 37)) (i32.const 11)))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $at) (i32.const 256)))))

  (func $sum (result i64) (local $at i32) (local $sum i64)
    (loop $again
      (local.set $sum (i64.add
        (i64.mul (local.get $sum) (i64.const 0x9e3779b97f4a7c15))
        (i64.load8_u (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $at) (i32.const 256))))
    (local.get $sum))

  (func $copy (export "copy") (param $to i32) (param $from i32) (param $length i32)
    (loop (memory.copy (local.get $to) (local.get $from) (local.get $length))))

  (func $move (param $to i32) (param $from i32) (param $length i32) (local $at i32)
    (block $out (loop $again
      (br_if $out (i32.eq (local.get $at) (local.get $length)))
      (i32.store8 offset=1024 (local.get $at) (i32.load8_u (i32.add (local.get $from) (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br $again)))
    (block $out (loop $again
      (br_if $out (i32.eqz (local.get $at)))
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (i32.store8 (i32.add (local.get $to) (local.get $at)) (i32.load8_u offset=1024 (local.get $at)))
      (br $again))))

  ;; The copies that differ from those byte by byte.
  (func (export "differences") (result i32)
    (local $length i32) (local $to i32) (local $from i32) (local $sum i64) (local $count i32)
    (loop $lengths
      (local.set $to (i32.const 0))
      (loop $tos
        (local.set $from (i32.const 0))
        (loop $froms
          (call $fill)
          (call $copy (local.get $to) (local.get $from) (local.get $length))
          (local.set $sum (call $sum))
          (call $fill)
          (call $move (local.get $to) (local.get $from) (local.get $length))
          (local.set $count (i32.add (local.get $count) (i64.ne (local.get $sum) (call $sum))))
          (local.set $from (i32.add (local.get $from) (i32.const 5)))
          (br_if $froms (i32.lt_u (local.get $from) (i32.const 50))))
        (local.set $to (i32.add (local.get $to) (i32.const 3)))
        (br_if $tos (i32.lt_u (local.get $to) (i32.const 50))))
      (local.set $length (i32.add (local.get $length) (i32.const 1)))
      (br_if $lengths (i32.lt_u (local.get $length) (i32.const 70))))
    (local.get $count)))

(assert_return (invoke "differences") (i32.const 0))
;; To the last byte.
(assert_return (invoke "copy" (i32.const 65535) (i32.const 0) (i32.const 1)))
(assert_return (invoke "copy" (i32.const 65533) (i32.const 0) (i32.const 3)))
(assert_return (invoke "copy" (i32.const 65529) (i32.const 0) (i32.const 7)))
(assert_return (invoke "copy" (i32.const 65521) (i32.const 0) (i32.const 15)))
(assert_return (invoke "copy" (i32.const 65505) (i32.const 0) (i32.const 31)))
(assert_return (invoke "copy" (i32.const 0) (i32.const 65505) (i32.const 31)))
(assert_return (invoke "copy" (i32.const 65536) (i32.const 65536) (i32.const 0)))
;; Beyond it.
(assert_trap (invoke "copy" (i32.const 65537) (i32.const 0) (i32.const 0)) "out of bounds memory access")
(assert_trap (invoke "copy" (i32.const 65536) (i32.const 0) (i32.const 1)) "out of bounds memory access")
(assert_trap (invoke "copy" (i32.const 0) (i32.const 65535) (i32.const 2)) "out of bounds memory access")
(assert_trap (invoke "copy" (i32.const 65533) (i32.const 0) (i32.const 4)) "out of bounds memory access")
(assert_trap (invoke "copy" (i32.const 0) (i32.const 65529) (i32.const 8)) "out of bounds memory access")
(assert_trap (invoke "copy" (i32.const 65521) (i32.const 0) (i32.const 16)) "out of bounds memory access")
(assert_trap (invoke "copy" (i32.const 0) (i32.const 65506) (i32.const 31)) "out of bounds memory access")
;; Where the end of a piece wraps around.
(assert_trap (invoke "copy" (i32.const 0) (i32.const -1) (i32.const 2)) "out of bounds memory access")
(assert_trap (invoke "copy" (i32.const -3) (i32.const 0) (i32.const 7)) "out of bounds memory access")
(assert_trap (invoke "copy" (i32.const 0) (i32.const -8) (i32.const 15)) "out of bounds memory access")
(assert_trap (invoke "copy" (i32.const -16) (i32.const 0) (i32.const 31)) "out of bounds memory access")
(assert_trap (invoke "copy" (i32.const 0) (i32.const 0) (i32.const -1)) "out of bounds memory access")

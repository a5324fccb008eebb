;; A hostile client of the service `answer`, over the contract KnockAnswer. Without arguments it knocks, and prints what
;; comes back; with some it does, by their number, one of the things that a program must not.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $arguments (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "sing" "endpoint" (func $endpoint (param i32) (result i64)))
  (import "sing" "open" (func $bind (param i32 i32 i64 i32) (result i32)))
  (import "sing" "channel" (func $channel (param i64 i32) (result i32)))
  (import "sing" "describe" (func $describe (param i64 i32) (result i32)))
  (import "sing" "send" (func $send (param i64 i32 i32 i32 i32 i32) (result i32)))
  (import "sing" "receive" (func $receive (param i64 i64 i32 i32) (result i32)))
  (import "sing" "wait" (func $wait (param i32 i32 i64) (result i32)))
  (import "sing" "block" (func $block (param i64 i64) (result i64)))
  (import "sing" "read" (func $read (param i64 i64 i32 i32) (result i32)))
  (import "sing" "write" (func $write (param i64 i64 i32 i32) (result i32)))
  (import "sing" "close" (func $close (param i64) (result i32)))
  (memory (export "memory") 1)
  ;; 0: vector and counts of WASI. 64: text. 1024: words of a message; 2048: of one that came.
  (data (i32.const 64) "knock")
  (data (i32.const 96) "as it must be\n")
  (data (i32.const 160) "/service/answer")
  (data (i32.const 192) "/service/nobody")
  (data (i32.const 224) "/dev/console")
  (global $service (mut i64) (i64.const 0))
  (global $text (mut i64) (i64.const 0))
  (table funcref (elem $knock $claims $bounds $names $sent $flood $state $shape $tag_of_nothing $turn))

  (func $print (param $at i32) (param $bytes i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $bytes))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
  ;; Ends with a status that says which step went wrong.
  (func $must (param $step i32) (param $is i32) (param $wanted i32)
    (if (i32.ne (local.get $is) (local.get $wanted)) (then (call $exit (local.get $step)))))

  (func $next (call $must (i32.const 10)
    (call $receive (global.get $service) (i64.const -1) (i32.const 2048) (i32.const 65)) (i32.const 0)))
  (func $tag (result i32) (i32.load16_u (i32.const 2048)))
  (func $open
    (call $must (i32.const 11)
      (call $bind (i32.const 160) (i32.const 15) (i64.const 0xb3e3f17aafce71e9) (i32.const 1024)) (i32.const 0))
    (global.set $service (i64.load (i32.const 1024)))
    (i64.store (i32.const 1024) (global.get $service))
    (call $must (i32.const 12) (call $wait (i32.const 1024) (i32.const 1) (i64.const -1)) (i32.const 0))
    (call $next)
    (call $must (i32.const 13) (call $tag) (i32.const 0))
    (global.set $text (call $block (i64.const 5) (i64.const 0x6828a99c1e3216ff)))
    (call $must (i32.const 14) (call $write (global.get $text) (i64.const 0) (i32.const 64) (i32.const 5)) (i32.const 0)))
  (func $say (result i32)
    (i64.store (i32.const 1024) (i64.const 7))
    (i64.store (i32.const 1032) (global.get $text))
    (call $send (global.get $service) (i32.const 1) (i32.const 1024) (i32.const 1) (i32.const 1) (i32.const 0)))

  (func $knock
    (call $must (i32.const 20) (call $say) (i32.const 0))
    (call $next)
    (call $must (i32.const 21) (call $tag) (i32.const 2))
    (call $must (i32.const 22) (i32.wrap_i64 (i64.load (i32.const 2056))) (i32.const 7))
    (call $must (i32.const 23) (i32.wrap_i64 (i64.load (i32.const 2072))) (i32.const 5))
    (call $must (i32.const 24)
      (call $read (i64.load (i32.const 2064)) (i64.const 0) (i32.const 128) (i32.const 5)) (i32.const 0))
    (i32.store8 (i32.const 133) (i32.const 10))
    (call $print (i32.const 128) (i32.const 6)))

  ;; Handles that are made up, closed, or of the other kind: 4 is BadHandle.
  (func $claims (local $closed i64)
    (call $must (i32.const 30) (call $close (i64.const 0)) (i32.const 4))
    (call $must (i32.const 31) (call $close (i64.const -1)) (i32.const 4))
    (call $must (i32.const 32) (call $close (i64.add (global.get $text) (i64.const 0x100000000))) (i32.const 4))
    (call $must (i32.const 33)
      (call $read (global.get $service) (i64.const 0) (i32.const 128) (i32.const 1)) (i32.const 4))
    (call $must (i32.const 34)
      (call $receive (global.get $text) (i64.const 0) (i32.const 2048) (i32.const 65)) (i32.const 4))
    (local.set $closed (call $block (i64.const 1) (i64.const 0x6828a99c1e3216ff)))
    (call $must (i32.const 35) (call $close (local.get $closed)) (i32.const 0))
    (drop (call $block (i64.const 1) (i64.const 0x6828a99c1e3216ff)))
    (call $must (i32.const 36) (call $close (local.get $closed)) (i32.const 4))
    (call $must (i32.const 37) (i64.eqz (call $endpoint (i32.const 0))) (i32.const 1))
    (call $must (i32.const 38) (i64.eqz (call $endpoint (i32.const 1))) (i32.const 1))
    (call $must (i32.const 39) (i64.eqz (call $endpoint (i32.const -1))) (i32.const 1))
    ;; The same block twice, the endpoint in its own message, a block in the place of an endpoint: nothing is sent.
    (i64.store (i32.const 1032) (global.get $text))
    (i64.store (i32.const 1040) (global.get $text))
    (call $must (i32.const 40)
      (call $send (global.get $service) (i32.const 1) (i32.const 1032) (i32.const 0) (i32.const 2) (i32.const 0)) (i32.const 4))
    (call $must (i32.const 41)
      (call $send (global.get $service) (i32.const 1) (i32.const 1032) (i32.const 0) (i32.const 0) (i32.const 1)) (i32.const 4))
    (i64.store (i32.const 1040) (global.get $service))
    (call $must (i32.const 42)
      (call $send (global.get $service) (i32.const 1) (i32.const 1032) (i32.const 0) (i32.const 1) (i32.const 1)) (i32.const 4))
    (call $print (i32.const 96) (i32.const 14)))

  ;; What lies outside of a block or of memory, and messages that are too long: 5 is BadArgument, 15 TooLarge.
  (func $bounds
    (call $must (i32.const 50) (call $read (global.get $text) (i64.const 0) (i32.const 128) (i32.const 6)) (i32.const 5))
    (call $must (i32.const 51) (call $read (global.get $text) (i64.const -1) (i32.const 128) (i32.const 2)) (i32.const 5))
    (call $must (i32.const 52) (call $read (global.get $text) (i64.const 0) (i32.const 65533) (i32.const 5)) (i32.const 5))
    (call $must (i32.const 53) (call $write (global.get $text) (i64.const 5) (i32.const 64) (i32.const 1)) (i32.const 5))
    (call $must (i32.const 54) (call $write (global.get $text) (i64.const 0) (i32.const -1) (i32.const 5)) (i32.const 5))
    (call $must (i32.const 55)
      (call $receive (global.get $service) (i64.const 0) (i32.const 2048) (i32.const 64)) (i32.const 15))
    (call $must (i32.const 56)
      (call $receive (global.get $service) (i64.const 0) (i32.const 65530) (i32.const 65)) (i32.const 5))
    (call $must (i32.const 57)
      (call $send (global.get $service) (i32.const 1) (i32.const 1024) (i32.const -1) (i32.const -1) (i32.const 2)) (i32.const 15))
    (call $must (i32.const 58)
      (call $send (global.get $service) (i32.const 65537) (i32.const 1024) (i32.const 1) (i32.const 0) (i32.const 0)) (i32.const 5))
    (call $must (i32.const 59)
      (call $send (global.get $service) (i32.const 1) (i32.const 65530) (i32.const 1) (i32.const 1) (i32.const 0)) (i32.const 5))
    (call $must (i32.const 60) (call $wait (i32.const 1024) (i32.const 33) (i64.const 0)) (i32.const -1))
    (call $must (i32.const 61) (i64.eqz (call $block (i64.const -1) (i64.const 0x6828a99c1e3216ff))) (i32.const 1))
    (call $print (i32.const 96) (i32.const 14)))

  ;; Contracts of the template, by which it would reach files: 6 is NotPermitted. Contracts that the manifest does not list,
  ;; and names that are not there: 8 is NotFound. A name that speaks another contract: 13 is ContractMismatch.
  (func $names
    (call $must (i32.const 110)
      (call $bind (i32.const 224) (i32.const 1) (i64.const 0xc0829ee663ced008) (i32.const 1024)) (i32.const 6))
    (call $must (i32.const 111)
      (call $bind (i32.const 224) (i32.const 1) (i64.const 0xd1f81284eeb7b503) (i32.const 1024)) (i32.const 6))
    (call $must (i32.const 112) (call $channel (i64.const 0xe966c319c658d2b9) (i32.const 1024)) (i32.const 6))
    (call $must (i32.const 113) (call $channel (i64.const 0xf4d1a47358fe4b64) (i32.const 1024)) (i32.const 8))
    (call $must (i32.const 114)
      (call $bind (i32.const 160) (i32.const 15) (i64.const 0xf4d1a47358fe4b64) (i32.const 1024)) (i32.const 8))
    (call $must (i32.const 115)
      (call $bind (i32.const 192) (i32.const 15) (i64.const 0xb3e3f17aafce71e9) (i32.const 1024)) (i32.const 8))
    (call $must (i32.const 116)
      (call $bind (i32.const 224) (i32.const 12) (i64.const 0xb3e3f17aafce71e9) (i32.const 1024)) (i32.const 13))
    (call $must (i32.const 117)
      (call $bind (i32.const 160) (i32.const -1) (i64.const 0xb3e3f17aafce71e9) (i32.const 1024)) (i32.const 5))
    (call $must (i32.const 118)
      (call $bind (i32.const 160) (i32.const 15) (i64.const 0xb3e3f17aafce71e9) (i32.const 65533)) (i32.const 5))
    (call $must (i32.const 119) (call $channel (i64.const 0xb3e3f17aafce71e9) (i32.const 65525)) (i32.const 5))
    (call $must (i32.const 120) (call $describe (global.get $text) (i32.const 1024)) (i32.const 4))
    (call $must (i32.const 121) (call $describe (global.get $service) (i32.const 65520)) (i32.const 5))
    (call $must (i32.const 122) (call $describe (global.get $service) (i32.const 1024)) (i32.const 0))
    (call $must (i32.const 123)
      (i64.eq (i64.load (i32.const 1024)) (i64.const 0xb3e3f17aafce71e9)) (i32.const 1))
    (call $must (i32.const 124) (i32.load (i32.const 1032)) (i32.const 1))
    (call $print (i32.const 96) (i32.const 14)))

  ;; A block that was sent.
  (func $sent
    (call $must (i32.const 70) (call $say) (i32.const 0))
    (call $must (i32.const 71)
      (call $write (global.get $text) (i64.const 0) (i32.const 64) (i32.const 5)) (i32.const 4))
    (call $must (i32.const 72) (call $close (global.get $text)) (i32.const 4))
    (call $next)
    (call $print (i32.const 96) (i32.const 14)))

  ;; Blocks until a quota is used up; the conversation goes on.
  (func $flood
    (loop $more (br_if $more (i64.ne (call $block (i64.const 4096) (i64.const 0x6828a99c1e3216ff)) (i64.const 0))))
    (call $knock))

  ;; A second request before the answer.
  (func $state
    (call $must (i32.const 80) (call $say) (i32.const 0))
    (global.set $text (call $block (i64.const 5) (i64.const 0x6828a99c1e3216ff)))
    (drop (call $say))
    (call $print (i32.const 96) (i32.const 14)))

  ;; A message of another shape than the contract's.
  (func $shape
    (drop (call $send (global.get $service) (i32.const 1) (i32.const 1024) (i32.const 2) (i32.const 0) (i32.const 0)))
    (call $print (i32.const 96) (i32.const 14)))

  ;; A message that the contract does not have.
  (func $tag_of_nothing
    (drop (call $send (global.get $service) (i32.const 77) (i32.const 1024) (i32.const 0) (i32.const 0) (i32.const 0)))
    (call $print (i32.const 96) (i32.const 14)))

  ;; A receive where it is its own turn to send has nothing to receive: 2 is TimedOut.
  (func $turn
    (call $must (i32.const 130)
      (call $receive (global.get $service) (i64.const 0) (i32.const 2048) (i32.const 65)) (i32.const 2))
    (call $print (i32.const 96) (i32.const 14)))

  (func $count (result i32)
    (drop (call $arguments (i32.const 16) (i32.const 20)))
    (i32.sub (i32.load (i32.const 16)) (i32.const 1)))
  (func (export "_start")
    (call $open)
    (call_indirect (call $count))
    (call $exit (i32.const 0))))

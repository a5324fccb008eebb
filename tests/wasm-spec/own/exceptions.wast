;; Exceptions with handlers in the code: try, catch, rethrow and delegate.

(module
  (type $get (func (param i32) (result i32)))
  (tag $none)
  (tag $number (param i32))
  (tag $pair (param i64 f64))
  (tag $vector (param v128))
  (global $seen (mut i32) (i32.const 0))
  (table funcref (elem $throws_odd))

  (func $throws_none (throw $none))
  (func $throws_number (param i32) (throw $number (local.get 0)))
  (func $throws_pair (param i64) (throw $pair (local.get 0) (f64.const 2.5)))
  (func $throws_odd (param i32) (result i32)
    (if (i32.and (local.get 0) (i32.const 1)) (then (throw $number (local.get 0))))
    (i32.mul (local.get 0) (i32.const 10)))

  ;; A handler gets the values; locals keep what they were set to in the body.
  (func (export "number") (param i32) (result i32) (local $set i32)
    try (result i32)
      (local.set $set (i32.const 1000))
      (call $throws_number (local.get 0))
      (local.set $set (i32.const 1))
      (i32.const -1)
    catch $number (i32.add (local.get $set))
    end)

  (func (export "pair") (param i64) (result i64 f64)
    try (result i64 f64)
      (call $throws_pair (local.get 0)) (i64.const 0) (f64.const 0)
    catch $pair
    end)

  (func (export "vector") (result i32)
    try (result v128)
      (throw $vector (v128.const i32x4 1 2 3 4))
    catch $vector
    end
    (i32x4.extract_lane 3))

  ;; The first handler whose tag it is, and none of the others.
  (func $which (export "which") (param i32) (result i32)
    try (result i32)
      (block $two
        (block $one
          (block $zero (br_table $zero $one $two (local.get 0)))
          (call $throws_none) (unreachable))
        (call $throws_number (i32.const 7)) (unreachable))
      (call $throws_pair (i64.const 1))
      (i32.const -1)
    catch $none (i32.const 100)
    catch $number (i32.add (i32.const 200))
    catch_all (i32.const 300)
    end)

  ;; What no handler is for goes on to the caller.
  (func $only_none (param i32)
    try
      (call $throws_number (local.get 0))
    catch $none (global.set $seen (i32.const -1))
    end)
  (func (export "passes") (param i32) (result i32)
    try (result i32)
      (call $only_none (local.get 0)) (i32.const -1)
    catch $number
    end)

  ;; Without an exception no handler runs; through a table too.
  (func (export "table") (param i32) (result i32)
    try (result i32)
      (call_indirect (type $get) (local.get 0) (i32.const 0))
    catch $number
    end)

  ;; In a loop, each is caught anew.
  (func (export "sum") (param i32) (result i32) (local $sum i32)
    (loop $next
      try
        (local.set $sum (i32.add (local.get $sum) (call $throws_odd (local.get 0))))
      catch $number (local.set $sum (i32.add (local.get $sum)))
      end
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get $sum))

  ;; `rethrow` throws what its handler caught, whatever was thrown since.
  (func (export "rethrow") (param i32) (result i32)
    try (result i32)
      try (result i32)
        (call $throws_number (local.get 0)) (i32.const -1)
      catch_all
        try (call $throws_number (i32.const 5)) catch $number (drop) end
        (rethrow 0)
      end
    catch $number
    end)
  (func (export "rethrow outer") (param i32) (result i32)
    try (result i32)
      try (result i32)
        (call $throws_number (local.get 0)) (i32.const -1)
      catch $number
        (drop)
        try (result i32)
          (throw $none)
        catch $none (rethrow 1)
        end
      end
    catch $number
    end)

  ;; A handler is not for what is thrown in a handler beside it.
  (func (export "in handler") (result i32)
    try (result i32)
      try (result i32)
        (call $throws_none) (i32.const -1)
      catch $none (throw $number (i32.const 3))
      catch $number (i32.add (i32.const 1000))
      end
    catch $number (i32.add (i32.const 20))
    end)

  ;; `delegate` leaves out what is between.
  (func (export "delegate") (param i32) (result i32)
    try $outer (result i32)
      try (result i32)
        try (result i32)
          (call $throws_number (local.get 0)) (i32.const -1)
        delegate $outer
      catch $number (drop) (i32.const -2)
      end
    catch $number (i32.add (i32.const 1))
    end)
  (func $delegates_out (param i32) (result i32)
    try (result i32)
      try (result i32)
        (call $throws_number (local.get 0)) (i32.const -1)
      delegate 1
    catch_all (i32.const -2)
    end)
  (func (export "delegate to the caller") (param i32) (result i32)
    try (result i32)
      (call $delegates_out (local.get 0))
    catch $number (i32.add (i32.const 2))
    end)

  ;; A branch out of a body is no exception.
  (func (export "branch") (result i32)
    (block (result i32)
      try
        (br 1 (i32.const 9))
      catch_all (global.set $seen (i32.const -1))
      end
      (i32.const -1)))

  ;; A body without a call or throw has handlers that nothing reaches.
  (func (export "unreached") (result i32)
    try (result i32)
      (i32.const 4)
    catch $number (throw $none) (rethrow 0)
    catch_all (rethrow 0)
    end)

  ;; A tail call leaves the body.
  (func $leaves (param i32) (result i32)
    try (result i32)
      (return_call $throws_odd (local.get 0))
    catch_all (i32.const -1)
    end)
  (func (export "tail call") (param i32) (result i32)
    try (result i32)
      (call $leaves (local.get 0))
    catch $number (i32.add (i32.const 1))
    end)

  ;; Many frames are left at once.
  (func $deep (param i32)
    (if (local.get 0)
      (then (call $deep (i32.sub (local.get 0) (i32.const 1))))
      (else (throw $number (i32.const 42))))
    (global.set $seen (i32.const -1)))
  (func (export "deep") (param i32) (result i32)
    try (result i32)
      (call $deep (local.get 0)) (i32.const -1)
    catch $number
    end)

  (func (export "seen") (result i32) (global.get $seen))
  (func (export "uncaught") (result i64) (call $throws_pair (i64.const 1)) (i64.const 0))
)

(assert_return (invoke "number" (i32.const 5)) (i32.const 1005))
(assert_return (invoke "pair" (i64.const -8)) (i64.const -8) (f64.const 2.5))
(assert_return (invoke "vector") (i32.const 4))
(assert_return (invoke "which" (i32.const 0)) (i32.const 100))
(assert_return (invoke "which" (i32.const 1)) (i32.const 207))
(assert_return (invoke "which" (i32.const 2)) (i32.const 300))
(assert_return (invoke "passes" (i32.const 6)) (i32.const 6))
(assert_return (invoke "table" (i32.const 4)) (i32.const 40))
(assert_return (invoke "table" (i32.const 5)) (i32.const 5))
(assert_return (invoke "sum" (i32.const 6)) (i32.const 129))
(assert_return (invoke "rethrow" (i32.const 77)) (i32.const 77))
(assert_return (invoke "rethrow outer" (i32.const 78)) (i32.const 78))
(assert_return (invoke "in handler") (i32.const 23))
(assert_return (invoke "delegate" (i32.const 10)) (i32.const 11))
(assert_return (invoke "delegate to the caller" (i32.const 10)) (i32.const 12))
(assert_return (invoke "branch") (i32.const 9))
(assert_return (invoke "unreached") (i32.const 4))
(assert_return (invoke "tail call" (i32.const 4)) (i32.const 40))
(assert_return (invoke "tail call" (i32.const 5)) (i32.const 6))
(assert_return (invoke "deep" (i32.const 100)) (i32.const 42))
(assert_return (invoke "seen") (i32.const 0))
(assert_trap (invoke "uncaught") "uncaught exception")

(assert_invalid (module (func (throw 0))) "unknown tag")
(assert_invalid (module (tag (param i32)) (func (throw 0))) "type mismatch")
(assert_invalid (module (tag (result i32))) "non-empty tag result type")
(assert_invalid (module (func try catch 0 end)) "unknown tag")
(assert_invalid (module (func (rethrow 0))) "invalid rethrow label")

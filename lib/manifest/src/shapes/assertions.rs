//! The table `[assert]` of a program's manifest.

use super::{Kind, Shape, open, shape};

pub(super) static ASSERT: Shape = shape(
    "[assert]",
    "what is proved of the program's machine code ([assertions.md](assertions.md)); functions are named by their paths, `\"*\"` is the whole program",
    &[
        open("max-stack", Kind::Number(0, u32::MAX as i64), "no limit", "most bytes of stack that the program uses"),
        open(
            "max-stack-of",
            Kind::Map(&Kind::Number(0, u32::MAX as i64)),
            "none",
            "the same of single functions: `{ \"ring::Queue::take\" = 512 }`",
        ),
        open("no-panic", Kind::List(&Kind::Text), "none", "functions that cannot panic"),
        open("no-alloc", Kind::List(&Kind::Text), "none", "functions that do not allocate from the heap"),
        open("no-float", Kind::List(&Kind::Text), "none", "functions without floating-point arithmetic"),
        open(
            "functions-reached",
            Kind::Number(0, u32::MAX as i64),
            "no limit",
            "most functions that the program can call",
        ),
    ],
);

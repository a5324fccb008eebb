//! A decoder in C, in `main.c`: this crate only says on which contracts it depends.
#![no_std]
#![forbid(unsafe_code)]

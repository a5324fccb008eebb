//! zlib as a server, in `main.c`: this crate only says on which contracts and C code it depends.
#![no_std]
#![forbid(unsafe_code)]

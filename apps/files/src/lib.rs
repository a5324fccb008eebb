//! Programs over files and folders: a module each, with its manifest in the folder of its name.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod acl;
pub mod changes;
pub mod cp;
pub mod du;
pub mod ln;
pub mod ls;
pub mod mkdir;
pub mod mv;
pub mod rm;
pub mod rmdir;
pub mod setacl;
pub mod stat;
pub mod sync;
pub mod touch;
pub mod tree;

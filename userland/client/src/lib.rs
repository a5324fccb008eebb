//! Clients of the namespace, of files and of the system's services, as plain blocking functions.
//!
//! [`namespace`] finds and opens names, [`file_io`] and [`file_writer`] read and write open files, [`directory_page`]
//! is the wire format of a folder's names. Clients of a single service: [`services`] (the service manager),
//! [`volume_managers`], [`installer`], [`random`], [`terminal`] (the console beside redirected output). [`processes`]
//! and [`programs`] read the kernel's records. Every request has a limit of [`answer`] and fails with one
//! [`access::AccessError`]. Neighbours: `network` for connections, `file-tools` for trees, `provider` for servers.
//! Deliberately not here: concurrent requests; a program that needs those works with the endpoints of `contracts`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod access;
pub mod answer;
pub mod directory_page;
pub mod file_io;
pub mod file_writer;
pub mod installer;
pub mod namespace;
pub mod processes;
pub mod programs;
pub mod random;
pub mod services;
pub mod terminal;
pub mod volume_managers;

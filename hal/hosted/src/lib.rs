//! The machine that is one Linux process: processors are host threads, the timer is a signal, disks are files, folders
//! are folders, sockets are the host's own, packets go over a TAP interface, and the console is standard input and
//! output.
//!
//! Key types: [`Hosted`] (the machine), [`Configuration`] (its parts), [`StartError`].
//! Neighbours: the kernel calls it through [`hal_api::Machine`]; `boot/hosted` starts it.
//! Deliberately not here: any knowledge of SIPs. The kernel decides whether an instruction address is a SIP's, and
//! where its stack ends ([`hal_api::KernelEntries`]).
//!
//! `unsafe` occurs only in the modules `arena`, `clock`, `domains::control`, `domains::stub`, `domains::template`, `entries`, `host`, `host_network`, `image`,
//! `keeper`, `processor`, `signal`, `socket_calls`, `tap_calls`, `terminal`, `trampoline` and `transfer`; see `docs/soundness/hal-hosted.md`.
#![deny(unsafe_code)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("the hosted machine needs Linux on x86-64");

#[allow(unsafe_code)]
mod arena;
#[allow(unsafe_code)]
mod clock;
mod commands;
mod confinement;
mod console;
mod debug_output;
mod disk;
mod domains;
#[allow(unsafe_code)]
mod entries;
mod faults;
mod folder;
mod folder_node;
mod folder_server;
#[allow(unsafe_code)]
mod host;
#[allow(unsafe_code)]
mod host_network;
mod host_text;
#[allow(unsafe_code)]
mod image;
#[allow(unsafe_code)]
mod keeper;
mod lookups;
mod machine;
mod output;
mod page_map;
mod pool;
mod power_button;
#[allow(unsafe_code)]
mod processor;
mod random;
mod recording;
mod service;
#[allow(unsafe_code)]
mod signal;
mod simulated;
#[allow(unsafe_code)]
mod socket_calls;
mod socket_watch;
mod sockets;
mod tap;
#[allow(unsafe_code)]
mod tap_calls;
#[allow(unsafe_code)]
mod terminal;
#[allow(unsafe_code)]
mod trampoline;
#[allow(unsafe_code)]
mod transfer;

pub use confinement::Confinement;
pub use disk::{DiskAccess, DiskError, DiskSpecification};
pub use folder::{FolderError, FolderSpecification};
pub use folder_node::LinkPolicy;
pub use folder_server::FolderAccess;
pub use hal_api::{Arena, Layout};
pub use host::{own_process, say, say_last};
pub use host_service::log::Format as LogFormat;
pub use machine::{Configuration, Hosted, Started};
pub use service::{Service, run_as_service};
pub use tap::{TapError, TapSpecification};

/// What another machine that is a process of Linux shares with this one.
pub mod shared {
    pub use crate::arena::Reservation;
    pub use crate::host_text::{contains as is_host_text, record as record_host_text};
    pub use crate::image::Images;
    pub use crate::processor::{become_all_processors, set_base};
    pub use crate::signal::{Handler, install_one, interrupt_kernel_at, interrupt_sip_at, on_fault};
    pub use crate::transfer::Memory;
}

use std::fmt;

/// Reason why the machine could not be started. Its text is one sentence: problem, place and remedy.
#[derive(Debug)]
pub enum StartError {
    /// An unsupported processor count.
    Processors {
        /// The count requested.
        asked: usize,
        /// The maximum.
        most: usize,
    },
    /// The host refused the address space.
    AddressSpace {
        /// Which arena.
        arena: &'static str,
        /// The smallest size tried, in bytes.
        bytes: usize,
        /// The host's reason.
        reason: std::io::Error,
    },
    /// A disk file cannot be used.
    Disk(DiskError),
    /// A folder cannot be offered.
    Folder(FolderError),
    /// A TAP interface cannot be used.
    Tap(TapError),
    /// The file of the recording cannot be used.
    Recording(std::io::Error),
    /// The host refuses what hardware domains need.
    Domains(std::io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Processors { asked, most } => {
                write!(formatter, "{asked} processors cannot be had; ask for 1 to {most}")
            }
            Self::AddressSpace { arena, bytes, reason } => write!(
                formatter,
                "the host refused {} MiB of address space for the {arena} arena ({reason}); raise `ulimit -v`, or \
                 allow overcommit (sysctl vm.overcommit_memory=0)",
                bytes >> 20
            ),
            Self::Disk(error) => error.fmt(formatter),
            Self::Folder(error) => error.fmt(formatter),
            Self::Tap(error) => error.fmt(formatter),
            Self::Recording(error) => {
                write!(formatter, "the file of the recording cannot be used ({error}); choose another")
            }
            Self::Domains(reason) => write!(
                formatter,
                "the host does not give this user hardware domains ({reason}): they need seccomp filters, memory files \
                 (memfd_create) and Linux 5.9; run the system without domains, or on a bare machine"
            ),
        }
    }
}

impl std::error::Error for StartError {}

impl From<DiskError> for StartError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

impl From<FolderError> for StartError {
    fn from(error: FolderError) -> Self {
        Self::Folder(error)
    }
}

impl From<TapError> for StartError {
    fn from(error: TapError) -> Self {
        Self::Tap(error)
    }
}

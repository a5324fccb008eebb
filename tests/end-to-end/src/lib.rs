//! Drives the built tool and the hosted machine from outside, as users do.
//!
//! Key types: [`Machine`] (one run of the hosted machine with disks and commands), [`Run`] (its result),
//! [`BareMachine`] (a machine in QEMU), [`Image`] (an ext2 disk made from a folder by `mke2fs`), [`Terminal`] (a
//! machine with an interactive terminal), [`Live`] (a machine that takes commands while something else runs), [`Load`]
//! (clients of its web server), [`Supervisor`] (a stand-in for systemd that runs a site as a service). Every run has a
//! timeout, after which it is killed and the test fails.
//!
//! Deliberately not here: the tests; they are in `tests/people`.
#![forbid(unsafe_code)]

mod bare;
mod damage;
mod disk;
mod folder;
mod live;
mod load;
mod machine;
mod run;
mod site;
mod supervisor;
mod terminal;
mod tool;
mod web;

pub use bare::{BareMachine, KINDS, bare_kernel, bare_system, boot_disc, boot_image, boot_kernel};
pub use damage::{Doctor, key, reseal, reseal_system};
pub use disk::{Format, Image};
pub use folder::{Expected, sample, sparse};
pub use live::{Live, Process, free_port};
pub use load::{Answer, Load, Question, Server, ask_on, connect};
pub use machine::Machine;
pub use run::{BUILD_LIMIT, LIMIT, Run, finish, without_notes};
pub use site::{Site, client, slack};
pub use supervisor::{Running, Supervisor};
pub use terminal::Terminal;
pub use tool::{built_system, machine_process, machine_program, repository, sing, system_image, target, with_signals};
pub use web::{WebAnswer, WebClient, WebTrial, gunzip};

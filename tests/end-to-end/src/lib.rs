//! Drives the built tool and the hosted machine from outside, as people do.
//!
//! Key types: [`Machine`] (one run of the hosted machine with disks and commands), [`Run`] (what
//! came of it), [`BareMachine`] (a machine in QEMU), [`Image`] (an ext2 disk made of a folder by `mke2fs`), [`Terminal`] (a
//! machine with a person at it), [`Live`] (a machine that is asked while something else goes on), [`Load`] (clients of its
//! web server), [`Supervisor`] (of a site that runs as a service). Every run has a limit in time after which it is ended and the test
//! fails.
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
pub use run::{LIMIT, Run, finish};
pub use site::{Site, client, slack};
pub use supervisor::{Running, Supervisor};
pub use terminal::Terminal;
pub use tool::{built_system, machine_process, machine_program, repository, sing, system_image, target};
pub use web::{WebAnswer, WebClient, WebTrial, gunzip};

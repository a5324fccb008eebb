//! Bare machines: the kernel as an image of its own, and the machines in QEMU that run it.
//!
//! [`kernel`] builds and strips, [`boot`] assembles the boot image, [`prepared`] builds the parts of a machine,
//! [`qemu`] composes QEMU's command line, [`guest`] runs it and forwards console, debug text and exit status, [`iso`]
//! writes an image for firmware to boot, [`debug`] attaches gdb. Deliberately not here: the build of a system
//! (`systems`), and the system inside.

pub mod acceleration;
pub mod boot;
pub mod control;
pub mod debug;
pub mod debug_queue;
pub mod disk;
pub mod guest;
pub mod iso;
pub mod kernel;
pub mod prepared;
pub mod qemu;
pub mod recording;
pub mod symbols;
pub mod terminal;

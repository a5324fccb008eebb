//! Authenticates people at the console and gives each a shell in one of their roles.
//!
//! Key types: [`prompt::Prompt`] (name and passphrase), [`mistakes::Mistakes`] (back-off after failures), [`visit`]
//! (the shell of a session). Neighbours: `people-list` parses the lines that name people; the kernel puts the role
//! into the principal of the shell and of everything it starts. Deliberately not here: rights of a role.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod mistakes;
mod prompt;
mod visit;

use client::namespace::Namespace;

use crate::prompt::{Prompt, Sources};

sip::startup!();

/// Runs sessions in sequence until the input ends; returns the exit status of the last shell.
pub fn main(startup: Startup) -> i32 {
    let sources = Sources { file: startup.people, lines: startup.person };
    let mut prompt = Prompt::new(Namespace::new(startup.namespace), startup.console, sources);
    let mut status = 0;
    loop {
        let entered = match prompt.ask() {
            prompt::Asked::Entered(entered) => entered,
            prompt::Asked::Again => continue,
            prompt::Asked::EndOfInput if startup.stay && prompt.is_terminal() => {
                prompt.say("Give a name; whoever is in may type `shutdown`.\n");
                continue;
            }
            prompt::Asked::EndOfInput => return status,
            prompt::Asked::Hopeless(reason) => {
                stdio::report::error(format_args!("{reason}"));
                return 1;
            }
        };
        match visit::shell(prompt.namespace(), &startup.shell, &entered.role, startup.commands.as_deref()) {
            Ok(epitaph) if epitaph.kind == sip::process::EpitaphKind::Exited => status = epitaph.status,
            Ok(epitaph) => {
                prompt.say(&alloc::format!("The shell of {} {epitaph}.\n", entered.name));
                status = 1;
            }
            Err(reason) => {
                prompt.say(&alloc::format!("{reason}\n"));
                status = 1;
            }
        }
        if startup.commands.is_some() {
            return status;
        }
    }
}

//! Progress output to an interactive console, if there is one.
//!
//! Key type: [`Terminal`]. Progress does not go through standard output, which carries results only.
//! Deliberately not here: input, which goes through the contract of the console.

use contracts::console;
use contracts::directory::NameError;
use sip::exheap::ExVec;

use crate::access::AccessError;
use crate::answer::{REQUEST_LIMIT, wait};
use crate::namespace::Namespace;

/// Path of the console.
pub const CONSOLE: &str = "/dev/console";

/// The console as an interactive terminal, for output beside standard output.
pub struct Terminal {
    console: Option<console::Imp<console::states::Ready>>,
    /// Columns of the terminal.
    pub columns: u32,
}

impl Terminal {
    /// Opens the console; `None` if it is a file or a pipe, or may not be used.
    pub fn find(namespace: &mut Namespace) -> Option<Terminal> {
        let opened = namespace.open(CONSOLE, console::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
            console::ImpStart::Success { next } => Ok(next),
            console::ImpStart::Refused { .. } => Err(AccessError::Name(NameError::NotPermitted)),
            console::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        });
        match wait(opened.ok()?.get_info(), REQUEST_LIMIT).ok()? {
            console::ImpReadyAfterGetInfo::Info { terminal: true, columns, next, .. } => {
                Some(Terminal { console: Some(next), columns })
            }
            console::ImpReadyAfterGetInfo::Info { .. } | console::ImpReadyAfterGetInfo::ChannelClosed(_) => None,
        }
    }

    /// Prints text, if possible; a carriage return clears the row.
    pub fn show(&mut self, text: &str) {
        let Some(console) = self.console.take() else { return };
        let Ok(block) = ExVec::from_slice(text.as_bytes()) else { return };
        if let console::ImpReadyAfterWrite::Written { next } | console::ImpReadyAfterWrite::Failed { next, .. } =
            console.write(block).receive()
        {
            self.console = Some(next);
        }
    }
}

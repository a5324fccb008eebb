//! Full-screen text editor.
//!
//! The text is held in memory. Saving overwrites the file in place, so that it keeps its names, owner and access
//! control list. Deliberately not here: more than one file at a time.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod document;
mod editor;
mod session;
mod text;

use client::namespace::Namespace;
use stdio::report;
use tool_kit::screen::Screen;

use crate::document::Document;
use crate::editor::Editor;
use crate::session::Session;
use crate::text::Text;

sip::startup!();

/// Edits the file until the user quits.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let full = path::absolute(&startup.working_folder, &startup.path);
    let (document, text) = match Document::read(&mut namespace, &startup.path, &full) {
        Ok(read) => read,
        Err(message) => return report::path_error(&startup.path, &message),
    };
    let screen = match Screen::open(&mut namespace) {
        Ok(Some(screen)) => screen,
        Ok(None) => {
            report::error(format_args!("no terminal; `write` and `>` write files without one"));
            return 1;
        }
        Err(error) => return report::path_error("/dev/console", &error),
    };
    let line = startup.line.and_then(|line| usize::try_from(line).ok()).unwrap_or(1);
    let editor = Editor::new(Text::new(text.as_deref().unwrap_or_default()));
    Session::new(screen, namespace, startup.working_folder, document, editor, line).run(text.is_none())
}

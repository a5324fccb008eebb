//! Shows text page by page.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod pager;
mod session;
mod source;

use alloc::string::String;
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::pipe;
use file_tools::feed::{Feed, INPUT_NAME, Reader};
use sip::exheap::ExVec;
use stdio::{Input, Output, report};
use tool_kit::screen::Screen;

use crate::pager::Long;
use crate::session::{End, Session};

sip::startup!();

/// Texts to show.
struct Texts {
    namespace: Namespace,
    working_folder: String,
    paths: Vec<String>,
    input: Option<pipe::Exp<pipe::states::Ready>>,
}

/// Shows the files, or standard input. Without a terminal, prints them.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let mut paths = startup.paths;
    if paths.is_empty() && startup.input.is_some() {
        paths.push(String::from(INPUT_NAME));
    }
    let screen = Screen::open(&mut namespace);
    let texts = Texts { namespace, working_folder: startup.working_folder, paths, input: startup.input };
    let screen = match screen {
        Ok(Some(screen)) if !texts.paths.is_empty() => screen,
        _ => return print(texts, Output::new(startup.output)),
    };
    // The pager draws on the console, not on standard output.
    drop(startup.output);
    let long = if startup.chop { Long::Chopped } else { Long::Wrapped };
    texts.show(Session::new(screen, long, startup.numbers))
}

impl Texts {
    /// Shows the texts, switching between them at the user's request.
    fn show(mut self, mut session: Session) -> i32 {
        let mut index = 0;
        let mut status = 0;
        while let Some(asked) = self.paths.get(index).cloned() {
            let reader = match self.open(&asked) {
                Ok(reader) => reader,
                Err(error) => {
                    status = report::path_error(&asked, &error);
                    self.paths.remove(index);
                    index = index.min(self.paths.len().saturating_sub(1));
                    continue;
                }
            };
            match session.show(&asked, reader, (index + 1, self.paths.len())) {
                Ok(End::Quit) => return status,
                Ok(End::Next) => index = (index + 1).min(self.paths.len() - 1),
                Ok(End::Previous) => index = index.saturating_sub(1),
                Err(message) => {
                    report::error(format_args!("{message}"));
                    return 1;
                }
            }
        }
        status
    }

    fn open(&mut self, asked: &str) -> Result<Reader, AccessError> {
        match self.input.take_if(|_| asked == INPUT_NAME) {
            Some(input) => Ok(Reader::of_input(Input::new(input))),
            None => self.namespace.open_file(&path::absolute(&self.working_folder, asked)).map(Reader::of_file),
        }
    }
}

/// Prints everything, as `cat` does.
fn print(texts: Texts, mut output: Output) -> i32 {
    let Texts { namespace, working_folder, paths, input } = texts;
    let feed = Feed { namespace, working_folder, paths, input, usage: "less PATH..." };
    let outcome = feed.for_each(|_, mut reader| {
        while let Some((block, bytes)) = reader.block()? {
            output.write_block(ExVec::from_slice(&block[..bytes]).map_err(AccessError::System)?)?;
            reader.recycle(block);
        }
        Ok(())
    });
    outcome.map_or(1, |status| output.finish_with(status))
}

//! The shell language: parser and interpreter, independent of processes and files.
//!
//! Key types: [`parse`] makes a [`Script`]; an [`Interpreter`] runs it and calls a [`Host`] for all side effects:
//! running programs, listing folders, printing. [`ScriptError`] has a message, location and remedy.
//! [`completion_context`] and [`highlight`] serve line editing. Neighbours: the shell is the host; the console
//! highlights. `LANGUAGE.md` beside this crate's sources documents the language for users. Deliberately not here:
//! channels, processes and files.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod arithmetic;
mod complete;
mod condition;
mod error;
mod interpreter;
mod lexer;
mod parser;
mod pattern;
mod quote;
mod syntax;

pub use complete::{CompletionContext, Highlight, HighlightKind, WordKind, completion_context, highlight};
pub use condition::{PathKind, holds};
pub use error::ScriptError;
pub use interpreter::{Command, Ends, Flow, Host, Interpreter, Scope, Subshell};
pub use parser::parse;
pub use pattern::{Pattern, PatternPart};
pub use quote::quote;
pub use syntax::{Errors, OutputMode, Script};

//! Syntax: text to tree. Never fails: errors are reported, and the parser recovers.

mod lexer;
mod parser;
mod print;
mod tree;

pub use parser::parse;
pub use print::print;
pub use tree::*;

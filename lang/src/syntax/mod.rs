//! Text to tree. Never fails: what cannot be read is reported, left out, and reading goes on.

mod lexer;
mod parser;
mod print;
mod tree;

pub use parser::parse;
pub use print::print;
pub use tree::*;

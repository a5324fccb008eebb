//! `sing run`.
use crate::command_line::RunArguments;
use crate::failure::{Failure, Outcome};
use crate::repository::Repository;

/// `sing run`.
///
/// # Errors
/// x
pub fn run(_repository: &Repository, _arguments: &RunArguments) -> Outcome<u8> {
    Err(Failure::new("not yet"))
}

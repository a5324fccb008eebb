//! Completion: possible next words of a command.

use alloc::vec::Vec;

use manifest_model::{Manifest, Parameter, ParameterKind};

use crate::{Positions, argv, find_flags, is_command};

/// Possible next words of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected<'m> {
    /// Flags not given yet.
    pub flags: Vec<&'m str>,
    /// The positional parameter of the word; `None` if there is none left.
    pub value: Option<&'m Parameter>,
}

/// Returns the possible next words after these, which exclude the program's name. Invalid words are skipped.
pub fn expected<'m>(manifest: &'m Manifest, words: &[&str]) -> Expected<'m> {
    let mut positions = Positions::new(manifest);
    let mut given: Vec<usize> = Vec::new();
    let mut words = words.iter().copied();
    let mut flags_end = false;
    while let Some(word) = words.next() {
        if flags_end {
            positions.next();
        } else if word == "--" {
            flags_end = true;
        } else if let Some(&(last, inline)) = find_flags(manifest, word).last() {
            given.extend(find_flags(manifest, word).iter().map(|(index, _)| *index));
            let parameter = &manifest.parameters[last];
            let takes_next = inline.is_none() && parameter.kind != ParameterKind::Boolean;
            if takes_next && words.next().is_none() {
                return Expected { flags: Vec::new(), value: Some(parameter) };
            }
        } else if !is_flag_like(word) || argv(manifest).is_some() {
            let position = positions.next().and_then(|index| manifest.parameters.get(index));
            flags_end |= position.is_some_and(is_command);
        }
    }
    // A flag that only documents `argv` may be among its words at any time.
    let is_documented = |index: usize| argv(manifest).is_some_and(|argv| index > argv);
    let is_left = |(index, parameter): &(usize, &Parameter)| {
        is_documented(*index) || (!flags_end && (parameter.repeated || !given.contains(index)))
    };
    let left = manifest.parameters.iter().enumerate().filter(is_left);
    Expected {
        flags: left.filter_map(|(_, parameter)| parameter.flag.as_deref()).collect(),
        value: positions.next().and_then(|index| manifest.parameters.get(index)),
    }
}

/// Whether the word looks like a flag: `-l`, but neither `-` nor a negative number such as `-5` and `-0.5`.
pub(crate) fn is_flag_like(word: &str) -> bool {
    word.len() > 1 && word.strip_prefix('-').is_some_and(|rest| !is_number(rest))
}

/// Digits, optionally with a decimal point before the last of them.
fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && text.matches('.').count() <= 1
        && text.ends_with(|last: char| last.is_ascii_digit())
}

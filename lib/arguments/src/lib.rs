//! Parsing of command lines by the parameters of a program's manifest.
//!
//! Key functions: [`assign`], [`usage`], [`expected`]. Neighbours: the shell calls them; `manifest` refuses reserved
//! flags. Deliberately not here: quoting and expansion, which `command-language` does.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use manifest_model::{Manifest, Parameter, ParameterKind};

mod expected;

pub use expected::{Expected, expected};

use expected::is_flag_like;

/// Why the words do not match the parameters. `Display` adds the usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    /// The program's name.
    pub program: String,
    /// The problem, as a phrase.
    pub problem: String,
    /// See [`usage`].
    pub usage: String,
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; usage: {}", self.program, self.problem, self.usage)
    }
}

impl core::error::Error for ArgumentError {}

/// Index of a parameter and its value in the format of `process_give_parameter`: text; for a repeated parameter,
/// values terminated by a zero byte each.
pub type Assignment = (usize, Vec<u8>);

/// Assigns the words after the program's name to its parameters. A flag sets its parameter: a boolean to true, any
/// other to the next word or to the text after `=`. Other words go to the positional parameters in order. Short flags
/// can be combined, as in `-la`, and the last can have its value attached, as in `-n5`. After `--`, and after the first
/// word of a [`COMMAND`] or of [`ARGV`], words are not flags.
pub fn assign(manifest: &Manifest, words: &[&str]) -> Result<Vec<Assignment>, ArgumentError> {
    let mut given: Vec<Assignment> = Vec::new();
    let mut positions = Positions::new(manifest);
    let mut flags_end = false;
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        if word == "--" && !flags_end {
            flags_end = true;
            continue;
        }
        let flags = if flags_end { Vec::new() } else { find_flags(manifest, word) };
        if flags.is_empty() {
            if !flags_end && is_flag_like(word) && argv(manifest).is_none() {
                return Err(error(manifest, format!("there is no option `{word}`")));
            }
            let index = positions.next().ok_or_else(|| error(manifest, format!("`{word}` is one word too many")))?;
            flags_end |= is_command(&manifest.parameters[index]);
            give(manifest, &mut given, index, word)?;
            continue;
        }
        for (index, inline) in flags {
            let parameter = &manifest.parameters[index];
            let value = match (inline, parameter.kind) {
                (Some(value), _) => value,
                (None, ParameterKind::Boolean) => "true",
                (None, _) => words
                    .next()
                    .ok_or_else(|| error(manifest, format!("`{word}` needs a value ({})", parameter.kind)))?,
            };
            give(manifest, &mut given, index, value)?;
        }
    }
    let missing = |(index, parameter): &(usize, &Parameter)| {
        parameter.required && !given.iter().any(|(number, _)| number == index)
    };
    if let Some((_, parameter)) = assigned_parameters(manifest).iter().enumerate().find(missing) {
        return Err(error(manifest, format!("`{}` is missing", parameter.name)));
    }
    Ok(given)
}

/// The synopsis: `cat [PATH...]`. Flags come first, then positional parameters in order.
pub fn usage(manifest: &Manifest) -> String {
    let mut text = manifest.name.clone();
    for parameter in &manifest.parameters {
        let Some(flag) = &parameter.flag else { continue };
        let value = if parameter.kind == ParameterKind::Boolean { String::new() } else { place(parameter, " ") };
        text += &if parameter.required { format!(" {flag}{value}") } else { format!(" [{flag}{value}]") };
    }
    for index in Positions::new(manifest).order {
        let parameter = &manifest.parameters[index];
        let more = if parameter.repeated { "..." } else { "" };
        let name = place(parameter, " ");
        text += &if parameter.required { format!("{name}{more}") } else { format!(" [{}{more}]", &name[1..]) };
    }
    text
}

fn place(parameter: &Parameter, before: &str) -> String {
    format!("{before}{}", parameter.name.to_ascii_uppercase())
}

/// Whether the word, as the only one, requests help: `-?`, `--help`, or `-h` unless it is a flag of the program.
pub fn asks_for_help(manifest: &Manifest, word: &str) -> bool {
    matches!(word, "-?" | HELP_FLAG) || (word == "-h" && find_flag(&manifest.parameters, word).is_none())
}

/// Reserved: the flag that every program has.
pub const HELP_FLAG: &str = "--help";

pub(crate) struct Positions {
    order: Vec<usize>,
    next: usize,
    last_repeats: bool,
}

impl Positions {
    pub(crate) fn new(manifest: &Manifest) -> Positions {
        let mut order: Vec<usize> =
            (0..manifest.parameters.len()).filter(|&index| manifest.parameters[index].position.is_some()).collect();
        order.sort_by_key(|&index| manifest.parameters[index].position);
        let last_repeats = order.last().is_some_and(|&index| manifest.parameters[index].repeated);
        Positions { order, next: 0, last_repeats }
    }

    pub(crate) fn next(&mut self) -> Option<usize> {
        if self.next + 1 == self.order.len() && self.last_repeats {
            return self.order.last().copied();
        }
        self.next += 1;
        self.order.get(self.next - 1).copied()
    }
}

/// Name of a repeated last parameter that takes another command: flags after its first word are that command's.
pub const COMMAND: &str = "command";

/// Name of a repeated last parameter of a program that reads its words itself, as programs for other systems do. It
/// takes all words as they are from the first on that is not a flag of the parameters before it. Flags of parameters
/// behind it are for help and completion only: they are among its words.
pub const ARGV: &str = "argv";

/// Whether the parameter takes all words after its first, flags too.
pub(crate) fn is_command(parameter: &Parameter) -> bool {
    parameter.repeated && (parameter.name == COMMAND || parameter.name == ARGV)
}

/// The index of the parameter [`ARGV`], if the program has it.
pub(crate) fn argv(manifest: &Manifest) -> Option<usize> {
    let is_argv = |parameter: &Parameter| parameter.repeated && parameter.position.is_some() && parameter.name == ARGV;
    manifest.parameters.iter().position(is_argv)
}

/// Whether the program reads its words itself: only it knows whether they name its input.
pub fn reads_its_words(manifest: &Manifest) -> bool {
    argv(manifest).is_some()
}

/// The parameters that words are assigned to: without those that only document [`ARGV`].
fn assigned_parameters(manifest: &Manifest) -> &[Parameter] {
    match argv(manifest) {
        Some(index) => &manifest.parameters[..=index],
        None => &manifest.parameters,
    }
}

/// The parameters whose flags are in the word, each with its attached value; empty if the word is not a flag.
pub(crate) fn find_flags<'w>(manifest: &Manifest, word: &'w str) -> Vec<(usize, Option<&'w str>)> {
    let parameters = assigned_parameters(manifest);
    match find_flag(parameters, word) {
        Some(flag) => Vec::from([flag]),
        None => find_joined_flags(parameters, word).unwrap_or_default(),
    }
}

fn find_flag<'w>(parameters: &[Parameter], word: &'w str) -> Option<(usize, Option<&'w str>)> {
    parameters.iter().enumerate().find_map(|(index, parameter)| {
        let rest = word.strip_prefix(parameter.flag.as_deref()?)?;
        match rest.strip_prefix('=') {
            // `-d=` is the short flag `-d` with the value `=`.
            Some("") if !word.starts_with("--") => Some((index, Some("="))),
            Some(value) => Some((index, Some(value))),
            None => rest.is_empty().then_some((index, None)),
        }
    })
}

/// Combined short flags. The first that takes a value gets the rest of the word, or else the next word.
fn find_joined_flags<'w>(parameters: &[Parameter], word: &'w str) -> Option<Vec<(usize, Option<&'w str>)>> {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    let mut flags = Vec::new();
    for (place, letter) in letters.char_indices() {
        let is_its_flag = |parameter: &Parameter| {
            parameter.flag.as_deref().and_then(|flag| flag.strip_prefix('-')) == Some(letter.encode_utf8(&mut [0; 4]))
        };
        let index = parameters.iter().position(is_its_flag)?;
        if parameters[index].kind == ParameterKind::Boolean {
            flags.push((index, None));
            continue;
        }
        let rest = &letters[place + letter.len_utf8()..];
        flags.push((index, Some(rest).filter(|rest| !rest.is_empty())));
        break;
    }
    Some(flags)
}

fn give(manifest: &Manifest, given: &mut Vec<Assignment>, index: usize, text: &str) -> Result<(), ArgumentError> {
    let parameter = &manifest.parameters[index];
    let value = parameter
        .kind
        .parse(text)
        .filter(|_| !text.contains('\0'))
        .ok_or_else(|| {
            error(manifest, format!("`{text}` is not of the type of `{}`: {}", parameter.name, parameter.kind))
        })?
        .to_string();
    match given.iter_mut().find(|(number, _)| *number == index) {
        Some((_, bytes)) if parameter.repeated => {
            bytes.extend_from_slice(value.as_bytes());
            bytes.push(0);
        }
        Some(_) => return Err(error(manifest, format!("`{}` is given twice", parameter.name))),
        None => {
            let mut bytes = value.into_bytes();
            if parameter.repeated {
                bytes.push(0);
            }
            given.push((index, bytes));
        }
    }
    Ok(())
}

fn error(manifest: &Manifest, problem: String) -> ArgumentError {
    ArgumentError { program: manifest.name.clone(), problem, usage: usage(manifest) }
}

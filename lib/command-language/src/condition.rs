//! The conditions of the `test` command, without the file system.

use alloc::format;
use alloc::string::{String, ToString};

/// The type of the file at a path, as far as conditions are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// No such file.
    Missing,
    /// A folder.
    Folder,
    /// Anything else.
    Other,
}

/// Evaluates the words after `test`. `look` returns the type of the file at a path. An error is a sentence.
pub fn holds(words: &[String], look: &mut dyn FnMut(&str) -> PathKind) -> Result<bool, String> {
    match words {
        [first, rest @ ..] if first == "not" => Ok(!holds_plain(rest, look)?),
        _ => holds_plain(words, look),
    }
}

fn holds_plain(words: &[String], look: &mut dyn FnMut(&str) -> PathKind) -> Result<bool, String> {
    match words {
        [sign, text] => match sign.as_str() {
            "empty" => Ok(text.is_empty()),
            "exists" => Ok(look(text) != PathKind::Missing),
            "file" => Ok(look(text) == PathKind::Other),
            "folder" => Ok(look(text) == PathKind::Folder),
            other => Err(format!("unknown condition `{other}`: use empty, exists, file or folder")),
        },
        [left, sign, right] => match sign.as_str() {
            "=" => Ok(left == right),
            "!=" => Ok(left != right),
            "<" | "-lt" => Ok(number(left)? < number(right)?),
            "<=" | "-le" => Ok(number(left)? <= number(right)?),
            ">" | "-gt" => Ok(number(left)? > number(right)?),
            ">=" | "-ge" => Ok(number(left)? >= number(right)?),
            "-eq" => Ok(number(left)? == number(right)?),
            "-ne" => Ok(number(left)? != number(right)?),
            other => Err(format!(
                "unknown operator `{other}`: use = and != for strings, -eq -ne -lt -le -gt -ge for numbers"
            )),
        },
        _ => Err("expected two or three words, as in `test file PATH` or `test $a = $b`".to_string()),
    }
}

fn number(text: &str) -> Result<i64, String> {
    text.trim().parse().map_err(|_| format!("`{text}` is not a 64-bit integer"))
}

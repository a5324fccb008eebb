//! Why a module is not compiled.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// Why a module is not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// It is malformed or invalid.
    Invalid {
        /// What is wrong.
        message: String,
        /// Where, in bytes from the start of the module.
        offset: u64,
    },
    /// It imports what the template does not offer.
    Import {
        /// The module that it names.
        module: String,
        /// The name that it imports.
        name: String,
        /// What is wrong with it, and what there is.
        why: String,
    },
    /// It is over a limit.
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much is allowed.
        most: usize,
    },
    /// It is valid, and uses something that this compiler has not.
    Unsupported {
        /// What it uses.
        what: String,
    },
    /// A function could not be compiled.
    Function {
        /// Its name or number.
        name: String,
        /// Why.
        why: String,
    },
    /// The code generator failed.
    Backend(String),
}

impl Error {
    pub(crate) fn in_function(self, name: &str, index: u32) -> Error {
        match self {
            Error::Unsupported { .. } | Error::Backend(_) | Error::Limit { .. } => {
                let name = if name.is_empty() { format!("number {index}") } else { format!("`{name}`") };
                Error::Function { name, why: self.to_string() }
            }
            other => other,
        }
    }
}

impl From<wasmparser::Error> for Error {
    fn from(error: wasmparser::Error) -> Error {
        Error::Invalid { message: error.message().to_string(), offset: error.offset() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid { message, offset } => write!(f, "{message} (at byte {offset:#x} of the module)"),
            Error::Import { module, name, why } => write!(f, "import `{name}` of `{module}`: {why}"),
            Error::Limit { what, most } => write!(f, "too many {what}: at most {most}"),
            Error::Unsupported { what } => write!(f, "not supported: {what}"),
            Error::Function { name, why } => write!(f, "function {name}: {why}"),
            Error::Backend(why) => write!(f, "the code generator failed: {why}"),
        }
    }
}

impl core::error::Error for Error {}

//! A process's start-up configuration as typed values.
//!
//! A program's `Startup` structure is generated from its manifest and implements
//! [`FromConfiguration`]; its fields are read by the functions here. A parameter travels as text;
//! [`ParameterValue`] parses it as its declared type. Deliberately not here: the manifest itself,
//! which the runtime never sees.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use abi::{Status, limits};

use crate::channel::{AnyEndpoint, RawEndpoint, TypedEndpoint};
use crate::{raw, thread_block};

/// The complete configuration of a process: its generated `Startup` structure.
pub trait FromConfiguration: Sized {
    /// Reads all of it. Each endpoint can be taken once, so this succeeds once.
    fn from_configuration() -> Result<Self, ConfigurationError>;
}

impl FromConfiguration for () {
    fn from_configuration() -> Result<(), ConfigurationError> {
        Ok(())
    }
}

/// Reason why a process cannot start with its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigurationError {
    /// A required parameter has no value.
    MissingParameter {
        /// Name of the parameter.
        name: &'static str,
    },
    /// A parameter's value is not of its type.
    BadParameter {
        /// Name of the parameter.
        name: &'static str,
        /// The value given.
        value: String,
        /// Description of what it accepts.
        expected: &'static str,
    },
    /// A required endpoint was not given.
    MissingEndpoint {
        /// Name of the endpoint.
        name: &'static str,
    },
    /// An endpoint is not of the contract, side and state that the program was compiled for.
    WrongEndpoint {
        /// Name of the endpoint.
        name: &'static str,
        /// Name of the contract that the program expects.
        contract: &'static str,
    },
    /// The kernel refused to hand over a value.
    Refused {
        /// Name of the parameter or endpoint.
        name: &'static str,
        /// The kernel's error.
        status: Status,
    },
}

impl fmt::Display for ConfigurationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigurationError::MissingParameter { name } => write!(formatter, "the parameter `{name}` is missing"),
            ConfigurationError::BadParameter { name, value, expected } => {
                write!(formatter, "the parameter `{name}` is `{value}`; it takes {expected}")
            }
            ConfigurationError::MissingEndpoint { name } => write!(formatter, "the endpoint `{name}` was not given"),
            ConfigurationError::WrongEndpoint { name, contract } => {
                write!(formatter, "the endpoint `{name}` is not of the contract {contract} in the declared state")
            }
            ConfigurationError::Refused { name, status } => write!(formatter, "`{name}`: {}", status.text()),
        }
    }
}

/// A type that a parameter can have.
pub trait ParameterValue: Sized {
    /// Description of a value, for the error message: `a whole number`.
    const EXPECTED: &'static str;
    /// Parses a value; `None` if the text is not one.
    fn from_text(text: &str) -> Option<Self>;
}

impl ParameterValue for String {
    const EXPECTED: &'static str = "text";
    fn from_text(text: &str) -> Option<String> {
        Some(text.to_string())
    }
}

impl ParameterValue for i64 {
    const EXPECTED: &'static str = "a whole number";
    fn from_text(text: &str) -> Option<i64> {
        match text.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    }
}

impl ParameterValue for bool {
    const EXPECTED: &'static str = "`true` or `false`";
    fn from_text(text: &str) -> Option<bool> {
        match text {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        }
    }
}

impl ParameterValue for Duration {
    const EXPECTED: &'static str = "a number of milliseconds";
    fn from_text(text: &str) -> Option<Duration> {
        text.parse().ok().map(Duration::from_millis)
    }
}

/// Returns the value of the parameter at `index` of the manifest, as bytes; `None` if none was given.
pub fn parameter_bytes(index: usize) -> Result<Option<Vec<u8>>, Status> {
    let index = index as u64;
    let length = match raw::value::parameter_length(index)? {
        u64::MAX => return Ok(None),
        length => usize::try_from(length).map_err(|_| Status::TooLarge)?,
    };
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let copied = raw::value::parameter_read(index, bytes.len() as u64)?.min(limits::TEXT_BYTES as u64);
        if copied == 0 {
            return Err(Status::Unknown);
        }
        thread_block::append_bytes(0, copied, &mut bytes);
    }
    bytes.truncate(length);
    Ok(Some(bytes))
}

fn parse<T: ParameterValue>(name: &'static str, bytes: &[u8]) -> Result<T, ConfigurationError> {
    core::str::from_utf8(bytes).ok().and_then(T::from_text).ok_or_else(|| ConfigurationError::BadParameter {
        name,
        value: String::from_utf8_lossy(bytes).into_owned(),
        expected: T::EXPECTED,
    })
}

/// Returns a parameter that may be left out.
pub fn optional<T: ParameterValue>(index: usize, name: &'static str) -> Result<Option<T>, ConfigurationError> {
    let bytes = parameter_bytes(index).map_err(|status| ConfigurationError::Refused { name, status })?;
    bytes.map(|bytes| parse(name, &bytes)).transpose()
}

/// Returns a parameter that must be given.
pub fn required<T: ParameterValue>(index: usize, name: &'static str) -> Result<T, ConfigurationError> {
    optional(index, name)?.ok_or(ConfigurationError::MissingParameter { name })
}

/// Returns a parameter with a default, given as in the manifest.
pub fn with_default<T: ParameterValue>(
    index: usize,
    name: &'static str,
    default: &str,
) -> Result<T, ConfigurationError> {
    match optional(index, name)? {
        Some(value) => Ok(value),
        None => parse(name, default.as_bytes()),
    }
}

/// Returns the values of a parameter that may be given several times, in order; none if none was given. On the wire
/// each value ends with a zero byte.
pub fn repeated<T: ParameterValue>(index: usize, name: &'static str) -> Result<Vec<T>, ConfigurationError> {
    let bytes = parameter_bytes(index).map_err(|status| ConfigurationError::Refused { name, status })?;
    let bytes = bytes.unwrap_or_default();
    let values = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    values.split(|&byte| byte == 0).map(|value| parse(name, value)).collect()
}

/// Takes an endpoint that may be left out, by the index of its slot in the manifest.
pub fn optional_endpoint<E: TypedEndpoint>(slot: usize, name: &'static str) -> Result<Option<E>, ConfigurationError> {
    let handle = match raw::value::endpoint_take(slot as u64) {
        Ok(handle) => handle,
        Err(Status::NotFound) => return Ok(None),
        Err(status) => return Err(ConfigurationError::Refused { name, status }),
    };
    let endpoint = AnyEndpoint::from_raw(RawEndpoint::from_handle(handle));
    match endpoint.downcast::<E>() {
        Ok(endpoint) => Ok(Some(endpoint)),
        Err(_) => {
            Err(ConfigurationError::WrongEndpoint { name, contract: <E::Contract as crate::channel::Contract>::NAME })
        }
    }
}

/// Takes an endpoint that must be given, by the index of its slot in the manifest.
pub fn endpoint<E: TypedEndpoint>(slot: usize, name: &'static str) -> Result<E, ConfigurationError> {
    optional_endpoint(slot, name)?.ok_or(ConfigurationError::MissingEndpoint { name })
}

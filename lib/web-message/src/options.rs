//! Options from the server's administrator: words of the form `name=value`.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Options by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pairs: Vec<(String, String)>,
}

/// Why options are malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// A word without `=`.
    NoPair(String),
    /// An unknown option.
    Unknown {
        /// Its name.
        name: String,
        /// The known names.
        known: &'static [&'static str],
    },
    /// A repeated option.
    Twice(String),
}

impl fmt::Display for OptionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::NoPair(word) => write!(formatter, "the option `{word}` is not of the form name=value"),
            OptionError::Unknown { name, known: [] } => {
                write!(formatter, "there is no option `{name}`; this application has none")
            }
            OptionError::Unknown { name, known } => {
                write!(formatter, "there is no option `{name}`; there are: {}", known.join(", "))
            }
            OptionError::Twice(name) => write!(formatter, "the option `{name}` is given twice"),
        }
    }
}

impl Options {
    /// Parses options; `known` are the application's option names.
    pub fn parse(text: &str, known: &'static [&'static str]) -> Result<Options, OptionError> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for word in text.split_ascii_whitespace() {
            let (name, value) = word.split_once('=').ok_or_else(|| OptionError::NoPair(String::from(word)))?;
            if !known.contains(&name) {
                return Err(OptionError::Unknown { name: String::from(name), known });
            }
            if pairs.iter().any(|(found, _)| found == name) {
                return Err(OptionError::Twice(String::from(name)));
            }
            pairs.push((String::from(name), String::from(value)));
        }
        Ok(Options { pairs })
    }

    /// The value of an option, if given.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn options_are_found_by_name() {
        let options = Options::parse(" root=/fs/disk0  log=/x=y ", &["root", "log", "more"]).expect("options");
        assert_eq!(options.value("root"), Some("/fs/disk0"));
        assert_eq!(options.value("log"), Some("/x=y"));
        assert_eq!(options.value("more"), None);
    }

    #[test]
    fn mistakes_are_named() {
        let said = |text: &str| Options::parse(text, &["root"]).expect_err("a mistake").to_string();
        assert_eq!(said("root"), "the option `root` is not of the form name=value");
        assert_eq!(said("rot=x"), "there is no option `rot`; there are: root");
        assert_eq!(said("root=x root=y"), "the option `root` is given twice");
        let none = Options::parse("a=b", &[]).expect_err("a mistake").to_string();
        assert_eq!(none, "there is no option `a`; this application has none");
    }
}

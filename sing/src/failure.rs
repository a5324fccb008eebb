//! Failures of the tool: message, place and remedy.
//!
//! Deliberately not here: diagnostics of contracts and manifests; those are rendered by the crates that find them, and
//! a failure only carries the rendered text.

use std::fmt;
use std::path::Path;

/// Result of everything in the tool that may fail.
pub type Outcome<T> = Result<T, Failure>;

/// A one-sentence message, with a remedy and an exit status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    what: String,
    remedy: Option<String>,
    details: Option<String>,
    status: u8,
}

impl Failure {
    /// Creates a failure with its message and place, without a full stop.
    pub fn new(what: impl Into<String>) -> Failure {
        Failure { what: what.into(), remedy: None, details: None, status: 1 }
    }

    /// Creates a failure of an operation on a file; `doing` is such as "read" or "write".
    pub fn file(doing: &str, path: &Path, error: &std::io::Error) -> Failure {
        let remedy = match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => "check the spelling of the path",
            std::io::ErrorKind::PermissionDenied => "check its permissions, or specify another file",
            std::io::ErrorKind::IsADirectory => "specify a file instead of a folder",
            std::io::ErrorKind::InvalidData => "specify a UTF-8 text file",
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => "free some disk space",
            _ => "check that the disk is not full and the file is not in use",
        };
        Failure::new(format!("cannot {doing} {}: {}", path.display(), plain_reason(error))).remedy(remedy)
    }

    /// Adds a remedy, without a full stop; or a question to the user, with a question mark.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Failure {
        self.remedy = Some(remedy.into());
        self
    }

    /// Adds text above the message: rendered diagnostics, a compiler's messages.
    pub fn details(mut self, details: impl Into<String>) -> Failure {
        self.details = Some(details.into());
        self
    }

    /// Changes the exit status, which is 1 otherwise.
    pub fn with_status(mut self, status: u8) -> Failure {
        self.status = status.max(1);
        self
    }

    /// Formats for the terminal: details, then the sentence after the program's name.
    pub fn told_by(&self, name: &str) -> String {
        let sentence = Failure { details: None, ..self.clone() };
        match &self.details {
            Some(details) => format!("{}\n\n{name}: {sentence}", details.trim_end()),
            None => format!("{name}: {sentence}"),
        }
    }

    /// The exit status; never 0.
    pub fn status(&self) -> u8 {
        self.status
    }
}

/// Returns the operating system's message for an error, without its number.
pub fn plain_reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(details) = &self.details {
            writeln!(out, "{}\n", details.trim_end())?;
        }
        write!(out, "{}", self.what)?;
        match &self.remedy {
            Some(question) if question.ends_with('?') => write!(out, "; {question}"),
            Some(remedy) => write!(out, "; {remedy}."),
            None => write!(out, "."),
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_reads_as_one_sentence() {
        let failure = Failure::new("no disk image at x.img").remedy("give the path of an ext2 image");
        assert_eq!(failure.to_string(), "no disk image at x.img; give the path of an ext2 image.");
    }

    #[test]
    fn a_file_failure_names_the_file_and_drops_the_error_number() {
        let error = std::io::Error::from_raw_os_error(2);
        let text = Failure::file("read", Path::new("/none"), &error).to_string();
        assert_eq!(text, "cannot read /none: no such file or directory; check the spelling of the path.");
    }

    #[test]
    fn a_question_ends_as_one() {
        let failure = Failure::new("no key `mien`").remedy("did you mean `mine`?");
        assert_eq!(failure.to_string(), "no key `mien`; did you mean `mine`?");
    }

    #[test]
    fn who_fails_is_told_where_the_sentence_begins() {
        let failure = Failure::new("the manifest x has errors").details("error[M002]\n").remedy("correct it");
        assert_eq!(failure.told_by("sing"), "error[M002]\n\nsing: the manifest x has errors; correct it.");
        assert_eq!(Failure::new("no").told_by("sing"), "sing: no.");
    }

    #[test]
    fn the_status_is_never_success() {
        assert_eq!(Failure::new("x").with_status(0).status(), 1);
    }
}

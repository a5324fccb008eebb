//! The program `cat`, over whatever reads and writes: it prints files unchanged, one after the other.
//!
//! One source for two programs: `cat`, natively over this system's contracts, and `wasm-cat`, a WebAssembly module over
//! WASI. Each has its [`Files`]. Deliberately not here: bytes, which only whoever reads and writes them sees.
#![no_std]
#![forbid(unsafe_code)]

/// Operand that stands for standard input.
pub const INPUT_NAME: &str = "-";

/// How a program reaches its files, standard input, output and errors.
pub trait Files {
    /// An open file, or standard input.
    type Reader;
    /// Why a file cannot be read.
    type Error;

    /// Takes standard input, if it is connected and was not taken before.
    fn input(&mut self) -> Option<Self::Reader>;

    /// Opens a file by the path that the user wrote.
    ///
    /// # Errors
    /// It cannot be opened.
    fn open(&mut self, path: &str) -> Result<Self::Reader, Self::Error>;

    /// Passes the next piece on to the output; returns whether there was one.
    ///
    /// # Errors
    /// It cannot be read, or nobody reads the output.
    fn pass(&mut self, reader: &mut Self::Reader) -> Result<bool, PassError<Self::Error>>;

    /// Tells the user that a file cannot be read.
    fn report(&mut self, path: &str, error: Self::Error);

    /// Tells the user that there is nothing to read.
    fn report_nothing(&mut self);
}

/// Why a piece was not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassError<E> {
    /// It cannot be read.
    Unreadable(E),
    /// The reader of the output has ended.
    NoReader,
}

/// The reader of the output has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoReader;

/// Prints each file, or standard input if none is named. A file that cannot be read is reported; the others are still
/// printed. Returns the exit status.
///
/// # Errors
/// Nobody reads the output.
pub fn concatenate<F: Files>(files: &mut F, paths: &[impl AsRef<str>]) -> Result<i32, NoReader> {
    if paths.is_empty() {
        let Some(input) = files.input() else {
            files.report_nothing();
            return Ok(1);
        };
        return print(files, INPUT_NAME, input);
    }
    let mut status = 0;
    for path in paths.iter().map(AsRef::as_ref) {
        let input = if path == INPUT_NAME { files.input() } else { None };
        let opened = match input {
            Some(input) => Ok(input),
            None => files.open(path),
        };
        let printed = match opened {
            Ok(reader) => print(files, path, reader)?,
            Err(error) => {
                files.report(path, error);
                1
            }
        };
        status = status.max(printed);
    }
    Ok(status)
}

fn print<F: Files>(files: &mut F, path: &str, mut reader: F::Reader) -> Result<i32, NoReader> {
    loop {
        match files.pass(&mut reader) {
            Ok(true) => {}
            Ok(false) => return Ok(0),
            Err(PassError::NoReader) => return Err(NoReader),
            Err(PassError::Unreadable(error)) => {
                files.report(path, error);
                return Ok(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::String;
    use std::vec::Vec;

    /// Files whose content is their name; what begins with `x` breaks off after its first letter.
    #[derive(Default)]
    struct Trial {
        input: Option<&'static str>,
        printed: String,
        reported: Vec<String>,
        room: Option<usize>,
    }

    impl Files for Trial {
        type Reader = Vec<char>;
        type Error = &'static str;

        fn input(&mut self) -> Option<Vec<char>> {
            self.input.take().map(|text| text.chars().rev().collect())
        }

        fn open(&mut self, path: &str) -> Result<Vec<char>, &'static str> {
            if path == "none" { Err("not found") } else { Ok(path.chars().rev().collect()) }
        }

        fn pass(&mut self, reader: &mut Vec<char>) -> Result<bool, PassError<&'static str>> {
            if self.room == Some(self.printed.len()) {
                return Err(PassError::NoReader);
            }
            let Some(letter) = reader.pop() else { return Ok(false) };
            self.printed.push(letter);
            if letter == 'x' { Err(PassError::Unreadable("broken")) } else { Ok(true) }
        }

        fn report(&mut self, path: &str, error: &'static str) {
            self.reported.push(std::format!("{path}: {error}"));
        }

        fn report_nothing(&mut self) {
            self.reported.push("nothing".into());
        }
    }

    #[test]
    fn files_follow_one_another_and_failures_are_reported() {
        let mut files = Trial { input: Some("in"), ..Trial::default() };
        assert_eq!(concatenate(&mut files, &["a", "none", "xyz", "-", "b"]), Ok(1));
        assert_eq!(files.printed, "axinb");
        assert_eq!(files.reported, ["none: not found", "xyz: broken"]);
    }

    #[test]
    fn without_files_it_is_standard_input_which_is_there_once() {
        let mut files = Trial { input: Some("in"), ..Trial::default() };
        assert_eq!(concatenate::<Trial>(&mut files, &[] as &[&str]), Ok(0));
        assert_eq!(files.printed, "in");
        assert_eq!(concatenate::<Trial>(&mut files, &[] as &[&str]), Ok(1));
        // A file of that name, then.
        assert_eq!(concatenate(&mut files, &["-"]), Ok(0));
        assert_eq!((files.printed.as_str(), &files.reported[..]), ("in-", &[String::from("nothing")][..]));
    }

    #[test]
    fn nobody_who_reads_ends_it() {
        let mut files = Trial { room: Some(2), ..Trial::default() };
        assert_eq!(concatenate(&mut files, &["abc", "d"]), Err(NoReader));
        assert_eq!((files.printed.as_str(), files.reported.len()), ("ab", 0));
    }
}

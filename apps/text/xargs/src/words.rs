//! Splits standard input into words.

use alloc::string::String;
use alloc::vec::Vec;

/// Separator of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// White space; quotes or a `\` protect it.
    Blanks,
    /// Line ends; leading blanks are stripped.
    Lines,
    /// This byte only.
    Byte(u8),
}

/// The input ended inside quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenQuote;

/// Splits a stream into words.
pub struct Words {
    between: Between,
    word: Vec<u8>,
    has_word: bool,
    quote: Option<u8>,
    is_escaped: bool,
}

impl Words {
    /// Starts before the first byte.
    pub fn new(between: Between) -> Words {
        Words { between, word: Vec::new(), has_word: false, quote: None, is_escaped: false }
    }

    /// Length in bytes of the unfinished word.
    pub fn pending_bytes(&self) -> usize {
        self.word.len()
    }

    /// Returns the word that this byte completes, if any.
    pub fn push(&mut self, byte: u8) -> Option<String> {
        match self.between {
            Between::Byte(between) if byte == between => {
                self.has_word = true;
                return self.take();
            }
            Between::Byte(_) => self.add(byte),
            Between::Lines if byte == b'\n' => return self.take(),
            Between::Lines if self.word.is_empty() && matches!(byte, b' ' | b'\t') => {}
            Between::Lines => self.add(byte),
            Between::Blanks => return self.push_quoted(byte),
        }
        None
    }

    fn push_quoted(&mut self, byte: u8) -> Option<String> {
        match (self.quote, byte) {
            _ if core::mem::take(&mut self.is_escaped) => self.add(byte),
            (Some(quote), _) if byte == quote => self.quote = None,
            (Some(_), _) => self.add(byte),
            (None, b'\\') => self.is_escaped = true,
            (None, b'\'' | b'"') => {
                self.quote = Some(byte);
                self.has_word = true;
            }
            (None, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) => return self.take(),
            _ => self.add(byte),
        }
        None
    }

    /// Returns the last word at the end of the stream.
    ///
    /// # Errors
    ///
    /// If a quote is open.
    pub fn finish(mut self) -> Result<Option<String>, OpenQuote> {
        if self.quote.is_some() {
            return Err(OpenQuote);
        }
        Ok(self.take())
    }

    fn add(&mut self, byte: u8) {
        self.word.push(byte);
        self.has_word = true;
    }

    fn take(&mut self) -> Option<String> {
        let word = core::mem::take(&mut self.word);
        core::mem::take(&mut self.has_word).then(|| String::from_utf8_lossy(&word).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(between: Between, text: &str) -> Result<Vec<String>, OpenQuote> {
        let mut words = Words::new(between);
        let mut found: Vec<String> = text.bytes().filter_map(|byte| words.push(byte)).collect();
        found.extend(words.finish()?);
        Ok(found)
    }

    #[test]
    fn quotes_keep_blanks_together() {
        let found = words(Between::Blanks, " a 'b c'\td\\ e\n\n\"\" f\"g\"h");
        assert_eq!(found.as_deref(), Ok(&["a", "b c", "d e", "", "fgh"].map(String::from)[..]));
        assert_eq!(words(Between::Blanks, "'a"), Err(OpenQuote));
        assert_eq!(words(Between::Blanks, " \n").as_deref(), Ok(&[][..]));
    }

    #[test]
    fn lines_and_bytes_have_no_quotes() {
        let found = words(Between::Lines, "  a 'b\n\nc");
        assert_eq!(found.as_deref(), Ok(&["a 'b", "c"].map(String::from)[..]));
        let found = words(Between::Byte(0), "a b\0\0'c");
        assert_eq!(found.as_deref(), Ok(&["a b", "", "'c"].map(String::from)[..]));
    }
}

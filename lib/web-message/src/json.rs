//! A JSON writer (RFC 8259).

use alloc::string::String;
use core::fmt::Write;

/// A JSON text under construction. Objects and arrays are written by closures, so that each is closed;
/// [`name`](JsonWriter::name) precedes each value of an object.
#[derive(Debug, Default)]
pub struct JsonWriter {
    text: String,
    /// Whether a comma is needed before the next value.
    follows: bool,
}

impl JsonWriter {
    /// Creates an empty text.
    pub fn new() -> JsonWriter {
        JsonWriter::default()
    }

    /// Writes an object.
    pub fn object(&mut self, members: impl FnOnce(&mut JsonWriter)) {
        self.nested('{', '}', members);
    }

    /// Writes an array.
    pub fn list(&mut self, items: impl FnOnce(&mut JsonWriter)) {
        self.nested('[', ']', items);
    }

    /// Writes the name of the next value of an object.
    pub fn name(&mut self, name: &str) -> &mut JsonWriter {
        self.string(name);
        self.text.push(':');
        self.follows = false;
        self
    }

    /// Writes a string.
    pub fn string(&mut self, text: &str) {
        self.begin();
        self.text.push('"');
        for character in text.chars() {
            match character {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                // JSON requires the first; the others would end a line or the script element in a page.
                '\0'..='\x1f' | '<' | '\u{2028}' | '\u{2029}' => {
                    // Writing to a string cannot fail.
                    let _ = write!(self.text, "\\u{:04x}", character as u32);
                }
                other => self.text.push(other),
            }
        }
        self.text.push('"');
    }

    /// Writes an integer.
    pub fn number(&mut self, number: u64) {
        self.begin();
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{number}");
    }

    /// Writes thousandths as a number with up to three decimals.
    pub fn thousandths(&mut self, thousandths: u64) {
        self.begin();
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{}.{:03}", thousandths / 1000, thousandths % 1000);
    }

    /// Returns the text.
    pub fn finish(self) -> String {
        self.text
    }

    fn begin(&mut self) {
        if self.follows {
            self.text.push(',');
        }
        self.follows = true;
    }

    fn nested(&mut self, open: char, close: char, content: impl FnOnce(&mut JsonWriter)) {
        self.begin();
        self.text.push(open);
        self.follows = false;
        content(self);
        self.text.push(close);
        self.follows = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_stand_between_values() {
        let mut json = JsonWriter::new();
        json.object(|json| {
            json.name("a").number(1);
            json.name("b").list(|json| {
                json.string("x");
                json.object(|_| {});
                json.list(|json| json.thousandths(1_050));
            });
            json.name("c").thousandths(7);
        });
        assert_eq!(json.finish(), r#"{"a":1,"b":["x",{},[1.050]],"c":0.007}"#);
    }

    #[test]
    fn texts_end_where_they_end() {
        let mut json = JsonWriter::new();
        json.string("a\"\\\n\u{1}</script>\u{2028}\u{e4}");
        assert_eq!(json.finish(), "\"a\\\"\\\\\\n\\u0001\\u003c/script>\\u2028\u{e4}\"");
    }
}

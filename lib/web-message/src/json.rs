//! Writing JSON (RFC 8259) piece by piece.

use alloc::string::String;
use core::fmt::Write;

/// A JSON text that grows. Objects and lists are written by closures, so that each is closed; a name is written
/// before each value of an object with [`name`](JsonWriter::name).
#[derive(Debug, Default)]
pub struct JsonWriter {
    text: String,
    /// Whether the next value comes after another one of the same object or list.
    follows: bool,
}

impl JsonWriter {
    /// An empty text.
    pub fn new() -> JsonWriter {
        JsonWriter::default()
    }

    /// An object.
    pub fn object(&mut self, members: impl FnOnce(&mut JsonWriter)) {
        self.nested('{', '}', members);
    }

    /// A list.
    pub fn list(&mut self, items: impl FnOnce(&mut JsonWriter)) {
        self.nested('[', ']', items);
    }

    /// The name of the next value of an object.
    pub fn name(&mut self, name: &str) -> &mut JsonWriter {
        self.string(name);
        self.text.push(':');
        self.follows = false;
        self
    }

    /// A text.
    pub fn string(&mut self, text: &str) {
        self.begin();
        self.text.push('"');
        for character in text.chars() {
            match character {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                // The first of the rest because JSON wants it, the others because scripts in pages end lines or
                // themselves there.
                '\0'..='\x1f' | '<' | '\u{2028}' | '\u{2029}' => {
                    // Writing to a string cannot fail.
                    let _ = write!(self.text, "\\u{:04x}", character as u32);
                }
                other => self.text.push(other),
            }
        }
        self.text.push('"');
    }

    /// A whole number.
    pub fn number(&mut self, number: u64) {
        self.begin();
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{number}");
    }

    /// Thousandths, as a number with up to three places.
    pub fn thousandths(&mut self, thousandths: u64) {
        self.begin();
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{}.{:03}", thousandths / 1000, thousandths % 1000);
    }

    /// The text.
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

//! Reading JSON (RFC 8259) into a tree, and writing it again: recursion, allocation, branches on bytes.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use crate::numbers::{Numbers, digest};

const RECORDS: u64 = 3_000;
const MAX_DEPTH: u32 = 64;

enum Value {
    Null,
    Boolean(bool),
    /// The characters of a number.
    Number(Box<str>),
    Text(String),
    List(Vec<Value>),
    Record(Vec<(String, Value)>),
}

pub fn run() -> u64 {
    let text = document();
    let Some(value) = parsed(&text) else { return 0 };
    let mut written = String::with_capacity(text.len());
    value.write(&mut written);
    digest([written.len() as u64, u64::from(written == text), digest(written.bytes().map(u64::from))])
}

fn document() -> String {
    let mut numbers = Numbers::of(0x8259);
    let mut text = String::from("[");
    for record in 0..RECORDS {
        let comma = if record == 0 { "" } else { "," };
        let (price, flag, size) = (numbers.below(10_000), numbers.below(2) == 0, numbers.below(5));
        let tags: String =
            (0..size).map(|tag| if tag == 0 { "\"new\"" } else { ",\"a \\\"tag\\\" of many\"" }).collect();
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "{comma}{{\"id\":{record},\"name\":\"article {price} √\",\"price\":{price}.25,\"here\":{flag},\"tags\":[{tags}],\"next\":null}}"
        );
    }
    text.push(']');
    text
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

fn parsed(text: &str) -> Option<Value> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.skip();
    (reader.at == text.len()).then_some(value)
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn takes(&mut self, word: &str) -> Option<()> {
        let is_there = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        self.at += word.len();
        is_there.then_some(())
    }

    fn value(&mut self, depth: u32) -> Option<Value> {
        self.skip();
        match self.peek().filter(|_| depth < MAX_DEPTH)? {
            b'n' => self.takes("null").map(|()| Value::Null),
            b't' => self.takes("true").map(|()| Value::Boolean(true)),
            b'f' => self.takes("false").map(|()| Value::Boolean(false)),
            b'"' => self.string().map(Value::Text),
            b'[' => self.several(b']', |reader| reader.value(depth + 1)).map(Value::List),
            b'{' => self.several(b'}', |reader| reader.member(depth + 1)).map(Value::Record),
            b'-' | b'0'..=b'9' => Some(self.number()),
            _ => None,
        }
    }

    fn member(&mut self, depth: u32) -> Option<(String, Value)> {
        self.skip();
        let name = self.string()?;
        self.skip();
        self.takes(":")?;
        Some((name, self.value(depth)?))
    }

    /// What stands between brackets, separated by commas.
    fn several<T>(&mut self, end: u8, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.at += 1;
        let mut all = Vec::new();
        self.skip();
        if self.peek()? == end {
            self.at += 1;
            return Some(all);
        }
        loop {
            all.push(one(self)?);
            self.skip();
            let next = self.peek()?;
            self.at += 1;
            match next {
                b',' => {}
                next if next == end => return Some(all),
                _ => return None,
            }
        }
    }

    fn number(&mut self) -> Value {
        let start = self.at;
        while matches!(self.peek(), Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        Value::Number(self.text[start..self.at].into())
    }

    fn string(&mut self) -> Option<String> {
        self.takes("\"")?;
        let mut string = String::new();
        loop {
            let start = self.at;
            while !matches!(self.peek()?, b'"' | b'\\' | 0..=0x1f) {
                self.at += 1;
            }
            string.push_str(self.text.get(start..self.at)?);
            let ends = self.peek()?;
            self.at += 1;
            match ends {
                b'"' => return Some(string),
                b'\\' => string.push(self.escaped()?),
                _ => return None,
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        let letter = match self.peek()? {
            b'n' => '\n',
            b't' => '\t',
            letter @ (b'"' | b'\\' | b'/') => char::from(letter),
            _ => return None,
        };
        self.at += 1;
        Some(letter)
    }
}

impl Value {
    fn write(&self, text: &mut String) {
        match self {
            Value::Null => text.push_str("null"),
            Value::Boolean(value) => text.push_str(if *value { "true" } else { "false" }),
            Value::Number(digits) => text.push_str(digits),
            Value::Text(string) => write_string(string, text),
            Value::List(values) => {
                text.push('[');
                separated(values, text, |value, text| value.write(text));
                text.push(']');
            }
            Value::Record(members) => {
                text.push('{');
                separated(members, text, |(name, value), text| {
                    write_string(name, text);
                    text.push(':');
                    value.write(text);
                });
                text.push('}');
            }
        }
    }
}

fn separated<T>(all: &[T], text: &mut String, write: impl Fn(&T, &mut String)) {
    for (index, one) in all.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(one, text);
    }
}

fn write_string(string: &str, text: &mut String) {
    text.push('"');
    for letter in string.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            letter => text.push(letter),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_written_as_it_was_read() {
        let text = document();
        let mut written = String::new();
        parsed(&text).expect("JSON").write(&mut written);
        assert_eq!(written, text);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for bad in ["", "[", "[1,]", "{\"a\" 1}", "\"a", "nul", "[1] 2", "\"\\x\""] {
            assert!(parsed(bad).is_none(), "{bad}");
        }
        assert!(parsed(&"[".repeat(1000)).is_none());
    }
}

//! The format: a list of names with the steps of each file as bytes, so that a process decodes no more than it runs.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::{Act, End, File, Link, Pattern, Step, Value};

/// The bytes are no script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the attachment is no script of the suite")
    }
}

impl core::error::Error for Malformed {}

/// Writes files.
pub fn write(files: &[File]) -> Vec<u8> {
    let mut out = Vec::new();
    list(&mut out, files, |out, file| {
        text(out, &file.name);
        let mut steps = Vec::new();
        list(&mut steps, &file.steps, write_step);
        number(out, steps.len() as u32);
        out.extend(steps);
    });
    out
}

/// The names of files, and the bytes of each.
///
/// # Errors
/// These are no files.
pub fn files(bytes: &[u8]) -> Result<Vec<(&str, &[u8])>, Malformed> {
    let mut reader = Reader { rest: bytes };
    let files = reader.list(|reader| {
        let name = reader.bytes()?;
        Ok((core::str::from_utf8(name).map_err(|_| Malformed)?, reader.bytes()?))
    })?;
    if reader.rest.is_empty() { Ok(files) } else { Err(Malformed) }
}

/// Reads the steps of a file.
///
/// # Errors
/// These are no steps.
pub fn read(bytes: &[u8]) -> Result<Vec<Step>, Malformed> {
    let mut reader = Reader { rest: bytes };
    let steps = reader.list(Reader::step)?;
    if reader.rest.is_empty() { Ok(steps) } else { Err(Malformed) }
}

fn number(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len() as u32);
    out.extend_from_slice(text.as_bytes());
}

fn list<T>(out: &mut Vec<u8>, items: &[T], mut item: impl FnMut(&mut Vec<u8>, &T)) {
    number(out, items.len() as u32);
    items.iter().for_each(|one| item(out, one));
}

fn write_step(out: &mut Vec<u8>, step: &Step) {
    number(out, step.line);
    match &step.act {
        Act::Instantiate { module, links } => {
            out.push(0);
            number(out, *module);
            list(out, links, |out, link| {
                number(out, link.instance);
                number(out, link.function);
            });
        }
        Act::Call { instance, function, arguments } => {
            out.push(1);
            number(out, *instance);
            number(out, *function);
            list(out, arguments, |out, value| write_value(out, *value));
        }
        Act::Global { instance, global } => {
            out.push(2);
            number(out, *instance);
            number(out, *global);
        }
    }
    match &step.end {
        End::Results(patterns) => {
            out.push(0);
            list(out, patterns, |out, pattern| write_pattern(out, *pattern));
        }
        End::Trap(kind) => {
            out.push(1);
            text(out, kind);
        }
        End::Exhaustion => out.push(2),
    }
}

fn write_value(out: &mut Vec<u8>, value: Value) {
    match value {
        Value::Word(bits) => {
            out.push(4);
            out.extend_from_slice(&bits.to_le_bytes());
        }
        Value::Double(bits) => {
            out.push(8);
            out.extend_from_slice(&bits.to_le_bytes());
        }
        Value::Vector(bits) => {
            out.push(16);
            out.extend_from_slice(&bits.to_le_bytes());
        }
    }
}

fn write_pattern(out: &mut Vec<u8>, pattern: Pattern) {
    match pattern {
        Pattern::Exact(value) => {
            out.push(0);
            write_value(out, value);
        }
        Pattern::Masked(value, mask) => {
            out.push(1);
            write_value(out, value);
            write_value(out, mask);
        }
        Pattern::Reference => out.push(2),
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    fn number(&mut self) -> Result<u32, Malformed> {
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.number()? as usize;
        self.take(count)
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Reader<'a>) -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
        let count = self.number()? as usize;
        if count > self.rest.len() {
            return Err(Malformed);
        }
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn step(&mut self) -> Result<Step, Malformed> {
        let line = self.number()?;
        let act = match self.byte()? {
            0 => Act::Instantiate {
                module: self.number()?,
                links: self.list(|reader| Ok(Link { instance: reader.number()?, function: reader.number()? }))?,
            },
            1 => Act::Call { instance: self.number()?, function: self.number()?, arguments: self.list(Reader::value)? },
            2 => Act::Global { instance: self.number()?, global: self.number()? },
            _ => return Err(Malformed),
        };
        let end = match self.byte()? {
            0 => End::Results(self.list(Reader::pattern)?),
            1 => End::Trap(String::from(core::str::from_utf8(self.bytes()?).map_err(|_| Malformed)?)),
            2 => End::Exhaustion,
            _ => return Err(Malformed),
        };
        Ok(Step { line, act, end })
    }

    fn value(&mut self) -> Result<Value, Malformed> {
        Ok(match self.byte()? {
            4 => Value::Word(u32::from_le_bytes(self.array()?)),
            8 => Value::Double(u64::from_le_bytes(self.array()?)),
            16 => Value::Vector(u128::from_le_bytes(self.array()?)),
            _ => return Err(Malformed),
        })
    }

    fn pattern(&mut self) -> Result<Pattern, Malformed> {
        Ok(match self.byte()? {
            0 => Pattern::Exact(self.value()?),
            1 => Pattern::Masked(self.value()?, self.value()?),
            2 => Pattern::Reference,
            _ => return Err(Malformed),
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn sample() -> Vec<File> {
        let call = |end| Step {
            line: 300,
            act: Act::Call {
                instance: 1,
                function: 2,
                arguments: vec![Value::Word(1), Value::Double(2), Value::Vector(1 << 100)],
            },
            end,
        };
        let steps = vec![
            Step {
                line: 1,
                act: Act::Instantiate { module: 200, links: vec![Link { instance: 3, function: 4 }] },
                end: End::Results(vec![]),
            },
            call(End::Results(vec![
                Pattern::Exact(Value::Word(5)),
                Pattern::Masked(Value::Double(6), Value::Double(7)),
                Pattern::Reference,
            ])),
            call(End::Trap("unreachable".into())),
            call(End::Exhaustion),
            Step { line: 4, act: Act::Global { instance: 0, global: 1 }, end: End::Results(vec![]) },
        ];
        vec![File { name: "first".into(), steps: vec![] }, File { name: "second".into(), steps }]
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = write(&sample());
        let files = files(&bytes).expect("files");
        let read = |(name, steps): &(&str, &[u8])| File { name: (*name).into(), steps: read(steps).expect("steps") };
        assert_eq!(files.iter().map(read).collect::<Vec<_>>(), sample());
    }

    #[test]
    fn cut_bytes_are_no_script() {
        let bytes = write(&sample());
        assert!((0..bytes.len()).all(|end| files(&bytes[..end]).is_err()));
    }
}

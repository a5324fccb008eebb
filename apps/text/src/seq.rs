//! Prints a sequence of numbers.

mod numbers;

use alloc::string::String;

use stdio::{Output, report};

use crate::seq::numbers::{Decimal, Sequence, Width};

sip::startup!("seq/manifest.toml");

/// Prints the numbers from the first to the last.
pub fn main(startup: Startup) -> i32 {
    let width = if startup.equal_width { Width::Equal } else { Width::Own };
    let sequence = match sequence(&startup.numbers, width) {
        Ok(sequence) => sequence,
        Err(message) => {
            report::error(format_args!("{message}"));
            return 2;
        }
    };
    let separator = startup.separator.unwrap_or_else(|| String::from("\n"));
    let mut output = Output::new(startup.output);
    let mut before = "";
    let mut end = "";
    for number in sequence {
        if output.write(before.as_bytes()).and_then(|()| output.write(number.as_bytes())).is_err() {
            // The reader has ended.
            return 1;
        }
        before = &separator;
        end = "\n";
    }
    output.write(end.as_bytes()).map_or(1, |()| output.finish_with(0))
}

fn sequence(words: &[String], width: Width) -> Result<Sequence, String> {
    let number = |word: &String| {
        Decimal::parse(word).ok_or_else(|| {
            alloc::format!(
                "`{word}` is not a number like 7, -2 or 0.25, with at most 18 digits before and 9 after the point"
            )
        })
    };
    let (first, step, last) = match words {
        [last] => (Decimal::ONE, Decimal::ONE, number(last)?),
        [first, last] => (number(first)?, Decimal::ONE, number(last)?),
        [first, step, last] => (number(first)?, number(step)?, number(last)?),
        _ => return Err(String::from("too many numbers; usage: seq [FIRST [STEP]] LAST")),
    };
    Sequence::new(first, step, last, width).ok_or_else(|| String::from("the step must not be 0"))
}

//! `$((expression))`: 64-bit integers, with checked operations.

use alloc::format;
use alloc::string::{String, ToString};

/// Maximum nesting of parentheses and signs, so that no input overflows the stack.
const DEPTH: usize = 20;

/// Evaluates an expression. `value` looks up a name. An error is a phrase.
pub fn evaluate(expression: &str, value: &dyn Fn(&str) -> Option<String>) -> Result<i64, String> {
    let mut input = Input { rest: expression, value, depth: 0 };
    let result = input.binary(0)?;
    match input.rest.trim_start() {
        "" => Ok(result),
        rest => Err(format!("unexpected `{rest}`")),
    }
}

struct Input<'a> {
    rest: &'a str,
    value: &'a dyn Fn(&str) -> Option<String>,
    depth: usize,
}

/// Operators by precedence, lowest first; longer operators before their prefixes.
const LEVELS: [&[&str]; 6] = [&["||"], &["&&"], &["==", "!="], &["<=", ">=", "<", ">"], &["+", "-"], &["*", "/", "%"]];

impl<'a> Input<'a> {
    fn binary(&mut self, level: usize) -> Result<i64, String> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.take_operator(operators) {
            let right = self.binary(level + 1)?;
            left = apply(operator, left, right)?;
        }
        Ok(left)
    }

    fn take_operator(&mut self, operators: &[&'static str]) -> Option<&'static str> {
        let rest = self.rest.trim_start();
        let operator = operators.iter().find(|operator| rest.starts_with(**operator))?;
        self.rest = &rest[operator.len()..];
        Some(operator)
    }

    fn unary(&mut self) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err("nested too deeply".to_string());
        }
        let value = self.unary_inner();
        self.depth -= 1;
        value
    }

    fn unary_inner(&mut self) -> Result<i64, String> {
        let rest = self.rest.trim_start();
        let Some(first) = rest.chars().next() else { return Err("expected a number at the end".to_string()) };
        let after = &rest[first.len_utf8()..];
        match first {
            '-' => {
                self.rest = after;
                self.unary()?.checked_neg().ok_or_else(too_large)
            }
            '!' => {
                self.rest = after;
                Ok(i64::from(self.unary()? == 0))
            }
            '(' => {
                self.rest = after;
                let value = self.binary(0)?;
                self.rest = self.rest.trim_start().strip_prefix(')').ok_or("missing `)`")?;
                Ok(value)
            }
            _ => self.operand(rest),
        }
    }

    fn operand(&mut self, rest: &'a str) -> Result<i64, String> {
        let (rest, is_name) = rest.strip_prefix('$').map_or((rest, false), |name| (name, true));
        let end = match rest.chars().next() {
            Some('#' | '?') if is_name => 1,
            _ => rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()),
        };
        let (word, after) = rest.split_at(end);
        self.rest = after;
        if word.is_empty() {
            return Err(format!("`{}` is not a number", rest.chars().take(1).collect::<String>()));
        }
        // `$1` is the first parameter, `1` the number.
        if word.starts_with(|c: char| c.is_ascii_digit()) && !is_name {
            return word.parse().map_err(|_| format!("`{word}` is not a 64-bit integer"));
        }
        let text = (self.value)(word).ok_or_else(|| format!("`{word}` is not set"))?;
        text.trim().parse().map_err(|_| format!("`{word}` is `{text}`, which is not a 64-bit integer"))
    }
}

fn apply(operator: &str, left: i64, right: i64) -> Result<i64, String> {
    let value = match operator {
        "||" => return Ok(i64::from(left != 0 || right != 0)),
        "&&" => return Ok(i64::from(left != 0 && right != 0)),
        "==" => return Ok(i64::from(left == right)),
        "!=" => return Ok(i64::from(left != right)),
        "<=" => return Ok(i64::from(left <= right)),
        ">=" => return Ok(i64::from(left >= right)),
        "<" => return Ok(i64::from(left < right)),
        ">" => return Ok(i64::from(left > right)),
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" | "%" if right == 0 => return Err("division by zero".to_string()),
        "/" => left.checked_div(right),
        _ => left.checked_rem(right),
    };
    value.ok_or_else(too_large)
}

fn too_large() -> String {
    "result exceeds 64 bits".to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_their_values() {
        let value = |name: &str| match name {
            "x" => Some("7".to_string()),
            "1" => Some("40".to_string()),
            _ => None,
        };
        for (expression, expected) in [
            ("1 + 2 * 3", Ok(7)),
            ("(1+2)*3", Ok(9)),
            ("-x + 1", Ok(-6)),
            ("$x % 4 == 3 && !0", Ok(1)),
            ("$1 + 2", Ok(42)),
            ("10 / 0", Err("division by zero")),
            ("y", Err("`y` is not set")),
            ("1 +", Err("expected a number at the end")),
            ("(1", Err("missing `)`")),
            ("1 2", Err("unexpected `2`")),
            ("9223372036854775807 + 1", Err("result exceeds 64 bits")),
        ] {
            assert_eq!(evaluate(expression, &value), expected.map_err(String::from), "{expression}");
        }
        assert!(evaluate(&"(".repeat(100_000), &value).is_err());
        assert!(evaluate(&"-".repeat(100_000), &value).is_err());
    }
}

//! Formats changes: the normal format, and the unified one that `patch` takes.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::changes::Change;
use crate::text::Text;

const NO_END: &[u8] = b"\\ No newline at end of file\n";

/// Appends changes in the normal format.
pub fn usual(old: &Text, new: &Text, changes: &[Change], out: &mut Vec<u8>) {
    for change in changes {
        let letter = match (change.old.is_empty(), change.new.is_empty()) {
            (true, _) => 'a',
            (_, true) => 'd',
            _ => 'c',
        };
        out.extend_from_slice(format!("{}{letter}{}\n", span(&change.old), span(&change.new)).as_bytes());
        lines(old, change.old.clone(), b"< ", out);
        if letter == 'c' {
            out.extend_from_slice(b"---\n");
        }
        lines(new, change.new.clone(), b"> ", out);
    }
}

fn span(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{}", range.start),
        1 => format!("{}", range.end),
        _ => format!("{},{}", range.start + 1, range.end),
    }
}

/// Appends changes in the unified format with this many lines of context.
pub fn unified(old: &Text, new: &Text, changes: &[Change], context: usize, out: &mut Vec<u8>) {
    let mut rest = changes;
    while let Some(first) = rest.first() {
        let is_near = |pair: &[Change]| pair[1].old.start - pair[0].old.end <= context.saturating_mul(2);
        let count = 1 + rest.windows(2).take_while(|pair| is_near(pair)).count();
        let (group, others) = rest.split_at(count);
        rest = others;
        let Some(last) = group.last() else { return };
        let before = context.min(first.old.start);
        let after = context.min(old.len() - last.old.end);
        let shown_old = first.old.start - before..last.old.end + after;
        let shown_new = first.new.start - before..last.new.end + after;
        out.extend_from_slice(format!("@@ -{} +{} @@\n", counted(&shown_old), counted(&shown_new)).as_bytes());
        let mut at = shown_old.start;
        for change in group {
            lines(old, at..change.old.start, b" ", out);
            lines(old, change.old.clone(), b"-", out);
            lines(new, change.new.clone(), b"+", out);
            at = change.old.end;
        }
        lines(old, at..shown_old.end, b" ", out);
    }
}

fn counted(range: &Range<usize>) -> String {
    match range.len() {
        1 => format!("{}", range.start + 1),
        0 => format!("{},0", range.start),
        count => format!("{},{count}", range.start + 1),
    }
}

fn lines(text: &Text, range: Range<usize>, sign: &[u8], out: &mut Vec<u8>) {
    for index in range {
        let (line, has_end) = text.line(index);
        out.extend_from_slice(sign);
        out.extend_from_slice(line);
        out.push(b'\n');
        if !has_end {
            out.extend_from_slice(NO_END);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes;
    use crate::text::{Ignored, number_lines};

    fn shown(old: &str, new: &str, context: Option<usize>) -> String {
        let [old, new] = [old, new].map(|text| Text::new(text.as_bytes().to_vec()));
        let [left, right] = number_lines(&old, &new, Ignored::default());
        let mut out = Vec::new();
        match context {
            None => usual(&old, &new, &changes::of(&left, &right), &mut out),
            Some(context) => unified(&old, &new, &changes::of(&left, &right), context, &mut out),
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn the_usual_form() {
        assert_eq!(shown("a\nb\nc\n", "a\nx\ny\nc\n", None), "2c2,3\n< b\n---\n> x\n> y\n");
        assert_eq!(shown("a\n", "a\nb\n", None), "1a2\n> b\n");
        assert_eq!(shown("a\nb\n", "b\n", None), "1d0\n< a\n");
    }

    #[test]
    fn the_unified_form() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "1\nx\n3\n4\n5\n6\n7\n8\ny\n";
        assert_eq!(shown(old, new, Some(1)), "@@ -1,3 +1,3 @@\n 1\n-2\n+x\n 3\n@@ -8,2 +8,2 @@\n 8\n-9\n+y\n");
        assert_eq!(shown(old, new, Some(3)).matches("@@ -").count(), 1);
        assert_eq!(shown("", "a", Some(3)), "@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n");
    }
}

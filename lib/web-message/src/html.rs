//! Text in HTML.

use core::fmt::{self, Write};

/// A `link` for a page's head: a small picture in the page, so that browsers ask the server for none.
pub const FAVICON: &str = "<link rel=\"icon\" href=\"data:,\">";

/// Text that stands in HTML, between tags or in an attribute with quotes, and means nothing but itself.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => formatter.write_str("&amp;")?,
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '"' => formatter.write_str("&quot;")?,
                '\'' => formatter.write_str("&#39;")?,
                // HTML has no way to say these, not even escaped.
                '\0'..='\x08' | '\x0b' | '\x0e'..='\x1f' | '\x7f' => formatter.write_char('\u{fffd}')?,
                other => formatter.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn nothing_is_a_tag() {
        assert_eq!(Escaped("<b a='\"x\"'>&").to_string(), "&lt;b a=&#39;&quot;x&quot;&#39;&gt;&amp;");
        assert_eq!(Escaped("a\0\x1b\n\u{e4}").to_string(), "a\u{fffd}\u{fffd}\n\u{e4}");
    }
}

//! HTML escaping.

use core::fmt::{self, Write};

/// A `link` element with an inline icon, so that browsers request none from the server.
pub const FAVICON: &str = "<link rel=\"icon\" href=\"data:,\">";

/// Text escaped for HTML content and quoted attributes.
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
                // Not representable in HTML, even escaped.
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

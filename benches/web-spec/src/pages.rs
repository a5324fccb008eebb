//! Pages that embed files.

use alloc::string::String;
use core::fmt::Write;
use core::ops::Range;

use web_application::message::{Escaped, FAVICON, RequestHead};

/// Markers around the advertisement slot of a file.
const AD_BEGINS: &[u8] = b"<!WEB99CAD>";
const AD_ENDS: &[u8] = b"<!/WEB99CAD>";

/// Typical length in bytes of the start of a page and of a picture tag.
const BEGINNING_BYTES: usize = 512;

/// Formats the start of a page: the server and the request.
pub fn beginning(head: &RequestHead) -> String {
    let (peer, path, query) = (Escaped(&head.peer), Escaped(&head.path), Escaped(&head.query));
    let mut page = String::with_capacity(BEGINNING_BYTES);
    page += "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">";
    // Writing to a `String` cannot fail.
    let _ = write!(
        page,
        "{FAVICON}<title>Dynamic GET and POST</title></head><body>\n\
         <p>SERVER_SOFTWARE = web-spec on Singularity\n<p>REMOTE_ADDR = {peer}\n<p>SCRIPT_NAME = {path}\n\
         <p>QUERY_STRING = {query}\n"
    );
    page
}

/// Precedes the content of the file.
pub const BEFORE_FILE: &str = "<pre>\n";
/// End of a page with a file.
pub const AFTER_FILE: &str = "\n</pre></body></html>\n";
/// End of a page without a file.
pub const WITHOUT_FILE: &str = "</body></html>\n";

/// Formats the image tag of an advertisement. The path consists of the program's own words, so that it needs no
/// escaping.
pub fn picture(root: &str, path: &str) -> String {
    let mut tag = String::from("<IMG SRC=\"");
    let _ = write!(tag, "{}/{}\">", Escaped(root.trim_end_matches('/')), Escaped(path));
    tag
}

/// Returns the advertisement slot of a file, including its markers.
pub fn place_of_ad(file: &[u8]) -> Option<Range<usize>> {
    let start = find(file, AD_BEGINS)?;
    let end = start + AD_BEGINS.len() + find(file.get(start + AD_BEGINS.len()..)?, AD_ENDS)? + AD_ENDS.len();
    Some(start..end)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut from = 0;
    loop {
        let at = from + bytes.get(from..)?.iter().position(|byte| *byte == first)?;
        if bytes.get(at..)?.starts_with(wanted) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// Page at `/`.
pub const HELP: &str = "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><link rel=\"icon\" href=\"data:,\">\
<title>web-spec</title></head><body><h1>web-spec</h1>\
<p>Dynamic content after the benchmark SPECweb99. <code>FILE</code> is a path from the root of the files, such as \
<code>dir00000/class1_1</code>.</p><dl>\
<dt><code>GET get?file=FILE&amp;...</code></dt><dd>what was asked, and the file in a page</dd>\
<dt><code>GET ad?file=FILE</code></dt><dd>the same with an advertisement for the visitor of the cookie \
<code>my_cookie=user_id=N&amp;last_ad=N</code></dd>\
<dt><code>POST post</code> with <code>urlroot dir class num client</code></dt><dd>a line more in the log, and the \
file</dd>\
<dt><code>GET cgi?file=FILE</code></dt><dd>as <code>get</code>, by a process of its own</dd>\
<dt><code>GET static/FILE</code></dt><dd>the file alone</dd>\
<dt><code>GET command/fetch</code></dt><dd>the log</dd>\
<dt><code>POST command/reset</code> with <code>visitors</code> and <code>day</code></dt><dd>an empty log, and new \
tables of visitors and advertisements</dd>\
</dl></body></html>\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_cannot_become_a_tag() {
        let head = RequestHead::parse(b"GET\n/<i>\n<script>\n::1\n").expect("a head");
        let page = beginning(&head);
        assert!(
            page.contains("QUERY_STRING = &lt;script&gt;\n") && page.contains("SCRIPT_NAME = /&lt;i&gt;\n"),
            "{page}"
        );
    }

    #[test]
    fn the_place_of_an_ad_is_found() {
        let file = b"..<!WEB99CAD><IMG SRC=\"/file_set/dir00000/class0_0\"><!/WEB99CAD>...";
        assert_eq!(place_of_ad(file), Some(2..file.len() - 3));
        for none in [&b""[..], b"<!WEB99CAD>", b"<!/WEB99CAD><!WEB99CAD>", b"<<<!WEB99CA", b"<!/WEB99CAD>"] {
            assert_eq!(place_of_ad(none), None);
        }
        assert_eq!(place_of_ad(b"<<!WEB99CAD><!/WEB99CAD>"), Some(1..24));
    }

    #[test]
    fn a_picture_is_a_tag() {
        assert_eq!(picture("/files/", "dir00000/class0_1"), "<IMG SRC=\"/files/dir00000/class0_1\">");
    }
}

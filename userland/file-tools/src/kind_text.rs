//! Kinds and permissions as `ls` shows them.

use alloc::string::String;

use contracts::directory::NodeKind;

/// Returns the suffix that marks a kind, as `ls -F` does.
pub fn mark(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Directory | NodeKind::Mount => "/",
        NodeKind::Link => "@",
        NodeKind::File | NodeKind::Service | NodeKind::Other => "",
    }
}

/// Formats kind and permissions as ten letters: `drwxr-xr-x`.
pub fn mode(kind: NodeKind, permissions: u32) -> String {
    let mut text = String::from(match kind {
        NodeKind::Directory => "d",
        NodeKind::Mount => "m",
        NodeKind::File => "-",
        NodeKind::Link => "l",
        NodeKind::Service => "s",
        NodeKind::Other => "?",
    });
    // Owner, group, others; set-user, set-group and sticky share the letter of execution.
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = permissions >> shift;
        text.push(if bits & 4 == 0 { '-' } else { 'r' });
        text.push(if bits & 2 == 0 { '-' } else { 'w' });
        text.push(match (permissions & special != 0, bits & 1 != 0) {
            (true, true) => letter,
            (true, false) => letter.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_read_as_on_unix() {
        assert_eq!(mode(NodeKind::Directory, 0o755), "drwxr-xr-x");
        assert_eq!(mode(NodeKind::File, 0o640), "-rw-r-----");
        assert_eq!(mode(NodeKind::File, 0o4751), "-rwsr-x--x");
        assert_eq!(mode(NodeKind::Directory, 0o3766), "drwxrwSrwT");
    }
}

//! The patterns of access rules: `*` stands for any run of characters without `/`, `**` for any run.

/// Returns whether the whole text matches the pattern.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    // Backtracking state: the last star of each kind and the length of its match so far. After a mismatch the star
    // absorbs one more character; a `**` takes over when a `*` reaches a `/`.
    let mut single: Option<(usize, usize)> = None;
    let mut double: Option<(usize, usize)> = None;
    let (mut at, mut read) = (0, 0);
    loop {
        if pattern[at..].starts_with(b"**") {
            at += 2;
            double = Some((at, read));
            single = None;
            continue;
        }
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            single = Some((at, read));
            continue;
        }
        match (pattern.get(at), text.get(read)) {
            (None, None) => return true,
            (Some(wanted), Some(found)) if wanted == found => {
                at += 1;
                read += 1;
                continue;
            }
            _ => {}
        }
        if let Some((after, from)) = single.filter(|&(_, from)| text.get(from).is_some_and(|&byte| byte != b'/')) {
            (at, read) = (after, from + 1);
            single = Some((after, from + 1));
        } else if let Some((after, from)) = double.filter(|&(_, from)| from < text.len()) {
            (at, read) = (after, from + 1);
            double = Some((after, from + 1));
            single = None;
        } else {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_stand_for_what_they_say() {
        for (pattern, text, expected) in [
            ("/dev/disk0", "/dev/disk0", true),
            ("/dev/disk0", "/dev/disk", false),
            ("/dev/*", "/dev/disk0", true),
            ("/dev/*", "/dev/disk0/part", false),
            ("/dev/**", "/dev/disk0/part", true),
            ("**", "", true),
            ("", "", true),
            ("", "a", false),
            ("*.singularity", "shell.singularity", true),
            ("*.singularity", "shell.singularity.evil", false),
            ("**/b*/c", "/a/b/b1/c", true),
            ("**/b*/c", "/a/b/b1/d/c", false),
            ("*a*b", "xxaxxbxxab", true),
            ("a*", "b", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}

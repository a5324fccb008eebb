//! Cases of independent conformance sets, from the files `*.cases` (see `README.md` there).

/// A case.
pub struct Case {
    /// Its number in its set.
    pub name: String,
    /// The outcome according to the set.
    pub set: String,
    /// Required outcomes for a server: see `README.md`.
    pub expected: Vec<Expected>,
    /// The reason of a deviation; empty if there is none.
    pub why: String,
    /// The input.
    pub bytes: Vec<u8>,
}

/// An outcome for the next bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A request with this method and this many bytes of content.
    Request(String, usize),
    /// A head with this method, and incomplete content.
    ContentWaits(String),
    /// A head with this method, and wrongly framed content.
    ContentBad(String),
    /// An incomplete head.
    Waits,
    /// The connection is closed; further bytes are not read.
    Closes,
    /// A response with this status, and the end of the connection.
    Refused(u16),
}

/// The cases of a file.
pub fn read(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("== ") {
            let (set, why) = (String::new(), String::new());
            cases.push(Case { name: name.into(), set, expected: Vec::new(), why, bytes: Vec::new() });
            continue;
        }
        let case = cases.last_mut().unwrap_or_else(|| panic!("`{line}` belongs to no case"));
        match line.split_once(": ") {
            Some(("set", text)) if case.set.is_empty() => case.set = text.into(),
            Some(("expect", text)) if case.expected.is_empty() => {
                case.expected = text.split(", ").map(expected).collect()
            }
            Some(("why", text)) if case.why.is_empty() && case.bytes.is_empty() => case.why = text.into(),
            _ => unescape(line, &mut case.bytes),
        }
    }
    cases
}

fn expected(text: &str) -> Expected {
    match text.split_once(' ') {
        Some((method, "waits")) => Expected::ContentWaits(method.into()),
        Some((method, "bad")) => Expected::ContentBad(method.into()),
        Some((method, count)) => Expected::Request(method.into(), count.parse().expect("a number of bytes")),
        None if text == "waits" => Expected::Waits,
        None if text == "closes" => Expected::Closes,
        None => Expected::Refused(text.parse().unwrap_or_else(|_| panic!("`{text}` is no expectation"))),
    }
}

fn unescape(line: &str, into: &mut Vec<u8>) {
    let mut rest = line.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            into.push(*first);
            continue;
        }
        let (byte, length) = match after {
            [b'r', ..] => (b'\r', 1),
            [b'n', ..] => (b'\n', 1),
            [b't', ..] => (b'\t', 1),
            [b'\\', ..] => (b'\\', 1),
            [b'x', ..] => {
                (u8::from_str_radix(&String::from_utf8_lossy(&after[1..3]), 16).expect("two digits of a byte"), 3)
            }
            _ => panic!("`{line}` has an escape that is none"),
        };
        into.push(byte);
        rest = &after[length..];
    }
}

//! A short form of the fuzz target `http_requests`: requests of the conformance sets, damaged at random.

#[path = "conformance/cases.rs"]
#[allow(dead_code)]
mod cases;
#[path = "conformance/fuzzed.rs"]
mod fuzzed;
#[path = "conformance/reading.rs"]
mod reading;

use proptest::prelude::*;

/// Tokens of interest to an HTTP parser.
const WORDS: [&str; 16] = [
    "\r\n",
    "\n",
    "\r",
    "\0",
    " ",
    ":",
    ";",
    ",",
    "0",
    "%2e",
    "/..",
    "Content-Length: 3\r\n",
    "Range: bytes=0-1,-2\r\n",
    "Transfer-Encoding: chunked\r\n",
    "\"",
    "ffffffffffffffff",
];

fn requests() -> Vec<Vec<u8>> {
    let sets = [include_str!("conformance/llhttp.cases"), include_str!("conformance/gunicorn.cases")];
    sets.into_iter().flat_map(cases::read).map(|case| case.bytes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn damaged_requests_break_nothing(
        first in any::<u8>(),
        chosen in any::<prop::sample::Index>(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), 0..WORDS.len(), 0..4usize), 0..4),
    ) {
        thread_local!(static REQUESTS: Vec<Vec<u8>> = requests());
        let mut bytes = REQUESTS.with(|requests| requests[chosen.index(requests.len())].clone());
        for (place, word, cut) in damage {
            let at = place.index(bytes.len() + 1);
            let end = (at + cut).min(bytes.len());
            bytes.splice(at..end, WORDS[word].bytes());
        }
        bytes.insert(0, first);
        fuzzed::run(&bytes);
    }
}

/// Seed inputs of the fuzz target, findings among them.
#[test]
fn inputs_of_the_fuzz_target_break_nothing() {
    for name in ["absolute", "bare-line-feed-and-version", "chunked", "pipelined"] {
        let path = format!("{}/tests/conformance/inputs/{name}", env!("CARGO_MANIFEST_DIR"));
        fuzzed::run(&std::fs::read(&path).expect("an input can be read"));
    }
    // A bad line end among too many fields.
    let fields = "X: y\r\n".repeat(99);
    for last in ["Y: z\n", "Y: z\r\nY: z\n", "Y: z\r\nY: z\r\nY: z\n"] {
        fuzzed::run(format!("\x05GET / HTTP/1.1\r\n{fields}{last}\r\n").as_bytes());
    }
}

//! Full-screen programs: pages are shown and left, keys go to the program, other output is deferred.

use terminal::page::Page;
use terminal::{Reading, Signal, Terminal};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A terminal that shows a page, and the bytes written to it so far.
fn with_page() -> (Terminal, String) {
    let mut terminal = Terminal::new(true, 80);
    let mut out = Vec::new();
    assert!(terminal.takes_pages());
    terminal.show_page(Page::new(b"\x0cone\ntwo", 80, 24), &mut out);
    (terminal, text(&out))
}

#[test]
fn a_page_takes_the_screen_and_gives_it_back() {
    let (mut terminal, shown) = with_page();
    assert!(shown.starts_with("\x1b[?1049h") && shown.contains("one") && shown.contains("two"), "{shown:?}");
    let mut out = Vec::new();
    terminal.show_page(Page::new(b"\x0cone\n2", 80, 24), &mut out);
    assert!(!text(&out).contains("one") && text(&out).contains('2'), "{:?}", text(&out));
    out.clear();
    terminal.end_page(&mut out);
    assert!(text(&out).contains("\x1b[?1049l"));
    out.clear();
    terminal.end_page(&mut out);
    assert!(out.is_empty(), "there is none any more");
}

#[test]
fn other_output_waits_for_the_end_of_the_page() {
    let (mut terminal, _) = with_page();
    let mut out = Vec::new();
    terminal.output(b"from beside\n", &mut out);
    assert!(out.is_empty());
    terminal.output(&vec![b'x'; 1 << 20], &mut out);
    terminal.end_page(&mut out);
    let shown = text(&out);
    assert!(shown.contains("\x1b[?1049lfrom beside\r\n"), "{shown:?}");
    assert!(out.len() < 70 * 1024, "what waits has a bound");
}

#[test]
fn keys_are_the_programs_while_it_shows_a_page() {
    let (mut terminal, _) = with_page();
    assert_eq!(terminal.input(b"ab\x03\x1ac"), None, "Ctrl-C and Ctrl-Z are keys");
    terminal.begin_bytes();
    assert_eq!(terminal.bytes(100).as_deref(), Some(&b"ab\x03\x1ac"[..]));
    terminal.end_page(&mut Vec::new());
    assert_eq!(terminal.input(b"ab\x03"), Some(Signal::Interrupt), "and an interrupt again afterwards");
}

#[test]
fn a_program_that_does_not_read_its_keys_can_be_interrupted() {
    let (mut terminal, _) = with_page();
    assert_eq!(terminal.input(b"\x03x"), None);
    assert_eq!(terminal.input(b"\x03"), None);
    assert_eq!(terminal.input(b"\x03"), Some(Signal::Interrupt), "the third that it leaves unread");
    assert_eq!(terminal.input(b"\x03"), None, "they are counted anew");
    terminal.begin_bytes();
    assert_eq!(terminal.bytes(100).as_deref(), Some(&b"\x03"[..]));
    assert_eq!(terminal.input(b"\x03\x03"), None);
}

#[test]
fn no_page_covers_a_line_that_is_edited() {
    let mut terminal = Terminal::new(true, 80);
    let mut out = Vec::new();
    for reading in [Reading::Text, Reading::Command, Reading::Secret] {
        terminal.begin_line(reading, "> ", &mut out);
        assert!(!terminal.takes_pages(), "{reading:?}");
        terminal.stop_reading(&mut out);
    }
    assert!(terminal.takes_pages());
    assert!(!Terminal::new(false, 80).takes_pages(), "a stream has no screen");
}

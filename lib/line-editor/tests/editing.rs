//! The editor against a model of a terminal's screen.

mod screen;

use line_editor::{Candidate, Editor, Event, Span, Style};
use proptest::prelude::*;
use screen::Screen;

struct Session {
    editor: Editor,
    screen: Screen,
}

impl Session {
    fn new(columns: usize) -> Session {
        let mut session = Session { editor: Editor::new(columns), screen: Screen::new(columns, 12) };
        session.begin();
        session
    }

    fn begin(&mut self) {
        let mut out = Vec::new();
        self.editor.begin("> ", &mut out);
        self.screen.write(&out);
    }

    fn keys(&mut self, keys: &str) -> Option<Event> {
        self.bytes(keys.as_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Option<Event> {
        let mut out = Vec::new();
        let (taken, event) = self.editor.feed(bytes, &mut out);
        self.screen.write(&out);
        assert!(event.is_some() || taken == bytes.len());
        event
    }

    fn enter(&mut self, line: &str) {
        assert_eq!(self.keys(&format!("{line}\r")), Some(Event::Line(line.to_string())));
        self.editor.history_mut().add(line);
        self.begin();
    }

    fn line(&mut self) -> String {
        match self.keys("\r") {
            Some(Event::Line(line)) => line,
            other => panic!("{other:?}"),
        }
    }
}

fn candidate(text: &str) -> Candidate {
    Candidate { text: text.to_string(), label: text.to_string(), suffix: " " }
}

#[test]
fn typing_shows_the_line_behind_the_prompt() {
    let mut session = Session::new(20);
    assert_eq!(session.keys("echo hi"), None);
    assert_eq!(session.screen.rows(), ["> echo hi"]);
    assert_eq!(session.screen.cursor(), (0, 9));
    assert_eq!(session.keys("\r"), Some(Event::Line("echo hi".to_string())));
    assert_eq!(session.screen.cursor(), (1, 0));
    assert_eq!(session.screen.colours, 0);
}

#[test]
fn what_follows_an_event_is_left_to_the_owner() {
    let mut editor = Editor::new(80);
    let mut out = Vec::new();
    editor.begin("", &mut out);
    assert_eq!(editor.feed(b"one\rtwo\r", &mut out), (4, Some(Event::Line("one".to_string()))));
}

#[test]
fn motions_and_changes_in_the_middle() {
    let cases: &[(&str, &str)] = &[
        ("bc\x01a", "abc"),
        ("ac\x1b[Db", "abc"),
        ("ac\x02b\x06d", "abcd"),
        ("one two\x1b[1;5D_", "one _two"),
        ("one two\x1bb\x1bb\x1bf!", "one! two"),
        ("abc\x7f\x7f", "a"),
        ("abc\x1b[H\x1b[3~", "bc"),
        ("abc\x01\x04", "bc"),
        ("one two three\x17\x17", "one "),
        ("one two\x15", ""),
        ("one two\x01\x0b\x19\x19", "one twoone two"),
        ("a b c\x17\x17\x19", "a b c"),
        ("one\x15two\x15\x19\x1by", "one"),
        ("ab\x14", "ba"),
        ("abc\x02\x14", "acb"),
        ("one two\x1f", "one "),
        ("path/name\x1b\x7f", "path/"),
        ("\x1b[200~a\rb\x03\x1b[201~", "a\nb"),
    ];
    for (keys, expected) in cases {
        let mut session = Session::new(40);
        assert_eq!(session.keys(keys), None, "{keys:?}");
        assert_eq!(session.line(), *expected, "{keys:?}");
    }
}

#[test]
fn a_long_line_wraps_and_is_edited_over_its_rows() {
    let mut session = Session::new(10);
    session.keys("abcdefgh");
    // The row is exactly full: the cursor is on the next one.
    assert_eq!(session.screen.cursor(), (1, 0));
    session.keys("ijklmnopqrstuv");
    assert_eq!(session.screen.rows(), ["> abcdefgh", "ijklmnopqr", "stuv"]);
    session.keys("\x01X");
    assert_eq!(session.screen.rows(), ["> Xabcdefg", "hijklmnopq", "rstuv"]);
    assert_eq!(session.screen.cursor(), (0, 3));
    session.keys("\x0b");
    assert_eq!(session.screen.rows(), ["> X"]);
}

#[test]
fn wide_and_combining_characters_take_their_columns() {
    let mut session = Session::new(10);
    session.keys("1234567漢");
    assert_eq!(session.screen.rows(), ["> 1234567", "漢"]);
    session.keys("\x1b[D\x1b[Dx");
    assert_eq!(session.screen.rows(), ["> 123456x7", "漢"]);
    let mut session = Session::new(20);
    session.keys("e\u{301}a\x7f\x7f");
    assert_eq!(session.line(), "");
}

#[test]
fn history_goes_up_and_down_and_keeps_the_draft() {
    let mut session = Session::new(40);
    session.enter("first");
    session.enter("second");
    session.enter("second");
    session.keys("draft\x1b[A");
    assert_eq!(session.screen.rows().last().map(String::as_str), Some("> second"));
    session.keys("\x1b[A\x1b[A");
    assert_eq!(session.screen.rows().last().map(String::as_str), Some("> first"));
    assert_eq!(session.screen.bells, 1);
    session.keys("\x1b[B\x1b[B");
    assert_eq!(session.line(), "draft");
}

#[test]
fn incremental_search_finds_older_lines() {
    let mut session = Session::new(60);
    for line in ["cat one", "dir", "cat two"] {
        session.enter(line);
    }
    session.keys("\x12cat");
    assert_eq!(session.screen.rows().last().map(String::as_str), Some("(search `cat`): cat two"));
    session.keys("\x12");
    assert_eq!(session.screen.rows().last().map(String::as_str), Some("(search `cat`): cat one"));
    session.keys("\x12");
    assert_eq!(session.screen.rows().last().map(String::as_str), Some("(nothing has `cat`): cat one"));
    assert_eq!(session.keys("\x05!\r"), Some(Event::Line("cat one!".to_string())));
    session.begin();
    session.keys("draft\x12dir\x07");
    assert_eq!(session.line(), "draft");
}

#[test]
fn control_c_cancels_and_control_d_ends() {
    let mut session = Session::new(40);
    assert_eq!(session.keys("abc\x03"), Some(Event::Cancelled));
    assert_eq!(session.screen.rows(), ["> abc^C"]);
    session.begin();
    assert_eq!(session.keys("\x04"), Some(Event::EndOfInput));
}

#[test]
fn completion_inserts_what_is_certain_and_lists_the_rest() {
    let mut session = Session::new(40);
    assert_eq!(session.keys("cat al\t"), Some(Event::CompletionWanted { line: "cat al".to_string(), cursor: 6 }));
    let answer = |session: &mut Session, candidates: &[Candidate]| {
        let mut out = Vec::new();
        session.editor.complete(4, candidates, &mut out);
        session.screen.write(&out);
    };
    let both = [candidate("alpha1"), candidate("alpha2")];
    answer(&mut session, &both);
    assert_eq!(session.screen.rows(), ["> cat alpha"]);
    session.keys("\t");
    answer(&mut session, &both);
    assert_eq!(session.screen.rows(), ["> cat alpha", "alpha1  alpha2", "> cat alpha"]);
    session.keys("2\t");
    answer(&mut session, &[candidate("alpha2")]);
    session.keys("\t");
    answer(&mut session, &[]);
    assert_eq!(session.screen.bells, 1);
    assert_eq!(session.line(), "cat alpha2 ");
}

#[test]
fn other_output_goes_above_the_line() {
    let mut session = Session::new(10);
    session.keys("abcdefghijk\x01");
    let mut out = Vec::new();
    session.editor.hide(&mut out);
    out.extend_from_slice(b"job done\r\n");
    session.editor.show(&mut out);
    session.screen.write(&out);
    assert_eq!(session.screen.rows(), ["job done", "> abcdefgh", "ijk"]);
    assert_eq!(session.screen.cursor(), (1, 2));
}

#[test]
fn colours_only_when_asked_for() {
    let mut session = Session::new(40);
    session.editor.set_colours(Some(|line| vec![Span { start: 0, end: line.len().min(3), style: Style::Command }]));
    session.keys("cat x");
    assert!(session.screen.colours > 0);
    assert_eq!(session.screen.rows(), ["> cat x"]);
    session.editor.set_plain();
    session.screen.colours = 0;
    session.keys("\x01y");
    assert_eq!(session.screen.colours, 0);
    assert_eq!(session.line(), "ycat x");
}

/// Returns the expected screen for a line, computed independently of the editor.
fn expected_rows(text: &str, columns: usize) -> Vec<String> {
    let mut screen = Screen::new(columns, 12);
    screen.write(text.as_bytes());
    screen.rows()
}

proptest! {
    #[test]
    fn no_input_panics_or_sends_control_characters(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8), columns in 0usize..30) {
        let mut editor = Editor::new(columns);
        let mut out = Vec::new();
        editor.begin("> ", &mut out);
        for chunk in chunks {
            let mut rest = &chunk[..];
            while !rest.is_empty() {
                let (taken, event) = editor.feed(rest, &mut out);
                rest = &rest[taken..];
                match event {
                    None => prop_assert!(rest.is_empty()),
                    Some(Event::CompletionWanted { cursor, .. }) => editor.complete(cursor, &[candidate("a"), candidate("b")], &mut out),
                    Some(_) => editor.begin("> ", &mut out),
                }
            }
        }
        Screen::new(columns.max(8), 40).write(&out);
    }

    #[test]
    fn the_screen_always_shows_the_line(steps in prop::collection::vec((0u8..12, "[a-z漢 ]{1,3}"), 0..40)) {
        let mut session = Session::new(10);
        let mut length = 0;
        for (step, text) in steps {
            let keys = match step {
                0 => "\x1b[D",
                1 => "\x1b[C",
                2 => "\x7f",
                3 => "\x01",
                4 => "\x05",
                5 => "\x17",
                6 => "\x19",
                7 => "\x1f",
                8 => "\x14",
                _ if length < 30 => &text[..],
                _ => "\x15",
            };
            session.keys(keys);
            let mut probe = session.editor.clone();
            let (_, event) = probe.feed(b"\r", &mut Vec::new());
            let Some(Event::Line(line)) = event else { panic!("Enter gives the line") };
            length = line.chars().count();
            // Eleven rows fit; a line that is longer scrolls, which this comparison leaves out.
            prop_assume!(length < 50);
            prop_assert_eq!(session.screen.rows(), expected_rows(&format!("> {line}"), 10));
        }
    }
}

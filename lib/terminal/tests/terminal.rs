//! Terminal logic, without a machine.

use terminal::{LineEvent, Reading, Signal, TYPED_AHEAD_BYTES, Terminal};

fn shown(terminal: &mut Terminal, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    terminal.output(bytes, &mut out);
    out
}

#[test]
fn a_stream_gets_no_byte_that_no_program_wrote() {
    let mut terminal = Terminal::new(false, 0);
    let mut out = Vec::new();
    terminal.begin_line(Reading::Command, "> ", &mut out);
    assert_eq!(terminal.line_event(&mut out), None);
    terminal.input(b"one\ntw");
    assert_eq!(terminal.line_event(&mut out), Some(LineEvent::Line(b"one".to_vec())));
    terminal.begin_line(Reading::Command, "> ", &mut out);
    assert_eq!(terminal.line_event(&mut out), None);
    terminal.input(b"o\x03");
    terminal.input(b"");
    assert_eq!(terminal.line_event(&mut out), Some(LineEvent::Line(b"two\x03".to_vec())));
    assert_eq!(terminal.line_event(&mut out), Some(LineEvent::EndOfInput));
    assert_eq!(out, b"");
    assert_eq!(shown(&mut terminal, b"\x1b[31m\0\xff\n"), b"\x1b[31m\0\xff\n");
}

#[test]
fn output_does_not_steer_a_terminal() {
    let mut terminal = Terminal::new(true, 80);
    assert_eq!(shown(&mut terminal, b"a\x1b[2Jb\tc\n"), b"a^[[2Jb\tc\r\n");
    assert_eq!(shown(&mut terminal, b"\xc2"), b"");
    assert_eq!(shown(&mut terminal, b"\x9b31m"), b"^?31m");
    assert_eq!(shown(&mut terminal, "é§漢".as_bytes()), "é§漢".as_bytes());
    assert_eq!(shown(&mut terminal, b"\x0cpage"), b"\x1b[H\x1b[Jpage");
}

#[test]
fn a_carriage_return_begins_the_row_anew() {
    let mut terminal = Terminal::new(true, 80);
    assert_eq!(shown(&mut terminal, b"1 %\r2 %\r \r"), b"1 %\r\x1b[K2 %\r\x1b[K \r");
    assert_eq!(shown(&mut terminal, b"done\n"), b"\x1b[Kdone\r\n");
    // Lines may end as on other systems.
    assert_eq!(shown(&mut terminal, b"a\r"), b"a\r");
    assert_eq!(shown(&mut terminal, b"\nb\r\n"), b"\r\nb\r\r\n");
    // A read starts in an empty row.
    assert_eq!(shown(&mut terminal, b"half\r"), b"half\r");
    let mut out = Vec::new();
    terminal.begin_line(Reading::Text, "", &mut out);
    assert!(out.starts_with(b"\x1b[K") && !out.starts_with(b"\x1b[K\r\n"), "{out:?}");
}

#[test]
fn control_c_while_nothing_is_read_forgets_what_was_typed() {
    let mut terminal = Terminal::new(true, 80);
    assert_eq!(terminal.input(b"abc"), None);
    assert_eq!(terminal.input(b"d\x03ef\r"), Some(Signal::Interrupt));
    let mut out = Vec::new();
    terminal.begin_line(Reading::Text, "", &mut out);
    assert_eq!(terminal.line_event(&mut out), Some(LineEvent::Line(b"ef".to_vec())));
    // While a line is read, only the line is cancelled.
    terminal.begin_line(Reading::Text, "", &mut out);
    assert_eq!(terminal.input(b"x\x03"), None);
    assert_eq!(terminal.line_event(&mut out), Some(LineEvent::Interrupted));
}

#[test]
fn control_z_is_a_signal_unless_a_command_is_edited() {
    let mut terminal = Terminal::new(true, 80);
    assert_eq!(terminal.input(b"abc\x1adef"), Some(Signal::Stop));
    let mut out = Vec::new();
    terminal.begin_line(Reading::Command, "> ", &mut out);
    assert_eq!(terminal.input(b"\x1ag\r"), None);
    assert_eq!(terminal.line_event(&mut out), Some(LineEvent::Line(b"defg".to_vec())));
    terminal.begin_line(Reading::Text, "", &mut out);
    assert_eq!(terminal.input(b"x\x1a"), Some(Signal::Stop));
    assert_eq!(terminal.line_event(&mut out), None);
    // The last of several counts; a byte stream has none.
    terminal.stop_reading(&mut out);
    assert_eq!(terminal.input(b"\x1a\x03\x1a"), Some(Signal::Stop));
    assert_eq!(terminal.input(b"\x1a\x03"), Some(Signal::Interrupt));
    assert_eq!(Terminal::new(false, 0).input(b"\x1a\x03"), None);
    out.clear();
    terminal.show_signal(Signal::Stop, &mut out);
    assert_eq!(out, b"^Z\r\n");
}

#[test]
fn typing_ahead_is_bounded_but_control_c_is_seen() {
    let mut terminal = Terminal::new(true, 80);
    assert_eq!(terminal.input(&[b'x'; TYPED_AHEAD_BYTES]), None);
    assert_eq!(terminal.input(b"y\r"), None);
    assert_eq!(terminal.input(b"\x03"), Some(Signal::Interrupt));
    terminal.input(b"z\r");
    let mut out = Vec::new();
    terminal.begin_line(Reading::Text, "", &mut out);
    assert_eq!(terminal.line_event(&mut out), Some(LineEvent::Line(b"z".to_vec())));
    let mut stream = Terminal::new(false, 0);
    stream.input(&[b'x'; TYPED_AHEAD_BYTES]);
    assert!(!stream.has_room());
}

#[test]
fn output_goes_above_the_line_that_is_edited() {
    let mut terminal = Terminal::new(true, 80);
    let mut out = Vec::new();
    terminal.begin_line(Reading::Command, "> ", &mut out);
    let out = shown(&mut terminal, b"job");
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("job\r\n"), "{text:?}");
    assert!(text.contains("> "), "{text:?}");
}

#[test]
fn a_prompt_begins_a_row_of_its_own() {
    let mut terminal = Terminal::new(true, 80);
    shown(&mut terminal, b"no line end");
    let mut out = Vec::new();
    terminal.begin_line(Reading::Command, "> ", &mut out);
    assert!(out.starts_with(b"\r\n"));
}

#[test]
fn candidates_are_listed_by_their_last_part() {
    let mut terminal = Terminal::new(true, 80);
    let mut out = Vec::new();
    terminal.begin_line(Reading::Text, "", &mut out);
    terminal.input(b"cat /fs/a\t");
    assert_eq!(terminal.line_event(&mut out), Some(LineEvent::Complete { text: "cat /fs/a".into(), cursor: 9 }));
    out.clear();
    terminal.complete(4, ["/fs/ab ", "/fs/ac/"].into_iter(), &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("ab   ac/"), "{text:?}");
    let mut out = Vec::new();
    terminal.input(b"b\t");
    assert!(matches!(terminal.line_event(&mut out), Some(LineEvent::Complete { .. })));
    terminal.complete(4, ["/fs/ab "].into_iter(), &mut out);
    terminal.input(b"\r");
    assert_eq!(terminal.line_event(&mut out), Some(LineEvent::Line(b"cat /fs/ab ".to_vec())));
}

#[test]
fn a_passphrase_is_neither_shown_nor_kept() {
    let mut terminal = Terminal::new(true, 80);
    let mut out = Vec::new();
    terminal.begin_line(Reading::Secret, "Passphrase: ", &mut out);
    terminal.input(b"open sesa");
    assert_eq!(terminal.line_event(&mut out), None);
    // Program output meanwhile goes above the prompt.
    out.extend(shown(&mut terminal, b"a note"));
    terminal.input(b"me\rnext");
    assert_eq!(terminal.line_event(&mut out), Some(LineEvent::Line(b"open sesame".to_vec())));
    assert_eq!(String::from_utf8(out).unwrap(), "Passphrase: \r\x1b[Ka note\r\nPassphrase: \r\n");
    // Type-ahead goes to the next line, and neither history nor kill ring has the passphrase.
    let mut out = Vec::new();
    terminal.begin_line(Reading::Command, "> ", &mut out);
    terminal.input(b"\x15\x19\x1b[A");
    assert_eq!(terminal.line_event(&mut out), None);
    assert!(!String::from_utf8(out).unwrap().contains("sesame"));
}

#[test]
fn a_passphrase_of_a_stream_is_a_line() {
    let mut terminal = Terminal::new(false, 0);
    let mut out = Vec::new();
    terminal.begin_line(Reading::Secret, "Passphrase: ", &mut out);
    terminal.input(b"open sesame\nnext\n");
    assert_eq!(terminal.line_event(&mut out), Some(LineEvent::Line(b"open sesame".to_vec())));
    assert_eq!(out, b"");
}

#[test]
fn a_passphrase_can_be_given_up_and_taken_over() {
    let mut terminal = Terminal::new(true, 80);
    for (typed, event) in [(&b"ab\x03"[..], LineEvent::Interrupted), (b"\x04", LineEvent::EndOfInput)] {
        let mut out = Vec::new();
        terminal.begin_line(Reading::Secret, "", &mut out);
        terminal.input(typed);
        assert_eq!(terminal.line_event(&mut out), Some(event));
    }
    let mut out = Vec::new();
    terminal.begin_line(Reading::Secret, "Passphrase: ", &mut out);
    terminal.stop_reading(&mut out);
    assert_eq!(terminal.reading(), Reading::Nothing);
    assert!(out.ends_with(b"\r\n"));
}

//! Rendering of diagnostics, in the style of rustc.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::{Code, Diagnostic, SourceFile};

/// Whether to use terminal colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// For a terminal.
    Always,
    /// For files, and for other tools' error messages.
    Never,
}

/// Renders diagnostics, separated by empty lines: code, sentence, source lines with carets, and remedy. The text cannot
/// move a terminal's cursor.
pub fn render<C: Code>(diagnostics: &[Diagnostic<C>], files: &[SourceFile], colours: Colours) -> String {
    let renderer = match colours {
        Colours::Always => Renderer::styled(),
        Colours::Never => Renderer::plain(),
    };
    let texts: Vec<String> = files.iter().map(|file| harmless(&file.text)).collect();
    let sources: Vec<(&str, &str)> =
        files.iter().map(|file| file.path.as_str()).zip(texts.iter().map(|text| &**text)).collect();
    let rendered: Vec<String> = diagnostics.iter().map(|item| render_one(item, &sources, &renderer)).collect();
    rendered.join("\n")
}

/// `sources`: paths and sanitized texts.
fn render_one<C: Code>(item: &Diagnostic<C>, sources: &[(&str, &str)], renderer: &Renderer) -> String {
    let level = if item.is_error() { Level::ERROR } else { Level::WARNING };
    let mut report = Group::with_title(level.primary_title(harmless(&item.message)).id(item.code.text()));
    let mut order: Vec<usize> = Vec::new();
    for label in &item.labels {
        if !order.contains(&label.span.file) {
            order.push(label.span.file);
        }
    }
    for file in order {
        let Some(&(path, text)) = sources.get(file) else { continue };
        let mut snippet = Snippet::source(text).path(path).fold(true);
        for (index, label) in item.labels.iter().enumerate().filter(|(_, label)| label.span.file == file) {
            let kind = if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            let place = visible(text, label.span.start..label.span.end);
            snippet = snippet.annotation(kind.span(place).label(harmless(&label.text)));
        }
        report = report.element(snippet);
    }
    if !item.remedy.is_empty() {
        report = report.element(Level::HELP.message(harmless(&item.remedy)));
    }
    let mut text = String::new();
    for line in renderer.render(&[report]).lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Clamps a byte range to its first line, to the text and to character boundaries. Only the end of a line's
/// indentation is kept: the renderer cuts it off where the line is long.
fn visible(text: &str, place: Range<usize>) -> Range<usize> {
    let boundary = |place: usize| {
        let mut place = place.min(text.len());
        while !text.is_char_boundary(place) {
            place -= 1;
        }
        place
    };
    let start = boundary(place.start);
    let end = boundary(place.end).max(start);
    let end = text[start..end].find('\n').map_or(end, |length| start + length);
    let line_start = text[..start].rfind('\n').map_or(0, |before| before + 1);
    if end > line_start && text[line_start..end].bytes().all(|byte| byte == b' ') {
        let blanks = text[end..].bytes().take_while(|byte| *byte == b' ').count();
        return end + blanks..end + blanks;
    }
    start..end
}

/// Replaces control characters, and blanks that are not one column wide, with as many bytes of blanks, so that offsets
/// stay valid.
fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character != '\n' && (character.is_control() || character.is_whitespace()) {
            shown.extend(std::iter::repeat_n(' ', character.len_utf8()));
        } else {
            shown.push(character);
        }
    }
    shown
}

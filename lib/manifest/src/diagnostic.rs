//! What is wrong with a manifest: a stable code, a sentence, the place, and what to do about it.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{Level, Renderer, Snippet};

/// Whether a rendered diagnostic has terminal colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// For a terminal.
    Always,
    /// For files, and for error messages of other tools.
    Never,
}

macro_rules! codes {
    ($($name:ident = $text:literal, $title:literal;)*) => {
        /// The kind of a diagnostic; its text (`M012`) is stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $(#[doc = $title] $name,)* }
        impl Code {
            /// Every code.
            pub const ALL: &[Code] = &[$(Code::$name),*];
            /// As it is printed.
            pub const fn text(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }
            /// What it is about.
            pub const fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }
        }
    };
}

codes! {
    Syntax = "M001", "the file is not TOML";
    UnknownKey = "M002", "a key that means nothing here";
    WrongType = "M003", "a value of the wrong type";
    MissingKey = "M004", "a key that must be there is not";
    BadName = "M005", "a name that cannot be used";
    BadVersion = "M006", "a version that is not major.minor.patch";
    AbiVersion = "M007", "an ABI version that does not exist";
    UnknownWord = "M008", "a word that is none of those allowed";
    BadPath = "M009", "a path that is not absolute";
    BadText = "M010", "a text that is not one line";
    ScriptOrCrate = "M011", "the code must be a crate or a script";
    TooMany = "M012", "a list is too long";
    UnknownContract = "M020", "no contract has this name";
    ContractNotListed = "M021", "a contract is used but not listed";
    DuplicateContract = "M022", "a contract is listed twice";
    UnknownState = "M023", "the contract has no state of this name";
    ImmovableEndpoint = "M024", "an endpoint in a state in which nothing can be said";
    WrongSide = "M025", "an end of a contract that the program does not handle";
    BadModule = "M026", "a Rust path that is none";
    ProvideWithoutSlot = "M027", "nothing takes the clients of a provided path";
    DuplicateEndpoint = "M030", "two endpoints have one name";
    DuplicateField = "M031", "a name that is another's or Rust's own in the generated code";
    DuplicateParameter = "M040", "two parameters have one name";
    DuplicatePosition = "M041", "two parameters have one position";
    PositionGap = "M042", "a position is skipped";
    RepeatedNotLast = "M043", "a repeated parameter is not at the last position";
    DuplicateFlag = "M044", "two parameters have one flag";
    BadFlag = "M045", "a flag that cannot be typed";
    BadDefault = "M046", "a default that is not of the parameter's type";
    UselessDefault = "M047", "a default that is never used";
    RequiredAfterOptional = "M048", "a required position follows an optional one";
    DuplicateProvide = "M050", "a path is provided twice";
    DuplicateDevice = "M051", "a device is listed twice";
    BadRange = "M052", "a range of addresses that no device can have";
    BadInterrupt = "M053", "an interrupt that no device can have";
    PartNames = "M054", "names that do not fit the parts of a device";
    UnknownRange = "M055", "the device has no range of this name";
    FixedObject = "M056", "a device of registers that is to be opened as something else";
    QuotaRange = "M060", "a quota that is out of range";
    SupervisionRange = "M061", "a restart policy that cannot work";
    DuplicatePermission = "M062", "a permission is listed twice";
    BadRequirement = "M063", "a required program that cannot be required so";
    UnknownProgram = "M101", "no program has this name";
    DuplicateInstance = "M102", "two instances have one name";
    UnknownParameter = "M103", "the program has no parameter of this name";
    BadParameterValue = "M104", "a value that is not of the parameter's type";
    MissingParameter = "M105", "a required parameter has no value";
    UnknownDevice = "M106", "the program has no device of this name";
    DeviceClaimedTwice = "M107", "two instances have one device";
    UnknownProvide = "M108", "the program does not provide this path";
    PathProvidedTwice = "M109", "two instances provide one path";
    UnknownEndpoint = "M110", "the program has no such endpoint";
    NoProvider = "M111", "nobody provides what an endpoint is bound to";
    BootCycle = "M112", "instances wait for each other";
    UnknownRequirement = "M113", "no instance has this name";
    BindRefused = "M114", "no rule allows an endpoint to be bound";
    UnknownPrimary = "M115", "the primary instance is not there";
    BadPattern = "M116", "a pattern that matches nothing";
    UnknownRootParameter = "M117", "the root program has no parameter of this name";
    RootListed = "M118", "the root program is listed as an instance";
    UnknownBase = "M119", "no system has this name";
    BaseCycle = "M120", "systems are based on each other";
    RangeClaimedTwice = "M121", "two instances have one I/O port or byte of device memory";
    InterruptClaimedTwice = "M122", "two instances have one interrupt";
    BadCount = "M123", "a count of instances that cannot be";
    BadPublicKey = "M130", "a public key that is none";
    BadPublishers = "M131", "a pattern of publishers that covers nobody";
    BadRevocation = "M132", "a revocation of nothing";
    AllowMismatch = "M133", "allowed publishers and a policy that do not fit each other";
}

/// A place and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Bytes of the file, counted on from where the [`Source`] starts.
    pub span: Range<usize>,
    /// A phrase.
    pub text: String,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its kind.
    pub code: Code,
    /// What is wrong, a sentence without its full stop.
    pub message: String,
    /// Where; the first is the place itself, the others explain.
    pub labels: Vec<Label>,
    /// What to do.
    pub remedy: String,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The place of its first byte: 0 for the first file, behind the others for those that it is based on.
    pub start: usize,
}

/// All that is wrong with one file or those that it is based on. `Display` renders it without colours.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    /// The file, then those that it is based on, by their places.
    pub sources: Vec<Source>,
    /// At least one, in the order of their places.
    pub items: Vec<Diagnostic>,
}

impl Diagnostics {
    /// As text: for each the code, the sentence, the lines with carets, and what to do.
    pub fn render(&self, colours: Colours) -> String {
        let renderer = match colours {
            Colours::Always => Renderer::styled(),
            Colours::Never => Renderer::plain(),
        };
        let texts: Vec<String> = self.sources.iter().map(|source| harmless(&source.text)).collect();
        let rendered: Vec<String> = self.items.iter().map(|item| self.render_one(item, &texts, &renderer)).collect();
        rendered.join("\n")
    }

    /// `texts`: those of the sources, without what cannot be shown.
    fn render_one(&self, item: &Diagnostic, texts: &[String], renderer: &Renderer) -> String {
        let (title, remedy) = (harmless(&item.message), harmless(&item.remedy));
        let labels: Vec<(&Label, String)> = item.labels.iter().map(|label| (label, harmless(&label.text))).collect();
        let mut message = Level::Error.title(&title).id(item.code.text());
        for (source, text) in self.sources.iter().zip(texts) {
            let mut labels = labels
                .iter()
                .enumerate()
                .filter(|(_, (label, _))| self.source_of(label).is_some_and(|other| other.start == source.start))
                .peekable();
            if labels.peek().is_none() {
                continue;
            }
            let mut snippet = Snippet::source(text).origin(&source.file).fold(true);
            for (index, (label, words)) in labels {
                let level = if index == 0 { Level::Error } else { Level::Info };
                snippet = snippet.annotation(level.span(visible(text, source.place(&label.span))).label(words));
            }
            message = message.snippet(snippet);
        }
        let message = message.footer(Level::Help.title(&remedy));
        let mut text = String::new();
        for line in renderer.render(message).to_string().lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn source_of(&self, label: &Label) -> Option<&Source> {
        self.sources.iter().rev().find(|source| source.start <= label.span.start)
    }
}

impl Source {
    /// The bytes of a span, inside the text.
    fn place(&self, span: &Range<usize>) -> Range<usize> {
        let inside = |place: usize| place.saturating_sub(self.start).min(self.text.len());
        inside(span.start)..inside(span.end)
    }
}

/// The first line of some bytes, on character boundaries. Of blanks that a line begins with their end is shown: the
/// renderer cuts them off where the line is long.
fn visible(text: &str, place: Range<usize>) -> Range<usize> {
    let boundary = |mut place: usize| {
        while !text.is_char_boundary(place) {
            place -= 1;
        }
        place
    };
    let start = boundary(place.start);
    let end = boundary(place.end.max(start));
    let end = text[start..end].find('\n').map_or(end, |length| start + length);
    let line_start = text[..start].rfind('\n').map_or(0, |before| before + 1);
    if end > line_start && text[line_start..end].bytes().all(|byte| byte == b' ') {
        let blanks = text[end..].bytes().take_while(|byte| *byte == b' ').count();
        return end + blanks..end + blanks;
    }
    start..end
}

/// The text with blanks in the place of whatever moves a terminal's cursor, and of blanks that are not a column wide: as
/// many bytes of them, so that places stay.
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

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Colours::Never))
    }
}

impl std::error::Error for Diagnostics {}

//! Prompts for name and passphrase at the console.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::access::AccessError;
use client::answer::{REQUEST_LIMIT, wait};
use client::namespace::Namespace;
use contracts::console::{self, LineKind};
use contracts::directory::NameError;
use contracts::file::FileError;
use people_list::{LeftOut, People, Person};
use sip::exheap::ExVec;
use sip::{Deadline, audit, principal};

use crate::mistakes::Mistakes;

/// Path of the console.
const CONSOLE: &str = "/dev/console";
/// Maximum size of the people file in bytes.
const LIST_BYTES: usize = 256 * 1024;
/// Maximum failures when the console is not a terminal.
const MISTAKES_OF_A_STREAM: u32 = 3;
/// Maximum attempts to reopen the console.
const CONSOLE_ATTEMPTS: u32 = 5;
/// Separator between a name and the requested role.
const IN_ROLE: char = '@';

type Console = console::Imp<console::states::Ready>;

/// Sources of the lines that name people.
pub struct Sources {
    /// A file, which may be missing.
    pub file: String,
    /// Lines of the system manifest.
    pub lines: Vec<String>,
}

/// A successful login.
pub struct Entered {
    /// The person's name.
    pub name: String,
    /// The requested role.
    pub role: String,
}

/// Outcome of one attempt.
pub enum Asked {
    /// Login succeeded.
    Entered(Entered),
    /// Login failed.
    Again,
    /// The input ended.
    EndOfInput,
    /// Login is impossible, for this reason.
    Hopeless(String),
}

enum Line {
    Text(Vec<u8>),
    GivenUp,
    EndOfInput,
}

/// The console before login.
pub struct Prompt {
    namespace: Namespace,
    console: Option<Console>,
    sources: Sources,
    is_terminal: bool,
    is_greeted: bool,
    mistakes: Mistakes,
    /// Failures so far, under any name.
    all_mistakes: u32,
    /// The last reported invalid lines of the file, so that they are reported only once.
    told: Option<LeftOut>,
    /// Consecutive failures to read the console.
    failures: u32,
}

impl Prompt {
    /// Creates a prompt on an open console.
    pub fn new(namespace: Namespace, console: Console, sources: Sources) -> Prompt {
        Prompt {
            namespace,
            console: Some(console),
            sources,
            is_terminal: false,
            is_greeted: false,
            mistakes: Mistakes::default(),
            all_mistakes: 0,
            told: None,
            failures: 0,
        }
    }

    /// The namespace, for the shell of a session.
    pub fn namespace(&mut self) -> &mut Namespace {
        &mut self.namespace
    }

    /// Whether the console is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Prompts for a name and a passphrase, once.
    pub fn ask(&mut self) -> Asked {
        let asked = self.ask_console();
        match asked {
            Ok(asked) => {
                self.failures = 0;
                asked
            }
            Err(error) => {
                self.failures += 1;
                if self.failures > CONSOLE_ATTEMPTS {
                    return Asked::Hopeless(format!("{CONSOLE}: {error}"));
                }
                Asked::Again
            }
        }
    }

    fn ask_console(&mut self) -> Result<Asked, AccessError> {
        self.greet()?;
        let people = match self.people() {
            Ok(people) => people,
            Err(reason) => return Ok(Asked::Hopeless(reason)),
        };
        let typed = match self.read(LineKind::Text, "Name: ")? {
            Line::Text(typed) => String::from_utf8_lossy(&typed).trim().to_string(),
            Line::GivenUp => return Ok(Asked::Again),
            Line::EndOfInput => return Ok(Asked::EndOfInput),
        };
        if typed.is_empty() {
            return Ok(Asked::Again);
        }
        let mut passphrase = match self.read(LineKind::Secret, "Passphrase: ")? {
            Line::Text(passphrase) => passphrase,
            Line::GivenUp => return Ok(Asked::Again),
            Line::EndOfInput => return Ok(Asked::EndOfInput),
        };
        let entered = admit(&people, &typed, &passphrase);
        passphrase.fill(0);
        core::hint::black_box(&passphrase);
        match entered {
            Ok(entered) => {
                self.mistakes.forget(&entered.name);
                Ok(Asked::Entered(entered))
            }
            Err(sentence) => {
                let known = people.find(name_of(&typed)).map(Person::name);
                Ok(self.after_mistake(sentence, known))
            }
        }
    }

    /// Reports a failure and delays the next attempt. `known` is the person's name, if it exists.
    fn after_mistake(&mut self, sentence: &str, known: Option<&str>) -> Asked {
        self.all_mistakes = self.all_mistakes.saturating_add(1);
        if !self.is_terminal && self.all_mistakes >= MISTAKES_OF_A_STREAM {
            self.say(&format!("{sentence}\n"));
            return Asked::Hopeless(String::from("too many failed attempts"));
        }
        let wait_ms = self.mistakes.note(known);
        self.say(&format!("{sentence} The next try is in {} s.\n", wait_ms / 1000));
        sip::time::sleep_until(Deadline::after_ms(wait_ms));
        Asked::Again
    }

    fn greet(&mut self) -> Result<(), AccessError> {
        if self.is_greeted {
            return Ok(());
        }
        match wait(self.take()?.get_info(), REQUEST_LIMIT)? {
            console::ImpReadyAfterGetInfo::Info { terminal, next, .. } => {
                self.console = Some(next);
                self.is_terminal = terminal;
            }
            console::ImpReadyAfterGetInfo::ChannelClosed(_) => return Err(AccessError::ServerEnded),
        }
        self.is_greeted = true;
        if self.is_terminal {
            self.say("Singularity. Who is there? A name, or NAME@ROLE for another of your roles.\n");
        }
        Ok(())
    }

    /// Returns the people who may log in, from the current file, so that changes take effect immediately.
    fn people(&mut self) -> Result<People, String> {
        let mut people = People::default();
        for line in &self.sources.lines {
            people.add(line).map_err(|error| format!("a `person` of the system manifest: {error}"))?;
        }
        let path = self.sources.file.clone();
        match self.read_file(&path) {
            Ok(text) => {
                let left_out = people.read(&text);
                if left_out != self.told
                    && let Some(left_out) = left_out
                {
                    stdio::report::error(format_args!("{path}: {left_out}"));
                }
                self.told = left_out;
            }
            Err(AccessError::Name(NameError::NotFound) | AccessError::File(FileError::NotFound)) => {}
            Err(error) => stdio::report::error(format_args!("{path}: {error}; its accounts are ignored")),
        }
        if people.is_empty() {
            return Err(format!(
                "nobody may log in: put a line that the program `people` makes into {path}, or into the parameter \
                 `person` of the system manifest"
            ));
        }
        Ok(people)
    }

    fn read_file(&mut self, path: &str) -> Result<String, AccessError> {
        let mut file = self.namespace.open_file(path)?;
        let mut bytes = Vec::new();
        let mut pieces = file.pieces();
        while let Some(piece) = pieces.next()? {
            if bytes.len() + piece.len() > LIST_BYTES {
                return Err(NameError::NotSupported.into());
            }
            bytes.extend_from_slice(piece);
        }
        // An invalid line is skipped like other wrong lines.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn take(&mut self) -> Result<Console, AccessError> {
        match self.console.take() {
            Some(console) => Ok(console),
            None => open_console(&mut self.namespace),
        }
    }

    /// Prints text on a terminal; on a byte stream, nothing.
    pub fn say(&mut self, text: &str) {
        if !self.is_terminal {
            return stdio::report::error(format_args!("{}", text.trim_end()));
        }
        let Ok(console) = self.take() else { return };
        let Ok(block) = ExVec::from_slice(text.as_bytes()) else { return };
        if let console::ImpReadyAfterWrite::Written { next } | console::ImpReadyAfterWrite::Failed { next, .. } =
            console.write(block).receive()
        {
            self.console = Some(next);
        }
    }

    fn read(&mut self, kind: LineKind, prompt: &str) -> Result<Line, AccessError> {
        let prompt = ExVec::from_slice(prompt.as_bytes())?;
        let mut reading = self.take()?.read_line(kind, prompt);
        loop {
            let (line, next) = match reading.receive() {
                console::ImpReading::Line { text, next } => (Line::Text(text.to_vec()), next),
                console::ImpReading::Interrupted { next } => (Line::GivenUp, next),
                console::ImpReading::EndOfInput { next } => (Line::EndOfInput, next),
                console::ImpReading::Complete { next, .. } => {
                    reading = next.completions(0, ExVec::from_slice(&[])?);
                    continue;
                }
                console::ImpReading::Failed { .. } => return Err(NameError::Unavailable.into()),
                console::ImpReading::ChannelClosed(_) => return Err(AccessError::ServerEnded),
            };
            self.console = Some(next);
            return Ok(line);
        }
    }
}

/// Opens the console again.
pub fn open_console(namespace: &mut Namespace) -> Result<Console, AccessError> {
    namespace.open(CONSOLE, console::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
        console::ImpStart::Success { next } => Ok(next),
        console::ImpStart::Refused { .. } => Err(NameError::NotPermitted.into()),
        console::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    })
}

/// Returns the name in the input, which may also contain a role.
fn name_of(typed: &str) -> &str {
    typed.split_once(IN_ROLE).map_or(typed, |(name, _)| name)
}

/// Returns the login, or the message on failure. An unknown name is not revealed to anyone: it may be a passphrase
/// typed by mistake.
fn admit(people: &People, typed: &str, passphrase: &[u8]) -> Result<Entered, &'static str> {
    let (name, role) = (name_of(typed), typed.split_once(IN_ROLE).map(|(_, role)| role));
    let refused = |rule: &str| {
        let shown = if people.find(name).is_some() { name } else { "unknown name" };
        audit::refused(&principal::own(), "login", shown, rule);
    };
    let Some(person) = people.admit(name, passphrase) else {
        refused("wrong name or passphrase");
        return Err("Wrong name or passphrase.");
    };
    let Some(role) = person.role(role) else {
        refused("not one of the person's roles");
        return Err("That is not one of your roles.");
    };
    Ok(Entered { name: name.to_string(), role: role.to_string() })
}

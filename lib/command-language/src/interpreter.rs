//! The interpreter: control flow and variables. Commands are the host's.

mod expansion;
mod pipeline;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use crate::error::ScriptError;
use crate::parser::parse;
use crate::pattern::Pattern;
use crate::syntax::{Errors, OutputMode, Script, Statement, StatementKind, When, Word};

use expansion::Unmatched;

/// Exit status of a script with an error.
const STATUS_MISTAKE: i32 = 2;
/// Exit status after an interrupt.
const STATUS_INTERRUPTED: i32 = 130;
/// Maximum depth of function and script calls.
const CALL_DEPTH: usize = 32;

/// A command after expansion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Name and arguments; never empty.
    pub words: Vec<String>,
    /// Path of its input redirection.
    pub input: Option<String>,
    /// Redirection of its errors; in a pipeline of several commands only.
    pub errors: Option<Errors>,
    /// The subshell's script, if it is a block or a function that does not run in this shell; the words are then for
    /// display.
    pub subshell: Option<Subshell>,
}

/// Code that a subshell runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subshell {
    /// Variables and functions that it inherits, and the statement.
    pub script: String,
    /// `$0`, `$1` and so on; never empty.
    pub positionals: Vec<String>,
}

/// Shell state that a builtin may read and change.
pub struct Scope<'a> {
    /// The variables.
    pub variables: &'a mut BTreeMap<String, String>,
    functions: &'a mut BTreeMap<String, Function>,
}

impl Scope<'_> {
    /// Removes a function.
    pub fn forget_function(&mut self, name: &str) {
        self.functions.remove(name);
    }

    /// The source text of a function.
    pub fn function(&self, name: &str) -> Option<&str> {
        self.functions.get(name).map(Function::definition)
    }
}

/// Whether the shell waits for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Foreground.
    Foreground,
    /// `&`: background.
    Background,
}

/// How execution continues after a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flow {
    /// With this status.
    Status(i32),
    /// The shell exits with this status.
    Exit(i32),
    /// Interrupted or stopped by the user: the current script is abandoned with this status.
    GivenUp(i32),
    /// With a script that has its own variables.
    Run {
        /// Name for messages and `$0`.
        name: String,
        /// Source text.
        source: String,
        /// `$1` and so on.
        arguments: Vec<String>,
        /// Variables set in it, by name.
        variables: Vec<(String, String)>,
    },
}

/// Interface of the interpreter to the shell.
pub trait Host {
    /// Runs commands joined by pipes. A single command may be a builtin and change the variables.
    fn run(&mut self, scope: &mut Scope<'_>, commands: &[Command], ends: Ends) -> Flow;
    /// Expands a pattern to matching names, in order. An error is a phrase.
    fn expand(&mut self, pattern: &Pattern) -> Result<Vec<String>, String>;
    /// Starts to capture output. Nests.
    fn begin_capture(&mut self) -> Result<(), String>;
    /// Ends the last `begin_capture`; returns the captured output.
    fn end_capture(&mut self) -> Result<String, String>;
    /// Redirects output to a file. Nests. An error is a phrase.
    fn begin_output(&mut self, mode: OutputMode, path: &str) -> Result<(), String>;
    /// Ends the last `begin_output`; background commands continue to write. Returns whether all output so far was
    /// written; failures were reported.
    fn end_output(&mut self) -> bool;
    /// Redirects errors; [`Errors::OutputBefore`] is the target before the last `begin_output`. Nests. An error is a
    /// phrase.
    fn begin_errors(&mut self, errors: &Errors) -> Result<(), String>;
    /// Ends the last `begin_errors`, as `end_output` does.
    fn end_errors(&mut self) -> bool;
    /// Redirects the input of `read` to a file. Nests. An error is a phrase.
    fn begin_input(&mut self, path: &str) -> Result<(), String>;
    /// Ends the last `begin_input`.
    fn end_input(&mut self);
    /// Starts to measure the time of commands. Nests.
    fn begin_time(&mut self);
    /// Ends the last `begin_time` and displays the result.
    fn end_time(&mut self);
    /// Whether the user interrupts the script. Polled at least once per loop iteration.
    fn interrupted(&mut self) -> bool;
    /// Notifies of a new function.
    fn defined(&mut self, _name: &str) {}
    /// Displays an error. The text ends with a newline.
    fn report(&mut self, text: &str);
}

/// A running script and its source.
#[derive(Clone, Debug)]
struct Source {
    name: Rc<str>,
    text: Rc<str>,
}

#[derive(Clone, Debug)]
struct Function {
    body: Rc<Script>,
    source: Source,
    /// Source range.
    span: Range<usize>,
}

impl Function {
    fn definition(&self) -> &str {
        self.source.text.get(self.span.clone()).unwrap_or_default().trim()
    }
}

/// Why statement execution stops.
enum Stop {
    Break,
    Continue,
    Return(i32),
    Exit(i32),
    GivenUp(i32),
    Mistake(ScriptError),
    /// An error that was already reported.
    Reported,
}

/// Variables, functions and parameters of a shell.
#[derive(Clone, Debug)]
pub struct Interpreter {
    variables: BTreeMap<String, String>,
    functions: BTreeMap<String, Function>,
    /// `$0` and so on.
    positionals: Vec<String>,
    status: i32,
    depth: usize,
    source: Source,
}

/// Result of a run.
type Outcome = Result<(), Stop>;

impl Interpreter {
    /// Creates an interpreter without variables; `positionals` are `$0`, `$1` and so on.
    pub fn new(positionals: Vec<String>) -> Interpreter {
        Interpreter {
            variables: BTreeMap::new(),
            functions: BTreeMap::new(),
            positionals,
            status: 0,
            depth: 0,
            source: Source { name: Rc::from(""), text: Rc::from("") },
        }
    }

    /// The variables, for completion and listings.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// The names of the functions.
    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// `$?`
    pub fn status(&self) -> i32 {
        self.status
    }

    /// Parses and runs a script. [`Flow::Status`] is its last status; [`Flow::Exit`]: the shell shall exit;
    /// [`Flow::Interrupted`]: the user stopped it. Errors are reported to the host.
    pub fn run(&mut self, host: &mut dyn Host, name: &str, source: &str) -> Flow {
        let script = match parse(source) {
            Ok(script) => script,
            Err(error) => {
                host.report(&error.render(name, source));
                self.status = STATUS_MISTAKE;
                return Flow::Status(STATUS_MISTAKE);
            }
        };
        let outer = core::mem::replace(&mut self.source, Source { name: Rc::from(name), text: Rc::from(source) });
        let outcome = self.script(host, &script);
        let flow = match outcome {
            Ok(()) => Flow::Status(self.status),
            Err(Stop::Return(status)) => Flow::Status(status),
            Err(Stop::Exit(status)) => Flow::Exit(status),
            Err(Stop::GivenUp(status)) => {
                self.status = status;
                Flow::GivenUp(status)
            }
            Err(Stop::Break | Stop::Continue) => Flow::Status(self.status),
            Err(Stop::Mistake(error)) => {
                self.report(host, &error);
                Flow::Status(STATUS_MISTAKE)
            }
            Err(Stop::Reported) => Flow::Status(STATUS_MISTAKE),
        };
        if let Flow::Status(status) = flow {
            self.status = status;
        }
        self.source = outer;
        flow
    }

    fn report(&mut self, host: &mut dyn Host, error: &ScriptError) {
        host.report(&error.render(&self.source.name, &self.source.text));
    }

    fn script(&mut self, host: &mut dyn Host, script: &Script) -> Outcome {
        for statement in &script.statements {
            self.statement(host, statement)?;
        }
        Ok(())
    }

    fn statement(&mut self, host: &mut dyn Host, statement: &Statement) -> Outcome {
        match &statement.kind {
            StatementKind::Pipeline { stages, background } => self.pipeline(host, stages, *background),
            StatementKind::Chain { first, others } => {
                self.statement(host, first)?;
                for (when, other) in others {
                    if (self.status == 0) == (*when == When::Succeeded) {
                        self.statement(host, other)?;
                    }
                }
                Ok(())
            }
            StatementKind::Not(inner) => {
                self.statement(host, inner)?;
                self.status = i32::from(self.status == 0);
                Ok(())
            }
            StatementKind::Time(inner) => {
                host.begin_time();
                let outcome = self.statement(host, inner);
                host.end_time();
                outcome
            }
            StatementKind::Assign { name, value } => {
                let value = self.text_of(host, value)?;
                self.variables.insert(name.clone(), value);
                self.status = 0;
                Ok(())
            }
            StatementKind::If { arms, otherwise } => {
                for (condition, body) in arms {
                    self.script(host, condition)?;
                    if self.status == 0 {
                        return self.script(host, body);
                    }
                }
                self.status = 0;
                self.script(host, otherwise)
            }
            StatementKind::While { condition, body } => self.while_loop(host, condition, body),
            StatementKind::For { name, words, body } => self.for_loop(host, name, words, body),
            StatementKind::Function { name, body } => {
                let (source, span) = (self.source.clone(), statement.span.clone());
                let function = Function { body: body.clone(), source, span };
                if self.functions.insert(name.clone(), function).is_none() {
                    host.defined(name);
                }
                self.status = 0;
                Ok(())
            }
            StatementKind::Break => Err(Stop::Break),
            StatementKind::Continue => Err(Stop::Continue),
            StatementKind::Return(value) => {
                let status = match value {
                    None => self.status,
                    Some(word) => self.status_of(host, word)?,
                };
                Err(Stop::Return(status))
            }
        }
    }

    fn status_of(&mut self, host: &mut dyn Host, word: &Word) -> Result<i32, Stop> {
        let text = self.text_of(host, word)?;
        let parsed: Option<u8> = text.parse().ok();
        parsed.map(i32::from).ok_or_else(|| {
            let message = format!("`{text}` is not an exit status");
            Stop::Mistake(ScriptError::new(word.span.clone(), message, "write a number from 0 to 255"))
        })
    }

    fn while_loop(&mut self, host: &mut dyn Host, condition: &Script, body: &Script) -> Outcome {
        let mut last = 0;
        loop {
            self.check_interrupted(host)?;
            self.script(host, condition)?;
            if self.status != 0 {
                self.status = last;
                return Ok(());
            }
            match self.script(host, body) {
                Err(Stop::Break) => return Ok(()),
                Ok(()) | Err(Stop::Continue) => last = self.status,
                other => return other,
            }
        }
    }

    fn for_loop(&mut self, host: &mut dyn Host, name: &str, words: &[Word], body: &Script) -> Outcome {
        let mut values = Vec::new();
        for word in words {
            values.extend(self.expand_word(host, word, Unmatched::Nothing)?);
        }
        self.status = 0;
        for value in values {
            self.check_interrupted(host)?;
            self.variables.insert(name.to_string(), value);
            match self.script(host, body) {
                Err(Stop::Break) => return Ok(()),
                Ok(()) | Err(Stop::Continue) => {}
                other => return other,
            }
        }
        Ok(())
    }

    fn check_interrupted(&mut self, host: &mut dyn Host) -> Outcome {
        if host.interrupted() { Err(Stop::GivenUp(STATUS_INTERRUPTED)) } else { Ok(()) }
    }

    fn deeper(&mut self, span: &Range<usize>) -> Outcome {
        if self.depth >= CALL_DEPTH {
            let message = format!("recursion is deeper than {CALL_DEPTH} calls");
            return Err(Stop::Mistake(ScriptError::new(span.clone(), message, "use a loop")));
        }
        self.depth += 1;
        Ok(())
    }

    fn call(&mut self, host: &mut dyn Host, words: &[String], span: &Range<usize>) -> Outcome {
        let Some(function) = self.functions.get(&words[0]).cloned() else { return Ok(()) };
        self.deeper(span)?;
        let mut positionals = Vec::from([self.positionals.first().cloned().unwrap_or_default()]);
        positionals.extend_from_slice(&words[1..]);
        let outer_positionals = core::mem::replace(&mut self.positionals, positionals);
        let outer_source = core::mem::replace(&mut self.source, function.source);
        self.status = 0;
        let mut outcome = self.script(host, &function.body);
        if let Err(Stop::Mistake(error)) = &outcome {
            // The span is in the function's own source, which only this frame has.
            self.report(host, error);
            outcome = Err(Stop::Reported);
        }
        self.positionals = outer_positionals;
        self.source = outer_source;
        self.depth -= 1;
        match outcome {
            Err(Stop::Return(status)) => {
                self.status = status;
                Ok(())
            }
            Err(Stop::Break | Stop::Continue) => Ok(()),
            other => other,
        }
    }

    fn run_script(
        &mut self,
        host: &mut dyn Host,
        mut inner: Interpreter,
        name: &str,
        source: &str,
        span: &Range<usize>,
    ) -> Outcome {
        self.deeper(span)?;
        inner.depth = self.depth;
        let flow = inner.run(host, name, source);
        self.depth -= 1;
        match flow {
            // `exit` in a script ends only that script.
            Flow::Status(status) | Flow::Exit(status) => self.status = status,
            Flow::GivenUp(status) => return Err(Stop::GivenUp(status)),
            Flow::Run { .. } => {}
        }
        Ok(())
    }
}

//! Runs a script: control flow and variables. What commands do is the host's.

mod expansion;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use crate::error::ScriptError;
use crate::parser::parse;
use crate::pattern::Pattern;
use crate::syntax::{OutputMode, Script, SimpleCommand, Statement, StatementKind, When, Word};

use expansion::Unmatched;

/// Status of a script with a mistake in it.
const STATUS_MISTAKE: i32 = 2;
/// Status of what a person interrupted.
const STATUS_INTERRUPTED: i32 = 130;
/// How many functions and scripts may be under way in each other.
const CALL_DEPTH: usize = 32;
/// How many bytes all words of one command may have.
const COMMAND_BYTES: usize = 1 << 20;

/// A command after expansion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Name and arguments; never empty.
    pub words: Vec<String>,
    /// Path of the file that its input comes from.
    pub input: Option<String>,
}

/// Whether the shell waits for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// It waits.
    Foreground,
    /// `&`: it goes on.
    Background,
}

/// How it goes on after a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flow {
    /// With this status.
    Status(i32),
    /// Not at all: everything ends with this status.
    Exit(i32),
    /// A person interrupted it: what is under way is given up.
    Interrupted,
    /// With this script, which has variables of its own.
    Run {
        /// Name for messages and `$0`.
        name: String,
        /// Its text.
        source: String,
        /// `$1` and so on.
        arguments: Vec<String>,
        /// Variables that are set in it, by name.
        variables: Vec<(String, String)>,
    },
}

/// What an [`Interpreter`] asks of the shell.
pub trait Host {
    /// Runs commands joined by pipes. A single command may be a builtin and change the variables.
    fn run(&mut self, variables: &mut BTreeMap<String, String>, commands: &[Command], ends: Ends) -> Flow;
    /// Names that match, in order. An error is one phrase.
    fn expand(&mut self, pattern: &Pattern) -> Result<Vec<String>, String>;
    /// From now on, output is collected. May be nested.
    fn begin_capture(&mut self) -> Result<(), String>;
    /// Ends the last `begin_capture` and gives what was collected.
    fn end_capture(&mut self) -> Result<String, String>;
    /// From now on, output goes to a file. May be nested. An error is one phrase.
    fn begin_output(&mut self, mode: OutputMode, path: &str) -> Result<(), String>;
    /// Ends the last `begin_output`; what runs in the background goes on writing. True if all so far is written; what
    /// is not was reported.
    fn end_output(&mut self) -> bool;
    /// Whether a person wants it to stop. Asked at least once in each turn of a loop.
    fn interrupted(&mut self) -> bool;
    /// Shows a mistake to a person. The text ends with a line end.
    fn report(&mut self, text: &str);
}

/// A running script and where it comes from.
#[derive(Clone, Debug)]
struct Source {
    name: Rc<str>,
    text: Rc<str>,
}

#[derive(Clone, Debug)]
struct Function {
    body: Rc<Script>,
    source: Source,
}

/// Why statements are not gone on with.
enum Stop {
    Break,
    Continue,
    Return(i32),
    Exit(i32),
    Interrupted,
    Mistake(ScriptError),
    /// A mistake that was reported already.
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

/// How a run ended.
type Outcome = Result<(), Stop>;

impl Interpreter {
    /// One without variables; `positionals` are `$0`, `$1` and so on.
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

    /// Variables, for completion and listings.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// Names of the functions.
    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// `$?`
    pub fn status(&self) -> i32 {
        self.status
    }

    /// Reads and runs a script. [`Flow::Status`] has its last status, [`Flow::Exit`] asks the shell to
    /// end; [`Flow::Interrupted`] if a person stopped it. Mistakes are reported to the host.
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
            Err(Stop::Interrupted) => {
                self.status = STATUS_INTERRUPTED;
                Flow::Interrupted
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
            StatementKind::Pipeline { commands, background } => self.pipeline(host, commands, *background),
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
                let function = Function { body: body.clone(), source: self.source.clone() };
                self.functions.insert(name.clone(), function);
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
        if host.interrupted() { Err(Stop::Interrupted) } else { Ok(()) }
    }

    fn pipeline(&mut self, host: &mut dyn Host, commands: &[SimpleCommand], background: bool) -> Outcome {
        self.check_interrupted(host)?;
        let mut expanded = Vec::new();
        for command in commands {
            expanded.push(self.expand_command(host, command)?);
        }
        let Some((mode, word)) = commands.last().and_then(|command| command.output.as_ref()) else {
            return self.run_commands(host, commands, &expanded, background);
        };
        let path = self.text_of(host, word)?;
        if let Err(reason) = host.begin_output(*mode, &path) {
            host.report(&format!("{path}: {reason}\n"));
            self.status = 1;
            return Ok(());
        }
        let outcome = self.run_commands(host, commands, &expanded, background);
        if !host.end_output() {
            self.status = self.status.max(1);
        }
        outcome
    }

    fn run_commands(
        &mut self,
        host: &mut dyn Host,
        commands: &[SimpleCommand],
        expanded: &[Command],
        background: bool,
    ) -> Outcome {
        if let Some(index) = expanded.iter().position(|command| self.functions.contains_key(&command.words[0])) {
            let Command { words, input } = &expanded[index];
            if expanded.len() > 1 || background || input.is_some() {
                let message = format!("the function `{}` cannot run in a pipe, with `<` or beside the shell", words[0]);
                let remedy = "put it into a script and run that";
                return Err(Stop::Mistake(ScriptError::new(commands[index].span.clone(), message, remedy)));
            }
            return self.call(host, words, &commands[index].span);
        }
        let ends = if background { Ends::Background } else { Ends::Foreground };
        match host.run(&mut self.variables, expanded, ends) {
            Flow::Status(status) => self.status = status,
            Flow::Exit(status) => return Err(Stop::Exit(status)),
            Flow::Interrupted => return Err(Stop::Interrupted),
            Flow::Run { name, source, arguments, variables } => {
                let mut positionals = Vec::from([name.clone()]);
                positionals.extend(arguments);
                let mut inner = Interpreter::new(positionals);
                inner.variables.extend(variables);
                return self.run_script(host, inner, &name, &source, &commands[0].span);
            }
        }
        Ok(())
    }

    fn deeper(&mut self, span: &Range<usize>) -> Outcome {
        if self.depth >= CALL_DEPTH {
            let message = format!("more than {CALL_DEPTH} functions and scripts call each other");
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
            // The place is one in the function's own source, which only is at hand here.
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
            // A script's `exit` ends the script alone.
            Flow::Status(status) | Flow::Exit(status) => self.status = status,
            Flow::Interrupted => return Err(Stop::Interrupted),
            Flow::Run { .. } => {}
        }
        Ok(())
    }

    fn expand_command(&mut self, host: &mut dyn Host, command: &SimpleCommand) -> Result<Command, Stop> {
        let mut words = Vec::new();
        for word in &command.words {
            words.extend(self.expand_word(host, word, Unmatched::Mistake)?);
        }
        if words.first().is_none_or(String::is_empty) {
            let error =
                ScriptError::new(command.span.clone(), "there is no command: it expands to nothing", "give its name");
            return Err(Stop::Mistake(error));
        }
        if words.iter().map(|word| word.len() + 1).sum::<usize>() > COMMAND_BYTES {
            let message = format!("the command is longer than {COMMAND_BYTES} bytes");
            return Err(Stop::Mistake(ScriptError::new(command.span.clone(), message, "do it in parts, with `for`")));
        }
        let input = command.input.as_ref().map(|path| self.text_of(host, path)).transpose()?;
        Ok(Command { words, input })
    }
}

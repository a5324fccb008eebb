//! Pipelines: stages in this shell, and those that the host runs beside it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use super::expansion::Unmatched;
use super::{Command, Ends, Flow, Host, Interpreter, Outcome, Scope, Stop, Subshell};
use crate::error::ScriptError;
use crate::quote::quote;
use crate::syntax::{ErrorRedirect, Errors, Redirects, Stage, Statement, Word, Work};

/// Maximum total bytes of a command's words.
const COMMAND_BYTES: usize = 1 << 20;
/// `$0` by default.
const SHELL: &str = "shell";

/// A pipeline after expansion.
struct Redirected<'a> {
    stages: &'a [Stage],
    expanded: Vec<Expanded<'a>>,
    /// Input redirection of the first command.
    input: Option<String>,
    /// Error redirection of each command.
    errors: Vec<Option<Errors>>,
    background: bool,
}

/// A stage after expansion.
enum Expanded<'a> {
    Command(Vec<String>),
    Block(&'a Statement),
}

impl Interpreter {
    pub(super) fn pipeline(&mut self, host: &mut dyn Host, stages: &[Stage], background: bool) -> Outcome {
        self.check_interrupted(host)?;
        let mut expanded = Vec::new();
        let mut input = None;
        let mut errors = Vec::new();
        for stage in stages {
            expanded.push(match &stage.work {
                Work::Command(words) => Expanded::Command(self.expand_command(host, words, &stage.span)?),
                Work::Block(block) => Expanded::Block(block),
            });
            if let Some(path) = &stage.redirects.input {
                input = Some(self.text_of(host, path)?);
            }
            errors.push(self.errors_of(host, &stage.redirects)?);
        }
        let redirected = Redirected { stages, expanded, input, errors, background };
        let Some((mode, word)) = stages.last().and_then(|stage| stage.redirects.output.as_ref()) else {
            return self.with_errors(host, redirected);
        };
        let path = self.text_of(host, word)?;
        if let Err(reason) = host.begin_output(*mode, &path) {
            host.report(&format!("{path}: {reason}\n"));
            self.status = 1;
            return Ok(());
        }
        let outcome = self.with_errors(host, redirected);
        if !host.end_output() {
            self.status = self.status.max(1);
        }
        outcome
    }

    fn errors_of(&mut self, host: &mut dyn Host, redirects: &Redirects) -> Result<Option<Errors>, Stop> {
        Ok(match &redirects.errors {
            None => None,
            Some(ErrorRedirect::File(mode, path)) => Some(Errors::File(*mode, self.text_of(host, path)?)),
            Some(ErrorRedirect::Output { stands_before_output, .. }) => {
                let is_before = *stands_before_output && redirects.output.is_some();
                Some(if is_before { Errors::OutputBefore } else { Errors::Output })
            }
        })
    }

    /// A single command's errors are redirected here, as it may be a block or function that runs in this shell.
    fn with_errors(&mut self, host: &mut dyn Host, mut redirected: Redirected<'_>) -> Outcome {
        let errors = match redirected.errors.as_mut_slice() {
            [only] => only.take(),
            _ => None,
        };
        let Some(errors) = errors else { return self.run_stages(host, redirected) };
        if let Err(reason) = host.begin_errors(&errors) {
            let place = if let Errors::File(_, path) = &errors { path.as_str() } else { "2>&1" };
            host.report(&format!("{place}: {reason}\n"));
            self.status = 1;
            return Ok(());
        }
        let outcome = self.run_stages(host, redirected);
        if !host.end_errors() {
            self.status = self.status.max(1);
        }
        outcome
    }

    fn run_stages(&mut self, host: &mut dyn Host, redirected: Redirected<'_>) -> Outcome {
        let Redirected { stages, expanded, input, errors, background } = redirected;
        if let ([stage], [one], false) = (stages, expanded.as_slice(), background) {
            match one {
                Expanded::Block(block) => {
                    return self.with_input(host, input, |this, host| this.statement(host, block));
                }
                Expanded::Command(words) if self.functions.contains_key(&words[0]) => {
                    return self.with_input(host, input, |this, host| this.call(host, words, &stage.span));
                }
                Expanded::Command(_) => {}
            }
        }
        let mut commands: Vec<Command> = expanded.into_iter().map(|one| self.command_of(one)).collect();
        for (command, errors) in commands.iter_mut().zip(errors) {
            command.errors = errors;
        }
        if let Some(first) = commands.first_mut() {
            first.input = input;
        }
        let span = stages.first().map_or(0..0, |stage| stage.span.clone());
        self.run_beside(host, &commands, if background { Ends::Background } else { Ends::Foreground }, &span)
    }

    fn with_input(
        &mut self,
        host: &mut dyn Host,
        input: Option<String>,
        run: impl FnOnce(&mut Interpreter, &mut dyn Host) -> Outcome,
    ) -> Outcome {
        let Some(path) = input else { return run(self, host) };
        if let Err(reason) = host.begin_input(&path) {
            host.report(&format!("{path}: {reason}\n"));
            self.status = 1;
            return Ok(());
        }
        let outcome = run(self, host);
        host.end_input();
        outcome
    }

    fn run_beside(&mut self, host: &mut dyn Host, commands: &[Command], ends: Ends, span: &Range<usize>) -> Outcome {
        let mut scope = Scope { variables: &mut self.variables, functions: &mut self.functions };
        match host.run(&mut scope, commands, ends) {
            Flow::Status(status) => self.status = status,
            Flow::Exit(status) => return Err(Stop::Exit(status)),
            Flow::GivenUp(status) => return Err(Stop::GivenUp(status)),
            Flow::Run { name, source, arguments, variables } => {
                let mut positionals = Vec::from([name.clone()]);
                positionals.extend(arguments);
                let mut inner = Interpreter::new(positionals);
                inner.variables.extend(variables);
                return self.run_script(host, inner, &name, &source, span);
            }
        }
        Ok(())
    }

    /// In a pipeline, a block or function runs in a subshell, as each program is a process.
    fn command_of(&self, expanded: Expanded<'_>) -> Command {
        match expanded {
            Expanded::Block(block) => {
                let text = self.source.text.get(block.span.clone()).unwrap_or_default().trim();
                let subshell = Some(self.subshell(text));
                Command { words: Vec::from([text.to_string()]), input: None, errors: None, subshell }
            }
            Expanded::Command(words) if self.functions.contains_key(&words[0]) => {
                let text = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
                let subshell = Some(self.subshell(&text));
                Command { words, input: None, errors: None, subshell }
            }
            Expanded::Command(words) => Command { words, input: None, errors: None, subshell: None },
        }
    }

    fn subshell(&self, text: &str) -> Subshell {
        let mut script = String::new();
        for (name, value) in &self.variables {
            script += &format!("{name}={}\n", quote(value));
        }
        for function in self.functions.values() {
            script += function.definition();
            script.push('\n');
        }
        script += text;
        let mut positionals = self.positionals.clone();
        if positionals.is_empty() {
            positionals.push(String::from(SHELL));
        }
        Subshell { script, positionals }
    }

    fn expand_command(
        &mut self,
        host: &mut dyn Host,
        unexpanded: &[Word],
        span: &Range<usize>,
    ) -> Result<Vec<String>, Stop> {
        let mut words = Vec::new();
        for word in unexpanded {
            words.extend(self.expand_word(host, word, Unmatched::Mistake)?);
        }
        if words.first().is_none_or(String::is_empty) {
            let error = ScriptError::new(span.clone(), "empty command after expansion", "give the name of a program");
            return Err(Stop::Mistake(error));
        }
        if words.iter().map(|word| word.len() + 1).sum::<usize>() > COMMAND_BYTES {
            let message = format!("the command is longer than {COMMAND_BYTES} bytes");
            return Err(Stop::Mistake(ScriptError::new(span.clone(), message, "split it with `for`")));
        }
        Ok(words)
    }
}

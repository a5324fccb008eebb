//! Words and signs to the tree of a script.

use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::error::ScriptError;
use crate::lexer::{DEPTH, KEYWORDS, Lexer, Token, TokenKind, identifier_prefix};
use crate::syntax::{OutputMode, Script, SimpleCommand, Statement, StatementKind, When, Word};

/// What other shells' words are called here.
const FOREIGN: &[(&str, &str)] = &[("fi", "end"), ("done", "end"), ("esac", "end"), ("!", "not")];

/// Reads a script.
pub fn parse(source: &str) -> Result<Script, ScriptError> {
    let mut parser = Parser::new(source, 0, 0)?;
    let script = parser.list(&[])?;
    match &parser.token.kind {
        TokenKind::End => Ok(script),
        _ => Err(parser.unexpected("put it in quotes to mean the sign")),
    }
}

/// Reads the script of a `$(`, and where the byte after its `)` is.
pub(crate) fn parse_until_parenthesis(source: &str, at: usize, depth: usize) -> Result<(Script, usize), ScriptError> {
    let mut parser = Parser::new(source, at, depth)?;
    let script = parser.list(&[])?;
    match &parser.token.kind {
        TokenKind::Sign(")") => Ok((script, parser.token.span.end)),
        TokenKind::End => Err(ScriptError {
            span: at.saturating_sub(2)..at,
            ..ScriptError::at_end(source, "a `$(` is not closed", "close it with `)`")
        }),
        _ => Err(parser.unexpected("put it in quotes to mean the sign")),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// What comes next.
    token: Token,
}

impl<'a> Parser<'a> {
    fn new(source: &'a str, at: usize, depth: usize) -> Result<Parser<'a>, ScriptError> {
        let mut lexer = Lexer { source, at, depth };
        let token = lexer.token()?;
        Ok(Parser { lexer, token })
    }

    fn advance(&mut self) -> Result<Token, ScriptError> {
        let next = self.lexer.token()?;
        Ok(core::mem::replace(&mut self.token, next))
    }

    fn source_of(&self, token: &Token) -> &'a str {
        &self.lexer.source[token.span.clone()]
    }

    /// The word that comes next, if it is written plainly: no quotes, nothing to expand.
    fn plain_word(&self) -> Option<&'a str> {
        match &self.token.kind {
            TokenKind::Word(_) => Some(self.source_of(&self.token)),
            _ => None,
        }
    }

    fn sign(&self) -> Option<&'static str> {
        match self.token.kind {
            TokenKind::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    fn unexpected(&self, remedy: &str) -> ScriptError {
        match &self.token.kind {
            TokenKind::End => ScriptError::at_end(self.lexer.source, "the script ends too early", remedy),
            TokenKind::Sign("\n") => ScriptError::new(self.token.span.clone(), "the line ends too early", remedy),
            _ => {
                let text = self.source_of(&self.token);
                ScriptError::new(self.token.span.clone(), format!("`{text}` cannot stand there"), remedy)
            }
        }
    }

    fn skip_separators(&mut self) -> Result<(), ScriptError> {
        while matches!(self.sign(), Some(";" | "\n")) {
            self.advance()?;
        }
        Ok(())
    }

    fn skip_lines(&mut self) -> Result<(), ScriptError> {
        while self.sign() == Some("\n") {
            self.advance()?;
        }
        Ok(())
    }

    /// Statements up to one of the words in `ends`, a `)`, or the end; that is left to the caller.
    fn list(&mut self, ends: &[&str]) -> Result<Script, ScriptError> {
        self.lexer.depth += 1;
        if self.lexer.depth > DEPTH {
            let span = self.token.span.clone();
            return Err(ScriptError::new(span, "this is nested too deeply", "use functions"));
        }
        let mut statements = Vec::new();
        loop {
            self.skip_separators()?;
            let at_end = self.token.kind == TokenKind::End || self.sign() == Some(")");
            if at_end || self.plain_word().is_some_and(|word| ends.contains(&word)) {
                break;
            }
            let mut statement = self.chain()?;
            if self.sign() == Some("&") {
                let sign = self.advance()?;
                match &mut statement.kind {
                    StatementKind::Pipeline { background, .. } => *background = true,
                    _ => {
                        let message = "only a command or a pipe can run in the background";
                        return Err(ScriptError::new(sign.span, message, "put the rest into a script and run that"));
                    }
                }
                statements.push(statement);
                continue;
            }
            statements.push(statement);
            if !matches!(self.sign(), Some(";" | "\n" | ")")) && self.token.kind != TokenKind::End {
                let remedy = match self.sign() {
                    Some("|") => "only programs can be joined by `|`; put what is before it into a script",
                    _ => "write `;` or a new line before it",
                };
                return Err(self.unexpected(remedy));
            }
        }
        self.lexer.depth -= 1;
        Ok(Script { statements })
    }

    fn chain(&mut self) -> Result<Statement, ScriptError> {
        let first = self.negated()?;
        let mut others = Vec::new();
        loop {
            let when = match self.sign() {
                Some("&&") => When::Succeeded,
                Some("||") => When::Failed,
                _ => break,
            };
            self.advance()?;
            self.skip_lines()?;
            others.push((when, self.negated()?));
        }
        let Some((_, last)) = others.last() else { return Ok(first) };
        let span = first.span.start..last.span.end;
        Ok(Statement { kind: StatementKind::Chain { first: Box::new(first), others }, span })
    }

    fn negated(&mut self) -> Result<Statement, ScriptError> {
        let start = self.token.span.start;
        let mut negations = 0;
        while self.plain_word() == Some("not") {
            self.advance()?;
            negations += 1;
        }
        let inner = self.statement()?;
        if negations % 2 == 0 {
            return Ok(inner);
        }
        let span = start..inner.span.end;
        Ok(Statement { kind: StatementKind::Not(Box::new(inner)), span })
    }

    fn statement(&mut self) -> Result<Statement, ScriptError> {
        let start = self.token.span.start;
        let kind = match self.plain_word() {
            Some("if") => self.if_statement()?,
            Some("while") => self.while_statement()?,
            Some("for") => self.for_statement()?,
            Some("function") => self.function_statement()?,
            Some("break") => self.single(StatementKind::Break)?,
            Some("continue") => self.single(StatementKind::Continue)?,
            Some("return") => self.return_statement()?,
            Some(word) => self.command_statement(word)?,
            None => return Err(self.unexpected("write a command there")),
        };
        Ok(Statement { kind, span: start..self.token.span.start.max(start) })
    }

    fn single(&mut self, kind: StatementKind) -> Result<StatementKind, ScriptError> {
        self.advance()?;
        Ok(kind)
    }

    fn command_statement(&mut self, word: &str) -> Result<StatementKind, ScriptError> {
        if let Some((_, here)) = FOREIGN.iter().find(|(foreign, _)| *foreign == word) {
            return Err(self.unexpected(&format!("write `{here}`")));
        }
        if KEYWORDS.contains(&word) {
            return Err(self.unexpected(
                "it belongs to an `if`, `while`, `for` or `function` before it; quote it to run a program of that name",
            ));
        }
        if let Some(name) = identifier_prefix(word)
            && word[name.len()..].starts_with('=')
        {
            return self.assignment(name);
        }
        let mut commands: Vec<SimpleCommand> = Vec::new();
        loop {
            let command = self.simple_command()?;
            if let (Some(input), false) = (&command.input, commands.is_empty()) {
                let message = "its input comes from the `|` before it";
                return Err(ScriptError::new(
                    input.span.clone(),
                    message,
                    "put `<` behind the first command of the pipe",
                ));
            }
            if let (Some((_, output)), Some("|")) = (&command.output, self.sign()) {
                let message = "its output goes to the `|` behind it";
                return Err(ScriptError::new(
                    output.span.clone(),
                    message,
                    "put `>` behind the last command of the pipe",
                ));
            }
            commands.push(command);
            if self.sign() != Some("|") {
                break;
            }
            self.advance()?;
            self.skip_lines()?;
            if let Some(word) = self.plain_word()
                && KEYWORDS.contains(&word)
            {
                return Err(self.unexpected("only programs can be joined by `|`; put the rest into a script"));
            }
        }
        Ok(StatementKind::Pipeline { commands, background: false })
    }

    fn assignment(&mut self, name: &str) -> Result<StatementKind, ScriptError> {
        self.lexer.at = self.token.span.start + name.len() + 1;
        let value = self.lexer.word()?;
        self.token = self.lexer.token()?;
        if matches!(self.token.kind, TokenKind::Word(_)) {
            let remedy = "programs have no environment: set the variable on its own, with `;` behind it";
            return Err(self.unexpected(remedy));
        }
        Ok(StatementKind::Assign { name: name.to_string(), value })
    }

    fn simple_command(&mut self) -> Result<SimpleCommand, ScriptError> {
        let start = self.token.span.start;
        let mut end = start;
        let mut words = Vec::new();
        let (mut input, mut output) = (None, None);
        loop {
            match self.sign() {
                Some("<") if input.is_none() => input = Some(self.redirect_path()?),
                Some(">") if output.is_none() => output = Some((OutputMode::Replace, self.redirect_path()?)),
                Some(">>") if output.is_none() => output = Some((OutputMode::Append, self.redirect_path()?)),
                Some("<" | ">" | ">>") => return Err(self.unexpected("one of them is there already; leave one out")),
                _ => match &self.token.kind {
                    TokenKind::Word(_) if self.is_number_of_a_stream() => {
                        let remedy = "only what a program writes to its output can go to a file; what it says of \
                                      errors goes to the console. If it is a word, put a blank behind it";
                        return Err(self.unexpected(remedy));
                    }
                    TokenKind::Word(word) => {
                        words.push(word.clone());
                        end = word.span.end;
                        self.advance()?;
                    }
                    _ => break,
                },
            }
            let redirected = input.as_ref().into_iter().chain(output.as_ref().map(|(_, path)| path));
            end = redirected.map(|path| path.span.end).fold(end, usize::max);
        }
        if words.is_empty() {
            return Err(self.unexpected("write a command there"));
        }
        Ok(SimpleCommand { words, input, output, span: start..end })
    }

    /// Whether the token is a number right before `<` or `>`, by which other shells mean a stream.
    fn is_number_of_a_stream(&self) -> bool {
        let is_number = self.source_of(&self.token).bytes().all(|byte| byte.is_ascii_digit());
        is_number && self.lexer.source[self.token.span.end..].starts_with(['<', '>'])
    }

    /// The path behind `<`, `>` or `>>`.
    fn redirect_path(&mut self) -> Result<Word, ScriptError> {
        self.advance()?;
        let TokenKind::Word(path) = &self.token.kind else {
            return Err(self.unexpected("write the path of a file there"));
        };
        let path = path.clone();
        self.advance()?;
        Ok(path)
    }

    /// The word `wanted`, possibly on the next line.
    fn expect(&mut self, wanted: &str, remedy: &str) -> Result<(), ScriptError> {
        self.skip_separators()?;
        if self.plain_word() != Some(wanted) {
            return Err(self.unexpected(remedy));
        }
        self.advance()?;
        Ok(())
    }

    fn if_statement(&mut self) -> Result<StatementKind, ScriptError> {
        let mut arms = Vec::new();
        let mut otherwise = Script::default();
        loop {
            // `if` or `elif`.
            self.advance()?;
            let condition = self.condition("then")?;
            self.expect("then", "write `then` after the condition of `if`")?;
            let body = self.list(&["elif", "else", "end"])?;
            arms.push((condition, body));
            match self.plain_word() {
                Some("elif") => continue,
                Some("else") => {
                    self.advance()?;
                    otherwise = self.list(&["end"])?;
                }
                _ => {}
            }
            self.expect("end", "close the `if` with `end`")?;
            return Ok(StatementKind::If { arms, otherwise });
        }
    }

    fn condition(&mut self, end: &str) -> Result<Script, ScriptError> {
        let condition = self.list(&[end])?;
        if condition.statements.is_empty() {
            return Err(self.unexpected("write a command as the condition"));
        }
        Ok(condition)
    }

    fn while_statement(&mut self) -> Result<StatementKind, ScriptError> {
        self.advance()?;
        let condition = self.condition("do")?;
        self.expect("do", "write `do` after the condition of `while`")?;
        let body = Rc::new(self.list(&["end"])?);
        self.expect("end", "close the `while` with `end`")?;
        Ok(StatementKind::While { condition, body })
    }

    fn for_statement(&mut self) -> Result<StatementKind, ScriptError> {
        self.advance()?;
        let name = self.name("write a name there: for NAME in WORDS; do ...; end")?;
        self.expect("in", "write `in` after the name: for NAME in WORDS; do ...; end")?;
        let mut words = Vec::new();
        while let TokenKind::Word(word) = &self.token.kind {
            words.push(word.clone());
            self.advance()?;
        }
        if !matches!(self.sign(), Some(";" | "\n")) {
            return Err(self.unexpected("write `;` or a new line after the words of `for`"));
        }
        self.expect("do", "write `do` after the words of `for`")?;
        let body = Rc::new(self.list(&["end"])?);
        self.expect("end", "close the `for` with `end`")?;
        Ok(StatementKind::For { name, words, body })
    }

    fn function_statement(&mut self) -> Result<StatementKind, ScriptError> {
        self.advance()?;
        let plain = self.plain_word().filter(|word| crate::quote(word) == **word);
        let Some(name) = plain.map(String::from) else {
            return Err(self.unexpected("write a name there: function NAME; ...; end"));
        };
        self.advance()?;
        if !matches!(self.sign(), Some(";" | "\n")) {
            return Err(self.unexpected("write `;` or a new line after the name of the function"));
        }
        let body = Rc::new(self.list(&["end"])?);
        self.expect("end", "close the `function` with `end`")?;
        Ok(StatementKind::Function { name, body })
    }

    fn name(&mut self, remedy: &str) -> Result<String, ScriptError> {
        match self.plain_word() {
            Some(word) if identifier_prefix(word) == Some(word) => {
                self.advance()?;
                Ok(word.to_string())
            }
            _ => Err(self.unexpected(remedy)),
        }
    }

    fn return_statement(&mut self) -> Result<StatementKind, ScriptError> {
        self.advance()?;
        let value: Option<Word> = match &self.token.kind {
            TokenKind::Word(word) => Some(word.clone()),
            _ => None,
        };
        if value.is_some() {
            self.advance()?;
        }
        Ok(StatementKind::Return(value))
    }
}

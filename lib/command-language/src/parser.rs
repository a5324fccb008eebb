//! The parser: tokens to a syntax tree.

use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::error::ScriptError;
use crate::lexer::{DEPTH, KEYWORDS, Lexer, Token, TokenKind, identifier_prefix};
use crate::syntax::{
    ErrorRedirect, OutputMode, Redirects, Script, Stage, Statement, StatementKind, When, Word, WordPart, Work,
};

/// Keywords of other shells, and their equivalents here.
const FOREIGN: &[(&str, &str)] = &[("fi", "end"), ("done", "end"), ("esac", "end"), ("!", "not")];

/// Parses a script.
pub fn parse(source: &str) -> Result<Script, ScriptError> {
    let mut parser = Parser::new(source, 0, 0)?;
    let script = parser.list(&[])?;
    match &parser.token.kind {
        TokenKind::End => Ok(script),
        _ => Err(parser.unexpected("quote it to use it literally")),
    }
}

/// Parses the script in `$(`; also returns the offset after its `)`.
pub(crate) fn parse_until_parenthesis(source: &str, at: usize, depth: usize) -> Result<(Script, usize), ScriptError> {
    let mut parser = Parser::new(source, at, depth)?;
    let script = parser.list(&[])?;
    match &parser.token.kind {
        TokenKind::Sign(")") => Ok((script, parser.token.span.end)),
        TokenKind::End => Err(ScriptError {
            span: at.saturating_sub(2)..at,
            ..ScriptError::at_end(source, "unterminated `$(`", "close it with `)`")
        }),
        _ => Err(parser.unexpected("quote it to use it literally")),
    }
}

/// Marks a statement as a background one; `None` if it cannot be.
fn run_in_background(statement: &mut Statement) -> Option<()> {
    let span = statement.span.clone();
    match &mut statement.kind {
        StatementKind::Pipeline { background, .. } => *background = true,
        StatementKind::If { .. } | StatementKind::While { .. } | StatementKind::For { .. } => {
            let kind = core::mem::replace(&mut statement.kind, StatementKind::Break);
            let work = Work::Block(Box::new(Statement { kind, span: span.clone() }));
            let stages = Vec::from([Stage { work, redirects: Redirects::default(), span }]);
            statement.kind = StatementKind::Pipeline { stages, background: true };
        }
        _ => return None,
    }
    Some(())
}

/// Whether a command is the shell's `test`.
fn is_test(word: &Word) -> bool {
    word.parts == [WordPart::Literal(String::from("test"))]
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next token.
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

    /// The next token, if it is a word without quotes or expansions.
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
            TokenKind::End => ScriptError::at_end(self.lexer.source, "unexpected end of script", remedy),
            TokenKind::Sign("\n") => ScriptError::new(self.token.span.clone(), "unexpected end of line", remedy),
            _ => {
                let text = self.source_of(&self.token);
                ScriptError::new(self.token.span.clone(), format!("unexpected `{text}`"), remedy)
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

    /// Parses statements up to a keyword in `ends`, a `)`, or the end, which is not consumed.
    fn list(&mut self, ends: &[&str]) -> Result<Script, ScriptError> {
        self.lexer.depth += 1;
        if self.lexer.depth > DEPTH {
            let span = self.token.span.clone();
            return Err(ScriptError::new(span, "nested too deeply", "use functions"));
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
                run_in_background(&mut statement).ok_or_else(|| {
                    let message = "only a command, block or pipeline can run in the background";
                    ScriptError::new(sign.span, message, "move it into a function and run that")
                })?;
                statements.push(statement);
                continue;
            }
            statements.push(statement);
            if !matches!(self.sign(), Some(";" | "\n" | ")")) && self.token.kind != TokenKind::End {
                let remedy = match self.sign() {
                    Some("|") => "move the left side into a function and pipe that",
                    _ => "add `;` or a newline before it",
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

    /// Parses a statement after any number of `not` and `time`.
    fn negated(&mut self) -> Result<Statement, ScriptError> {
        let start = self.token.span.start;
        let (mut is_negated, mut is_timed) = (false, false);
        loop {
            match self.plain_word() {
                Some("not") => is_negated = !is_negated,
                Some("time") => is_timed = true,
                _ => break,
            }
            self.advance()?;
        }
        let mut statement = self.statement()?;
        let span = start..statement.span.end;
        if is_negated {
            statement = Statement { kind: StatementKind::Not(Box::new(statement)), span: span.clone() };
        }
        if is_timed {
            statement = Statement { kind: StatementKind::Time(Box::new(statement)), span };
        }
        Ok(statement)
    }

    fn statement(&mut self) -> Result<Statement, ScriptError> {
        let start = self.token.span.start;
        let kind = match self.plain_word() {
            Some("function") => self.function_statement()?,
            Some("break") => self.single(StatementKind::Break)?,
            Some("continue") => self.single(StatementKind::Continue)?,
            Some("return") => self.return_statement()?,
            Some(word) => self.command_statement(word)?,
            None => return Err(self.unexpected("add a command")),
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
        if let Some(name) = identifier_prefix(word)
            && word[name.len()..].starts_with('=')
        {
            return self.assignment(name);
        }
        let mut stages: Vec<Stage> = Vec::new();
        loop {
            let stage = self.stage()?;
            if let (Some(input), false) = (&stage.redirects.input, stages.is_empty()) {
                let message = "conflicting input: `|` already provides it";
                return Err(ScriptError::new(
                    input.span.clone(),
                    message,
                    "put `<` after the first command of the pipeline",
                ));
            }
            if let (Some((_, output)), Some("|")) = (&stage.redirects.output, self.sign()) {
                let message = "conflicting output: `|` already takes it";
                return Err(ScriptError::new(
                    output.span.clone(),
                    message,
                    "put `>` after the last command of the pipeline",
                ));
            }
            stages.push(stage);
            if self.sign() != Some("|") {
                break;
            }
            self.advance()?;
            self.skip_lines()?;
        }
        Ok(match <[Stage; 1]>::try_from(stages) {
            Ok([Stage { work: Work::Block(block), redirects, .. }]) if redirects == Redirects::default() => block.kind,
            Ok([stage]) => StatementKind::Pipeline { stages: Vec::from([stage]), background: false },
            Err(stages) => StatementKind::Pipeline { stages, background: false },
        })
    }

    /// Parses a command or block with its redirections.
    fn stage(&mut self) -> Result<Stage, ScriptError> {
        let start = self.token.span.start;
        let kind = match self.plain_word() {
            Some("if") => self.if_statement()?,
            Some("while") => self.while_statement()?,
            Some("for") => self.for_statement()?,
            Some(word) if KEYWORDS.contains(&word) => {
                return Err(self.unexpected(
                    "no open `if`, `while`, `for` or `function` matches it; quote it to run a program of that name",
                ));
            }
            _ => return self.simple_command(),
        };
        let end = self.token.span.start.max(start);
        let mut redirects = Redirects::default();
        while self.redirect(&mut redirects)? {}
        let block = Box::new(Statement { kind, span: start..end });
        Ok(Stage { work: Work::Block(block), span: start..redirects.end().unwrap_or(end), redirects })
    }

    fn assignment(&mut self, name: &str) -> Result<StatementKind, ScriptError> {
        self.lexer.at = self.token.span.start + name.len() + 1;
        let value = self.lexer.word()?;
        self.token = self.lexer.token()?;
        if matches!(self.token.kind, TokenKind::Word(_)) {
            let remedy = "programs have no environment: set the variable in a statement of its own, ended by `;`";
            return Err(self.unexpected(remedy));
        }
        Ok(StatementKind::Assign { name: name.to_string(), value })
    }

    fn simple_command(&mut self) -> Result<Stage, ScriptError> {
        let start = self.token.span.start;
        let mut end = start;
        let mut words: Vec<Word> = Vec::new();
        let mut redirects = Redirects::default();
        loop {
            if words.first().is_some_and(is_test) {
                self.refuse_comparison()?;
            }
            if self.redirect(&mut redirects)? {
                continue;
            }
            let TokenKind::Word(word) = &self.token.kind else { break };
            if self.is_number_of_a_stream() {
                let remedy = "only `1>` (output) and `2>` (errors) are supported; if the number is an argument, \
                              put a space after it";
                return Err(self.unexpected(remedy));
            }
            end = word.span.end;
            words.push(word.clone());
            self.advance()?;
        }
        if words.is_empty() {
            return Err(self.unexpected("add a command"));
        }
        let end = redirects.end().map_or(end, |last| last.max(end));
        Ok(Stage { work: Work::Command(words), redirects, span: start..end })
    }

    /// Parses a redirection with its path; false if there is none.
    fn redirect(&mut self, redirects: &mut Redirects) -> Result<bool, ScriptError> {
        let Some(sign) = self.sign() else { return Ok(false) };
        let mode = if sign.ends_with(">>") { OutputMode::Append } else { OutputMode::Replace };
        let is_there = match sign {
            "<" => redirects.input.is_some(),
            ">" | ">>" | "1>" | "1>>" => redirects.output.is_some(),
            "2>" | "2>>" | "2>&1" => redirects.errors.is_some(),
            _ => return Ok(false),
        };
        if is_there {
            return Err(self.unexpected("that stream is already redirected; remove one redirection"));
        }
        match sign {
            "<" => redirects.input = Some(self.redirect_path()?),
            "2>&1" => {
                let (span, stands_before_output) = (self.token.span.clone(), redirects.output.is_none());
                self.advance()?;
                redirects.errors = Some(ErrorRedirect::Output { span, stands_before_output });
            }
            "2>" | "2>>" => redirects.errors = Some(ErrorRedirect::File(mode, self.redirect_path()?)),
            _ => redirects.output = Some((mode, self.redirect_path()?)),
        }
        Ok(true)
    }

    /// `test $a < 3` looks like a comparison but would be a redirection.
    fn refuse_comparison(&self) -> Result<(), ScriptError> {
        let (sign, option) = match self.sign() {
            Some("<") => ("<", "-lt"),
            Some(">" | ">>") => (">", "-gt"),
            // `test 2>1`
            Some("1>" | "2>") if self.lexer.source[self.token.span.end..].starts_with(|c: char| c.is_ascii_digit()) => {
                (">", "-gt")
            }
            _ => return Ok(()),
        };
        let message = format!("unquoted `{sign}` is a redirection, not a comparison");
        let remedy = format!("use `{option}` to compare numbers, or quote the operator: `'{sign}'`");
        Err(ScriptError::new(self.token.span.clone(), message, remedy))
    }

    /// Whether the token is a number right before `<` or `>`: a file descriptor in other shells.
    fn is_number_of_a_stream(&self) -> bool {
        let is_number = self.source_of(&self.token).bytes().all(|byte| byte.is_ascii_digit());
        is_number && self.lexer.source[self.token.span.end..].starts_with(['<', '>'])
    }

    /// Parses the path of a redirection.
    fn redirect_path(&mut self) -> Result<Word, ScriptError> {
        self.advance()?;
        let TokenKind::Word(path) = &self.token.kind else {
            return Err(self.unexpected(match self.sign() {
                Some("&") => "add the path of a file, or write `2>&1` to redirect errors to the output",
                _ => "add the path of a file",
            }));
        };
        let path = path.clone();
        self.advance()?;
        Ok(path)
    }

    /// Consumes the keyword `wanted`, possibly on the next line.
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
            self.expect("then", "add `then` after the condition of `if`")?;
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
            return Err(self.unexpected("add a command as the condition"));
        }
        Ok(condition)
    }

    fn while_statement(&mut self) -> Result<StatementKind, ScriptError> {
        self.advance()?;
        let condition = self.condition("do")?;
        self.expect("do", "add `do` after the condition of `while`")?;
        let body = Rc::new(self.list(&["end"])?);
        self.expect("end", "close the `while` with `end`")?;
        Ok(StatementKind::While { condition, body })
    }

    fn for_statement(&mut self) -> Result<StatementKind, ScriptError> {
        self.advance()?;
        let name = self.name("add a name: for NAME in WORDS; do ...; end")?;
        self.expect("in", "add `in` after the name: for NAME in WORDS; do ...; end")?;
        let mut words = Vec::new();
        while let TokenKind::Word(word) = &self.token.kind {
            words.push(word.clone());
            self.advance()?;
        }
        if !matches!(self.sign(), Some(";" | "\n")) {
            return Err(self.unexpected("add `;` or a newline after the words of `for`"));
        }
        self.expect("do", "add `do` after the words of `for`")?;
        let body = Rc::new(self.list(&["end"])?);
        self.expect("end", "close the `for` with `end`")?;
        Ok(StatementKind::For { name, words, body })
    }

    fn function_statement(&mut self) -> Result<StatementKind, ScriptError> {
        self.advance()?;
        let plain = self.plain_word().filter(|word| crate::quote(word) == **word);
        let Some(name) = plain.map(String::from) else {
            return Err(self.unexpected("add a name: function NAME; ...; end"));
        };
        self.advance()?;
        if !matches!(self.sign(), Some(";" | "\n")) {
            return Err(self.unexpected("add `;` or a newline after the name of the function"));
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

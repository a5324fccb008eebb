//! The recursive-descent parser. After an error it skips to the next possible start of a declaration or sequence.

use abi::Direction;

use super::lexer::{Token, lex};
use super::tree::*;
use crate::{Code, Diagnostic, Span};

/// Maximum nesting of choices; also bounds the parser's recursion.
const NESTING: usize = 32;

/// Maximum elements of a fixed array.
const MAX_ARRAY: u64 = 65_536;

/// Parses a file. Invalid parts are reported in `diagnostics`, and not in the tree.
pub fn parse(file: usize, text: &str, diagnostics: &mut Vec<Diagnostic>) -> Vec<Item> {
    let tokens = lex(file, text, diagnostics);
    let mut parser = Parser { tokens, position: 0, diagnostics };
    let mut items = Vec::new();
    while parser.peek() != &Token::End {
        parser.item(&mut items);
    }
    items
}

/// The parser gave up on an item, after reporting why.
struct Abandoned;

type Parsed<T> = Result<T, Abandoned>;

struct Parser<'a> {
    tokens: Vec<(Token, Span)>,
    position: usize,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> &Token {
        // The last token is the end.
        let index = (self.position + ahead).min(self.tokens.len() - 1);
        &self.tokens[index].0
    }

    fn span(&self) -> Span {
        self.tokens[self.position.min(self.tokens.len() - 1)].1
    }

    fn previous_span(&self) -> Span {
        self.tokens[self.position.saturating_sub(1)].1
    }

    fn advance(&mut self) {
        self.position = (self.position + 1).min(self.tokens.len() - 1);
    }

    fn at_sign(&self, sign: char) -> bool {
        self.peek() == &Token::Sign(sign)
    }

    fn at_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(text) if text == word)
    }

    fn take_sign(&mut self, sign: char) -> bool {
        let there = self.at_sign(sign);
        if there {
            self.advance();
        }
        there
    }

    fn take_word(&mut self, word: &str) -> bool {
        let there = self.at_word(word);
        if there {
            self.advance();
        }
        there
    }

    /// Reports an unexpected token.
    fn expected<T>(&mut self, what: &str, remedy: &str) -> Parsed<T> {
        let found = self.peek().describe();
        let message = format!("expected {what}, found {found}");
        let diagnostic = Diagnostic::new(Code::UnexpectedToken, self.span(), message, "").remedy(remedy);
        self.diagnostics.push(diagnostic);
        Err(Abandoned)
    }

    fn expect_sign(&mut self, sign: char, remedy: &str) -> Parsed<()> {
        if self.take_sign(sign) { Ok(()) } else { self.expected(&format!("`{sign}`"), remedy) }
    }

    fn name(&mut self, what: &str, remedy: &str) -> Parsed<Name> {
        match self.peek() {
            Token::Word(text) if !is_keyword(text) => {
                let name = Name { text: text.clone(), span: self.span() };
                self.advance();
                Ok(name)
            }
            _ => self.expected(what, remedy),
        }
    }

    /// Parses the name of an argument or field: it follows a type, so keywords are allowed.
    fn part_name(&mut self, what: &str, remedy: &str) -> Parsed<Name> {
        let Token::Word(text) = self.peek() else { return self.expected(what, remedy) };
        let name = Name { text: text.clone(), span: self.span() };
        self.advance();
        Ok(name)
    }

    fn documentation(&mut self) -> Documentation {
        let mut lines = Vec::new();
        while let Token::Documentation(line) = self.peek() {
            lines.push(line.clone());
            self.advance();
        }
        lines
    }

    /// Skips to a token that `stop` accepts, skipping balanced braces.
    fn skip_until(&mut self, stop: impl Fn(&Token) -> bool) {
        let mut depth = 0usize;
        loop {
            match self.peek() {
                Token::End => return,
                token if depth == 0 && stop(token) => return,
                Token::Sign('{') => depth += 1,
                Token::Sign('}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.advance();
        }
    }

    fn item(&mut self, items: &mut Vec<Item>) {
        let documentation = self.documentation();
        let before = self.position;
        let result = if self.at_word("contract") {
            self.contract(documentation).map(|contract| items.push(Item::Contract(contract)))
        } else if ["enum", "flags", "struct"].iter().any(|word| self.at_word(word)) {
            self.declared_type(documentation).map(|declared| items.push(Item::Type(declared)))
        } else if self.peek() == &Token::End {
            if documentation.is_empty() { Ok(()) } else { self.dangling_documentation() }
        } else {
            self.expected(
                "`contract`, `enum`, `flags` or `struct`",
                "a file contains contracts and the types that they share",
            )
        };
        if result.is_err() {
            if self.position == before {
                self.advance();
            }
            self.skip_until(|token| matches!(token, Token::Word(word) if is_item(word)));
        }
    }

    fn dangling_documentation(&mut self) -> Parsed<()> {
        self.expected(
            "a declaration after the documentation comment",
            "use `//` for a comment that documents no declaration",
        )
    }

    fn missing_brace(&mut self, brace: char, what: &str) {
        let diagnostic = Diagnostic::new(
            Code::MissingBrace,
            self.previous_span(),
            format!("missing `{brace}` {what}"),
            format!("expected `{brace}` after this"),
        )
        .remedy(format!("add `{brace}`; it is assumed to be present, since printed contracts sometimes omit it"));
        self.diagnostics.push(diagnostic);
    }

    fn contract(&mut self, documentation: Documentation) -> Parsed<ContractTree> {
        self.advance();
        let name = self.name("the contract's name", "write `contract Name { ... }`")?;
        let opened = self.take_sign('{');
        if !opened {
            self.missing_brace('{', "after the contract's name");
        }
        let mut members = Vec::new();
        loop {
            if self.take_sign('}') {
                break;
            }
            if self.peek() == &Token::End || self.at_word("contract") {
                if opened {
                    self.missing_brace('}', "at the end of the contract");
                }
                break;
            }
            self.member(&mut members);
        }
        Ok(ContractTree { documentation, name, members })
    }

    fn member(&mut self, members: &mut Vec<Member>) {
        let documentation = self.documentation();
        let before = self.position;
        let result = match self.peek() {
            Token::Word(word) => match word.as_str() {
                "enum" | "flags" | "struct" => self.declared_type(documentation).map(Member::Type),
                "in" | "out" | "message" => self.message(documentation).map(Member::Message),
                "state" => self.state(documentation).map(Member::State),
                _ => self.expected("a message, a state or a type", MEMBERS),
            },
            _ => self.expected("a message, a state or a type", MEMBERS),
        };
        match result {
            Ok(member) => members.push(member),
            Err(Abandoned) => {
                if self.position == before && !self.at_sign('}') {
                    self.advance();
                }
                self.skip_until(|token| match token {
                    Token::Word(word) => is_member(word) || word == "contract",
                    token => matches!(token, Token::Sign('}') | Token::Documentation(_)),
                });
            }
        }
    }

    fn declared_type(&mut self, documentation: Documentation) -> Parsed<TypeTree> {
        let (is_enum, is_flags) = (self.at_word("enum"), self.at_word("flags"));
        self.advance();
        let name = self.name(
            "the type's name",
            "write `enum Name { A, B }`, `flags Name { A, B }` or `struct Name { uint a; }`",
        )?;
        let number = match is_flags && self.take_sign(':') {
            true => Some(self.name("the underlying type of the flags", "write `flags Name : ushort { A, B }`")?),
            false => None,
        };
        self.expect_sign('{', "enclose the members of a type in braces")?;
        let content = if is_enum {
            self.variants().map(TypeKindTree::Enum)
        } else if is_flags {
            self.variants().map(|flags| TypeKindTree::Flags { number, flags })
        } else {
            self.fields().map(TypeKindTree::Struct)
        };
        let Ok(kind) = content else {
            self.skip_until(|token| token == &Token::Sign('}'));
            self.take_sign('}');
            return Err(Abandoned);
        };
        self.take_sign(';');
        Ok(TypeTree { documentation, name, kind })
    }

    fn variants(&mut self) -> Parsed<Vec<VariantTree>> {
        let mut variants = Vec::new();
        while !self.take_sign('}') {
            let documentation = self.documentation();
            let name = self.name("a name", "separate the names with commas: `{ A, B }`")?;
            variants.push(VariantTree { documentation, name });
            if !self.take_sign(',') && !self.at_sign('}') {
                return self.expected("`,` or `}`", "separate the names with commas");
            }
        }
        Ok(variants)
    }

    fn fields(&mut self) -> Parsed<Vec<FieldTree>> {
        let mut fields = Vec::new();
        while !self.take_sign('}') {
            let documentation = self.documentation();
            let mut value = self.value()?;
            let name = self.part_name("the field's name", "write `uint name;`")?;
            self.length_after_name(&mut value)?;
            fields.push(FieldTree { documentation, value, name });
            if !self.take_sign(';') && !self.take_sign(',') && !self.at_sign('}') {
                return self.expected("`;`", "end each field with `;`");
            }
        }
        Ok(fields)
    }

    /// `uint`, `byte[32]`, `Directory.NodeKind`.
    fn value(&mut self) -> Parsed<ValueTree> {
        let first = self.name("a type", TYPES)?;
        let (contract, name) = if self.take_sign('.') {
            (Some(first), self.name("the type's name", "write `Contract.Type`")?)
        } else {
            (None, first)
        };
        let mut value = ValueTree { contract, name, length: None };
        self.length_after_name(&mut value)?;
        Ok(value)
    }

    /// `[32]`, but not `[]`.
    fn length_after_name(&mut self, value: &mut ValueTree) -> Parsed<()> {
        while self.at_sign('[') && self.peek_at(1) != &Token::Sign(']') {
            self.length(value)?;
        }
        Ok(())
    }

    fn length(&mut self, value: &mut ValueTree) -> Parsed<()> {
        self.advance();
        let span = self.span();
        let Token::Number(number) = *self.peek() else {
            return self.expected("the array's length", "write `byte[32] name` or `byte[] in ExHeap name`");
        };
        self.advance();
        self.expect_sign(']', "write `byte[32] name`")?;
        if value.length.is_some() || number == 0 || number > MAX_ARRAY {
            let message = if value.length.is_some() {
                "arrays of arrays are not supported".to_string()
            } else {
                format!("invalid array length {number}")
            };
            self.diagnostics.push(
                Diagnostic::new(Code::BadLength, span, message, "")
                    .remedy(format!("use a length between 1 and {MAX_ARRAY}; wrap inner arrays in a struct")),
            );
        } else {
            value.length = Some(Number { value: number, span });
        }
        Ok(())
    }

    fn message(&mut self, documentation: Documentation) -> Parsed<MessageTree> {
        let direction = if self.take_word("in") {
            Some(Direction::ToExporter)
        } else if self.take_word("out") {
            Some(Direction::ToImporter)
        } else {
            None
        };
        if !self.take_word("message") {
            return self.expected("`message`", "write `in message Name(...);` or `out message Name(...);`");
        }
        let name = self.name("the message's name", "write `in message Name(...);`")?;
        self.expect_sign('(', "write `Name()` for a message without arguments")?;
        let mut arguments = Vec::new();
        while !self.take_sign(')') {
            arguments.push(self.argument()?);
            if !self.take_sign(',') && !self.at_sign(')') {
                return self.expected("`,` or `)`", "separate arguments with commas");
            }
        }
        self.take_sign(';');
        Ok(MessageTree { documentation, direction, name, arguments })
    }

    fn argument(&mut self) -> Parsed<ArgumentTree> {
        let start = self.span();
        let mut kind = self.argument_kind()?;
        let name = self.part_name("the argument's name", "give each argument a name: `uint count`")?;
        if let ArgumentKindTree::Inline(value) = &mut kind {
            self.length_after_name(value)?;
        }
        Ok(ArgumentTree { kind, name, span: start.to(self.previous_span()) })
    }

    fn argument_kind(&mut self) -> Parsed<ArgumentKindTree> {
        let is_side = |token: &Token| matches!(token, Token::Word(word) if word == "Imp" || word == "Exp");
        if self.peek_at(1) == &Token::Sign('.') && is_side(self.peek_at(2)) {
            return self.endpoint();
        }
        let value = self.value()?;
        let many = match self.peek() {
            Token::Sign('[') => {
                self.advance();
                self.expect_sign(']', "write `byte[] in ExHeap name`")?;
                true
            }
            Token::Sign('*') => {
                self.advance();
                false
            }
            _ => return Ok(ArgumentKindTree::Inline(value)),
        };
        let passing = if self.take_word("in") {
            Passing::Owned
        } else if self.take_word("lent") {
            Passing::Lent
        } else if self.take_word("returned") {
            Passing::Returned
        } else {
            return self.expected("`in`, `lent` or `returned`", PASSING);
        };
        if !self.take_word("ExHeap") {
            return self.expected("`ExHeap`", PASSING);
        }
        Ok(ArgumentKindTree::Block { element: value, many, passing })
    }

    fn endpoint(&mut self) -> Parsed<ArgumentKindTree> {
        let contract = self.name("a contract's name", "write `Contract.Imp:STATE` or `any.Imp`")?;
        self.advance();
        let importer = self.at_word("Imp");
        self.advance();
        if contract.text == "any" {
            return Ok(ArgumentKindTree::Any { importer });
        }
        self.expect_sign(':', "specify the state of the endpoint: `Contract.Imp:STATE`")?;
        let state = self.name("the endpoint's state", "write `Contract.Imp:STATE`")?;
        Ok(ArgumentKindTree::Endpoint { contract, importer, state })
    }

    fn state(&mut self, documentation: Documentation) -> Parsed<StateTree> {
        self.advance();
        let name = self.name("the state's name", "write `state NAME: one { ... }`")?;
        if self.take_sign(';') {
            return Ok(StateTree { documentation, name, branches: Vec::new() });
        }
        self.expect_sign(':', "write `state NAME: one { ... }`")?;
        self.take_word("one");
        let mut branches = Vec::new();
        if !self.take_sign('{') {
            branches.push(self.sequence(0)?);
            self.take_sign(';');
            return Ok(StateTree { documentation, name, branches });
        }
        loop {
            if self.take_sign('}') {
                break;
            }
            let ends = match self.peek() {
                Token::Word(word) => is_member(word) || word == "contract",
                token => matches!(token, Token::End | Token::Documentation(_)),
            };
            if ends {
                self.missing_brace('}', &format!("at the end of state `{}`", name.text));
                break;
            }
            match self.sequence(0) {
                Ok(sequence) => branches.push(sequence),
                Err(Abandoned) => self.skip_until(|token| match token {
                    Token::Word(word) => is_member(word) || word == "contract",
                    token => matches!(token, Token::Sign(';' | '}') | Token::Documentation(_)),
                }),
            }
            self.take_sign(';');
        }
        Ok(StateTree { documentation, name, branches })
    }

    /// Parses steps with arrows between them. The arrow may be omitted after a message with a sign, and after a choice,
    /// as in the papers' listings.
    fn sequence(&mut self, depth: usize) -> Parsed<Sequence> {
        let start = self.span();
        let mut steps = vec![self.step(depth)?];
        loop {
            if self.take_arrow() {
                steps.push(self.step(depth)?);
                continue;
            }
            let may_juxtapose = !matches!(steps.last(), Some(Step::Name { sign: None, .. }));
            let at_step = match self.peek() {
                Token::Word(word) => !is_keyword(word),
                token => token == &Token::Sign('('),
            };
            if !(may_juxtapose && at_step) {
                break;
            }
            steps.push(self.step(depth)?);
        }
        Ok(Sequence { steps, span: start.to(self.previous_span()) })
    }

    fn take_arrow(&mut self) -> bool {
        if self.peek() == &Token::Arrow {
            self.advance();
            return true;
        }
        if !self.at_sign('!') || !matches!(self.peek_at(1), Token::Word(word) if !is_keyword(word)) {
            return false;
        }
        let message = "expected an arrow, found `!`";
        let diagnostic = Diagnostic::new(Code::ExclamationArrow, self.span(), message, "read as `->`")
            .remedy("write `->`; printed contracts sometimes show the arrow as `!`");
        self.diagnostics.push(diagnostic);
        self.advance();
        true
    }

    fn step(&mut self, depth: usize) -> Parsed<Step> {
        if !self.at_sign('(') {
            let name = self.name("a message, a state or `(`", SEQUENCE)?;
            let span = self.span();
            let sign = match self.peek() {
                Token::Sign('!') => Some((Direction::ToImporter, span)),
                Token::Sign('?') => Some((Direction::ToExporter, span)),
                _ => None,
            };
            if sign.is_some() {
                self.advance();
            }
            return Ok(Step::Name { name, sign });
        }
        let start = self.span();
        if depth >= NESTING {
            let message = format!("choices are nested more than {NESTING} deep");
            self.diagnostics.push(
                Diagnostic::new(Code::NestedTooDeeply, start, message, "")
                    .remedy("move the inner part to a separate state"),
            );
            return Err(Abandoned);
        }
        self.advance();
        let mut alternatives = vec![self.sequence(depth + 1)?];
        while self.take_word("or") {
            alternatives.push(self.sequence(depth + 1)?);
        }
        self.expect_sign(')', "write `(A! or B!)`")?;
        Ok(Step::Choice { alternatives, span: start.to(self.previous_span()) })
    }
}

const MEMBERS: &str = "a contract contains `in message`, `out message`, `state`, `enum`, `flags` and `struct`";
const TYPES: &str =
    "types are bool, byte, ushort, uint, ulong, sbyte, short, int, long, char, and declared enums, flags and structs";
const PASSING: &str = "pass a block as `in ExHeap` (moved), `lent ExHeap` (returned later) or `returned ExHeap`";
const SEQUENCE: &str = "write a sequence as `A? -> (B! or C!) -> STATE;`";

// Without `flags`, which is a common name of fields and arguments.
fn is_item(word: &str) -> bool {
    matches!(word, "contract" | "enum" | "struct")
}

fn is_member(word: &str) -> bool {
    matches!(word, "enum" | "struct" | "message" | "in" | "out" | "state")
}

fn is_keyword(word: &str) -> bool {
    is_item(word) || is_member(word) || matches!(word, "or" | "one")
}

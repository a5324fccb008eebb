//! Message signatures, as far as the automaton has them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abi::{Automaton, BlockShape, Direction, EndpointShape, MessageShape, NO_TRANSITION, type_tag};

/// Element types that are recognized by their tags.
const KNOWN: [&str; 8] = ["byte", "ushort", "uint", "ulong", "sbyte", "short", "int", "long"];

/// `Read(2 words, byte[] lent)`.
pub fn signature(message: &MessageShape, contract_name: &impl Fn(u64) -> Option<String>) -> String {
    let mut parts: Vec<String> = Vec::new();
    match message.scalar_words {
        0 => {}
        1 => parts.push("1 word".to_string()),
        words => parts.push(format!("{words} words")),
    }
    parts.extend(message.blocks.iter().map(block));
    parts.extend(message.endpoints.iter().map(|shape| endpoint(shape, contract_name)));
    format!("{}({})", message.name, parts.join(", "))
}

fn block(shape: &BlockShape) -> String {
    let known = KNOWN.iter().find(|name| type_tag(name) == shape.type_tag);
    let element = known.map_or("block".to_string(), |name| format!("{name}[]"));
    match (shape.lent, shape.returned) {
        (true, _) => format!("{element} lent"),
        (_, true) => format!("{element} returned"),
        _ => element,
    }
}

fn endpoint(shape: &EndpointShape, contract_name: &impl Fn(u64) -> Option<String>) -> String {
    let side = if shape.importer { "Imp" } else { "Exp" };
    if shape.contract == 0 {
        return format!("any.{side}");
    }
    match contract_name(shape.contract) {
        Some(name) => format!("{name}.{side}"),
        None if shape.state == NO_TRANSITION => format!("an {side}"),
        None => format!("an {side} in state {}", shape.state),
    }
}

/// A line per message, those to the exporter first.
pub fn list(out: &mut String, automaton: &Automaton, signatures: &[String]) {
    for (direction, word) in [(Direction::ToExporter, "in "), (Direction::ToImporter, "out")] {
        let going = automaton.messages.iter().zip(signatures).filter(|(message, _)| message.direction == direction);
        for (_, signature) in going {
            out.push_str(&format!("  {word} {signature}\n"));
        }
    }
    if !automaton.messages.is_empty() {
        out.push('\n');
    }
}

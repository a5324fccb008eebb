//! JSON Schemas of manifests, for editors with TOML support: completion, documentation, and diagnostics.
//!
//! A schema accepts whatever the reader accepts; the reader refuses more, because it checks several values together,
//! contracts and programs. Neighbour: [`crate::shapes`], from which the schemas are generated.

use arguments::HELP_FLAG;

use crate::shapes::{Key, Kind, LIST_MAX, PROGRAM, Presence, SYSTEM, Shape};

/// Control characters, which no line of text may contain.
const CONTROL: &str = r"\u0000-\u001f\u007f-\u009f";
/// A component of a version.
const NUMBER: &str = "(0|[1-9][0-9]*)";
/// A component of a path: not empty, `.` or `..`.
const COMPONENT: &str = r"([^/.CONTROL][^/CONTROL]*|\.[^/.CONTROL][^/CONTROL]*|\.\.[^/CONTROL]+)";

/// Returns the schema of a program's manifest, as JSON text.
pub fn program() -> String {
    document(&PROGRAM)
}

/// Returns the schema of a system manifest, as JSON text.
pub fn system() -> String {
    document(&SYSTEM)
}

fn document(shape: &Shape) -> String {
    let head = [
        // The draft that TOML editors support completely. Without `$id`: taplo refuses one that is not an absolute URI.
        member("$schema", text("http://json-schema.org/draft-07/schema#")),
        member("title", text(shape.meaning)),
    ];
    indented(&object([head.into(), members_of(shape)].concat()))
}

/// The schema of a table, as the members of an object.
fn members_of(shape: &Shape) -> Vec<String> {
    let properties = shape.keys.iter().map(|key| member(key.name, schema_of(key))).collect();
    let required = shape.keys.iter().filter(|key| key.presence == Presence::Required);
    let required: Vec<String> = required.map(|key| text(key.name)).collect();
    let mut members = vec![
        member("type", text("object")),
        member("additionalProperties", "false".into()),
        member("properties", object(properties)),
    ];
    if !required.is_empty() {
        members.push(member("required", list(&required)));
        // Keys that the editor inserts into a new table.
        members.push(member("x-taplo", object(vec![member("initKeys", list(&required))])));
    }
    if !shape.together.is_empty() {
        members.push(shape.together.into());
    }
    members
}

fn schema_of(key: &Key) -> String {
    let mut members = vec![member("description", text(key.meaning))];
    if let Presence::Default(default) = key.presence {
        members.push(member("default", default.into()));
    }
    members.extend(members_of_kind(&key.kind));
    object(members)
}

/// Returns the schema of a kind of values, as the members of an object.
fn members_of_kind(kind: &Kind) -> Vec<String> {
    let plain = |kind: &str| vec![member("type", text(kind))];
    match kind {
        Kind::Text => plain("string"),
        Kind::Path => pattern(&format!("^(/|(/{COMPONENT})+)$")),
        Kind::SomeText => pattern(r"\S"),
        Kind::Line => pattern(r"^[^CONTROL]*[^\sCONTROL][^CONTROL]*$"),
        Kind::Name => pattern("^[a-z][a-z0-9-]{0,62}$"),
        Kind::NumberedName => pattern("^[a-z][a-z0-9#-]{0,62}$"),
        Kind::ProgramName => {
            let taken = object(vec![member("const", text(manifest_model::SYSTEM_NAME))]);
            [members_of_kind(&Kind::Name), vec![member("not", taken)]].concat()
        }
        Kind::Version => pattern(&format!(r"^{NUMBER}\.{NUMBER}\.{NUMBER}$")),
        Kind::AtLeast => pattern(&format!(r"^>=\s*{NUMBER}(\.{NUMBER}){{0,2}}$")),
        Kind::PathPattern => pattern(r"^(/|\*\*)"),
        Kind::PrincipalPattern => pattern("."),
        Kind::ProgramPattern => pattern(r"^[a-z0-9*-]+\.[a-z0-9*-]+$"),
        Kind::Publishers => pattern(r"^(\*|[a-z][a-z0-9-]{0,62}(-\*)?)$"),
        Kind::PublicKey => pattern("^[0-9a-fA-F]{64}$"),
        Kind::Revoked => pattern("^([0-9a-fA-F]{16}|[0-9a-fA-F]{64})$"),
        Kind::Module => pattern("^[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z_][A-Za-z0-9_]*)*$"),
        Kind::Flag => {
            let taken = object(vec![member("const", text(HELP_FLAG))]);
            [pattern("^(-[A-Za-z]|--[A-Za-z][A-Za-z0-9-]+)$"), vec![member("not", taken)]].concat()
        }
        Kind::Range => pattern(r"^(0x[0-9a-fA-F]+|[0-9]+)\+(0x[0-9a-fA-F]+|[0-9]+)$"),
        Kind::Source => {
            let words = object(vec![member("enum", list(&["parent", "stdin", "stdout"].map(text)))]);
            let members = vec![member("anyOf", list(&[words, object(members_of_kind(&Kind::Path))]))];
            [plain("string"), members].concat()
        }
        Kind::Number(least, most) => {
            let range = [member("minimum", least.to_string()), member("maximum", most.to_string())];
            [plain("integer"), range.into()].concat()
        }
        Kind::Boolean => plain("boolean"),
        Kind::Word(words) => {
            let words: Vec<String> = words.iter().map(text).collect();
            [plain("string"), vec![member("enum", list(&words))]].concat()
        }
        Kind::Value => vec![member("type", list(&["string", "integer", "boolean"].map(text)))],
        Kind::Setting => {
            let one = object(members_of_kind(&Kind::Value));
            let several = object(members_of_kind(&Kind::List(&Kind::Value)));
            vec![member("anyOf", list(&[one, several, object(members_of(&crate::shapes::FROM_ROOT))]))]
        }
        Kind::List(of) => list_of(members_of_kind(of)),
        Kind::Map(of) => [plain("object"), vec![member("additionalProperties", object(members_of_kind(of)))]].concat(),
        Kind::Table(shape) => members_of(shape),
        Kind::Tables(shape) => list_of(members_of(shape)),
    }
}

/// Returns the schema of a list with these items.
fn list_of(items: Vec<String>) -> Vec<String> {
    let most = member("maxItems", LIST_MAX.to_string());
    vec![member("type", text("array")), most, member("items", object(items))]
}

/// Returns the schema of a text that contains a match of the pattern; `CONTROL` in it is replaced by the control
/// characters.
fn pattern(pattern: &str) -> Vec<String> {
    vec![member("type", text("string")), member("pattern", text(pattern.replace("CONTROL", CONTROL)))]
}

fn member(name: &str, value: String) -> String {
    format!("{}:{value}", text(name))
}

fn object(members: Vec<String>) -> String {
    format!("{{{}}}", members.join(","))
}

fn list(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}

/// Returns a text as JSON. In the texts of this crate, only quotes and backslashes need escapes.
fn text(text: impl AsRef<str>) -> String {
    format!("\"{}\"", text.as_ref().replace('\\', "\\\\").replace('"', "\\\""))
}

/// Formats JSON with a member or an item per line.
fn indented(json: &str) -> String {
    let mut out = String::new();
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    };
    for character in json.chars() {
        if in_text {
            out.push(character);
            in_text = escaped || character != '"';
            escaped = character == '\\' && !escaped;
            continue;
        }
        match character {
            '{' | '[' => {
                depth += 1;
                out.push(character);
                line(&mut out, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                // Empty braces and brackets stay on one line.
                if out.trim_end().ends_with(['{', '[']) {
                    out.truncate(out.trim_end().len());
                } else {
                    line(&mut out, depth);
                }
                out.push(character);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            '"' => {
                in_text = true;
                out.push('"');
            }
            _ if character.is_whitespace() => {}
            _ => out.push(character),
        }
    }
    out.push('\n');
    out
}

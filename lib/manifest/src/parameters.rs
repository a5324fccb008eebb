//! Reads the parameters of a program's manifest.

use arguments::HELP_FLAG;
use manifest_model::{Parameter, ParameterKind, Value};
use toml::Spanned;
use toml::de::DeValue;

use crate::diagnostic::Code;
use crate::reader::{At, Report, Table, integer, is_integer, range_remedy, wrong_type};

/// Reads all `[[parameter]]`; the place of each is that of its name.
pub(crate) fn read(report: &Report, root: &Table<'_, '_>) -> Vec<At<Parameter>> {
    let mut parameters = Vec::new();
    for table in root.tables("parameter") {
        parameters.extend(parameter(report, &table));
        table.close();
    }
    parameters
}

fn parameter(report: &Report, table: &Table<'_, '_>) -> Option<At<Parameter>> {
    let name = table.required_text("name");
    let kind = table.required_word("type", ParameterKind::from_word);
    let default = table.get("default");
    let required = table.flag("required").value;
    let repeated = table.flag("repeated").value;
    let position = table.number("position", Code::WrongType, "out of range");
    let flag = table.text("flag");
    if let Some(flag) = flag.as_ref().filter(|flag| flag.value == HELP_FLAG) {
        let message = format!("the flag `{HELP_FLAG}` is taken: it shows a program's help");
        report.add(Code::BadFlag, message, &flag.span, "every program has it", "give another word".into());
    }
    let help = table.text("help");
    if let Some(help) = help.as_ref().filter(|help| help.value.trim().is_empty()) {
        let remedy = "say in one line what it is for".into();
        report.add(Code::BadText, "the help is empty".into(), &help.span, "one line is wanted", remedy);
    }
    let (name, kind) = (name?, kind?.value);
    let what = format!("the default of `{}`", name.value);
    let default = default.and_then(|default| value_of(report, &what, kind, default));
    let parameter = Parameter {
        name: name.value,
        kind,
        default,
        required,
        position: position.and_then(|position| u16::try_from(position.value).ok()),
        repeated,
        flag: flag.map(|flag| flag.value),
        help: help.map_or(String::new(), |help| help.value),
    };
    Some(At::new(parameter, name.span))
}

/// Reads a value for a parameter of the type. The rules check that its type matches; a value of an unsupported type or
/// size is reported.
pub(crate) fn value_of(
    report: &Report,
    what: &str,
    kind: ParameterKind,
    value: &Spanned<DeValue<'_>>,
) -> Option<Value> {
    let found = value.get_ref();
    match (found, integer(found)) {
        (DeValue::String(text), _) => Some(Value::Text(text.to_string())),
        (DeValue::Boolean(flag), _) => Some(Value::Boolean(*flag)),
        (_, Some(number)) => {
            let duration = u64::try_from(number).ok().filter(|_| kind == ParameterKind::DurationMs);
            Some(duration.map_or(Value::Integer(number), Value::DurationMs))
        }
        _ if is_integer(found) => {
            let least = if kind == ParameterKind::DurationMs { 0 } else { i64::MIN };
            let message = format!("{what} is out of range");
            report.add(Code::WrongType, message, &value.span(), "out of range", range_remedy((least, i64::MAX)));
            None
        }
        _ => {
            wrong_type(report, what, &format!("a value of the type `{kind}`"), value);
            None
        }
    }
}

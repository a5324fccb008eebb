//! The parameters of a program's manifest.

use arguments::HELP_FLAG;
use manifest_model::{Parameter, ParameterKind, Value};
use toml::Spanned;
use toml::de::DeValue;

use crate::diagnostic::{Code, Kind};
use crate::reader::{At, Report, Table, integer, is_integer, range_remedy};

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
    let position = table.integer("position").and_then(|number| position(report, number));
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
    let default = default.and_then(|default| value_of(report, install::Code::DefaultType, &what, kind, default));
    let parameter = Parameter {
        name: name.value,
        kind,
        default,
        required,
        position,
        repeated,
        flag: flag.map(|flag| flag.value),
        help: help.map_or(String::new(), |help| help.value),
    };
    Some(At::new(parameter, name.span))
}

fn position(report: &Report, number: At<i64>) -> Option<u16> {
    let position = u16::try_from(number.value).ok();
    if position.is_none() {
        let message = format!("{} is not a position", number.value);
        let remedy = "number the positions 0, 1, 2, ...".to_string();
        report.add(install::Code::PositionGap, message, &number.span, "positions begin at 0", remedy);
    }
    position
}

/// The value as one of the type, reported under `code` where it is of another.
pub(crate) fn value_of(
    report: &Report,
    code: impl Into<Kind>,
    what: &str,
    kind: ParameterKind,
    value: &Spanned<DeValue<'_>>,
) -> Option<Value> {
    let (found, code) = (value.get_ref(), code.into());
    let result = match kind {
        ParameterKind::Text => found.as_str().filter(|text| !text.contains('\0')).map(|text| Value::Text(text.into())),
        ParameterKind::Integer => integer(found).map(Value::Integer),
        ParameterKind::Boolean => found.as_bool().map(Value::Boolean),
        ParameterKind::DurationMs => {
            integer(found).and_then(|number| u64::try_from(number).ok()).map(Value::DurationMs)
        }
    };
    if result.is_none() {
        let wanted = match kind {
            ParameterKind::Text => "a text in quotes",
            ParameterKind::Integer => "a whole number",
            ParameterKind::Boolean => "`true` or `false`",
            ParameterKind::DurationMs => "a number of milliseconds, from 0",
        };
        match found {
            _ if is_integer(found) && integer(found).is_none() && wants_number(kind) => {
                let least = if kind == ParameterKind::Integer { i64::MIN } else { 0 };
                let message = format!("{what} is out of range");
                report.add(code, message, &value.span(), "out of range", range_remedy((least, i64::MAX)));
            }
            _ => {
                let message = format!("{what} is not of the type `{kind}`");
                report.add(code, message, &value.span(), &format!("{wanted} is wanted"), format!("write {wanted}"));
            }
        }
    }
    result
}

fn wants_number(kind: ParameterKind) -> bool {
    matches!(kind, ParameterKind::Integer | ParameterKind::DurationMs)
}

//! The parameters of a program's manifest.

use arguments::HELP_FLAG;
use manifest_model::{Parameter, ParameterKind, Value};
use toml::Spanned;
use toml::de::DeValue;

use crate::diagnostic::Code;
use crate::program::{check_line, check_name, duplicate};
use crate::reader::{At, Report, Table, integer, is_integer, range_remedy, wrong_type};

/// Reads all `[[parameter]]`; the place of each is that of its name.
pub(crate) fn read(report: &Report, root: &Table<'_, '_>) -> Vec<At<Parameter>> {
    let mut rows: Vec<Row> = Vec::new();
    for table in root.tables("parameter") {
        let row = parameter(report, &table);
        table.close();
        let Some(row) = row else { continue };
        match rows.iter().find(|other| other.name.value == row.name.value) {
            Some(first) => duplicate(report, Code::DuplicateParameter, "the parameter", &row.name, &first.name.span),
            None => rows.push(row),
        }
    }
    check_flags(report, &rows);
    check_positions(report, &rows);
    rows.into_iter().map(Row::into_parameter).collect()
}

struct Row {
    name: At<String>,
    kind: ParameterKind,
    default: Option<Value>,
    required: bool,
    position: Option<At<u16>>,
    repeated: bool,
    flag: Option<At<String>>,
    help: String,
}

impl Row {
    fn into_parameter(self) -> At<Parameter> {
        let parameter = Parameter {
            name: self.name.value,
            kind: self.kind,
            default: self.default,
            required: self.required,
            position: self.position.map(|position| position.value),
            repeated: self.repeated,
            flag: self.flag.map(|flag| flag.value),
            help: self.help,
        };
        At::new(parameter, self.name.span)
    }
}

fn parameter(report: &Report, table: &Table<'_, '_>) -> Option<Row> {
    let name = table.required_text("name");
    if let Some(name) = &name {
        check_name(report, name, "a parameter");
    }
    let kind = table.required_word("type", ParameterKind::from_word);
    let default = table.get("default");
    let required = table.flag("required");
    let repeated = table.flag("repeated");
    let position = table.integer("position").and_then(|number| position(report, number));
    let flag = table.text("flag");
    let help = table.text("help");
    if let Some(help) = &help {
        check_line(report, help, "help");
    }
    let (name, kind) = (name?, kind?.value);
    let wanted = if required.value {
        Some("a required parameter")
    } else if repeated.value {
        Some("a repeated parameter")
    } else {
        None
    };
    if let (Some(wanted), Some(default)) = (wanted, default) {
        let message = format!("the default of {wanted} is never used");
        let remedy = "remove the default, or the key that makes it useless".to_string();
        report.add(Code::UselessDefault, message, &default.span(), "never used", remedy);
    }
    Some(Row {
        default: default
            .filter(|_| wanted.is_none())
            .and_then(|default| value_of(report, Code::BadDefault, "the default", kind, default)),
        name,
        kind,
        required: required.value,
        position,
        repeated: repeated.value,
        flag,
        help: help.map_or(String::new(), |help| help.value),
    })
}

fn position(report: &Report, number: At<i64>) -> Option<At<u16>> {
    match u16::try_from(number.value) {
        Ok(position) => Some(At::new(position, number.span)),
        Err(_) => {
            let message = format!("{} is not a position", number.value);
            let remedy = "number the positions 0, 1, 2, ...".to_string();
            report.add(Code::PositionGap, message, &number.span, "positions begin at 0", remedy);
            None
        }
    }
}

/// The value as one of the type, reported under `code` where it is of another.
pub(crate) fn value_of(
    report: &Report,
    code: Code,
    what: &str,
    kind: ParameterKind,
    value: &Spanned<DeValue<'_>>,
) -> Option<Value> {
    let found = value.get_ref();
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
            DeValue::Table(_) | DeValue::Array(_) if code == Code::WrongType => wrong_type(report, what, wanted, value),
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

fn check_flags(report: &Report, rows: &[Row]) {
    for (index, row) in rows.iter().enumerate() {
        let Some(flag) = &row.flag else { continue };
        let word = flag.value.strip_prefix("--").filter(|word| word.len() > 1);
        let letter = flag.value.strip_prefix('-').filter(|letter| letter.len() == 1);
        let typed = |text: &str| {
            text.starts_with(|first: char| first.is_ascii_alphabetic())
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        if !word.or(letter).is_some_and(typed) {
            let message = format!("`{}` is not a flag", flag.value);
            let remedy = "write a hyphen and a letter, `-l`, or two and a word, `--long`".to_string();
            report.add(Code::BadFlag, message, &flag.span, "not a flag", remedy);
        }
        if flag.value == HELP_FLAG {
            let message = format!("the flag `{HELP_FLAG}` is taken: it shows a program's help");
            report.add(Code::BadFlag, message, &flag.span, "every program has it", "give another word".into());
        }
        let before = rows[..index].iter().filter_map(|other| other.flag.as_ref());
        if let Some(first) = before.into_iter().find(|other| other.value == flag.value) {
            duplicate(report, Code::DuplicateFlag, "the flag", flag, &first.span);
        }
    }
}

fn check_positions(report: &Report, rows: &[Row]) {
    let mut placed: Vec<(&At<u16>, &Row)> = rows.iter().filter_map(|row| Some((row.position.as_ref()?, row))).collect();
    placed.sort_by_key(|(position, _)| position.value);
    for pair in placed.windows(2) {
        let ((first, before), (second, row)) = (pair[0], pair[1]);
        if first.value == second.value {
            let position = At::new(second.value.to_string(), second.span.clone());
            duplicate(report, Code::DuplicatePosition, "the position", &position, &first.span);
        } else if row.required && !before.required {
            let message =
                format!("`{}` is required, but comes after `{}`, which is not", row.name.value, before.name.value);
            let remedy = "put required positions first".to_string();
            let here = (&second.span, "required");
            report.add_second(Code::RequiredAfterOptional, message, here, (&first.span, "not required"), remedy);
        }
        if before.repeated {
            let message = format!(
                "`{}` takes all words from its position on, but `{}` comes after it",
                before.name.value, row.name.value
            );
            let remedy = "give the repeated parameter the last position".to_string();
            let here = (&first.span, "takes all words");
            report.add_second(Code::RepeatedNotLast, message, here, (&second.span, "never reached"), remedy);
        }
    }
    let distinct: Vec<u16> = {
        let mut all: Vec<u16> = placed.iter().map(|(position, _)| position.value).collect();
        all.dedup();
        all
    };
    let gap = distinct.iter().zip(0u16..).find(|(position, expected)| *position != expected);
    if let Some((position, expected)) = gap
        && let Some((at, _)) = placed.iter().find(|(at, _)| at.value == *position)
    {
        let message = format!("there is a position {position}, but no position {expected}");
        let remedy = format!("number the positions 0, 1, 2, ...; this one is {expected}");
        report.add(Code::PositionGap, message, &at.span, "this place is never reached", remedy);
    }
}

//! The benchmark's table: figures beside Linux, Singularity of 2007 and the targets.
//!
//! Deliberately not here: where the figures come from.

use std::collections::BTreeMap;

use serde_json::json;

/// Maximum slowdown of an operation among many SIPs.
const CROWDED_TIMES: f64 = 1.5;

/// Unit of the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Cycles of the processor's time-stamp counter.
    Cycles,
    /// Instructions that the guest executed.
    Instructions,
}

impl Unit {
    fn word(self) -> &'static str {
        match self {
            Unit::Cycles => "cycles",
            Unit::Instructions => "instructions",
        }
    }
}

/// Target.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Target {
    /// Maximum in cycles; does not apply to instructions.
    Cycles(u64),
    /// Maximum as a multiple of another operation.
    Times(f64, &'static str),
}

/// A row of the table.
struct Row {
    /// Name of Linux's figure, and of the row.
    name: &'static str,
    /// Name of our figure.
    here: &'static str,
    operation: &'static str,
    singularity: &'static str,
    target: Target,
}

const fn row(name: &'static str, operation: &'static str, singularity: &'static str, target: Target) -> Row {
    Row { name, here: name, operation, singularity, target }
}

/// The targets, beside the figures of the Singularity papers.
const ROWS: [Row; 13] = [
    row("abi_call", "ABI call", "80-91", Target::Cycles(15)),
    row("thread_yield", "thread yield", "346-365", Target::Cycles(120)),
    row("message_1", "message round trip, 1 byte", "803-1,041", Target::Cycles(400)),
    row("message_64k", "the same, 64 KiB block", "920", Target::Times(1.1, "message_1")),
    row("message_1m", "the same, 1 MiB block", "920", Target::Times(1.1, "message_1")),
    row("select_extra", "switch-receive beyond a receive", "1,600", Target::Cycles(100)),
    row("channel_create", "create and connect a channel", "4,007", Target::Cycles(800)),
    row("name_bind", "bind a name (Linux: open a file)", "39,067", Target::Cycles(8_000)),
    Row { here: "name_bind", ..row("name_connect", "the same (Linux: connect)", "39,067", Target::Cycles(8_000)) },
    row("access_cached", "access decision, cached", "-", Target::Cycles(200)),
    row("thread_create", "create a thread", "16,933", Target::Cycles(3_000)),
    row("process_create", "create, run, end, reap a process", "352,873-388,000", Target::Cycles(60_000)),
    row("message_1_crowded", "round trip among other SIPs", "-", Target::Times(CROWDED_TIMES, "message_1")),
];

/// Figures by name.
pub type Figures = BTreeMap<String, u64>;

/// Parses lines `bench NAME FIGURE`; ignores others.
pub fn figures(text: &str) -> Figures {
    let figure = |line: &str| {
        let mut words = line.trim().strip_prefix("bench ")?.split_whitespace();
        Some((words.next()?.to_string(), words.next()?.parse().ok()?))
    };
    text.lines().filter_map(figure).collect()
}

/// Operations without a figure.
pub fn missing(ours: &Figures) -> Vec<&'static str> {
    ROWS.iter().filter(|row| row.here == row.name && !ours.contains_key(row.here)).map(|row| row.name).collect()
}

impl Row {
    /// The target as a figure; `None` if there is none, or if the reference operation has no figure.
    fn target_figure(&self, unit: Unit, ours: &Figures) -> Option<u64> {
        match (self.target, unit) {
            (Target::Cycles(cycles), Unit::Cycles) => Some(cycles),
            (Target::Cycles(_), Unit::Instructions) => None,
            (Target::Times(times, of), _) => ours.get(of).map(|figure| (*figure as f64 * times).round() as u64),
        }
    }

    fn target_text(&self, unit: Unit) -> String {
        match (self.target, unit) {
            (Target::Cycles(cycles), Unit::Cycles) => format!("<= {}", grouped(cycles)),
            (Target::Cycles(_), Unit::Instructions) => "-".into(),
            (Target::Times(times, _), _) => format!("<= {times}x"),
        }
    }

    fn verdict(&self, unit: Unit, ours: &Figures) -> &'static str {
        match (ours.get(self.here), self.target_figure(unit, ours)) {
            (Some(figure), Some(target)) if *figure <= target => "ok",
            (Some(_), Some(_)) => "missed",
            _ => "-",
        }
    }
}

/// The table, with a line for each operation.
pub fn table(unit: Unit, ours: &Figures, linux: &Figures) -> String {
    let line = |cells: [&str; 7]| {
        let [operation, singularity, target, here, linux, fewer, verdict] = cells;
        format!("{operation:<34} {singularity:>16} {target:>10} {here:>10} {linux:>10} {fewer:>8}  {verdict}\n")
    };
    let title = format!("operation ({}, medians)", unit.word());
    let advantage = match unit {
        Unit::Cycles => "faster",
        Unit::Instructions => "fewer",
    };
    // The papers' figures are cycles, even beside instructions.
    let singularity = match unit {
        Unit::Cycles => "Singularity 2007",
        Unit::Instructions => "2007, cycles",
    };
    let mut text = line([&title, singularity, "target", "here", "Linux", advantage, "target"]);
    for row in &ROWS {
        let shown = |figure: Option<&u64>| figure.map_or("-".to_string(), |figure| grouped(*figure));
        let fewer = match (ours.get(row.here), linux.get(row.name)) {
            (Some(here), Some(there)) if *here > 0 => format!("{:.1}x", *there as f64 / *here as f64),
            _ => "-".to_string(),
        };
        text.push_str(&line([
            row.operation,
            row.singularity,
            &row.target_text(unit),
            &shown(ours.get(row.here)),
            &shown(linux.get(row.name)),
            &fewer,
            row.verdict(unit, ours),
        ]));
    }
    text
}

/// Compares each figure with that among many SIPs and channels, which may be up to 1.5 times as large.
pub fn crowded(figures: &Figures, processors: usize) -> String {
    let mut text = format!(
        "\nwith {processors} processor{}, and among {} SIPs and {} channels (target: within {CROWDED_TIMES}x)\n",
        if processors == 1 { "" } else { "s" },
        grouped(figures.get("crowd_sips").copied().unwrap_or(0)),
        grouped(figures.get("crowd_channels").copied().unwrap_or(0)),
    );
    for (name, crowded) in figures {
        let Some((name, alone)) = name.strip_suffix("_crowded").and_then(|name| figures.get_key_value(name)) else {
            continue;
        };
        if name == "thread_yield" && processors > 1 {
            // The partner runs on another processor, so this yield would not switch.
            continue;
        }
        let times = *crowded as f64 / (*alone).max(1) as f64;
        let verdict = if times <= CROWDED_TIMES { "ok" } else { "missed" };
        text.push_str(&format!(
            "{name:<34} {:>16} {:>10} {times:>9.1}x  {verdict}\n",
            grouped(*alone),
            grouped(*crowded)
        ));
    }
    text
}

/// The table as JSON.
pub fn json_list(unit: Unit, ours: &Figures, linux: &Figures) -> String {
    let word = unit.word();
    let list: Vec<_> = ROWS
        .iter()
        .filter(|row| ours.contains_key(row.here))
        .map(|row| {
            json!({
                "name": row.name,
                word: ours.get(row.here),
                format!("linux_{word}"): linux.get(row.name),
                format!("target_{word}"): row.target_figure(unit, ours),
            })
        })
        .collect();
    format!("{:#}\n", serde_json::Value::from(list))
}

/// Formats a number with thousands separators.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_figures_and_other_lines_do_not() {
        let found = figures("hello\nbench abi_call 14\nbench message_1 x\nbench message_1 390\n");
        assert_eq!(found, Figures::from([("abi_call".into(), 14), ("message_1".into(), 390)]));
    }

    #[test]
    fn relative_targets_follow_the_figure_they_are_measured_by() {
        let ours = Figures::from([("message_1".into(), 400), ("message_1m".into(), 441), ("message_64k".into(), 440)]);
        let verdict =
            |name: &str| ROWS.iter().find(|row| row.name == name).map(|row| row.verdict(Unit::Instructions, &ours));
        assert_eq!(verdict("message_64k"), Some("ok"));
        assert_eq!(verdict("message_1m"), Some("missed"));
        assert_eq!(verdict("abi_call"), Some("-"));
    }

    #[test]
    fn targets_in_cycles_do_not_judge_instructions() {
        let ours = Figures::from([("abi_call".into(), 14)]);
        assert_eq!((ROWS[0].verdict(Unit::Cycles, &ours), ROWS[0].verdict(Unit::Instructions, &ours)), ("ok", "-"));
        assert!(table(Unit::Instructions, &ours, &Figures::new()).starts_with("operation (instructions, medians)"));
    }

    #[test]
    fn the_json_has_the_agreed_keys() {
        let (ours, linux) = (Figures::from([("abi_call".into(), 14)]), Figures::from([("abi_call".into(), 250)]));
        let value = |unit| serde_json::from_str::<serde_json::Value>(&json_list(unit, &ours, &linux)).expect("JSON");
        let cycles = json!([{ "name": "abi_call", "cycles": 14, "linux_cycles": 250, "target_cycles": 15 }]);
        assert_eq!(value(Unit::Cycles), cycles);
        let instructions = json!([
            { "name": "abi_call", "instructions": 14, "linux_instructions": 250, "target_instructions": null }
        ]);
        assert_eq!(value(Unit::Instructions), instructions);
    }

    #[test]
    fn one_figure_can_stand_beside_two_of_linux() {
        let ours = Figures::from([("name_bind".into(), 100)]);
        let linux = Figures::from([("name_bind".into(), 200), ("name_connect".into(), 500)]);
        let text = table(Unit::Cycles, &ours, &linux);
        assert!(text.contains("2.0x") && text.contains("5.0x"), "{text}");
        assert!(!missing(&ours).contains(&"name_connect"));
    }

    #[test]
    fn the_crowd_is_judged_and_a_yield_to_nobody_is_not() {
        let names = ["name_bind", "name_bind_crowded", "thread_yield", "thread_yield_crowded"];
        let figures: Figures = names.map(String::from).into_iter().zip([4_000, 70_000, 1, 1]).collect();
        let text = crowded(&figures, 2);
        assert!(text.contains("17.5x  missed") && !text.contains("thread_yield"), "{text}");
        assert!(crowded(&figures, 1).contains("thread_yield"));
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([grouped(0), grouped(999), grouped(1000), grouped(1234567)], ["0", "999", "1,000", "1,234,567"]);
    }
}

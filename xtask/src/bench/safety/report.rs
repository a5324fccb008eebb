//! The tables of `sing bench safety`.
//!
//! Deliberately not here: where the figures come from.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::checks::Kind;
use super::system::Removed;
use crate::bench::domains::files::WEB_FILES;
use crate::bench::table::{Figures, grouped};

/// What is measured side by side, as words for people and for programs.
pub const VARIANTS: [(&str, &str); 4] = [
    ("as built", "as_built"),
    ("no checks", "without_checks"),
    ("no monitor", "without_monitor"),
    ("neither", "without_both"),
];

/// A row: name of the figure, words for people, and by how much the paper's workload is faster without checks.
pub struct Row {
    name: &'static str,
    label: &'static str,
    paper: Option<&'static str>,
}

impl Row {
    /// Whether it is measured by the clock.
    fn is_of_disk(&self) -> bool {
        self.name == WEB_FILES || self.name.starts_with("device_")
    }
}

const fn row(name: &'static str, label: &'static str) -> Row {
    Row { name, label, paper: None }
}

/// The operations of the paper's figure 4, and the workloads of figure 5 with section 4.4.
pub const ROWS: [Row; 13] = [
    row("abi_call", "ABI call"),
    row("thread_yield", "thread yield"),
    row("message_number", "round trip, two programs, one number"),
    row("message_1", "the same, 1 byte"),
    row("message_1m", "the same, 1 MiB"),
    row("threads_select", "round trip, two threads, wait sets"),
    row("channel_create", "create and connect a channel"),
    row("name_bind", "bind a name"),
    row("process_create", "create, start, end, reap a process"),
    Row { name: WEB_FILES, label: "WebFiles, an access", paper: Some("4.7 %") },
    row("device_4096", "disk driver alone, a read of 4 KiB"),
    row("device_65536", "the same, 64 KiB"),
    Row { name: "compute", label: "compute: SHA-256 of 1 MiB", paper: Some("4.5 %, Bartok") },
];

/// The figures of each round, in each variant.
#[derive(Default)]
pub struct Measured {
    /// In the order of [`VARIANTS`].
    pub rounds: Vec<[Figures; VARIANTS.len()]>,
    /// What was removed, by program.
    pub removed: Vec<Removed>,
    /// Unit of the figures, and that of WebFiles and the disk driver.
    pub units: (&'static str, &'static str),
}

impl Measured {
    fn figure(&self, name: &str, variant: usize) -> Option<u64> {
        median(self.rounds.iter().map(|round| round[variant].get(name).copied()).collect::<Option<Vec<_>>>()?)
    }

    /// Percent saved: the median over the rounds, since variants of one round ran one after the other.
    fn saved(&self, name: &str, variant: usize) -> Option<f64> {
        let saved = |round: &[Figures; VARIANTS.len()]| {
            let base = *round[0].get(name)? as f64;
            Some(100.0 * (1.0 - *round[variant].get(name)? as f64 / base))
        };
        let mut all = self.rounds.iter().map(saved).collect::<Option<Vec<_>>>()?;
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    }

    /// Variants and operations without a figure.
    pub fn missing(&self) -> Vec<String> {
        let of = |(variant, (word, _)): (usize, &(&str, &str))| {
            let rows = ROWS.iter().filter(|row| self.figure(row.name, variant).is_none());
            rows.map(|row| format!("{} {word}", row.name)).collect::<Vec<_>>()
        };
        VARIANTS.iter().enumerate().flat_map(of).collect()
    }

    /// The tables for people.
    pub fn table(&self) -> String {
        let (unit, disk_unit) = self.units;
        let head = |index: usize| VARIANTS[index].0;
        let title = format!("operation ({unit}; files and disk: {disk_unit}), less than as built");
        let mut text = format!("{title:<64}\n{:<38}", "");
        text.push_str(&format!("{:>12} {:>20} {:>20} {:>20}  the paper\n", head(0), head(1), head(2), head(3)));
        for row in &ROWS {
            let shown = |variant| self.figure(row.name, variant).map_or("-".into(), grouped);
            let beside = |variant| match self.saved(row.name, variant) {
                Some(saved) => format!("{} {saved:>6.1} %", shown(variant)),
                None => "-".into(),
            };
            let paper = row.paper.unwrap_or("-");
            let cells = [beside(1), beside(2), beside(3)];
            text.push_str(&format!("{:<38}{:>12}", row.label, shown(0)));
            cells.iter().for_each(|cell| text.push_str(&format!(" {cell:>20}")));
            text.push_str(&format!("  {paper}\n"));
        }
        text.push_str(&self.removed_table());
        text
    }

    fn removed_table(&self) -> String {
        let line = |program: &str, cells: [String; 7]| {
            let cells: String = cells.iter().map(|cell| format!(" {cell:>12}")).collect();
            format!("{program:<18}{cells}\n")
        };
        let head =
            ["code, bytes", "bounds", "division", "resumed", "unwrap", "comparisons", "remain"].map(String::from);
        let mut text = format!("\n{}", line("checks removed", head));
        let mut all = [0; 7];
        for removed in &self.removed {
            let cells = numbers(removed);
            all.iter_mut().zip(cells).for_each(|(sum, number)| *sum += number);
            text.push_str(&line(&removed.program, cells.map(|number| grouped(number as u64))));
        }
        text.push_str(&line("all", all.map(|number| grouped(number as u64))));
        text
    }

    /// The same as JSON.
    pub fn json(&self) -> String {
        let each = |figure: &dyn Fn(usize) -> Value| -> Value {
            let words = VARIANTS.iter().enumerate();
            words.map(|(variant, (_, word))| (word.to_string(), figure(variant))).collect::<Map<_, _>>().into()
        };
        let rows = ROWS.iter().map(|row| {
            json!({
                "name": row.name,
                "unit": if row.is_of_disk() { self.units.1 } else { self.units.0 },
                "median": each(&|variant| json!(self.figure(row.name, variant))),
                "percent_saved": each(&|variant| json!(self.saved(row.name, variant))),
                "paper": row.paper,
            })
        });
        let removed = self.removed.iter().map(|removed| {
            let [code_bytes, bounds, arithmetic, resumed, unwrap, comparisons, remaining] = numbers(removed);
            json!({ "program": removed.program, "code_bytes": code_bytes, "bounds": bounds, "arithmetic": arithmetic, "resumed": resumed,
                    "unwrap": unwrap, "comparisons": comparisons, "remaining": remaining })
        });
        let both = json!({ "operations": rows.collect::<Vec<_>>(), "removed": removed.collect::<Vec<_>>() });
        format!("{both:#}\n")
    }
}

fn numbers(removed: &Removed) -> [usize; 7] {
    let counts = &removed.counts;
    let of = |kind| counts.removed.get(&kind).copied().unwrap_or(0);
    let [bounds, arithmetic, resumed, unwrap] = [Kind::Bounds, Kind::Arithmetic, Kind::Resumed, Kind::Unwrap].map(of);
    [removed.code_bytes, bounds, arithmetic, resumed, unwrap, counts.comparisons, counts.remaining]
}

fn median(mut figures: Vec<u64>) -> Option<u64> {
    figures.sort_unstable();
    figures.get(figures.len() / 2).copied()
}

/// Joins what was removed from the programs of several systems, each program once.
pub fn joined(lists: Vec<Vec<Removed>>) -> Vec<Removed> {
    let all = lists.into_iter().flatten().map(|removed| (removed.program.clone(), removed));
    all.collect::<BTreeMap<_, _>>().into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::safety::checks::Counts;

    fn measured() -> Measured {
        let round = |figures: [u64; 4]| figures.map(|figure| Figures::from([("abi_call".to_string(), figure)]));
        let counts = Counts {
            removed: BTreeMap::from([(Kind::Bounds, 1_200), (Kind::Unwrap, 3)]),
            comparisons: 7,
            remaining: 5,
        };
        Measured {
            // The host was slow in the second round.
            rounds: vec![round([100, 95, 80, 75]), round([300, 279, 240, 210]), round([100, 96, 90, 85])],
            removed: vec![Removed { program: "ext2-fs".into(), counts, code_bytes: 700_000 }],
            units: ("cycles", "ns"),
        }
    }

    #[test]
    fn what_is_saved_is_that_of_the_same_round() {
        let measured = measured();
        assert_eq!((measured.figure("abi_call", 0), measured.figure("abi_call", 1)), (Some(100), Some(96)));
        assert_eq!(measured.saved("abi_call", 1).map(f64::round), Some(5.0));
        let table = measured.table();
        assert!(table.contains("96    5.0 %") && table.contains("4.5 %, Bartok"), "{table}");
        assert!(table.contains("ext2-fs") && table.contains("1,200"), "{table}");
    }

    #[test]
    fn what_has_no_figure_is_named_and_the_json_has_the_rest() {
        let measured = measured();
        assert_eq!(measured.missing().len(), 4 * (ROWS.len() - 1));
        let json: Value = serde_json::from_str(&measured.json()).expect("JSON");
        assert_eq!(json["operations"][0]["median"]["without_monitor"], 90);
        assert_eq!(json["removed"][0]["remaining"], 5);
    }
}

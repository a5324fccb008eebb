//! The tables of `sing bench wasm`.
//!
//! Deliberately not here: where the figures come from.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::compute::{PROGRAMS, Rounds};
use super::doors;
use super::life::ALIVE;
use super::side::{SIDES, Side};
use crate::bench::table::{Figures, grouped};

/// The row of the kernels together: a geometric mean.
pub const SUITE: &str = "Rust suite";
/// What each workload may take at most: as a multiple of native code and of wasmtime, and with checks of native code.
const TARGETS: [(&str, Option<f64>, f64, f64); 3] =
    [(SUITE, Some(1.35), 1.0, 1.5), ("quickjs", None, 1.0, 1.7), ("sqlite", None, 1.0, 2.2)];
/// Bytes of the linear memory of the instance that idles.
const LINEAR_BYTES: u64 = 64 << 10;
/// What an idle instance may take beyond that.
const IDLE_BYTES: u64 = 64 << 10;
/// From its start to its first output, at most.
const START_NS: u64 = 10_000;
/// Installing SQLite, at most.
const INSTALL_NS: u64 = 2_500_000_000;

/// Everything that was measured, by round.
#[derive(Default)]
pub struct Measured {
    /// Computing.
    pub compute: Rounds,
    /// Start and installation.
    pub life: Vec<Figures>,
    /// Many that are alive; of one round.
    pub alive: Figures,
    /// One program in both ways.
    pub doors: Vec<Figures>,
    /// Its sizes; of one round.
    pub sizes: Figures,
}

/// A target: what, whether it is met, the figure, the most that is allowed.
struct Verdict {
    what: String,
    is: Option<String>,
    at_most: String,
    is_met: Option<bool>,
}

impl Measured {
    /// The kernels, then the other workloads.
    fn rows(&self) -> Vec<&str> {
        let others = PROGRAMS.iter().map(|program| program.name);
        let names: BTreeSet<&str> = self
            .compute
            .iter()
            .flat_map(|round| round.values())
            .flat_map(|turn| turn.times.keys())
            .map(String::as_str)
            .collect();
        let kernels = names.into_iter().filter(|name| !others.clone().any(|other| other == *name));
        kernels.chain(others.clone()).collect()
    }

    fn kernels(&self) -> Vec<&str> {
        let rows = self.rows();
        rows[..rows.len() - PROGRAMS.len()].to_vec()
    }

    /// Nanoseconds of a workload: the shortest turn, since all are the same work, and other load of the host makes them
    /// longer.
    fn time(&self, side: Side, row: &str) -> Option<f64> {
        let times = self.compute.iter().filter_map(|round| round.get(&side)?.times.get(row));
        times.min().map(|time| *time as f64)
    }

    /// How many times as long a side takes as another; of the suite, the geometric mean of its kernels.
    fn ratio(&self, side: Side, other: Side, row: &str) -> Option<f64> {
        if row == SUITE {
            let kernels = self.kernels();
            let logs = kernels.iter().map(|kernel| Some(self.ratio(side, other, kernel)?.ln()));
            let sum: f64 = logs.sum::<Option<f64>>()?;
            return (!kernels.is_empty()).then(|| (sum / kernels.len() as f64).exp());
        }
        Some(self.time(side, row)? / self.time(other, row)?.max(1.0))
    }

    fn life(&self, name: &str) -> Option<u64> {
        median(self.life.iter().filter_map(|round| round.get(name)).map(|figure| *figure as f64))
            .map(|figure| figure as u64)
    }

    fn door(&self, name: &str) -> Option<u64> {
        median(self.doors.iter().filter_map(|round| round.get(name)).map(|figure| *figure as f64))
            .map(|figure| figure as u64)
    }

    /// Memory of an idle instance beyond its linear memory: what the host's process has grown by for each.
    fn idle_bytes(&self) -> Option<u64> {
        self.alive.get("here_resident_each").map(|bytes| bytes.saturating_sub(LINEAR_BYTES))
    }

    /// Names of what could not be measured; columns of wasmtime and of the host's own programs may be empty.
    pub fn missing(&self) -> Vec<String> {
        let rows = self.rows();
        let is_here = |row: &&&str| [Side::Guarded, Side::Checks].iter().all(|side| self.time(*side, row).is_some());
        let here = rows.iter().filter(|row| !is_here(row)).map(|row| row.to_string());
        let life = ["here_first_ns", "native_first_ns", "install_command_ns", "parts_compile_ns", "parts_prove_ns"];
        let life = life.iter().filter(|name| self.life(name).is_none()).map(|name| name.to_string());
        let mut missing: Vec<String> = here.chain(life).collect();
        if self.alive.get("here_alive") != Some(&u64::from(ALIVE)) {
            missing.push(format!("{ALIVE} instances alive"));
        }
        if self.kernels().is_empty() {
            missing.push(SUITE.into());
        }
        missing
    }

    /// All tables.
    pub fn table(&self) -> String {
        [self.compute_table(), self.life_table(), self.doors_table(), self.verdicts_table()].join("\n")
    }

    fn compute_table(&self) -> String {
        let mut text = format!("{:<26}", "computing (ms, shortest)");
        SIDES.iter().for_each(|side| text.push_str(&format!(" {:>12}", side.title())));
        text.push_str(&format!("  {:>11} {:>13}\n", "here/native", "here/wasmtime"));
        let times = |ratio: Option<f64>| ratio.map_or("-".into(), |ratio| format!("{ratio:.2}x"));
        for row in self.rows().into_iter().chain([SUITE]) {
            text.push_str(&format!("{row:<26}"));
            for side in SIDES {
                let shown = match row {
                    SUITE if side != Side::Native => times(self.ratio(side, Side::Native, SUITE)),
                    row => self.time(side, row).map_or("-".into(), |time| format!("{:.2}", time / 1e6)),
                };
                text.push_str(&format!(" {shown:>12}"));
            }
            let ratios = [Side::Native, Side::Wasmtime].map(|other| times(self.ratio(Side::Guarded, other, row)));
            text.push_str(&format!("  {:>11} {:>13}\n", ratios[0], ratios[1]));
        }
        text
    }

    fn life_table(&self) -> String {
        let mut text = line("start, installation, memory", ["native", "here", "wasmtime"]);
        let us = |figure: Option<u64>| figure.map_or("-".into(), |figure| format!("{:.1} us", figure as f64 / 1e3));
        let ms = |figure: Option<u64>| figure.map_or("-".into(), |figure| format!("{:.0} ms", figure as f64 / 1e6));
        let kib =
            |figure: Option<u64>| figure.map_or("-".into(), |figure| format!("{:.1} KiB", figure as f64 / 1024.0));
        let [native, here] = ["native_first_ns", "here_first_ns"].map(|name| us(self.life(name)));
        text.push_str(&line("start to first output", [&native, &here, "-"]));
        let bound = ["native_bound_ns", "here_bound_ns"].map(|name| us(self.life(name)));
        text.push_str(&line("  of that, binding its namespace", [&bound[0], &bound[1], "-"]));
        let ends = ["native_end_ns", "here_end_ns", "wasmtime_start_ns"].map(|name| us(self.life(name)));
        text.push_str(&line("start to end", ends.each_ref().map(String::as_str)));
        let installed = ms(self.life("install_command_ns"));
        text.push_str(&line("install SQLite", ["-", &installed, "-"]));
        let compiled = ["parts_compile_ns", "wasmtime_compile_ns"].map(|name| ms(self.life(name)));
        text.push_str(&line("  of that, compiling", ["-", &compiled[0], &compiled[1]]));
        text.push_str(&line("  proving", ["-", &ms(self.life("parts_prove_ns")), "-"]));
        text.push_str(&line("  the kernel's check, writing, the rest", ["-", &ms(self.install_rest()), "-"]));
        let count = |name: &str| self.alive.get(name).map_or("-".into(), |count| grouped(*count));
        text.push_str(&line("instances alive", ["-", &count("here_alive"), &count("wasmtime_alive")]));
        let resident = ["here_resident_each", "wasmtime_bytes_each"].map(|name| kib(self.alive.get(name).copied()));
        text.push_str(&line("resident memory of each", ["-", &resident[0], &resident[1]]));
        let counted = kib(self.alive.get("here_bytes_each").copied());
        text.push_str(&line("  of that, pages that the kernel counts", ["-", &counted, "-"]));
        text
    }

    /// What installing takes beyond compiling and proving.
    fn install_rest(&self) -> Option<u64> {
        let parts = self.life("parts_compile_ns")? + self.life("parts_prove_ns")?;
        Some(self.life("install_command_ns")?.saturating_sub(parts))
    }

    fn doors_table(&self) -> String {
        let mut text = line("one program in both ways", ["native", "wasm", "wasm/native"]);
        let mut row = |label: &str, figures: [Option<u64>; 2], unit: fn(u64) -> String| {
            let shown = figures.map(|figure| figure.map_or("-".into(), unit));
            let ratio = figures[0].zip(figures[1]).map(|(native, wasm)| wasm as f64 / native.max(1) as f64);
            let ratio = ratio.map_or("-".into(), |ratio| format!("{ratio:.2}x"));
            text.push_str(&line(label, [&shown[0], &shown[1], &ratio]));
        };
        let both = |of: &dyn Fn(&str) -> Option<u64>| doors::PROGRAMS.map(of);
        let size = |what: &str| both(&|name| self.sizes.get(&format!("{name}_{what}")).copied());
        let time = |what: &str| both(&|name| self.door(&format!("{name}_{what}")));
        row("cat: package", size("package"), |bytes| format!("{} B", grouped(bytes)));
        row("cat: image", size("image"), |bytes| format!("{} B", grouped(bytes)));
        row("cat: a line, start to first output", time("small_first_ns"), |time| {
            format!("{:.1} us", time as f64 / 1e3)
        });
        row("cat: a line, start to end", time("small_end_ns"), |time| format!("{:.1} us", time as f64 / 1e3));
        row("cat: 32 MiB, start to end", time("large_end_ns"), |time| format!("{:.1} ms", time as f64 / 1e6));
        text
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let mut all = Vec::new();
        for (row, of_native, of_wasmtime, checked) in TARGETS {
            for (what, ratio, at_most) in [
                ("of native", self.ratio(Side::Guarded, Side::Native, row), of_native),
                ("of wasmtime", self.ratio(Side::Guarded, Side::Wasmtime, row), Some(of_wasmtime)),
                ("with checks, of native", self.ratio(Side::Checks, Side::Native, row), Some(checked)),
            ] {
                let Some(at_most) = at_most else { continue };
                all.push(Verdict {
                    what: format!("{row} {what}"),
                    is: ratio.map(|ratio| format!("{ratio:.2}x")),
                    at_most: format!("{at_most}x"),
                    is_met: ratio.map(|ratio| ratio <= at_most),
                });
            }
        }
        let mut number = |what: &str, is: Option<u64>, at_most: Option<u64>, unit: fn(u64) -> String| {
            all.push(Verdict {
                what: what.into(),
                is: is.map(unit),
                at_most: at_most.map_or("-".into(), unit),
                is_met: is.zip(at_most).map(|(is, at_most)| is <= at_most),
            });
        };
        let us = |ns: u64| format!("{:.1} us", ns as f64 / 1e3);
        number("start of an installed module to its first output", self.life("here_first_ns"), Some(START_NS), us);
        number("the same, as fast as a native program's", self.life("here_first_ns"), self.life("native_first_ns"), us);
        number(
            "start to end, beside wasmtime's pooled instance",
            self.life("here_end_ns"),
            self.life("wasmtime_start_ns"),
            us,
        );
        number("install SQLite", self.life("install_command_ns"), Some(INSTALL_NS), |ns| {
            format!("{:.2} s", ns as f64 / 1e9)
        });
        number("idle instance, resident beyond its linear memory", self.idle_bytes(), Some(IDLE_BYTES), |bytes| {
            format!("{:.1} KiB", bytes as f64 / 1024.0)
        });
        all
    }

    fn verdicts_table(&self) -> String {
        let mut text = format!("{:<52} {:>12} {:>12}\n", "target", "at most", "is");
        for Verdict { what, is, at_most, is_met } in self.verdicts() {
            let verdict = is_met.map_or("-", |is_met| if is_met { "ok" } else { "missed" });
            text.push_str(&format!("{what:<52} {at_most:>12} {:>12}  {verdict}\n", is.as_deref().unwrap_or("-")));
        }
        text
    }

    /// All figures as JSON.
    pub fn json(&self) -> String {
        let times = |row: &str| -> Value {
            SIDES
                .iter()
                .map(|side| (side.word().to_string(), json!(self.time(*side, row))))
                .collect::<Map<_, _>>()
                .into()
        };
        let ratios = |row: &str| -> Value {
            let of = |other: Side| {
                let pairs = SIDES.iter().filter(|side| **side != other);
                pairs.map(|side| (side.word().to_string(), json!(self.ratio(*side, other, row)))).collect::<Map<_, _>>()
            };
            json!({ "of_native": of(Side::Native), "of_wasmtime": of(Side::Wasmtime) })
        };
        let compute = self
            .rows()
            .into_iter()
            .chain([SUITE])
            .map(|row| json!({ "name": row, "nanoseconds": times(row), "ratios": ratios(row) }));
        let compute: Vec<Value> = compute.collect();
        let medians = |rounds: &[Figures], of: &dyn Fn(&str) -> Option<u64>| -> Value {
            let names: BTreeSet<&String> = rounds.iter().flat_map(|round| round.keys()).collect();
            names.into_iter().map(|name| (name.clone(), json!(of(name)))).collect::<Map<_, _>>().into()
        };
        let targets = self.verdicts().into_iter().map(|verdict| {
            json!({ "what": verdict.what, "at_most": verdict.at_most, "is": verdict.is, "met": verdict.is_met })
        });
        let all = json!({
            "compute": compute,
            "life": medians(&self.life, &|name| self.life(name)),
            "alive": self.alive,
            "both_ways": medians(&self.doors, &|name| self.door(name)),
            "sizes": self.sizes,
            "targets": targets.collect::<Vec<_>>(),
        });
        format!("{all:#}\n")
    }
}

fn line(label: &str, cells: [&str; 3]) -> String {
    let [first, second, third] = cells;
    format!("{label:<40} {first:>14} {second:>14} {third:>14}\n")
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = values.collect();
    all.sort_unstable_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::bench::wasm::compute::Turn;

    fn round(native: u64, here: u64) -> BTreeMap<Side, Turn> {
        let turn = |sort: u64, hash: u64| Turn {
            times: BTreeMap::from([("sort".into(), sort), ("hash".into(), hash), ("sqlite".into(), sort)]),
            ..Turn::default()
        };
        let sides = [(Side::Native, turn(native, native)), (Side::Guarded, turn(native, native * 2))];
        sides.into_iter().chain([(Side::Checks, turn(here, here * 4))]).collect()
    }

    fn measured() -> Measured {
        let life = ["here_first_ns", "native_first_ns", "install_command_ns", "parts_compile_ns", "parts_prove_ns"];
        let life: Figures =
            life.map(String::from).into_iter().zip([9_000, 4_000, 3_000_000_000, 2_000_000_000, 700_000_000]).collect();
        let alive = [("here_alive".to_string(), 10_000), ("here_resident_each".into(), 70 << 10)];
        Measured {
            compute: vec![round(10, 20), round(100, 150), round(10, 15)],
            life: vec![life],
            alive: alive.into(),
            ..Measured::default()
        }
    }

    #[test]
    fn the_suite_is_the_geometric_mean_of_the_ratios_of_the_shortest_turns() {
        let measured = measured();
        assert_eq!(measured.ratio(Side::Checks, Side::Native, "sort"), Some(1.5));
        assert_eq!(measured.ratio(Side::Checks, Side::Native, "hash"), Some(6.0));
        let suite = measured.ratio(Side::Checks, Side::Native, SUITE).expect("a ratio");
        assert!((suite - 3.0).abs() < 1e-9, "{suite}");
        assert_eq!(measured.ratio(Side::Checks, Side::Wasmtime, SUITE), None);
    }

    #[test]
    fn targets_are_judged_and_what_is_missing_is_not() {
        let measured = measured();
        let table = measured.verdicts_table();
        for (what, verdict) in [
            ("Rust suite of native", "missed"),
            ("Rust suite of wasmtime", "-"),
            ("Rust suite with checks", "missed"),
            ("quickjs of wasmtime", "-"),
            ("sqlite with checks", "ok"),
            ("start of an installed", "ok"),
            ("the same, as fast", "missed"),
            ("install SQLite", "missed"),
            ("idle instance", "ok"),
        ] {
            let line = table.lines().find(|line| line.starts_with(what)).unwrap_or_else(|| panic!("{what}: {table}"));
            assert!(line.ends_with(verdict), "{line}");
        }
        assert_eq!(measured.missing(), ["quickjs"]);
        assert_eq!(measured.install_rest(), Some(300_000_000));
    }

    #[test]
    fn json_has_all_sides() {
        let json: Value = serde_json::from_str(&measured().json()).expect("JSON");
        let row = |name: &str| {
            json["compute"].as_array().and_then(|rows| rows.iter().find(|row| row["name"] == name)).cloned()
        };
        let sort = row("sort").expect("a row");
        assert_eq!(sort["nanoseconds"]["here_checks"], 15.0);
        assert_eq!(sort["nanoseconds"]["wasmtime"], Value::Null);
        assert_eq!(sort["ratios"]["of_native"]["here_checks"], 1.5);
        assert_eq!(json["alive"]["here_alive"], 10_000);
    }

    #[test]
    fn nothing_measured_is_a_table_of_dashes() {
        let nothing = Measured::default();
        assert!(nothing.table().contains("Rust suite") && nothing.missing().contains(&SUITE.to_string()));
    }
}

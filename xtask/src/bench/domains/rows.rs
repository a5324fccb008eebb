//! The table of `sing bench domains`: the operations of figures 4 and 5 and table 1 of *Deconstructing Process Isolation*, in
//! each configuration, beside the paper's cycles and Linux.

use serde_json::{Map, Value, json};
use sing::domains::Configuration;

use super::files::{DRIVER_ROWS, WEB_FILES};
use crate::bench::table::{Figures, grouped};

/// The configurations in the order of the paper, which is that of all lists here.
pub const CONFIGURATIONS: [Configuration; 6] = [
    Configuration::SipPhys,
    Configuration::SipPage,
    Configuration::HipR0,
    Configuration::HipR0S,
    Configuration::HipR3,
    Configuration::HipR3S,
];
const SIP_PHYS: usize = 0;
const HIP_R3: usize = 4;
const HIP_R3_S: usize = 5;

/// Cycles in the paper's configurations; `None` where its text has no figure.
type Paper = [Option<u32>; CONFIGURATIONS.len()];

const NOT_THERE: Paper = [None; CONFIGURATIONS.len()];

/// An operation.
pub struct Row {
    /// Name of its figure, here and of Linux.
    pub name: &'static str,
    /// The paper's name, or one like them.
    pub label: &'static str,
    /// In section 4.1 and table 1.
    pub paper: Paper,
}

const fn row(name: &'static str, label: &'static str, paper: Paper) -> Row {
    Row { name, label, paper }
}

/// An operation without a figure in the paper.
pub const fn row_without_paper(name: &'static str, label: &'static str) -> Row {
    row(name, label, NOT_THERE)
}

/// SR is a message between threads of one process, PSR between processes. The paper gives HIP-R3-S as multiples: 9.6
/// times SIP-Phys for one byte, 24.6 times for 32 KiB.
pub const ROWS: [Row; 20] = [
    row("abi_call", "ABICall", [Some(80), Some(80), None, None, Some(304), None]),
    row("page_alloc", "PageAlloc", [Some(385), Some(1_876), None, None, Some(2_198), None]),
    row("thread_create", "CreateThread", [Some(16_933), Some(41_406), Some(41_616), None, Some(76_188), None]),
    row("thread_yield", "ThreadYield", [Some(365), None, None, None, Some(638), None]),
    row("channel_create", "CreateChannel", [Some(4_007), Some(7_940), Some(8_192), None, Some(11_784), None]),
    row("name_bind", "NameBind", [Some(39_067), Some(48_251), Some(48_381), Some(57_276), Some(75_819), None]),
    row(
        "process_create",
        "CreateProc",
        [Some(388_162), Some(522_727), Some(520_473), Some(593_418), Some(830_999), None],
    ),
    row("within_1", "SR-1", [Some(984), Some(1_306), Some(1_312), None, Some(2_534), None]),
    row("within_32", "SR-32", NOT_THERE),
    row("within_1k", "SR-1K", NOT_THERE),
    row("within_32k", "SR-32K", NOT_THERE),
    row("within_64k", "SR-64K", NOT_THERE),
    row("within_1m", "SR-1M", NOT_THERE),
    row("message_1", "PSR-1", [Some(1_041), Some(1_415), Some(1_826), None, Some(2_580), Some(9_994)]),
    row("message_32", "PSR-32", NOT_THERE),
    row("message_1k", "PSR-1K", NOT_THERE),
    row("message_32k", "PSR-32K", [None, None, None, None, None, Some(25_609)]),
    row("message_64k", "PSR-64K", NOT_THERE),
    row("message_1m", "PSR-1M", NOT_THERE),
    row("threads_select", "two threads, wait sets", NOT_THERE),
];

/// The macro benchmarks of figure 5, whose figures in the paper are cycles relative to SIP-Phys, here in thousandths. Its
/// compute workload is the Bartok compiler.
pub const MACRO_ROWS: [Row; 2] = [
    row(WEB_FILES, "WebFiles, an access", [Some(1_000), Some(1_063), Some(1_189), None, Some(1_330), Some(1_377)]),
    row("compute", "compute", [Some(1_000), Some(1_025), Some(1_025), Some(1_025), Some(1_025), Some(1_025)]),
];

/// What is to be reached, in instructions.
pub struct Target {
    /// The operation and its configuration, for people.
    pub what: &'static str,
    /// Its figure.
    pub is: Option<u64>,
    /// The largest that is allowed.
    pub at_most: Option<u64>,
}

impl Target {
    fn verdict(&self) -> &'static str {
        match (self.is, self.at_most) {
            (Some(is), Some(at_most)) if is <= at_most => "ok",
            (Some(_), Some(_)) => "missed",
            _ => "-",
        }
    }
}

/// The figures of each configuration, and of Linux; empty where it was not measured.
pub struct Measured {
    /// In the order of [`CONFIGURATIONS`].
    pub here: [Figures; CONFIGURATIONS.len()],
    /// Linux in the same QEMU.
    pub linux: Figures,
}

impl Measured {
    fn figure(&self, configuration: usize, name: &str) -> Option<u64> {
        self.here.get(configuration)?.get(name).copied()
    }

    /// Each figure of an operation as a multiple of SIP-Phys.
    pub fn times(&self, row: &Row) -> [Option<f64>; CONFIGURATIONS.len()] {
        let base = self.figure(SIP_PHYS, row.name).filter(|base| *base > 0);
        core::array::from_fn(|index| Some(self.figure(index, row.name)? as f64 / base? as f64))
    }

    /// The targets.
    pub fn targets(&self) -> [Target; 3] {
        let times = |configuration, name: &str, times: f64| {
            self.figure(configuration, name).map(|figure| (figure as f64 * times).round() as u64)
        };
        [
            Target { what: "ABI call from ring 3", is: self.figure(HIP_R3, "abi_call"), at_most: Some(250) },
            Target {
                what: "1 byte across two domains, 2.5 times within one",
                is: self.figure(HIP_R3_S, "message_1"),
                at_most: times(HIP_R3, "message_1", 2.5),
            },
            Target {
                what: "1 MiB across two domains, 3 times 1 byte",
                is: self.figure(HIP_R3_S, "message_1m"),
                at_most: times(HIP_R3_S, "message_1", 3.0),
            },
        ]
    }

    /// Configurations and operations without a figure.
    pub fn missing(&self) -> Vec<String> {
        let all = CONFIGURATIONS.iter().enumerate().flat_map(|(index, configuration)| {
            ROWS.iter().chain(&MACRO_ROWS).chain(&DRIVER_ROWS).map(move |row| (index, configuration, row.name))
        });
        let missing = all.filter(|(index, _, name)| self.figure(*index, name).is_none());
        missing.map(|(_, configuration, name)| format!("{name} in {}", configuration.word())).collect()
    }

    /// The figures of an operation, with multiples of SIP-Phys.
    fn cells(&self, row: &Row, decimals: usize) -> [String; CONFIGURATIONS.len()] {
        let times = self.times(row);
        core::array::from_fn(|index| match (self.figure(index, row.name), times[index]) {
            (Some(figure), Some(times)) if index > SIP_PHYS => format!("{} {times:>5.decimals$}x", grouped(figure)),
            (Some(figure), _) => grouped(figure),
            (None, _) => "-".into(),
        })
    }

    /// The table for people.
    pub fn table(&self) -> String {
        let words = CONFIGURATIONS.map(Configuration::word);
        let mut text = line(["operation (instructions)"], &words, "Linux", "the paper's cycles");
        for row in &ROWS {
            let cells = self.cells(row, 1);
            let linux = self.linux.get(row.name).map_or("-".into(), |figure| grouped(*figure));
            text.push_str(&line([row.label], &cells.each_ref().map(String::as_str), &linux, &paper(row)));
        }
        text.push('\n');
        text.push_str(&line(["macro benchmark"], &words, "", "the paper, relative cycles"));
        for row in &MACRO_ROWS {
            let cells = self.cells(row, 2);
            let relative = |cycles: u32| format!("{:.3}", f64::from(cycles) / 1000.0);
            let paper = row.paper.map(|cycles| cycles.map_or("-".into(), relative)).join(" / ");
            text.push_str(&line([row.label], &cells.each_ref().map(String::as_str), "", &paper));
        }
        for row in &DRIVER_ROWS {
            let cells = self.cells(row, 2);
            text.push_str(&line([row.label], &cells.each_ref().map(String::as_str), "", &paper(row)));
        }
        text.push_str("\ntarget (instructions)                                  at most         is\n");
        for target in self.targets() {
            let shown = |figure: Option<u64>| figure.map_or("-".into(), grouped);
            text.push_str(&format!(
                "{:<50} {:>11} {:>10}  {}\n",
                target.what,
                shown(target.at_most),
                shown(target.is),
                target.verdict()
            ));
        }
        text
    }

    /// The same as JSON.
    pub fn json(&self) -> String {
        let by_word = |figure: &dyn Fn(usize) -> Value| -> Value {
            let pairs = CONFIGURATIONS.iter().enumerate();
            pairs.map(|(index, one)| (one.word().to_string(), figure(index))).collect::<Map<_, _>>().into()
        };
        let rows = ROWS.iter().map(|row| {
            json!({
                "name": row.name,
                "instructions": by_word(&|index| json!(self.figure(index, row.name))),
                "paper_cycles": by_word(&|index| json!(row.paper[index])),
                "linux_instructions": self.linux.get(row.name),
            })
        });
        let targets = self.targets().map(
            |target| json!({ "what": target.what, "instructions": target.is, "target_instructions": target.at_most }),
        );
        let macros = MACRO_ROWS.iter().map(|row| {
            json!({
                "name": row.name,
                "instructions": by_word(&|index| json!(self.figure(index, row.name))),
                "paper_relative_cycles": by_word(&|index| json!(row.paper[index].map(|cycles| f64::from(cycles) / 1000.0))),
            })
        });
        let drivers = DRIVER_ROWS.iter().map(
            |row| json!({ "name": row.name, "instructions": by_word(&|index| json!(self.figure(index, row.name))) }),
        );
        let both = json!({
            "operations": rows.collect::<Vec<_>>(),
            "disk_driver": drivers.collect::<Vec<_>>(),
            "macro_benchmarks": macros.collect::<Vec<_>>(),
            "targets": targets,
        });
        format!("{both:#}\n")
    }
}

fn line([operation]: [&str; 1], cells: &[&str; CONFIGURATIONS.len()], linux: &str, paper: &str) -> String {
    let [phys, page, r0, r0_s, r3, r3_s] = cells;
    format!("{operation:<24} {phys:>10} {page:>17} {r0:>17} {r0_s:>17} {r3:>17} {r3_s:>17} {linux:>10}  {paper}\n")
}

/// The paper's cycles, in the order of the configurations.
fn paper(row: &Row) -> String {
    if row.paper.iter().all(Option::is_none) {
        return "-".into();
    }
    row.paper.map(|cycles| cycles.map_or("-".into(), |cycles| grouped(cycles.into()))).join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Measured {
        let figures = |call: u64, message: u64, large: u64| {
            let named = [("abi_call", call), ("message_1", message), ("message_1m", large)];
            Figures::from(named.map(|(name, figure)| (name.to_string(), figure)))
        };
        Measured {
            here: [
                figures(20, 400, 400),
                figures(20, 400, 400),
                figures(100, 700, 700),
                figures(100, 900, 900),
                figures(200, 1_000, 1_000),
                figures(200, 2_600, 7_800),
            ],
            linux: Figures::from([("abi_call".into(), 250)]),
        }
    }

    #[test]
    fn targets_compare_the_configurations_that_they_name() {
        let verdicts = measured().targets().map(|target| (target.at_most, target.verdict()));
        assert_eq!(verdicts, [(Some(250), "ok"), (Some(2_500), "missed"), (Some(7_800), "ok")]);
    }

    #[test]
    fn the_table_has_multiples_of_sip_phys_and_the_papers_cycles() {
        let text = measured().table();
        let call = text.lines().find(|line| line.starts_with("ABICall")).expect("a row");
        assert!(
            call.contains("200  10.0x") && call.contains(" 250 ") && call.ends_with("80 / 80 / - / - / 304 / -"),
            "{text}"
        );
    }

    #[test]
    fn what_has_no_figure_is_named() {
        let missing = measured().missing();
        assert_eq!(missing.len(), CONFIGURATIONS.len() * (ROWS.len() - 3 + MACRO_ROWS.len() + DRIVER_ROWS.len()));
        assert!(missing.contains(&"thread_yield in hip-r3".to_string()), "{missing:?}");
    }

    #[test]
    fn the_json_names_configurations() {
        let value: Value = serde_json::from_str(&measured().json()).expect("JSON");
        let call = &value["operations"][0];
        assert_eq!((&call["instructions"]["hip-r3"], &call["paper_cycles"]["hip-r3"]), (&json!(200), &json!(304)));
        assert_eq!(value["targets"][1]["target_instructions"], json!(2_500));
    }
}

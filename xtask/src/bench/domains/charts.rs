//! Charts of `sing bench domains`: one like the paper's figure 4, and the cost of a message by its size.

use std::path::Path;

use sing::failure::Outcome;
use sing::repository::write_whole;

use crate::bench::chart::{self, Axis, Bar, Group, Key, Mark, Series};
use crate::bench::table::grouped;

use super::rows::{CONFIGURATIONS, MACRO_ROWS, Measured, ROWS, Row};

/// By configuration.
const COLOURS: [&str; CONFIGURATIONS.len()] = ["#9aa5b1", "#2b62a8", "#7fb3a6", "#3a7d6c", "#d98e04", "#b4471f"];
const LINUX_COLOUR: &str = "#6b4aa0";
/// Sizes of the blocks in bytes, with the figures' labels.
const SIZES: [(&str, u32, &str); 6] = [
    ("1", 1, "1 B"),
    ("32", 32, "32 B"),
    ("1k", 1 << 10, "1 KiB"),
    // Its label would touch the next.
    ("32k", 32 << 10, ""),
    ("64k", 64 << 10, "64 KiB"),
    ("1m", 1 << 20, "1 MiB"),
];

/// Writes the charts.
///
/// # Errors
/// A file cannot be written.
pub fn write(folder: &Path, measured: &Measured) -> Outcome<()> {
    write_whole(&folder.join("bench-domains.svg"), operations(measured).as_bytes())?;
    write_whole(&folder.join("bench-domains-macro.svg"), macros(measured).as_bytes())?;
    write_whole(&folder.join("bench-domains-sizes.svg"), sizes(measured).as_bytes())
}

/// The operations as multiples of SIP-Phys, with the paper's as outlines.
fn operations(measured: &Measured) -> String {
    let of_figure_4 = |row: &&Row| !["within_64k", "within_1m", "message_64k", "message_1m"].contains(&row.name);
    let rows = ROWS.iter().filter(of_figure_4).filter(|row| row.name != "threads_select");
    let groups: Vec<Group> = rows.map(|row| group(measured, row)).collect();
    let values = groups.iter().flat_map(|group| &group.bars).map(|bar| bar.value.max(bar.other.unwrap_or(0.0)));
    let most = values.fold(1.0, f64::max) * 1.1;
    let ticks = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];
    let ticks = ticks.into_iter().filter(|tick| *tick <= most).map(|tick| (tick, format!("{tick}x"))).collect();
    let y = Axis { title: "relative to SIP-Phys", least: 0.8, most, ticks, logarithmic: true };
    let heading = "What hardware domains cost: instructions, relative to SIP-Phys";
    chart::bars(heading, "operation, as in the paper's figure 4", &y, &groups, &keys(), "the paper, cycles")
}

fn keys() -> [Key; CONFIGURATIONS.len()] {
    core::array::from_fn(|index| Key { name: CONFIGURATIONS[index].word(), colour: COLOURS[index] })
}

/// The macro benchmarks as multiples of SIP-Phys, with the paper's as outlines.
fn macros(measured: &Measured) -> String {
    let groups = MACRO_ROWS.iter().map(|row| group(measured, row)).collect::<Vec<_>>();
    let ticks = (0..=7).map(|step| f64::from(step) / 5.0).map(|value| (value, format!("{value:.1}"))).collect();
    let y = Axis { title: "relative to SIP-Phys", least: 0.0, most: 1.5, ticks, logarithmic: false };
    let heading = "Reading the web's files, and computing: instructions, relative to SIP-Phys";
    chart::bars(heading, "workload, as in the paper's figure 5", &y, &groups, &keys(), "the paper, cycles")
}

fn group(measured: &Measured, row: &Row) -> Group {
    let base = row.paper[0].map(f64::from);
    // The paper gives 32 KiB as a multiple of one byte in SIP-Phys, where the size does not matter.
    let base = base.or_else(|| (row.name == "message_32k").then_some(1_041.0));
    let bars = measured.times(row).into_iter().zip(COLOURS).zip(row.paper).map(|((times, colour), paper)| Bar {
        colour,
        value: times.unwrap_or(0.0),
        other: paper.map(f64::from).zip(base).map(|(paper, base)| paper / base),
    });
    Group { label: row.label, bars: bars.collect() }
}

/// The cost of a round trip by the size of its block.
fn sizes(measured: &Measured) -> String {
    let points = |figures: &crate::bench::table::Figures| {
        let point = |(name, bytes, _): (&str, u32, &str)| {
            Some((f64::from(bytes), *figures.get(&format!("message_{name}"))? as f64))
        };
        SIZES.into_iter().filter_map(point).collect::<Vec<_>>()
    };
    let mut all: Vec<Series> = CONFIGURATIONS
        .iter()
        .zip(COLOURS)
        .zip(&measured.here)
        .map(|((one, colour), figures)| Series { name: one.word(), colour, dashes: "", points: points(figures) })
        .collect();
    // Without paging the same instructions run, so that one line would cover the other.
    all[0].dashes = "2 6";
    all.swap(0, 1);
    all.push(Series { name: "Linux", colour: LINUX_COLOUR, dashes: "6 4", points: points(&measured.linux) });
    let values = || all.iter().flat_map(|series| &series.points).map(|point| point.1);
    let (least, most) = (values().fold(f64::MAX, f64::min).max(1.0), values().fold(1.0, f64::max));
    let (first, last) = (least.min(most).log10().floor() as i32, most.log10().ceil() as i32);
    let ticks = (first..=last).map(|power| (10_f64.powi(power), grouped(10_u64.pow(power.max(0) as u32)))).collect();
    let (least, most) = (10_f64.powi(first), 10_f64.powi(last));
    let y = Axis { title: "instructions", least, most, ticks, logarithmic: true };
    let x = Axis {
        title: "block that goes to another program and back",
        least: 1.0,
        most: f64::from(1 << 20),
        ticks: SIZES.map(|(_, bytes, label)| (f64::from(bytes), label.to_string())).into(),
        logarithmic: true,
    };
    chart::draw(
        "A round trip between two programs, by the size of its block; on Linux over sockets",
        &x,
        &y,
        &all,
        &Mark::Lines,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::table::Figures;

    fn measured() -> Measured {
        let figures = |factor: u64| {
            let rows = ROWS.iter().chain(&MACRO_ROWS).map(|row| (row.name.to_string(), 100 * factor));
            rows.collect::<Figures>()
        };
        Measured { here: [figures(1), figures(1), figures(2), figures(4), figures(3), figures(9)], linux: figures(20) }
    }

    #[test]
    fn each_operation_of_figure_4_has_a_bar_in_each_configuration() {
        let chart = operations(&measured());
        assert_eq!(chart.matches("fill=\"#b4471f\"").count(), 15 + 1, "{chart}");
        for label in ["ABICall", "PageAlloc", "CreateProc", "SR-32K", "PSR-1", "hip-r3-s"] {
            assert!(chart.contains(&format!(">{label}<")), "{label}: {chart}");
        }
        // 36 figures of the paper, and the key.
        assert_eq!(chart.matches("class=\"other\"").count(), 37, "{chart}");
    }

    #[test]
    fn both_macro_benchmarks_have_the_papers_bars() {
        let chart = macros(&measured());
        assert_eq!(chart.matches("class=\"other\"").count(), 5 + 6 + 1, "{chart}");
        assert!(chart.contains(">WebFiles, an access<") && chart.contains(">1.4<"), "{chart}");
    }

    #[test]
    fn sizes_have_a_line_for_each_configuration_and_linux() {
        let chart = sizes(&measured());
        assert_eq!((chart.matches("<polyline").count(), chart.matches("<circle").count()), (7, 42), "{chart}");
        assert!(chart.contains(">1 MiB<") && chart.contains(">10,000<"), "{chart}");
    }
}

//! `sing bench pairs`: scaling over processors, with independent pairs of SIPs that exchange a number continuously.
//!
//! While QEMU counts instructions, one host thread executes all processors in turn. Instructions per round trip are
//! exact and show contention; switches per processor show the balance. The throughput of truly parallel processors, at
//! one instruction per nanosecond each, is derived from both. Without counting, and on the hosted machine, processors
//! run in parallel and throughput is measured in host time, which needs an idle host.

use serde_json::{Value, json};

use crate::bench::table::{Figures, grouped};
use crate::bench::{COUNTING, bare_machine, printed_figures, run_hosted};
use crate::command_line::BenchArguments;
use sing::command_line::MachineName;
use sing::failure::Outcome;
use sing::repository::{Repository, write_whole};

/// Maximum number of pairs and processors.
const MOST: u32 = 4;
/// A processor with a smaller share of all switches counts as idle.
const SHARE_OF_A_BUSY_PROCESSOR: f64 = 0.02;
const BAR_CELLS: f64 = 40.0;

/// A number of pairs on a number of processors.
struct Point {
    processors: u32,
    pairs: u32,
    round_trips: u64,
    ticks: u64,
    nanoseconds: u64,
    switches: Vec<u64>,
}

/// `sing bench pairs`.
///
/// # Errors
/// The machine cannot be built or run.
pub fn bench(repository: &Repository, arguments: &BenchArguments) -> Outcome<u8> {
    let mut counted = Vec::new();
    if arguments.machine != MachineName::Hosted {
        for processors in 1..=MOST {
            counted.extend(measure(repository, arguments.machine, processors, &COUNTING)?);
        }
        println!("{}", counted_text(&counted));
    }
    let host = std::thread::available_parallelism().map_or(1, usize::from).min(MOST as usize) as u32;
    let mut timed = Vec::new();
    for processors in 1..=host {
        timed.extend(measure(repository, arguments.machine, processors, &[])?);
    }
    print!("{}", timed_text(&timed));
    if let Some(path) = &arguments.json {
        let list = |points: &[Point]| points.iter().map(Point::json).collect::<Vec<_>>();
        let both = json!({ "counted": list(&counted), "timed": list(&timed) });
        write_whole(path, format!("{both:#}\n").as_bytes())?;
    }
    Ok(0)
}

fn measure(repository: &Repository, kind: MachineName, processors: u32, qemu: &[&str]) -> Outcome<Vec<Point>> {
    let commands = format!("bench --pairs {MOST}");
    let figures = if kind == MachineName::Hosted {
        run_hosted(repository, processors, &commands)?
    } else {
        let machine = bare_machine(kind, processors, qemu, &commands);
        printed_figures(machine.run(repository)?, &machine.way())?
    };
    Ok(points(processors, &figures))
}

/// Returns the points in the figures of a machine with this number of processors.
fn points(processors: u32, figures: &Figures) -> Vec<Point> {
    let point = |pairs: u32| {
        let figure = |name: &str| figures.get(&format!("pairs_{pairs}_{name}")).copied();
        let switches = (0..processors).map_while(|number| figure(&format!("switches_{number}")));
        Some(Point {
            processors,
            pairs,
            round_trips: figure("round_trips")?,
            ticks: figure("ticks")?,
            nanoseconds: figure("nanoseconds")?,
            switches: switches.collect(),
        })
    };
    (1..=MOST).filter_map(point).collect()
}

impl Point {
    fn ticks_per_round_trip(&self) -> f64 {
        self.ticks as f64 / self.round_trips.max(1) as f64
    }

    /// Each processor's share of all switches.
    fn shares(&self) -> Vec<f64> {
        let all = self.switches.iter().sum::<u64>().max(1) as f64;
        self.switches.iter().map(|&switches| switches as f64 / all).collect()
    }

    /// Number of processors busy at the same time; the two SIPs of a pair alternate, so a pair uses one at a time.
    fn busy(&self) -> usize {
        let worked = self.shares().iter().filter(|&&share| share >= SHARE_OF_A_BUSY_PROCESSOR).count();
        worked.min(self.pairs as usize)
    }

    /// Round trips per second, at 10^9 instructions per second on each busy processor.
    fn derived_rate(&self) -> f64 {
        self.busy() as f64 * 1e9 / self.ticks_per_round_trip()
    }

    /// Round trips per second of guest time.
    fn measured_rate(&self) -> f64 {
        self.round_trips as f64 * 1e9 / self.nanoseconds.max(1) as f64
    }

    fn json(&self) -> Value {
        json!({
            "processors": self.processors,
            "pairs": self.pairs,
            "round_trips": self.round_trips,
            "ticks": self.ticks,
            "nanoseconds": self.nanoseconds,
            "switches": self.switches,
        })
    }
}

fn counted_text(points: &[Point]) -> String {
    let mut text = String::from(
        "instructions counted: round trips in a second if each processor executes 1,000 million instructions\n\
         processors  pairs  instructions/trip  share of each processor  trips/second\n",
    );
    let most = points.iter().map(Point::derived_rate).fold(1.0, f64::max);
    for point in points {
        let shares: Vec<String> = point.shares().iter().map(|share| format!("{:.0}%", share * 100.0)).collect();
        text.push_str(&format!(
            "{:>10} {:>6} {:>18.0}  {:<24} {:>11}  {}\n",
            point.processors,
            point.pairs,
            point.ticks_per_round_trip(),
            shares.join(" "),
            grouped(point.derived_rate() as u64),
            bar(point.derived_rate(), most)
        ));
    }
    text
}

fn timed_text(points: &[Point]) -> String {
    let mut text = String::from(
        "timed, all processors at the same time: round trips in a second\nprocessors  pairs  trips/second\n",
    );
    let most = points.iter().map(Point::measured_rate).fold(1.0, f64::max);
    for point in points {
        let rate = point.measured_rate();
        text.push_str(&format!(
            "{:>10} {:>6} {:>13}  {}\n",
            point.processors,
            point.pairs,
            grouped(rate as u64),
            bar(rate, most)
        ));
    }
    text
}

fn bar(value: f64, most: f64) -> String {
    "#".repeat((value * BAR_CELLS / most).round() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_processors() -> Vec<Point> {
        let figures = [
            ("pairs_1_round_trips", 1_000),
            ("pairs_1_ticks", 1_000_000),
            ("pairs_1_nanoseconds", 500_000),
            ("pairs_1_switches_0", 1_900),
            ("pairs_1_switches_1", 100),
            ("pairs_2_round_trips", 1_000),
            ("pairs_2_ticks", 1_000_000),
            ("pairs_2_nanoseconds", 250_000),
            ("pairs_2_switches_0", 700),
            ("pairs_2_switches_1", 1_300),
        ];
        points(2, &figures.map(|(name, figure)| (name.to_string(), figure)).into())
    }

    #[test]
    fn a_processor_counts_when_it_had_work() {
        let [one, two] = two_processors().try_into().unwrap_or_else(|_| panic!("two points"));
        assert_eq!((one.busy(), two.busy()), (1, 2));
        assert_eq!((one.derived_rate(), two.derived_rate()), (1e6, 2e6));
        assert_eq!((one.measured_rate(), two.measured_rate()), (2e6, 4e6));
    }

    #[test]
    fn the_longest_bar_is_that_of_the_highest_rate() {
        let text = counted_text(&two_processors());
        let bars: Vec<usize> = text.lines().skip(2).map(|line| line.matches('#').count()).collect();
        assert_eq!(bars, [20, 40], "{text}");
        assert!(text.contains("35% 65%"), "{text}");
    }
}

//! Charts like the ext2 paper's figures 2 and 4: throughput by buffer size, and the latency of 2,000 reads.

use std::path::Path;

use sing::failure::Outcome;
use sing::repository::write_whole;

use crate::bench::chart::{Axis, Mark, Series, draw, round_up};

use super::{Measured, READ_BLOCKS, Samples, TIMED_READS, image, median, size_text};

/// Writes the charts for which there are figures.
///
/// # Errors
/// A file cannot be written.
pub fn write(folder: &Path, measured: &Measured) -> Outcome<()> {
    if let Some(chart) = throughput(measured) {
        write_whole(&folder.join("bench-disk-throughput.svg"), chart.as_bytes())?;
    }
    if let Some(chart) = latency(measured) {
        write_whole(&folder.join("bench-disk-latency.svg"), chart.as_bytes())?;
    }
    Ok(())
}

fn throughput(measured: &Measured) -> Option<String> {
    let series = |name, colour, dashes, samples: &Samples, temperature: &str| {
        let point = |bytes: u64| {
            let nanoseconds = median(samples, &format!("read {bytes} {temperature}"))?;
            Some((bytes as f64, image::LARGE_BYTES as f64 * 1e3 / nanoseconds.max(1) as f64))
        };
        Series { name, colour, dashes, points: READ_BLOCKS.into_iter().filter_map(point).collect() }
    };
    let all = [
        series("Singularity, warm", "#b4471f", "", &measured.here, "warm"),
        series("Linux, warm", "#2b62a8", "", &measured.linux, "warm"),
        series("Singularity, cold", "#b4471f", "6 4", &measured.here, "cold"),
        series("Linux, cold", "#2b62a8", "6 4", &measured.linux, "cold"),
    ];
    let fastest = all.iter().flat_map(|series| &series.points).map(|point| point.1).fold(0.0, f64::max);
    if fastest == 0.0 {
        return None;
    }
    let most = round_up(fastest);
    let x = Axis {
        title: "buffer of one read",
        least: READ_BLOCKS[0] as f64,
        most: READ_BLOCKS[READ_BLOCKS.len() - 1] as f64,
        ticks: READ_BLOCKS.map(|bytes| (bytes as f64, size_text(bytes))).into(),
        logarithmic: true,
    };
    let ticks = (0..=5).map(|step| most * f64::from(step) / 5.0).map(|value| (value, format!("{value:.0}")));
    let y = Axis { title: "MB/s", least: 0.0, most, ticks: ticks.collect(), logarithmic: false };
    let what = "Reading a file of 350 MB on the same ext2 disk";
    Some(draw(what, &x, &y, &all, &Mark::Lines))
}

fn latency(measured: &Measured) -> Option<String> {
    let series = |name, colour, samples: &Samples| {
        let point = |index: u64| {
            let nanoseconds = median(samples, &format!("latency_{index} cold"))?;
            Some((index as f64, nanoseconds as f64 / 1e3))
        };
        Series { name, colour, dashes: "", points: (0..TIMED_READS).filter_map(point).collect() }
    };
    let all = [series("Linux", "#2b62a8", &measured.linux), series("Singularity", "#b4471f", &measured.here)];
    let values = || all.iter().flat_map(|series| &series.points).map(|point| point.1);
    let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    if most == 0.0 {
        return None;
    }
    let ticks =
        (0..=8).map(|step| TIMED_READS as f64 * f64::from(step) / 8.0).map(|value| (value, format!("{value:.0}")));
    let x = Axis { title: "read", least: 0.0, most: TIMED_READS as f64, ticks: ticks.collect(), logarithmic: false };
    let (first, last) = (least.max(0.01).log10().floor() as i32, most.log10().ceil() as i32);
    let ticks = (first..=last).map(|power| (10_f64.powi(power), microseconds(10_f64.powi(power)))).collect();
    let (least, most) = (10_f64.powi(first), 10_f64.powi(last));
    let y = Axis { title: "response time", least, most, ticks, logarithmic: true };
    let what = "Response time of each of 2,000 sequential reads of 16 KiB, nothing cached before";
    Some(draw(what, &x, &y, &all, &Mark::Dots))
}

fn microseconds(value: f64) -> String {
    if value >= 1000.0 { format!("{:.0} ms", value / 1000.0) } else { format!("{value} us") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Measured {
        let mut measured = Measured::default();
        for bytes in READ_BLOCKS {
            measured.here.insert(format!("read {bytes} cold"), vec![350_000_000]);
            measured.linux.insert(format!("read {bytes} warm"), vec![100_000_000]);
        }
        for index in 0..TIMED_READS {
            measured.here.insert(format!("latency_{index} cold"), vec![3_000 + index]);
        }
        measured
    }

    #[test]
    fn each_series_that_was_measured_is_drawn() {
        let chart = throughput(&measured()).expect("a chart");
        assert_eq!((chart.matches("<polyline").count(), chart.matches("<circle").count()), (2, 14));
        assert!(chart.contains(">4000<") && chart.contains(">96 MiB<"), "{chart}");
        let chart = latency(&measured()).expect("a chart");
        assert_eq!(chart.matches("h0").count(), 2_000);
    }

    #[test]
    fn without_figures_there_is_no_chart() {
        assert!(throughput(&Measured::default()).is_none() && latency(&Measured::default()).is_none());
    }
}

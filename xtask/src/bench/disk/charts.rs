//! Charts like the ext2 paper's figures 2 and 4: throughput by buffer size, and the latency of 2,000 reads.

use std::fmt::Write;
use std::path::Path;

use sing::failure::Outcome;
use sing::repository::write_whole;

use super::{Measured, READ_BLOCKS, Samples, TIMED_READS, image, median, size_text};

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 60.0;

const STYLE: &str = r##"<style>
text { font-family: "DejaVu Sans", Verdana, sans-serif; font-size: 12px; fill: #1f2933; }
.heading { font-size: 17px; font-weight: bold; }
.tick { fill: #52606d; font-size: 11px; }
.grid { stroke: #d9dee4; stroke-width: 1; }
.axis { stroke: #52606d; stroke-width: 1.2; }
</style>
"##;

/// A series of points.
struct Series {
    name: &'static str,
    colour: &'static str,
    dashes: &'static str,
    points: Vec<(f64, f64)>,
}

/// An axis with its minimum and maximum.
struct Axis {
    title: &'static str,
    least: f64,
    most: f64,
    /// Tick values and labels.
    ticks: Vec<(f64, String)>,
    logarithmic: bool,
}

impl Axis {
    /// Position of a value, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.logarithmic { value.max(f64::MIN_POSITIVE).ln() } else { value };
        ((scale(value) - scale(self.least)) / (scale(self.most) - scale(self.least))).clamp(0.0, 1.0)
    }
}

enum Mark {
    Lines,
    Dots,
}

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

/// Rounds up to a round number.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|round| *round >= value).unwrap_or(10.0 * power)
}

fn draw(heading: &str, x: &Axis, y: &Axis, all: &[Series], mark: &Mark) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">"#
    );
    let _ = writeln!(out, "<title>{heading}</title>\n{STYLE}<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>");
    let _ = writeln!(out, r#"<text class="heading" x="24" y="32">{heading}</text>"#);
    draw_axes(&mut out, x, y);
    for (index, series) in all.iter().filter(|series| !series.points.is_empty()).enumerate() {
        draw_series(&mut out, x, y, series, mark);
        let left = LEFT + index as f64 * 170.0;
        let Series { colour, dashes, name, .. } = series;
        let _ = writeln!(
            out,
            r#"<line x1="{left}" y1="58" x2="{:.0}" y2="58" stroke="{colour}" stroke-width="3" stroke-dasharray="{dashes}"/><text x="{:.0}" y="62">{name}</text>"#,
            left + 26.0,
            left + 32.0
        );
    }
    out.push_str("</svg>\n");
    out
}

fn across(x: &Axis, value: f64) -> f64 {
    LEFT + x.place(value) * (WIDTH - LEFT - RIGHT)
}

fn down(y: &Axis, value: f64) -> f64 {
    HEIGHT - BOTTOM - y.place(value) * (HEIGHT - TOP - BOTTOM)
}

fn draw_axes(out: &mut String, x: &Axis, y: &Axis) {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    for (value, text) in &y.ticks {
        let at = down(y, *value);
        let _ = writeln!(out, r#"<line class="grid" x1="{LEFT}" y1="{at:.1}" x2="{right}" y2="{at:.1}"/>"#);
        let _ = writeln!(
            out,
            r#"<text class="tick" x="{:.1}" y="{:.1}" text-anchor="end">{text}</text>"#,
            LEFT - 8.0,
            at + 4.0
        );
    }
    for (value, text) in &x.ticks {
        let at = across(x, *value);
        let _ =
            writeln!(out, r#"<line class="axis" x1="{at:.1}" y1="{bottom}" x2="{at:.1}" y2="{:.1}"/>"#, bottom + 5.0);
        let _ = writeln!(
            out,
            r#"<text class="tick" x="{at:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#,
            bottom + 19.0
        );
    }
    let _ = writeln!(out, r#"<path class="axis" fill="none" d="M{LEFT} {TOP} V{bottom} H{right}"/>"#);
    let _ = writeln!(
        out,
        r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
        (LEFT + right) / 2.0,
        HEIGHT - 16.0,
        x.title
    );
    let middle = (TOP + bottom) / 2.0;
    let _ = writeln!(
        out,
        r#"<text x="20" y="{middle:.1}" text-anchor="middle" transform="rotate(-90 20 {middle:.1})">{}</text>"#,
        y.title
    );
}

fn draw_series(out: &mut String, x: &Axis, y: &Axis, series: &Series, mark: &Mark) {
    let Series { colour, dashes, points, .. } = series;
    let places = points.iter().map(|(left, up)| (across(x, *left), down(y, *up)));
    match mark {
        Mark::Lines => {
            let line: Vec<String> = places.clone().map(|(left, top)| format!("{left:.1},{top:.1}")).collect();
            let _ = writeln!(
                out,
                r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2.4" stroke-dasharray="{dashes}"/>"#,
                line.join(" ")
            );
            for (left, top) in places {
                let _ = writeln!(out, r#"<circle cx="{left:.1}" cy="{top:.1}" r="3.6" fill="{colour}"/>"#);
            }
        }
        Mark::Dots => {
            // One path: thousands of elements are slow to show.
            let dots: String = places.map(|(left, top)| format!("M{left:.1} {top:.1}h0")).collect();
            let _ = writeln!(
                out,
                r#"<path d="{dots}" stroke="{colour}" stroke-opacity="0.6" stroke-width="3" stroke-linecap="round" fill="none"/>"#
            );
        }
    }
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

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!([round_up(3500.0), round_up(4100.0), round_up(0.7)], [4000.0, 5000.0, 0.8]);
    }
}

//! The disk figures as a table and as JSON, beside Linux's and the targets.

use serde_json::json;

use crate::bench::table::grouped;

use super::{
    AS_FAST, AS_FAST_FROM, HALF, Measured, RANDOM_READS, SMALL_FILES, Task, WRITTEN_MIB, image, median, ratio,
    size_text,
};

/// Unit of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Bytes per second.
    Bytes(u64),
    /// Operations per second.
    Things(u64),
    /// Time of one request.
    Time,
}

/// A row of the table.
pub struct Row {
    name: String,
    unit: Unit,
    /// Nanoseconds in this system.
    pub here: Option<u64>,
    linux: Option<u64>,
    /// Speed relative to Linux.
    ratio: Option<f64>,
    /// Target speed relative to Linux.
    target: Option<f64>,
}

/// Returns a row for each figure.
pub fn rows(tasks: &[Task], measured: &Measured) -> Vec<Row> {
    let row = |key: String, name: String, unit, target| Row {
        name,
        unit,
        here: median(&measured.here, &key),
        linux: median(&measured.linux, &key),
        ratio: ratio(measured, &key),
        target,
    };
    let mut rows = Vec::new();
    for task in tasks {
        let bytes = task.block_bytes;
        let as_fast = (bytes >= AS_FAST_FROM).then_some(AS_FAST);
        match task.name {
            "read" => {
                for temperature in ["cold", "warm"] {
                    let name = format!("sequential read, {}, {temperature}", size_text(bytes));
                    rows.push(row(
                        format!("read {bytes} {temperature}"),
                        name,
                        Unit::Bytes(image::LARGE_BYTES),
                        as_fast,
                    ));
                }
            }
            "write" => {
                let name = format!("sequential write and sync, {}", size_text(bytes));
                rows.push(row(format!("write {bytes}"), name, Unit::Bytes(WRITTEN_MIB << 20), as_fast));
            }
            "files" => {
                for (key, name) in [("create", "create small files"), ("delete", "delete them")] {
                    rows.push(row(key.into(), name.into(), Unit::Things(SMALL_FILES), Some(HALF)));
                }
            }
            "tree" => {
                for temperature in ["cold", "warm"] {
                    let name = format!("tree over {} names, {temperature}", grouped(image::NAMES));
                    rows.push(row(format!("tree {temperature}"), name, Unit::Things(image::NAMES), None));
                }
            }
            "random" => {
                for temperature in ["cold", "warm"] {
                    let name = format!("random reads of 4 KiB, {temperature}");
                    rows.push(row(format!("random {temperature}"), name, Unit::Things(RANDOM_READS), None));
                    rows.extend(percentiles("random_latency", "one random read", temperature, &row));
                }
            }
            "latency" => {
                for temperature in ["cold", "warm"] {
                    let what = format!("sequential read of {}", size_text(bytes));
                    rows.extend(percentiles("latency", &what, temperature, &row));
                }
            }
            _ => {}
        }
    }
    rows
}

fn percentiles(
    figure: &str,
    what: &str,
    temperature: &str,
    row: &dyn Fn(String, String, Unit, Option<f64>) -> Row,
) -> Vec<Row> {
    let of = |percentile| {
        let name = format!("  {what}, {percentile}, {temperature}");
        row(format!("{figure}_{percentile} {temperature}"), name, Unit::Time, None)
    };
    ["p50", "p90", "p99", "max"].map(of).into()
}

impl Row {
    fn shown(&self, nanoseconds: Option<u64>) -> String {
        let Some(nanoseconds) = nanoseconds else { return "-".into() };
        let seconds = nanoseconds.max(1) as f64 / 1e9;
        match self.unit {
            Unit::Bytes(bytes) => format!("{} MB/s", grouped((bytes as f64 / seconds / 1e6) as u64)),
            Unit::Things(count) => format!("{} /s", grouped((count as f64 / seconds) as u64)),
            Unit::Time => format!("{:.1} us", seconds * 1e6),
        }
    }

    fn verdict(&self) -> &'static str {
        match (self.ratio, self.target) {
            (Some(ratio), Some(target)) if ratio >= target => "ok",
            (Some(_), Some(_)) => "missed",
            _ => "",
        }
    }
}

/// The table, with a line for each figure.
pub fn table(rows: &[Row], with_linux: bool) -> String {
    let mut text = format!(
        "{:<46} {:>14} {:>14} {:>7} {:>7}\n",
        "files of an ext2 disk, medians", "here", "Linux", "ratio", "target"
    );
    for row in rows {
        let ratio = row.ratio.map_or("-".into(), |ratio| format!("{ratio:.2}x"));
        let target = row.target.map_or(String::new(), |target| format!(">={target:.1}x"));
        let (here, linux) = (row.shown(row.here), row.shown(row.linux));
        let line = format!("{:<46} {here:>14} {linux:>14} {ratio:>7} {target:>7}  {}", row.name, row.verdict());
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if !with_linux {
        text.push_str("Linux was skipped: mounting the disk requires root\n");
    }
    text
}

/// The figures as JSON.
pub fn json_list(rows: &[Row]) -> String {
    let list: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({
                "name": row.name.trim_start(),
                "nanoseconds": row.here,
                "linux_nanoseconds": row.linux,
                "times_as_fast": row.ratio,
                "target": row.target,
            })
        })
        .collect();
    format!("{:#}\n", serde_json::Value::from(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(here: u64, linux: u64, ratio: f64) -> Row {
        let (here, linux, ratio) = (Some(here), Some(linux), Some(ratio));
        Row { name: "a read".into(), unit: Unit::Bytes(1_000_000_000), here, linux, ratio, target: Some(AS_FAST) }
    }

    #[test]
    fn who_is_as_fast_as_is_wanted_is_told_apart() {
        assert_eq!(row(1, 2, 2.0).verdict(), "ok");
        assert_eq!(row(2, 1, 0.5).verdict(), "missed");
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        let row = Row { linux: None, ratio: None, ..row(1_000_000_000, 1, 1.0) };
        assert_eq!(
            (row.verdict(), row.shown(row.here).as_str(), row.shown(row.linux).as_str()),
            ("", "1,000 MB/s", "-")
        );
        assert!(table(&[row], false).contains("was skipped"));
    }
}

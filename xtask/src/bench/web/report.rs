//! The web server's figures as a table and as JSON, beside nginx's.
//!
//! Ratios are of adjacent turns, so that the host's other load cancels out.

use std::fmt::Write as _;

use serde_json::json;

use crate::bench::table::grouped;

use super::{Measured, Part, Turn};

/// Target ratio of requests per processor second to nginx's, hosted.
pub const WANTED_HOSTED: f64 = 0.8;
/// The same on a bare machine, with Linux in QEMU, too.
pub const WANTED_BARE: f64 = 1.0;
/// Target ratio of requests per processor second of a recorded system to those of the same one unrecorded: more than this.
const WANTED_RECORDED: f64 = 0.9;
/// Parts below this percentage are shown together.
const MIN_SHARE: f64 = 0.5;

/// A figure of a turn and its name.
struct Figure {
    title: &'static str,
    of: fn(&Turn) -> f64,
}

const FIGURES: [Figure; 7] = [
    Figure { title: "requests/s", of: |turn| turn.seen.requests_per_s },
    Figure { title: "for each CPU", of: Turn::for_each_processor },
    Figure { title: "CPU us each", of: |turn| 1e6 / turn.for_each_processor().max(1e-6) },
    Figure { title: "MB/s", of: |turn| turn.seen.bytes_per_s / 1e6 },
    Figure { title: "mean us", of: |turn| turn.seen.mean_us },
    Figure { title: "median us", of: |turn| turn.seen.p50_us },
    Figure { title: "99 % us", of: |turn| turn.seen.p99_us },
];
const FOR_EACH_PROCESSOR: usize = 1;
const MEAN: usize = 4;

/// Formats the tables; `wanted` is the target ratio to nginx.
pub fn table(measured: &[Measured], wanted: f64) -> String {
    let mut text = format!("{:<24} {:<8}", "on one processor", "");
    for figure in &FIGURES {
        let _ = write!(text, " {:>12}", figure.title);
    }
    text.push('\n');
    for one in measured {
        row(&mut text, one.mix.name(), "here", |figure| {
            median(&one.here, figure.of).map(|figure| grouped(figure as u64))
        });
        row(&mut text, "", "nginx", |figure| median(&one.linux, figure.of).map(|figure| grouped(figure as u64)));
        row(&mut text, "", "ratio", |figure| ratio(one, figure).map(|ratio| format!("{ratio:.2}")));
        if !one.recorded.is_empty() {
            row(&mut text, "", "recorded", |figure| {
                let ratio = ratio_of(&one.recorded, &one.here, figure);
                ratio.map(|ratio| format!("{ratio:.3}"))
            });
        }
        for missed in missed(one, wanted) {
            let _ = writeln!(text, "{:<24} missed: {missed}", "");
        }
    }
    let _ =
        writeln!(text, "wanted: requests for each second of processor time at least {wanted} of nginx's, and their");
    let _ = writeln!(text, "mean time no longer; ratios are medians of those of turns that followed one another");
    let failed: u64 = measured.iter().flat_map(|one| &one.here).map(|turn| turn.seen.failed).sum();
    if failed > 0 {
        let _ = writeln!(text, "{failed} requests failed");
    }
    let failed: u64 = measured.iter().flat_map(|one| &one.linux).map(|turn| turn.seen.failed).sum();
    if failed > 0 {
        let _ = writeln!(text, "{failed} requests to nginx failed");
    }
    for one in measured {
        shares(&mut text, one);
    }
    for one in measured.iter().filter(|one| !one.functions.is_empty()) {
        let _ = writeln!(text, "by function, {}: {}", one.mix.name(), in_words(&in_a_hundred(one.functions.clone())));
    }
    text
}

fn row(text: &mut String, name: &str, side: &str, cell: impl Fn(&Figure) -> Option<String>) {
    let _ = write!(text, "{name:<24} {side:<8}");
    for figure in &FIGURES {
        let _ = write!(text, " {:>12}", cell(figure).unwrap_or_else(|| "-".into()));
    }
    text.push('\n');
}

fn missed(one: &Measured, wanted: f64) -> Vec<String> {
    let mut missed = Vec::new();
    if ratio(one, &FIGURES[FOR_EACH_PROCESSOR]).is_some_and(|ratio| ratio < wanted) {
        missed.push(format!("requests for each second of processor time are less than {wanted} of nginx's"));
    }
    if ratio(one, &FIGURES[MEAN]).is_some_and(|ratio| ratio > 1.0) {
        missed.push("they take longer on average".into());
    }
    let recorded = ratio_of(&one.recorded, &one.here, &FIGURES[FOR_EACH_PROCESSOR]);
    if recorded.is_some_and(|ratio| ratio <= WANTED_RECORDED) {
        missed.push("a recording costs 10 % and more of the requests for each second of processor time".into());
    }
    missed
}

/// Processor time by part (table 3 of "Sealing OS Processes").
fn shares(text: &mut String, one: &Measured) {
    for turns in [&one.here, &one.linux] {
        let parts = split(turns);
        if !parts.is_empty() {
            let _ = writeln!(text, "processor time, {}: {}", one.mix.name(), in_words(&parts));
        }
    }
}

fn in_words(shares: &[(String, f64)]) -> String {
    let shown = shares.iter().filter(|(_, share)| *share >= MIN_SHARE);
    let mut words: Vec<String> = shown.map(|(name, share)| format!("{name} {share:.1} %")).collect();
    let others: f64 = shares.iter().filter(|(_, share)| *share < MIN_SHARE).map(|(_, share)| share).sum();
    if others >= MIN_SHARE {
        words.push(format!("others {others:.1} %"));
    }
    words.join(", ")
}

/// Shares of all parts in percent, over all turns, in descending order.
fn split(turns: &[Turn]) -> Vec<(String, f64)> {
    in_a_hundred(turns.iter().flat_map(|turn| turn.parts.iter().cloned()))
}

fn in_a_hundred(used: impl IntoIterator<Item = Part>) -> Vec<(String, f64)> {
    let mut parts: Vec<(String, f64)> = Vec::new();
    for Part { name, used } in used {
        match parts.iter_mut().find(|(other, _)| *other == name) {
            Some((_, sum)) => *sum += used,
            None => parts.push((name, used)),
        }
    }
    let all: f64 = parts.iter().map(|(_, used)| used).sum();
    if all <= 0.0 {
        return Vec::new();
    }
    parts.iter_mut().for_each(|(_, used)| *used *= 100.0 / all);
    parts.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    parts
}

/// The figures as JSON.
pub fn json_list(measured: &[Measured]) -> String {
    let by_name = |shares: Vec<(String, f64)>| -> serde_json::Map<String, serde_json::Value> {
        shares.into_iter().map(|(name, share)| (name, json!(share / 100.0))).collect()
    };
    let side = |turns: &[Turn]| {
        let parts = by_name(split(turns));
        json!({
            "requests_per_s": median(turns, |turn| turn.seen.requests_per_s),
            "requests_per_processor_s": median(turns, Turn::for_each_processor),
            "processors": median(turns, |turn| turn.processors),
            "bytes_per_s": median(turns, |turn| turn.seen.bytes_per_s),
            "mean_us": median(turns, |turn| turn.seen.mean_us),
            "p50_us": median(turns, |turn| turn.seen.p50_us),
            "p99_us": median(turns, |turn| turn.seen.p99_us),
            "failed": turns.iter().map(|turn| turn.seen.failed).sum::<u64>(),
            "processor_shares": parts,
        })
    };
    let rows: Vec<_> = measured
        .iter()
        .map(|one| {
            json!({
                "mix": one.mix.name(),
                "here": side(&one.here),
                "nginx": side(&one.linux),
                "function_shares": by_name(in_a_hundred(one.functions.clone())),
                "ratio_of_requests": ratio(one, &FIGURES[0]),
                "ratio_of_requests_per_processor_s": ratio(one, &FIGURES[FOR_EACH_PROCESSOR]),
                "ratio_of_mean_time": ratio(one, &FIGURES[MEAN]),
                "recorded_ratio_of_requests_per_processor_s":
                    ratio_of(&one.recorded, &one.here, &FIGURES[FOR_EACH_PROCESSOR]),
            })
        })
        .collect();
    format!("{}\n", serde_json::Value::from(rows))
}

/// Ratio of a figure to nginx's.
fn ratio(one: &Measured, figure: &Figure) -> Option<f64> {
    ratio_of(&one.here, &one.linux, figure)
}

/// Ratio of a figure in one list of turns to that in another.
fn ratio_of(turns: &[Turn], others: &[Turn], figure: &Figure) -> Option<f64> {
    let pairs = turns.iter().zip(others);
    middle(pairs.map(|(one, other)| (figure.of)(one) / (figure.of)(other).max(f64::MIN_POSITIVE)).collect())
}

fn median(turns: &[Turn], figure: impl Fn(&Turn) -> f64) -> Option<f64> {
    middle(turns.iter().map(figure).collect())
}

fn middle(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    let half = all.len() / 2;
    if all.len() % 2 == 1 { Some(all[half]) } else { Some((all.get(half.checked_sub(1)?)? + all[half]) / 2.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::web::client::Seen;
    use crate::bench::web::files::Mix;

    fn turn(requests_per_s: f64, processors: f64) -> Turn {
        Turn { seen: Seen { requests_per_s, ..Seen::default() }, processors, parts: Vec::new() }
    }

    #[test]
    fn requests_count_for_the_processor_time_they_took() {
        let here = vec![turn(1_000.0, 0.5), turn(1_100.0, 0.5), turn(900.0, 0.5)];
        let linux = vec![turn(3_000.0, 1.0), turn(3_300.0, 1.0), turn(2_700.0, 1.0)];
        let text = table(
            &[Measured { mix: Mix::Small, here, linux, recorded: Vec::new(), functions: Vec::new() }],
            WANTED_HOSTED,
        );
        assert!(text.contains("0.67") && text.contains("missed: requests for each"), "{text}");
    }

    #[test]
    fn a_recording_that_costs_a_tenth_is_told() {
        let measured = |recorded: &[f64]| Measured {
            mix: Mix::Small,
            here: vec![turn(1_000.0, 1.0); recorded.len()],
            linux: Vec::new(),
            recorded: recorded.iter().map(|requests| turn(*requests, 1.0)).collect(),
            functions: Vec::new(),
        };
        for (recorded, is_missed) in [(&[900.0, 880.0][..], true), (&[900.0], true), (&[901.0], false), (&[], false)] {
            let text = table(&[measured(recorded)], WANTED_HOSTED);
            assert_eq!(text.contains("missed: a recording costs 10 % and more"), is_missed, "{text}");
        }
    }

    #[test]
    fn what_was_not_measured_is_a_dash() {
        let functions = vec![Part { name: "copying".into(), used: 7.0 }];
        let one = Measured {
            mix: Mix::Large,
            here: vec![turn(10.0, 1.0)],
            linux: Vec::new(),
            recorded: Vec::new(),
            functions,
        };
        let text = table(&[one], WANTED_HOSTED);
        assert!(text.contains("copying 100.0 %"), "{text}");
        assert!(text.contains(" - ") && !text.contains("missed"), "{text}");
    }

    #[test]
    fn shares_make_a_hundred() {
        let part = |name: &str, used: f64| Part { name: name.into(), used };
        let turns = [
            Turn { parts: vec![part("a", 1.0), part("b", 5.0)], ..turn(1.0, 1.0) },
            Turn { parts: vec![part("b", 4.0)], ..turn(1.0, 1.0) },
        ];
        assert_eq!(split(&turns), [("b".to_string(), 90.0), ("a".to_string(), 10.0)]);
        assert!(split(&[turn(1.0, 1.0)]).is_empty());
    }

    #[test]
    fn the_middle_of_an_even_number_lies_between_two() {
        assert_eq!((middle(vec![]), middle(vec![3.0]), middle(vec![4.0, 2.0])), (None, Some(3.0), Some(3.0)));
    }
}

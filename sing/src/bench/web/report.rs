//! The figures of the web server as a table and as JSON, each beside nginx's.

use std::fmt::Write as _;

use serde_json::json;

use crate::bench::table::grouped;

use super::{Measured, Turn};

/// Requests for each processor are to be at least so many of nginx's.
const WANTED: f64 = 0.8;

/// The table for people.
pub fn table(measured: &[Measured]) -> String {
    let mut text = format!(
        "{:<26} {:>12} {:>12} {:>7} {:>12} {:>12} {:>11} {:>11}\n",
        "on one processor", "requests/s", "nginx", "ratio", "for each CPU", "nginx", "mean, us", "nginx, us"
    );
    let mut failed = 0;
    for one in measured {
        let here = |figure: &dyn Fn(&Turn) -> f64| median(&one.here, figure);
        let linux = |figure: &dyn Fn(&Turn) -> f64| median(&one.linux, figure);
        let requests = |turn: &Turn| turn.seen.requests_per_s;
        let ratio = ratio(one);
        let verdict = if ratio.is_some_and(|ratio| ratio < WANTED) { "  missed" } else { "" };
        let _ = writeln!(
            text,
            "{:<26} {:>12} {:>12} {:>7} {:>12} {:>12} {:>11} {:>11}{verdict}",
            one.mix.name(),
            whole(here(&requests)),
            whole(linux(&requests)),
            ratio.map_or("-".into(), |ratio| format!("{ratio:.2}")),
            whole(here(&Turn::for_each_processor)),
            whole(linux(&Turn::for_each_processor)),
            whole(here(&|turn| turn.seen.mean_us)),
            whole(linux(&|turn| turn.seen.mean_us)),
        );
        failed += one.here.iter().map(|turn| turn.seen.failed).sum::<u64>();
    }
    let _ = writeln!(text, "ratio: requests for each second of processor time, of nginx's; wanted {WANTED}");
    if failed > 0 {
        let _ = writeln!(text, "{failed} requests were not answered as they should be");
    }
    text
}

/// The figures for programs.
pub fn json_list(measured: &[Measured]) -> String {
    let side = |turns: &[Turn]| {
        json!({
            "requests_per_s": median(turns, &|turn| turn.seen.requests_per_s),
            "requests_per_processor_s": median(turns, &Turn::for_each_processor),
            "bytes_per_s": median(turns, &|turn| turn.seen.bytes_per_s),
            "mean_us": median(turns, &|turn| turn.seen.mean_us),
            "p50_us": median(turns, &|turn| turn.seen.p50_us),
            "p99_us": median(turns, &|turn| turn.seen.p99_us),
            "failed": turns.iter().map(|turn| turn.seen.failed).sum::<u64>(),
        })
    };
    let rows: Vec<_> = measured
        .iter()
        .map(|one| json!({ "mix": one.mix.name(), "here": side(&one.here), "nginx": side(&one.linux) }))
        .collect();
    format!("{}\n", serde_json::Value::from(rows))
}

/// Requests for each second of processor time, of nginx's.
fn ratio(one: &Measured) -> Option<f64> {
    Some(median(&one.here, &Turn::for_each_processor)? / median(&one.linux, &Turn::for_each_processor)?)
}

fn median(turns: &[Turn], figure: &dyn Fn(&Turn) -> f64) -> Option<f64> {
    let mut all: Vec<f64> = turns.iter().map(figure).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

fn whole(figure: Option<f64>) -> String {
    figure.map_or("-".into(), |figure| grouped(figure as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::web::client::Seen;
    use crate::bench::web::files::Mix;

    fn turn(requests_per_s: f64, processors: f64) -> Turn {
        Turn { seen: Seen { requests_per_s, ..Seen::default() }, processors }
    }

    #[test]
    fn requests_count_for_the_processor_time_they_took() {
        let here = vec![turn(1_000.0, 0.5), turn(1_100.0, 0.5), turn(900.0, 0.5)];
        let one = Measured { mix: Mix::Small, here, linux: vec![turn(3_000.0, 1.0)] };
        assert_eq!(ratio(&one).map(|ratio| (ratio * 100.0) as u32), Some(66));
        let text = table(&[one]);
        assert!(text.contains("0.67") && text.contains("missed"), "{text}");
    }

    #[test]
    fn what_was_not_measured_is_a_dash() {
        let text = table(&[Measured { mix: Mix::Large, here: vec![turn(10.0, 1.0)], linux: Vec::new() }]);
        assert!(text.contains(" - ") && !text.contains("missed"), "{text}");
    }
}

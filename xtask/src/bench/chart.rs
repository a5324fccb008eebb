//! Charts with two axes, as SVG.

use std::fmt::Write;

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
.other { fill: none; stroke: #1f2933; stroke-width: 1; }
</style>
"##;

/// A series of points.
pub struct Series {
    pub name: &'static str,
    pub colour: &'static str,
    pub dashes: &'static str,
    pub points: Vec<(f64, f64)>,
}

/// An axis with its minimum and maximum.
pub struct Axis {
    pub title: &'static str,
    pub least: f64,
    pub most: f64,
    /// Tick values and labels.
    pub ticks: Vec<(f64, String)>,
    pub logarithmic: bool,
}

impl Axis {
    /// Position of a value, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.logarithmic { value.max(f64::MIN_POSITIVE).ln() } else { value };
        ((scale(value) - scale(self.least)) / (scale(self.most) - scale(self.least))).clamp(0.0, 1.0)
    }
}

/// How the points of a series are drawn.
pub enum Mark {
    /// Joined by lines.
    Lines,
    /// Many, each a dot.
    Dots,
}

/// Bars that stand together above one label.
pub struct Group {
    pub label: &'static str,
    pub bars: Vec<Bar>,
}

/// A bar, and another value for comparison, which is drawn as its outline.
pub struct Bar {
    pub colour: &'static str,
    pub value: f64,
    pub other: Option<f64>,
}

/// What a colour of bars stands for.
pub struct Key {
    pub name: &'static str,
    pub colour: &'static str,
}

/// Rounds up to a round number.
pub fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|round| *round >= value).unwrap_or(10.0 * power)
}

/// A chart of series.
pub fn draw(heading: &str, x: &Axis, y: &Axis, all: &[Series], mark: &Mark) -> String {
    let mut out = begin(heading);
    draw_axes(&mut out, x, y);
    let step = ((WIDTH - LEFT) / all.len().max(1) as f64).min(170.0);
    for (index, series) in all.iter().filter(|series| !series.points.is_empty()).enumerate() {
        draw_series(&mut out, x, y, series, mark);
        let left = LEFT + index as f64 * step;
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

/// A chart of grouped bars, which begin at the bottom of the axis.
pub fn bars(heading: &str, title: &'static str, y: &Axis, groups: &[Group], keys: &[Key], other: &str) -> String {
    let mut out = begin(heading);
    let x = Axis { title, least: 0.0, most: groups.len().max(1) as f64, ticks: Vec::new(), logarithmic: false };
    draw_axes(&mut out, &x, y);
    for (index, group) in groups.iter().enumerate() {
        let width = 0.8 * (across(&x, 1.0) - across(&x, 0.0)) / group.bars.len().max(1) as f64;
        for (number, bar) in group.bars.iter().enumerate() {
            let left = across(&x, index as f64 + 0.1) + number as f64 * width;
            let Bar { colour, value, .. } = bar;
            let (top, height) = up_to(y, *value);
            let _ = writeln!(
                out,
                r#"<rect x="{left:.1}" y="{top:.1}" width="{:.1}" height="{height:.1}" fill="{colour}"/>"#,
                width - 1.0
            );
            if let Some((top, height)) = bar.other.map(|other| up_to(y, other)) {
                let _ = writeln!(
                    out,
                    r#"<rect class="other" x="{left:.1}" y="{top:.1}" width="{:.1}" height="{height:.1}"/>"#,
                    width - 1.0
                );
            }
        }
        // Labels alternate between two lines, where long neighbours do not touch.
        let _ = writeln!(
            out,
            r#"<text class="tick" x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            across(&x, index as f64 + 0.5),
            HEIGHT - BOTTOM + if index % 2 == 0 { 15.0 } else { 29.0 },
            group.label
        );
    }
    let step = ((WIDTH - LEFT - 130.0) / keys.len().max(1) as f64).min(120.0);
    for (index, Key { name, colour }) in keys.iter().enumerate() {
        let left = LEFT + index as f64 * step;
        let _ = writeln!(
            out,
            r#"<rect x="{left}" y="52" width="14" height="12" fill="{colour}"/><text x="{:.0}" y="62">{name}</text>"#,
            left + 20.0
        );
    }
    let left = LEFT + keys.len() as f64 * step;
    let _ = writeln!(
        out,
        r#"<rect class="other" x="{left}" y="52" width="14" height="12"/><text x="{:.0}" y="62">{other}</text>"#,
        left + 20.0
    );
    out.push_str("</svg>\n");
    out
}

fn begin(heading: &str) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">"#
    );
    let _ = writeln!(out, "<title>{heading}</title>\n{STYLE}<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>");
    let _ = writeln!(out, r#"<text class="heading" x="24" y="32">{heading}</text>"#);
    out
}

/// Top and height of a bar.
fn up_to(y: &Axis, value: f64) -> (f64, f64) {
    let top = down(y, value);
    (top, HEIGHT - BOTTOM - top)
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

    #[test]
    fn a_bar_has_its_height_and_the_outline_of_the_other() {
        let y = Axis { title: "times", least: 1.0, most: 100.0, ticks: Vec::new(), logarithmic: true };
        let bar = |value, other| Bar { colour: "black", value, other };
        let groups = [Group { label: "call", bars: vec![bar(10.0, Some(100.0)), bar(1.0, None)] }];
        let keys = [Key { name: "here", colour: "black" }];
        let chart = bars("Bars", "operation", &y, &groups, &keys, "there");
        assert!(chart.contains(r#"height="158.0" fill="black""#) && chart.contains(r#"height="0.0""#), "{chart}");
        assert_eq!(chart.matches(r#"class="other""#).count(), 2, "{chart}");
        assert!(chart.contains(">call<") && chart.contains(">here<") && chart.contains(">there<"), "{chart}");
    }

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!([round_up(3500.0), round_up(4100.0), round_up(0.7)], [4000.0, 5000.0, 0.8]);
    }
}

//! What Prometheus reads of a running system.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use end_to_end::{Supervisor, WebClient};

const OPEN: &str = "Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.3\r\n";

/// Samples by name and labels.
fn samples(text: &str) -> BTreeMap<&str, f64> {
    let samples = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value in `{line}`"));
        (name, value.parse().unwrap_or_else(|_| panic!("`{value}` is no number in `{line}`")))
    });
    let (count, all) =
        (text.lines().filter(|line| !line.starts_with('#')).count(), samples.collect::<BTreeMap<_, _>>());
    assert_eq!(all.len(), count, "a sample stands twice in:\n{text}");
    all
}

fn metrics(client: &mut WebClient, fields: &str) -> String {
    let answer = client.get("/metrics", fields);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text()
}

/// Every bucket counts at least what the one before it counts, and the last one all.
#[track_caller]
fn histograms_add_up(samples: &BTreeMap<&str, f64>) {
    const NAME: &str = "singularity_message_latency_seconds";
    let mut directory = 0.0;
    let counts =
        samples.iter().filter_map(|(name, count)| Some((name.strip_prefix(NAME)?.strip_prefix("_count")?, *count)));
    for (labels, count) in counts {
        let start = format!("{NAME}_bucket{},le=\"", labels.trim_end_matches('}'));
        let of_it =
            samples.iter().filter_map(|(name, below)| Some((name.strip_prefix(&start)?.strip_suffix("\"}")?, *below)));
        let bound = |text: &str| text.parse().unwrap_or(f64::INFINITY);
        let mut buckets: Vec<(f64, f64)> = of_it.map(|(text, below)| (bound(text), below)).collect();
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        assert!(buckets.len() > 10 && buckets.is_sorted_by(|one, other| one.1 <= other.1), "{labels}: {buckets:?}");
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, count)), "{labels}");
        let sum = samples.get(format!("{NAME}_sum{labels}").as_str()).expect("a sum");
        assert!(count >= 1.0 && *sum > 0.0, "{labels}: {count} samples take {sum} s");
        directory += if labels.contains("\"Directory\"") { count } else { 0.0 };
    }
    assert!(directory > 5.0, "{directory} samples of messages to and from directories");
}

#[test]
fn metrics_say_what_the_system_does() {
    let supervisor = Supervisor::of_small_site();
    let running = supervisor.start(&[]);
    let mut client = supervisor.client();
    metrics(&mut client, "");
    for _ in 0..5 {
        assert_eq!(client.get("/dir00001/class2_3", "").status, 200);
    }
    // The program keeps a snapshot for a quarter of a second.
    std::thread::sleep(std::time::Duration::from_millis(400));
    let text = metrics(&mut client, OPEN);
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    let samples = samples(&text);
    let value = |name: &str| *samples.get(name).unwrap_or_else(|| panic!("no {name} in:\n{text}"));
    assert!(value("singularity_web_requests_total") >= 6.0);
    assert!(value("singularity_web_responses_total{class=\"2xx\"}") >= 6.0);
    assert_eq!(value("singularity_service_up{service=\"web-server\"}"), 1.0);
    assert!(value("singularity_uptime_seconds") > 0.4);
    assert!(value("singularity_contract_channels{contract=\"TcpConnection\"}") >= 1.0);
    histograms_add_up(&samples);
    let of_server = |figure: &str| {
        let mut all =
            samples.iter().filter(|(name, _)| name.starts_with(figure) && name.contains("program=\"web-server\""));
        all.next().map(|(_, value)| *value).unwrap_or_else(|| panic!("no {figure} of the web server in:\n{text}"))
    };
    assert!(of_server("singularity_process_messages_total") > 10.0);
    assert!(of_server("singularity_process_memory_bytes") > 4096.0);
    supervisor.stop(running);
}

#[test]
fn promtool_finds_nothing_wrong_with_metrics() {
    test_needs::needs!(Promtool);
    let supervisor = Supervisor::of_small_site();
    let running = supervisor.start(&[]);
    let text = metrics(&mut supervisor.client(), "");
    let mut check = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool");
    check.stdin.take().expect("its input").write_all(text.as_bytes()).expect("it reads");
    let done = check.wait_with_output().expect("it ends");
    let said = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(done.status.success() && said.is_empty(), "{said}\n{text}");
    supervisor.stop(running);
}

//! Our stack and Linux's, as server and client, over impaired wires.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::{Format, Image, Live, Machine, built_system, finish};

use crate::network::{MACHINE, Network, PEER};

test_needs::needs!(Namespaces, Curl, Python, Tshark, E2fsprogs);

/// Impairments of the wire, and the counters that must be non-zero at the end.
const WIRES: [(&str, &[&str]); 7] = [
    ("", &[]),
    ("loss=0.02", &["lost"]),
    ("reorder=0.05", &["reordered"]),
    ("duplicate=0.05", &["duplicated"]),
    ("delay=20 jitter=2", &[]),
    ("corrupt=0.01", &["corrupted"]),
    ("loss=0.01 reorder=0.02 duplicate=0.01 corrupt=0.005 delay=2", &["lost", "reordered", "duplicated", "corrupted"]),
];
/// The short form runs the first and the last.
const SHORT: [usize; 2] = [0, 6];

/// Bytes sent each way.
struct Amounts {
    connections: u32,
    echoed_bytes: usize,
    file_bytes: usize,
}

const LITTLE: Amounts = Amounts { connections: 3, echoed_bytes: 100_000, file_bytes: 300_000 };
const MUCH: Amounts = Amounts { connections: 8, echoed_bytes: 300_000, file_bytes: 1_500_000 };

/// Number of SYNs from spoofed addresses, and their duration in seconds.
const FLOOD: (u32, u32) = (10_000, 2);
/// Maximum lifetime of abandoned connections: a handshake is given up after 15 s.
const SETTLED: Duration = Duration::from_secs(40);

/// Number of times the driver is killed.
const KILLS: usize = 2;

const WEB_PORT: u16 = 80;
const PEER_PORT: u16 = 8000;

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(0x9E37_79B1) >> 11) as u8).collect()
}

/// The system with the web server and `tcp-echo`, and Linux at the other end of a wire.
struct Site {
    network: Network,
    live: Live,
    file_bytes: usize,
    _disks: [Image; 2],
}

impl Site {
    fn start(name: &str, amounts: &Amounts) -> Site {
        let system = built_system("peers-check");
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        fs::write(folder.path().join("file"), content(amounts.file_bytes)).expect("a file can be written");
        let format = || Format { mebibytes: 32, block_bytes: 4096, ..Format::default() };
        let nothing = tempfile::tempdir().expect("a folder for temporary files");
        let disks = [Image::of(folder.path(), format()), Image::of(nothing.path(), format())];
        let network = Network::new(name);
        fs::write(network.folder().join("posted"), content(amounts.file_bytes)).expect("a file can be written");
        let machine = Machine::new().system(system).disk(disks[0].path()).disk(disks[1].path());
        let mut command = network.of_machine(&machine.command(None));
        command.args(["--parameter", &format!("web-port={WEB_PORT}")]);
        command.args(["--parameter", "web-application=/hello=web-hello"]);
        command.args(["--parameter", "web-application=/spec=web-spec root=/fs/disk0"]);
        let live = Live::start(command);
        let mut site = Site { network, live, file_bytes: amounts.file_bytes, _disks: disks };
        site.live.ask("ping 192.168.77.1 --count 1");
        site
    }

    /// TCP sockets, except those in TIME-WAIT.
    fn sockets(&mut self) -> Vec<String> {
        let text = self.live.ask("netstat");
        text.lines().filter(|line| line.starts_with("TCP") && !line.contains("time wait")).map(str::to_string).collect()
    }

    /// Waits until only listeners are left, and the machine's resource usage is back at its baseline.
    #[track_caller]
    fn settles(&mut self, channels: u64) {
        let begin = Instant::now();
        loop {
            let sockets = self.sockets();
            let now = self.live.counters().get("channels").copied().unwrap_or(0);
            if sockets.iter().all(|line| line.contains("listens")) && now <= channels {
                return;
            }
            let text = sockets.join("\n");
            assert!(begin.elapsed() < SETTLED, "{now} channels where there were {channels}, and sockets:\n{text}");
            thread::sleep(Duration::from_millis(500));
        }
    }

    fn channels(&mut self) -> u64 {
        self.live.counters().get("channels").copied().unwrap_or(0)
    }

    /// Linux makes requests to our web server, and our stack echoes what Linux sends.
    #[track_caller]
    fn serve(&mut self, amounts: &Amounts) {
        let Amounts { connections, echoed_bytes, .. } = amounts;
        self.network.peer(&format!("echo {MACHINE} {connections} {echoed_bytes} 1"));
        let url = format!("http://{MACHINE}/file");
        let got = self.network.run("curl", &["-sS", "--max-time", "120", &url]);
        assert_eq!(got.status, Some(0), "{got}\n{}", self.live.errors());
        assert!(got.output == content(self.file_bytes), "{} other bytes than the file's", got.output.len());
        let url = format!("http://{MACHINE}/hello");
        let page = self.network.run("curl", &["-sS", "--max-time", "120", &url]);
        assert!(page.text().contains("Hello"), "{page}");
        let url = format!("http://{MACHINE}/spec/post");
        let form = "urlroot=/file&dir=00001&class=1&num=1&client=7&cmd=x";
        let posted =
            self.network.run("curl", &["-sS", "--max-time", "120", "-o", "-", "-w", "%{http_code}", "-d", form, &url]);
        assert!(posted.status == Some(0) && !posted.text().ends_with("000"), "{posted}");
    }

    /// Our programs are clients of a Linux server: a file is downloaded and uploaded again.
    #[track_caller]
    fn ask(&mut self, amounts: &Amounts) {
        let server = self.network.server(&format!("serve {PEER} {PEER_PORT} {} 5", amounts.file_bytes));
        let url = format!("http://{PEER}:{PEER_PORT}/data");
        let back = format!("fetch --quiet --to /fs/disk1/got {url}; fetch --quiet --post /fs/disk1/got {url}");
        let told = self.live.ask(&back);
        assert_eq!(told.trim_end(), server.said, "what was fetched is not what was served\n{}", self.live.errors());
    }

    #[track_caller]
    fn go_through(&mut self, (damage, counted): (&str, &[&str]), amounts: &Amounts) {
        let begin = Instant::now();
        self.network.set(damage);
        self.serve(amounts);
        self.ask(amounts);
        let packets = self.network.count("packets");
        for what in counted {
            assert!(self.network.count(what) > 0, "nothing was {what} of {packets} packets with {damage}");
        }
        println!("{damage:?}: {packets} packets in {:?}", begin.elapsed());
    }

    /// No packet of the machine may be malformed or have a wrong checksum.
    #[track_caller]
    fn check_packets(&mut self) {
        let capture = self.network.capture();
        // Linux itself may send a TCP checksum of 0xffff instead of 0, which tshark reports as bad.
        let wrong = format!(
            "_ws.malformed || (ip.src == {MACHINE} && (_ws.expert.severity == error || ip.checksum.status == \"Bad\" \
             || tcp.checksum.status == \"Bad\" || udp.checksum.status == \"Bad\" || icmp.checksum.status == \"Bad\"))"
        );
        let found = tshark(&capture, &wrong);
        assert_eq!(found, "", "packets that are wrong");
        let checked = tshark(&capture, &format!("ip.src == {MACHINE} && tcp.checksum.status == \"Good\""));
        assert!(checked.lines().count() > 100, "few packets were checked:\n{checked}");
    }
}

/// Lists the packets that match a filter, one per line.
#[track_caller]
fn tshark(capture: &Path, filter: &str) -> String {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture);
    for protocol in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    // Content reassembled from several packets is not checked here.
    command.args(["-o", "tcp.desegment_tcp_streams:FALSE", "-Y", filter]);
    let run = finish(command, filter, Duration::from_secs(180));
    assert_eq!(run.status, Some(0), "{run}");
    run.text()
}

/// The driver is killed while Linux downloads a file: the connection survives, and new ones can be made.
#[track_caller]
fn kill_the_driver(site: &mut Site) {
    site.network.set("delay=1");
    let url = format!("http://{MACHINE}/file");
    for _ in 0..KILLS {
        let rate = site.file_bytes.to_string();
        let Site { network, live, file_bytes, .. } = &mut *site;
        thread::scope(|scope| {
            let fetch = || network.run("curl", &["-sS", "--max-time", "60", "--limit-rate", &rate, &url]);
            let fetched = scope.spawn(fetch);
            thread::sleep(Duration::from_millis(300));
            live.ask("kill tap");
            network.peer(&format!("echo {MACHINE} 1 1000 1"));
            let fetched = fetched.join().expect("curl was run");
            assert!(fetched.output == content(*file_bytes), "{fetched}\n{}", live.errors());
        });
    }
}

/// SYN flood, slow readers, resets: established connections survive, and nothing leaks.
#[track_caller]
fn hostile(site: &mut Site, amounts: &Amounts) {
    site.network.set("");
    let channels = site.channels();
    let (count, seconds) = FLOOD;
    println!("flood: {}", site.network.peer(&format!("flood {MACHINE} {count} {seconds}")).trim_end());
    let counters = site.live.ask("netstat --counters");
    let forgotten =
        counters.lines().find_map(|line| line.trim().split_once("  connections dropped because the backlog was full"));
    let forgotten = forgotten.and_then(|(number, _)| number.replace(',', "").parse::<u32>().ok()).unwrap_or(0);
    assert!(forgotten > count / 2, "few of {count} connections that nobody made were forgotten:\n{counters}");
    site.network.peer(&format!("slow {MACHINE} {} 3", amounts.echoed_bytes * 4));
    site.network.peer(&format!("resets {MACHINE} 30"));
    kill_the_driver(site);
    site.settles(channels);
    assert_eq!(site.live.errors().matches("panic").count(), 0, "{}", site.live.errors());
}

#[test]
fn linux_is_served_and_asked_over_good_and_bad_wires() {
    let mut site = Site::start("short", &LITTLE);
    for index in SHORT {
        site.go_through(WIRES[index], &LITTLE);
    }
    hostile(&mut site, &LITTLE);
    site.check_packets();
}

#[test]
#[ignore = "takes minutes"]
fn linux_is_served_and_asked_over_wires_of_all_kinds_for_long() {
    let mut site = Site::start("long", &MUCH);
    for wire in WIRES {
        site.go_through(wire, &MUCH);
    }
    hostile(&mut site, &MUCH);
    site.check_packets();
}

//! Two network namespaces and a wire between them: a machine at one end, Linux at the other.
//!
//! Key type: [`Network`]. In the machine's namespace a bridge joins its TAP interface with that of the wire; the
//! wire's other interface is Linux's and has its address. `wire.py` forwards packets, `peer.py` is the Linux side.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use end_to_end::{Run, finish, repository};
use tempfile::TempDir;

/// Address of the machine.
pub const MACHINE: &str = "192.168.77.2";
/// Address of Linux.
pub const PEER: &str = "192.168.77.1";
/// IPv6 address of Linux, where it assigns addresses, and their prefix.
pub const PEER_IPV6: &str = "fd77::1";
pub const PREFIX: &str = "fd77::";
/// Prefix of the IPv4 addresses that it assigns.
pub const LEASES: &str = "192.168.77";
/// Linux's name there, and the domain for which it is the only server.
pub const NAME: &str = "peer.test";
const DOMAIN: &str = "test";
/// Timeout for anything on the Linux side.
const LIMIT: Duration = Duration::from_secs(180);

/// The network.
pub struct Network {
    machine: String,
    peer: String,
    folder: TempDir,
    wire: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// A program at the Linux end, until it is killed.
pub struct Server {
    child: Child,
    /// Its first line of output.
    pub said: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends with its input; nothing is lost if it has ended before.
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn script(name: &str) -> PathBuf {
    repository().join("tests/end-to-end/tests/peers").join(name)
}

/// Runs `ip`, which must succeed.
#[track_caller]
fn ip(words: &str) {
    let mut command = Command::new("ip");
    command.args(words.split(' '));
    let run = finish(command, words, LIMIT);
    assert_eq!(run.status, Some(0), "`ip {words}`:\n{run}");
}

fn inside(namespace: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(program);
    command
}

impl Network {
    /// Creates it. The name distinguishes it from others of this process.
    #[track_caller]
    pub fn new(name: &str) -> Network {
        let [machine, peer] = ["m", "p"].map(|end| format!("sing-{name}-{}-{end}", std::process::id()));
        ip(&format!("netns add {machine}"));
        ip(&format!("netns add {peer}"));
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let capture = folder.path().join("wire.pcap");
        let mut wire = inside(&machine, "python3")
            .arg(script("wire.py"))
            .args(["w0", "p0"])
            .arg(capture)
            .arg("1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let (commands, output) = (wire.stdin.take(), wire.stdout.take().expect("it is a pipe"));
        let mut network = Network { machine, peer, folder, wire, commands, answers: BufReader::new(output) };
        assert_eq!(network.answer(), "ready", "the wire has no interfaces");
        network.connect();
        network
    }

    /// Joins the interfaces at the machine's end, and sets Linux's address.
    #[track_caller]
    fn connect(&self) {
        let Network { machine, peer, .. } = self;
        // Linux itself sends nothing at this end: it only bridges packets.
        let quiet =
            "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6";
        let mut command = inside(machine, "sh");
        command.args(["-c", quiet]);
        finish(command, quiet, LIMIT);
        ip(&format!("-n {machine} tuntap add dev t0 mode tap"));
        ip(&format!("-n {machine} link add br0 type bridge"));
        for end in ["t0", "w0"] {
            ip(&format!("-n {machine} link set {end} master br0 up"));
        }
        ip(&format!("-n {machine} link set br0 up"));
        ip(&format!("-n {machine} link set p0 netns {peer}"));
        ip(&format!("-n {peer} address add {PEER}/24 dev p0"));
        ip(&format!("-n {peer} link set p0 up"));
        ip(&format!("-n {peer} link set lo up"));
    }

    /// Returns the command that starts a machine in its namespace, with its interface and address.
    pub fn of_machine(&self, machine: &Command) -> Command {
        self.with_parameters(machine, &[&format!("address={MACHINE}/24"), &format!("gateway={PEER}"), "dhcp=false"])
    }

    /// The same, with the addresses and servers that the network advertises.
    pub fn of_guest(&self, machine: &Command) -> Command {
        self.with_parameters(machine, &["dhcp=true"])
    }

    fn with_parameters(&self, machine: &Command, parameters: &[&str]) -> Command {
        let mut command = inside(&self.machine, machine.get_program());
        command.args(machine.get_args()).args(["--tap", "t0:plain"]);
        command.args(parameters.iter().flat_map(|parameter| ["--parameter", parameter]));
        command
    }

    /// Makes the Linux end assign addresses of both kinds and serve names, through dnsmasq.
    #[track_caller]
    pub fn gives_addresses(&self) -> Server {
        ip(&format!("-n {} address add {PEER_IPV6}/64 dev p0 nodad", self.peer));
        let mut command = inside(&self.peer, "dnsmasq");
        command.args(["--keep-in-foreground", "--conf-file=/dev/null", "--no-hosts", "--no-resolv", "--user=root"]);
        command.args(["--pid-file=", "--leasefile-ro", "--interface=p0", "--bind-interfaces", "--except-interface=lo"]);
        command.args([
            &format!("--dhcp-range={LEASES}.50,{LEASES}.59,2m"),
            &format!("--dhcp-option=3,{PEER},{LEASES}.200"),
        ]);
        command.args([&format!("--dhcp-option=6,{PEER}"), "--dhcp-authoritative", "--no-ping", "--enable-ra"]);
        command.args([&format!("--dhcp-range={PREFIX},ra-only"), &format!("--host-record={NAME},{PEER},{PEER_IPV6}")]);
        command.arg(format!("--local=/{DOMAIN}/"));
        let started = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Server { child: started.expect("dnsmasq starts"), said: String::new() }
    }

    /// Sets the wire's impairments and resets its counters.
    #[track_caller]
    pub fn set(&mut self, damage: &str) {
        assert_eq!(self.ask(&format!("set {damage}")), "done");
    }

    /// Returns the wire's counters.
    #[track_caller]
    pub fn count(&mut self, what: &str) -> u64 {
        let counts = self.ask("counts");
        let place = counts.split([',', '{', '}']).filter_map(|field| field.trim().split_once(": "));
        let found = place.into_iter().find(|(name, _)| name.trim_matches('"') == what);
        found.and_then(|(_, value)| value.parse().ok()).unwrap_or_else(|| panic!("no `{what}` in {counts}"))
    }

    #[track_caller]
    fn ask(&mut self, line: &str) -> String {
        let commands = self.commands.as_mut().expect("the wire was not ended");
        commands.write_all(format!("{line}\n").as_bytes()).expect("the wire reads commands");
        self.answer()
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        // A missing answer is an empty one.
        let _ = self.answers.read_line(&mut line);
        line.trim_end().to_string()
    }

    /// Runs a program at the Linux end.
    #[track_caller]
    pub fn run(&self, program: &str, arguments: &[&str]) -> Run {
        let mut command = inside(&self.peer, program);
        command.args(arguments);
        finish(command, &format!("{program} {}", arguments.join(" ")), LIMIT)
    }

    /// Runs a subcommand of `peer.py`, which must succeed.
    #[track_caller]
    pub fn peer(&self, arguments: &str) -> String {
        let script = script("peer.py").display().to_string();
        let words: Vec<&str> = std::iter::once(script.as_str()).chain(arguments.split(' ')).collect();
        let run = self.run("python3", &words);
        assert_eq!(run.status, Some(0), "{run}");
        run.text()
    }

    /// Starts a subcommand of `peer.py` that keeps running, and waits for its first line.
    #[track_caller]
    pub fn server(&self, arguments: &str) -> Server {
        let mut command = inside(&self.peer, "python3");
        command.arg(script("peer.py")).args(arguments.split(' '));
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.expect("python3 starts");
        let mut said = String::new();
        let output = child.stdout.take().expect("it is a pipe");
        BufReader::new(output).read_line(&mut said).expect("it says something");
        Server { child, said: said.trim_end().to_string() }
    }

    /// Capture of everything that entered the wire, before any impairment.
    #[track_caller]
    pub fn capture(&mut self) -> PathBuf {
        // The response arrives once all data is in the file.
        self.ask("counts");
        self.folder.path().join("wire.pcap")
    }

    /// Folder for files of this test.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // It exits at the end of its input, and its interfaces with it; the namespaces remove the rest.
        drop(self.commands.take());
        let _ = self.wire.kill();
        let _ = self.wire.wait();
        for namespace in [&self.machine, &self.peer] {
            let _ = Command::new("ip").args(["netns", "delete", namespace]).status();
        }
    }
}

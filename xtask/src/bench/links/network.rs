//! Two network namespaces, a link of `wire.py` between them, a server at one end and curl at the other.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use sing::failure::{Failure, Outcome};
use sing::repository::write_whole;
use sing::tap;

/// The client's end, which is the server's gateway.
const CLIENT: &str = "192.168.77.1";
const WIRE: &str = include_str!("../../../../tests/end-to-end/tests/peers/wire.py");
const SLOW_READERS: &str = include_str!("slow_readers.py");
/// The server's interface behind the bridge that joins it with the link.
const INTERFACE: &str = "t0";
const START: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const FETCH_SECONDS: &str = "120";

/// The network, removed on drop.
pub struct Network {
    server_side: String,
    client_side: String,
    folder: PathBuf,
    wire: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    server: Option<Child>,
}

fn run(program: &str, words: &[&str]) -> Outcome<String> {
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|error| Failure::file("start", Path::new(program), &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into());
    }
    let (words, errors) = (words.join(" "), String::from_utf8_lossy(&output.stderr));
    let is_refused = ["not permitted", "denied"].iter().any(|refusal| errors.contains(refusal));
    let failure = Failure::new(format!("`{program} {words}` failed")).details(&*errors);
    Err(if is_refused { failure.remedy("run it as root") } else { failure })
}

fn ip(words: &str) -> Outcome<String> {
    run("ip", &words.split(' ').collect::<Vec<_>>())
}

fn inside(namespace: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(program);
    command
}

impl Network {
    /// Creates the namespaces and the link.
    ///
    /// # Errors
    /// This user may not.
    pub fn new(name: &str, folder: &Path) -> Outcome<Network> {
        let [server_side, client_side] = ["s", "c"].map(|end| format!("sing-{name}-{}-{end}", std::process::id()));
        let script = folder.join("wire.py");
        write_whole(&script, WIRE.as_bytes())?;
        ip(&format!("netns add {server_side}"))?;
        let mut command = inside(&server_side, "python3");
        command.arg(&script).args(["w0", "c0", "/dev/null", "1"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let started = command.spawn().map_err(|error| Failure::file("start", Path::new("python3"), &error));
        let mut wire = started.inspect_err(|_| drop(ip(&format!("netns delete {server_side}"))))?;
        let (commands, output) = (wire.stdin.take(), wire.stdout.take());
        let output = output.ok_or_else(|| Failure::new("the link has no output"))?;
        let answers = BufReader::new(output);
        let folder = folder.join(name);
        let mut network = Network { server_side, client_side, folder, wire, commands, answers, server: None };
        if network.answer() != "ready" {
            return Err(Failure::new("cannot create the link").remedy("run it as root"));
        }
        network.connect()?;
        Ok(network)
    }

    fn connect(&self) -> Outcome<()> {
        let Network { server_side: server, client_side: client, folder, .. } = self;
        std::fs::create_dir_all(folder).map_err(|error| Failure::file("make the folder", folder, &error))?;
        ip(&format!("netns add {client}"))?;
        // No packets of Linux itself.
        for which in ["all", "default"] {
            let quiet = format!("echo 1 > /proc/sys/net/ipv6/conf/{which}/disable_ipv6");
            run("ip", &["netns", "exec", server, "sh", "-c", &quiet])?;
        }
        ip(&format!("-n {server} link set c0 netns {client}"))?;
        ip(&format!("-n {client} address add {CLIENT}/24 dev c0"))?;
        ip(&format!("-n {client} link set c0 up"))?;
        ip(&format!("-n {server} link set w0 up")).map(drop)
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        // No response counts as an empty one.
        let _ = self.answers.read_line(&mut line);
        line.trim_end().to_string()
    }

    fn start(&mut self, mut command: Command) -> Outcome<()> {
        let log = self.folder.join("log");
        let output = std::fs::File::create(&log).map_err(|error| Failure::file("write", &log, &error))?;
        let errors = output.try_clone().map_err(|error| Failure::file("write", &log, &error))?;
        let started = command.stdin(Stdio::piped()).stdout(output).stderr(errors).spawn();
        self.server = Some(started.map_err(|error| Failure::file("start", Path::new("ip"), &error))?);
        let begun = Instant::now();
        while self.page().is_err() {
            let has_ended = self.server.as_mut().is_none_or(|server| server.try_wait().is_ok_and(|end| end.is_some()));
            if has_ended || begun.elapsed() > START {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                return Err(Failure::new("a server does not serve").details(said));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Starts this system's web server, with the interface behind a bridge.
    ///
    /// # Errors
    /// It does not respond.
    pub fn serve_here(&mut self, files: &Path, system: Option<&Path>) -> Outcome<()> {
        let server = &self.server_side;
        ip(&format!("-n {server} tuntap add dev {INTERFACE} mode tap"))?;
        ip(&format!("-n {server} link add br0 type bridge"))?;
        for end in [INTERFACE, "w0"] {
            ip(&format!("-n {server} link set {end} master br0 up"))?;
        }
        ip(&format!("-n {server} link set br0 up"))?;
        let sing = sing::tool::path().map_err(|error| Failure::new(format!("cannot find sing: {error}")))?;
        let mut command = inside(server, sing);
        // The stack computes checksums itself, so damaged packets are detected.
        command.args(["run", "--web"]).arg(files).args(["--port", "80", "--tap", &format!("{INTERFACE}:plain")]);
        command.args(tap::parameters().iter().flat_map(|parameter| ["--parameter", parameter]));
        command.args(system.into_iter().flat_map(|system| [Path::new("--system"), system]));
        self.start(command)
    }

    /// Starts nginx.
    ///
    /// # Errors
    /// It does not respond.
    pub fn serve_linux(&mut self, files: &Path) -> Outcome<()> {
        ip(&format!("-n {} address add {}/24 dev w0", self.server_side, tap::MACHINE))?;
        let configuration = self.folder.join("nginx.conf");
        let (folder, files) = (self.folder.display(), files.display());
        let text = format!(
            "daemon off;\nworker_processes 1;\nuser root;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\n\
             events {{ worker_connections 4096; }}\nhttp {{\naccess_log off;\nsendfile on;\ntcp_nopush on;\n\
             server {{ listen {}:80; root {files}; }}\n}}\n",
            tap::MACHINE
        );
        write_whole(&configuration, text.as_bytes())?;
        let mut command = inside(&self.server_side, "nginx");
        command.arg("-c").arg(&configuration);
        self.start(command)
    }

    fn page(&self) -> Outcome<(f64, Vec<u8>)> {
        let got = self.folder.join("got");
        let url = format!("http://{}/file", tap::MACHINE);
        let to = got.display().to_string();
        let words = ["-sS", "--fail", "--max-time", FETCH_SECONDS, "-o", &to, "-w", "%{time_total}", &url];
        let namespace = ["netns", "exec", &self.client_side, "curl"];
        let told = run("ip", &[&namespace[..], &words].concat())?;
        let seconds = told.trim().parse().map_err(|_| Failure::new(format!("unexpected output of curl: `{told}`")))?;
        Ok((seconds, std::fs::read(&got).map_err(|error| Failure::file("read", &got, &error))?))
    }

    /// Returns the times in seconds until the first byte arrives at one client after another, while `readers` others
    /// read the file slowly, over a link without impairments.
    ///
    /// # Errors
    /// A client gets no response, or a slow reader is disconnected.
    pub fn first_bytes(&mut self, readers: usize, fetches: usize) -> Outcome<Vec<f64>> {
        self.impair("")?;
        let script = self.folder.join("slow_readers.py");
        write_whole(&script, SLOW_READERS.as_bytes())?;
        let (script, readers, fetches) = (script.display().to_string(), readers.to_string(), fetches.to_string());
        let words = [&self.client_side, "python3", &script, &tap::MACHINE.to_string(), &readers, &fetches];
        let told = run("ip", &[&["netns", "exec"], &words[..]].concat())?;
        let times: Option<Vec<f64>> = told.lines().map(|line| line.parse().ok()).collect();
        times.ok_or_else(|| Failure::new(format!("unexpected output of the slow readers: `{told}`")))
    }

    /// Sets the impairments of the link.
    fn impair(&mut self, damage: &str) -> Outcome<()> {
        if let Some(commands) = &mut self.commands {
            let sent = commands.write_all(format!("set {damage}\n").as_bytes());
            sent.map_err(|error| Failure::new(format!("the link closed: {error}")))?;
        }
        self.answer();
        Ok(())
    }

    /// Fetches the file over a link with these impairments; returns the time in seconds.
    ///
    /// # Errors
    /// It does not arrive, or arrives damaged.
    pub fn fetch(&mut self, damage: &str, content: &[u8]) -> Outcome<f64> {
        self.impair(damage)?;
        let (seconds, got) = self.page()?;
        match got == content {
            true => Ok(seconds),
            false => Err(Failure::new(format!("data was corrupted over a link with `{damage}`"))),
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // The system ends at end of input; nginx does not.
            drop(server.stdin.take());
            let begun = Instant::now();
            let is_here = self.server_side.contains("here");
            while is_here && begun.elapsed() < START && server.try_wait().is_ok_and(|end| end.is_none()) {
                std::thread::sleep(LOOK_EVERY);
            }
            let _ = server.kill();
            let _ = server.wait();
        }
        drop(self.commands.take());
        let _ = self.wire.kill();
        let _ = self.wire.wait();
        for namespace in [&self.server_side, &self.client_side] {
            // nginx's workers end with the namespace.
            let inside = ip(&format!("netns pids {namespace}")).unwrap_or_default();
            for process in inside.split_whitespace() {
                let _ = run("kill", &[process]);
            }
            let _ = ip(&format!("netns delete {namespace}"));
        }
    }
}
